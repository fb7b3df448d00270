//! Where results and messages go, and the check that an output replaces no input; trace folders as
//! outputs: one that the program wrote before is replaced whole.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Display;
use std::fs;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Serialize;

use gpumodel_core::units::{FolderPurpose, OpenStream, WholeFile, is_stream};
use gpumodel_trace::Store;

use super::Outcome;

/// Standard output; its errors name it.
pub(super) struct Stdout(StdoutLock<'static>);

/// Locks standard output.
pub(super) fn stdout() -> Stdout {
    Stdout(io::stdout().lock())
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(|error| named(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(|error| named(&error))
    }
}

/// The same error with the name of the output; its kind still identifies closed pipes.
fn named(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))
}

/// How much goes to standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verbosity {
    /// Errors and warnings.
    Quiet,
    /// Progress and messages, too.
    #[default]
    Usual,
    /// Details, too.
    Verbose,
}

static VERBOSITY: OnceLock<Verbosity> = OnceLock::new();

impl Verbosity {
    /// Sets it for the whole command; later calls change nothing.
    pub(super) fn set(self) {
        let _ = VERBOSITY.set(self);
    }

    /// That of the command.
    pub(super) fn get() -> Self {
        VERBOSITY.get().copied().unwrap_or_default()
    }
}

/// Writes an error or a warning to standard error.
#[allow(clippy::print_stderr, reason = "messages go to standard error")]
pub(super) fn alert(line: impl Display) {
    eprintln!("{line}");
}

/// Writes a message to standard error, unless the command is quiet.
pub(super) fn message(line: impl Display) {
    if Verbosity::get() >= Verbosity::Usual {
        alert(line);
    }
}

/// Writes a detail to standard error if the command is verbose.
pub(super) fn detail(line: impl Display) {
    if Verbosity::get() == Verbosity::Verbose {
        alert(line);
    }
}

/// Whether an output goes to standard output, under any of its names.
pub(super) fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// Refuses a file that cannot be written, before long work begins.
pub(super) fn check_file(path: &Path) -> io::Result<()> {
    if is_stdout(path) || is_stream(path) {
        return Ok(());
    }
    WholeFile::create(path).map(drop)
}

/// Writes `text` to `path`, which may be standard output.
pub(super) fn write_text(path: &Path, text: &str) -> io::Result<()> {
    write_bytes(path, text.as_bytes())
}

/// Writes `bytes` to `path`, which may be standard output.
pub(super) fn write_bytes(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if is_stdout(path) {
        return stdout().write_all(bytes);
    }
    WholeFile::write(path, bytes)
}

/// An output that is written piece by piece.
pub(super) enum Output {
    /// A file, which has its name once it is whole.
    File(Box<WholeFile>),
    /// Standard output, a device or a pipe.
    Stream(BufWriter<Box<dyn Write>>),
}

impl Output {
    /// Opens the output at `path`, which may be standard output, a device or a pipe.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        if is_stdout(path) {
            return Ok(Self::Stream(BufWriter::new(Box::new(stdout()))));
        }
        if is_stream(path) {
            return Ok(Self::Stream(BufWriter::new(Box::new(OpenStream::open(path)?))));
        }
        Ok(Self::File(Box::new(WholeFile::create(path)?)))
    }

    /// Writes what is buffered, and gives a file its name.
    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            Self::File(file) => file.finish(),
            Self::Stream(mut stream) => stream.flush(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::Stream(stream) => stream.flush(),
        }
    }
}

/// Writes a JSON document, indented, as [`write_text`] does.
pub(super) fn write_json(path: &Path, document: &impl Serialize) -> io::Result<()> {
    write_text(path, &(serde_json::to_string_pretty(document)? + "\n"))
}

