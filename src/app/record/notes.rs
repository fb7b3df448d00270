//! The notes of a record: assumptions of its runs, once per application.

use std::collections::BTreeSet;

use gpumodel_core::isa::Listing;
use gpumodel_core::memory_copy::CopyDirection;
use gpumodel_core::units::Cycle;
use gpumodel_feed::StoreFeed;
use gpumodel_report::results::FastForwardRecord;
use gpumodel_sim::config::{Machine, ManagedMemory};
use gpumodel_sim::{Command, DEFAULT_STREAM, Outcome};

use crate::app::skipped;
use crate::record::assumptions::null_effect;
use crate::record::fast_forward;
use crate::{AnalyzeRequest, App, EndWhen, Ending};

/// A window of fewer launch latencies makes targets depend mostly on the latency.
const LAUNCHES: Cycle = 10;

/// What was passed over of the run of application `name`, `how` it ran.
pub(crate) fn passed(name: &str, how: &str, record: &FastForwardRecord, cycles: Cycle) -> String {
    let FastForwardRecord { cycles: passed, stretches, interval } = record;
    if *stretches == 0 {
        return format!("{name} {how}: no stretch was steady, every cycle was simulated");
    }
    let share = 100.0 * *passed as f64 / cycles.max(1) as f64;
    let interval = 100.0 * interval;
    format!(
        "{name} {how}: {share:.0} % of its cycles were passed over in {stretches} stretches; 95 % \
         interval: {interval:.1} % to either side"
    )
}

/// The notes of one analysis, in order and each once.
#[derive(Debug, Default)]
pub(crate) struct Notes(Vec<String>);

impl Notes {
    /// Adds a sentence unless it is listed already.
    pub(crate) fn add(&mut self, note: String) {
        if !self.0.contains(&note) {
            self.0.push(note);
        }
    }

    /// Notes options of co-runs that are ignored because no scheme is named.
    pub(crate) fn of_request(&mut self, request: &AnalyzeRequest) {
        let until = request.until != Ending::default();
        let asked = until || request.window.is_some() || !request.arrivals.is_empty();
        if request.schemes.is_empty() && asked {
            self.add(String::from(
                "no scheme was named, so nothing ran together: end, window and arrivals were not used",
            ));
        }
    }

    /// Notes a window that is mostly launch latency.
    pub(crate) fn of_window(&mut self, request: &AnalyzeRequest, machine: &Machine) {
        let targeted = !request.schemes.is_empty() && request.until.when == EndWhen::Targets;
        let launch = machine.dispatch.kernel_launch_cycles;
        let short = |window: &Cycle| targeted && *window < launch.saturating_mul(LAUNCHES);
        if let Some(window) = request.compared().filter(short) {
            self.add(format!(
                "the window of {window} cycles holds less than {LAUNCHES} times the {launch} that \
                 a launch takes: targets of it depend on how a launch begins more than on the \
                 applications, and co-runs are compared with runs of other lengths; a longer \
                 --window compares better"
            ));
        }
    }

    /// Notes the assumptions of a run of `app`.
    pub(crate) fn of_run(
        &mut self,
        app: &App,
        feed: &StoreFeed<'_>,
        outcome: &Outcome,
        machine: &Machine,
    ) {
        let name = &app.name;
        self.of_opcodes(name, feed, outcome);
        self.of_logs(name, feed);
        self.of_streams(name, feed, machine);
        self.of_link(name, feed, machine);
        let ended = outcome.apps.first();
        if let Some((ended, record)) = ended.and_then(|ended| Some((ended, fast_forward(ended)?))) {
            self.add(passed(name, "alone", &record, ended.cycles()));
        }
        if app.store.skipped_files() > 0 {
            self.add(format!("{name}: {}", skipped(app.store.skipped_files())));
        }
        let generic: u64 = outcome.kernels.iter().map(|k| k.generic_accesses).sum();
        if generic > 0 {
            self.add(format!("{name}: {generic} accesses through generic addresses, classified by the trace's shared and local windows"));
        }
        self.of_nulls(name, outcome, machine);
        self.of_bulk_copies(name, outcome);
        let barriers: u64 = outcome.kernels.iter().map(|k| k.assumed_barriers).sum();
        if barriers > 0 {
            self.add(format!("{name}: {barriers} barrier instructions without number or thread count in the trace: with a count each is a separate barrier, else that of the whole CTA"));
        }
        let waits: u64 = outcome.kernels.iter().map(|k| k.assumed_waits).sum();
        if waits > 0 {
            self.add(format!("{name}: {waits} waits for asynchronous copies (DEPBAR) without an immediate, modelled as waits for all"));
        }
        if machine.quirks.textures_are_latency {
            self.add(format!(
                "{}: texture instructions take a fixed time and touch no memory",
                machine.name
            ));
        }
        let partial = feed.programs().iter().filter(|p| p.ctas < p.launch.grid.count()).count();
        if partial > 0 {
            self.add(format!("{name}: {partial} launches have fewer CTAs in the trace than in the grid; only the traced ones run"));
        }
    }

