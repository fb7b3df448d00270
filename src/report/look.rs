//! What schemes, classes and stall causes look like, by name, so that every figure shows a
//! scheme in the same colour and hatch and, as a line, with the same dashes and marks.

use std::collections::BTreeSet;

use super::chart::{Colour, Fill, LOOKS, LineLook, PAPER, look};
use super::kernels::{IDLE, ISSUED, SHORT_RAW, UNRECORDED};

/// Colours by their place in the palette.
const BLUE: usize = 0;
const ORANGE: usize = 1;
const GREEN: usize = 2;
const PURPLE: usize = 3;
const SKY: usize = 4;
const VERMILION: usize = 5;
const YELLOW: usize = 6;

/// Schemes by name: colour and hatch. Those of one paper differ as lines too, by marks and
/// dashes; dense hatches, which darken a colour, are left to settings and unknown names.
const SCHEMES: &[(&str, usize)] = &[
    ("solo", look(SKY, 8)),
    ("sequential", look(YELLOW, 6)),
    ("left-over", look(BLUE, 0)),
    ("fcfs", look(SKY, 4)),
    ("even", look(ORANGE, 1)),
    ("spatial", look(GREEN, 2)),
    ("warped-slicer", look(VERMILION, 5)),
    ("oracle", look(PURPLE, 3)),
    ("smra", look(PURPLE, 5)),
    ("profile-based", look(GREEN, 9)),
    ("pt", look(BLUE, 10)),
    ("sim", look(ORANGE, 8)),
    ("cuda", look(PURPLE, 10)),
    ("mps-leftover", look(BLUE, 2)),
    ("slate", look(VERMILION, 0)),
    ("bp", look(BLUE, 1)),
    ("bp-bs", look(SKY, 10)),
    ("bp-sb", look(PURPLE, 9)),
    ("ugpu-offline", look(GREEN, 7)),
    ("ugpu-ori", look(YELLOW, 5)),
    ("ugpu-soft", look(ORANGE, 6)),
    ("ugpu", look(VERMILION, 2)),
    ("cd-search", look(SKY, 5)),
    ("bp-cd-search", look(PURPLE, 8)),
    ("mps-share", look(GREEN, 4)),
    ("qos-bp", look(SKY, 0)),
    ("qos-mps-share", look(YELLOW, 3)),
    ("qos-ugpu", look(VERMILION, 7)),
    ("mig", look(BLUE, 3)),
    ("mps", look(ORANGE, 2)),
    ("green-contexts", look(GREEN, 0)),
    ("time-slicing", look(PURPLE, 1)),
    ("even-queue", look(YELLOW, 4)),
    ("ilp", look(SKY, 7)),
    ("ilp-smra", look(ORANGE, 3)),
];

/// The classes of ILP-SMRA, in the order of its Table I.
pub(crate) const CLASSES: [(&str, usize); 4] = [("M", 0), ("MC", 1), ("C", 2), ("A", 3)];

/// The fill of a cause of slot-cycles, by its key in records.
pub(crate) fn cause_fill(cause: &str) -> Fill {
    match cause {
        ISSUED => Fill::plain(Colour(0x2b, 0x2b, 0x2b)),
        "barrier" => Fill::of(1),
        "execution_resource" => Fill::of(2),
        "instruction_buffer_empty" => Fill::of(3),
        "long_memory_latency" => Fill::of(4),
        SHORT_RAW => Fill::of(5),
        IDLE => Fill::plain(Colour(0xe4, 0xe4, 0xe4)),
        UNRECORDED => Fill::plain(PAPER),
        _ => Fill::of(6),
    }
}

/// From one look to the next of the same colour.
const FAMILY: usize = 7;

/// The colour and the hatch of a scheme, each as its place among all; `None` for a name
/// that the table lacks.
#[must_use]
pub fn scheme_look(name: &str) -> Option<(usize, usize)> {
    known(SCHEMES, name).map(|place| (place % 7, place % 16))
}

/// Looks of schemes in one figure: a scheme has its own; one that runs with several settings
/// keeps the colour and changes lines; one without a name in the table takes a free look.
pub(crate) fn scheme_looks<S: AsRef<str>>(names: &[S]) -> Vec<usize> {
    looks(SCHEMES, names)
}

/// Looks of classes in one figure, as [`scheme_looks`].
pub(crate) fn class_looks<S: AsRef<str>>(names: &[S]) -> Vec<usize> {
    looks(&CLASSES, names)
}

