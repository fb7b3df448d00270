//! `gpumodel dram`: one channel of the DRAM model alone.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use gpumodel_report::results::DramRecord;
use gpumodel_report::table::{Column, Table};
use serde_json::Value;

use super::Outcome;
use super::options::ModelsArgument;
use super::output::{Output, is_stdout, stdout, write_json};
use super::tables::{CsvArgument, width};
use crate::{DramJob, RequestFormat};

const EXAMPLES: &str = "\
EXAMPLES:
  gpumodel dram --spec ugpu-hbm --requests stream.trc --format coordinates
  gpumodel dram --spec hbm3 --requests misses.txt --set refresh=none --json -
  gpumodel dram --spec gddr6 --requests misses.txt --commands commands.csv

Request files, cycles in memory clocks, # starts a comment:
  address      CYCLE ADDRESS R|W [BYTES]   address hex with 0x, or decimal
  coordinates  ID CYCLE R|W PC BG BA ROW COL   one line per access, lines of
               one request share the ID

--set keys: scheduler, row_hit_first, hit_cap, read_queue, write_queue,
unified_queue, opened_leaves_queue, bank_queue, write_high, write_low, write_idle,
posted_writes, forward, merge, refresh, page_policy, page_timeout, act_clocks
and every parameter of the spec's file.";

/// Runs requests through one channel of a memory standard
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Memory standard: a name in models/memory or a file
    #[arg(long, value_name = "SPEC")]
    spec: OsString,
    /// Request file; - reads standard input
    #[arg(long, value_name = "FILE")]
    requests: PathBuf,
    /// Format of the request lines
    #[arg(long, value_enum, default_value_t = Format::Address)]
    format: Format,
    /// Change a controller option or a parameter of the spec for this run
    #[arg(long = "set", value_name = "KEY=VALUE")]
    changes: Vec<String>,
    /// Write every DRAM command to this CSV file; - writes them to standard output, and nothing
    /// else
    #[arg(long, value_name = "FILE")]
    commands: Option<PathBuf>,
    /// Write the result as JSON; - writes it to standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    csv: CsvArgument,
    #[command(flatten)]
    models: ModelsArgument,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// CYCLE ADDRESS R|W [BYTES]
    Address,
    /// ID CYCLE R|W PC BG BA ROW COL
    Coordinates,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let mut inputs = vec![arguments.requests.clone(), PathBuf::from(&arguments.spec)];
    inputs.retain(|path| path.is_file());
    let (commands, json) = (arguments.commands.as_deref(), arguments.json.as_deref());
    let outputs = [("--commands", commands), ("--json", json)];
    arguments.csv.check(&inputs, &outputs, &["values"])?;
    let listed = commands.is_some_and(is_stdout);
    if listed && json.is_some_and(is_stdout) {
        return Err("--commands and --json: standard output takes one of them".into());
    }
    let models = arguments.models.load()?;
    let job = DramJob::new(&arguments.spec, &models, &arguments.changes)?;
    let format = match arguments.format {
        Format::Address => RequestFormat::Address,
        Format::Coordinates => RequestFormat::Coordinates,
    };
    let name = arguments.requests.display().to_string();
    let file = open(&arguments.requests)?;
    let mut commands = commands.map(Output::create).transpose()?;
    let writer = commands.as_mut().map(|file| file as &mut dyn Write);
    let record = job.run(&name, file, format, writer)?;
    if let Some(commands) = commands {
        commands.finish()?;
    }
    let values = values(&record)?;
    match json {
        Some(path) => write_json(path, &record)?,
        None if listed || arguments.csv.is_stdout() => (),
        None => write!(stdout(), "{}", values.terminal(width()))?,
    }
    arguments.csv.write(&[("values", values)])?;
    Ok(ExitCode::SUCCESS)
}

fn open(path: &Path) -> Result<Box<dyn BufRead>, io::Error> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display()))
    })?;
    Ok(Box::new(BufReader::with_capacity(1 << 18, file)))
}

/// The record as a table of keys and values.
fn values(record: &DramRecord) -> Result<Table, serde_json::Error> {
    let value = serde_json::to_value(record)?;
    let fields = value.as_object().into_iter().flatten();
    let columns: [Column<(&String, &Value)>; 2] = [
        ("key", |(key, _)| key.as_str().into()),
        ("value", |(_, value)| {
            value.as_str().map_or_else(|| value.to_string(), str::to_owned).into()
        }),
    ];
    let plain = fields.filter(|(_, value)| !value.is_object());
    Ok(Table::new(&columns, plain).left(&[0, 1]))
}