    /// Notes active lanes at address 0.
    fn of_nulls(&mut self, name: &str, outcome: &Outcome, machine: &Machine) {
        let null: u64 = outcome.kernels.iter().map(|k| k.null_lanes).sum();
        if null > 0 {
            let accesses: u64 = outcome.kernels.iter().map(|k| k.null_accesses).sum();
            self.add(format!(
                "{name}: {null} active lanes of {accesses} accesses are at address 0, {}",
                null_effect(machine)
            ));
        }
    }

    /// Notes bulk copies of which the trace has no addresses, and the bytes that are known of.
    fn of_bulk_copies(&mut self, name: &str, outcome: &Outcome) {
        let sum = |of: fn(&gpumodel_sim::KernelCounts) -> u64| -> u64 {
            outcome.kernels.iter().map(of).sum()
        };
        let unknown = sum(|k| k.unknown_copies);
        if unknown > 0 {
            let (moved, expected) = (sum(|k| k.bulk_bytes), sum(|k| k.expected_bytes));
            self.add(format!("{name}: {unknown} bulk copies without addresses in the trace move nothing: {moved} bytes of others are moved, barrier objects expected {expected}"));
        }
    }

    /// Notes opcodes that are none of the machine's, and machines whose they are.
    fn of_opcodes(&mut self, name: &str, feed: &StoreFeed<'_>, outcome: &Outcome) {
        let unknown = Opcodes::of(feed, Listing::Prefix);
        if !unknown.texts.is_empty() {
            let executed: u64 = outcome.kernels.iter().map(|k| k.unknown_opcodes).sum();
            self.add(format!("{name}: opcodes that no table row of this machine knows, classed by prefix: {} ({executed} warp instructions){}", unknown.list(), unknown.machines()));
        }
        let foreign = Opcodes::of(feed, Listing::OtherArchitecture);
        if !foreign.texts.is_empty() {
            self.add(format!("{name}: instructions of another architecture, which take the time of their work on the units of this machine: {}{}", foreign.list(), foreign.machines()));
        }
    }

    /// Notes how the streams of an application were taken, where it has several.
    fn of_streams(&mut self, name: &str, feed: &StoreFeed<'_>, machine: &Machine) {
        const KEY: &str = "quirks.per_thread_default_stream";
        let streams: BTreeSet<u64> = feed.programs().iter().map(|p| p.launch.stream).collect();
        if streams.len() < 2 || machine.quirks.serial_kernels {
            return;
        }
        match (streams.contains(&DEFAULT_STREAM), machine.quirks.per_thread_default_stream) {
            (true, false) => self.add(format!("{name}: launches of stream 0, taken as the legacy default stream, wait for all other streams and these for them: traces do not record non-blocking streams; --set {KEY}=true takes it as one among others")),
            (true, true) => self.add(format!("{name}: stream 0 is taken as a default stream per thread ({KEY}): it waits for no other stream")),
            (false, _) => {}
        }
        let commands = feed.commands();
        let is_launch = |command: &Command| matches!(command, Command::Launch { .. });
        let copies = commands.iter().skip_while(|command| !is_launch(command));
        let copies = copies.filter(|command| !is_launch(command)).count();
        if copies > 0 && !machine.link.as_ref().is_some_and(|link| link.copies) {
            self.add(format!("{name}: {copies} copies behind the first launch are taken as synchronous: each waits for all launches before it and holds those behind it"));
        }
    }

    /// Notes what was assumed of copies and of managed memory, where they take time.
    fn of_link(&mut self, name: &str, feed: &StoreFeed<'_>, machine: &Machine) {
        let Some(link) = &machine.link else { return };
        let commands = feed.commands();
        let mut copies = commands.iter().filter_map(Command::copy);
        if link.copies {
            self.add(format!("{}: copies take time: {} us, then {} GB/s to the device and {} GB/s to the host, of memory that is page-locked; those without a stream in the trace are synchronous; what they take from caches and DRAM is not modelled", machine.name, link.latency_us, link.host_to_device_gb_per_s, link.device_to_host_gb_per_s));
            if !copies.any(|copy| copy.direction == CopyDirection::DeviceToHost) {
                self.add(format!("{name}: no copy to the host is in the trace: tracers record those to the device alone"));
            }
        }
        if link.managed == ManagedMemory::All {
            self.add(format!("{}: all memory is taken as managed: the first touch of {} bytes that no copy has brought costs {} us and their way over the link, faults wait together, nothing is evicted or goes back; drivers take 20 to 50 us and bring up to 2 MB ahead, so that real faults are up to 2.5 times slower one by one and fewer in a row", machine.name, link.fault_bytes, link.fault_us));
        }
    }

