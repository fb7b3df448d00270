//! Which policies of a cache go together.

use super::cache::{AllocatePolicy, Cache, WriteMiss, WritePolicy};
use super::machine::{Allocation, Machine};

/// The combinations in `machine` that mean nothing, each with its reason.
pub(super) fn problems(machine: &Machine) -> Vec<String> {
    let caches = [("l1.cache", &machine.l1.cache), ("l2.cache", &machine.l2.cache)];
    let mut found: Vec<String> = caches
        .into_iter()
        .filter_map(|(key, cache)| Some(format!("{key}: {}", contradiction(cache)?)))
        .collect();
    if machine.l2.cache.write == WritePolicy::LocalWriteBack {
        found.push("l2.cache: `local-write-back`, but only an L1 knows local memory".to_owned());
    }
    let (l1, crossbar) = (&machine.l1, &machine.interconnect);
    if l1.bank_bytes != 0 && (!l1.bank_bytes.is_power_of_two() || l1.bank_bytes < 32) {
        found.push(format!("l1.bank_bytes = {}: 0, or a power of two from 32 on", l1.bank_bytes));
    }
    if l1.returns_per_cycle > 1 {
        found.push(format!("l1.returns_per_cycle = {}: 0 or 1", l1.returns_per_cycle));
    }
    if crossbar.allocation == Allocation::Matched && crossbar.flit_bytes > 0 {
        found.push("interconnect: `matched` ports move packets of one flit: flit_bytes = 0".into());
    }
    found
}

/// Why the write policies of one cache contradict each other, if they do.
fn contradiction(cache: &Cache) -> Option<&'static str> {
    use WriteMiss::{Fetch, Lazy};
    match (cache.write, cache.write_miss, cache.allocate) {
        (WritePolicy::WriteEvict, Fetch | Lazy, _) => Some(
            "`write-evict` drops what is written, so a write takes no way: write_miss = \"around\"",
        ),
        (WritePolicy::WriteThrough, Fetch, _) => Some(
            "`write-through` leaves nothing to complete, so a write fetches nothing: write_miss = \
             \"lazy\" or \"around\"",
        ),
        (WritePolicy::WriteBack | WritePolicy::LocalWriteBack, Fetch, AllocatePolicy::OnFill) => {
            Some(
                "the bytes of a write that fetches its sector need a way until it comes: allocate = \
             \"on-miss\", or write_miss = \"lazy\" or \"around\"",
            )
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::problems;
    use crate::config::Models;

    const WRITES: [&str; 4] = ["write-through", "write-evict", "write-back", "local-write-back"];
    const MISSES: [&str; 3] = ["around", "lazy", "fetch"];
    const ALLOCATES: [&str; 2] = ["on-miss", "on-fill"];

    fn refused(cache: &str, write: &str, miss: &str, allocate: &str) -> Vec<String> {
        let set = |key: &str, value: &str| (format!("{cache}.{key}"), value.to_owned());
        let set = [set("write", write), set("write_miss", miss), set("allocate", allocate)];
        let (resolved, found) = Models::builtin().examine("accelsim-qv100", &set).unwrap();
        let own = problems(&resolved.machine);
        assert_eq!(own.is_empty(), found.is_empty(), "{found:?}");
        own
    }

    #[test]
    fn what_means_nothing_is_refused_with_a_way_out() {
        let mut taken = 0;
        for cache in ["l1.cache", "l2.cache"] {
            for write in WRITES {
                for miss in MISSES {
                    for allocate in ALLOCATES {
                        let wrong = refused(cache, write, miss, allocate);
                        taken += u32::from(wrong.is_empty());
                        assert!(wrong.iter().all(|text| text.starts_with(cache)), "{wrong:?}");
                    }
                }
            }
        }
        // Through: around, lazy; evict: around; back and local: those and fetch
        // on a miss. The L2 has no local memory.
        assert_eq!(taken, (4 + 2 + 5 + 5) + (4 + 2 + 5));
        let wrong = refused("l1.cache", "write-evict", "lazy", "on-miss");
        assert!(wrong[0].contains("write_miss = \"around\""), "{wrong:?}");
        let wrong = refused("l2.cache", "local-write-back", "lazy", "on-miss");
        assert!(wrong[0].contains("only an L1"), "{wrong:?}");
    }
}
