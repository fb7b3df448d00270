//! `gpumodel scheme`: lists the sharing schemes.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde_json::json;

use gpumodel_core::units::did_you_mean;

use super::Outcome;
use super::output::{stdout, table, write_json};
use crate::{ParameterRow, SchemeRow, schemes};

/// Lists the sharing schemes
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES:\n  \
    gpumodel scheme list\n  \
    gpumodel scheme list warped-slicer\n  \
    gpumodel scheme list --json -")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Lists every scheme, or the named ones: paper, summary, parameters
    #[command(visible_alias = "show")]
    List {
        /// Only these schemes
        #[arg(value_name = "SCHEME")]
        names: Vec<String>,
        /// Writes the list as JSON; `-` is standard output
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let Verb::List { names, json } = arguments.verb;
    let rows = chosen(schemes(), &names)?;
    let Some(path) = json else {
        writeln!(stdout(), "{}\n\n{}", summaries(&rows), parameters(&rows))?;
        return Ok(ExitCode::SUCCESS);
    };
    let list: Vec<_> = rows.iter().map(row).collect();
    write_json(&path, &json!({ "schemes": list }))?;
    Ok(ExitCode::SUCCESS)
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
    let mut table = table(NOTHING, &["scheme", "from", "does"]);
    for row in rows {
        let queue = if row.queue { " (with --queue)" } else { "" };
        table.add_row([row.name, row.paper, &format!("{}{queue}", row.summary)]);
    }
    table
}

fn parameters(rows: &[SchemeRow]) -> Table {
    let mut table = table(NOTHING, &["scheme:parameter", "default", "takes", "does"]);
    for row in rows {
        for ParameterRow { name, default, takes, summary } in &row.parameters {
            table.add_row([&format!("{}:{name}", row.name), default, takes, *summary]);
        }
    }
    table
}

fn row(row: &SchemeRow) -> serde_json::Value {
    let parameter = |one: &ParameterRow| {
        let says = json!({"default": one.default, "takes": one.takes, "summary": one.summary});
        (one.name.to_owned(), says)
    };
    let parameters: serde_json::Map<_, _> = row.parameters.iter().map(parameter).collect();
    json!({"name": row.name, "paper": row.paper, "summary": row.summary, "queue": row.queue, "parameters": parameters})
}
