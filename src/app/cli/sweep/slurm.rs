//! `gpumodel sweep --engine slurm`.

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use crate::{
    SlurmRequest, SweepError, SweepRequest, planned, slurm_name, slurm_scripts, slurm_sweep,
};
use gpumodel_core::units::to_usize;

use super::super::Outcome;
use super::super::bar::with_sweep_bars;
use super::super::interrupt::{INTERRUPTED, ask_first_with};
use super::super::output::stdout;
use super::super::place::named_cache;
use super::{Arguments, again, stopped, tell, typed};

/// What Slurm is asked for.
#[derive(Debug, clap::Args)]
pub(super) struct SlurmArguments {
    /// Writes scripts into DIR/slurm and submits nothing
    #[arg(long)]
    print: bool,
    /// Cells of a task [default: about half an hour's by the estimate]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    chunk: Option<u32>,
    /// Tasks of one array at most: the cluster's MaxArraySize less one [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    array_limit: Option<u32>,
    /// Tasks of one array at once at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    at_once: Option<u32>,
    /// Seconds between two looks at the queue [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    poll: Option<u32>,
    /// How often a cell whose job was lost is submitted again before it has failed [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1000))]
    resubmit: Option<u32>,
}

/// What is meant where nothing was typed.
const ARRAY_LIMIT: u32 = 1000;
const POLL: u32 = 10;
const RESUBMIT: u32 = 3;

impl SlurmArguments {
    /// Refuses what was typed where Slurm does not run the cells: it would mean nothing.
    pub(super) fn refuse(&self) -> Result<(), String> {
        let typed = [
            ("--print", self.print),
            ("--chunk", self.chunk.is_some()),
            ("--array-limit", self.array_limit.is_some()),
            ("--at-once", self.at_once.is_some()),
            ("--poll", self.poll.is_some()),
            ("--resubmit", self.resubmit.is_some()),
        ];
        match typed.iter().find(|(_, typed)| *typed) {
            Some((option, _)) => Err(format!("{option} is for jobs of Slurm: add --engine slurm")),
            None => Ok(()),
        }
    }
}

/// Writes scripts for Slurm, or submits and watches them.
pub(super) fn run(arguments: &Arguments, request: &SweepRequest) -> Outcome {
    let slurm = wanted(arguments, request)?;
    if arguments.slurm.print {
        let estimate = with_sweep_bars(|watch| planned(request, 1, watch))?;
        let submit = slurm_scripts(&slurm, &estimate)?;
        writeln!(stdout(), "submit: sh {}", typed(&submit))?;
        return Ok(ExitCode::SUCCESS);
    }
    let later = later(arguments, &slurm.out);
    let asked = "interrupted: the watch ends, its jobs go on";
    ask_first_with(asked.to_owned(), format!("{asked}\n{later}"));
    match with_sweep_bars(|watch| slurm_sweep(request, &slurm, watch)) {
        Ok(end) if end.living > 0 => {
            let (cells, out, jobs) = (end.cells, arguments.out.display(), end.living);
            let (done, failed, left) = (cells.done, cells.failed, cells.left);
            let mut stdout = stdout();
            writeln!(stdout, "{out}: {done} cells done, {failed} failed, {left} left")?;
            writeln!(stdout, "not watched any more: {jobs} jobs\n{later}")?;
            Ok(ExitCode::from(INTERRUPTED))
        }
        Ok(end) => tell(arguments, end.cells),
        Err(error @ SweepError::Stopped { .. }) => stopped(arguments, &error),
        Err(error) => Err(blamed(error)),
    }
}

/// What Slurm says of an array that is larger than the cluster allows.
const TOO_LARGE: &str = "Invalid job array specification";

/// The error, with the option that it is about.
fn blamed(error: SweepError) -> Box<dyn Error + Send + Sync> {
    let said = error.to_string();
    if !said.contains(TOO_LARGE) {
        return error.into();
    }
    let limit = "MaxArraySize less one: scontrol show config | grep MaxArraySize";
    format!("{said}; give --array-limit what the cluster allows, {limit}").into()
}

