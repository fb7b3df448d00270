//! Filters of launches and of their CTAs, the same for traces
//! and stores.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use cpp_demangle::{DemangleOptions, DemangleWrite, Symbol};
use regex_lite::Regex;

use gpumodel_core::isa::Launch;
use gpumodel_core::units::to_u64;

/// Names, and ids of one name, that an error lists at most.
const MOST_NAMED: usize = 8;
/// Bytes of a name that is made readable.
const LONGEST_NAME: usize = 1 << 16;

/// Which launches and CTAs are taken; all of them by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only launches with these ids, as in the trace.
    pub kernels: Option<KernelIds>,
    /// Only launches with such a name.
    pub names: Option<NamePattern>,
    /// Only these CTAs of every launch.
    pub ctas: Option<CtaChoice>,
}

impl Filter {
    /// True when the filter takes `launch`: its id, its name and a CTA of its grid.
    #[must_use]
    pub fn takes(&self, launch: &Launch) -> bool {
        self.kernels.as_ref().is_none_or(|ids| ids.contains(launch.id))
            && self.names.as_ref().is_none_or(|names| names.matches(&launch.name))
            && self.ctas.as_ref().is_none_or(|ctas| ctas.lie_in(launch.grid.count()))
    }

    /// The message that the filter takes none of `launches`, with a list of them.
    #[must_use]
    pub fn nothing(&self, launches: impl IntoIterator<Item = Launch>) -> String {
        let mut names: Vec<(String, Vec<String>, u64)> = Vec::new();
        for launch in launches {
            let place = names.iter().position(|(name, ..)| *name == launch.name);
            let place = place.unwrap_or_else(|| {
                names.push((launch.name, Vec::new(), 0));
                names.len() - 1
            });
            names[place].1.push(launch.id.to_string());
            names[place].2 = names[place].2.max(launch.grid.count());
        }
        let left = names.len().saturating_sub(MOST_NAMED);
        let shown = names.iter().take(MOST_NAMED).map(|(name, ids, ctas)| {
            let dots = if ids.len() > MOST_NAMED { ",…" } else { "" };
            let ids = ids[..ids.len().min(MOST_NAMED)].join(",");
            format!("{name} (id {ids}{dots}; at most {ctas} CTAs)")
        });
        let shown: Vec<String> = shown.collect();
        let more = if left > 0 { format!(" and {left} more names") } else { String::new() };
        let asked = if *self == Self::default() { String::new() } else { format!(" by {self}") };
        format!("nothing is taken{asked}; there is {}{more}", shown.join(", "))
    }

    /// A warning that names the requested ids without a launch among `taken`.
    #[must_use]
    pub fn missing(&self, taken: &[u32]) -> Option<String> {
        let asked = &self.kernels.as_ref()?.0.0;
        let none = |range: &&RangeInclusive<u32>| !taken.iter().any(|id| range.contains(id));
        let missing = Ranges(asked.iter().filter(none).cloned().collect());
        let some = !missing.0.is_empty();
        some.then(|| format!("--kernels: no launch was taken for {missing}"))
    }

    /// The options and their values, as typed.
    #[must_use]
    pub fn words(&self) -> Vec<(&'static str, String)> {
        let kernels = self.kernels.as_ref().map(|ids| ("kernels", ids.to_string()));
        let names = self.names.as_ref().map(|names| ("names", names.to_string()));
        let ctas = self.ctas.as_ref().map(|ctas| ("ctas", ctas.to_string()));
        [kernels, names, ctas].into_iter().flatten().collect()
    }
}

impl fmt::Display for Filter {
    /// As options of the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.words();
        let words: Vec<String> =
            words.iter().map(|(key, word)| format!("--{key} {word}")).collect();
        f.write_str(&words.join(" "))
    }
}

/// Numbers as ranges: `1-12,40`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ranges<T>(Vec<RangeInclusive<T>>);

impl<T: FromStr + PartialOrd + Copy> Ranges<T> {
    /// Reads ranges; `None` for anything else.
    fn read(text: &str) -> Option<Self> {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (first <= last).then_some(first..=last)
        };
        text.split(',').map(range).collect::<Option<_>>().map(Self)
    }

    fn contains(&self, number: T) -> bool {
        self.0.iter().any(|range| range.contains(&number))
    }
}

