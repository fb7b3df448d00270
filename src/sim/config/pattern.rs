//! Patterns over the dotted parts of an opcode: `LDG.*.STRONG.*.GPU.*`.

use serde::{Serialize, Serializer};

/// Dotted parts, where `*` stands for any number of parts, none included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern(Vec<String>);

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        Self(text.split('.').map(str::to_owned).collect())
    }

    /// Parts that are no `*`: how specific the pattern is.
    pub(super) fn literals(&self) -> usize {
        self.0.iter().filter(|part| *part != "*").count()
    }

    /// True when the opcode `text` has the pattern's shape.
    pub(super) fn matches(&self, text: &str) -> bool {
        // `reached[i]`: the parts read so far fit the first `i` parts of the pattern.
        let mut reached = vec![false; self.0.len() + 1];
        reached[0] = true;
        self.skip_stars(&mut reached);
        for part in text.split('.') {
            let mut next = vec![false; self.0.len() + 1];
            for (i, own) in self.0.iter().enumerate() {
                if own == "*" {
                    next[i + 1] |= reached[i + 1];
                } else if own == part {
                    next[i + 1] |= reached[i];
                }
            }
            self.skip_stars(&mut next);
            reached = next;
        }
        reached[self.0.len()]
    }

    fn skip_stars(&self, reached: &mut [bool]) {
        for (i, own) in self.0.iter().enumerate() {
            if own == "*" && reached[i] {
                reached[i + 1] = true;
            }
        }
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn stars_stand_for_any_number_of_parts() {
        let strong = Pattern::new("LDG.*.STRONG.*.GPU.*");
        assert!(strong.matches("LDG.E.STRONG.GPU"));
        assert!(strong.matches("LDG.E.64.STRONG.X.GPU.Y.Z"));
        assert!(!strong.matches("LDG.E.STRONG.SYS"));
        assert!(!strong.matches("STG.E.STRONG.GPU"));
        assert!(Pattern::new("F2F.F64.*").matches("F2F.F64.F32"));
        assert!(!Pattern::new("F2F.F64.*").matches("F2F.F32.F64"));
        assert!(Pattern::new("*").matches("X") && Pattern::new("X").matches("X"));
        assert!(!Pattern::new("X").matches("X.Y"));
    }
}
