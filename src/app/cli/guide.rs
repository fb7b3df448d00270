//! `gpumodel guide`: the user's guide in the terminal.

use std::io::Write;
use std::process::ExitCode;

use gpumodel_core::units::did_you_mean;
use gpumodel_report::results::RECORD_SCHEMA;
use gpumodel_report::table::{Column, Table};

use super::Outcome;
use super::output::stdout;
use super::tables::width;
use crate::guide::{TOPICS, Topic};

/// Lists the topics of the user's guide, or shows one
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES:\n  \
    gpumodel guide\n  \
    gpumodel guide tutorial\n  \
    gpumodel guide schemes | less\n  \
    gpumodel guide --schema > record.schema.json")]
pub(crate) struct Arguments {
    /// The topic to show
    #[arg(value_name = "TOPIC")]
    topic: Option<String>,
    /// Prints the JSON Schema of the records that `analyze --json` writes
    #[arg(long, conflicts_with = "topic")]
    schema: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    match &arguments.topic {
        None if arguments.schema => write!(stdout(), "{RECORD_SCHEMA}")?,
        Some(name) => write!(stdout(), "{}", topic(name)?.text)?,
        None => writeln!(stdout(), "{}", list())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn topic(name: &str) -> Result<&'static Topic, String> {
    TOPICS.iter().find(|topic| topic.name == name).ok_or_else(|| {
        let known = || TOPICS.iter().map(|topic| topic.name);
        let hint = did_you_mean(name, known());
        let known = known().collect::<Vec<_>>().join(", ");
        format!("the guide has no topic {name}{hint}; the topics are: {known}")
    })
}

fn list() -> String {
    let columns: [Column<&Topic>; 2] = [
        ("topic", |topic| topic.name.into()),
        ("afterwards you can", |topic| topic.summary.into()),
    ];
    let table = Table::new(&columns, TOPICS).left(&[0, 1]).terminal(width());
    format!("{table}\n`gpumodel guide TOPIC` shows one.")
}