impl<T: PartialEq + fmt::Display> fmt::Display for Ranges<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, range) in self.0.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { "," })?;
            match range.start() == range.end() {
                true => write!(f, "{}", range.start())?,
                false => write!(f, "{}-{}", range.start(), range.end())?,
            }
        }
        Ok(())
    }
}

/// Launch ids as ranges: `1-12,40`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelIds(Ranges<u32>);

impl KernelIds {
    /// True when `id` is in one of the ranges.
    #[must_use]
    pub fn contains(&self, id: u32) -> bool {
        self.0.contains(id)
    }
}

impl FromStr for KernelIds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected ids such as `1-12,40`, found `{text}`");
        Ranges::read(text).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for KernelIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A regular expression for kernel names.
#[derive(Clone, Debug)]
pub struct NamePattern(Regex);

impl NamePattern {
    /// True when the expression matches somewhere in `name` as the trace has it,
    /// or in its readable form where `name` is mangled.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.0.is_match(name) || readable(name).is_some_and(|name| self.0.is_match(&name))
    }
}

/// The name that a mangled C++ name stands for.
fn readable(name: &str) -> Option<String> {
    let symbol = Symbol::new(name).ok()?;
    let mut text = Bounded(String::new());
    symbol.structured_demangle(&mut text, &DemangleOptions::default()).ok()?;
    Some(text.0)
}

/// A text that takes no more than [`LONGEST_NAME`] bytes: a short mangled name can
/// stand for a very long one.
struct Bounded(String);

impl DemangleWrite for Bounded {
    fn write_string(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST_NAME {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

impl PartialEq for NamePattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for NamePattern {}

impl FromStr for NamePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Regex::new(text).map(Self).map_err(|error| format!("no regular expression: {error}"))
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

/// CTAs of a launch: ranges of their linear positions in the grid (x fastest) as
/// `0-159,320`, or `first:N` for the first N of those that the trace has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CtaChoice(Choice);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    First(u64),
    Linear(Ranges<u64>),
}

impl CtaChoice {
    /// Of how many CTAs in the trace's order it takes the first ones, and no
    /// others; `None` when it goes by positions.
    pub(super) fn first(&self) -> Option<u64> {
        match &self.0 {
            Choice::First(count) => Some(*count),
            Choice::Linear(_) => None,
        }
    }

    /// True when the CTA at the position `linear` is taken, if it goes by positions.
    pub(super) fn contains(&self, linear: u64) -> bool {
        match &self.0 {
            Choice::First(_) => true,
            Choice::Linear(ranges) => ranges.contains(linear),
        }
    }

    /// Some CTA of a grid of `count` may be taken.
    fn lie_in(&self, count: u64) -> bool {
        match &self.0 {
            Choice::First(_) => true,
            Choice::Linear(ranges) => ranges.0.iter().any(|range| *range.start() < count),
        }
    }
}

impl FromStr for CtaChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let choice = match text.strip_prefix("first:") {
            Some(count) => count.parse().ok().filter(|count| *count > 0).map(Choice::First),
            None => Ranges::read(text).map(Choice::Linear),
        };
        let wrong = || format!("expected CTAs such as `0-159,320` or `first:80`, found `{text}`");
        choice.map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for CtaChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Choice::First(count) => write!(f, "first:{count}"),
            Choice::Linear(ranges) => ranges.fmt(f),
        }
    }
}

/// Selects the CTAs of one trace as they come: the choice, and for the first N those that were
/// taken so far.
#[derive(Debug, Default)]
pub(crate) struct CtaSelector {
    choice: Option<CtaChoice>,
    taken: BTreeSet<u64>,
}

impl CtaSelector {
    /// Takes what `choice` says; everything when it is `None`.
    pub(crate) fn new(choice: Option<CtaChoice>) -> Self {
        Self { choice, taken: BTreeSet::new() }
    }

    /// Takes everything.
    pub(crate) fn all(&self) -> bool {
        self.choice.is_none()
    }

