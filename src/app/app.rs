//! Applications as users name them: a store, or anything that converts to one.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use gpumodel_trace::{Filter, Progress, Store, TraceError, source_name, workload};

use crate::RunError;
use crate::cache::stores::{cached_model, cached_trace, model_store, trace_store};

/// The prefix of workload models.
const SYNTH: &str = "synth:";

/// Precedes the scale of a workload model, with and without the equals sign.
const SCALE: &str = ":scale=";
const SCALE_OF: &str = ":scale";

/// An application of the command line: `[NAME=]PATH` or
/// `[NAME=]synth:WORKLOAD[:CONSTANT=N]…[:scale=X]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppName {
    /// Its name in records.
    pub name: String,
    /// Store, trace, list or folder.
    pub path: PathBuf,
}

impl AppName {
    /// Reads `[NAME=]PATH`; the default name is [`default_name`]'s. Text with a slash or with
    /// the end of a scale is a name only if the path behind it exists.
    #[must_use]
    pub fn parse(typed: impl AsRef<OsStr>) -> Self {
        let typed = typed.as_ref();
        let whole = PathBuf::from(typed);
        if is_model(&whole) {
            return Self { name: typed.to_string_lossy().into_owned(), path: whole };
        }
        let names = |name: &str, path: &Path| {
            let exists = is_model(path) || path.exists();
            !name.is_empty() && (exists || !name.contains('/') && !name.ends_with(SCALE_OF))
        };
        match split_name(typed) {
            Some((name, path)) if names(&name, &path) && !whole.exists() => Self { name, path },
            _ => Self { name: default_name(&whole), path: whole },
        }
    }

    /// An application that a file in `folder` names, with a path relative to that folder.
    pub(super) fn within(folder: &Path, name: &str, source: &str) -> Self {
        let path = match source.strip_prefix(SYNTH) {
            Some(model) if !is_path(without_scale(model)) => PathBuf::from(source),
            Some(model) => PathBuf::from(format!("{SYNTH}{}", folder.join(model).display())),
            None => folder.join(source),
        };
        Self { name: name.to_owned(), path }
    }
}

/// Whether an application is a workload model.
fn is_model(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().starts_with(SYNTH.as_bytes())
}

/// What stands before and after the first `=`.
fn split_name(typed: &OsStr) -> Option<(String, PathBuf)> {
    let (name, path) = split_once(typed, "=")?;
    Some((name.to_string_lossy().into_owned(), PathBuf::from(path)))
}

/// What stands before and after the first `between`.
fn split_once<'a>(typed: &'a OsStr, between: &str) -> Option<(&'a OsStr, &'a OsStr)> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        let bytes = typed.as_bytes();
        let at = bytes.windows(between.len()).position(|bytes| bytes == between.as_bytes())?;
        Some((OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(&bytes[at + between.len()..])))
    }
    #[cfg(not(unix))]
    {
        let (before, after) = typed.to_str()?.split_once(between)?;
        Some((OsStr::new(before), OsStr::new(after)))
    }
}

/// The name or path of a workload model without its scale.
fn without_scale(model: &str) -> &str {
    model.split_once(SCALE).map_or(model, |(name, _)| name)
}

/// Whether a workload model is a file: names of known models contain no slash and, before a
/// scale, which may be misspelt, no dot.
fn is_path(model: &str) -> bool {
    model.contains('/') || model.split(':').next().is_some_and(|name| name.contains('.'))
}

/// The workload model that an application is, with its scale.
fn model(path: &Path) -> Option<&OsStr> {
    let (before, model) = split_once(path.as_os_str(), SYNTH)?;
    before.is_empty().then_some(model)
}

/// The name or file of the workload model that an application is, without its settings.
pub(super) fn model_file(path: &Path) -> Option<PathBuf> {
    let model = model(path)?;
    let file = split_once(model, SCALE).map_or(model, |(file, _)| file);
    Some(PathBuf::from(without_constants(file).0))
}

/// A workload model with what an application says of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ModelSettings {
    /// Its name or file.
    pub(super) workload: OsString,
    /// Values in place of the file's.
    pub(super) constants: Vec<(String, i64)>,
    /// What its scaled constants are multiplied by.
    pub(super) scale: f64,
}

/// Splits a workload model from its constants and its scale, which is 1 by default.
fn settings(model: &OsStr) -> Result<ModelSettings, RunError> {
    let text = model.to_string_lossy();
    let invalid = |found: &str| {
        let found = if found.is_empty() { "nothing" } else { found };
        RunError::Scale { app: text.clone().into_owned(), found: found.to_owned() }
    };
    let (file, scale) = match split_once(model, SCALE) {
        Some((file, scale)) => {
            let scale = scale.to_string_lossy();
            (file, scale.parse().map_err(|_| invalid(&scale))?)
        }
        None => (model, 1.0),
    };
    let (workload, constants) = without_constants(file);
    match workload.to_string_lossy().rsplit_once(':') {
        Some((file, other)) if file.ends_with(".toml") && !other.contains(['/', '\\']) => {
            Err(invalid(other))
        }
        _ => Ok(ModelSettings { workload, constants, scale }),
    }
}

