//! `gpumodel scheme`: what sharing schemes there are.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;

use crate::run::{ParameterRow, SchemeRow, schemes};
use crate::units::WholeFile;

use super::Outcome;

/// Lists the sharing schemes
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES:\n  \
    gpumodel scheme list\n  \
    gpumodel scheme list --json -")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Every scheme: name, where it is from, what it does, what may be set
    List {
        /// Writes the list as JSON; `-` is standard output
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let Verb::List { json } = arguments.verb;
    let rows = schemes();
    let Some(path) = json else {
        writeln!(io::stdout(), "{}\n\n{}", table(&rows), parameters(&rows))?;
        return Ok(ExitCode::SUCCESS);
    };
    let list: Vec<_> = rows.iter().map(row).collect();
    let text = serde_json::to_string_pretty(&json!({ "schemes": list }))? + "\n";
    if path.as_os_str() == "-" {
        io::stdout().write_all(text.as_bytes())?;
    } else {
        WholeFile::write(&path, text.as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn headed(header: &[&str]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(header);
    table
}

fn table(rows: &[SchemeRow]) -> comfy_table::Table {
    let mut table = headed(&["scheme", "from", "does"]);
    for row in rows {
        let queue = if row.queue { " (with --queue)" } else { "" };
        table.add_row([row.name, row.paper, &format!("{}{queue}", row.summary)]);
    }
    table
}

fn parameters(rows: &[SchemeRow]) -> comfy_table::Table {
    let mut table = headed(&["scheme:parameter", "default", "takes", "does"]);
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
