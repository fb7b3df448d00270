//! Whether results may go into a folder: into a new one, an empty one, or one that this
//! program wrote for the same purpose.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::WholeFile;
use super::output::UNFINISHED;

/// The file by which the program recognises its own folders: their purpose, and in lines below
/// it the files of a report.
const TAG: &str = "gpumodel.tag";

/// What a folder of results is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderPurpose {
    /// Record, figures and page of an analysis.
    Report,
    /// Records and tables of a sweep.
    Sweep,
    /// Parts and report of a paper's reproduction.
    Reproduction,
    /// Trace files and their list.
    Traces,
    /// Values and figures of microbenchmarks.
    Benchmarks,
}

impl FolderPurpose {
    /// The purpose in words, which the tag holds, and the document that shows it where the tag
    /// is missing.
    const fn words(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Report => ("a report of `gpumodel analyze`", Some("record.json")),
            Self::Sweep => ("a sweep of `gpumodel sweep`", Some("sweep.json")),
            Self::Reproduction => {
                ("a reproduction of `gpumodel reproduce`", Some("reproduction.json"))
            }
            Self::Traces => ("traces of `gpumodel synth` or `convert`", None),
            Self::Benchmarks => ("a report of `gpumodel machine measure`", Some("measure.json")),
        }
    }

    /// Refuses a folder with other contents, unless `force` is set.
    ///
    /// # Errors
    /// What the folder holds and what to do about it; a path that is no folder.
    pub fn check(self, folder: &Path, force: bool) -> io::Result<()> {
        if force {
            return Ok(());
        }
        if folder.exists() && !folder.is_dir() {
            let text =
                format!("cannot write into {}: it is a file, not a folder", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotADirectory, text));
        }
        let Some(held) = held(folder) else { return Ok(()) };
        // Only now: another process that begins the same work writes its mark first, so that
        // the mark is there before all else that was just listed.
        if self.owns(folder) {
            return Ok(());
        }
        let text = format!(
            "{} holds {held} and is not {}: name a folder that is new or empty, or add --force",
            folder.display(),
            self.words().0
        );
        Err(io::Error::new(io::ErrorKind::AlreadyExists, text))
    }

    /// Whether the program wrote `folder` for this purpose.
    #[must_use]
    pub fn owns(self, folder: &Path) -> bool {
        let (purpose, document) = self.words();
        let tagged = tag(folder).is_some_and(|text| text.lines().next() == Some(purpose));
        let ours = |name| start(&folder.join(name)).is_some_and(|text| text.contains(SCHEMA));
        tagged || document.is_some_and(ours) || self == Self::Reproduction && has_parts(folder)
    }

    /// Makes `folder` where it is missing, and marks it as one of this purpose.
    ///
    /// # Errors
    /// Whatever the file system says; the message names folder or file.
    pub fn mark(self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot write {}: {error}", folder.display()))
        })?;
        let purpose = self.words().0;
        if tag(folder).is_some_and(|text| text.lines().next() == Some(purpose)) {
            return Ok(());
        }
        WholeFile::write(&folder.join(TAG), format!("{purpose}\n").as_bytes())
    }

    /// Removes the files of a marked `folder` that the program wrote there earlier and that are
    /// not in `written`, and lists `written`, names without folders, in the mark. Where the mark
    /// listed none, as those of older versions, nothing is removed; returned are then the figures
    /// and tables that stay, which may be of an earlier report.
    ///
    /// # Errors
    /// Whatever the file system says of the mark.
    pub fn replace(
        self,
        folder: &Path,
        written: &BTreeSet<String>,
    ) -> io::Result<BTreeSet<String>> {
        let listed = self.listed(folder);
        let stay = if listed.is_empty() { results(folder) } else { BTreeSet::new() };
        for name in listed.difference(written) {
            // What is not there need not be removed.
            let _ = fs::remove_file(folder.join(name));
        }
        let names: String = written.iter().map(|name| format!("{name}\n")).collect();
        let text = format!("{}\n{names}", self.words().0);
        WholeFile::write(&folder.join(TAG), text.as_bytes())?;
        Ok(stay.difference(written).cloned().collect())
    }

    /// The files in `folder` that its mark lists, if it is of this purpose.
    fn listed(self, folder: &Path) -> BTreeSet<String> {
        let text = tag(folder).unwrap_or_default();
        let mut lines = text.lines();
        let ours = lines.next() == Some(self.words().0);
        let plain = |name: &&str| Path::new(name).file_name() == Some(OsStr::new(name));
        lines.filter(|_| ours).filter(plain).map(str::to_owned).collect()
    }
}

/// The names in `folder` of figures and tables.
fn results(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let ending = |name: &String| {
        let ending = Path::new(name).extension().and_then(OsStr::to_str);
        ending.is_some_and(|ending| ["svg", "csv"].contains(&ending))
    };
    names.filter(ending).collect()
}

/// The text of the mark in `folder`.
fn tag(folder: &Path) -> Option<String> {
    let mut text = String::new();
    let most = File::open(folder.join(TAG)).ok()?.take(TAG_BYTES);
    BufReader::new(most).read_to_string(&mut text).ok()?;
    Some(text)
}

/// More bytes are no mark of ours.
const TAG_BYTES: u64 = 1 << 20;

/// Whether sweeps were merged into `folder` as parts of a reproduction, which has not begun.
fn has_parts(folder: &Path) -> bool {
    let parts = fs::read_dir(folder.join("parts")).into_iter().flatten().flatten();
    parts.into_iter().any(|part| FolderPurpose::Sweep.owns(&part.path()))
}

