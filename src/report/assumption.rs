//! What an application leans on, in one sentence.

use std::collections::BTreeMap;

use crate::results::AppRecord;

use super::number::{float, percent};

/// Share of the instructions from which on an assumption is named.
const NAMED: f64 = 0.01;

/// What at least a hundredth of the warp instructions of `app` leans on, most
/// first; `None` without such.
pub(super) fn leaning(app: &AppRecord) -> Option<String> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for open in app.kernels.iter().flat_map(|kernel| &kernel.assumptions) {
        *sums.entry(&open.what).or_default() += open.instructions;
    }
    let all = float(app.warp_instructions.max(1));
    let mut named: Vec<(&str, f64)> =
        sums.into_iter().map(|(what, count)| (what, float(count) / all)).collect();
    named.retain(|(_, share)| *share >= NAMED);
    named.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words: Vec<String> =
        named.iter().map(|(what, share)| format!("{what} {}", percent(Some(*share)))).collect();
    (!words.is_empty()).then(|| format!("leans on: {}", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::leaning;
    use crate::results::{AppRecord, AssumptionRecord, KernelRecord};

    #[test]
    fn what_few_instructions_lean_on_is_left_to_the_record() {
        let open = |what: &str, instructions| AssumptionRecord {
            what: what.to_owned(),
            instructions,
            ..AssumptionRecord::default()
        };
        let kernel = |instructions| KernelRecord {
            assumptions: vec![open("a", instructions), open("b", 2)],
            ..KernelRecord::default()
        };
        let kernels = vec![kernel(60), kernel(40)];
        let app = AppRecord { warp_instructions: 1000, kernels, ..AppRecord::default() };
        assert_eq!(leaning(&app).unwrap(), "leans on: a 10 %");
        assert_eq!(leaning(&AppRecord::default()), None);
    }
}
