//! The memory files that are built into the program.

/// A folder of memory files under `models/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Folder {
    /// Memory standards.
    Memory,
    /// Address mappings.
    Mappings,
}

macro_rules! shipped {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../models/", $folder, "/", $name, ".toml")))),*]
    };
}

/// Name and text, in the order of names.
const MEMORY: &[(&str, &str)] = shipped!("memory": "a100-hbm2", "accelsim-gddr", "accelsim-hbm", "common", "gddr5", "gddr5x", "gddr6", "gtx1080-gddr5x", "gv100-hbm2", "h100-hbm2e", "h100-hbm3", "hbm", "hbm2", "hbm2-legacy", "hbm2-pc", "hbm2e", "hbm3", "hbm3e", "k40c-gddr5", "rtx2060-gddr6", "rtx3070-gddr6", "titan-xp-gddr5x", "ugpu-hbm", "ugpu-hbm-900", "ugpu-hbm-900-ns", "v100-hbm2", "warped-slicer-gddr5");

/// Name and text, in the order of names.
const MAPPINGS: &[(&str, &str)] = shipped!("memory/mappings": "accelsim-a100", "accelsim-qv100", "accelsim-rtx2060", "accelsim-rtx3070", "accelsim-titanx", "ampere", "hopper", "kepler", "pascal", "turing", "ugpu", "ugpu-128k", "ugpu-16k", "ugpu-1m", "ugpu-256k", "ugpu-2m", "ugpu-32k", "ugpu-512k", "ugpu-64k", "ugpu-8k", "volta", "warped-slicer");

impl Folder {
    /// The folder's path under `models/`.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Mappings => "memory/mappings",
        }
    }

    fn rows(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Memory => MEMORY,
            Self::Mappings => MAPPINGS,
        }
    }

    /// The text of the shipped file `name`.
    pub(super) fn text(self, name: &str) -> Option<&'static str> {
        self.rows().iter().find(|row| row.0 == name).map(|row| row.1)
    }

    /// The names of the shipped files.
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        self.rows().iter().map(|row| row.0)
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