    /// Notes launches of which only the accesses are known.
    fn of_logs(&mut self, name: &str, feed: &StoreFeed<'_>) {
        let logs = (0..feed.programs().len()).filter(|&index| feed.memory_only(index)).count();
        if logs > 0 {
            self.add(format!("{name}: {logs} launches are memory-only, from a log of accesses: warps issue them in order and wait for none; caches and DRAM are modelled, IPC and all times are not"));
        }
    }

    /// The sentences.
    pub(crate) fn into_sentences(self) -> Vec<String> {
        self.0
    }
}

/// Machines in a hint.
const NAMED: usize = 3;

/// Opcodes of an application that are none of its machine's.
#[derive(Default)]
struct Opcodes<'a> {
    texts: BTreeSet<&'a str>,
    /// Architectures of their binaries.
    versions: BTreeSet<u32>,
}

impl<'a> Opcodes<'a> {
    /// Those that the table knows in that way.
    fn of(feed: &'a StoreFeed<'_>, listing: Listing) -> Self {
        let mut found = Self::default();
        for program in feed.programs() {
            let texts = program.code.opcodes.iter().zip(program.opcodes.iter());
            for (text, _) in texts.filter(|(_, opcode)| opcode.listing == listing) {
                found.texts.insert(text.as_str());
                found.versions.insert(program.launch.binary_version);
            }
        }
        found
    }

    /// The first of them.
    fn list(&self) -> String {
        self.texts.iter().take(12).copied().collect::<Vec<_>>().join(", ")
    }

    /// A hint at the built-in machines that have most of them; nothing where none has one.
    fn machines(&self) -> String {
        let Ok(models) = crate::models(None) else { return String::new() };
        let native = |name: &str| {
            let isa = models.machine(name, &[]).ok()?.isa;
            Some(self.texts.iter().filter(|text| isa.is_native(text)).count())
        };
        let names = models.machine_names();
        let counts: Vec<(usize, &str)> =
            names.into_iter().filter_map(|name| Some((native(name)?, name))).collect();
        let most = counts.iter().map(|(count, _)| *count).max().unwrap_or(0);
        if most == 0 {
            return String::new();
        }
        let best = counts.iter().filter(|(count, _)| *count == most).take(NAMED);
        let best: Vec<String> = best.map(|(_, name)| format!("--machine {name}")).collect();
        let traces: Vec<String> = self.versions.iter().map(|v| format!("sm_{v}")).collect();
        format!("; {} trace: try {}", traces.join(" and "), best.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::{AnalyzeRequest, Notes, Opcodes};
    use crate::AppName;

    #[test]
    fn a_window_that_is_mostly_launch_latency_is_said() {
        let resolved = crate::models(None).unwrap().machine("v100", &[]).unwrap();
        let launch = resolved.machine.dispatch.kernel_launch_cycles;
        let notes = |until: &str, schemes: &[&str], window| {
            let request = AnalyzeRequest {
                schemes: schemes.iter().map(ToString::to_string).collect(),
                until: until.parse().unwrap(),
                window,
                ..AnalyzeRequest::new(Vec::new(), "v100", Path::new("cache"))
            };
            let mut notes = Notes::default();
            notes.of_window(&request, &resolved.machine);
            notes.into_sentences()
        };
        let short = notes("targets", &["even"], Some(10 * launch - 1));
        assert!(short.len() == 1 && short[0].contains("a longer --window"), "{short:?}");
        assert_eq!(notes("targets,cycles=500", &["even"], None).len(), 1);
        assert!(notes("targets", &["even"], Some(10 * launch)).is_empty());
        assert!(notes("targets", &[], Some(10)).is_empty(), "nothing runs together");
        assert!(notes("cycles=500", &["even"], Some(500)).is_empty(), "of one length");
    }

    #[test]
    fn unknown_opcodes_lead_to_machines_that_list_them() {
        let hint = |opcodes: &[&str]| {
            let texts = opcodes.iter().copied().collect();
            Opcodes { texts, versions: BTreeSet::from([90]) }.machines()
        };
        let said = hint(&["UTMALDG.2D", "NOSUCH"]);
        assert!(said.starts_with("; sm_90 trace: try --machine h100"), "{said}");
        assert!(!said.contains("v100") && !said.contains("a100"), "{said}");
        assert_eq!(hint(&["NOSUCH"]), "");
    }

    #[test]
    fn what_is_asked_of_co_runs_that_are_not_is_said() {
        let notes = |apps: &[&str], schemes: &[&str], window| {
            let apps = apps.iter().map(AppName::parse).collect();
            let request = AnalyzeRequest {
                schemes: schemes.iter().map(ToString::to_string).collect(),
                window,
                ..AnalyzeRequest::new(apps, "v100", Path::new("cache"))
            };
            let mut notes = Notes::default();
            notes.of_request(&request);
            notes.into_sentences()
        };
        assert!(notes(&["a", "b"], &[], None).is_empty());
        assert!(notes(&["a", "b"], &["even"], Some(5)).is_empty());
        assert!(notes(&["a", "b"], &[], Some(5))[0].starts_with("no scheme was named"));
    }
}
