//! Runs as a timeline to browse: the JSON trace format of Chrome, which Perfetto opens.
//!
//! One process per run: each application alone, then each scheme. Its threads: the scheme's
//! decisions, the kernels of each stream or application, and, where they were recorded, the CTAs of
//! each SM; slices of a thread never overlap. Counters show activity over time. Times are
//! microseconds of the core clock; slices and decisions have their cycles in `args`.

use std::collections::BTreeMap;

use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u64, to_usize};
use serde_json::{Map, Value, json};

use crate::format::{float, plain_name, ratio};
use crate::results::{
    Analysis, AppRecord, CoRun, CtaRecord, DecisionRecord, Interval, MachineRecord, RunEvents,
};

/// The thread of decisions.
const DECISIONS: u64 = 0;
/// The first thread of kernels.
const KERNELS: u64 = 1;
/// The first thread of CTAs.
const CTAS: u64 = 1 << 20;

/// The runs of `analysis` in the JSON trace format of Chrome and Perfetto: same record, same
/// bytes.
#[must_use]
pub fn trace_events(analysis: &Analysis) -> String {
    let machine = &analysis.machine;
    let mut events = Vec::new();
    let mut left_out = 0;
    for (pid, app) in (1..).zip(&analysis.solo) {
        let mut run = Run::new(machine, pid, &format!("{} alone", app.app));
        solo(&mut run, app);
        left_out += app.events.ctas_left_out;
        events.extend(run.into_events());
    }
    for (pid, corun) in (to_u64(analysis.solo.len()) + 1..).zip(&analysis.coruns) {
        let apps: Vec<&str> = corun.apps.iter().map(|app| app.app.as_str()).collect();
        let mut run =
            Run::new(machine, pid, &format!("{} under {}", apps.join(" + "), corun.scheme));
        shared(&mut run, corun);
        left_out += corun.events.ctas_left_out;
        events.extend(run.into_events());
    }
    let about = json!({
        "program": analysis.program,
        "machine": machine.name,
        "core_mhz": machine.core_mhz,
        "ctas_left_out": left_out,
    });
    let document = json!({ "displayTimeUnit": "ns", "otherData": about, "traceEvents": events });
    document.to_string() + "\n"
}

fn solo(run: &mut Run<'_>, app: &AppRecord) {
    let mut streams: BTreeMap<u64, Vec<Slice>> = BTreeMap::new();
    for kernel in &app.kernels {
        let args = json!({
            "launch": kernel.launch,
            "grid": kernel.grid.to_string(),
            "block": kernel.block.to_string(),
            "thread_ipc": kernel.ipc,
            "launch_cycles": kernel.launch_cycles,
            "times_are_modelled": !kernel.memory_only,
        });
        let (start, end) = (kernel.start_cycle, kernel.end_cycle);
        let slice = Slice { name: plain_name(&kernel.name), start, end, args };
        streams.entry(kernel.stream).or_default().push(slice);
    }
    let mut tid = KERNELS;
    for (stream, slices) in streams {
        tid = run.slices("kernel", &format!("stream {stream}"), tid, slices);
    }
    run.activity(&app.timeline);
    run.ctas(&app.events, |_| String::from("CTA"));
}

fn shared(run: &mut Run<'_>, corun: &CoRun) {
    let mut tid = KERNELS;
    for app in &corun.apps {
        let slices = app.kernels.iter().map(|kernel| Slice {
            name: plain_name(&kernel.name),
            start: kernel.start_cycle,
            end: kernel.end_cycle,
            args: json!({ "app": app.app, "launch": kernel.launch, "ctas": kernel.ctas }),
        });
        tid = run.slices("kernel", &app.app, tid, slices.collect());
    }
    if !corun.decisions.is_empty() {
        run.thread(DECISIONS, &format!("decisions of {}", corun.scheme));
    }
    corun.decisions.iter().for_each(|decision| run.decision(decision));
    run.activity(&corun.events.timeline);
    run.resident(corun);
    run.ctas(&corun.events, |cta| {
        corun.apps.get(to_usize(cta.app_index)).map_or_else(String::new, |app| app.app.clone())
    });
}

/// What a thread does for a while.
struct Slice {
    name: String,
    start: Cycle,
    end: Cycle,
    args: Value,
}

/// The events of one process.
struct Run<'a> {
    machine: &'a MachineRecord,
    pid: u64,
    /// Names of processes and threads, which have no time.
    names: Vec<Value>,
    /// By cycle, in the order in which they were made.
    events: Vec<(Cycle, Value)>,
}

impl<'a> Run<'a> {
    fn new(machine: &'a MachineRecord, pid: u64, name: &str) -> Self {
        let mut run = Self { machine, pid, names: Vec::new(), events: Vec::new() };
        run.name("process_name", 0, json!({ "name": name }));
        run.name("process_sort_index", 0, json!({ "sort_index": pid }));
        run
    }

    fn name(&mut self, what: &str, tid: u64, args: Value) {
        let Self { pid, .. } = *self;
        self.names.push(json!({ "name": what, "ph": "M", "pid": pid, "tid": tid, "args": args }));
    }

    fn thread(&mut self, tid: u64, name: &str) {
        self.name("thread_name", tid, json!({ "name": name }));
        self.name("thread_sort_index", tid, json!({ "sort_index": tid }));
    }

    /// Microseconds of `cycles`; a record without a clock has one of 1 MHz.
    fn time(&self, cycles: Cycle) -> f64 {
        ratio(float(cycles), self.machine.core_mhz).unwrap_or_else(|| float(cycles))
    }

