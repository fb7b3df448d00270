//! `gpumodel sweep --engine slurm`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gpumodel_core::units::to_usize;
use gpumodel_report::table;

use super::{
    Arguments, Outcome, command, report, shell_word, stdout, stop_gracefully, stopped,
    with_sweep_bars,
};
use crate::cli::options::named_cache;
use crate::cli::tables::width;
use crate::{SlurmOutcome, SlurmRequest, SweepError, SweepRequest, slurm_sweep};

/// Options of `--engine slurm`.
#[derive(Debug, clap::Args)]
pub(super) struct SlurmArguments {
    /// Writes scripts into DIR/slurm and submits nothing
    #[arg(long)]
    print: bool,
    /// Number of tasks, of equal length by the estimate [default: of about half an hour each]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    tasks: Option<u32>,
    /// Most tasks of one array that run at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    at_once: Option<u32>,
    /// Cells whose task ran out of memory request N times its memory [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    mem_factor: Option<u32>,
    /// Cells whose task ran out of time request N times its time [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    time_factor: Option<u32>,
}

/// The default of both factors.
const FACTOR: u32 = 2;

impl SlurmArguments {
    /// Refuses these options without `--engine slurm`.
    pub(super) fn refuse(&self) -> Result<(), String> {
        let typed = [
            ("--print", self.print),
            ("--tasks", self.tasks.is_some()),
            ("--at-once", self.at_once.is_some()),
            ("--mem-factor", self.mem_factor.is_some()),
            ("--time-factor", self.time_factor.is_some()),
        ];
        match typed.iter().find(|(_, typed)| *typed) {
            Some((option, _)) => Err(format!("{option} is for Slurm jobs: add --engine slurm")),
            None => Ok(()),
        }
    }
}

/// Writes scripts for Slurm and submits them.
pub(super) fn run(arguments: &Arguments, request: &SweepRequest) -> Outcome {
    let slurm = slurm_request(arguments, request)?;
    stop_gracefully();
    match with_sweep_bars(|watch| slurm_sweep(request, &slurm, watch)) {
        Ok(end) if end.submitted.0 == 0 => report(arguments, end.cells),
        Ok(end) => submitted(arguments, &end),
        Err(error @ SweepError::Stopped { .. }) => stopped(arguments, &error),
        Err(error) => Err(error.into()),
    }
}

/// Reports what was missing and why, what was submitted, and how to continue.
fn submitted(arguments: &Arguments, end: &SlurmOutcome) -> Outcome {
    let SlurmOutcome { cells, lost, submitted: (missing, tasks), jobs, name, script, .. } = end;
    let (out, mut stdout) = (arguments.out.display(), stdout());
    let (done, failed, left) = (cells.done, cells.failed, cells.left);
    writeln!(stdout, "{out}: {done} cells done, {failed} failed, {left} left")?;
    stdout.write_all(table::failures(&end.failed, width()).as_bytes())?;
    for line in lost {
        writeln!(stdout, "cells {line}")?;
    }
    if let Some(script) = script {
        writeln!(stdout, "{missing} cells in {tasks} tasks\nsubmit: sh {}", shell_word(script))?;
        return Ok(ExitCode::SUCCESS);
    }
    let numbers: Vec<String> = jobs.iter().map(u64::to_string).collect();
    writeln!(
        stdout,
        "submitted: {missing} cells in {tasks} tasks, and the tables after them: jobs {}\n\
         status: squeue --name={name}\ncancel: scancel --name={name}\n\
         when they have ended, submit what is missing: {}",
        numbers.join(", "),
        command(arguments)
    )?;
    Ok(ExitCode::SUCCESS)
}

/// The request, with paths that are valid on every node.
fn slurm_request(arguments: &Arguments, request: &SweepRequest) -> Result<SlurmRequest, io::Error> {
    let typed = &arguments.slurm;
    Ok(SlurmRequest {
        program: in_script(std::env::current_exe()?)?,
        plan: in_script(real(&arguments.plan)?)?,
        out: in_script(std::path::absolute(&arguments.out)?)?,
        extra_arguments: extra_arguments(arguments)?,
        memory_bytes: request.memory_bytes,
        tasks: typed.tasks.map(to_usize),
        threads: arguments.threads.map_or(1, usize::from),
        at_once: typed.at_once.map(to_usize),
        mem_factor: typed.mem_factor.unwrap_or(FACTOR).into(),
        time_factor: typed.time_factor.unwrap_or(FACTOR).into(),
        print: typed.print,
    })
}

/// Further arguments of every job: the options that change its work.
fn extra_arguments(arguments: &Arguments) -> Result<Vec<String>, io::Error> {
    let mut extra = Vec::new();
    if arguments.mixed_versions {
        extra.push(String::from("--mixed-versions"));
    }
    if let Some(models) = &arguments.models.folder {
        let models = in_script(real(models)?)?;
        extra.extend([String::from("--models"), models.display().to_string()]);
    }
    if let Some(cache) = named_cache() {
        // Not every site passes the environment on to jobs.
        let cache = in_script(std::path::absolute(cache)?)?;
        extra.extend([String::from("--cache"), cache.display().to_string()]);
    }
    Ok(extra)
}

/// The absolute path, also of a missing file, which is refused when it is read.
fn real(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize().or_else(|_| std::path::absolute(path))
}

/// Refuses a path that cannot stand in a script or in a directive of Slurm.
fn in_script(path: PathBuf) -> Result<PathBuf, io::Error> {
    let holds = |text: &str| !text.chars().any(|c| c.is_control() || c == '\\');
    if path.to_str().is_some_and(holds) {
        return Ok(path);
    }
    let why = "Slurm's scripts cannot name a path with control characters, backslashes or bytes \
               that are no UTF-8; choose another one";
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {why}", path.display())))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::in_script;

    #[test]
    fn paths_that_would_be_other_words_in_a_script_are_refused() {
        for fine in ["/a b/it's", "/100%/\"x\"", "/ä"] {
            assert_eq!(in_script(PathBuf::from(fine)).unwrap(), PathBuf::from(fine));
        }
        for invalid in ["/a\nb", "/a\\b", "/a\u{7f}"] {
            let said = in_script(PathBuf::from(invalid)).unwrap_err().to_string();
            assert!(said.contains("choose another one"), "{said}");
        }
    }
}
