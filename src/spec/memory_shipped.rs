//! The memory files that are built into the program.

use std::collections::BTreeSet;

use super::models::CARRIED;

/// The file that all standards build on, and that is none.
pub(super) const COMMON: &str = "common";

/// A folder of memory files under `models/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Folder {
    /// Memory standards.
    Memory,
    /// Address mappings.
    Mappings,
}

impl Folder {
    /// The folder's path under `models/`.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Mappings => "memory/mappings",
        }
    }

    /// Name and text of the shipped files, in the order of paths.
    fn rows(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let name = move |path: &'static str| {
            let below = path.strip_prefix(self.path())?.strip_prefix('/')?;
            below.strip_suffix(".toml").filter(|name| !name.contains('/'))
        };
        CARRIED.iter().filter_map(move |&(path, text)| Some((name(path)?, text)))
    }

    /// The text of the shipped file `name`.
    pub(super) fn text(self, name: &str) -> Option<&'static str> {
        self.rows().find(|row| row.0 == name).map(|row| row.1)
    }

    /// The names of the shipped files, sorted.
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        let names: BTreeSet<&str> = self.rows().map(|row| row.0).collect();
        names.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::Folder;
    use std::path::Path;

    #[test]
    fn every_file_of_a_folder_is_shipped() {
        for folder in [Folder::Memory, Folder::Mappings] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join(folder.path());
            let mut found: Vec<String> = std::fs::read_dir(path)
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().is_some_and(|e| e == "toml"))
                .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
                .collect();
            found.sort();
            assert_eq!(found, folder.names().collect::<Vec<_>>(), "{folder:?}");
        }
    }
}
