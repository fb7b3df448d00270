//! `gpumodel analyze`: applications on a machine, alone and together.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gpumodel_core::units::{FolderPurpose, check_writable, is_stream};
use gpumodel_report::results::{Analysis, with_short_names};
use gpumodel_report::table::{NAMES, analysis, analysis_tables};
use gpumodel_trace::sources;

use super::interrupt::{Continuation, continues};
use super::options::{FilterArguments, ModelsArgument, cache_folder, set_threads, setting};
use super::output::{alert, check_file, check_overwrites, is_stdout, stdout, write_text};
use super::progress::with_bars;
use super::tables::{self, CsvArgument, named};
use super::{Outcome, message};
use crate::app::model_file;
use crate::{AnalyzeRequest, AppName, Ending, EventDetail, SampleRequest, analyze};

/// Analyzes applications on a machine: cycles, stalls, caches, DRAM
///
/// Runs each application alone, then all of them together under each named scheme. An
/// application is a store, a trace, a list or a folder of traces; traces are converted first,
/// and the store is kept in the cache folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES:\n  \
    gpumodel analyze bfs.gpt --machine v100\n  \
    gpumodel analyze synth:saxpy --machine v100\n  \
    gpumodel analyze traces/bfs traces/lud --machine a100 --report out\n  \
    gpumodel analyze bfs.gpt lud.gpt --machine v100,a100 --csv runs.csv --json record.json\n      \
        record-v100.json and record-a100.json                  each machine in turn\n  \
    gpumodel analyze A=one.gpt B=two.gpt --machine my-gpu.toml --json record.json\n  \
    gpumodel analyze bfs.gpt lud.gpt --machine warped-slicer --scheme left-over,even\n  \
    gpumodel analyze bfs.gpt lud.gpt --machine warped-slicer --scheme warped-slicer \\\n      \
        --until targets --window 2000000            the same work under all schemes\n  \
    gpumodel analyze A=one.gpt B=two.gpt --machine v100 --scheme spatial --arrive B=50000\n  \
    gpumodel analyze --queue queue.toml --machine ilp-smra --report out\n  \
    gpumodel analyze bfs.gpt --machine v100 --set l1.latency_cycles=20 --kernels 1-3\n  \
    gpumodel analyze app.gpt --machine v100 --names 'gemm|conv' --ctas first:160\n  \
    gpumodel analyze sgemm.gpt --machine v100 --sample        a part of the CTAs, with an interval\n  \
    gpumodel analyze sgemm.gpt --machine v100 --sample=0.01   more of them\n  \
    gpumodel analyze bfs.gpt --machine v100 --copies          with the time of its copies\n  \
    gpumodel analyze bfs.gpt --machine v100 --hot 5           where its code loses time\n  \
    gpumodel analyze bfs.gpt lud.gpt --machine v100 --scheme even --trace-events run.json\n\n\
    ENVIRONMENT:\n  \
    GPUMODEL_MACHINE  the machine of commands without --machine, as `machine = \"v100\"` in\n                    \
    gpumodel/config.toml of the user's config folder sets it\n  \
    GPUMODEL_CACHE    folder for converted traces (default: gpumodel in the user's cache folder)")]
