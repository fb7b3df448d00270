//! Workload models: a kernel declared in a file becomes the same instructions
//! as a trace of it.
//!
//! A workload file (its language: `models/workloads/README.md`) is read and compiled
//! once; [`Workload`] then gives launches, CTAs and warps, and a [`WarpStream`]
//! steps through one warp's dynamic instructions: segments, masks and addresses, all
//! pure functions of the file, the scale and the position, so that any warp can
//! be read at any time, in any order, on any thread.
//!
//! [`write_folder`] writes the same instructions as an Accel-Sim trace folder,
//! [`convert_workload`](crate::convert_workload) as a store.
//!
//! TOML -> `description` + `code` (as written) -> `names` (expressions with their names
//! resolved) -> `program` (segments and jumps) -> `kernel` (warps) -> `records` (checked) ->
//! `trace_folder`.
//!
//! Knows nothing of machines or schemes.

mod asynchronous;
mod code;
mod description;
mod distribution;
mod kernel;
mod lane_expression;
mod names;
mod program;
mod records;
mod trace_folder;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpumodel_core::isa::Launch;
use gpumodel_core::memory_copy::MemoryCopy;
use gpumodel_core::models::{ModelFiles, read_text};
use gpumodel_core::toml::{Node, Place, TomlError};
use gpumodel_core::units::{nearest, to_u32};
use thiserror::Error;

use crate::Command;
use description::{Buffer, Description, KernelDescription, describe};

pub use kernel::{Cta, Kernel, WarpStream};
pub(crate) use records::{CtaRecords, Executed};
pub use trace_folder::{Compression, FolderReport, write_folder};
pub(crate) use trace_folder::{cta_bytes, header};

/// Largest workload file.
const BYTES: usize = 1 << 18;
/// Largest scale.
const LARGEST_SCALE: f64 = 1e6;

/// A workload model at one scale, ready to run: its launches and copies in order.
#[derive(Debug)]
pub struct Workload {
    name: String,
    text: String,
    scale: f64,
    description: Description,
    /// Per launch: kernel of the file, and which of its launches.
    launches: Vec<(usize, u32)>,
}

impl Workload {
    /// Loads a workload at scale 1: a name in `models/workloads` (of
    /// `models`, where given and present there, else of the program itself), or
    /// the path of a file, recognised by a `/` or the ending `.toml`.
    ///
    /// # Errors
    /// When no such workload exists, it cannot be read, or its content makes
    /// no sense: the error names file, line, what was found and what was expected.
    pub fn load(
        name_or_path: impl AsRef<OsStr>,
        models: &ModelFiles,
    ) -> Result<Self, WorkloadError> {
        Self::load_scaled(name_or_path, models, 1.0)
    }

    /// Loads a workload with its scaled constants multiplied by `scale`,
    /// rounded to the nearest integer but at least 1.
    ///
    /// # Errors
    /// As [`Workload::load`]; also when the scale is no number above 0 or the
    /// workload has nothing to scale.
    pub fn load_scaled(
        name_or_path: impl AsRef<OsStr>,
        models: &ModelFiles,
        scale: f64,
    ) -> Result<Self, WorkloadError> {
        Self::load_with(name_or_path, models, scale, &[])
    }

    /// Loads a workload as [`Workload::load_scaled`], with `constants` instead of its own values
    /// of those constants, scaled ones included (`scale` multiplies them).
    ///
    /// # Errors
    /// As [`Workload::load_scaled`], and when the file has no constant of such a name.
    pub fn load_with(
        name_or_path: impl AsRef<OsStr>,
        models: &ModelFiles,
        scale: f64,
        constants: &[(&str, i64)],
    ) -> Result<Self, WorkloadError> {
        let typed = name_or_path.as_ref();
        let (file, text) = read(typed, models)?;
        let stem = Path::new(typed).file_stem().unwrap_or_default();
        Self::read(&stem.to_string_lossy(), &file, text, scale, constants)
    }

    /// Reads a workload from the text of a file; `file` names it in errors.
    ///
    /// # Errors
    /// As [`Workload::load_scaled`].
    pub fn parse(name: &str, file: &str, text: String, scale: f64) -> Result<Self, WorkloadError> {
        Self::read(name, file, text, scale, &[])
    }

