//! `gpumodel scheme`: lists the sharing schemes.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use gpumodel_report::table::{Cell, Column, Table};
use serde_json::json;

use gpumodel_core::units::did_you_mean;

use super::Outcome;
use super::output::{stdout, write_json};
use super::tables::{CsvArgument, width};
use crate::{ParameterRow, SchemeRow, schemes};

/// Lists the sharing schemes
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES:\n  \
    gpumodel scheme list\n  \
    gpumodel scheme list --long\n  \
    gpumodel scheme show warped-slicer\n  \
    gpumodel scheme list --json -")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Lists every scheme, one line each, or the named ones with their parameters
    List {
        /// Only these schemes
        #[arg(value_name = "SCHEME")]
        names: Vec<String>,
        /// Also lists all parameters
        #[arg(long)]
        long: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Shows schemes with all parameters: defaults, what they take and do
    Show {
        /// The schemes
        #[arg(value_name = "SCHEME", required = true)]
        names: Vec<String>,
        #[command(flatten)]
        output: Output,
    },
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// The verbs' names.
const VERBS: [&str; 2] = ["list", "show"];

/// The error of an unknown verb, which may be a scheme.
fn no_verb(typed: &[OsString]) -> String {
    let word = typed.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    let hint = did_you_mean(&word, VERBS);
    if !hint.is_empty() {
        return format!("scheme {word}: expected `list` or `show`{hint}");
    }
    let schemes = schemes();
    let names = || schemes.iter().map(|row| row.name);
    let hint = did_you_mean(&word, names());
    let known = names().any(|name| name == word);
    let shown = if known { word.as_ref() } else { "SCHEME" };
    format!("scheme {word}: expected `list` or `show`, as `gpumodel scheme show {shown}`{hint}")
}

#[derive(Debug, clap::Args)]
struct Output {
    /// Writes everything as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    csv: CsvArgument,
}

/// The tables, by name.
const TABLES: [&str; 2] = ["schemes", "parameters"];

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let (names, long, Output { json, csv }) = match arguments.verb {
        Verb::List { names, long, output } => {
            let long = long || !names.is_empty();
            (names, long, output)
        }
        Verb::Show { names, output } => (names, true, output),
        Verb::Other(typed) => return Err(no_verb(&typed).into()),
    };
    csv.check(&[], &[("--json", json.as_deref())], &TABLES)?;
    let rows = chosen(schemes(), &names)?;
    if let Some(path) = &json {
        let list: Vec<_> = rows.iter().map(row).collect();
        write_json(path, &json!({ "schemes": list }))?;
    } else if !csv.is_stdout() {
        stdout().write_all(text(&rows, long).as_bytes())?;
    }
    csv.write(&[(TABLES[0], summaries(&rows)), (TABLES[1], parameters(&rows))])?;
    Ok(ExitCode::SUCCESS)
}

fn text(rows: &[SchemeRow], long: bool) -> String {
    let schemes = summaries(rows);
    if long {
        return format!("{}\n{}", schemes.terminal(width()), parameters(rows).terminal(width()));
    }
    let list = schemes.dropping(&["from"]).in_lines().terminal(width());
    format!("{list}\n`gpumodel scheme show SCHEME` shows its parameters.\n")
}

/// The rows of the schemes `names`; all rows if `names` is empty.
fn chosen(rows: Vec<SchemeRow>, names: &[String]) -> Result<Vec<SchemeRow>, String> {
    let known = || rows.iter().map(|row| row.name);
    if let Some(name) = names.iter().find(|name| !known().any(|known| known == *name)) {
        let hint = did_you_mean(name, known());
        let known = known().collect::<Vec<_>>().join(", ");
        return Err(format!("no scheme is called {name}{hint}; the schemes are: {known}"));
    }
    let named = |row: &SchemeRow| names.is_empty() || names.iter().any(|name| name == row.name);
    Ok(rows.into_iter().filter(named).collect())
}

fn summaries(rows: &[SchemeRow]) -> Table {
    let columns: [Column<&SchemeRow>; 3] = [
        ("scheme", |row| row.name.into()),
        ("from", |row| Cell::Cut(row.paper.to_owned(), 50)),
        ("does", |row| {
            let queue = if row.queue { " (--queue)" } else { "" };
            format!("{}{queue}", row.summary).into()
        }),
    ];
    Table::new(&columns, rows).left(&[0, 1, 2])
}

fn parameters(rows: &[SchemeRow]) -> Table {
    let columns: [Column<(&SchemeRow, &ParameterRow)>; 4] = [
        ("scheme:parameter", |(row, one)| format!("{}:{}", row.name, one.name).into()),
        ("default", |(_, one)| one.default.to_string().into()),
        ("takes", |(_, one)| one.takes.to_string().into()),
        ("does", |(_, one)| one.summary.into()),
    ];
    let all = rows.iter().flat_map(|row| row.parameters.iter().map(move |one| (row, one)));
    Table::new(&columns, all).left(&[0, 1, 2, 3])
}

fn row(row: &SchemeRow) -> serde_json::Value {
    let parameter = |one: &ParameterRow| {
        let says = json!({"default": one.default, "takes": one.takes, "summary": one.summary});
        (one.name.to_owned(), says)
    };
    let parameters: serde_json::Map<_, _> = row.parameters.iter().map(parameter).collect();
    json!({"name": row.name, "paper": row.paper, "summary": row.summary, "queue": row.queue, "parameters": parameters})
}
