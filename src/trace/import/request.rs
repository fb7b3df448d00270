//! What a conversion is asked for and what it reports.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use regex_lite::Regex;

use crate::isa::Launch;
use crate::trace::error::TraceError;

/// A conversion to one store.
#[derive(Clone, Debug, Default)]
pub struct ConvertRequest {
    /// Trace folders, command lists or trace files; their commands follow each
    /// other in the store.
    pub inputs: Vec<PathBuf>,
    /// The store to write.
    pub output: PathBuf,
    /// Only launches whose id (as in the trace) is in here; all when `None`.
    pub kernels: Option<KernelIds>,
    /// Only launches whose name matches this regular expression somewhere.
    pub names: Option<String>,
}

/// Launch ids as ranges: `1-12,40`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelIds(Vec<RangeInclusive<u32>>);

impl KernelIds {
    /// True when `id` is in one of the ranges.
    #[must_use]
    pub fn contains(&self, id: u32) -> bool {
        self.0.iter().any(|range| range.contains(&id))
    }
}

impl FromStr for KernelIds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first = first.trim().parse().ok()?;
            let last = last.trim().parse().ok()?;
            (first <= last).then_some(first..=last)
        };
        let wrong = |part| format!("expected ids such as `1-12,40`, found `{part}`");
        let ranges = text.split(',').map(|part| range(part).ok_or_else(|| wrong(part)));
        ranges.collect::<Result<_, _>>().map(Self)
    }
}

/// Which launches are taken.
#[derive(Debug)]
pub(in crate::trace) struct Filter {
    kernels: Option<KernelIds>,
    names: Option<Regex>,
}

impl Filter {
    /// The filter of `request`.
    pub(in crate::trace) fn new(request: &ConvertRequest) -> Result<Self, TraceError> {
        let names = request.names.as_ref().map(|pattern| {
            Regex::new(pattern).map_err(|error| {
                TraceError::Request(format!("`{pattern}` is no regular expression: {error}"))
            })
        });
        Ok(Self { kernels: request.kernels.clone(), names: names.transpose()? })
    }

    /// True when `launch` is wanted.
    pub(in crate::trace) fn takes(&self, launch: &Launch) -> bool {
        self.kernels.as_ref().is_none_or(|ids| ids.contains(launch.id))
            && self.names.as_ref().is_none_or(|names| names.is_match(&launch.name))
    }
}

/// Hears how far a conversion is; called from the converting thread.
pub trait Progress: Sync {
    /// The source files have `bytes` bytes in all, as they are stored.
    fn begin(&self, bytes: u64);
    /// `bytes` more of them were read.
    fn advance(&self, bytes: u64);
}

/// Progress that nobody looks at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: u64) {}
    fn advance(&self, _: u64) {}
}

/// What a conversion did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConvertReport {
    /// What the user should know, one sentence each.
    pub warnings: Vec<String>,
    /// Launches in the store, and those that the filters left out.
    pub kernels: usize,
    /// See [`ConvertReport::kernels`].
    pub left_out: usize,
    /// Bytes of decompressed trace text.
    pub text_bytes: u64,
    /// Bytes of the trace files as they are stored.
    pub source_bytes: u64,
    /// Bytes of the store.
    pub store_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::KernelIds;

    #[test]
    fn ids_are_ranges() {
        let ids: KernelIds = "1-12, 40".parse().unwrap();
        assert!(ids.contains(1) && ids.contains(12) && ids.contains(40) && !ids.contains(13));
        assert!("5-3".parse::<KernelIds>().is_err());
        assert!("".parse::<KernelIds>().is_err());
    }
}
