//! What to convert, in order: command lists, folders and single files.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::error::TraceError;
use gpumodel_core::memory_copy::{CopyDirection, MemoryCopy};
use gpumodel_core::units::{counted, quoted, to_u64};

use super::FORMATS;
use super::source::Source;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A copy.
    Copy(MemoryCopy),
    /// A kernel's trace file.
    Trace(PathBuf),
}

/// The steps of all inputs, and what the user should know about them.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) warnings: Vec<String>,
    /// The command lists that were followed.
    pub(super) lists: Vec<PathBuf>,
}

/// What the names of command lists begin with.
pub(super) const LIST: &str = "kernelslist";

/// The folder in which Accel-Sim's scripts keep the traces of a run.
pub(super) const FOLDER: &str = "traces";

/// Most bytes of a command list's text: some millions of commands.
const LONGEST_LIST: u64 = 1 << 26;

impl Plan {
    /// The steps of `inputs`: trace folders, command lists, trace files.
    ///
    /// # Errors
    /// When an input does not exist, holds no trace, or is a list with a line
    /// that cannot be followed.
    pub(super) fn new(inputs: &[PathBuf]) -> Result<Self, TraceError> {
        let mut plan = Self::default();
        for input in inputs {
            let kind = fs::metadata(input).map_err(|e| TraceError::io("read", input, e))?;
            if kind.is_dir() {
                plan.folder(input)?;
            } else if !kind.is_file() {
                let text = "a pipe or device is no trace: write it to a file first";
                return Err(TraceError::Request(format!("{}: {text}", input.display())));
            } else if is_list(input)? {
                plan.list(input)?;
            } else {
                plan.steps.push(Step::Trace(input.clone()));
            }
        }
        plan.prefer_forms();
        plan.repeated();
        Ok(plan)
    }

    /// The trace files, in order.
    pub(super) fn traces(&self) -> impl Iterator<Item = &PathBuf> {
        self.steps.iter().filter_map(|step| match step {
            Step::Trace(path) => Some(path),
            Step::Copy(_) => None,
        })
    }

    /// A folder: its processed lists, else its raw lists, else its traces.
    fn folder(&mut self, folder: &Path) -> Result<(), TraceError> {
        let mut names = Vec::new();
        let wrong = |e| TraceError::io("read", folder, e);
        for entry in fs::read_dir(folder).map_err(wrong)? {
            names.push(entry.map_err(wrong)?.file_name());
        }
        names.sort_by_cached_key(|name| natural(&name.to_string_lossy()));
        let chosen = self.lists_with_traces(folder, &names);
        if chosen.len() > 1 {
            let names: Vec<_> = chosen.iter().map(|name| name.to_string_lossy()).collect();
            self.warnings.push(format!(
                "{}: {} command lists, each of a context of its own, one after another: {}",
                folder.display(),
                chosen.len(),
                names.join(", ")
            ));
        }
        let is_trace = |name: &&OsString| form(&name.to_string_lossy()).is_some();
        let traces: Vec<&OsString> = names.iter().filter(is_trace).collect();
        let before = self.steps.len();
        for list in &chosen {
            self.list(&folder.join(list))?;
        }
        if chosen.is_empty() {
            self.steps.extend(traces.iter().map(|name| Step::Trace(folder.join(name))));
            if traces.is_empty() && holds_only_traces(folder) {
                return self.folder(&folder.join(FOLDER));
            }
            if traces.is_empty() {
                return Err(TraceError::Request(without_traces(folder, &names)));
            }
        } else {
            self.unlisted(folder, &traces, before);
        }
        Ok(())
    }

