# What a table of queues needs of a record of them.
#
#   jq -f queues.jq queues.json

{
    solo: [.solo[] | {app, cycles}],
    interference: [.interference[] | {apps: [.apps[] | {app, class}]}],
    queues: [.queues[] | {
        distribution, scheme, cycles,
        jobs: [.jobs[] | {app, cycles, end_cycle}],
        groups: [.groups[] | {
            start_cycle, end_cycle, jobs, shares: [.shares[] | {since_begin_cycles, sms}]
        }]
    }]
}
