//! Does the simulation avoid an allocation per request?

#[path = "../bench/traffic.rs"]
mod traffic;

use traffic::{Pattern, Traffic, machine};

/// Heap allocations of one run on one thread.
fn allocations(name: &str, pattern: Pattern, turns: u64) -> u64 {
    let resolved = machine(name);
    let traffic = Traffic::new(&resolved, pattern, 64, turns);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let run = || {
        traffic.run(&resolved);
    };
    one.install(|| allocation_counter::measure(run)).count_total
}

#[test]
fn nothing_is_allocated_per_request_in_steady_state() {
    let patterns = [
        Pattern::Stream { width: 4, span: 1 << 18 },
        Pattern::Stream { width: 16, span: 1 << 40 },
        Pattern::Scatter { span: 1 << 30 },
    ];
    for name in ["accelsim-qv100", "ugpu"] {
        for pattern in patterns {
            let (short, long) = (allocations(name, pattern, 2), allocations(name, pattern, 4));
            // Tables still grow to their largest size here and there; requests are
            // tens of thousands.
            let requests = Traffic::new(&machine(name), pattern, 64, 2).sectors();
            let more = long.saturating_sub(short);
            assert!(more * 100 < requests, "{name} {pattern:?}: {more} for {requests} requests");
        }
    }
}
