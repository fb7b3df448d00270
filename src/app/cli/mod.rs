//! The command line: turns arguments into requests, one file per verb. No computation.
//!
//! To add a verb: one file here, its `mod` line, a variant of `Verb` and a line in `run`.

mod analyze;
mod compare;
mod completions;
mod convert;
mod dram;
mod guide;
mod inspect;
mod interrupt;
mod machine;
mod measure;
mod merge;
mod options;
mod output;
mod plot;
mod progress;
mod records;
mod reproduce;
mod scheme;
mod sweep;
mod synth;
mod tables;
mod trace;

use std::error::Error;
use std::io;
use std::process::ExitCode;
use std::time::Instant;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use options::DefaultMachine;
use output::{Verbosity, alert, detail, message};

use crate::RunError;

/// The result of a verb, or of a part of it: an exit code, or an error for the user (exit code 2).
pub(crate) type Outcome<T = ExitCode> = Result<T, Box<dyn Error + Send + Sync>>;

/// What happens when several GPU kernels share one GPU, from their traces.
#[derive(Debug, Parser)]
#[command(name = "gpumodel", version = env!("GPUMODEL_VERSION"), propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
    /// Shows neither progress nor messages; results, warnings and errors stay
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Reports where settings and caches are and how long the command took
    #[arg(short, long, global = true)]
    verbose: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Convert(convert::Arguments),
    Inspect(inspect::Arguments),
    Analyze(analyze::Arguments),
    Compare(compare::Arguments),
    Sweep(sweep::Arguments),
    Merge(merge::Arguments),
    Reproduce(reproduce::Arguments),
    Plot(plot::Arguments),
    Machine(machine::Arguments),
    Scheme(scheme::Arguments),
    Trace(trace::Arguments),
    Synth(synth::Arguments),
    Dram(dram::Arguments),
    Guide(guide::Arguments),
    Completions(completions::Arguments),
}

/// Runs the verb on the command line and returns its exit code: 0 done, 1 a requested check
/// or a cell of a sweep failed, 2 bad usage or bad input, 130 interrupted.
#[must_use]
pub fn main() -> ExitCode {
    let begun = Instant::now();
    let outcome = DefaultMachine::read().map_err(Into::into).and_then(|machine| {
        // Bad usage ends here, with exit code 2 as well.
        let (arguments, uses) = arguments(machine.as_ref());
        interrupt::listen();
        run(arguments.verb).inspect_err(|error| {
            let of_a_model = matches!(error.downcast_ref(), Some(RunError::Spec(_)));
            if let Some(machine) = machine.filter(|_| uses && of_a_model) {
                alert(format_args!("{machine}:"));
            }
        })
    });
    detail(format_args!("ended after {:.2} s", begun.elapsed().as_secs_f64()));
    match outcome {
        Ok(code) => code,
        Err(error) if is_broken_pipe(error.as_ref()) => ExitCode::SUCCESS,
        Err(error) => {
            report(error.as_ref());
            ExitCode::from(2)
        }
    }
}

/// The error; where a machine is missing, with what names one for every command.
fn with_tip(mut error: clap::Error) -> clap::Error {
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(options)) => options.iter().any(|o| o.starts_with("--machine")),
        _ => false,
    };
    if missing && error.kind() == ErrorKind::MissingRequiredArgument {
        let tip = "`gpumodel machine list` names machines; GPUMODEL_MACHINE or the config file sets a default";
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

/// Reads the command line, and whether it uses the default machine; bad usage ends the program.
fn arguments(machine: Option<&DefaultMachine>) -> (Arguments, bool) {
    // Help of a pipe stands whole, as tables do.
    let mut command = Arguments::command().term_width(tables::width().unwrap_or(0));
    if let Some(machine) = machine {
        command = machine.apply(command);
    }
    let matches = command.try_get_matches().unwrap_or_else(|error| with_tip(error).exit());
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let verbosity = match (arguments.quiet, arguments.verbose) {
        (true, _) => Verbosity::Quiet,
        (_, true) => Verbosity::Verbose,
        _ => Verbosity::Usual,
    };
    verbosity.set();
    let uses = machine.is_some_and(|machine| machine.is_used(&matches));
    (arguments, uses)
}

fn run(verb: Verb) -> Outcome {
    match verb {
        Verb::Convert(arguments) => convert::run(arguments),
        Verb::Inspect(arguments) => inspect::run(arguments),
        Verb::Analyze(arguments) => analyze::run(arguments),
        Verb::Compare(arguments) => compare::run(arguments),
        Verb::Sweep(arguments) => sweep::run(&arguments),
        Verb::Merge(arguments) => merge::run(&arguments),
        Verb::Reproduce(arguments) => reproduce::run(&arguments),
        Verb::Plot(arguments) => plot::run(arguments),
        Verb::Machine(arguments) => machine::run(arguments),
        Verb::Scheme(arguments) => scheme::run(arguments),
        Verb::Trace(arguments) => trace::run(arguments),
        Verb::Synth(arguments) => synth::run(arguments),
        Verb::Dram(arguments) => dram::run(arguments),
        Verb::Guide(arguments) => guide::run(&arguments),
        Verb::Completions(arguments) => completions::run(&arguments),
    }
}

fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

fn report(error: &(dyn Error + 'static)) {
    let mut texts = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(inner) = cause {
        texts.push(inner.to_string());
        cause = inner.source();
    }
    // A cause that repeats what it causes and says more stands for both.
    texts.dedup_by(|inner, outer| {
        let repeats = inner.starts_with(outer.as_str());
        if repeats {
            std::mem::swap(inner, outer);
        }
        repeats
    });
    for (place, text) in texts.iter().enumerate() {
        let before = if place == 0 { "error" } else { "  because" };
        alert(format_args!("{before}: {text}"));
    }
    if let Some(how) = interrupt::after_error() {
        alert(how);
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::Arguments;

    /// The examples of a help text as words, without comments, pipes and redirections.
    fn examples(command: &Command) -> Vec<Vec<String>> {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let shown = help.split("EXAMPLES:\n").nth(1).unwrap_or_default().split("\n\n").next();
        let lines = shown.unwrap_or_default().replace("\\\n", "\\");
        // Two spaces lead to a comment.
        let own = |part: &str| part.trim().split("  ").next().unwrap_or_default().to_owned();
        let words = |line: &str| {
            let typed: Vec<String> = line.split('\\').map(own).collect();
            let typed = typed.join(" ");
            let words = typed.split_whitespace().take_while(|word| !matches!(*word, "|" | ">"));
            words.map(|word| word.trim_matches('\'').to_owned()).collect()
        };
        let lines = lines.lines().filter(|line| line.trim().starts_with("gpumodel "));
        lines.map(words).collect()
    }

    #[test]
    fn every_verb_says_what_it_does_and_shows_examples_that_parse() {
        let program = Arguments::command();
        for verb in program.get_subcommands() {
            let about = verb.get_about().expect("a verb says what it does").to_string();
            let opening = about.split([' ', ',']).next().unwrap();
            assert!(opening.starts_with(char::is_uppercase) && opening.ends_with('s'), "{about}");
            let examples = examples(verb);
            let own = examples.iter().any(|words| words[1] == verb.get_name());
            assert!(own, "{}: {examples:?}", verb.get_name());
            for words in examples {
                let parsed = program.clone().try_get_matches_from(&words);
                parsed.unwrap_or_else(|error| panic!("{words:?}: {error}"));
            }
        }
    }
}
