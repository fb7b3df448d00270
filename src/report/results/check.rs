//! Reading and writing the JSON document of `analyze`, and what can be wrong with a record or a
//! reference table, said to the user.
//!
//! A document is checked once, here: code that gets an [`Analysis`] from a file may rely on
//! the counting rules, and on the indices of its queues.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use gpumodel_core::units::{Cycle, message_in_words, to_u64, to_usize};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    Analysis, AppRecord, CacheCounters, CoRun, CoRunApp, GroupRecord, InterferenceRecord,
    JobRecord, KernelRecord, MatchingRecord, QueueRun, ResidencyRecord, SCHEMA,
};

/// Only the key that says how to read the rest.
#[derive(Deserialize)]
struct Header {
    schema: Option<String>,
}

impl Analysis {
    /// Reads the record at `path` and checks its schema and its counting rules.
    ///
    /// # Errors
    /// [`RecordError`] with the file and the line of the first thing wrong.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let bytes = std::fs::read(path).map_err(|e| RecordError::file(path, e))?;
        Self::from_json(&bytes, path)
    }

    /// Reads a record from `bytes`; `path` is the name for error messages.
    ///
    /// # Errors
    /// As [`Analysis::read`].
    pub fn from_json(bytes: &[u8], path: &Path) -> Result<Self, RecordError> {
        let header: Header = serde_json::from_slice(bytes).map_err(|e| json_error(path, &e))?;
        if header.schema.as_deref() != Some(SCHEMA) {
            return Err(RecordError::Schema {
                path: path.to_path_buf(),
                line: schema_line(bytes),
                expected: SCHEMA,
                found: header.schema.map_or_else(|| "none".into(), |s| format!("{s:?}")),
            });
        }
        let analysis: Self = serde_json::from_slice(bytes).map_err(|e| json_error(path, &e))?;
        analysis.check().map_err(|Wrong { key, message }| RecordError::Value {
            path: path.to_path_buf(),
            key,
            message,
        })?;
        Ok(analysis)
    }

    /// The document as pretty JSON with a final newline: same record, same bytes.
    ///
    /// # Panics
    /// Never: the types have string keys only, which JSON can always say.
    #[must_use]
    pub fn to_json(&self) -> String {
        pretty(self)
    }

    /// Checks the counting rules: hits within accesses, ends after starts,
    /// fractions between 0 and 1, queues that hold together.
    fn check(&self) -> Checked {
        each("solo", &self.solo, |_, app| check_app(app))?;
        each("coruns", &self.coruns, |_, run| check_corun(run))?;
        each("queues", &self.queues, |_, queue| queue.check())?;
        each("interference", &self.interference, |_, known| known.check())
    }
}

/// `value` as pretty JSON with a final newline: same value, same bytes.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain data with string keys");
    text.push('\n');
    text
}

fn json_error(path: &Path, error: &serde_json::Error) -> RecordError {
    RecordError::Json {
        path: path.to_path_buf(),
        line: error.line(),
        column: error.column(),
        message: message_in_words(&error.to_string()),
    }
}

/// The line of the first `"schema"` in the text, 1 where there is none.
fn schema_line(bytes: &[u8]) -> usize {
    let key = b"\"schema\"";
    let at = bytes.windows(key.len()).position(|window| window == key).unwrap_or(0);
    bytes[..at].iter().filter(|&&b| b == b'\n').count() + 1
}

/// Which key is wrong, and what was expected of it.
#[derive(Debug)]
struct Wrong {
    key: String,
    message: String,
}

type Checked = Result<(), Wrong>;

/// Refuses with `message` unless `right`.
fn expect(right: bool, message: impl FnOnce() -> String) -> Checked {
    if right { Ok(()) } else { Err(Wrong { key: String::new(), message: message() }) }
}

/// Something that may be wrong at a key.
trait At {
    /// The same below `key`.
    fn at(self, key: impl Display) -> Self;
}