    /// For thread blocks one by one, in the trace's order: whether the one at
    /// `linear` is taken.
    pub(crate) fn block(&mut self, linear: u64) -> bool {
        let Some(choice) = &self.choice else { return true };
        match choice.first() {
            None => choice.contains(linear),
            Some(count) => to_u64(self.taken.len()) < count && self.taken.insert(linear),
        }
    }

    /// For single records in any order: whether one of the thread block at `linear`
    /// may be taken. In the end only those below [`CtaSelector::end`] are.
    pub(crate) fn record(&mut self, linear: u64) -> bool {
        let Some(choice) = &self.choice else { return true };
        let Some(count) = choice.first() else { return choice.contains(linear) };
        let full = to_u64(self.taken.len()) >= count;
        if full && self.taken.last().is_some_and(|last| linear > *last) {
            return false;
        }
        if self.taken.insert(linear) && full {
            self.taken.pop_last();
        }
        true
    }

    /// The position after the last thread block that is taken.
    pub(crate) fn end(&self) -> u64 {
        let first = self.choice.as_ref().and_then(CtaChoice::first);
        first.and(self.taken.last()).map_or(u64::MAX, |last| last + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::{CtaChoice, CtaSelector, Filter, KernelIds, NamePattern};
    use gpumodel_core::isa::Launch;
    use gpumodel_core::units::Dim3;

    #[test]
    fn ids_are_ranges() {
        let ids: KernelIds = "1-12, 40".parse().unwrap();
        assert!(ids.contains(1) && ids.contains(12) && ids.contains(40) && !ids.contains(13));
        assert_eq!(ids.to_string(), "1-12,40");
        assert!("5-3".parse::<KernelIds>().is_err());
        assert!("".parse::<KernelIds>().is_err());
    }

    #[test]
    fn ctas_are_positions_or_the_first_ones() {
        let some: CtaChoice = "0-159,320".parse().unwrap();
        assert!(some.contains(159) && some.contains(320) && !some.contains(160));
        assert_eq!((some.first(), some.to_string()), (None, "0-159,320".to_owned()));
        let first: CtaChoice = "first:80".parse().unwrap();
        assert_eq!((first.first(), first.to_string()), (Some(80), "first:80".to_owned()));
        for wrong in ["first:0", "first:", "last:3", "3-1", "-4"] {
            assert!(wrong.parse::<CtaChoice>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_match_mangled_or_readable() {
        let name = "_ZN4tile4gemmIfLi16EEEvPKT_S3_PS1_i";
        let matches = |pattern: &str| pattern.parse::<NamePattern>().unwrap().matches(name);
        assert!(matches("^_ZN4tile") && matches("tile::gemm<float, 16>"));
        assert!(!matches("conv"));
        // A parameter list that doubles with every substitution.
        let mut long = String::from("_Z1fI1AS_E");
        (0..40).for_each(|_| long.push_str("1BIS_S_E"));
        assert!(!"conv".parse::<NamePattern>().unwrap().matches(&long));
    }

    #[test]
    fn a_launch_needs_id_name_and_a_cta() {
        let launch = |name: &str| Launch {
            name: name.to_owned(),
            id: 3,
            grid: Dim3::new(10, 1, 1),
            ..Launch::default()
        };
        let names = Filter { names: Some("gemm|conv".parse().unwrap()), ..Filter::default() };
        assert!(names.takes(&launch("my_gemm")) && !names.takes(&launch("relu")));
        let ctas = |text: &str| Filter { ctas: Some(text.parse().unwrap()), ..Filter::default() };
        assert!(ctas("9-20").takes(&launch("f")) && !ctas("10-20").takes(&launch("f")));
        assert_eq!(ctas("first:2").to_string(), "--ctas first:2");
    }

    #[test]
    fn records_in_any_order_give_the_first_blocks() {
        let mut selector = CtaSelector::new(Some("first:2".parse().unwrap()));
        let taken = [9, 4, 4, 7, 9, 1, 7, 4].map(|linear| selector.record(linear));
        assert_eq!(taken, [true, true, true, true, false, true, false, true]);
        assert_eq!(selector.end(), 5);
        let mut selector = CtaSelector::new(Some("2-4".parse().unwrap()));
        assert!(
            selector.record(2) && !selector.record(5) && selector.block(4) && !selector.block(0)
        );
        assert_eq!(selector.end(), u64::MAX);
    }
}