/// Splits a name or file from the constants after it: `NAME:CONSTANT=N…`.
fn without_constants(model: &OsStr) -> (OsString, Vec<(String, i64)>) {
    let Some(mut file) = model.to_str() else { return (model.to_owned(), Vec::new()) };
    let mut constants = Vec::new();
    while let Some((before, last)) = file.rsplit_once(':')
        && let Some((name, value)) = last.split_once('=')
        && let Ok(value) = value.parse()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    {
        constants.insert(0, (name.to_owned(), value));
        file = before;
    }
    (file.into(), constants)
}

/// A hint for a missing path that is the name of a workload model.
fn hint(path: &Path) -> String {
    let typed = path.display().to_string();
    let name = typed.split(':').next();
    let models = gpumodel_models::builtin();
    let is_model = name.is_some_and(|name| workload::names(&models).contains(&name));
    if is_model { format!(" (did you mean {SYNTH}{typed}?)") } else { String::new() }
}

/// The name of an application by what it was made from: what its store remembers, else
/// [`source_name`] of its path.
#[must_use]
pub fn default_name(path: &Path) -> String {
    let store = Some(path).filter(|path| Store::recognise(path)).map(Store::open);
    let remembered =
        store.and_then(Result::ok).and_then(|store| store.source_name().map(str::to_owned));
    remembered.unwrap_or_else(|| source_name(path))
}

/// What a user should know of a store whose source had so many damaged files.
pub(super) fn skipped(files: u64) -> String {
    let files = gpumodel_core::units::counted(files, "damaged trace file");
    format!("skipped {files}; results are those of the others alone")
}

/// An application ready to run.
#[derive(Debug)]
pub struct App {
    /// Its name in records.
    pub name: String,
    /// Its instructions.
    pub store: Store,
    /// Remarks of the conversion.
    pub warnings: Vec<String>,
}

impl App {
    /// Opens a store, or converts a trace to a store in `cache` (once: the cached store is used
    /// until the source changes). `synth:NAME` is a workload model; files in the folder `models`
    /// take precedence; `:CONSTANT=N` sets a constant of it, `:scale=X` multiplies its scaled ones.
    ///
    /// # Errors
    /// When the file or model does not exist, it cannot be read as a trace, or the cache folder
    /// cannot be written.
    pub fn open(
        typed: &AppName,
        models: Option<&Path>,
        cache: &Path,
        progress: &dyn Progress,
    ) -> Result<Self, RunError> {
        Self::open_skipping(false, typed, (models, cache), progress)
    }

    /// The same, where damaged files of a trace may be skipped and counted
    /// ([`Store::skipped_files`]).
    pub(crate) fn open_skipping(
        damaged: bool,
        typed: &AppName,
        (models, cache): (Option<&Path>, &Path),
        progress: &dyn Progress,
    ) -> Result<Self, RunError> {
        let made = AppStore::create(damaged, typed, (models, cache), progress)?;
        let store = Store::open(&made.path)?;
        Ok(Self { name: typed.name.clone(), store, warnings: made.warnings })
    }

    /// Restricts the application to the CTAs that `filter` selects, with a remark.
    ///
    /// # Errors
    /// When `filter` selects nothing, or the store is damaged.
    pub(crate) fn narrow(&mut self, filter: &Filter) -> Result<(), RunError> {
        let remarks = self.store.narrow(filter).map_err(|error| match error {
            TraceError::Request(found) => RunError::NoKernels { app: self.name.clone(), found },
            other => other.into(),
        })?;
        self.warnings.extend(remarks);
        Ok(())
    }
}

/// The path of an application's store.
#[derive(Clone, Debug)]
pub(super) struct AppStore {
    pub(super) path: PathBuf,
    /// Remarks of the conversion.
    pub(super) warnings: Vec<String>,
}

impl AppStore {
    /// Finds the store of `typed`, or creates it in `cache`.
    ///
    /// # Errors
    /// As [`App::open`].
    pub(super) fn find_or_create(
        typed: &AppName,
        models: Option<&Path>,
        cache: &Path,
        progress: &dyn Progress,
    ) -> Result<Self, RunError> {
        Self::create(false, typed, (models, cache), progress)
    }

