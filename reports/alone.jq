# A table of applications alone, from records that have them: a row per application, from the
# first record that has it, in their order. Of several launches: `ctas_per_sm` is the first
# one's, `kernel_cycles` their sum, and shares are means weighted by their cycles.
#
#   jq -nr -f alone.jq cells/KEY.json ...

def weighted(cycles; share): (map(cycles * share) | add) / (map(cycles) | add);
def causes: ["barrier", "execution_resource", "instruction_buffer_empty",
    "long_memory_latency", "short_raw"];
def units: ["registers", "shared", "alu", "sfu", "load_store"];

([
    "app", "core_mhz", "peak_dram_gb_per_s", "peak_l2_gb_per_s",
    "peak_warp_instructions_per_cycle",
    "cycles", "launch_cycles", "warp_instructions", "thread_instructions", "ipc",
    "l2_accesses", "l2_hits", "l2_reads", "l2_read_hits", "dram_read_sectors",
    "dram_write_sectors", "kernels", "kernel_cycles", "ctas_per_sm",
    "memory_instructions", "other_instructions", "issue_slot_utilization"
] + units + causes),
(reduce inputs as $record ([];
    if any(.[]; .app.app == $record.solo[0].app) then . else
        . + [{machine: $record.machine, app: $record.solo[0]}]
    end)
| .[] | .machine as $machine | .app | .kernels as $kernels | .utilization as $busy |
    [$kernels[].instruction_mix | to_entries[]] as $mix |
    [
        .app, $machine.core_mhz, $machine.peak_dram_gb_per_s, $machine.peak_l2_gb_per_s,
        $machine.peak_warp_instructions_per_cycle,
        .cycles, .launch_cycles, .warp_instructions, .thread_instructions, .ipc,
        .l2.accesses, .l2.hits, .l2.reads, .l2.read_hits, .dram.read_sectors,
        .dram.write_sectors, ($kernels | length), ([$kernels[].cycles] | add),
        $kernels[0].ctas_per_sm,
        ([$mix[] | select(.key == "memory").value] | add // 0),
        ([$mix[] | select(.key != "memory").value] | add // 0),
        ($kernels | weighted(.cycles - .launch_cycles; .issue_slot_utilization))
    ]
    + [$busy[units[]]]
    + [causes[] as $cause | $kernels | weighted(.cycles; .stall_fractions[$cause])])
| @csv
