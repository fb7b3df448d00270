//! `gpumodel synth NAME --fit …`: which constant of a workload model a paper's value asks for.

use std::io::Write;
use std::mem;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::{FitError, FitRequest, FitStep, Fitted, analyze, fit};
use gpumodel_report::paper::solo_columns;

use super::Outcome;
use super::bar::with_bars;
use super::output::stdout;
use super::place::cache_folder;

/// What is fitted, and to what.
#[derive(Debug, Args)]
pub(super) struct FitArguments {
    /// Instead of writing a trace, runs the workload alone on --machine with values from LOW
    /// to HIGH of a constant of its file, by halves, and says which comes nearest to --to; exit
    /// code 1 where that is not within 10 %. A constant is a name under `[constants]` or
    /// `[scaled]`; the error of any other name lists them.
    #[arg(long, value_name = "CONSTANT=LOW..HIGH", value_parser = constant)]
    #[arg(requires_all = ["machine", "to"], conflicts_with_all = ["output", "list", "compress"])]
    fit: Option<Constant>,

    /// For --fit: a name from `gpumodel machine list`, or a machine file.
    #[arg(short, long, value_name = "M", requires = "fit")]
    machine: Option<String>,

    #[arg(long, value_name = "COLUMN=VALUE", value_parser = target, requires = "fit")]
    #[arg(help = columns())]
    to: Option<Target>,
}

/// A constant and the values that it may have.
#[derive(Clone, Debug)]
struct Constant {
    name: String,
    range: RangeInclusive<u32>,
}

/// A column and what it is to have.
#[derive(Clone, Debug)]
struct Target {
    column: String,
    value: f64,
}

/// What --help says of --to.
fn columns() -> String {
    let known = solo_columns().collect::<Vec<_>>().join(", ");
    format!(
        "For --fit: what a paper prints of the run, as mpki_thread=4.39; a column is one of {known}"
    )
}

fn constant(typed: &str) -> Result<Constant, String> {
    let wrong = || format!("expected CONSTANT=LOW..HIGH, as work=10..40, found {typed}");
    let (name, range) = typed.split_once('=').ok_or_else(wrong)?;
    let (low, high) = range.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
    let range = number(low)?..=number(high)?;
    if range.is_empty() {
        return Err(format!("{typed}: expected LOW at most HIGH"));
    }
    Ok(Constant { name: name.trim().to_owned(), range })
}

fn target(typed: &str) -> Result<Target, String> {
    let wrong = || format!("expected COLUMN=VALUE, as mpki_thread=4.39, found {typed}");
    let (column, value) = typed.split_once('=').ok_or_else(wrong)?;
    let value: f64 = value.trim().parse().map_err(|_| wrong())?;
    let above = value.is_finite() && value > 0.0;
    let column = column.trim().to_owned();
    above.then_some(Target { column, value }).ok_or_else(|| format!("{typed}: not above 0"))
}

impl FitArguments {
    /// Fits the constant where that was asked for: a row per run, the nearest, and what stands
    /// in the way of a nearer one.
    pub(super) fn run(
        self,
        workload: &str,
        scale: f64,
        models: Option<PathBuf>,
    ) -> Option<Outcome> {
        let (constant, machine, target) = (self.fit?, self.machine?, self.to?);
        let request = FitRequest {
            workload: workload.to_owned(),
            scale,
            constant: constant.name,
            range: constant.range,
            machine,
            column: target.column,
            wanted: target.value,
            models,
            cache: cache_folder(),
        };
        Some(found(&request))
    }
}

fn found(request: &FitRequest) -> Outcome {
    let FitRequest { constant, column, wanted, .. } = request;
    // Comes with the first row: what is wrong with the request is said before.
    let mut head = format!("{constant:>12}  {column:>16}     error\n");
    let run = |asked: &_| with_bars(|watch| analyze(asked, watch));
    let tell = |step| writeln!(stdout(), "{}{}", mem::take(&mut head), row(step, *wanted));
    let fitted = match fit(request, run, tell) {
        Err(FitError::Output(source)) => return Err(source.into()),
        other => other?,
    };
    let FitStep { value, found } = fitted.nearest;
    writeln!(
        stdout(),
        "nearest to {column} = {wanted}: {constant} = {value}, which has {found:.6}"
    )?;
    if let Some(remark) = remark(request, &fitted) {
        writeln!(stdout(), "{remark}")?;
    }
    Ok(if fitted.meets(*wanted) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Why no value may come nearer, where the ends show it or none has come near.
fn remark(request: &FitRequest, fitted: &Fitted) -> Option<String> {
    let FitRequest { constant, column, wanted, .. } = request;
    let [FitStep { value: low, found: first }, FitStep { value: high, found: last }] = fitted.ends;
    if fitted.unmoved() {
        Some(format!("{constant} does not change {column}: {low} and {high} both give {first:.6}"))
    } else if fitted.outside(*wanted) {
        Some(format!(
            "{wanted} is outside of what {constant} = {low} and {high} give: {first:.6} and \
             {last:.6}"
        ))
    } else if fitted.meets(*wanted) {
        None
    } else {
        let near = Fitted::NEAR_PERCENT;
        Some(format!("no value that was run comes within {near} % of {wanted}"))
    }
}

/// The constant, the column and how far it is from what is wanted.
fn row(FitStep { value, found }: FitStep, wanted: f64) -> String {
    let error = 100.0 * (found / wanted - 1.0);
    format!("{value:>12}  {found:>16.6}  {error:>+6.1} %")
}
