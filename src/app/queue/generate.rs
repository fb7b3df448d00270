//! Generates queues: applications of each class by a distribution, in random order.

use std::fmt;

use serde::Deserialize;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use gpumodel_core::units::{to_u64, to_usize};
use gpumodel_policy::queue::CLASSES;

use crate::error::InvalidValue;

/// The distributions of ILP-SMRA, section IV: all classes alike, or one dominates.
pub(super) const DISTRIBUTIONS: [&str; 5] =
    ["equal", CLASSES[0], CLASSES[1], CLASSES[2], CLASSES[3]];

/// Its key in a queue file.
const KEY: &str = "generate";

/// The most applications in all queues of a file.
const MAX_TOTAL_JOBS: usize = 1_000_000;

/// The most seeds of a file.
const MAX_SEEDS: usize = 1000;

/// Queues to generate: one per distribution and seed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Generate {
    /// Applications in a queue.
    pub(super) length: usize,
    /// The distributions of classes.
    #[serde(default = "all")]
    pub(super) distributions: Vec<String>,
    /// The seeds.
    #[serde(default = "one")]
    pub(super) seeds: Vec<u64>,
}

fn all() -> Vec<String> {
    DISTRIBUTIONS.map(str::to_owned).to_vec()
}

fn one() -> Vec<u64> {
    vec![1]
}

impl Generate {
    /// Checks lengths and words.
    pub(super) fn check(&self, most_jobs: usize) -> Result<(), InvalidValue> {
        let results = |word: &String| DISTRIBUTIONS.contains(&word.as_str());
        if let Some(index) = self.distributions.iter().position(|word| !results(word)) {
            let (all, word) = (DISTRIBUTIONS.join(", "), &self.distributions[index]);
            let message = format!("expected some of {all}, found {word}");
            return Err(invalid("distributions", &message).item(index));
        }
        let (words, seeds) = (self.distributions.len(), self.seeds.len());
        for (key, count, most) in [
            ("length", self.length, most_jobs),
            ("distributions", words, DISTRIBUTIONS.len()),
            ("seeds", seeds, MAX_SEEDS),
        ] {
            if !(1..=most).contains(&count) {
                return Err(invalid(key, &format!("expected 1 to {most}, found {count}")));
            }
        }
        let jobs = self.length.saturating_mul(words).saturating_mul(seeds);
        if jobs > MAX_TOTAL_JOBS {
            let message = format!(
                "generate: expected at most {MAX_TOTAL_JOBS} applications in all queues, found \
                 {jobs}: a shorter length or fewer seeds"
            );
            return Err(InvalidValue::of(KEY, message));
        }
        once("seeds", &self.seeds)?;
        once("distributions", &self.distributions)
    }
}

/// An error about the value of `key`.
fn invalid(key: &str, message: &str) -> InvalidValue {
    InvalidValue::of(KEY, format!("{KEY}.{key}: {message}")).within(key)
}

/// Refuses repeated values: they identify queues.
fn once<T: PartialEq + fmt::Display>(key: &str, list: &[T]) -> Result<(), InvalidValue> {
    match (1..list.len()).find(|&index| list[..index].contains(&list[index])) {
        Some(index) => Err(invalid(key, &format!("{} appears twice", list[index])).item(index)),
        None => Ok(()),
    }
}

/// The number of applications of each class in a queue of `length`. Without a dominant class:
/// equal numbers, the first classes taking the remainder. With one: the others share 45 %, the
/// dominant class takes the rest (11 + 3 + 3 + 3 of 20, and 21 + 5 + 5 + 5 of 36).
pub(super) fn counts(dominant: Option<usize>, classes: usize, length: usize) -> Vec<usize> {
    let Some(dominant) = dominant else {
        let (each, more) = (length / classes, length % classes);
        return (0..classes).map(|class| each + usize::from(class < more)).collect();
    };
    let other = if classes > 1 { length * 45 / 100 / (classes - 1) } else { 0 };
    let rest = length - other * (classes - 1);
    (0..classes).map(|class| if class == dominant { rest } else { other }).collect()
}

/// A queue: `counts` applications of each class, drawn with repetition from its pool, in random
/// order.
///
/// # Errors
/// The index of a needed class without applications.
pub(super) fn queue(
    counts: &[usize],
    pools: &[Vec<usize>],
    seed: u64,
) -> Result<Vec<usize>, usize> {
    let mut draws = Draws::new(seed);
    let mut queue = Vec::with_capacity(counts.iter().sum());
    for (class, (&count, pool)) in counts.iter().zip(pools).enumerate() {
        if count > 0 && pool.is_empty() {
            return Err(class);
        }
        queue.extend((0..count).map(|_| pool[draws.below(pool.len())]));
    }
    // Fisher and Yates.
    for last in (1..queue.len()).rev() {
        queue.swap(last, draws.below(last + 1));
    }
    Ok(queue)
}

/// A sequence of random numbers that depends only on its seed.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    seed: u64,
    count: u64,
}

impl Draws {
    /// The sequence of `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, count: 0 }
    }

    /// A number below `bound`, which is above 0. The bias is below 2^-40 for the
    /// lengths that a queue may have.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.count += 1;
        let random = u128::from(xxh3_64_with_seed(&self.count.to_le_bytes(), self.seed));
        let scaled = (random * u128::from(to_u64(bound))) >> 64;
        to_usize(u64::try_from(scaled).expect("below a bound of 64 bits"))
    }
}

#[cfg(test)]
mod tests {
    use super::{counts, queue};

    #[test]
    fn the_papers_queues() {
        assert_eq!(counts(None, 4, 20), [5, 5, 5, 5]);
        assert_eq!(counts(None, 4, 36), [9, 9, 9, 9]);
        assert_eq!(counts(Some(0), 4, 20), [11, 3, 3, 3]);
        assert_eq!(counts(Some(3), 4, 36), [5, 5, 5, 21]);
        assert_eq!(counts(None, 4, 6), [2, 2, 1, 1]);
        assert_eq!(counts(Some(0), 1, 7), [7]);
    }

    #[test]
    fn a_queue_follows_from_its_seed() {
        let pools = [vec![0, 4], vec![1], vec![2], vec![3, 5, 6]];
        let made = |seed| queue(&[5, 5, 5, 5], &pools, seed).unwrap();
        assert_eq!(made(1), made(1));
        assert_ne!(made(1), made(2));
        let class = |app: usize| pools.iter().position(|pool| pool.contains(&app)).unwrap();
        let mut found = [0; 4];
        made(3).into_iter().for_each(|app| found[class(app)] += 1);
        assert_eq!(found, [5; 4]);
        assert_eq!(queue(&[1, 1], &[vec![0], vec![]], 0), Err(1));
    }
}