/// Removes `folder` if it holds nothing but the mark.
pub fn remove_if_only_marked(folder: &Path) {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    if names.map(|entry| entry.file_name()).all(|name| name == TAG) {
        // Another process may use it by now: a folder that is not empty stays.
        let _ = fs::remove_file(folder.join(TAG)).and_then(|()| fs::remove_dir(folder));
    }
}

/// How our documents begin.
const SCHEMA: &str = "\"schema\": \"gpumodel.";

/// The first bytes of a file as text; `None` where it cannot be read.
fn start(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(256).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// What lies in the folder `target`, in words; `None`: nothing does, or it is no folder.
fn held(target: &Path) -> Option<String> {
    let entries = fs::read_dir(target).ok()?.flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    // Another process that begins the same work leaves such files for a moment.
    let mut names: Vec<String> = names.filter(|name| !name.ends_with(UNFINISHED)).collect();
    names.sort();
    let first = names.first()?.clone();
    let more = names.len() - 1;
    Some(if more > 0 { format!("{first} and {more} more") } else { first })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::{FolderPurpose, held, remove_if_only_marked};

    const ALL: [FolderPurpose; 4] = [
        FolderPurpose::Report,
        FolderPurpose::Sweep,
        FolderPurpose::Reproduction,
        FolderPurpose::Traces,
    ];

    #[test]
    fn new_empty_and_own_folders_are_taken_and_others_only_by_force() {
        for purpose in ALL {
            let place = tempfile::tempdir().unwrap();
            let folder = place.path().join("out");
            assert!(purpose.check(&folder, false).is_ok(), "new");
            fs::create_dir(&folder).unwrap();
            assert!(purpose.check(&folder, false).is_ok(), "empty");
            fs::write(folder.join("mine"), "x").unwrap();
            let said = purpose.check(&folder, false).unwrap_err().to_string();
            assert!(said.contains("out holds mine and is not"), "{said}");
            assert!(said.ends_with("or add --force"), "{said}");
            assert!(purpose.check(&folder, true).is_ok(), "forced");
            purpose.mark(&folder).unwrap();
            for other in ALL {
                assert_eq!(other.check(&folder, false).is_ok(), other == purpose, "{other:?}");
            }
        }
    }

    #[test]
    fn a_folder_that_another_process_is_marking_is_taken() {
        let place = tempfile::tempdir().unwrap();
        for round in 0..200 {
            let folder = place.path().join(round.to_string());
            let both = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    both.wait();
                    FolderPurpose::Sweep.mark(&folder).unwrap();
                });
                both.wait();
                while !FolderPurpose::Sweep.owns(&folder) {
                    FolderPurpose::Sweep.check(&folder, false).unwrap();
                }
            });
        }
    }

    #[test]
    fn a_folder_without_a_tag_is_known_by_its_document() {
        let folder = tempfile::tempdir().unwrap();
        let (sweep, record) = (FolderPurpose::Sweep, folder.path().join("sweep.json"));
        fs::write(&record, "{\"cells\": []}").unwrap();
        assert!(sweep.check(folder.path(), false).is_err());
        fs::write(&record, "{\n  \"schema\": \"gpumodel.sweep/1\",\n").unwrap();
        assert!(sweep.check(folder.path(), false).is_ok());
        assert!(FolderPurpose::Report.check(folder.path(), false).is_err());
    }

    #[test]
    fn files_of_the_mark_that_are_not_written_again_are_removed_and_no_others() {
        let place = tempfile::tempdir().unwrap();
        let (folder, report) = (place.path().join("out"), FolderPurpose::Report);
        report.mark(&folder).unwrap();
        for name in ["a.svg", "b.svg", "mine.svg", "../above"] {
            fs::write(folder.join(name), "x").unwrap();
        }
        let names = |names: &[&str]| -> BTreeSet<String> {
            names.iter().map(ToString::to_string).collect()
        };
        let stay = report.replace(&folder, &names(&["../above", "a.svg", "b.svg"])).unwrap();
        assert_eq!(stay, names(&["mine.svg"]), "the mark listed nothing");
        report.mark(&folder).unwrap();
        assert_eq!(report.replace(&folder, &names(&["b.svg", "c.svg"])).unwrap(), names(&[]));
        let there = |name: &str| folder.join(name).exists();
        assert!(!there("a.svg") && there("b.svg") && there("mine.svg") && there("../above"));
        assert!(report.owns(&folder) && !FolderPurpose::Sweep.owns(&folder));
        report.replace(&folder, &names(&[])).unwrap();
        assert!(!there("b.svg") && there("mine.svg"));
    }

    #[test]
    fn a_file_is_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let said = FolderPurpose::Sweep.check(&file, false).unwrap_err().to_string();
        assert!(said.ends_with("it is a file, not a folder"), "{said}");
    }

    #[test]
    fn what_a_folder_holds_is_reported_by_its_first_name() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(held(folder.path()), None);
        assert_eq!(held(&folder.path().join("none")), None);
        fs::write(folder.path().join(".b.12.partial"), "").unwrap();
        assert_eq!(held(folder.path()), None, "another process begins");
        fs::write(folder.path().join("b"), "").unwrap();
        assert_eq!(held(folder.path()).as_deref(), Some("b"));
        fs::write(folder.path().join("a"), "").unwrap();
        assert_eq!(held(folder.path()).as_deref(), Some("a and 1 more"));
    }

    #[test]
    fn only_a_folder_without_results_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("out");
        FolderPurpose::Sweep.mark(&folder).unwrap();
        fs::write(folder.join("mine"), "x").unwrap();
        remove_if_only_marked(&folder);
        assert!(FolderPurpose::Sweep.owns(&folder));
        fs::remove_file(folder.join("mine")).unwrap();
        remove_if_only_marked(&folder);
        assert!(!folder.exists());
    }
}
