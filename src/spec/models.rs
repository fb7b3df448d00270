//! The files under `models/`: carried in the program, overridden by a folder.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::error::SpecError;
use super::memory_shipped::COMMON;
use super::tree::Node;
use crate::units::nearest;

/// The carried files, made by `build.rs`: path below `models/`, and text.
pub(super) const CARRIED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/models.rs"));

/// The largest model file that is read.
const FILE_LIMIT: u64 = 4 << 20;

/// Folders below the overriding folder that are looked into.
const DEPTH_LIMIT: u32 = 4;

/// Top-level words that describe one file and are not inherited through `base`.
const OWN: [&str; 3] = ["name", "reference_name", "description"];

/// Every model file by its path below `models/`, as `gpus/v100.toml`.
#[derive(Clone, Debug)]
pub struct Models {
    files: BTreeMap<String, ModelText>,
}

/// The text of one model file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelText {
    /// The file as the user knows it: `models/…` for a carried one, else its path.
    pub origin: String,
    /// Its content.
    pub text: Cow<'static, str>,
}

impl Models {
    /// The files that the program carries.
    #[must_use]
    pub fn builtin() -> Self {
        let files = CARRIED.iter().map(|&(path, text)| {
            let origin = format!("models/{path}");
            (path.to_owned(), ModelText { origin, text: Cow::Borrowed(text) })
        });
        Self { files: files.collect() }
    }

    /// Every file: its path in the folder of models, and its text.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), &*text.text))
    }

    /// The carried files, and over them those of `folder`, laid out in the same
    /// way: a file of the same name wins, a new name adds.
    ///
    /// # Errors
    /// [`SpecError::Read`] and [`SpecError::TooLarge`].
    pub fn with_overrides(folder: Option<&Path>) -> Result<Self, SpecError> {
        let mut models = Self::builtin();
        if let Some(folder) = folder {
            models.add_folder(folder, "", 0)?;
        }
        Ok(models)
    }

    /// The stems of the `.toml` files in `models/<folder>`, in order.
    pub fn names(&self, folder: &str) -> Vec<&str> {
        let stem = |path: &'_ str| -> Option<(usize, usize)> {
            let rest = path.strip_prefix(folder)?.strip_prefix('/')?.strip_suffix(".toml")?;
            let start = folder.len() + 1;
            (!rest.contains('/')).then_some((start, start + rest.len()))
        };
        let stems = self.files.keys().filter_map(|path| stem(path).map(|(a, b)| &path[a..b]));
        let mut names: Vec<&str> = stems.collect();
        names.sort_unstable();
        names
    }

    /// The names of the machines.
    #[must_use]
    pub fn machine_names(&self) -> Vec<&str> {
        self.names("gpus")
    }

    /// Any carried or overriding file by its path below `models/`, as
    /// `papers/ugpu.csv`.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&ModelText> {
        self.files.get(path)
    }

    /// The text of `models/<folder>/<name>.toml`.
    ///
    /// # Errors
    /// [`SpecError::NoModel`] with every known name.
    pub fn text(&self, folder: &'static str, name: &str) -> Result<&ModelText, SpecError> {
        self.files.get(&format!("{folder}/{name}.toml")).ok_or_else(|| {
            let mut known = self.names(folder);
            known.retain(|known| folder != "memory" || *known != COMMON);
            SpecError::NoModel {
                folder,
                name: name.to_owned(),
                nearest: nearest(name, known.iter().copied()),
                known: known.join(", "),
            }
        })
    }

    /// The tree of `models/<folder>/<name>.toml` with everything that it inherits
    /// through `base`.
    ///
    /// # Errors
    /// [`SpecError::NoModel`], [`SpecError::BaseLoop`] and those of [`Node::read`].
    pub(crate) fn tree(&self, folder: &'static str, name: &str) -> Result<Node, SpecError> {
        let found = self.text(folder, name)?;
        let node = Node::read(&found.origin, &found.text)?;
        self.with_bases(folder, name, node)
    }

    /// Merges into `node` what it inherits through `base`.
    pub(crate) fn with_bases(
        &self,
        folder: &'static str,
        name: &str,
        mut node: Node,
    ) -> Result<Node, SpecError> {
        let mut chain = vec![name.to_owned()];
        while let Some(base) = take_base(&mut node)? {
            let name = base.text().unwrap_or_default().to_owned();
            let closed = chain.contains(&name);
            chain.push(name);
            if closed {
                return Err(SpecError::BaseLoop { place: base.place, chain: chain.join(" -> ") });
            }
            let found = self
                .text(folder, &chain[chain.len() - 1])
                .map_err(|error| error.named_at(&base.place, "base"))?;
            let mut inherited = Node::read(&found.origin, &found.text)?;
            for word in OWN {
                inherited.entries_mut().and_then(|entries| entries.remove(word));
            }
            node.inherit(inherited);
        }
        Ok(node)
    }

    fn add_folder(&mut self, folder: &Path, prefix: &str, depth: u32) -> Result<(), SpecError> {
        let refuse = |source| SpecError::Read { path: folder.to_path_buf(), source };
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).map_err(refuse)? {
            paths.push(entry.map_err(refuse)?.path());
        }
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && depth < DEPTH_LIMIT {
                self.add_folder(&path, &format!("{prefix}{name}/"), depth + 1)?;
            } else if path.extension().is_some_and(|e| e == "toml" || e == "csv") {
                let text = ModelText {
                    origin: path.display().to_string(),
                    text: Cow::Owned(read_text(&path)?),
                };
                self.files.insert(format!("{prefix}{name}"), text);
            }
        }
        Ok(())
    }
}

