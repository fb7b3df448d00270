//! What the schemes of a sweep gained over all mixes.

use super::{Cell, Column, Table, wrapped};
use crate::distinct;
use crate::mix::names;
use crate::results::SchemeMeans;

type Row<'a> = (&'a SchemeMeans, String);

/// STP and ANTT of each scheme as text, their means over mixes; of several machines each by
/// itself. Empty without schemes.
#[must_use]
pub fn means(all: &[SchemeMeans], width: Option<usize>) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut table = means_table(all);
    if distinct(all.iter().map(|one| &one.machine)).len() == 1 {
        table = table.without(&["machine"]);
    }
    let mut text = format!("\n{}", table.terminal(width));
    if all.iter().any(|one| one.mixes != all[0].mixes) {
        text += "  schemes have records of different mixes: their means do not compare\n";
    }
    wrapped(&text, width)
}

/// A row for each scheme and machine.
#[must_use]
pub fn means_table(all: &[SchemeMeans]) -> Table {
    let names = names(distinct(all.iter().map(|one| (&*one.scheme, &one.parameters))));
    let known = distinct(all.iter().map(|one| (&one.scheme, &one.parameters)));
    let named = all.iter().map(|one| {
        let at = known.iter().position(|&known| known == (&one.scheme, &one.parameters));
        (one, at.map(|at| names[at].clone()).unwrap_or_default())
    });
    let columns: [Column<Row<'_>>; 7] = [
        ("machine", |(one, _)| Cell::Cut(one.machine.clone(), 48)),
        ("scheme", |(_, scheme)| Cell::Scheme(scheme.clone())),
        ("cells", |(one, _)| one.mixes.values().sum::<usize>().to_string().into()),
        ("STP mean", |(one, _)| Cell::number(one.stp.arithmetic, 3)),
        ("STP geomean", |(one, _)| Cell::number(one.stp.geometric, 3)),
        ("ANTT mean", |(one, _)| Cell::number(one.antt.arithmetic, 3)),
        ("ANTT geomean", |(one, _)| Cell::number(one.antt.geometric, 3)),
    ];
    Table::new(&columns, named).left(&[0, 1])
}

#[cfg(test)]
mod tests {
    use super::means;
    use crate::results::{Means, SchemeMeans};

    fn one(scheme: &str, mix: &str, stp: f64) -> SchemeMeans {
        SchemeMeans {
            machine: "v100".into(),
            scheme: scheme.into(),
            mixes: [(mix.to_owned(), 1)].into(),
            stp: Means { arithmetic: Some(stp), geometric: Some(stp) },
            ..SchemeMeans::default()
        }
    }

    #[test]
    fn every_scheme_has_a_line_and_different_mixes_are_said() {
        let text = means(&[one("even", "a + b", 1.25), one("ws", "a + b", 1.5)], None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(!text.contains("v100") && !text.contains("compare"), "{text}");
        assert!(lines[3].contains("ws") && lines[3].contains("1.500"), "{text}");
        assert!(lines[3].ends_with('–'), "{text}");
        let text = means(&[one("even", "a + b", 1.25), one("ws", "a", 1.5)], None);
        assert!(text.ends_with("do not compare\n"), "{text}");
        assert!(means(&[], None).is_empty());
    }
}
