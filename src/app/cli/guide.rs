//! `gpumodel guide`: the user's guide in the terminal.

use std::io::Write;
use std::process::ExitCode;

use gpumodel_core::units::{did_you_mean, nearest};
use gpumodel_report::results::RECORD_SCHEMA;
use gpumodel_report::table::{Column, Table, markdown, wrapped};

use super::Outcome;
use super::output::stdout;
use super::tables::{CsvArgument, width};
use crate::guide::{PAGES, Page, TOPICS, Topic};

/// The topic that has a page for each scheme.
const SCHEMES: &str = "schemes";

/// Lists the topics of the user's guide, or shows one
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES:\n  \
    gpumodel guide\n  \
    gpumodel guide tutorial\n  \
    gpumodel guide schemes | less\n  \
    gpumodel guide schemes warped-slicer\n  \
    gpumodel guide --schema > record.schema.json")]
pub(crate) struct Arguments {
    /// The topic to show
    #[arg(value_name = "TOPIC")]
    topic: Option<String>,
    /// With the topic `schemes`: the scheme whose page to show
    #[arg(value_name = "SCHEME", conflicts_with = "schema")]
    scheme: Option<String>,
    /// Prints the JSON Schema of the records that `analyze --json` writes
    #[arg(long, conflicts_with = "topic")]
    schema: bool,
    #[command(flatten)]
    csv: CsvArgument,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if arguments.topic.is_some() || arguments.schema {
        arguments.csv.refuse("the topics", "name no topic")?;
    }
    match (&arguments.topic, &arguments.scheme) {
        (None, _) if arguments.schema => write!(stdout(), "{RECORD_SCHEMA}")?,
        (Some(name), None) => write!(stdout(), "{}", markdown(topic(name)?.text, width()))?,
        (Some(name), Some(scheme)) => {
            write!(stdout(), "{}", markdown(page(topic(name)?, scheme)?.text, width()))?;
        }
        (None, _) => list(&arguments.csv)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn topic(name: &str) -> Result<&'static Topic, String> {
    TOPICS.iter().find(|topic| topic.name == name).ok_or_else(|| {
        let known = || TOPICS.iter().map(|topic| topic.name);
        let hint = match (find_page(name), nearest(name, known())) {
            (None, Some(topic)) => format!(" (did you mean {topic}?)"),
            _ => nearest(name, scheme_names())
                .map_or_else(String::new, |scheme| format!(" (did you mean {SCHEMES} {scheme}?)")),
        };
        let known = known().collect::<Vec<_>>().join(", ");
        format!("the guide has no topic {name}{hint}; the topics are: {known}")
    })
}

/// Every scheme that has a page.
fn scheme_names() -> impl Iterator<Item = &'static str> {
    PAGES.iter().flat_map(|page| page.schemes())
}

fn find_page(scheme: &str) -> Option<&'static Page> {
    PAGES.iter().find(|page| page.schemes().any(|name| name == scheme))
}

fn page(topic: &Topic, scheme: &str) -> Result<&'static Page, String> {
    if topic.name != SCHEMES {
        let name = topic.name;
        return Err(format!("the topic {name} has no pages, expected `{SCHEMES} SCHEME`"));
    }
    find_page(scheme).ok_or_else(|| {
        let hint = did_you_mean(scheme, scheme_names());
        let known = scheme_names().collect::<Vec<_>>().join(", ");
        format!("the guide has no page on a scheme {scheme}{hint}; the schemes are: {known}")
    })
}

fn list(csv: &CsvArgument) -> Outcome<()> {
    csv.check(&[], &[], &["topics"])?;
    let columns: [Column<&Topic>; 2] = [
        ("topic", |topic| topic.name.into()),
        ("afterwards you can", |topic| topic.summary.into()),
    ];
    let table = Table::new(&columns, TOPICS).left(&[0, 1]);
    let how = "`gpumodel guide TOPIC` shows one, `gpumodel guide schemes SCHEME` the page of a \
               scheme.\n";
    if !csv.is_stdout() {
        write!(stdout(), "{}\n{}", table.terminal(width()), wrapped(how, width()))?;
    }
    Ok(csv.write(&[("topics", table)])?)
}