    /// The processed lists of a folder, or the raw ones where those name no trace: a
    /// post-processing that failed leaves an empty one.
    fn lists_with_traces<'a>(&mut self, folder: &Path, names: &'a [OsString]) -> Vec<&'a OsString> {
        let (processed, raw) = lists(names);
        if processed.is_empty() || raw.is_empty() {
            return if processed.is_empty() { raw } else { processed };
        }
        for list in &processed {
            if !fs::read(folder.join(list)).is_ok_and(|text| text.trim_ascii().is_empty()) {
                return processed;
            }
        }
        self.warnings.push(format!(
            "{}: {} is empty, as a failed post-processing leaves it; the raw list is taken",
            folder.display(),
            processed[0].to_string_lossy()
        ));
        raw
    }

    /// Warns once of traces in `folder` that no list named.
    fn unlisted(&mut self, folder: &Path, traces: &[&OsString], before: usize) {
        let named: BTreeSet<PathBuf> = self.steps[before..].iter().filter_map(kernel_key).collect();
        let stray = |name: &Cow<'_, str>| !named.contains(folder.join(stem(name)).as_path());
        let left: Vec<_> = traces.iter().map(|name| name.to_string_lossy()).filter(stray).collect();
        if let Some(first) = left.first() {
            let count = counted(to_u64(left.len()), "trace file");
            self.warnings.push(format!(
                "{}: left out {count} that no list names, first {first}",
                folder.display()
            ));
        }
    }

    /// The commands of the list at `path`.
    fn list(&mut self, path: &Path) -> Result<(), TraceError> {
        self.lists.push(path.to_path_buf());
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut source = Source::open(path)?;
        let mut skipped = (0_u64, 0_u64);
        while let Some(block) = source.block()? {
            if source.text_bytes > LONGEST_LIST {
                let text = format!("{}: a command list of more than 64 MiB", path.display());
                return Err(TraceError::Request(text));
            }
            for (index, line) in block.bytes.split(|&byte| byte == b'\n').enumerate() {
                let number = block.first_line + to_u64(index);
                match command(line.trim_ascii(), folder) {
                    Ok(Some(step)) => self.steps.push(step),
                    Ok(None) if line.trim_ascii().is_empty() => {}
                    Ok(None) => {
                        skipped.0 += 1;
                        skipped.1 = if skipped.1 == 0 { number } else { skipped.1 };
                    }
                    Err(expected) => return Err(wrong(path, number, expected, line)),
                }
            }
        }
        if skipped.0 > 0 {
            let (count, first) = (counted(skipped.0, "line"), skipped.1);
            let path = path.display();
            self.warnings.push(format!(
                "{path}: left out {count} with neither a kernel nor a copy of known form, first line \
                 {first}"
            ));
        }
        Ok(())
    }

    /// Warns once of traces that are named several times.
    fn repeated(&mut self) {
        let mut known = BTreeSet::new();
        let again: Vec<&PathBuf> = self.traces().filter(|path| !known.insert(*path)).collect();
        if let Some(first) = again.first() {
            let more = match to_u64(again.len() - 1) {
                0 => String::new(),
                more => format!(", as {}", counted(more, "other repeated name")),
            };
            let first = first.display();
            self.warnings.push(format!("{first}: named before: taken as a further launch{more}"));
        }
    }

    /// Keeps the best form of kernels that have traces in several.
    fn prefer_forms(&mut self) {
        let form = |step: &Step| match step {
            Step::Trace(path) => form(&name(path)),
            Step::Copy(_) => None,
        };
        let mut best = BTreeMap::new();
        for step in &self.steps {
            if let Some(key) = kernel_key(step) {
                let known = best.entry(key).or_insert(None);
                *known = form(step).max(*known);
            }
        }
        self.steps.retain(|step| kernel_key(step).is_none_or(|key| best[&key] == form(step)));
    }
}

/// The files that a conversion of `inputs` would read: command lists, then traces.
///
/// # Errors
/// [`TraceError`] when an input does not exist, holds no trace, or is a list with a
/// line that cannot be followed.
pub fn sources(inputs: &[PathBuf]) -> Result<Vec<PathBuf>, TraceError> {
    let plan = Plan::new(inputs)?;
    Ok(plan.lists.iter().chain(plan.traces()).cloned().collect())
}

fn wrong(path: &Path, line: u64, expected: &str, found: &[u8]) -> TraceError {
    TraceError::Text {
        path: path.to_path_buf(),
        line,
        expected: expected.to_owned(),
        found: quoted(found.trim_ascii()),
    }
}

/// The step of a list's line; `None` for other lines.
fn command(line: &[u8], folder: &Path) -> Result<Option<Step>, &'static str> {
    if names_trace(line) {
        return trace(&path_of(line), folder).map(|path| Some(Step::Trace(path)));
    }
    let text = String::from_utf8_lossy(line);
    copy(&text).map(|copy| copy.map(Step::Copy))
}

