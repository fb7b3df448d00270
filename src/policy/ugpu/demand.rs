//! The memory bandwidth that applications demand (UGPU, eq. 1 and 2), from the counters of an
//! epoch or of a solo run on the whole machine.

use gpumodel_core::contract::{
    AppView, ChannelUse, DispatchOrder, Facts, LawBroken, PlanDraft, Probe, ProbeApp, ProbeResult,
};
use gpumodel_core::units::{AppId, Cycle, SECTOR_BYTES, to_u16};

use super::super::solve::float;
use super::super::{Parameter, Settings, shares};

pub(super) const B_MEM: Parameter =
    Parameter::word("b_mem", "profiled", &["profiled", "peak", "utilisation"]).does(
        "B_MEM of eq. 2: bytes per cycle in which requests wait at a channel (published: \
              determined by profiling), the peak of its pins, or bytes per cycle",
    );

/// How B_MEM of eq. 2, the most that a channel of the memory gives, is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BMem {
    /// What it gave while requests waited: "determined through profiling" (section 3.2).
    Profiled,
    /// The peak of its pins.
    Peak,
    /// What it gave in the mean.
    Utilisation,
}

impl BMem {
    pub(super) fn of(settings: &Settings) -> Self {
        match settings.word(B_MEM.name) {
            "peak" => Self::Peak,
            "utilisation" => Self::Utilisation,
            _ => Self::Profiled,
        }
    }

    /// GB/s of one channel; the peak where no request was ever made, and at most the peak.
    fn per_channel(self, facts: &Facts, channels: ChannelUse) -> f64 {
        let peak = facts.peak_dram_gb_per_s / f64::from(facts.channels.max(1));
        let cycles = match self {
            Self::Peak => return peak,
            Self::Profiled => channels.waiting_cycles,
            Self::Utilisation => channels.cycles,
        };
        if cycles == 0 || channels.bytes == 0 {
            return peak;
        }
        peak.min(float(channels.bytes) / float(cycles) * facts.core_mhz / 1000.0)
    }
}

pub(super) const PORT_LIMIT: Parameter = Parameter::word("port_limit", "off", &["off", "on"]).does(
    "an SM asks for no more than its port of the crossbar carries (assumed; eq. 1 is \
              printed without)",
);

/// The memory traffic of an application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    /// Thread instructions.
    pub(super) thread_instructions: u64,
    /// Sector requests to the L2 of loads, stores and atomics; not those of page walks,
    /// copies of pages, code, constants and the state of CTAs.
    pub(super) requests: u64,
    /// The requests that missed, or waited for a sector on its way, which comes no sooner
    /// than memory delivers it (assumed: the paper counts hits and does not define them).
    pub(super) misses: u64,
    /// What its channels have done.
    pub(super) channels: ChannelUse,
}

impl Traffic {
    pub(super) fn add(&mut self, other: &Self) {
        self.thread_instructions += other.thread_instructions;
        self.requests += other.requests;
        self.misses += other.misses;
        self.channels += other.channels;
    }
}

impl From<&AppView> for Traffic {
    fn from(seen: &AppView) -> Self {
        let (requests, misses) = seen.l2;
        let misses = misses + seen.l2_merged;
        let (thread_instructions, channels) = (seen.thread_instructions, seen.channels);
        Self { thread_instructions, requests, misses, channels }
    }
}

impl From<&ProbeApp> for Traffic {
    fn from(row: &ProbeApp) -> Self {
        Self {
            thread_instructions: row.thread_instructions,
            requests: row.l2_accesses,
            misses: (row.l2_accesses + row.l2_merged).saturating_sub(row.l2_hits),
            channels: row.channels,
        }
    }
}

/// Bandwidths of one application, in GB/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Demand {
    /// Demand of one SM that never stalls: BW_SM.
    pub(super) per_sm: f64,
    /// Supply of one channel with its part of the L2: BW_MC.
    pub(super) per_channel: f64,
}

impl Demand {
    /// Eq. 1 and 2; `None` where no instruction was executed.
    ///
    /// Eq. 1: IPC_max is [`Facts::peak_ipc_per_sm`]. APKI times the line is the bytes that
    /// the L2 is asked for per thread instruction, in sectors of 32 bytes: a line of which
    /// one sector is requested is not 128 bytes of traffic here.
    ///
    /// Eq. 2: B_LLC is the peak of the L2 over all channels.
    pub(super) fn new(facts: &Facts, traffic: Traffic, b_mem: BMem) -> Option<Self> {
        if traffic.thread_instructions == 0 {
            return None;
        }
        let bytes = float(traffic.requests) * float(SECTOR_BYTES);
        let per_instruction = bytes / float(traffic.thread_instructions);
        let per_sm = facts.peak_ipc_per_sm * per_instruction * facts.core_mhz / 1000.0;
        let channels = f64::from(facts.channels.max(1));
        let llc = facts.peak_l2_gb_per_s / channels;
        let memory = b_mem.per_channel(facts, traffic.channels);
        let missed = float(traffic.misses) / float(traffic.requests.max(1));
        let per_channel = (1.0 - missed) * llc + (missed * llc).min(memory);
        Some(Self { per_sm, per_channel })
    }

    /// The same with a demand per SM of at most what its port of the crossbar carries: no
    /// channels could deliver more.
    pub(super) fn through_port(self, facts: &Facts) -> Self {
        Self { per_sm: self.per_sm.min(facts.peak_sm_port_gb_per_s), ..self }
    }
}

