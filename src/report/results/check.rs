//! Reading and writing the JSON document of `analyze`.
//!
//! A document is checked once, here: what holds an [`Analysis`] that was read from a file may rely on
//! the counting rules, and on the indices of its queues.

use std::path::Path;

use gpumodel_core::units::{message_in_words, to_u64, to_usize};
use serde::Deserialize;

use super::{
    Analysis, CacheCounters, CoRun, CoRunApp, GroupRecord, InterferenceRecord, JobRecord,
    KernelRecord, MatchingRecord, QueueRun, RecordError, ResidencyRecord, SCHEMA,
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
        analysis.check().map_err(|(key, message)| RecordError::Value {
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
        let mut text = serde_json::to_string_pretty(self).expect("keys are strings");
        text.push('\n');
        text
    }

    /// Checks the counting rules: hits within accesses, ends after starts,
    /// fractions between 0 and 1, queues that hold together.
    fn check(&self) -> Result<(), (String, String)> {
        for (a, app) in self.solo.iter().enumerate() {
            check_cache(&app.l1).map_err(|m| (format!("solo[{a}].l1"), m))?;
            check_cache(&app.l2).map_err(|m| (format!("solo[{a}].l2"), m))?;
            for (k, kernel) in app.kernels.iter().enumerate() {
                check_kernel(kernel)
                    .map_err(|(key, m)| (format!("solo[{a}].kernels[{k}].{key}"), m))?;
            }
            for (i, interval) in app.timeline.iter().enumerate() {
                check_span(interval.start_cycle, interval.end_cycle)
                    .map_err(|m| (format!("solo[{a}].timeline[{i}]"), m))?;
            }
        }
        for (c, corun) in self.coruns.iter().enumerate() {
            check_corun(corun).map_err(|(key, m)| (format!("coruns[{c}].{key}"), m))?;
        }
        for (q, queue) in self.queues.iter().enumerate() {
            queue.check().map_err(|(key, m)| (format!("queues[{q}].{key}"), m))?;
        }
        for (i, known) in self.interference.iter().enumerate() {
            known.check().map_err(|(key, m)| (format!("interference[{i}].{key}"), m))?;
        }
        Ok(())
    }
}

fn check_corun(corun: &CoRun) -> Result<(), (String, String)> {
    check_cache(&corun.l1).map_err(|m| ("l1".into(), m))?;
    check_cache(&corun.l2).map_err(|m| ("l2".into(), m))?;
    for (a, app) in corun.apps.iter().enumerate() {
        check_corun_app(app).map_err(|(key, m)| (format!("apps[{a}].{key}"), m))?;
    }
    for (r, row) in corun.residency.iter().flat_map(|grid| &grid.rows).enumerate() {
        if to_usize(row.app_index) >= corun.apps.len() {
            let message = format!("expected one of {} applications", corun.apps.len());
            return Err((format!("residency.rows[{r}].app_index"), message));
        }
        if row.ctas.len() > ResidencyRecord::INTERVALS {
            let message = format!("expected at most {} intervals", ResidencyRecord::INTERVALS);
            return Err((format!("residency.rows[{r}].ctas"), message));
        }
    }
    Ok(())
}

fn check_corun_app(app: &CoRunApp) -> Result<(), (String, String)> {
    check_cache(&app.l1).map_err(|m| ("l1".into(), m))?;
    check_cache(&app.l2).map_err(|m| ("l2".into(), m))?;
    check_share(app.dram_share).map_err(|m| ("dram_share".into(), m))?;
    for (cause, share) in &app.stall_fractions {
        check_share(*share).map_err(|m| (format!("stall_fractions.{cause}"), m))?;
    }
    for (k, kernel) in app.kernels.iter().enumerate() {
        check_span(kernel.start_cycle, kernel.end_cycle)
            .map_err(|m| (format!("kernels[{k}]"), m))?;
    }
    Ok(())
}

fn check_kernel(kernel: &KernelRecord) -> Result<(), (String, String)> {
    check_span(kernel.start_cycle, kernel.end_cycle).map_err(|m| ("end_cycle".into(), m))?;
    check_cache(&kernel.l1).map_err(|m| ("l1".into(), m))?;
    check_cache(&kernel.l2).map_err(|m| ("l2".into(), m))?;
    for (cause, share) in &kernel.stall_fractions {
        check_share(*share).map_err(|m| (format!("stall_fractions.{cause}"), m))?;
    }
    let held = kernel.held_slot_fraction.unwrap_or(0.0);
    check_share(held).map_err(|m| ("held_slot_fraction".into(), m))
}

fn check_share(share: f64) -> Result<(), String> {
    if !(0.0..=1.0 + 1e-9).contains(&share) {
        return Err(format!("expected a share from 0 to 1, found {share}"));
    }
    Ok(())
}

fn check_span(start: u64, end: u64) -> Result<(), String> {
    if end < start {
        return Err(format!("expected an end at or after cycle {start}, found {end}"));
    }
    Ok(())
}

fn check_cache(cache: &CacheCounters) -> Result<(), String> {
    let rules = [
        ("hits", cache.hits, "accesses", cache.accesses),
        ("merged", cache.merged, "hits", cache.hits),
        ("reads", cache.reads, "accesses", cache.accesses),
        ("read_hits", cache.read_hits, "reads", cache.reads),
    ];
    for (part, of_part, whole, of_whole) in rules {
        if of_part > of_whole {
            return Err(format!("expected {part} <= {whole}, found {of_part} > {of_whole}"));
        }
    }
    Ok(())
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
type Wrong = (String, String);

impl QueueRun {
    /// Checks that jobs and groups name each other, that times run forwards, that
    /// shares and counts have an entry for each of their kind, and that groups follow
    /// patterns that there are.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        if self.group_size == 0 {
            return Err(("group_size".into(), "expected at least 1, found 0".into()));
        }
        for (j, job) in self.jobs.iter().enumerate() {
            self.check_job(j, job).map_err(|(key, m)| (format!("jobs[{j}].{key}"), m))?;
        }
        let mut grouped = vec![false; self.jobs.len()];
        for (g, group) in self.groups.iter().enumerate() {
            self.check_group(g, group, &mut grouped)
                .map_err(|(key, m)| (format!("groups[{g}].{key}"), m))?;
        }
        let mut cycle = 0;
        for (m, matching) in self.matchings.iter().enumerate() {
            check_matching(matching, cycle)
                .map_err(|(key, text)| (format!("matchings[{m}].{key}"), text))?;
            cycle = matching.cycle;
        }
        Ok(())
    }

    /// The grouping that was in force at `cycle`: the last one decided by then.
    #[must_use]
    pub fn matching_at(&self, cycle: u64) -> Option<&MatchingRecord> {
        self.matchings.iter().rev().find(|matching| matching.cycle <= cycle)
    }

    fn check_job(&self, index: usize, job: &JobRecord) -> Result<(), Wrong> {
        check_order(job.arrival_cycle, job.start_cycle)
            .map_err(|m| ("start_cycle".to_string(), m))?;
        check_order(job.start_cycle, job.end_cycle).map_err(|m| ("end_cycle".to_string(), m))?;
        let place = usize::try_from(job.group).unwrap_or(usize::MAX);
        let Some(group) = self.groups.get(place) else {
            let message = format!("expected one of {} groups", self.groups.len());
            return Err(("group".into(), message));
        };
        if !group.jobs.contains(&to_u64(index)) {
            let message = format!("expected a group that names the job, found {place}");
            return Err(("group".into(), message));
        }
        Ok(())
    }

    fn check_group(
        &self,
        index: usize,
        group: &GroupRecord,
        grouped: &mut [bool],
    ) -> Result<(), Wrong> {
        let (found, most) = (to_u64(group.jobs.len()), self.group_size);
        if found == 0 || found > most {
            return Err(("jobs".into(), format!("expected 1 to {most} members, found {found}")));
        }
        for (place, &job) in group.jobs.iter().enumerate() {
            let at = usize::try_from(job).unwrap_or(usize::MAX);
            let wrong = match self.jobs.get(at) {
                None => format!("expected one of {} jobs, found {job}", self.jobs.len()),
                Some(reported) if reported.group != to_u64(index) => {
                    format!("expected a job of the group, found one of group {}", reported.group)
                }
                Some(_) if grouped[at] => "expected every job once".into(),
                Some(_) => {
                    grouped[at] = true;
                    continue;
                }
            };
            return Err((format!("jobs[{place}]"), wrong));
        }
        check_order(group.start_cycle, group.end_cycle)
            .map_err(|m| ("end_cycle".to_string(), m))?;
        check_shares(group)?;
        self.check_pattern(group).map_err(|m| ("pattern".into(), m))
    }

    fn check_pattern(&self, group: &GroupRecord) -> Result<(), String> {
        let Some(pattern) = group.pattern else { return Ok(()) };
        let patterns = self.matching_at(group.start_cycle).map_or(0, |m| m.patterns.len());
        if pattern >= to_u64(patterns) {
            return Err(format!("expected one of {patterns} patterns, found {pattern}"));
        }
        Ok(())
    }
}

