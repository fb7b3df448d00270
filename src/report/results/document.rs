//! Reading and writing the JSON document of `analyze`.
//!
//! A document is checked once, here: whoever holds an [`Analysis`] that was
//! read from a file may rely on the counting rules.

use std::path::Path;

use serde::Deserialize;

use gpumodel_core::units::{message_in_words, to_usize};

use super::{
    Analysis, CacheCounters, CoRun, CoRunApp, KernelRecord, RecordError, ResidencyRecord, SCHEMA,
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