/// The copy of a list's line; `None` for other lines. The tracers record copies to the device
/// alone: copies of other directions are taken where they have the same form.
fn copy(line: &str) -> Result<Option<MemoryCopy>, &'static str> {
    let named = |direction: &CopyDirection| line.strip_prefix(direction.word());
    let found = CopyDirection::ALL.iter().find_map(|one| Some((*one, named(one)?)));
    let Some((direction, fields)) = found else { return Ok(None) };
    let mut fields = fields.split(',').skip(1).map(str::trim);
    let address = fields.next().map(|field| field.strip_prefix("0x").unwrap_or(field));
    let address = address.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let bytes = fields.next().and_then(|field| field.parse().ok());
    let (address, bytes) = match (address, bytes, direction) {
        (Some(address), Some(bytes), _) => (address, bytes),
        (_, _, CopyDirection::HostToDevice) => return Err("`MemcpyHtoD,0xADDRESS,BYTES`"),
        _ => return Ok(None),
    };
    let stream = fields.find_map(|field| field.strip_prefix("stream="));
    let stream = stream.map(|number| number.parse().map_err(|_| "a number after `stream=`"));
    Ok(Some(MemoryCopy { direction, address, bytes, stream: stream.transpose()? }))
}

/// True of a list's line that names a trace file, in whatever folder.
fn names_trace(line: &[u8]) -> bool {
    let folders = line.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let name = &line[folders..];
    let ended = || form(&String::from_utf8_lossy(name)).is_some();
    let elsewhere = || !line.starts_with(b"Memcpy") && name.starts_with(b"kernel") && ended();
    line.starts_with(b"kernel") || elsewhere()
}

/// The file that a list in `folder` names as `path`: inside that folder, or absolute. A `..`
/// that leaves the folder is refused: where it leads changes with the place of the list, and
/// a list that came with a trace must not reach what happens to lie next to it.
fn trace(path: &Path, folder: &Path) -> Result<PathBuf, &'static str> {
    const OUTSIDE: &str = "a trace file in the list's own folder, or an absolute path";
    let inside: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    if leaves(&inside) {
        return Err(OUTSIDE);
    }
    let found = present(&folder.join(&inside)).ok_or("a trace file that exists")?;
    let climbs = inside.components().any(|part| part == Component::ParentDir);
    if climbs && inside.is_relative() {
        // A folder that is a link may lie anywhere, and so does what is above it.
        let root = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let within = |root: PathBuf| found.canonicalize().is_ok_and(|path| path.starts_with(root));
        if !root.canonicalize().is_ok_and(within) {
            return Err(OUTSIDE);
        }
    }
    Ok(found)
}

/// True of a relative path that by its words climbs above where it starts.
fn leaves(path: &Path) -> bool {
    let mut depth = 0_usize;
    path.is_relative()
        && path.components().any(|part| match part {
            Component::ParentDir if depth == 0 => true,
            Component::ParentDir => {
                depth -= 1;
                false
            }
            Component::Normal(_) => {
                depth += 1;
                false
            }
            Component::Prefix(_) | Component::RootDir | Component::CurDir => false,
        })
}

/// The path that a list spells with `bytes`, which need be no UTF-8 on Unix.
fn path_of(bytes: &[u8]) -> PathBuf {
    #[cfg(unix)]
    let path = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes);
    #[cfg(not(unix))]
    let path = &*String::from_utf8_lossy(bytes);
    PathBuf::from(path)
}

/// The file at `path`, or the same compressed in place.
fn present(path: &Path) -> Option<PathBuf> {
    let ended = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let mut forms = std::iter::once(path.to_path_buf()).chain(COMPRESSED.iter().map(|e| ended(e)));
    forms.find(|path| fs::metadata(path).is_ok_and(|found| found.is_file()))
}

/// Whether the folder has no traces of its own but a folder of them, as the scripts of Accel-Sim
/// leave it.
pub(super) fn holds_only_traces(folder: &Path) -> bool {
    !holds_traces(folder) && holds_traces(&folder.join(FOLDER))
}

/// Whether a list or a trace is in the folder itself.
fn holds_traces(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.any(|name| name.starts_with(LIST) || form(&name).is_some())
}

