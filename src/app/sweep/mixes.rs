//! The mixes of a plan: lists, all pairs, random draws.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use gpumodel_core::units::did_you_mean;

use crate::error::InvalidValue;
use crate::queue::Draws;

/// The most applications of a mix.
const MAX_MIX_SIZE: usize = 16;

/// Their key in a plan.
const KEY: &str = "mixes";

/// The most mixes of a plan.
const MAX_MIXES: usize = 100_000;

/// The mixes of a plan as they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mixes {
    /// Names, in their order on the machine.
    #[serde(default)]
    lists: Vec<Vec<String>>,
    /// Every pair of applications of the plan.
    #[serde(default)]
    all_pairs: bool,
    #[serde(default)]
    random: Vec<Random>,
}

/// Random mixes, all distinct, without repeated applications.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Random {
    size: usize,
    count: usize,
    #[serde(default)]
    seed: u64,
}

impl Mixes {
    /// The mixes of the applications `names`, each once: lists, then pairs, then draws.
    ///
    /// # Errors
    /// The location and key, what was expected and what was found.
    pub(super) fn of(&self, names: &[&str]) -> Result<Vec<Vec<usize>>, InvalidValue> {
        let indices = names.iter().enumerate().map(|(index, &name)| (name, index)).collect();
        let mut mixes = Vec::new();
        for (number, list) in self.lists.iter().enumerate() {
            let mix = listed(list, &indices).map_err(|invalid| {
                let message = format!("mixes.lists, list {}: {invalid}", number + 1);
                InvalidValue::of(KEY, message).within("lists").item(number)
            })?;
            mixes.push(mix);
        }
        let pairs = if self.all_pairs { combinations(names.len(), 2) } else { 0 };
        let drawn = self.random.iter().map(|random| random.count);
        let asked = drawn.fold(pairs.saturating_add(mixes.len()), usize::saturating_add);
        if asked > MAX_MIXES {
            let message = format!("mixes: expected at most {MAX_MIXES}, found {asked}");
            return Err(InvalidValue::of(KEY, message));
        }
        if self.all_pairs {
            let pairs = |one| (one + 1..names.len()).map(move |other| vec![one, other]);
            mixes.extend((0..names.len()).flat_map(pairs));
        }
        for (number, random) in self.random.iter().enumerate() {
            let drawn = random.drawn(names.len()).map_err(|invalid| {
                let message = format!("mixes.random, draw {}: {invalid}", number + 1);
                InvalidValue::of(KEY, message).within("random").item(number)
            })?;
            mixes.extend(drawn);
        }
        let mut known = BTreeSet::new();
        mixes.retain(|mix| known.insert(mix.clone()));
        if mixes.is_empty() {
            let message =
                "expected mixes, as [mixes] with lists = [[\"a\", \"b\"]] or all_pairs = true";
            return Err(InvalidValue::of(KEY, message));
        }
        Ok(mixes)
    }
}

/// The applications of a list, by index.
fn listed(list: &[String], indices: &BTreeMap<&str, usize>) -> Result<Vec<usize>, String> {
    if !(1..=MAX_MIX_SIZE).contains(&list.len()) {
        let found = list.len();
        return Err(format!("expected 1 to {MAX_MIX_SIZE} applications, found {found}"));
    }
    let mut mix = Vec::new();
    for name in list {
        let &index = indices.get(name.as_str()).ok_or_else(|| {
            let names = || indices.keys().copied();
            let hint = did_you_mean(name, names());
            format!(
                "no application {name}{hint}; the applications are: {}",
                names().collect::<Vec<_>>().join(", ")
            )
        })?;
        if mix.contains(&index) {
            return Err(format!(
                "{name} appears twice; give the same source a second name in [apps]"
            ));
        }
        mix.push(index);
    }
    Ok(mix)
}

