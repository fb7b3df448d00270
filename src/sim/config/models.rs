//! The files under `models/` as machines, tables, memories and papers.

use std::ops::Deref;
use std::path::Path;

use gpumodel_core::models::{ModelFiles, ModelText};

use super::error::SpecError;
use super::memory::file::COMMON;
use gpumodel_core::toml::Node;
use gpumodel_core::units::nearest;

/// Top-level words that describe one file and are not inherited through `base`.
const OWN: [&str; 3] = ["name", "reference_name", "description"];

/// Every model file, read as what it describes.
#[derive(Clone, Debug)]
pub struct Models {
    files: ModelFiles,
}

impl Deref for Models {
    type Target = ModelFiles;

    fn deref(&self) -> &ModelFiles {
        &self.files
    }
}

impl Models {
    /// Those of `files`.
    #[must_use]
    pub fn new(files: ModelFiles) -> Self {
        Self { files }
    }

    /// Those of `files`, and over them those of `folder`, laid out in the same way: a file of
    /// the same name wins, a new name adds.
    ///
    /// # Errors
    /// [`SpecError::Toml`].
    pub fn with_overrides(files: ModelFiles, folder: Option<&Path>) -> Result<Self, SpecError> {
        match folder {
            Some(folder) => Ok(Self::new(files.with_folder(folder)?)),
            None => Ok(Self::new(files)),
        }
    }

    #[cfg(test)]
    pub(crate) fn builtin() -> Self {
        Self::new(gpumodel_models::builtin())
    }

    /// The names of the machines.
    #[must_use]
    pub fn machine_names(&self) -> Vec<&str> {
        self.names("gpus")
    }

    /// The text of `models/<folder>/<name>.toml`.
    ///
    /// # Errors
    /// [`SpecError::NoModel`] with every known name.
    pub fn text(&self, folder: &'static str, name: &str) -> Result<&ModelText, SpecError> {
        self.named(folder, name).ok_or_else(|| {
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
        let node = Node::read_sourced(&found.origin, &found.text)?;
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
            let mut inherited = Node::read_sourced(&found.origin, &found.text)?;
            for word in OWN {
                inherited.entries_mut().and_then(|entries| entries.remove(word));
            }
            node.inherit(inherited);
        }
        Ok(node)
    }
}

/// Takes `base` out of a tree.
fn take_base(node: &mut Node) -> Result<Option<Node>, SpecError> {
    let Some(base) = node.entries_mut().and_then(|entries| entries.remove("base")) else {
        return Ok(None);
    };
    if base.text().is_none() {
        let expected = "the name of another file of this folder";
        return Err(SpecError::value(&base.place, "base", expected, base.content.describe()));
    }
    Ok(Some(base))
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
        let models =
            Models::with_overrides(gpumodel_models::builtin(), Some(folder.path())).unwrap();
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
        let models =
            Models::with_overrides(gpumodel_models::builtin(), Some(folder.path())).unwrap();
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
        let models =
            Models::with_overrides(gpumodel_models::builtin(), Some(folder.path())).unwrap();
        let error = models.tree("gpus", "a").unwrap_err().to_string();
        assert!(error.contains("b.toml:2: `base` goes round in a circle: a -> b -> a"), "{error}");
    }
}