/// Refuses outputs that would replace a store, one of `inputs`, a file in a folder among
/// them, or each other. Each output comes with its option.
///
/// Standard output (`-`), devices and pipes replace nothing. An input may be a name instead
/// of a file.
pub(super) fn check_overwrites(
    inputs: &[PathBuf],
    outputs: &[(&str, Option<&Path>)],
) -> Result<(), String> {
    let read: Vec<PathBuf> = inputs.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let mut written: Vec<(&str, PathBuf)> = Vec::new();
    for &(option, path) in outputs {
        let Some(path) = path.filter(|path| !is_stdout(path)) else { continue };
        let Some(real) = real(path) else { continue };
        let shown = path.display();
        if real.is_file() && Store::recognise(&real) {
            return Err(format!("{shown}: is a store; give the output another name"));
        }
        if real.is_file() && read.iter().any(|input| real.starts_with(input)) {
            let why = format!("is read by this command, and {option} would replace it");
            return Err(format!("{shown}: {why}; give the output another name"));
        }
        if let Some((other, _)) = written.iter().find(|(_, known)| *known == real) {
            let why = format!("would be written by {other} and by {option}");
            return Err(format!("{shown}: {why}; give one of them another name"));
        }
        written.push((option, real));
    }
    Ok(())
}

/// The file that an output at `path` replaces or creates; `None` if `path` is something other
/// than a file, or its folder does not exist.
fn real(path: &Path) -> Option<PathBuf> {
    if let Ok(existing) = path.canonicalize() {
        return existing.is_file().then_some(existing);
    }
    Some(folder_of(path).canonicalize().ok()?.join(path.file_name()?))
}

/// The folder of an output at `path`.
pub(super) fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// The list of a trace folder.
const LIST: &str = "kernelslist.g";

/// Lets `write` write a trace folder, and removes the traces that an earlier one of ours there
/// had and this one has not.
pub(super) fn replace_traces<T, E: Into<Box<dyn Error + Send + Sync>>>(
    folder: &Path,
    write: impl FnOnce() -> Result<T, E>,
) -> Outcome<T> {
    let ours = FolderPurpose::Traces.owns(folder);
    let before = if ours { listed(folder) } else { BTreeSet::new() };
    let written = write().map_err(Into::into)?;
    for name in before.difference(&listed(folder)) {
        // What is not there need not be removed.
        let _ = fs::remove_file(folder.join(name));
    }
    FolderPurpose::Traces.mark(folder)?;
    Ok(written)
}

/// The trace files of the folder's own that its list names.
fn listed(folder: &Path) -> BTreeSet<String> {
    let list = fs::read_to_string(folder.join(LIST)).unwrap_or_default();
    let names = list.lines().filter(|line| line.starts_with("kernel-") && !line.contains('/'));
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::check_overwrites;

    #[test]
    fn outputs_that_are_inputs_under_any_name_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("cells")).unwrap();
        for name in ["a.json", "b.json", "cells/k.json"] {
            fs::write(at(name), "mine").unwrap();
        }
        let inputs = [at("a.json"), at("cells"), PathBuf::from("v100")];
        let said = |name: &str| check_overwrites(&inputs, &[("--json", Some(at(name).as_path()))]);
        for name in ["a.json", "cells/../a.json", "cells/k.json"] {
            let error = said(name).unwrap_err();
            assert!(error.contains("and --json would replace it"), "{error}");
            assert!(error.starts_with(at(name).to_str().unwrap()), "{error}");
        }
        for name in ["b.json", "new.json", "cells/new.json", "nowhere/a.json"] {
            assert_eq!(said(name), Ok(()), "{name}");
        }
        assert_eq!(
            check_overwrites(&inputs, &[("--json", Some(Path::new("-"))), ("-o", None)]),
            Ok(())
        );
    }

    #[test]
    fn one_file_is_not_two_outputs() {
        let folder = tempfile::tempdir().unwrap();
        let (one, same) = (folder.path().join("x"), folder.path().join("./x"));
        let outputs = [("-o", Some(one.as_path())), ("--csv", Some(same.as_path()))];
        let error = check_overwrites(&[], &outputs).unwrap_err();
        assert!(error.contains("by -o and by --csv; give one of them another"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_what_they_are_and_devices_replace_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (input, link) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&input, "mine").unwrap();
        std::os::unix::fs::symlink(&input, &link).unwrap();
        assert!(check_overwrites(&[input], &[("--json", Some(link.as_path()))]).is_err());
        let null = Path::new("/dev/null");
        let outputs = [("-o", Some(null)), ("--json", Some(null))];
        assert_eq!(check_overwrites(&[null.to_path_buf()], &outputs), Ok(()));
    }
}