/// What to say of a folder without traces that has the entries `names`: folders below it that
/// have some are named.
fn without_traces(folder: &Path, names: &[OsString]) -> String {
    let below: Vec<String> = names
        .iter()
        .map(|name| folder.join(name))
        .filter(|inner| holds_traces(inner) || holds_only_traces(inner))
        .map(|inner| inner.display().to_string())
        .collect();
    let endings: Vec<String> = endings().map(|ending| format!("`*{ending}`")).collect();
    let endings = endings.join(", ");
    let text = format!("no kernelslist and no trace file ({endings}) in {}", folder.display());
    match below.len() {
        0 => text,
        1..=4 => format!("{text}; there are some in {}", below.join(", ")),
        more => format!("{text}; there are some in {more} folders, as {}", below[0]),
    }
}

/// The command lists among `names`: the processed ones, and the raw ones.
fn lists(names: &[OsString]) -> (Vec<&OsString>, Vec<&OsString>) {
    let plain = |name: &OsString| plain_name(&name.to_string_lossy()).to_owned();
    let lists = names.iter().filter(|name| name.to_string_lossy().starts_with(LIST));
    let (mut processed, mut raw): (Vec<&OsString>, Vec<&OsString>) =
        lists.partition(|name| plain(name).ends_with(".g"));
    for chosen in [&mut processed, &mut raw] {
        // `kernelslist.g` first, then those of further contexts.
        chosen.sort_by_key(|name| plain(name).len());
        chosen.dedup_by_key(|name| plain(name));
    }
    (processed, raw)
}

/// True when the file at `path` holds a command list.
fn is_list(path: &Path) -> Result<bool, TraceError> {
    let mut source = Source::open(path)?;
    let Some(block) = source.block()? else { return Ok(false) };
    let mut lines = block.bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty());
    let is_command =
        |line: &[u8]| (names_trace(line) && !line.contains(&b'=')) || line.starts_with(b"Memcpy");
    // Lines of a trace may look like commands, as what an application writes into a log does. No
    // list starts with `-`, but the header of a damaged trace does.
    let trace = first.is_some_and(|line| line.starts_with(b"-"))
        || FORMATS.iter().any(|format| (format.recognise)(&block.bytes));
    Ok(!trace && (first.is_some_and(is_command) || lines.any(is_command)))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Endings of compressed files.
const COMPRESSED: &[&str] = &[".xz", ".gz", ".bz2", ".zst"];

/// A file name without the ending of a compression.
pub(super) fn plain_name(name: &str) -> &str {
    COMPRESSED.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// Endings of trace files, in the order of [`FORMATS`].
fn endings() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().flat_map(|format| format.endings).copied()
}

/// For names of trace files: the index of their ending.
fn form(name: &str) -> Option<usize> {
    let plain = plain_name(name);
    endings().position(|ending| plain.ends_with(ending))
}

/// A trace file's name without form and compression.
fn stem(name: &str) -> &str {
    let plain = plain_name(name);
    endings().find_map(|ending| plain.strip_suffix(ending)).unwrap_or(plain)
}

/// The path that all forms of one kernel's trace share.
fn kernel_key(step: &Step) -> Option<PathBuf> {
    let Step::Trace(path) = step else { return None };
    Some(path.with_file_name(stem(&name(path))))
}

