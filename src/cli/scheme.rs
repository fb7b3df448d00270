//! `gpumodel scheme`: what sharing schemes there are.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;

use crate::run::schemes;
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
    /// Every scheme: name, where it is from, what it does
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
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::NOTHING).set_header(["scheme", "from", "does"]);
        for row in rows {
            table.add_row([row.name, row.paper, row.summary]);
        }
        writeln!(io::stdout(), "{table}")?;
        return Ok(ExitCode::SUCCESS);
    };
    let list: Vec<_> = rows
        .iter()
        .map(|row| {
            json!({"name": row.name, "paper": row.paper, "summary": row.summary, "parameters": {}})
        })
        .collect();
    let text = serde_json::to_string_pretty(&json!({ "schemes": list }))? + "\n";
    if path.as_os_str() == "-" {
        io::stdout().write_all(text.as_bytes())?;
    } else {
        WholeFile::write(&path, text.as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}