fn check_shares(group: &GroupRecord) -> Result<(), Wrong> {
    let (members, mut cycle) = (group.jobs.len(), 0);
    for (s, share) in group.shares.iter().enumerate() {
        if share.sms.len() != members {
            let message = format!("expected {members} members, found {}", share.sms.len());
            return Err((format!("shares[{s}].sms"), message));
        }
        check_order(cycle, share.since_begin_cycles)
            .map_err(|m| (format!("shares[{s}].since_begin_cycles"), m))?;
        cycle = share.since_begin_cycles;
    }
    Ok(())
}

fn check_matching(matching: &MatchingRecord, cycle: u64) -> Result<(), Wrong> {
    check_order(cycle, matching.cycle).map_err(|m| ("cycle".to_string(), m))?;
    let classes = matching.classes.len();
    let named = classes - usize::from(matching.classes.last().is_some_and(|last| last == "idle"));
    if !(named..=classes).contains(&matching.waiting.len()) {
        let message = format!("expected {named} classes, found {}", matching.waiting.len());
        return Err(("waiting".into(), message));
    }
    let wrong = matching.patterns.iter().position(|pattern| pattern.counts.len() != classes);
    wrong.map_or(Ok(()), |p| {
        let found = matching.patterns[p].counts.len();
        Err((format!("patterns[{p}].counts"), format!("expected {classes} classes, found {found}")))
    })
}