pub(super) const WINDOW: Parameter = Parameter::whole("window", 0, 0..=u64::MAX)
    .does("cycles of a run alone; 0: to its end (assumed)");

/// A solo run of each application; none where there is one application.
pub(super) fn solo_probes(facts: &Facts, window: Option<Cycle>) -> Result<Vec<Probe>, LawBroken> {
    if facts.apps.len() < 2 {
        return Ok(Vec::new());
    }
    let probe = |app: AppId| {
        let shares = shares::everything(facts, &[app]);
        let (order, reason) = (DispatchOrder::RoundRobin, String::from("alone on every SM"));
        let draft = PlanDraft { shares, order, reason, ..PlanDraft::default() };
        shares::solo_probe(facts, app, window, draft)
    };
    facts.apps.iter().map(|app| probe(app.app)).collect()
}

/// The solo runs, by [`AppId`]; empty where there is one application.
#[derive(Clone, Debug, Default)]
pub(super) struct SoloProfiles(Vec<ProbeApp>);

impl SoloProfiles {
    pub(super) fn new(answers: &[ProbeResult]) -> Self {
        Self(answers.iter().filter_map(|answer| answer.apps.first()).cloned().collect())
    }

    /// Eq. 1 and 2 with the counters of the solo run.
    pub(super) fn demand(&self, facts: &Facts, app: AppId, b_mem: BMem) -> Option<Demand> {
        Demand::new(facts, Traffic::from(self.0.get(app.index())?), b_mem)
    }

    /// Thread instructions per cycle of each.
    pub(super) fn ipc(&self) -> impl Iterator<Item = f64> {
        self.0.iter().map(|row| float(row.thread_instructions) / float(row.cycles.max(1)))
    }

    /// The application with the lowest demand against its supply, the first of equals.
    pub(super) fn most_compute_bound(&self, facts: &Facts, b_mem: BMem) -> Option<AppId> {
        let apps = (0..self.0.len()).map(|place| AppId(to_u16(place)));
        let pressure = |app: AppId| {
            let demand = self.demand(facts, app, b_mem)?;
            Some((app, demand.per_sm / demand.per_channel))
        };
        let least = apps.filter_map(pressure).min_by(|one, other| one.1.total_cmp(&other.1));
        least.map(|(app, _)| app)
    }
}

#[cfg(test)]
mod tests {
    use super::{BMem, Demand, Traffic};
    use crate::fixture::{BENCHMARKS, traffic, ugpu_facts as facts};
    use gpumodel_core::contract::ChannelUse;

    #[test]
    fn demand_and_supply_are_the_papers() {
        let facts = facts(&["PVC"]);
        // 4 requests of 32 bytes, 1 of them a miss, in 1000 thread instructions.
        let few = Traffic {
            thread_instructions: 1000,
            requests: 4,
            misses: 1,
            // 12 bytes per cycle in which requests waited, 6 in the mean.
            channels: ChannelUse { bytes: 1200, waiting_cycles: 100, cycles: 200 },
        };
        let demand = Demand::new(&facts, few, BMem::Peak).unwrap();
        assert!((demand.per_sm - 64.0 * 0.128 * 1.4).abs() < 1e-9);
        assert!((demand.per_channel - 89.6).abs() < 1e-9, "a quarter of 89.6 is below 28.16");
        let all = Traffic { misses: 4, ..few };
        let of = |b_mem| Demand::new(&facts, all, b_mem).unwrap().per_channel;
        assert!((of(BMem::Peak) - 28.16).abs() < 1e-9);
        assert!((of(BMem::Profiled) - 16.8).abs() < 1e-9, "12 bytes at 1.4 GHz");
        assert!((of(BMem::Utilisation) - 8.4).abs() < 1e-9);
        let unasked = Traffic { channels: ChannelUse::default(), ..all };
        let unasked = Demand::new(&facts, unasked, BMem::Profiled).unwrap();
        assert!((unasked.per_channel - 28.16).abs() < 1e-9, "the peak of the pins");
        assert_eq!(Demand::new(&facts, Traffic::default(), BMem::Peak), None);
    }

    #[test]
    fn a_port_carries_a_sector_per_cycle_whatever_an_sm_asks_for() {
        let facts = facts(&["LAVAMD"]);
        let of = |requests| Traffic { thread_instructions: 1000, requests, ..Traffic::default() };
        let ask = |requests| Demand::new(&facts, of(requests), BMem::Peak).unwrap();
        // 64 instructions per cycle at 1.4 GHz with a sector each in 64: 44.8 GB/s.
        for (requests, free, bounded) in [(10, 28.672, 28.672), (20, 57.344, 44.8)] {
            assert!((ask(requests).per_sm - free).abs() < 1e-9);
            assert!((ask(requests).through_port(&facts).per_sm - bounded).abs() < 1e-9);
        }
    }

    /// Demand of 40 SMs over what 16 channels give.
    fn pressure(mpki: f64, hit_rate: f64) -> f64 {
        let [thread_instructions, requests, misses] = traffic(mpki, hit_rate);
        let channels = ChannelUse::default();
        let traffic = Traffic { thread_instructions, requests, misses, channels };
        let demand = Demand::new(&facts(&["PVC"]), traffic, BMem::Peak).unwrap();
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