    /// The same, which may skip damaged files of a trace.
    fn create(
        skip_damaged: bool,
        typed: &AppName,
        (models, cache): (Option<&Path>, &Path),
        progress: &dyn Progress,
    ) -> Result<Self, RunError> {
        let path = &typed.path;
        if let Some(workload) = model(path) {
            let (path, warnings) = model_store(&settings(workload)?, models, cache, progress)?;
            return Ok(Self { path, warnings });
        }
        if !path.exists() {
            return Err(RunError::NoApp { path: path.clone(), hint: hint(path) });
        }
        if Store::recognise(path) {
            return Ok(Self { path: path.clone(), warnings: Vec::new() });
        }
        let (path, warnings) = trace_store((path, skip_damaged), cache, progress)?;
        Ok(Self { path, warnings })
    }

    /// The path of the store of `typed` without converting anything; `None`: it is still to be
    /// converted.
    ///
    /// # Errors
    /// As [`App::open`].
    pub(super) fn find(
        typed: &AppName,
        models: Option<&Path>,
        cache: &Path,
    ) -> Result<Option<PathBuf>, RunError> {
        let path = &typed.path;
        if let Some(workload) = model(path) {
            return cached_model(&settings(workload)?, models, cache);
        }
        if !path.exists() {
            return Err(RunError::NoApp { path: path.clone(), hint: hint(path) });
        }
        if Store::recognise(path) {
            Ok(Some(path.clone()))
        } else {
            cached_trace((path, false), cache)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;

    use super::{AppName, default_name, model_file};

    #[test]
    fn names_are_the_last_two_components() {
        assert_eq!(default_name(Path::new("/no/such/apps/bfs.gpt")), "apps/bfs");
        assert_eq!(default_name(Path::new("/no/such/kernel-1.traceg")), "such/kernel-1");
        assert_eq!(AppName::parse("A=/no/such/x").name, "A");
        let scaled = AppName::parse("synth:saxpy:scale=0.5");
        assert_eq!(scaled.name, "synth:saxpy:scale=0.5");
        assert_eq!(AppName::parse("apps/nn=synth:saxpy").name, "apps/nn");
        assert_eq!(AppName::parse("/no/such=x/y").name, "such=x/y");
        let bare = AppName::parse("saxpy:scale=0.5");
        assert_eq!(bare.path, Path::new("saxpy:scale=0.5"));
        assert_eq!(super::hint(&bare.path), " (did you mean synth:saxpy:scale=0.5?)");
    }

    #[test]
    fn a_model_may_have_a_scale() {
        let settings = |typed: &str| super::settings(OsStr::new(typed));
        let scaled = |typed: &str| settings(typed).map(|model| (model.workload, model.scale));
        let own = AppName::within(Path::new("plans"), "a", "synth:own.toml:scale=2");
        assert_eq!(own.path, Path::new("synth:plans/own.toml:scale=2"));
        let carried = AppName::within(Path::new("plans"), "a", "synth:saxpy:scale=0.5");
        assert_eq!(carried.path, Path::new("synth:saxpy:scale=0.5"));
        let misspelt = AppName::within(Path::new("plans"), "a", "synth:saxpy:scal=0.5");
        assert_eq!(misspelt.path, Path::new("synth:saxpy:scal=0.5"));
        assert_eq!(scaled("saxpy:scale=0.5").unwrap(), ("saxpy".into(), 0.5));
        assert_eq!(scaled("saxpy").unwrap(), ("saxpy".into(), 1.0));
        for (typed, found) in [("half", "half"), ("0.5:0.7", "0.5:0.7"), ("", "nothing")] {
            let error = scaled(&format!("saxpy:scale={typed}")).unwrap_err().to_string();
            let words = format!("expected one number, as scale=0.5, found {found}");
            assert_eq!(error, format!("synth:saxpy:scale={typed}: {words}"));
        }
        let error = scaled("plans/own.toml:scal=0.2").unwrap_err().to_string();
        assert!(error.ends_with("expected one number, as scale=0.5, found scal=0.2"), "{error}");
        let set = settings("own.toml:columns=64:depth=8:scale=2").unwrap();
        assert_eq!((&*set.workload.to_string_lossy(), set.scale), ("own.toml", 2.0));
        assert_eq!(set.constants, [("columns".to_owned(), 64), ("depth".to_owned(), 8)]);
        let error = scaled("own.toml:").unwrap_err().to_string();
        assert!(error.ends_with("found nothing"), "{error}");
        assert_eq!(scaled("d.toml:x/m").unwrap(), ("d.toml:x/m".into(), 1.0));
        let file = |typed: &'static str| model_file(Path::new(typed));
        assert_eq!(file("synth:./own.toml:scale=2"), Some("./own.toml".into()));
        assert_eq!(file("synth:own.toml:depth=8:scale=2"), Some("own.toml".into()));
        assert_eq!(file("mine/synth:x"), None);
    }
}