    /// Adds an event that begins at `cycle`.
    fn add(&mut self, (name, ph, tid): (&str, &str, u64), cycle: Cycle, more: Value) {
        let (ts, pid) = (self.time(cycle), self.pid);
        let mut event = json!({ "name": name, "ph": ph, "ts": ts, "pid": pid, "tid": tid });
        if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
            event.extend(more);
        }
        self.events.push((cycle, event));
    }

    /// Adds slices to as few threads as do without overlaps, called `name`, from `tid` on; the
    /// thread after the last.
    fn slices(&mut self, cat: &str, name: &str, tid: u64, mut slices: Vec<Slice>) -> u64 {
        slices.sort_by_key(|slice| (slice.start, slice.end));
        // By thread: when it is free.
        let mut free: Vec<Cycle> = Vec::new();
        for Slice { name, start, end, args } in slices {
            let place = free.iter().position(|&free| free <= start).unwrap_or_else(|| {
                free.push(0);
                free.len() - 1
            });
            free[place] = end;
            let mut all = json!({ "start_cycle": start, "end_cycle": end, "cycles": end - start });
            if let (Some(all), Value::Object(args)) = (all.as_object_mut(), args) {
                all.extend(args);
            }
            let dur = self.time(end - start);
            let more = json!({ "dur": dur, "cat": cat, "args": all });
            self.add((&name, "X", tid + to_u64(place)), start, more);
        }
        for place in 0..to_u64(free.len()) {
            let apart = if place == 0 { String::new() } else { format!(" ({})", place + 1) };
            self.thread(tid + place, &format!("{name}{apart}"));
        }
        tid + to_u64(free.len())
    }

    fn decision(&mut self, decision: &DecisionRecord) {
        let DecisionRecord { cycle, wake, reason, .. } = decision;
        let args = json!({ "cycle": cycle, "wake": wake, "reason": reason });
        let name = if reason.is_empty() { wake } else { reason };
        let more = json!({ "s": "p", "cat": "decision", "args": args });
        self.add((name, "i", DECISIONS), *cycle, more);
    }

    /// Sets the series of a counter.
    fn counter(&mut self, name: &str, cycle: Cycle, values: Map<String, Value>) {
        self.add((name, "C", DECISIONS), cycle, json!({ "args": values }));
    }

    /// IPC, DRAM bandwidth and resident CTAs over time; all end at 0.
    fn activity(&mut self, timeline: &[Interval]) {
        let core_mhz = self.machine.core_mhz;
        let measures: [(&str, Measure); 3] = [
            ("warp IPC", |span, _| each_cycle(span, float(span.warp_instructions))),
            ("DRAM GB/s", |span, core_mhz| {
                let bytes = float(span.dram_sectors) * float(SECTOR_BYTES);
                each_cycle(span, bytes) * core_mhz / 1000.0
            }),
            ("resident CTAs", |span, _| span.resident_ctas),
        ];
        for (name, measure) in measures {
            let one = |value: f64| Map::from_iter([(String::from("value"), json!(value))]);
            for span in timeline {
                self.counter(name, span.start_cycle, one(measure(span, core_mhz)));
            }
            if let Some(last) = timeline.last() {
                self.counter(name, last.end_cycle, one(0.0));
            }
        }
    }

    /// The CTAs of each application on all SMs over time.
    fn resident(&mut self, corun: &CoRun) {
        let Some(residency) = &corun.residency else { return };
        let intervals = residency.rows.iter().map(|row| row.ctas.len()).max().unwrap_or(0);
        for place in 0..=intervals {
            let values = corun.apps.iter().enumerate().map(|(index, app)| {
                let rows = residency.rows.iter().filter(|row| to_usize(row.app_index) == index);
                let ctas = rows.filter_map(|row| row.ctas.get(place)).fold(0.0, |sum, n| sum + n);
                (app.app.clone(), json!(ctas))
            });
            let cycle = to_u64(place).saturating_mul(residency.interval_cycles);
            self.counter("CTAs by application", cycle, values.collect());
        }
    }

    /// The CTAs of each SM, each called as its application.
    fn ctas(&mut self, events: &RunEvents, name: impl Fn(&CtaRecord) -> String) {
        let mut sms: BTreeMap<u32, Vec<Slice>> = BTreeMap::new();
        for cta in &events.ctas {
            let args = json!({ "launch": cta.launch, "ordinal": cta.ordinal, "sm": cta.sm });
            let (start, end) = (cta.start_cycle, cta.end_cycle);
            let name = format!("{} {}.{}", name(cta), cta.launch, cta.ordinal);
            sms.entry(cta.sm).or_default().push(Slice { name, start, end, args });
        }
        let mut tid = CTAS;
        for (sm, slices) in sms {
            tid = self.slices("cta", &format!("SM {sm}"), tid, slices);
        }
    }

    /// All events, by cycle.
    fn into_events(self) -> impl Iterator<Item = Value> {
        let Self { names, mut events, .. } = self;
        events.sort_by_key(|&(cycle, _)| cycle);
        names.into_iter().chain(events.into_iter().map(|(_, event)| event))
    }
}

/// What a counter shows of an interval, on a machine with this SM clock.
type Measure = fn(&Interval, f64) -> f64;

/// A count of an interval per cycle.
fn each_cycle(span: &Interval, count: f64) -> f64 {
    ratio(count, float(span.end_cycle - span.start_cycle)).unwrap_or(0.0)
}
