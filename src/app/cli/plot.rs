//! `gpumodel plot`: a figure from records alone.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use gpumodel_report::ReportError;
use gpumodel_report::figure::{Choice, FIGURES, Figure, FigureInput, Sheet, Width};
use gpumodel_report::results::{
    Analysis, Comparison, RecordError, ReferenceTable, alone_once, disambiguate_apps,
    refuse_ambiguous_apps, refuse_duplicate_rows,
};

use super::Outcome;
use super::output::{check_overwrites, check_svg, stdout, write_text};
use super::records::{Records, read_all, sources};

/// Draws a figure as SVG from records alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gpumodel plot --list
  gpumodel plot bfs.json --figure stalls -o stalls.svg
  gpumodel plot mix.json --figure timeline --app apps/bfs -o timeline.svg
  gpumodel plot pairs/*.json --figure makespan --baseline sequential -o makespan.svg
  gpumodel plot queues.json --figure schedule --queue equal/1 -o schedule.svg
  gpumodel plot evaluation --figure normalized --baseline even -o normalized.svg
  gpumodel plot evaluation/some.csv --figure normalized --width one -o some.svg
  gpumodel plot *.json --figure correlation --reference results.csv -o correlation.svg")]
pub(crate) struct Arguments {
    /// Records that `gpumodel analyze --json` wrote, folders of its --report, folders of
    /// `gpumodel sweep`, or tables in such a folder, as its cells.csv or what was chosen from
    /// it: the cells in them, those of a mix together
    #[arg(value_name = "RECORD", required_unless_present = "list")]
    records: Vec<PathBuf>,
    /// Which figure to draw; --list names them
    #[arg(long, value_name = "NAME", required_unless_present = "list")]
    figure: Option<String>,
    /// Where the SVG goes; `-` is standard output
    #[arg(short, long, value_name = "FILE.svg", required_unless_present = "list")]
    output: Option<PathBuf>,
    /// Only this application of the records, for figures of solo runs
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// The reference table of `correlation`
    #[arg(long, value_name = "FILE.csv")]
    reference: Option<PathBuf>,
    /// The scheme by whose values the others are divided, for `normalized` [default: left-over],
    /// `queues` [default: even-queue], `makespan` [default: sequential, else cuda] and
    /// `energy` [default: the first]
    #[arg(long, value_name = "SCHEME")]
    baseline: Option<String>,
    /// The compared metric. By `normalized`: ipc, stp, antt, fairness, harmonic, makespan or
    /// energy [default: ipc]; by `queues`: throughput, ipc (mean of jobs) or job-ipc
    /// (each job over itself, then the mean) [default: throughput]
    #[arg(long, value_name = "NAME")]
    metric: Option<String>,
    /// Which queue `schedule` and `sm-share` show [default: the first]
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Width in columns of a two-column paper: one is 3.33 in, two are 7 in; the smallest
    /// letters are 7 pt [default: for screens, without a physical size]
    #[arg(long, value_enum, value_name = "COLUMNS")]
    width: Option<Columns>,
    /// Draws the title above the figure, and below it what its numbers come from
    #[arg(long)]
    title: bool,
    /// Draws no title, as without `--title`
    #[arg(long, overrides_with = "title")]
    no_title: bool,
    /// Also writes the values of a figure that has a table
    #[arg(long, value_name = "FILE.csv")]
    csv: Option<PathBuf>,
    /// Lists the figures
    #[arg(long, exclusive = true)]
    list: bool,
}

/// Width in columns of a paper.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Columns {
    One,
    Two,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let (Some(name), Some(output)) = (&arguments.figure, &arguments.output) else {
        return list();
    };
    let figure = Figure::named(name)?;
    check(&arguments, figure)?;
    check_svg(output)?;
    let mut inputs = sources(&arguments.records);
    inputs.extend(arguments.reference.clone());
    check_overwrites(
        &inputs,
        &[("-o", Some(output.as_path())), ("--csv", arguments.csv.as_deref())],
    )?;
    let (records, table) = read(&arguments, figure)?;
    let comparison = table.map(|table| Comparison::new(&records, &table, None));
    let drawing = figure.draw(&input(&arguments, &records, comparison.as_ref())?)?;
    if arguments.csv.is_some() && drawing.csv.is_empty() {
        return Err(format!("the figure {name} has no table").into());
    }
    write_text(output, &drawing.svg)?;
    if let Some(path) = &arguments.csv {
        write_text(path, &drawing.csv)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses options that the figure does not use.
fn check(arguments: &Arguments, figure: &Figure) -> Result<(), ReportError> {
    let typed = [
        (Choice::App, arguments.app.is_some()),
        (Choice::Reference, arguments.reference.is_some()),
        (Choice::Baseline, arguments.baseline.is_some()),
        (Choice::Metric, arguments.metric.is_some()),
        (Choice::Queue, arguments.queue.is_some()),
    ];
    let mut typed = typed.into_iter().filter(|(_, typed)| *typed);
    typed.try_for_each(|(choice, _)| figure.check(choice))
}

/// The input of the figure: the records and the options.
fn input<'a>(
    arguments: &'a Arguments,
    records: &'a [Analysis],
    comparison: Option<&'a Comparison>,
) -> Result<FigureInput<'a>, ReportError> {
    let width = match arguments.width {
        None => Width::Screen,
        Some(Columns::One) => Width::One,
        Some(Columns::Two) => Width::Two,
    };
    let mut input = FigureInput::new(records).on(Sheet { width, titled: arguments.title });
    if let Some(app) = &arguments.app {
        input = input.only(app)?;
    }
    if let Some(comparison) = comparison {
        input = input.with(comparison);
    }
    if let Some(scheme) = &arguments.baseline {
        input = input.against(scheme);
    }
    if let Some(metric) = &arguments.metric {
        input = input.by(metric);
    }
    if let Some(queue) = &arguments.queue {
        input = input.of(queue);
    }
    Ok(input)
}

/// The records as `figure` shows them, and the reference table if one is named.
fn read(
    arguments: &Arguments,
    figure: &Figure,
) -> Result<(Vec<Analysis>, Option<ReferenceTable>), RecordError> {
    let Records { all: mut records, from } = read_all(&arguments.records)?;
    let table = arguments.reference.as_deref().map(ReferenceTable::read).transpose()?;
    if let Some(table) = &table {
        refuse_ambiguous_apps(&records, table)?;
    }
    disambiguate_apps(&mut records);
    if figure.source.alone() {
        alone_once(&mut records);
    }
    if let Some(table) = &table {
        refuse_duplicate_rows(&records, &from, table)?;
    }
    Ok((records, table))
}

fn list() -> Outcome {
    let mut out = stdout();
    let width = FIGURES.iter().map(|figure| figure.name.len()).max().unwrap_or(0) + 2;
    for figure in FIGURES {
        writeln!(out, "{:<width$}{}", figure.name, figure.about)?;
    }
    Ok(ExitCode::SUCCESS)
}