impl At for Checked {
    fn at(self, key: impl Display) -> Self {
        self.map_err(|wrong| {
            let key = match wrong.key.as_str() {
                "" => key.to_string(),
                below => format!("{key}.{below}"),
            };
            Wrong { key, ..wrong }
        })
    }
}

/// Checks each of the `items` of a list by its place.
fn each<T>(name: &str, items: &[T], mut check: impl FnMut(usize, &T) -> Checked) -> Checked {
    let mut items = items.iter().enumerate();
    items.try_for_each(|(place, item)| check(place, item).at(format_args!("{name}[{place}]")))
}

fn check_app(app: &AppRecord) -> Checked {
    check_caches(&app.l1, &app.l2)?;
    each("kernels", &app.kernels, |_, kernel| check_kernel(kernel))?;
    each("timeline", &app.timeline, |_, span| check_span(span.start_cycle, span.end_cycle))
}

fn check_kernel(kernel: &KernelRecord) -> Checked {
    check_span(kernel.start_cycle, kernel.end_cycle).at("end_cycle")?;
    check_caches(&kernel.l1, &kernel.l2)?;
    for (cause, share) in &kernel.stall_fractions {
        check_share(*share).at(format_args!("stall_fractions.{cause}"))?;
    }
    check_share(kernel.held_slot_fraction.unwrap_or(0.0)).at("held_slot_fraction")
}

fn check_corun(corun: &CoRun) -> Checked {
    check_caches(&corun.l1, &corun.l2)?;
    each("apps", &corun.apps, |_, app| check_corun_app(app))?;
    let Some(residency) = &corun.residency else { return Ok(()) };
    each("rows", &residency.rows, |_, row| {
        let (apps, most) = (corun.apps.len(), ResidencyRecord::INTERVALS);
        expect(to_usize(row.app_index) < apps, || format!("expected one of {apps} applications"))
            .at("app_index")?;
        expect(row.ctas.len() <= most, || format!("expected at most {most} intervals")).at("ctas")
    })
    .at("residency")
}

fn check_corun_app(app: &CoRunApp) -> Checked {
    check_caches(&app.l1, &app.l2)?;
    check_share(app.dram_share).at("dram_share")?;
    for (cause, share) in &app.stall_fractions {
        check_share(*share).at(format_args!("stall_fractions.{cause}"))?;
    }
    each("kernels", &app.kernels, |_, kernel| check_span(kernel.start_cycle, kernel.end_cycle))
}

fn check_share(share: f64) -> Checked {
    let fits = (0.0..=1.0 + 1e-9).contains(&share);
    expect(fits, || format!("expected a share from 0 to 1, found {share}"))
}

fn check_span(start: Cycle, end: Cycle) -> Checked {
    expect(start <= end, || format!("expected an end at or after cycle {start}, found {end}"))
}

fn check_order(before: Cycle, after: Cycle) -> Checked {
    expect(before <= after, || format!("expected cycle {before} or later, found {after}"))
}

fn check_caches(l1: &CacheCounters, l2: &CacheCounters) -> Checked {
    check_cache(l1).at("l1")?;
    check_cache(l2).at("l2")
}

fn check_cache(cache: &CacheCounters) -> Checked {
    let rules = [
        ("hits", cache.hits, "accesses", cache.accesses),
        ("merged", cache.merged, "hits", cache.hits),
        ("reads", cache.reads, "accesses", cache.accesses),
        ("read_hits", cache.read_hits, "reads", cache.reads),
    ];
    rules.into_iter().try_for_each(|(part, of_part, whole, of_whole)| {
        let message = || format!("expected {part} <= {whole}, found {of_part} > {of_whole}");
        expect(of_part <= of_whole, message)
    })
}

impl QueueRun {
    /// Checks that jobs and groups name each other, that times run forwards, that
    /// shares and counts have an entry for each of their kind, and that groups follow
    /// known patterns.
    fn check(&self) -> Checked {
        expect(self.group_size > 0, || "expected at least 1, found 0".into()).at("group_size")?;
        each("jobs", &self.jobs, |place, job| self.check_job(place, job))?;
        let mut grouped = vec![false; self.jobs.len()];
        each("groups", &self.groups, |place, group| self.check_group(place, group, &mut grouped))?;
        let mut cycle = 0;
        each("matchings", &self.matchings, |_, matching| {
            check_matching(matching, std::mem::replace(&mut cycle, matching.cycle))
        })
    }