impl Random {
    /// The requested number of mixes of `apps` applications.
    fn drawn(&self, apps: usize) -> Result<Vec<Vec<usize>>, String> {
        let most = MAX_MIX_SIZE.min(apps);
        if !(1..=most).contains(&self.size) {
            return Err(format!("size: expected 1 to {most}, found {}", self.size));
        }
        let possible = combinations(apps, self.size).min(MAX_MIXES);
        if !(1..=possible).contains(&self.count) {
            return Err(format!(
                "count: expected 1 to {possible} mixes of {} out of {apps}, found {}",
                self.size, self.count
            ));
        }
        let mut draws = Draws::new(self.seed);
        let mut known = BTreeSet::new();
        let mut mixes = Vec::new();
        while mixes.len() < self.count {
            let mut free: Vec<usize> = (0..apps).collect();
            let mut mix: Vec<usize> =
                (0..self.size).map(|_| free.swap_remove(draws.below(free.len()))).collect();
            mix.sort_unstable();
            if known.insert(mix.clone()) {
                mixes.push(mix);
            }
        }
        Ok(mixes)
    }
}

/// The number of ways to choose `some` of `all`; bounded.
fn combinations(all: usize, some: usize) -> usize {
    let step = |ways: usize, index: usize| ways.saturating_mul(all - index) / (index + 1);
    (0..some.min(all.saturating_sub(some)))
        .fold(1, |ways, index| step(ways, index).min(usize::MAX >> 8))
}

#[cfg(test)]
mod tests {
    use super::{Mixes, Random, combinations};

    const NAMES: [&str; 4] = ["a", "b", "c", "d"];

    fn lists(lists: &[&[&str]]) -> Mixes {
        let list = |list: &&[&str]| list.iter().map(ToString::to_string).collect();
        Mixes { lists: lists.iter().map(list).collect(), ..Mixes::default() }
    }

    fn drawn(counts: &[usize]) -> Mixes {
        let draw = |&count: &usize| Random { size: 2, count, seed: 0 };
        Mixes { random: counts.iter().map(draw).collect(), ..Mixes::default() }
    }

    #[test]
    fn pairs_are_all_and_mixes_come_once() {
        let plan =
            Mixes { all_pairs: true, ..lists(&[&["b", "a"], &["a", "b"], &["a", "b", "d"]]) };
        let mixes = plan.of(&NAMES).unwrap();
        assert_eq!(mixes[..3], [vec![1, 0], vec![0, 1], vec![0, 1, 3]]);
        assert_eq!(mixes.len(), 3 + 5, "the order within a mix tells mixes apart");
    }

    #[test]
    fn draws_follow_from_their_seed_and_differ() {
        let drawn = |size, count, seed| Random { size, count, seed }.drawn(12).unwrap();
        assert_eq!(drawn(4, 20, 1), drawn(4, 20, 1));
        assert_ne!(drawn(4, 20, 1), drawn(4, 20, 2));
        let mut all = drawn(2, 66, 7);
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 66, "all pairs");
        assert!(Random { size: 2, count: 67, seed: 0 }.drawn(12).is_err());
        assert!(Random { size: 5, count: 1, seed: 0 }.drawn(4).is_err());
    }

    #[test]
    fn combinations_are_binomial_coefficients() {
        let row: Vec<usize> = (0..=6).map(|some| combinations(6, some)).collect();
        assert_eq!(row, [1, 6, 15, 20, 15, 6, 1]);
        assert!(combinations(100_000, 16) > 1 << 40);
    }

    #[test]
    fn invalid_mixes_are_refused_with_their_index() {
        for (invalid, words) in [
            (lists(&[&["a"], &["a", "x"]]), "list 2: no application x"),
            (lists(&[&["a", "a"]]), "a appears twice"),
            (lists(&[&[]]), "found 0"),
            (lists(&[]), "expected mixes"),
            (drawn(&[usize::MAX, usize::MAX]), "at most 100000"),
            (drawn(&[1, 100_000]), "found 100001"),
        ] {
            let said = invalid.of(&NAMES).unwrap_err().message;
            assert!(said.contains(words), "{said}");
        }
    }
}
