//! How SMs are divided between two kernels that go together. The paper prints no rule.

use gpumodel_core::contract::ProbeResult;

use super::super::{Kind, Parameter};
use super::class::Intensity;

pub(super) const SPLIT: Parameter = Parameter {
    name: "split",
    kind: Kind::Word { default: EVEN, words: &[EVEN, SATURATE] },
    summary: "SMs of two kernels: half each, or what saturates the one with more traffic (assumed)",
};

const EVEN: &str = "even";
pub(super) const SATURATE: &str = "saturate";

/// Part of the traffic on all SMs from which on fewer are enough.
const ENOUGH: f64 = 0.95;

/// The SMs at which a kernel's traffic is as large as it gets, by runs on 1, 2, ...
#[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
pub(super) fn saturates(rows: &[ProbeResult]) -> u32 {
    let speed = |row: &ProbeResult| {
        row.apps.first().map_or(0.0, |app| {
            app.l1_accesses.max(app.l2_accesses) as f64 / app.cycles.max(1) as f64
        })
    };
    let most = rows.iter().map(speed).fold(0.0, f64::max);
    let first = rows.iter().position(|row| speed(row) >= ENOUGH * most);
    gpumodel_core::units::to_u32(first.map_or(rows.len(), |place| place + 1))
}

/// SMs of the first of two kernels, of `sms`. `saturate`: where each has as much
/// traffic as it can; the kernel with more intensive memory, the first of equals, has
/// so many, at most all but one.
pub(super) fn divide(sms: u32, saturate: Option<[u32; 2]>, [one, other]: [Intensity; 2]) -> u32 {
    let Some([first, second]) = saturate else { return sms.div_ceil(2) };
    let most = sms.saturating_sub(1).max(1);
    if other.memory > one.memory { sms - second.clamp(1, most) } else { first.clamp(1, most) }
}

#[cfg(test)]
mod tests {
    use super::super::class::Level;
    use super::{Intensity, divide, saturates};
    use gpumodel_core::contract::{ProbeApp, ProbeResult};

    fn row(sectors: u64) -> ProbeResult {
        let app = ProbeApp { cycles: 100, l1_accesses: sectors, ..ProbeApp::default() };
        ProbeResult { cycles: 100, apps: vec![app] }
    }

    #[test]
    fn traffic_is_saturated_where_more_sms_bring_no_more() {
        let rows: Vec<_> = [100, 200, 290, 300, 298, 300].map(row).into();
        assert_eq!(saturates(&rows), 3);
        assert_eq!(saturates(&[row(7)]), 1);
    }

    #[test]
    fn the_kernel_with_more_traffic_has_what_saturates_it() {
        let of = |memory| Intensity { compute: Level::Low, memory };
        let (low, high) = (of(Level::Low), of(Level::High));
        assert_eq!(divide(30, None, [low, high]), 15);
        assert_eq!(divide(31, None, [low, high]), 16);
        assert_eq!(divide(30, Some([30, 9]), [low, high]), 21);
        assert_eq!(divide(30, Some([9, 30]), [high, low]), 9);
        assert_eq!(divide(30, Some([30, 30]), [high, low]), 29, "the other keeps one");
        assert_eq!(divide(1, Some([30, 30]), [high, low]), 1);
    }
}