    /// Reads a workload from the text of a file, with `constants` instead of its own values of
    /// those constants.
    ///
    /// # Errors
    /// As [`Workload::load_scaled`], and when the file has no constant of such a name.
    pub fn with_constants(
        name: &str,
        file: &str,
        text: String,
        constants: &[(&str, i64)],
    ) -> Result<Self, WorkloadError> {
        Self::read(name, file, text, 1.0, constants)
    }

    fn read(
        name: &str,
        file: &str,
        text: String,
        scale: f64,
        given: &[(&str, i64)],
    ) -> Result<Self, WorkloadError> {
        let wrong = |what| WorkloadError::Invalid { place: Place::new(file, 0), what };
        if !(scale.is_finite() && scale > 0.0 && scale <= LARGEST_SCALE) {
            let most = LARGEST_SCALE;
            return Err(wrong(format!(
                "scale {scale:?}, expected a number above 0, at most {most}"
            )));
        }
        if text.len() > BYTES {
            let bytes = text.len();
            return Err(wrong(format!("the file has {bytes} bytes, expected at most {BYTES}")));
        }
        let description = describe(&Node::read(file, &text)?, scale, given)?;
        if scale.to_bits() != 1.0_f64.to_bits() && description.scaled.is_empty() {
            let what = "the workload has no `[scaled]` constants, so only scale 1 is possible";
            return Err(wrong(what.to_owned()));
        }
        let mut launches = Vec::new();
        for round in 0..description.rounds {
            for (index, kernel) in description.kernels.iter().enumerate() {
                let first = round * kernel.launches;
                launches.extend((first..first + kernel.launches).map(|number| (index, number)));
            }
        }
        Ok(Self { name: name.to_owned(), text, scale, description, launches })
    }

    /// The file's stem.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text of its file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A remark where a smaller scale would change nothing; `None` at scale 1.
    #[must_use]
    pub fn remark(&self) -> Option<String> {
        let least = self.scale < 1.0 && self.description.scaled.iter().all(|&size| size == 1);
        let words = "every scaled constant is at its least, 1; a smaller scale changes nothing";
        least.then(|| format!("scale {}: {words}", self.scale))
    }

    /// One line: what it computes.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description.description
    }

    /// What a machine should find hard about it.
    #[must_use]
    pub fn behaviour(&self) -> &str {
        &self.description.behaviour
    }

    /// Where the workload's numbers are from.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.description.source
    }

    /// The seed of its random numbers.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.description.seed
    }

    /// Copies and launches in order.
    pub fn commands(&self) -> impl Iterator<Item = Command> + '_ {
        let copies = self.description.buffers.iter().filter(|buffer| buffer.copied);
        let copies =
            copies.map(|buffer| Command::Copy(MemoryCopy::to_device(buffer.base, buffer.bytes)));
        copies.chain((0..self.launches.len()).map(Command::Kernel))
    }

    /// Launches.
    #[must_use]
    pub fn kernel_count(&self) -> usize {
        self.launches.len()
    }

    /// A launch.
    ///
    /// # Panics
    /// When the workload has no launch of that index.
    #[must_use]
    pub fn kernel(&self, index: usize) -> Kernel {
        let (kernel, number) = self.launches[index];
        let KernelDescription { launch, program, .. } = &self.description.kernels[kernel];
        let launch = Launch { id: to_u32(index + 1), ..launch.clone() };
        Kernel::new(launch, Arc::clone(program), number)
    }

    /// The kernel of the file that a launch is of.
    pub(crate) fn kernel_of(&self, launch: usize) -> usize {
        self.launches[launch].0
    }

    /// Per kernel of the file its first launch.
    pub(crate) fn first_launches(&self) -> Vec<usize> {
        let first = |kernel| self.launches.iter().position(|launch| launch.0 == kernel);
        (0..self.description.kernels.len()).filter_map(first).collect()
    }

    /// Why `width` bytes at `address` do not lie in the buffer at `base`, or in no buffer
    /// where `base` is `None`; `None` where they do.
    fn outside(&self, base: Option<u64>, address: u64, width: u64) -> Option<String> {
        let buffers = &self.description.buffers;
        let within = |buffer: &&Buffer| {
            address >= buffer.base && address.saturating_add(width) <= buffer.base + buffer.bytes
        };
        let named = base.and_then(|base| buffers.iter().find(|buffer| buffer.base == base));
        if named.is_some_and(|named| within(&named)) {
            return None;
        }
        let found = buffers.iter().find(within);
        let Some(named) = named else {
            return if found.is_some() { None } else { Some(self.nowhere(address, width)) };
        };
        let other = found.map_or_else(String::new, |other| format!(", but in `{}`", other.name));
        Some(format!(
            "{width} bytes at {address:#x} do not lie in `{}`, {} bytes from {:#x}{other}",
            named.name, named.bytes, named.base
        ))
    }

    fn nowhere(&self, address: u64, width: u64) -> String {
        let buffers = &self.description.buffers;
        let near = buffers.iter().min_by_key(|buffer| {
            let last = buffer.base + buffer.bytes - 1;
            buffer.base.saturating_sub(address).max(address.saturating_sub(last))
        });
        let near = near.map_or_else(String::new, |buffer| {
            format!(
                "; the nearest is `{}`, {} bytes from {:#x}",
                buffer.name, buffer.bytes, buffer.base
            )
        });
        format!("{width} bytes at {address:#x} lie in no buffer{near}")
    }
}

