//! `gpumodel machine`: lists, shows, checks, imports and measures machine descriptions.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use gpumodel_report::table::{Cell, Column, Table};
use serde_json::json;

use gpumodel_sim::config::{IMPORT_MARK, ImportLabel, Listed, Problem, Resolved, import_accelsim};

use super::options::{ModelsArgument, setting};
use super::output::{alert, check_overwrites, is_stdout, stdout, write_json, write_text};
use super::tables::{CsvArgument, width};
use super::{Outcome, measure, message};
use crate::check_memory;

/// Lists, shows, checks, imports and measures descriptions of machines
#[derive(Debug, Args)]
#[command(after_help = "\
EXAMPLES:
  gpumodel machine list
  gpumodel machine show v100
  gpumodel machine show v100 --set l1.latency_cycles=30 --json -
  gpumodel machine check my-gpu.toml
  gpumodel machine import gpgpusim.config trace.config -o my-gpu.toml
  gpumodel machine measure my-gpu.toml --measured my-card.csv --report measured")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Lists the machines: description, SMs, clock and bandwidth.
    List(List),
    /// Shows every key of a machine with its value and the source of the value.
    Show(Show),
    /// Checks a machine file and lists every failed check; exit code 1 if a check fails, 2 if
    /// the file cannot be read as a machine.
    Check(Check),
    /// Writes a machine file from Accel-Sim's gpgpusim.config and trace.config.
    Import(Import),
    /// Runs microbenchmarks in the model and shows them next to published values of the card.
    Measure(measure::Arguments),
}

#[derive(Debug, Args)]
struct List {
    #[command(flatten)]
    models: ModelsArgument,
    /// Write the list as JSON to FILE, `-` for standard output.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    csv: CsvArgument,
}

#[derive(Debug, Args)]
struct Show {
    /// A name from `machine list`, or a file.
    machine: OsString,
    /// Override a key for this output, as l1.latency_cycles=30.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    overrides: Vec<(String, String)>,
    #[command(flatten)]
    models: ModelsArgument,
    /// Write everything as JSON to FILE, `-` for standard output.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    csv: CsvArgument,
}

#[derive(Debug, Args)]
struct Check {
    /// A machine file, or the name of a built-in machine.
    file: OsString,
    #[command(flatten)]
    models: ModelsArgument,
    #[command(flatten)]
    csv: CsvArgument,
}

#[derive(Debug, Args)]
struct Import {
    /// gpgpusim.config and, for the timing of traces, trace.config.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The machine file to write; without it, or with `-`, the text goes to standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replaces a file that is no machine file of this command.
    #[arg(long)]
    force: bool,
    /// Name of the machine; default: the stem of the output file, else `imported`.
    #[arg(long)]
    name: Option<String>,
    /// One sentence about the machine.
    #[arg(long, default_value = "Imported from a GPGPU-Sim configuration")]
    description: String,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    match arguments.action {
        Action::List(list) => run_list(&list),
        Action::Show(show) => run_show(&show),
        Action::Check(check) => run_check(&check),
        Action::Import(import) => run_import(&import),
        Action::Measure(measure) => measure::run(measure),
    }
}

fn run_list(list: &List) -> Outcome {
    list.csv.check(&[], &[("--json", list.json.as_deref())], &["machines"])?;
    let models = list.models.load()?;
    let machines: Vec<Resolved> = models
        .machine_names()
        .into_iter()
        .map(|name| models.machine(name, &[]))
        .collect::<Result<_, _>>()?;
    let table = machine_table(&machines);
    if let Some(target) = &list.json {
        let rows: Vec<_> = machines.iter().map(summary).collect();
        write_json(target, &json!({"schema": "gpumodel.machines/1", "machines": rows}))?;
    } else if !list.csv.is_stdout() {
        write!(stdout(), "{}", table.terminal(width()))?;
    }
    list.csv.write(&[("machines", table)])?;
    Ok(ExitCode::SUCCESS)
}

fn machine_table(machines: &[Resolved]) -> Table {
    let columns: [Column<&Resolved>; 6] = [
        ("name", |one| one.machine.name.clone().into()),
        ("SMs", |one| Cell::Count(one.machine.dispatch.sms.into())),
        ("MHz", |one| Cell::Number(one.machine.clocks.core_mhz, 0)),
        ("GB/s", |one| Cell::number(one.machine.peak_gb_per_s(), 0)),
        ("reference", |Resolved { machine, .. }| {
            let other = machine.reference_name != machine.name;
            if other { machine.reference_name.clone().into() } else { "".into() }
        }),
        ("description", |one| one.machine.description.clone().into()),
    ];
    Table::new(&columns, machines).left(&[0, 4, 5]).dropping(&["reference"])
}

fn run_show(show: &Show) -> Outcome {
    let file = Some(PathBuf::from(&show.machine)).filter(|path| path.is_file());
    show.csv.check(file.as_slice(), &[("--json", show.json.as_deref())], &["keys"])?;
    let models = show.models.load()?;
    let resolved = models.machine(&show.machine, &show.overrides)?;
    check_memory(&resolved.machine, &models)?;
    let table = key_table(&resolved);
    if let Some(target) = &show.json {
        let mut document = summary(&resolved);
        document["schema"] = json!("gpumodel.machine/1");
        document["overrides"] = json!(resolved.overrides);
        document["keys"] = json!(resolved.listing());
        write_json(target, &document)?;
    } else if !show.csv.is_stdout() {
        writeln!(stdout(), "{}\nhash {}", table.terminal(width()), resolved.hash)?;
    }
    show.csv.write(&[("keys", table)])?;
    Ok(ExitCode::SUCCESS)
}

