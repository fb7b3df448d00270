//! What an application asks of the memory, and what the memory gives it (UGPU, section
//! 3.2, eq. 1 and 2).

use gpumodel_core::contract::{AppView, Facts, ProbeApp};
use gpumodel_core::units::SECTOR_BYTES;

use super::super::{Kind, Parameter};

/// What B_MEM is taken for.
pub(super) const B_MEM: Parameter = Parameter {
    name: "b_mem",
    kind: Kind::Real { default: 1.0, least: 0.01, most: 1.0 },
    summary: "B_MEM of eq. 2, of the peak of a channel's pins (assumed; the paper measures it)",
};

/// Whether eq. 1 is bounded.
pub(super) const PORT_LIMIT: Parameter = Parameter {
    name: "port_limit",
    kind: Kind::Word { default: "off", words: &["off", "on"] },
    summary: "an SM asks for no more than its port of the crossbar carries (assumed; eq. 1 is \
              printed without)",
};

/// What the counters of an application say about a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    /// Thread instructions.
    pub(super) thread_instructions: u64,
    /// Sector requests to the L2 of loads, stores and atomics; not those of page walks,
    /// copies of pages, code, constants and the state of CTAs.
    pub(super) requests: u64,
    /// Those of them whose sector was not there: that missed, or waited for one on its
    /// way, which the L2 can give no sooner than memory does (assumed: the paper counts
    /// hits and does not say what those are).
    pub(super) misses: u64,
}

impl Traffic {
    /// Adds what was counted in another span.
    pub(super) fn add(&mut self, other: &Self) {
        self.thread_instructions += other.thread_instructions;
        self.requests += other.requests;
        self.misses += other.misses;
    }
}

impl From<&AppView> for Traffic {
    fn from(seen: &AppView) -> Self {
        let (requests, misses) = seen.l2;
        let misses = misses + seen.l2_merged;
        Self { thread_instructions: seen.thread_instructions, requests, misses }
    }
}

impl From<&ProbeApp> for Traffic {
    fn from(row: &ProbeApp) -> Self {
        Self {
            thread_instructions: row.thread_instructions,
            requests: row.l2_accesses,
            misses: (row.l2_accesses + row.l2_merged).saturating_sub(row.l2_hits),
        }
    }
}

/// Bandwidths of one application, in GB/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Demand {
    /// What one SM asks for when nothing stalls it: BW_SM.
    pub(super) per_sm: f64,
    /// What one channel with its part of the L2 gives: BW_MC.
    pub(super) per_channel: f64,
}

impl Demand {
    /// Eq. 1 and 2; nothing where no instruction was executed.
    ///
    /// Eq. 1: IPC_max is [`Facts::peak_ipc_per_sm`]. APKI times the line is taken as the
    /// bytes that were asked of the L2 per thread instruction, by sectors of 32 bytes:
    /// a line of which one sector is asked for is not 128 bytes of traffic here.
    ///
    /// Eq. 2: B_LLC and B_MEM are the peaks of L2 and DRAM over all channels, B_MEM times
    /// `b_mem`.
    pub(super) fn new(facts: &Facts, traffic: Traffic, b_mem: f64) -> Option<Self> {
        if traffic.thread_instructions == 0 {
            return None;
        }
        let bytes = float(traffic.requests) * float(SECTOR_BYTES);
        let per_instruction = bytes / float(traffic.thread_instructions);
        let per_sm = facts.peak_ipc_per_sm * per_instruction * facts.core_mhz / 1000.0;
        let channels = f64::from(facts.channels.max(1));
        let llc = facts.peak_l2_gb_per_s / channels;
        let memory = facts.peak_dram_gb_per_s / channels * b_mem;
        let missed = float(traffic.misses) / float(traffic.requests.max(1));
        let per_channel = (1.0 - missed) * llc + (missed * llc).min(memory);
        Some(Self { per_sm, per_channel })
    }

