//! `gpumodel plot`: a figure from records alone.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use gpumodel_report::ReportError;
use gpumodel_report::figure::{
    Choice, Drawing, FIGURES, Figure, FigureInput, Format, Sheet, Width, order, rename,
};
use gpumodel_report::results::{
    Analysis, AppNames, Comparison, RecordError, ReferenceTable, alone_once, disambiguate_apps,
    refuse_ambiguous_apps, refuse_duplicate_rows,
};
use gpumodel_report::table::{Column, Table};

use super::Outcome;
use super::output::{check_overwrites, stdout, write_bytes, write_text};
use super::records::{Records, read_all, sources};
use super::tables::{CsvArgument, width};

/// Draws a figure from records alone, as SVG, PDF or PNG.
#[derive(Debug, Args)]
#[command(after_help = "\
EXAMPLES:
  gpumodel plot --list
  gpumodel plot bfs.json --figure stalls -o stalls.svg
  gpumodel plot mix.json --figure timeline --app apps/bfs -o timeline.svg
  gpumodel plot pairs/*.json --figure makespan --baseline sequential -o makespan.svg
  gpumodel plot queues.json --figure schedule --queue equal/1 -o schedule.svg
  gpumodel plot evaluation --figure normalized --baseline even -o normalized.svg
  gpumodel plot evaluation/some.csv --figure normalized --width one -o some.pdf
  gpumodel plot mix.json --figure schemes --metrics stp,antt --rename left-over=MPS -o schemes.pdf
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
    /// Where the figure goes: PDF or PNG (300 dpi) if FILE ends so, else SVG; `-` is standard
    /// output
    #[arg(short, long, value_name = "FILE", required_unless_present = "list")]
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
    /// Only these metrics of a figure of several, in this order. Of `schemes`: stp, antt,
    /// fairness, makespan, ipc, harmonic, alu, energy; of `sorted`: stp, antt
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    metrics: Vec<String>,
    /// Puts these schemes, applications, mixes, machines or kernels first, in this order
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    order: Vec<String>,
    /// Shows the application, kernel, scheme, machine, cause of stalls or class OLD as NEW; may
    /// come several times. Other options take the name in the records
    #[arg(long, value_name = "OLD=NEW", value_parser = renaming)]
    rename: Vec<(String, String)>,
    /// Which queue `schedule` and `sm-share` show [default: the first]
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Width in columns of a two-column paper: one is 3.33 in, two are 7 in; the smallest
    /// letters are 7 pt [default: for screens, without a physical size]
    #[arg(long, value_enum, value_name = "COLUMNS")]
    width: Option<Columns>,
    /// Height of a figure whose plots have no rows, in inches [default: as the figure needs]
    #[arg(long, value_name = "INCHES", value_parser = inches)]
    height: Option<f64>,
    /// Font family of the SVG, before Liberation Sans, Arial and Helvetica. PDF and PNG have
    /// an embedded font of the same widths
    #[arg(long, value_name = "FAMILY")]
    font: Option<String>,
    /// Writes the title, and what the numbers come from, as text
    #[arg(long, value_name = "FILE")]
    caption_file: Option<PathBuf>,
    /// Draws the title above the figure, and below it what its numbers come from
    #[arg(long)]
    title: bool,
    /// Draws no title, as without `--title`
    #[arg(long, overrides_with = "title")]
    no_title: bool,
    /// Also writes the values of a figure that has a table; with --list, writes the list
    #[arg(long, value_name = "FILE.csv")]
    csv: Option<PathBuf>,
    /// Lists the figures
    #[arg(long, conflicts_with_all = OF_DRAWING)]
    list: bool,
}

/// The arguments that the list does not take.
const OF_DRAWING: [&str; 17] = [
    "records",
    "figure",
    "output",
    "app",
    "reference",
    "baseline",
    "metric",
    "metrics",
    "order",
    "rename",
    "queue",
    "width",
    "height",
    "font",
    "caption_file",
    "title",
    "no_title",
];

/// Width in columns of a paper.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Columns {
    One,
    Two,
}

pub(crate) fn run(mut arguments: Arguments) -> Outcome {
    let (Some(name), Some(output)) = (arguments.figure.clone(), arguments.output.clone()) else {
        return list(CsvArgument::to(arguments.csv));
    };
    let figure = Figure::named(&name)?;
    check(&arguments, figure)?;
    let format = Format::of(&output)?;
    if arguments.font.is_some() && format != Format::Svg {
        return Err("--font is for SVG: PDF and PNG have an embedded font; leave it out".into());
    }
    let mut inputs = sources(&arguments.records);
    inputs.extend(arguments.reference.clone());
    let outputs = [
        ("-o", Some(output.as_path())),
        ("--csv", arguments.csv.as_deref()),
        ("--caption-file", arguments.caption_file.as_deref()),
    ];
    check_overwrites(&inputs, &outputs)?;
    let (mut records, table) = read(&arguments, figure)?;
    let comparison = table.map(|table| Comparison::new(&records, &table, None));
    let names = AppNames::of(&records);
    names.shorten(&mut records);
    arguments.shorten(&names);
    let mut drawing = arranged(&arguments, figure, &records, comparison.as_ref())?;
    if arguments.csv.is_some() && drawing.csv.is_empty() {
        return Err(format!("the figure {name} has no table").into());
    }
    if let Some(font) = &arguments.font {
        drawing = drawing.in_font(font)?;
    }
    write_bytes(&output, &drawing.encode(format)?)?;
    if let Some(path) = &arguments.csv {
        write_text(path, &drawing.csv)?;
    }
    if let Some(path) = &arguments.caption_file {
        write_text(path, &format!("{}.\n{}.\n", drawing.title, drawing.provenance))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// Gives applications that were typed whole the names that figures show.
    fn shorten(&mut self, names: &AppNames) {
        let typed = self.app.iter_mut().chain(&mut self.order);
        typed.chain(self.rename.iter_mut().map(|(old, _)| old)).for_each(|name| {
            *name = names.short(name).to_owned();
        });
    }
}

/// The figure with the names and in the order that were asked for; each of these must change
/// something.
fn arranged(
    arguments: &Arguments,
    figure: &Figure,
    records: &[Analysis],
    comparison: Option<&Comparison>,
) -> Result<Drawing, ReportError> {
    let draw = |last: bool, renames: &[(String, String)]| {
        let mut arranged = records.to_vec();
        order(&mut arranged, &arguments.order, last)?;
        let before = rename(&mut arranged, renames)?;
        let new = |name: &str| renames.iter().find(|(old, _)| old == name).map(|(_, new)| &**new);
        let input = input(arguments, &arranged, comparison, &new)?;
        figure.draw(&input.renamed(&before).ordered(&arguments.order, last))
    };
    if arguments.order.is_empty() && arguments.rename.is_empty() {
        return figure.draw(&input(arguments, records, comparison, &|_| None)?);
    }
    let drawing = draw(false, &arguments.rename)?;
    let unchanged = |option, why: String| {
        Err(ReportError::Unchanged { figure: figure.name, option, why: why + "; leave it out" })
    };
    if !arguments.order.is_empty() && draw(true, &arguments.rename)?.svg == drawing.svg {
        return unchanged("--order", "it has its own order".into());
    }
    for (place, (old, _)) in arguments.rename.iter().enumerate() {
        let mut others = arguments.rename.clone();
        others.remove(place);
        if draw(false, &others)?.svg == drawing.svg {
            return unchanged("--rename", format!("it does not show {old}"));
        }
    }
    Ok(drawing)
}

/// `OLD=NEW`, at the last sign, since settings of schemes have some too.
fn renaming(typed: &str) -> Result<(String, String), String> {
    match typed.rsplit_once('=') {
        Some((old, new)) if !old.is_empty() && !new.is_empty() => Ok((old.into(), new.into())),
        _ => Err("expected OLD=NEW".into()),
    }
}

/// A height above 0.
fn inches(typed: &str) -> Result<f64, String> {
    let inches = typed.parse().ok().filter(|inches: &f64| inches.is_finite() && *inches > 0.0);
    inches.ok_or_else(|| "expected inches, as 2.5".into())
}

/// Refuses options that the figure does not use.
fn check(arguments: &Arguments, figure: &Figure) -> Result<(), ReportError> {
    let typed = [
        (Choice::App, arguments.app.is_some()),
        (Choice::Reference, arguments.reference.is_some()),
        (Choice::Baseline, arguments.baseline.is_some()),
        (Choice::Metric, arguments.metric.is_some()),
        (Choice::Metrics, !arguments.metrics.is_empty()),
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
    new: &impl Fn(&str) -> Option<&'a str>,
) -> Result<FigureInput<'a>, ReportError> {
    let width = match arguments.width {
        None => Width::Screen,
        Some(Columns::One) => Width::One,
        Some(Columns::Two) => Width::Two,
    };
    let mut input = FigureInput::new(records).on(Sheet {
        width,
        titled: arguments.title,
        height: arguments.height,
    });
    input = input.showing(&arguments.metrics);
    if let Some(app) = &arguments.app {
        input = input.only(new(app).unwrap_or(app))?;
    }
    if let Some(comparison) = comparison {
        input = input.with(comparison);
    }
    if let Some(scheme) = &arguments.baseline {
        input = input.against(new(scheme).unwrap_or(scheme));
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
    let read = |path| ReferenceTable::read_for(path, &records);
    let table = arguments.reference.as_deref().map(read).transpose()?;
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

fn list(csv: CsvArgument) -> Outcome {
    csv.check(&[], &[], &["figures"])?;
    let columns: [Column<&Figure>; 2] =
        [("figure", |figure| figure.name.into()), ("shows", |figure| figure.about.into())];
    let table = Table::new(&columns, FIGURES).left(&[0, 1]);
    if !csv.is_stdout() {
        write!(stdout(), "{}", table.terminal(width()))?;
    }
    csv.write(&[("figures", table)])?;
    Ok(ExitCode::SUCCESS)
}