    /// The grouping that was in force at `cycle`: the last one decided by then.
    fn matching_at(&self, cycle: u64) -> Option<&MatchingRecord> {
        self.matchings.iter().rev().find(|matching| matching.cycle <= cycle)
    }

    fn check_job(&self, index: usize, job: &JobRecord) -> Checked {
        check_order(job.arrival_cycle, job.start_cycle).at("start_cycle")?;
        check_order(job.start_cycle, job.end_cycle).at("end_cycle")?;
        let place = usize::try_from(job.group).unwrap_or(usize::MAX);
        let (group, count) = (self.groups.get(place), self.groups.len());
        expect(group.is_some(), || format!("expected one of {count} groups")).at("group")?;
        let names = group.is_some_and(|group| group.jobs.contains(&to_u64(index)));
        expect(names, || format!("expected a group that names the job, found {place}")).at("group")
    }

    fn check_group(&self, index: usize, group: &GroupRecord, grouped: &mut [bool]) -> Checked {
        let (found, most) = (to_u64(group.jobs.len()), self.group_size);
        let fits = (1..=most).contains(&found);
        expect(fits, || format!("expected 1 to {most} members, found {found}")).at("jobs")?;
        each("jobs", &group.jobs, |_, &job| {
            let at = usize::try_from(job).unwrap_or(usize::MAX);
            let (own, count) = (self.jobs.get(at).map(|job| job.group), self.jobs.len());
            let Some(own) = own else {
                return expect(false, || format!("expected one of {count} jobs, found {job}"));
            };
            let message = || format!("expected a job of the group, found one of group {own}");
            expect(own == to_u64(index), message)?;
            let known = std::mem::replace(&mut grouped[at], true);
            expect(!known, || "expected every job once".into())
        })?;
        check_order(group.start_cycle, group.end_cycle).at("end_cycle")?;
        check_shares(group)?;
        let known = self.matching_at(group.start_cycle).map_or(0, |m| to_u64(m.patterns.len()));
        let pattern = group.pattern.unwrap_or_default();
        let message = || format!("expected one of {known} patterns, found {pattern}");
        expect(group.pattern.is_none_or(|pattern| pattern < known), message).at("pattern")
    }
}

fn check_shares(group: &GroupRecord) -> Checked {
    let (members, mut cycle) = (group.jobs.len(), 0);
    each("shares", &group.shares, |_, share| {
        let found = share.sms.len();
        expect(found == members, || format!("expected {members} members, found {found}"))
            .at("sms")?;
        let since = share.since_begin_cycles;
        check_order(std::mem::replace(&mut cycle, since), since).at("since_begin_cycles")
    })
}

fn check_matching(matching: &MatchingRecord, cycle: Cycle) -> Checked {
    check_order(cycle, matching.cycle).at("cycle")?;
    let (classes, waiting) = (matching.classes.len(), matching.waiting.len());
    let named = classes - usize::from(matching.classes.last().is_some_and(|last| last == "idle"));
    let message = || format!("expected {named} classes, found {waiting}");
    expect((named..=classes).contains(&waiting), message).at("waiting")?;
    each("patterns", &matching.patterns, |_, pattern| {
        let found = pattern.counts.len();
        expect(found == classes, || format!("expected {classes} classes, found {found}"))
            .at("counts")
    })
}

impl InterferenceRecord {
    /// Checks that the matrix has a row and a column for every class, that every
    /// application has one of these classes, and that ranges are in order.
    fn check(&self) -> Checked {
        let (classes, rows) = (self.classes.len(), self.slowdown.len());
        expect(rows == classes, || format!("expected {classes} rows, found {rows}"))
            .at("slowdown")?;
        each("slowdown", &self.slowdown, |_, row| {
            let found = row.len();
            expect(found == classes, || format!("expected {classes} columns, found {found}"))
        })?;
        each("apps", &self.apps, |_, app| {
            let known = self.classes.contains(&app.class);
            let all = || self.classes.join(", ");
            expect(known, || format!("expected one of {}, found {}", all(), app.class)).at("class")
        })?;
        each("published", &self.published, |_, known| {
            let message = || format!("expected at least {}, found {}", known.low, known.high);
            expect(known.low <= known.high, message).at("high")
        })
    }
}

