//! Which launch of a record a launch of a profile is: in order, by name and extent.
//!
//! Profilers and traces write names of kernels mangled or readable, with or without return type,
//! scopes, template and call arguments.

use std::fmt;

use cpp_demangle::{DemangleOptions, DemangleWrite, Symbol};
use gpumodel_core::units::Dim3;

use super::super::KernelRecord;
use super::{CountedLaunch, Extent, Profiled};
use crate::format::plain_name;

/// Pairs of launches that are weighed one by one; longer lists are walked once.
const WEIGHED: usize = 4_000_000;

/// A launch by what both sides know of it.
pub(super) struct Launch {
    name: KernelName,
    grid: Option<Extent>,
    block: Option<Extent>,
}

impl Launch {
    pub(super) fn profiled(launch: &Profiled) -> Self {
        Self { name: KernelName::of(&launch.kernel), grid: launch.grid, block: launch.block }
    }

    pub(super) fn counted(launch: &CountedLaunch) -> Self {
        Self {
            name: KernelName::of(&launch.name),
            grid: extent(launch.grid),
            block: extent(launch.block),
        }
    }

    pub(super) fn recorded(kernel: &KernelRecord) -> Self {
        Self {
            name: KernelName::of(&kernel.name),
            grid: extent(kernel.grid),
            block: extent(kernel.block),
        }
    }

    /// How much speaks for both being one launch; 0: they are not.
    fn likeness(&self, other: &Self) -> u32 {
        let same = |one: Option<Extent>, two: Option<Extent>| Some(one? == two?);
        let extents = [same(self.grid, other.grid), same(self.block, other.block)];
        if extents.contains(&Some(false)) {
            return 0;
        }
        let known = extents == [Some(true); 2];
        match self.name.likeness(&other.name) {
            // Other template arguments are another kernel, unless all else is equal and
            // the arguments may be spelt in another way.
            1 if known => 1,
            0 | 1 => 0,
            alike => 2 * alike,
        }
    }

    /// Whether both are launches of one kernel.
    pub(super) fn is_kernel(&self, other: &Self) -> bool {
        self.name.likeness(&other.name) == 2
    }

    /// Whether the names are alike and the extents are not.
    pub(super) fn is_resized(&self, other: &Self) -> bool {
        self.is_kernel(other) && self.likeness(other) == 0
    }
}

/// The extent, where it is known.
fn extent(dim: Dim3) -> Option<Extent> {
    let all = [dim.x, dim.y, dim.z];
    all.iter().all(|&part| part > 0).then_some(all)
}

/// For each launch of `ours`, its place in `theirs`: in the order of both, with the most alike
/// pairs in all.
pub(super) fn in_order(ours: &[Launch], theirs: &[Launch]) -> Vec<Option<usize>> {
    if ours.len().saturating_mul(theirs.len()) > WEIGHED {
        return walked(ours, theirs);
    }
    let width = theirs.len() + 1;
    // best[i][j]: the most that ours from i and theirs from j have in common.
    let mut best = vec![0_u32; (ours.len() + 1) * width];
    for i in (0..ours.len()).rev() {
        for j in (0..theirs.len()).rev() {
            let alike = ours[i].likeness(&theirs[j]);
            let both = if alike > 0 { alike + best[(i + 1) * width + j + 1] } else { 0 };
            best[i * width + j] = both.max(best[(i + 1) * width + j]).max(best[i * width + j + 1]);
        }
    }
    let mut found = vec![None; ours.len()];
    let (mut i, mut j) = (0, 0);
    while i < ours.len() && j < theirs.len() {
        let alike = ours[i].likeness(&theirs[j]);
        let here = best[i * width + j];
        if alike > 0 && here == alike + best[(i + 1) * width + j + 1] {
            found[i] = Some(j);
            (i, j) = (i + 1, j + 1);
        } else if here == best[(i + 1) * width + j] {
            i += 1;
        } else {
            j += 1;
        }
    }
    found
}

/// Each launch of `ours` with the next of `theirs` that is alike.
fn walked(ours: &[Launch], theirs: &[Launch]) -> Vec<Option<usize>> {
    let mut next = 0;
    let mut find = |one: &Launch| {
        let window = theirs.get(next..)?.iter().take(10_000);
        let at = next + window.into_iter().position(|other| one.likeness(other) > 0)?;
        next = at + 1;
        Some(at)
    };
    ours.iter().map(&mut find).collect()
}