impl InterferenceRecord {
    /// Checks that the matrix has a row and a column for every class, that every
    /// application has one of these classes, and that ranges are in order.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let classes = self.classes.len();
        if self.slowdown.len() != classes {
            let message = format!("expected {classes} rows, found {}", self.slowdown.len());
            return Err(("slowdown".into(), message));
        }
        if let Some(row) = self.slowdown.iter().position(|of| of.len() != classes) {
            let found = self.slowdown[row].len();
            let message = format!("expected {classes} columns, found {found}");
            return Err((format!("slowdown[{row}]"), message));
        }
        for (a, app) in self.apps.iter().enumerate() {
            if !self.classes.contains(&app.class) {
                let known = self.classes.join(", ");
                let message = format!("expected one of {known}, found {}", app.class);
                return Err((format!("apps[{a}].class"), message));
            }
        }
        let wrong = self.published.iter().position(|known| known.low > known.high);
        wrong.map_or(Ok(()), |p| {
            let known = &self.published[p];
            let message = format!("expected at least {}, found {}", known.low, known.high);
            Err((format!("published[{p}].high"), message))
        })
    }
}

fn check_order(before: u64, after: u64) -> Result<(), String> {
    if after < before {
        return Err(format!("expected cycle {before} or later, found {after}"));
    }
    Ok(())
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