/// Takes `base` out of a tree.
fn take_base(node: &mut Node) -> Result<Option<Node>, SpecError> {
    let Some(base) = node.entries_mut().and_then(|entries| entries.remove("base")) else {
        return Ok(None);
    };
    if base.text().is_none() {
        return Err(SpecError::Value {
            place: base.place,
            key: "base".to_owned(),
            expected: "the name of another file of this folder".to_owned(),
            found: base.content.describe(),
            nearest: None,
        });
    }
    Ok(Some(base))
}

/// Reads a text file of bounded size; bytes that are no UTF-8 are replaced.
pub(crate) fn read_text(path: &Path) -> Result<String, SpecError> {
    let refuse = |source| SpecError::Read { path: PathBuf::from(path), source };
    let file = fs::File::open(path).map_err(refuse)?;
    let mut bytes = Vec::new();
    file.take(FILE_LIMIT + 1).read_to_end(&mut bytes).map_err(refuse)?;
    let size = crate::units::to_u64(bytes.len());
    if size > FILE_LIMIT {
        return Err(SpecError::TooLarge { path: path.into(), bytes: size, limit: FILE_LIMIT });
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::Models;
    use std::fs;

    #[test]
    fn a_folder_overrides_and_adds() {
        let folder = tempfile::tempdir().unwrap();
        let gpus = folder.path().join("gpus");
        fs::create_dir(&gpus).unwrap();
        fs::write(gpus.join("accelsim-qv100.toml"), "description = \"mine\"\n").unwrap();
        fs::write(gpus.join("zz-new.toml"), "base = \"accelsim-qv100\"\n").unwrap();
        let models = Models::with_overrides(Some(folder.path())).unwrap();
        assert!(models.machine_names().contains(&"zz-new"));
        assert_eq!(models.text("gpus", "accelsim-qv100").unwrap().text, "description = \"mine\"\n");
        let error = models.text("gpus", "accelsim-qv10").unwrap_err().to_string();
        assert!(error.contains("did you mean `accelsim-qv100`?"), "{error}");
    }

    #[test]
    fn a_model_that_is_not_there_is_named_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("gpus")).unwrap();
        fs::write(folder.path().join("gpus/a.toml"), "\nbase = \"v10\"\n").unwrap();
        let models = Models::with_overrides(Some(folder.path())).unwrap();
        let error = models.tree("gpus", "a").unwrap_err().to_string();
        assert!(error.contains("a.toml:2: `base`: no `v10` in models/gpus"), "{error}");
        let file = folder.path().join("b.toml");
        fs::write(&file, "description = \"b\"\nbase = \"v100\"\nisa = \"vlta\"\n").unwrap();
        let error = models.examine(file.to_str().unwrap(), &[]).unwrap_err().to_string();
        assert!(error.contains("b.toml:3: `isa`: no `vlta` in models/isa; did"), "{error}");
    }

    #[test]
    fn bases_that_go_round_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("gpus")).unwrap();
        fs::write(folder.path().join("gpus/a.toml"), "base = \"b\"\n").unwrap();
        fs::write(folder.path().join("gpus/b.toml"), "\nbase = \"a\"\n").unwrap();
        let models = Models::with_overrides(Some(folder.path())).unwrap();
        let error = models.tree("gpus", "a").unwrap_err().to_string();
        assert!(error.contains("b.toml:2: `base` goes round in a circle: a -> b -> a"), "{error}");
    }
}