/// Every key of a machine with its value and the source of the value.
fn key_table(resolved: &Resolved) -> Table {
    let listing = resolved.listing();
    let columns: [Column<Listed>; 4] = [
        ("key", |row: &Listed| row.key.clone().into()),
        ("value", |row| {
            row.value.as_str().map_or_else(|| row.value.to_string(), str::to_owned).into()
        }),
        ("kind", |row| row.source.as_ref().map_or("", |source| source.kind.name()).into()),
        ("source", |row| row.source.as_ref().map_or("", |source| source.text.as_str()).into()),
    ];
    Table::new(&columns, listing).left(&[0, 1, 2, 3]).dropping(&["kind"])
}

fn run_check(check: &Check) -> Outcome {
    let read = Some(PathBuf::from(&check.file)).filter(|path| path.is_file());
    check.csv.check(read.as_slice(), &[], &["checks"])?;
    let models = check.models.load()?;
    let (resolved, mut failed) = models.examine(&check.file, &[])?;
    // The memory can only be built from valid counts.
    if failed.is_empty()
        && let Err(error) = check_memory(&resolved.machine, &models)
    {
        let check = "machine, memory standard and mapping must fit together";
        failed.push(Problem { check, found: error.to_string() });
    }
    let file = Path::new(&check.file).display();
    let said = if failed.is_empty() {
        format!("{file}: valid, {} values with their sources\n", resolved.provenance.len())
    } else {
        failed.iter().map(|problem| format!("{file}: {problem}\n")).collect()
    };
    check.csv.show(&said)?;
    check.csv.write(&[("checks", failed_table(&check.file, &failed))])?;
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The failed checks of `file`; without rows, it is valid.
fn failed_table(file: &OsStr, failed: &[Problem]) -> Table {
    let columns: [Column<(&OsStr, &Problem)>; 3] = [
        ("file", |(file, _)| file.to_string_lossy().into_owned().into()),
        ("check", |(_, problem)| problem.check.into()),
        ("found", |(_, problem)| problem.found.clone().into()),
    ];
    Table::new(&columns, failed.iter().map(|problem| (file, problem)))
}

fn run_import(import: &Import) -> Outcome {
    check_overwrites(&import.files, &[("-o", import.output.as_deref())])?;
    let file = import.output.as_deref().filter(|path| !is_stdout(path));
    if let Some(file) = file.filter(|_| !import.force) {
        check_ours(file)?;
    }
    let stem = file.and_then(Path::file_stem);
    let name = import
        .name
        .clone()
        .or_else(|| stem.map(|stem| stem.to_string_lossy().into_owned()))
        .unwrap_or_else(|| "imported".to_owned());
    let label = ImportLabel { name, description: import.description.clone() };
    let made = import_accelsim(&import.files, &label)?;
    check_import(import, &made.text)?;
    write_text(import.output.as_deref().unwrap_or(Path::new("-")), &made.text)?;
    let count = made.ignored.len();
    message(format_args!(
        "{count} options have no counterpart; the file lists them with the reason"
    ));
    for option in &made.unmodelled {
        alert(format_args!("not modelled at this value: {option}"));
    }
    made.unknown
        .iter()
        .for_each(|option| alert(format_args!("unknown option, not used: {option}")));
    Ok(ExitCode::SUCCESS)
}

/// Refuses an imported machine that `machine check` would refuse, with the options that its
/// values are from.
fn check_import(import: &Import, text: &str) -> Outcome<()> {
    let models = crate::models(None)?;
    let (resolved, problems) = models.examine_text("the imported machine", text)?;
    let mut failed: Vec<String> = problems.iter().map(ToString::to_string).collect();
    if failed.is_empty()
        && let Err(error) = check_memory(&resolved.machine, &models)
    {
        failed.push(error.to_string());
    }
    if failed.is_empty() {
        return Ok(());
    }
    let named = |key: &str| failed.iter().any(|problem| problem.contains(key));
    let sources = resolved.provenance.iter().filter(|(key, _)| named(key));
    let sources: Vec<String> =
        sources.map(|(key, source)| format!("\n  {key}: {}", source.text)).collect();
    let files: Vec<String> = import.files.iter().map(|file| file.display().to_string()).collect();
    Err(format!(
        "{}: expected a machine that the model has, found\n  {}{}",
        files.join(", "),
        failed.join("\n  "),
        sources.concat()
    )
    .into())
}

/// Refuses to replace a file that an import did not write: machine files are written by hand.
fn check_ours(path: &Path) -> Result<(), String> {
    let text = fs::read(path).unwrap_or_default();
    if text.is_empty() || text.starts_with(IMPORT_MARK.as_bytes()) {
        return Ok(());
    }
    let shown = path.display();
    Err(format!("{shown} exists and no import wrote it: name a new file, or add --force"))
}

/// The row of a machine in the list.
fn summary(resolved: &Resolved) -> serde_json::Value {
    let machine = &resolved.machine;
    json!({
        "name": machine.name,
        "reference_name": machine.reference_name,
        "description": machine.description,
        "isa": machine.isa,
        "hash": resolved.hash,
        "sms": machine.dispatch.sms,
        "core_mhz": machine.clocks.core_mhz,
        "peak_gb_per_s": machine.peak_gb_per_s(),
    })
}
