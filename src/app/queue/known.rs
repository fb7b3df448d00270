//! What has been found out so far, in this run and in earlier ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rayon::prelude::*;

use gpumodel_core::contract::{GroupProbeResult, ProbeResult};

use super::super::disk_cache::{DiskCache, Kind};
use super::super::error::RunError;
use super::pool::Pool;
use super::work::{Answer, GroupOutcome, Work};

/// Answers by the keys of the work.
#[derive(Debug)]
pub(super) struct Known {
    answers: BTreeMap<u128, Answer>,
    cache: DiskCache,
}

impl Known {
    /// Nothing but what is kept in the folder `cache`.
    pub(super) fn new(cache: &Path) -> Self {
        Self { answers: BTreeMap::new(), cache: DiskCache::new(cache) }
    }

    /// The outcome of a group, where it is known.
    pub(super) fn group(&self, key: u128) -> Option<&GroupOutcome> {
        match self.answers.get(&key)? {
            Answer::Group(outcome) => Some(outcome),
            other => unreachable!("the key of a group led to {other:?}"),
        }
    }

    /// The answer to a probe of applications on SMs of their own, where it is known.
    pub(super) fn pair(&self, key: u128) -> Option<&GroupProbeResult> {
        match self.answers.get(&key)? {
            Answer::Pair(result) => Some(result),
            other => unreachable!("the key of a pair led to {other:?}"),
        }
    }

    /// The answer to a probe of one application, which has been found out before.
    pub(super) fn alone(&self, key: u128) -> &ProbeResult {
        match &self.answers[&key] {
            Answer::Alone(result) => result,
            other => unreachable!("the key of a probe led to {other:?}"),
        }
    }

    /// Finds out everything in `work`, and before that what it needs: each once, on
    /// all threads. What is found is kept at once, so that a run that is ended can go
    /// on where it was.
    pub(super) fn find(&mut self, pool: &Pool<'_>, work: Vec<Work>) -> Result<(), RunError> {
        let open = self.unknown(pool, work);
        let needs: Vec<Vec<Work>> =
            open.par_iter().map(|(_, work)| work.needs(pool)).collect::<Result<_, _>>()?;
        let needs = self.unknown(pool, needs.into_iter().flatten().collect());
        self.work_off(pool, needs)?;
        self.work_off(pool, open)
    }

    /// What of `work` nobody has done, each once and with its key.
    fn unknown(&mut self, pool: &Pool<'_>, work: Vec<Work>) -> Vec<(u128, Work)> {
        let mut keys = BTreeSet::new();
        let mut open = Vec::new();
        for work in work {
            let key = work.key(pool);
            if self.answers.contains_key(&key) || !keys.insert(key) {
                continue;
            }
            match self.cache.find(Kind::Groups, key) {
                Some(answer) => {
                    self.answers.insert(key, answer);
                }
                None => open.push((key, work)),
            }
        }
        open
    }

    fn work_off(&mut self, pool: &Pool<'_>, mut open: Vec<(u128, Work)>) -> Result<(), RunError> {
        // Long ones first, so that no thread is left with one at the end.
        open.sort_by_key(|(key, work)| (std::cmp::Reverse(work.size(pool)), *key));
        pool.bench.watch.running().begin(open.iter().map(|(_, work)| work.size(pool)).sum());
        let answers: Vec<Result<(u128, Answer), RunError>> = open
            .par_iter()
            .with_max_len(1)
            .map(|(key, work)| {
                let answer = work.run(pool, self)?;
                self.cache.keep(Kind::Groups, *key, &answer);
                Ok((*key, answer))
            })
            .collect();
        for answer in answers {
            let (key, answer) = answer?;
            self.answers.insert(key, answer);
        }
        Ok(())
    }
}