fn known(table: &[(&str, usize)], name: &str) -> Option<usize> {
    table.iter().find(|row| row.0 == name).map(|row| row.1)
}

/// A scheme without its settings and without a number.
fn family(name: &str) -> &str {
    name.split([':', ' ']).next().unwrap_or(name)
}

fn looks<S: AsRef<str>>(table: &[(&str, usize)], names: &[S]) -> Vec<usize> {
    let mut used = Used::default();
    let mut found: Vec<Option<usize>> = names.iter().map(|n| known(table, n.as_ref())).collect();
    found.iter().flatten().for_each(|place| used.take(*place));
    for (place, name) in found.iter_mut().zip(names).filter(|(place, _)| place.is_none()) {
        let Some(own) = known(table, family(name.as_ref())) else { continue };
        *place = Some(used.free((0..LOOKS / FAMILY).map(|step| (own + FAMILY * step) % LOOKS)));
    }
    let new = |place: Option<usize>| place.unwrap_or_else(|| used.unlike());
    found.into_iter().map(new).collect()
}

/// Looks that a figure has already.
#[derive(Debug, Default)]
struct Used {
    all: BTreeSet<usize>,
    lines: Vec<LineLook>,
}

impl Used {
    fn take(&mut self, place: usize) {
        self.all.insert(place);
        self.lines.push(LineLook::of(place));
    }

    /// The first of `places` whose line is new, else the first that is new, else the first.
    fn free(&mut self, places: impl Iterator<Item = usize> + Clone) -> usize {
        let line = |place: &usize| !self.lines.contains(&LineLook::of(*place));
        let new = |place: &usize| !self.all.contains(place);
        let first = || places.clone().next().unwrap_or(0);
        let place = places.clone().find(line).or_else(|| places.clone().find(new));
        let place = place.unwrap_or_else(first);
        self.take(place);
        place
    }

    /// A look of a colour that is new, where there is one.
    fn unlike(&mut self) -> usize {
        let colours: BTreeSet<usize> = self.all.iter().map(|place| place % FAMILY).collect();
        let new = (0..LOOKS).filter(|place| !colours.contains(&(place % FAMILY)));
        let places: Vec<usize> = new.chain(0..LOOKS).collect();
        self.free(places.into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::{LOOKS, LineLook, SCHEMES, class_looks, scheme_looks};

    #[test]
    fn schemes_of_the_table_differ() {
        for (place, (name, look)) in SCHEMES.iter().enumerate() {
            let other = SCHEMES[..place].iter().find(|other| other.1 == *look);
            assert!(other.is_none(), "{name} looks as {other:?}");
        }
    }

    #[test]
    fn a_scheme_looks_the_same_in_any_company() {
        let all = scheme_looks(&["bp", "ugpu", "left-over"]);
        assert_eq!(scheme_looks(&["ugpu"])[0], all[1]);
        assert_eq!(scheme_looks(&["mine", "left-over", "ugpu"])[1..], [all[2], all[1]]);
        assert_eq!(class_looks(&["A", "M"]), [3, 0]);
    }

    #[test]
    fn settings_of_a_scheme_keep_its_colour() {
        let names = ["ugpu:epoch=1", "ugpu", "ugpu:epoch=2", "bp"];
        let looks = scheme_looks(&names);
        assert_eq!(looks[1], scheme_looks(&["ugpu"])[0]);
        assert!(looks[..3].iter().all(|look| look % 7 == looks[1] % 7), "{looks:?}");
        assert!(looks[0] != looks[1] && looks[0] != looks[2] && looks[1] != looks[2]);
        assert_eq!(scheme_looks(&names[..1])[0], looks[1], "the first alone has the scheme's");
    }

    #[test]
    fn unknown_schemes_differ_as_far_as_they_can() {
        let names: Vec<String> = (0..LOOKS).map(|place| format!("mine-{place}")).collect();
        let looks = scheme_looks(&names);
        assert!((0..LOOKS).all(|i| !looks[..i].contains(&looks[i])));
        let few = &looks[..7];
        assert!((0..7).all(|i| few[..i].iter().all(|other| other % 7 != few[i] % 7)));
        let lines: Vec<LineLook> = looks[..28].iter().map(|look| LineLook::of(*look)).collect();
        assert!((0..28).all(|i| !lines[..i].contains(&lines[i])));
    }
}