    /// The same with no more for one SM than its port of the crossbar carries: what goes
    /// beyond that, no channels could bring.
    pub(super) fn through_port(self, facts: &Facts) -> Self {
        Self { per_sm: self.per_sm.min(facts.peak_sm_port_gb_per_s), ..self }
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{BENCHMARKS, facts, traffic};
    use super::{Demand, Traffic};

    #[test]
    fn demand_and_supply_are_the_papers() {
        let facts = facts(&["PVC"]);
        // 4 requests of 32 bytes, 1 of them a miss, in 1000 thread instructions.
        let few = Traffic { thread_instructions: 1000, requests: 4, misses: 1 };
        let demand = Demand::new(&facts, few, 1.0).unwrap();
        assert!((demand.per_sm - 64.0 * 0.128 * 1.4).abs() < 1e-9);
        assert!((demand.per_channel - 89.6).abs() < 1e-9, "a quarter of 89.6 is below 28.16");
        let all = Traffic { misses: 4, ..few };
        let of = |b_mem| Demand::new(&facts, all, b_mem).unwrap().per_channel;
        assert!((of(1.0) - 28.16).abs() < 1e-9 && (of(0.5) - 14.08).abs() < 1e-9);
        assert_eq!(Demand::new(&facts, Traffic::default(), 1.0), None);
    }

    #[test]
    fn a_port_carries_a_sector_per_cycle_whatever_an_sm_asks_for() {
        let facts = facts(&["LAVAMD"]);
        let of = |requests| Traffic { thread_instructions: 1000, requests, misses: 0 };
        let ask = |requests| Demand::new(&facts, of(requests), 1.0).unwrap();
        // 64 instructions per cycle at 1.4 GHz with a sector each in 64: 44.8 GB/s.
        for (requests, free, bounded) in [(10, 28.672, 28.672), (20, 57.344, 44.8)] {
            assert!((ask(requests).per_sm - free).abs() < 1e-9);
            assert!((ask(requests).through_port(&facts).per_sm - bounded).abs() < 1e-9);
        }
    }

    /// Demand of 40 SMs over what 16 channels give.
    fn pressure(mpki: f64, hit_rate: f64) -> f64 {
        let demand = Demand::new(&facts(&["PVC"]), traffic(mpki, hit_rate), 1.0).unwrap();
        demand.per_sm * 40.0 / (demand.per_channel * 16.0)
    }

    #[test]
    fn half_a_machine_splits_the_benchmarks_ten_to_five() {
        // Only misses are published: hits would add to both sides. Without any, all that
        // is asked of the L2 is asked of the DRAM.
        for (place, (name, mpki)) in BENCHMARKS.into_iter().enumerate() {
            let found = pressure(mpki, 0.0);
            assert_eq!(found > 1.0, place < 10, "{name}: {found}");
        }
    }

    #[test]
    fn the_split_has_a_margin_of_a_tenth_above_and_a_factor_of_twelve_below() {
        let of = |name: &str| BENCHMARKS.iter().find(|row| row.0 == name).unwrap().1;
        let [srad, hotspot] = ["SRAD", "HOTSPOT"].map(|name| pressure(of(name), 0.0));
        assert!((1.10..1.12).contains(&srad), "the least memory-bound: {srad}");
        assert!((0.08..0.083).contains(&hotspot), "the least compute-bound: {hotspot}");
        // Six hits in a hundred requests would make SRAD compute-bound, nine CONVS: for a
        // hit the L2 gives more than is asked of it.
        assert!(pressure(of("SRAD"), 0.05) > 1.0 && pressure(of("SRAD"), 0.06) < 1.0);
        assert!(pressure(of("CONVS"), 0.08) > 1.0 && pressure(of("CONVS"), 0.09) < 1.0);
        let hits = |tenths: u32| f64::from(tenths) / 10.0;
        assert!((0..=9).all(|tenths| pressure(of("BH"), hits(tenths)) > 1.1), "the next one");
    }
}