/// A key that sorts numbers in names by value.
fn natural(name: &str) -> Vec<(u64, String)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let text = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let digits = &rest[text..];
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        // The text before a number decides first, then the number.
        parts.push((0, rest[..text].to_owned()));
        parts.push((digits[..end].parse().unwrap_or(u64::MAX), String::new()));
        rest = &digits[end..];
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::{CopyDirection, MemoryCopy, Plan, Step, natural};
    use std::fs;

    #[test]
    fn numbers_in_names_sort_by_value() {
        let mut names = ["kernel-10.traceg", "kernel-9.traceg", "kernel-1-ctx_2.trace"];
        names.sort_by_cached_key(|name| natural(name));
        assert_eq!(names, ["kernel-1-ctx_2.trace", "kernel-9.traceg", "kernel-10.traceg"]);
    }

    #[test]
    fn a_folder_without_list_prefers_grouped_files() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["kernel-2.trace.xz", "kernel-2.traceg", "kernel-10.trace", "notes.txt"] {
            fs::write(folder.path().join(name), "-kernel name = x\n").unwrap();
        }
        let plan = Plan::new(&[folder.path().to_path_buf()]).unwrap();
        let named = |name: &str| Step::Trace(folder.path().join(name));
        assert_eq!(plan.steps, [named("kernel-2.traceg"), named("kernel-10.trace")]);
    }

    #[test]
    fn lists_are_followed_and_strays_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        for name in ["kernel-1.traceg", "kernel-1.trace", "kernel-7.traceg", "kernel-8.traceg"] {
            write(name, "-kernel name = x\n");
        }
        write("kernelslist", "kernel-1.trace\n");
        write("kernelslist.g", "MemcpyHtoD,0x10,4,dump.bin\r\nMemcpyDtoH,1\n\nkernel-1.traceg\n");
        let plan = Plan::new(&[folder.path().to_path_buf()]).unwrap();
        let copy = Step::Copy(MemoryCopy::to_device(16, 4));
        assert_eq!(plan.steps, [copy, Step::Trace(folder.path().join("kernel-1.traceg"))]);
        assert_eq!(plan.warnings.len(), 2);
        write("kernelslist.g", "kernel-1.traceg\nkernel-99.traceg\n");
        let error = Plan::new(&[folder.path().join("kernelslist.g")]).unwrap_err().to_string();
        assert!(error.contains("kernelslist.g:2: expected a trace file that exists"), "{error}");
    }

    #[test]
    fn copies_of_all_directions_and_streams_are_read() {
        use CopyDirection::{DeviceToDevice, DeviceToHost, HostToDevice};
        let read = super::copy;
        let copy = |direction, stream| MemoryCopy { direction, address: 0x10, bytes: 4, stream };
        assert_eq!(read("MemcpyHtoD,0x10,4,a.bin"), Ok(Some(copy(HostToDevice, None))));
        assert_eq!(read("MemcpyDtoH,10,4,stream=7"), Ok(Some(copy(DeviceToHost, Some(7)))));
        assert_eq!(read("MemcpyDtoD,0x10,4"), Ok(Some(copy(DeviceToDevice, None))));
        assert_eq!((read("MemcpyDtoH,1"), read("MemcpyPtoP,0x10,4")), (Ok(None), Ok(None)));
        assert!(read("MemcpyHtoD,0x10").is_err() && read("MemcpyDtoH,0x10,4,stream=x").is_err());
    }

    #[test]
    fn lists_name_files_inside_their_folder_or_by_absolute_paths() {
        let folder = tempfile::tempdir().unwrap();
        let (outer, inner) = (folder.path().join("kernel-9.traceg"), folder.path().join("in"));
        fs::create_dir_all(inner.join("sub")).unwrap();
        let own = inner.join("kernel-1.traceg");
        for path in [&outer, &own, &inner.join("sub/kernel-2.traceg")] {
            fs::write(path, "-kernel name = x\n").unwrap();
        }
        let listed = |line: &str| {
            fs::write(inner.join("kernelslist.g"), format!("{line}\n")).unwrap();
            Plan::new(&[inner.join("kernelslist.g")])
        };
        for line in ["kernel-1.traceg", "./kernel-1.traceg", "sub/../kernel-1.traceg"] {
            let steps = listed(line).unwrap().steps;
            let [Step::Trace(path)] = &steps[..] else { panic!("{line}: {steps:?}") };
            assert_eq!(path.canonicalize().unwrap(), own.canonicalize().unwrap(), "{line}");
        }
        let sub = listed("./sub/kernel-2.traceg").unwrap();
        assert_eq!(sub.steps, [Step::Trace(inner.join("sub/kernel-2.traceg"))]);
        let absolute = listed(outer.to_str().unwrap()).unwrap();
        assert_eq!(absolute.steps, [Step::Trace(outer)]);
        let error = listed("../kernel-9.traceg").unwrap_err().to_string();
        assert!(error.contains("in the list's own folder, or an absolute path"), "{error}");
        // A file of a copy's contents is no trace.
        let copy = listed("MemcpyHtoD,0x10,4,in/kernel-1.traceg").unwrap();
        assert_eq!(copy.steps, [Step::Copy(MemoryCopy::to_device(16, 4))]);
    }
}
