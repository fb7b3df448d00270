# A table of the runs of a sweep, from the records of its cells: a row per run, in their order.
# Values of single applications are joined by " + ", as the mix is.
#
#   jq -nr -f runs.jq cells/KEY.json ...

def joined(value): [.apps[] | value] | join(" + ");
def settings: to_entries | map("\(.key)=\(.value)") | join(":");

[
    "machine", "overrides", "mix", "scheme", "parameters", "build",
    "cycles", "makespan_cycles", "stp", "antt", "fairness_min_speedup",
    "thread_instructions", "energy_joules",
    "dram_static_joules", "dram_joules", "activates_joules", "migrations_joules",
    "sms", "channels", "ipc", "normalized_progress", "first_reason"
],
(inputs | (.overrides | settings) as $overrides | .cell as $cell | .coruns[0] |
    [
        $cell.machine, $overrides, joined(.app), .scheme, (.parameters | settings), $cell.build,
        .cycles, .makespan_cycles, .stp, .antt, .fairness_min_speedup,
        ([.apps[].all_thread_instructions] | add), .energy_joules,
        .energy.dram_static_joules, .energy.dram_joules, .energy.activates_joules,
        .energy.migrations_joules,
        joined(.sms), joined(.channels), joined(.ipc), joined(.normalized_progress),
        .decisions[0].reason
    ])
| @csv