/// Bytes of a readable name at most: a short mangled name can stand for a very long one.
const LONGEST: usize = 1 << 14;

/// A kernel's name in the parts that can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KernelName {
    /// Without scopes and arguments.
    base: String,
    /// The template arguments in one spelling, where the name has any.
    arguments: Option<String>,
}

impl KernelName {
    fn of(name: &str) -> Self {
        let readable = readable(name.trim());
        let base = plain_name(&readable);
        let arguments = arguments(&readable, &base);
        Self { base, arguments }
    }

    /// How alike the kernels are: 0 different, 1 the same but for template arguments, 2 the same.
    fn likeness(&self, other: &Self) -> u32 {
        match (self.base == other.base, &self.arguments, &other.arguments) {
            (false, ..) => 0,
            (true, Some(one), Some(two)) if one != two => 1,
            (true, ..) => 2,
        }
    }
}

fn readable(name: &str) -> String {
    let demangled = Symbol::new(name).ok().and_then(|symbol| {
        let mut text = Bounded(String::new());
        symbol.structured_demangle(&mut text, &DemangleOptions::default()).ok()?;
        Some(text.0)
    });
    demangled.unwrap_or_else(|| name.to_owned())
}

struct Bounded(String);

impl DemangleWrite for Bounded {
    fn write_string(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// What stands in angle brackets behind `base`.
fn arguments(name: &str, base: &str) -> Option<String> {
    let open = format!("{base}<");
    let start = name.find(&open).filter(|_| !base.is_empty())? + open.len();
    let mut depth = 1_u32;
    let end = name[start..].find(|c: char| {
        depth = match c {
            '<' => depth + 1,
            '>' => depth - 1,
            _ => depth,
        };
        depth == 0
    })?;
    Some(one_spelling(&name[start..start + end]))
}

/// Without blanks, casts of numbers (`(int)4`) and their suffixes; truths as numbers.
fn one_spelling(arguments: &str) -> String {
    let dense: String = arguments.chars().filter(|c| !c.is_whitespace()).collect();
    let mut text = String::new();
    let mut rest = dense.as_str();
    while let Some(first) = rest.chars().next() {
        let cast = rest.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        if let Some((_, after)) = cast.filter(|(kind, after)| is_word(kind) && is_number(after)) {
            rest = after;
            continue;
        }
        text.push(first);
        rest = &rest[first.len_utf8()..];
    }
    let words = text.split_inclusive([',', '<', '>']).map(|part| {
        let word = part.trim_end_matches([',', '<', '>']);
        let tail = &part[word.len()..];
        let plain = word.trim_end_matches(['u', 'U', 'l', 'L']);
        let number = !plain.is_empty() && plain.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        let word = match word {
            "true" => "1",
            "false" => "0",
            _ if number => plain,
            _ => word,
        };
        format!("{word}{tail}")
    });
    words.collect()
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':'))
}

fn is_number(text: &str) -> bool {
    text.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit())
        || text.starts_with("true")
        || text.starts_with("false")
}

#[cfg(test)]
mod tests {
    use super::KernelName;

    #[test]
    fn one_kernel_has_many_spellings() {
        let same = [
            ("_Z5scaleIfLi4EEvPT_i", "void scale<float, (int)4>(T1 *, int)"),
            ("_Z5scaleIfLi4EEvPT_i", "void scale<float, 4>(float*, int)"),
            ("_Z5scaleIfLi4EEvPT_i", "scale"),
            ("_ZN2at6native3addIfEEvPT_", "void at::native::add<float>(T1 *)"),
            ("saxpy", "saxpy(int, float, float *, float *)"),
            ("void k<(bool)1, unsigned int>(int)", "void k<true, unsigned int>(int)"),
        ];
        for (one, other) in same {
            assert_eq!(KernelName::of(one).likeness(&KernelName::of(other)), 2, "{one} {other}");
        }
        let of = |one: &str, other: &str| KernelName::of(one).likeness(&KernelName::of(other));
        assert_eq!(of("_Z5scaleIfLi4EEvPT_i", "void scale<double, (int)4>(T1 *, int)"), 1);
        assert_eq!(of("saxpy(int)", "saxpy2(int)"), 0);
    }
}
