//! Does any value of `--scheme`, `--until`, `--kernels`, `--set`, … parse or give an
//! error, and parse to the same when it is printed and read again?

#![no_main]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use gpumodel::app::{AppName, DramJob, Ending};
use gpumodel::policy::Choice;
use gpumodel::policy::queue::QueueChoice;
use gpumodel::report::results::Launches;
use gpumodel::trace::{CtaChoice, KernelIds, NamePattern};
use gpumodel_fuzz::{split, text};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = split(bytes) else { return };
    let typed = text(rest);
    match kind % 10 {
        0 => scheme(typed),
        1 => queue(typed),
        2 => shown::<KernelIds>(typed),
        3 => shown::<CtaChoice>(typed),
        4 => pattern(typed),
        5 => shown::<Ending>(typed),
        6 => launches(typed),
        7 => drop(AppName::parse(typed)),
        8 => memory(typed),
        _ => machine(typed),
    }
});

fn said(error: &dyn Display) {
    assert!(!error.to_string().trim().is_empty(), "an error says something");
}

/// Printed values parse to the same.
fn shown<T: FromStr<Err = String> + Display + PartialEq + Debug>(typed: &str) {
    match typed.parse::<T>() {
        Ok(found) => assert_eq!(found.to_string().parse::<T>().as_ref(), Ok(&found)),
        Err(error) => said(&error),
    }
}

fn pattern(typed: &str) {
    let (pattern, name) = typed.split_once('\n').unwrap_or((typed, "_Z6kernelPfi"));
    match pattern.parse::<NamePattern>() {
        Ok(pattern) => drop(pattern.matches(name)),
        Err(error) => said(&error),
    }
}

fn launches(typed: &str) {
    match Launches::parse(typed) {
        Ok(found) => assert_eq!(Launches::parse(&found.to_string()), Ok(found)),
        Err(error) => said(&error),
    }
}

fn scheme(typed: &str) {
    match Choice::parse(typed) {
        Ok(choice) => {
            let settings = choice.settings().iter();
            let words: String = settings.map(|(key, value)| format!(":{key}={value}")).collect();
            let again = Choice::parse(&format!("{}{words}", choice.row().name));
            let again = again.expect("what a choice says of itself");
            assert!(again.settings().iter().eq(choice.settings().iter()), "{typed}");
            drop(choice.make());
        }
        Err(error) => said(&error),
    }
}

fn queue(typed: &str) {
    match QueueChoice::parse(typed) {
        Ok(choice) => drop(choice.or("freed", "idle").make()),
        Err(error) => said(&error),
    }
}

fn memory(typed: &str) {
    let (spec, changes) = typed.split_once(' ').unwrap_or((typed, ""));
    if spec.contains(['/', '.']) {
        return;
    }
    let changes: Vec<String> = changes.split(' ').map(str::to_owned).collect();
    if let Err(error) = DramJob::new(spec, &gpumodel::models(), &changes) {
        said(&error);
    }
}

fn machine(typed: &str) {
    let mut words = typed.split(' ');
    let name = words.next().unwrap_or_default();
    if name.contains(['/', '.']) {
        return;
    }
    let pair = |word: &str| word.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
    let changes: Vec<(String, String)> = words.filter_map(pair).collect();
    if let Err(error) = gpumodel::models().machine(name, &changes) {
        said(&error);
    }
}