/// What can be done about jobs that nobody watches.
fn later(arguments: &Arguments, out: &Path) -> String {
    let (again, name) = (again(arguments), slurm_name(out));
    format!(
        "watch: {again} --resume\n\
         look: squeue --name={name}\ncancel: scancel --name={name}"
    )
}

/// What was typed, as nodes understand it.
fn wanted(arguments: &Arguments, request: &SweepRequest) -> Result<SlurmRequest, io::Error> {
    let typed = &arguments.slurm;
    Ok(SlurmRequest {
        program: in_script(std::env::current_exe()?)?,
        plan: in_script(real(&arguments.plan)?)?,
        out: in_script(std::path::absolute(&arguments.out)?)?,
        words: words(arguments)?,
        array_words: arguments.retry_failed.then(|| "--retry-failed".into()).into_iter().collect(),
        memory_bytes: request.memory_bytes,
        part: request.part.is_some(),
        chunk: typed.chunk.map(to_usize),
        threads: arguments.threads.map_or(1, usize::from),
        array: to_usize(typed.array_limit.unwrap_or(ARRAY_LIMIT)),
        at_once: typed.at_once.map(to_usize),
        poll: Duration::from_secs(typed.poll.unwrap_or(POLL).into()),
        resubmit: typed.resubmit.unwrap_or(RESUBMIT),
    })
}

/// What every job is told as well: what changes its work, as it was typed here.
fn words(arguments: &Arguments) -> Result<Vec<String>, io::Error> {
    let mut words = vec![String::from("--stale-after"), arguments.stale_after.to_string()];
    if arguments.mixed_versions {
        words.push(String::from("--mixed-versions"));
    }
    if let Some(memory) = arguments.memory {
        words.extend([String::from("--memory"), memory.0.to_string()]);
    }
    if let Some(models) = &arguments.models {
        let models = in_script(real(models)?)?;
        words.extend([String::from("--models"), models.display().to_string()]);
    }
    if let Some(cache) = named_cache() {
        // Jobs have the variables of who submits them only where the site does not say otherwise.
        let cache = in_script(std::path::absolute(cache)?)?;
        words.extend([String::from("--cache"), cache.display().to_string()]);
    }
    Ok(words)
}

/// The path from the root on; that of what is not there is refused by who reads it.
fn real(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize().or_else(|_| std::path::absolute(path))
}

/// A path that a script and Slurm's own words in it can hold.
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

    use super::{blamed, in_script};
    use crate::{SlurmError, SweepError};

    #[test]
    fn an_array_that_is_too_large_is_blamed_on_its_option() {
        let refused = |said: &str| {
            let (command, said) = ("sbatch".to_owned(), said.to_owned());
            blamed(SweepError::Slurm(SlurmError::Refused { command, said })).to_string()
        };
        let said = refused("Batch job submission failed: Invalid job array specification");
        assert!(
            said.starts_with("sbatch: Batch job submission failed: Invalid job array"),
            "{said}"
        );
        assert!(said.contains("--array-limit") && said.contains("MaxArraySize less one"), "{said}");
        assert_eq!(
            refused("Invalid partition name specified"),
            "sbatch: Invalid partition name specified"
        );
    }

    #[test]
    fn paths_that_would_be_other_words_in_a_script_are_refused() {
        for fine in ["/a b/it's", "/100%/\"x\"", "/ä"] {
            assert_eq!(in_script(PathBuf::from(fine)).unwrap(), PathBuf::from(fine));
        }
        for wrong in ["/a\nb", "/a\\b", "/a\u{7f}"] {
            let said = in_script(PathBuf::from(wrong)).unwrap_err().to_string();
            assert!(said.contains("choose another one"), "{said}");
        }
    }
}