pub(crate) struct Arguments {
    /// Applications, `[NAME=]PATH` or `[NAME=]synth:WORKLOAD[:scale=X]` (see `gpumodel
    /// synth --list`)
    #[arg(required_unless_present = "queue", value_name = "APP")]
    apps: Vec<OsString>,
    /// A name from `gpumodel machine list`, or a machine file; needed unless GPUMODEL_MACHINE or
    /// the config file names one. Several, separated by commas or with -m again, are analyzed
    /// in turn: each has its record, with the machine's name in that of the --json FILE, and
    /// its folder in the --report DIR
    #[arg(short, long, value_name = "M,…", required = true)]
    machine: Vec<OsString>,
    /// Schemes for the co-runs, separated by commas, each as `name` or
    /// `name:key=value:key=value`; `gpumodel scheme list` lists them;
    /// `replay:RECORD.json[:run=N]` repeats the decisions of a record
    #[arg(long, value_name = "S", value_delimiter = ',')]
    scheme: Vec<String>,
    /// When a co-run ends: `all` (every application has finished once), `first`,
    /// `cycles=N`, `targets` (each runs to the instruction count of its solo run in
    /// --window, then frees its resources), `first-run` (early finishers relaunch until all
    /// have finished once; also `first-run,cycles=N`)
    #[arg(long, value_name = "END", default_value_t)]
    until: Ending,
    /// The first N cycles of each solo run: they set the targets of `targets`, and the
    /// co-runs of `targets` and `cycles` are compared with them. Targets are checked every 64
    /// cycles
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    window: Option<u64>,
    /// Lets an application arrive at a cycle of the co-run instead of at its start
    #[arg(long, value_name = "APP=CYCLE", value_parser = arrival)]
    arrive: Vec<(String, u64)>,
    /// A queue of applications, run group by group under schemes for queues (default:
    /// even-queue, profile-based, ilp, ilp-smra): a TOML file with `group_size`, `[apps]` and
    /// an `order` or a table `[generate]`; APPs are added to its applications. Results are
    /// cached: the same command resumes an interrupted one
    #[arg(long, value_name = "FILE")]
    queue: Option<PathBuf>,
    /// Writes record, SVG figures and an index.html into this folder: new, empty, or of an
    /// earlier report, whose other figures are removed
    #[arg(short = 'o', long, visible_alias = "output", value_name = "DIR")]
    report: Option<PathBuf>,
    /// Writes the report into a folder with other contents, which stay where no name is the same
    #[arg(long)]
    force: bool,
    /// Writes the record as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    csv: CsvArgument,
    #[command(flatten)]
    filter: FilterArguments,
    /// Skips damaged files of traces: they are counted, and the record says so
    #[arg(long)]
    skip_damaged: bool,
    /// Overrides a key of the machine for this run
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// Lets copies take time, over the link that the machine describes: latency, then bytes at
    /// its bandwidth; kernels of other streams run meanwhile. The same as --set
    /// link.copies=true
    #[arg(long)]
    copies: bool,
    /// Which memory is managed: `all` lets the first touch of a page that no copy has brought
    /// cost a fault and its way over the link, `none` nothing. The same as --set link.managed=M
    #[arg(long, value_name = "M", value_parser = ["none", "all"])]
    managed: Option<String>,
    #[command(flatten)]
    models: ModelsArgument,
    /// Runs large kernels on a sample of their CTAs and a part of the machine, and
    /// extrapolates with a 95 % interval. Samples are added until the sampling error is at
    /// most WIDTH of the cycles to either side; a bound on the error of the smaller machine
    /// is added. Small kernels, those whose CTAs differ too much, and those that keep the
    /// DRAM very busy run whole
    #[arg(
        long,
        value_name = "WIDTH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "0.03",
        value_parser = width
    )]
    sample: Option<f64>,
    /// Passes over stretches of long runs in which all launches advance steadily: their CTAs are
    /// walked through without time, and each application has a 95 % interval. Probes of schemes
    /// run whole
    #[arg(long, conflicts_with_all = ["sample", "hot", "trace_ctas"])]
    fast_forward: bool,
    /// Lists, per launch of a solo run, the N instructions with most stalls, L1 misses,
    /// sectors per request and bank conflicts
    #[arg(long, value_name = "N", conflicts_with = "sample")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    hot: Option<u16>,
    /// Writes what happened when, for Perfetto or chrome://tracing: kernels, decisions of
    /// schemes, IPC and DRAM bandwidth over time
    #[arg(long, value_name = "FILE")]
    trace_events: Option<PathBuf>,
    /// With --trace-events also the CTAs of each SM, the first 50000 of each run
    #[arg(long, requires = "trace_events")]
    trace_ctas: bool,
    /// Seed of all random choices; kept in the record
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Threads; the result does not depend on it [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

fn arrival(typed: &str) -> Result<(String, u64), String> {
    let (app, cycle) = typed.rsplit_once('=').ok_or("expected APP=CYCLE, as B=50000")?;
    let cycle = cycle.parse().map_err(|_| format!("expected a cycle, found {cycle}"))?;
    Ok((app.to_owned(), cycle))
}

fn width(typed: &str) -> Result<f64, String> {
    let width: f64 = typed.parse().map_err(|_| format!("expected a number, found {typed}"))?;
    (width > 0.0 && width < 1.0)
        .then_some(width)
        .ok_or_else(|| String::from("expected a number between 0 and 1, as 0.02"))
}

/// Refuses a width after a space, which would be taken for an application.
fn check_width(arguments: &Arguments) -> Result<(), String> {
    let width = |typed: &&str| typed.parse::<f64>().is_ok() && !Path::new(typed).exists();
    let mut typed = arguments.apps.iter().filter_map(|typed| typed.to_str());
    match typed.find(width).filter(|_| arguments.sample.is_some()) {
        Some(typed) => Err(format!("no application `{typed}`; write a width as --sample={typed}")),
        None => Ok(()),
    }
}

/// A machine, and where its results go.
struct Target {
    machine: OsString,
    json: Option<PathBuf>,
    report: Option<PathBuf>,
    events: Option<PathBuf>,
}

/// The machines that were typed, a file whose name has a comma as one.
fn targets(arguments: &Arguments) -> Result<Vec<Target>, String> {
    let each = |typed: &OsString| match typed.to_str().filter(|_| !Path::new(typed).is_file()) {
        None => vec![typed.clone()],
        Some(names) => names.split(',').map(|name| name.trim().into()).collect(),
    };
    let machines: Vec<OsString> = arguments.machine.iter().flat_map(each).collect();
    let (json, report) = (&arguments.json, &arguments.report);
    let events = &arguments.trace_events;
    if let [machine] = &machines[..] {
        let (json, report, events) = (json.clone(), report.clone(), events.clone());
        return Ok(vec![Target { machine: machine.clone(), json, report, events }]);
    }
    let streams = [("--json", json), ("--trace-events", events)];
    let stream = |(option, path): (_, &Option<PathBuf>)| {
        Some((option, path.clone().filter(|path| is_stdout(path) || is_stream(path))?))
    };
    if let Some((option, path)) = streams.into_iter().find_map(stream) {
        let path = path.display();
        return Err(format!(
            "{option} {path} takes one record, and {} machines have one each: name a file, or one \
             machine",
            machines.len()
        ));
    }
    let mut known = BTreeSet::new();
    let target = |machine: OsString| {
        let path = Path::new(&machine);
        let stem = path.file_stem().filter(|_| path.is_file()).unwrap_or(path.as_os_str());
        let stem = stem.to_string_lossy().into_owned();
        if !known.insert(stem.clone()) {
            return Err(format!("two machines are called {stem}: their results have one name"));
        }
        let json = json.as_ref().map(|path| named(path, &stem));
        let events = events.as_ref().map(|path| named(path, &stem));
        let report = report.as_ref().map(|folder| folder.join(&stem));
        Ok(Target { machine, json, report, events })
    };
    machines.into_iter().map(target).collect()
}

/// Refuses outputs that cannot be written or would replace an input, before the work begins.
fn check_outputs(arguments: &Arguments, targets: &[Target]) -> Outcome<()> {
    let inputs = input_files(arguments, targets);
    let outputs = targets.iter().flat_map(|target| {
        [("--json", target.json.as_deref()), ("--trace-events", target.events.as_deref())]
    });
    arguments.csv.check(&inputs, &outputs.collect::<Vec<_>>(), &NAMES)?;
    for folder in targets.iter().filter_map(|target| target.report.as_ref()) {
        let record = folder.join(gpumodel_report::RECORD);
        check_overwrites(&inputs, &[("--report", Some(record.as_path()))])?;
        FolderPurpose::Report.check(folder, arguments.force)?;
        check_writable(folder).map_err(|e| format!("cannot write {}: {e}", folder.display()))?;
    }
    let files = targets.iter().flat_map(|target| [&target.json, &target.events]).flatten();
    for path in files {
        check_file(path)?;
    }
    Ok(())
}

/// The files that are read: those of the applications (without those of a queue), the
/// machines, the queue and the records that are replayed. Names that are no files are left out.
fn input_files(arguments: &Arguments, targets: &[Target]) -> Vec<PathBuf> {
    let before = |text: &str, end: &str| PathBuf::from(text.split(end).next().unwrap_or(text));
    let mut files: Vec<PathBuf> =
        targets.iter().map(|target| PathBuf::from(&target.machine)).collect();
    files.extend(arguments.queue.clone());
    for typed in &arguments.apps {
        let AppName { path, .. } = AppName::parse(typed);
        match model_file(&path) {
            Some(model) => files.push(model),
            // A file that is no trace is refused when it is read.
            None => files.extend(sources(std::slice::from_ref(&path)).unwrap_or_default()),
        }
        files.push(path);
    }
    let replayed = arguments.scheme.iter().filter_map(|typed| typed.strip_prefix("replay:"));
    files.extend(replayed.map(|record| before(record, ":run=")));
    // A folder with the name of a machine or model is not read; files of trace folders are
    // listed already.
    files.retain(|path| path.is_file());
    files
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    check_width(&arguments)?;
    let targets = targets(&arguments)?;
    check_outputs(&arguments, &targets)?;
    set_threads(arguments.threads)?;
    let (csv, records) = (arguments.csv.clone(), analyzed(arguments, &targets)?);
    let hidden =
        csv.is_stdout() || targets.iter().any(|one| one.json.as_deref().is_some_and(is_stdout));
    // A reader of the tables, as `head`, may stop early; the files are written all the same.
    let shown = if hidden { Ok(()) } else { show(&records) };
    for (target, record) in targets.iter().zip(&records) {
        write_files(target, record)?;
    }
    csv.write(&analysis_tables(&records))?;
    shown?;
    Ok(ExitCode::SUCCESS)
}

/// The keys of the machine that the options set.
fn overrides(arguments: &Arguments) -> Vec<(String, String)> {
    let mut overrides = arguments.set.clone();
    let copies = arguments.copies.then(|| String::from("true"));
    let managed = arguments.managed.clone();
    for (key, value) in [("link.copies", copies), ("link.managed", managed)] {
        overrides.extend(value.map(|value| (key.to_owned(), value)));
    }
    overrides
}

/// How much `--trace-events` shows.
fn event_detail(arguments: &Arguments) -> EventDetail {
    match (&arguments.trace_events, arguments.trace_ctas) {
        (None, _) => EventDetail::Record,
        (Some(_), false) => EventDetail::Activity,
        (Some(_), true) => EventDetail::Ctas,
    }
}

/// The record of each machine.
fn analyzed(arguments: Arguments, targets: &[Target]) -> Outcome<Vec<Analysis>> {
    let mut request = AnalyzeRequest {
        events: event_detail(&arguments),
        apps: arguments.apps.iter().map(AppName::parse).collect(),
        machine: OsString::new(),
        overrides: overrides(&arguments),
        filter: arguments.filter.into(),
        skip_damaged: arguments.skip_damaged,
        schemes: arguments.scheme,
        until: arguments.until,
        window: arguments.window,
        queue: arguments.queue,
        arrivals: arguments.arrive,
        models: arguments.models.folder,
        cache: cache_folder(),
        seed: arguments.seed,
        sample: arguments.sample.map(SampleRequest::within),
        fast_forward: arguments.fast_forward,
        hot: arguments.hot.map_or(0, usize::from),
    };
    if targets.len() > 1 {
        // The last machine may not be found wrong after hours.
        let models = crate::models(request.models.as_deref())?;
        for target in targets {
            models.machine(&target.machine, &request.overrides)?;
        }
    }
    continues(match &request.queue {
        Some(_) => Continuation::Resumes(QUEUE_RESUMES.to_owned()),
        None => Continuation::Restarts(RESTARTS),
    });
    let records = targets.iter().enumerate().map(|(place, target)| {
        request.machine.clone_from(&target.machine);
        let part = format!("machine {} of {}", place + 1, targets.len());
        let part = Some(part).filter(|_| targets.len() > 1);
        Ok(with_bars(part, |watch| analyze(&request, watch))?)
    });
    records.collect()
}

/// How a queue goes on after an interrupt.
const QUEUE_RESUMES: &str = "the same command continues: pairs and groups that have ended are in \
                             the cache folder";

/// What is left of an analysis without a queue.
const RESTARTS: &str = "the same command begins again, with the applications that are converted";

fn show(records: &[Analysis]) -> io::Result<()> {
    let short: Vec<Analysis> = records.iter().map(with_short_names).collect();
    stdout().write_all(analysis(&short, tables::width()).as_bytes())
}

/// Names figures and tables in `folder` that stay and may be of an earlier report.
fn warn_of_stale(folder: &Path, stay: &BTreeSet<String>) {
    let Some(first) = stay.first() else { return };
    let more = match stay.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let folder = folder.display();
    alert(format_args!(
        "note: {folder} has no list of the files of an earlier report: {first}{more} may be of \
         one and stay; remove them, or name a new folder"
    ));
}

/// Writes the record and the report of a machine.
fn write_files(target: &Target, record: &Analysis) -> Outcome<()> {
    if let Some(path) = &target.json {
        write_text(path, &record.to_json())?;
    }
    if let Some(path) = &target.events {
        write_text(path, &gpumodel_report::trace_events(record))?;
    }
    if let Some(folder) = &target.report {
        FolderPurpose::Report.mark(folder)?;
        let files = gpumodel_report::write_all(record, folder)?;
        let names = files.iter().filter_map(|file| file.file_name()?.to_str().map(str::to_owned));
        warn_of_stale(folder, &FolderPurpose::Report.replace(folder, &names.collect())?);
        if io::stderr().is_terminal() {
            message(format_args!("report: {}", folder.join("index.html").display()));
        }
    }
    Ok(())
}
