//! Which launches of a trace a row is about.

use std::fmt;
use std::ops::RangeInclusive;

use super::KernelRecord;
use gpumodel_core::units::quoted;

/// A selection of launches by position in the trace's list, from 1:
/// `all`, `3`, `1-8`, `1-4,7`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launches {
    /// Every launch of the list.
    All,
    /// The launches of these ranges, ends included.
    Ranges(Vec<RangeInclusive<u32>>),
}

impl Launches {
    /// One launch.
    #[must_use]
    pub fn one(position: u32) -> Self {
        Self::Ranges(vec![position..=position])
    }

    /// Reads `all` or a comma-separated list of positions and ranges.
    ///
    /// # Errors
    /// A sentence that says what was expected and what was found.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "all" || text.is_empty() {
            return Ok(Self::All);
        }
        text.split(',').map(parse_range).collect::<Option<Vec<_>>>().map(Self::Ranges).ok_or_else(
            || {
                let found = quoted(text.as_bytes());
                format!("expected launches as `all`, `3`, `1-8` or `1-4,7`, found {found}")
            },
        )
    }

    /// True when the launch at `position` (from 1) is meant.
    #[must_use]
    pub fn contains(&self, position: u32) -> bool {
        match self {
            Self::All => true,
            Self::Ranges(ranges) => ranges.iter().any(|range| range.contains(&position)),
        }
    }

    /// The meant launches among `kernels`, with [`KernelRecord::launch`] as
    /// position, or the order in the slice where a record does not say.
    #[must_use]
    pub fn select<'k>(&self, kernels: &'k [KernelRecord]) -> Vec<&'k KernelRecord> {
        let numbered = kernels.iter().zip(1_u32..);
        numbered
            .filter(|(kernel, order)| {
                self.contains(if kernel.launch == 0 { *order } else { kernel.launch })
            })
            .map(|(kernel, _)| kernel)
            .collect()
    }
}

fn parse_range(part: &str) -> Option<RangeInclusive<u32>> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let first: u32 = first.trim().parse().ok()?;
    let last: u32 = last.trim().parse().ok()?;
    (first > 0 && first <= last).then_some(first..=last)
}

impl fmt::Display for Launches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Ranges(ranges) = self else { return f.write_str("all") };
        for (i, range) in ranges.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            if range.start() == range.end() {
                write!(f, "{comma}{}", range.start())?;
            } else {
                write!(f, "{comma}{}-{}", range.start(), range.end())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Launches;

    #[test]
    fn what_is_printed_is_what_was_read() {
        for text in ["all", "3", "1-8", "1-4,7"] {
            assert_eq!(Launches::parse(text).unwrap().to_string(), text);
        }
        for text in ["0", "8-1", "x", "1-", "-"] {
            assert!(Launches::parse(text).is_err(), "{text}");
        }
        assert!(Launches::parse("1-4,7").unwrap().contains(7));
        assert!(!Launches::parse("1-4,7").unwrap().contains(5));
    }
}
