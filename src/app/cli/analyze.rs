//! `gpumodel analyze`: applications on a machine, alone and together.

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gpumodel_core::units::{WholeFile, check_writable};
use gpumodel_report::results::Analysis;
use gpumodel_trace::sources;

use super::options::{FilterArguments, cache_folder, set_threads, setting};
use super::output::{check_overwrites, stdout, write_text};
use super::progress::with_bars;
use super::{Outcome, message};
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
    gpumodel analyze bfs.gpt --machine v100 --hot 5           where its code loses time\n  \
    gpumodel analyze bfs.gpt lud.gpt --machine v100 --scheme even --trace-events run.json\n\n\
    ENVIRONMENT:\n  \
    GPUMODEL_CACHE  folder for converted traces (default: gpumodel in the user's cache folder)")]
pub(crate) struct Arguments {
    /// Applications, `[NAME=]PATH` or `[NAME=]synth:WORKLOAD[:scale=X]` (see `gpumodel
    /// synth --list`)
    #[arg(required_unless_present = "queue", value_name = "APP")]
    apps: Vec<String>,
    /// A name from `gpumodel machine list`, or a machine file
    #[arg(short, long, value_name = "M")]
    machine: String,
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
    /// Writes record, SVG figures and an index.html into this folder
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Writes the record as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    filter: FilterArguments,
    /// Overrides a key of the machine for this run
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// A folder of model files that take precedence over the built-in ones, laid out as
    /// `models/`
    #[arg(long, value_name = "DIR")]
    models: Option<PathBuf>,
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
    let width = |typed: &&String| typed.parse::<f64>().is_ok() && !Path::new(typed).exists();
    match arguments.apps.iter().find(width).filter(|_| arguments.sample.is_some()) {
        Some(typed) => Err(format!("no application `{typed}`; write a width as --sample={typed}")),
        None => Ok(()),
    }
}

/// Refuses outputs that cannot be written or would replace an input, before the work begins.
fn check_outputs(arguments: &Arguments) -> Result<(), Box<dyn Error + Send + Sync>> {
    let (inputs, json) = (input_files(arguments), arguments.json.as_deref());
    let events = arguments.trace_events.as_deref();
    check_overwrites(&inputs, &[("--json", json), ("--trace-events", events)])?;
    if let Some(folder) = &arguments.report {
        check_overwrites(
            &inputs,
            &[("--report", Some(folder.join(gpumodel_report::RECORD).as_path()))],
        )?;
        check_writable(folder).map_err(|e| format!("cannot write {}: {e}", folder.display()))?;
    }
    for path in [json, events].into_iter().flatten().filter(|path| *path != Path::new("-")) {
        drop(WholeFile::create(path)?);
    }
    Ok(())
}

/// The files that are read: those of the applications (without those of a queue), the
/// machine, the queue and the records that are replayed. Names that are no files are left out.
fn input_files(arguments: &Arguments) -> Vec<PathBuf> {
    let before = |text: &str, end: &str| PathBuf::from(text.split(end).next().unwrap_or(text));
    let mut files = vec![PathBuf::from(&arguments.machine)];
    files.extend(arguments.queue.clone());
    for typed in &arguments.apps {
        let AppName { path, .. } = AppName::parse(typed);
        match path.to_str().and_then(|text| text.strip_prefix("synth:")) {
            Some(model) => files.push(before(model, ":scale=")),
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
    check_outputs(&arguments)?;
    set_threads(arguments.threads)?;
    let request = AnalyzeRequest {
        apps: arguments.apps.iter().map(|typed| AppName::parse(typed)).collect(),
        machine: arguments.machine,
        overrides: arguments.set,
        filter: arguments.filter.into(),
        schemes: arguments.scheme,
        until: arguments.until,
        window: arguments.window,
        queue: arguments.queue,
        arrivals: arguments.arrive,
        models: arguments.models,
        cache: cache_folder(),
        seed: arguments.seed,
        sample: arguments.sample.map(SampleRequest::within),
        hot: arguments.hot.map_or(0, usize::from),
        events: match (&arguments.trace_events, arguments.trace_ctas) {
            (None, _) => EventDetail::Record,
            (Some(_), false) => EventDetail::Activity,
            (Some(_), true) => EventDetail::Ctas,
        },
    };
    let analysis = with_bars(|watch| analyze(&request, watch))?;
    show(&analysis, arguments.json.as_deref())?;
    if let Some(path) = &arguments.trace_events {
        write_text(path, &gpumodel_report::trace_events(&analysis))?;
    }
    if let Some(folder) = &arguments.report {
        gpumodel_report::write_all(&analysis, folder)?;
        if io::stderr().is_terminal() {
            message(format_args!("report: {}", folder.join("index.html").display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the record to `json`, and the tables to standard output unless the record goes
/// there.
fn show(analysis: &Analysis, json: Option<&Path>) -> Result<(), Box<dyn Error + Send + Sync>> {
    if let Some(path) = json {
        write_text(path, &analysis.to_json())?;
    }
    if json.is_some_and(|path| path == Path::new("-")) {
        return Ok(());
    }
    let text = gpumodel_report::table::solo(analysis)
        + &gpumodel_report::table::hot(analysis)
        + &gpumodel_report::table::corun(analysis)
        + &gpumodel_report::table::queue(analysis);
    Ok(stdout().write_all(text.as_bytes())?)
}
