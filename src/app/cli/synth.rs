//! `gpumodel synth`: a workload model as a trace folder.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use gpumodel_core::units::{FolderPurpose, counted, to_u64};
use gpumodel_report::paper::{Paper, PaperError};
use gpumodel_report::table::{Column, Table, wrapped};
use gpumodel_sim::config::{Models, SpecError, Unlisted};
use gpumodel_trace::workload::{
    self, Compression, FolderReport, Workload, WorkloadError, write_folder,
};

use super::options::ModelsArgument;
use super::output::{Verbosity, alert, replace_traces, stdout};
use super::tables::{CsvArgument, width};
use super::{Outcome, message};

/// Writes a workload model as an Accel-Sim trace folder that `convert` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
EXAMPLES:
  gpumodel synth --list                          the workloads that come with the program
  gpumodel synth --list --csv workloads.csv      the same as a table
  gpumodel synth saxpy -o traces/local/saxpy     one of them
  gpumodel synth my.toml -o out --scale 0.25     a file, with a quarter of its CTAs
  gpumodel convert out -o my.gpt                 the folder as a store
  gpumodel analyze synth:saxpy:scale=0.25 -m v100   a quarter of it, without a folder

A scale multiplies the constants under [scaled] of the file: CTAs or the trips of each, and the
buffers whose size is written with them. Tables with random reads keep their size unless
the file scales them; see `What --scale does` in models/workloads/README.md.")]
pub(crate) struct Arguments {
    /// A name in models/workloads, or a file (with a `/` or the ending .toml).
    #[arg(value_name = "NAME|FILE", required_unless_present = "list")]
    workload: Option<OsString>,

    /// The folder to write: kernelslist.g and one kernel-N.traceg per launch. It is new, empty
    /// or one that this program wrote for the same purpose.
    #[arg(short, long, value_name = "DIR", required_unless_present = "list")]
    output: Option<PathBuf>,

    /// Writes into a folder with other contents, which stay where no name is the same.
    #[arg(long)]
    force: bool,

    /// Multiplies the constants under [scaled] of the file: CTAs or the work of each, and their
    /// buffers.
    #[arg(long, value_name = "X", default_value_t = 1.0, allow_negative_numbers = true)]
    scale: f64,

    /// Compression of the trace files.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Packing::None)]
    compress: Packing,

    #[command(flatten)]
    models: ModelsArgument,

    /// Prints the workloads that come with the program and ends.
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    csv: CsvArgument,
}

/// Compression of trace files.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Packing {
    /// Plain text.
    None,
    /// One xz stream per file.
    Xz,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    if arguments.list {
        return list(&arguments.models, &arguments.csv);
    }
    arguments.csv.refuse("workloads", "add --list")?;
    let name = arguments.workload.expect("required without --list");
    let name = match name.to_str() {
        Some(name) => OsStr::new(without_prefix(name)?),
        None => &name,
    };
    let folder = arguments.output.expect("required without --list");
    FolderPurpose::Traces.check(&folder, arguments.force)?;
    let models = arguments.models.load()?;
    let workload = Workload::load_scaled(name, &models, arguments.scale)?;
    let compression = match arguments.compress {
        Packing::None => Compression::None,
        Packing::Xz => Compression::Xz,
    };
    let bar = bar(workload.kernel_count());
    let report = replace_traces(&folder, || {
        write_folder(&workload, &folder, compression, &mut |done| bar.set_position(to_u64(done)))
    })?;
    bar.finish_and_clear();
    message(format_args!(
        "{}: {}, {} warp instructions, {} thread instructions, {} bytes of text",
        folder.display(),
        counted(to_u64(report.kernels), "launch"),
        report.warp_instructions,
        report.thread_instructions,
        report.text_bytes
    ));
    workload.remark().iter().for_each(message);
    // The folder is written: a failed look-up of opcodes is no failure of the verb.
    match unknown(&report, &models) {
        Ok(warnings) => warnings.iter().for_each(alert),
        Err(error) => alert(format_args!("warning: opcodes are not looked up: {error}")),
    }
    Ok(ExitCode::SUCCESS)
}

/// A workload's name without the `synth:` that other verbs need. Refuses the scale that other
/// verbs take in the name: here it is an option.
fn without_prefix(name: &str) -> Result<&str, String> {
    let without_prefix = name.strip_prefix("synth:").unwrap_or(name);
    // A misspelt `:scale=` is refused, too; the name of a file may contain a colon.
    let misspelt = || without_prefix.split_once(':').filter(|_| !without_prefix.contains('/'));
    let typed = without_prefix.split_once(":scale=").or_else(misspelt);
    let Some((workload, scale)) = typed.filter(|_| !Path::new(without_prefix).exists()) else {
        return Ok(without_prefix);
    };
    let scale = scale.rsplit('=').next().unwrap_or(scale);
    let option = format!("`synth` takes a scale as an option: synth {workload} --scale");
    match scale.parse::<f64>() {
        Ok(number) if number > 0.0 => Err(format!("{name}: {option} {scale}")),
        _ => {
            let found = if scale.is_empty() { "nothing" } else { scale };
            Err(format!("{name}: expected one number above 0, found {found}; {option} 0.5"))
        }
    }
}