/// The name for errors and the text of a workload.
fn read(typed: &OsStr, models: &ModelFiles) -> Result<(String, String), WorkloadError> {
    let name_or_path = &*typed.to_string_lossy();
    if name_or_path.contains('/') || name_or_path.ends_with(".toml") {
        let text = read_text(Path::new(typed)).map_err(TomlError::from)?;
        return Ok((name_or_path.to_owned(), text));
    }
    if let Some(found) = models.named(FOLDER, name_or_path) {
        return Ok((found.origin.clone(), found.text.clone().into_owned()));
    }
    let hint = hint(name_or_path, &names(models));
    Err(WorkloadError::Unknown { name: name_or_path.to_owned(), hint })
}

/// The folder of workloads under `models/`.
const FOLDER: &str = "workloads";

/// The names of the workloads of `models`, sorted.
pub fn names(models: &ModelFiles) -> Vec<&str> {
    models.names(FOLDER)
}

/// Most names that a hint gives.
const HINTS: usize = 5;

/// Names that `typed` may mean, with a scale where a number follows the name, and where all
/// of them are listed.
fn hint(typed: &str, known: &[&str]) -> String {
    let (name, behind) = typed.split_once(':').unwrap_or((typed, ""));
    let number = behind.rsplit('=').next().filter(|text| text.parse::<f64>().is_ok());
    let scale = number.map_or_else(String::new, |number| format!(":scale={number}"));
    let small = name.to_lowercase();
    let nearest = nearest(name, known.iter().copied());
    let exact = nearest.as_deref() == Some(name);
    let within = |known: &&str| !exact && small.len() > 1 && known.contains(&small);
    let others =
        known.iter().copied().filter(within).filter(|known| nearest.as_deref() != Some(*known));
    let others = others.map(str::to_owned);
    let names = nearest.iter().cloned().chain(others).take(HINTS);
    let names: Vec<String> = names.map(|name| name + &scale).collect();
    let meant = match &names[..] {
        [] => String::new(),
        names => format!("did you mean `{}`? ", names.join("`, `")),
    };
    format!(
        "{meant}`gpumodel synth --list` names all; a file is named by a path with `/` or `.toml`"
    )
}

/// A workload that cannot be loaded, run or written, in words for its author.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// A name that is neither known nor a path.
    #[error("no workload `{name}`: {hint}")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The nearest name, and what is known.
        hint: String,
    },
    /// The file cannot be read, is not TOML, or has other keys or values than a workload.
    #[error(transparent)]
    Toml(Box<TomlError>),
    /// The file says something that no workload can mean, or that its scale does not allow.
    #[error("{place}: {what}")]
    Invalid {
        /// Where.
        place: Place,
        /// What was found and what was expected.
        what: String,
    },
    /// The trace folder cannot be written.
    #[error("cannot write the trace folder {}", path.display())]
    Write {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl From<TomlError> for WorkloadError {
    fn from(error: TomlError) -> Self {
        Self::Toml(Box::new(error))
    }
}

impl WorkloadError {
    /// [`WorkloadError::Invalid`].
    fn invalid(place: &Place, what: impl Into<String>) -> Self {
        Self::Invalid { place: place.clone(), what: what.into() }
    }

    /// [`WorkloadError::Invalid`] at `place`, of what is wrong there.
    fn at(place: &Place) -> impl Fn(String) -> Self {
        |what| Self::invalid(place, what)
    }
}