impl GroupRecord {
    /// The jobs of `run` that are its members, in the order in which they lie on the
    /// SMs.
    ///
    /// # Panics
    /// When `run` is another one: records are checked when they are read.
    pub fn members<'r>(&self, run: &'r QueueRun) -> impl Iterator<Item = &'r JobRecord> {
        self.jobs.iter().map(move |&job| &run.jobs[to_usize(job)])
    }
}

/// A record or reference table that could not be read, or a comparison that
/// could not be made. Every message names the file and what to do next.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The file could not be read or written.
    #[error("cannot read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// The file is not the JSON that was expected.
    #[error("{}:{line}:{column}: not a record of `gpumodel analyze`: {message}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What was expected and found.
        message: String,
    },
    /// The file is a JSON document of another schema.
    #[error(
        "{}:{line}: expected schema \"{expected}\", found {found}; make the record with `gpumodel analyze APP --machine M --json FILE`",
        path.display()
    )]
    Schema {
        /// The file.
        path: PathBuf,
        /// Line of the `schema` key; 1 where there is none.
        line: usize,
        /// The schema this version reads.
        expected: &'static str,
        /// The schema of the file, quoted, or `none`.
        found: String,
    },
    /// The file is none of a sweep's folder.
    #[error("{}: not a file of `gpumodel sweep`: {message}", path.display())]
    Sweep {
        /// The file.
        path: PathBuf,
        /// What was expected and found.
        message: String,
    },
    /// A folder without what is read from folders.
    #[error(
        "{}: expected a folder of `gpumodel sweep`, with sweep.json, or of `gpumodel analyze --report`, with record.json; `gpumodel reproduce` keeps such folders in its parts",
        path.display()
    )]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// A table names a cell that has no record in the folder of the table.
    #[error(
        "{}: expected the records of its cells in the same folder, found no {}; give a table in the folder of its sweep",
        path.display(), record.display()
    )]
    MissingRecord {
        /// The table.
        path: PathBuf,
        /// The record.
        record: PathBuf,
    },
    /// Cells hold other applications under one name, and something is asked of the name.
    #[error(
        "{app} is not one application: its cells have the stores {stores}; give a table with the rows of one, as chosen from cells.csv by store_hashes"
    )]
    AmbiguousApp {
        /// The name.
        app: String,
        /// Hashes, each with a cell.
        stores: String,
    },
    /// Two records answer the same row of a reference table.
    #[error(
        "{}:{line}: {row} is in {} and in {}, so that this row would count twice; give one of them",
        table.display(), both[0].display(), both[1].display()
    )]
    DuplicateRow {
        /// The table.
        table: PathBuf,
        /// The line of the row, from 1.
        line: u64,
        /// Its machine and application.
        row: String,
        /// What the records were read from.
        both: Box<[PathBuf; 2]>,
    },
    /// A value contradicts the counting rules.
    #[error("{}: {key}: {message}; make the record again with `gpumodel analyze`", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// Where in the document, e.g. `solo[0].kernels[2].l1`.
        key: String,
        /// What was expected and found.
        message: String,
    },
    /// A row of a reference table is wrong.
    #[error("{}:{line}: {message}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// What was expected, what was found, and what to do next.
        message: String,
    },
}

impl RecordError {
    /// A failure of the file system at `path`.
    #[must_use]
    pub fn file(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.to_path_buf(), source }
    }

    /// A wrong row at `line` of the table at `path`.
    #[must_use]
    pub fn table(path: &Path, line: u64, message: impl Into<String>) -> Self {
        Self::Table { path: path.to_path_buf(), line, message: message.into() }
    }
}
