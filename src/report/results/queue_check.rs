//! Whether a queue run that was read from a file holds together: whoever draws it
//! may rely on its indices.

use gpumodel_core::units::{to_u64, to_usize};

use super::{GroupRecord, InterferenceRecord, JobRecord, MatchingRecord, QueueRun};

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