/// A warning for each executed opcode that is in no opcode table.
fn unknown(report: &FolderReport, models: &Models) -> Result<Vec<String>, SpecError> {
    let opcodes = report.opcodes.keys().map(String::as_str);
    let unlisted = models.unlisted(opcodes)?;
    let warning = |Unlisted { opcode, units, hint }: Unlisted| {
        let executed = report.opcodes[&opcode];
        format!(
            "warning: {opcode} is in no opcode table{hint}: its {executed} warp instructions are \
             taken as {units}, by its first letters"
        )
    };
    Ok(unlisted.into_iter().map(warning).collect())
}

/// A progress bar over launches; hidden if standard error is no terminal.
fn bar(launches: usize) -> ProgressBar {
    let quiet = Verbosity::get() == Verbosity::Quiet;
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(to_u64(launches)), target);
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} launches");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// A paper, or none, and the names of its workloads.
type Group<'a> = (Option<&'a Paper>, Vec<&'a str>);

/// Lists names and descriptions; files of the folder `models` take precedence.
fn list(models: &ModelsArgument, csv: &CsvArgument) -> Outcome {
    csv.check(&[], &[], &["workloads"])?;
    let models = &models.load()?;
    let papers = papers(models)?;
    let groups = groups(&papers, models);
    let lengths = groups.iter().flat_map(|(_, names)| names).map(|name| name.len());
    let longest = lengths.max().unwrap_or(0) + 2;
    let (mut text, mut rows) = (String::new(), Vec::new());
    for (paper, names) in groups {
        writeln!(text, "{}:", heading(paper))?;
        for name in names {
            let workload = load(name, paper, models)?;
            let about = workload.description().to_owned();
            writeln!(text, "  {name:<longest$}{about}")?;
            rows.push((name, paper, about));
        }
    }
    if !csv.is_stdout() {
        stdout().write_all(wrapped(&text, width()).as_bytes())?;
    }
    csv.write(&[("workloads", table(rows))])?;
    Ok(ExitCode::SUCCESS)
}

/// The list, a row for each workload: its name, the paper that it is of, and what it does.
fn table(rows: Vec<(&str, Option<&Paper>, String)>) -> Table {
    let columns: [Column<(&str, Option<&Paper>, String)>; 3] = [
        ("workload", |(name, ..)| (*name).into()),
        ("paper", |(_, paper, _)| paper.map_or("", |paper| &paper.name).into()),
        ("description", |(.., about)| about.clone().into()),
    ];
    Table::new(&columns, rows)
}

/// The papers that have workload models, by name.
fn papers(models: &Models) -> Result<Vec<Paper>, PaperError> {
    let papers = models.names("papers").into_iter().map(|name| Paper::load(models, name));
    let papers: Result<Vec<Paper>, PaperError> = papers.collect();
    Ok(papers?.into_iter().filter(|paper| !paper.workloads.is_empty()).collect())
}

/// The workloads of no paper, then those of each.
fn groups<'a>(papers: &'a [Paper], models: &'a Models) -> Vec<Group<'a>> {
    let listed = |name: &&str| papers.iter().any(|p| p.workloads.iter().any(|one| one == name));
    let others = workload::names(models).into_iter().filter(|name| !listed(name)).collect();
    let own = papers.iter().map(|paper| {
        let names = paper.workloads.iter().map(String::as_str).collect();
        (Some(paper), names)
    });
    std::iter::once((None, others)).chain(own).collect()
}

/// The heading of a group; `reproduce` takes the name of the paper.
fn heading(paper: Option<&Paper>) -> String {
    let Some(paper) = paper else { return String::from("of no paper") };
    let machine = paper.machine.as_ref().map(|machine| format!(" (machine {machine})"));
    format!("kernels of {}{}", paper.name, machine.unwrap_or_default())
}

/// A workload; if none has that name, the error names the file of the paper that lists it.
fn load(name: &str, paper: Option<&Paper>, models: &Models) -> Outcome<Workload> {
    match (Workload::load(name, models), paper) {
        (Err(error @ WorkloadError::Unknown { .. }), Some(paper)) => {
            Err(format!("papers/{}.toml: workloads: {error}", paper.name).into())
        }
        (loaded, _) => Ok(loaded?),
    }
}
