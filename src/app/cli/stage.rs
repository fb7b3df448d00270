//! Where long work is: which phase of how many, and which part.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{interrupt, message};
use crate::Phase;

/// The phase of some work, and the part of the whole to which it belongs.
#[derive(Debug, Default)]
pub(super) struct Stage(Mutex<Place>);

/// The words of a stage; empty where there are none.
#[derive(Debug, Default)]
struct Place {
    /// As `part 2 of 5`.
    part: String,
    /// What the part is called.
    name: String,
    /// As `phase 2 of 3`.
    phase: String,
    /// What the phase does.
    what: String,
}

impl Stage {
    /// A part of the work begins.
    pub(super) fn enter(&self, part: String, name: &str) {
        *self.place() = Place { part, name: name.to_owned(), ..Place::default() };
    }

    /// A phase begins.
    pub(super) fn begin(&self, phase: Phase<'_>) {
        let Phase { number, of, what } = phase;
        if number > 1 {
            interrupt::work_began();
        }
        let mut place = self.place();
        place.phase = format!("phase {number} of {of}");
        what.clone_into(&mut place.what);
    }

    /// Whether the work is a part of a whole.
    pub(super) fn is_part(&self) -> bool {
        !self.place().part.is_empty()
    }

    /// The numbers, for the start of a bar.
    pub(super) fn short(&self) -> String {
        let Place { part, phase, .. } = &*self.place();
        let words = joined(&[part, phase], ", ");
        if words.is_empty() { words } else { words + " " }
    }

    /// Numbers and words, for a log.
    pub(super) fn whole(&self) -> String {
        let Place { part, name, phase, what } = &*self.place();
        joined(&[&joined(&[part, name], ": "), &joined(&[phase, what], ": ")], "; ")
    }

    /// Writes a line of a log: the stage, and how far it is where that is known.
    pub(super) fn log(&self, so_far: Option<String>) {
        let line = joined(&[&self.whole(), &so_far.unwrap_or_default()], ": ");
        if !line.is_empty() {
            message(line);
        }
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those of `words` that are not empty.
fn joined(words: &[&str], between: &str) -> String {
    let words: Vec<&str> = words.iter().copied().filter(|word| !word.is_empty()).collect();
    words.join(between)
}

#[cfg(test)]
mod tests {
    use super::Stage;
    use crate::Phase;

    #[test]
    fn a_stage_says_how_many_phases_and_parts_exist() {
        let stage = Stage::default();
        assert_eq!((&*stage.whole(), &*stage.short()), ("", ""));
        stage.begin(Phase { number: 2, of: 3, what: "cells" });
        assert_eq!((&*stage.whole(), &*stage.short()), ("phase 2 of 3: cells", "phase 2 of 3 "));
        stage.enter("part 4 of 7".into(), "slate pairs");
        assert_eq!(stage.whole(), "part 4 of 7: slate pairs", "its phase has not begun");
        stage.begin(Phase { number: 1, of: 3, what: "converting" });
        assert_eq!(stage.whole(), "part 4 of 7: slate pairs; phase 1 of 3: converting");
        assert_eq!(stage.short(), "part 4 of 7, phase 1 of 3 ");
    }
}
