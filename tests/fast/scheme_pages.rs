//! Does every scheme have one page in the guide, with its parameters, a row in the overview, and
//! a look in figures that no other has?
//!
//! `BLESS=1 cargo test --test fast scheme_pages` writes the tables of the pages and of the
//! overview from those of the schemes.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use gpumodel::app::guide::{PAGES, Page};
use gpumodel::policy::queue::QUEUE_TABLE;
use gpumodel::policy::{Parameter, TABLE, find};
use gpumodel::report::scheme_look;

/// A scheme, for one run or for a queue.
struct Scheme {
    name: &'static str,
    paper: &'static str,
    summary: &'static str,
    parameters: Vec<Parameter>,
}

/// Every scheme, in the order of `gpumodel scheme list`.
fn schemes() -> Vec<Scheme> {
    let alone = TABLE.iter().map(|row| Scheme {
        name: row.name,
        paper: row.paper,
        summary: row.summary,
        parameters: row.parameters.to_vec(),
    });
    let queues = QUEUE_TABLE.iter().map(|row| Scheme {
        name: row.name,
        paper: row.paper,
        summary: row.summary,
        parameters: [row.parameters, find(row.within).unwrap().parameters].concat(),
    });
    alone.chain(queues).collect()
}

fn pages_of(scheme: &str) -> Vec<&'static Page> {
    PAGES.iter().filter(|page| page.schemes().any(|name| name == scheme)).collect()
}

/// The parameters of the schemes of a page, each once, with the schemes that have it where not
/// all have the same.
fn parameter_table(schemes: &[Scheme]) -> String {
    let mut found: Vec<(Parameter, Vec<String>)> = Vec::new();
    for scheme in schemes {
        for &parameter in &scheme.parameters {
            let name = format!("`{}`", scheme.name);
            match found.iter_mut().find(|(known, _)| *known == parameter) {
                Some((_, of)) => of.push(name),
                None => found.push((parameter, vec![name])),
            }
        }
    }
    let alike = found.iter().all(|(_, of)| of.len() == schemes.len());
    let (title, line) = if alike { ("", "") } else { (" of |", "---|") };
    let mut table = format!("| parameter |{title} default | meaning |\n|---|{line}---|---|\n");
    for (Parameter { name, kind, summary }, of) in &found {
        let of = match of.len() {
            _ if alike => String::new(),
            all if all == schemes.len() => String::from(" all |"),
            _ => format!(" {} |", of.join(", ")),
        };
        writeln!(table, "| `{name}` |{of} {} | {summary} |", kind.default()).unwrap();
    }
    table
}

/// Checks that the table of a file of the guide whose first column is `title` is `table`; with
/// `BLESS` set, writes it there.
fn hold_table(file: &str, title: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/app/guide").join(file);
    let mut text = std::fs::read_to_string(&path).unwrap();
    let begin = text.find(&format!("\n| {title} |")).unwrap_or_else(|| {
        panic!("{file} has no table with the first column {title}; write its head, then BLESS=1")
    });
    let begin = begin + 1;
    let end = text[begin..].find("|\n\n").map_or(text.len(), |length| begin + length + 2);
    if std::env::var_os("BLESS").is_some() {
        text.replace_range(begin..end, table);
        std::fs::write(path, text).unwrap();
    } else {
        assert_eq!(&text[begin..end], table, "{file}: BLESS=1 writes the table again");
    }
}

#[test]
fn every_scheme_has_one_page() {
    for scheme in schemes() {
        let name = scheme.name;
        let pages = pages_of(name).len();
        assert_eq!(pages, 1, "pages of {name}; src/app/guide/schemes/{name}.md, `# `{name}``");
    }
    let known = schemes();
    for page in PAGES {
        let names: Vec<&str> = page.schemes().collect();
        assert_eq!(names.first(), Some(&page.name), "the first name of a heading is the file's");
        let all_known = names.iter().all(|name| known.iter().any(|scheme| scheme.name == *name));
        assert!(all_known, "{names:?}");
    }
}

#[test]
fn pages_have_every_parameter_with_its_default() {
    for page in PAGES {
        let mut of = schemes();
        of.retain(|scheme| page.schemes().any(|name| name == scheme.name));
        if of.iter().all(|scheme| scheme.parameters.is_empty()) {
            assert!(page.text.contains("\n## Parameters\n\nNone.\n"), "{}", page.name);
            assert!(!page.text.contains("\n| parameter |"), "{}", page.name);
        } else {
            hold_table(&format!("schemes/{}.md", page.name), "parameter", &parameter_table(&of));
        }
    }
}

#[test]
fn the_overview_has_a_row_for_every_scheme() {
    let mut table = String::from("| scheme | does | from |\n|---|---|---|\n");
    for Scheme { name, paper, summary, .. } in schemes() {
        let page = pages_of(name).first().map_or("", |page| page.name);
        writeln!(table, "| [`{name}`](schemes/{page}.md) | {summary} | {paper} |").unwrap();
    }
    hold_table("schemes.md", "scheme", &table);
}

#[test]
fn parameters_that_only_some_schemes_have_say_whose_they_are() {
    let parameters = find("qos-ugpu").unwrap().parameters;
    let scheme = |name, count| Scheme {
        name,
        paper: "",
        summary: "",
        parameters: parameters[..count].to_vec(),
    };
    let table = parameter_table(&[scheme("a", 2), scheme("b", 1)]);
    let heads: Vec<String> = table
        .lines()
        .map(|line| line.split(" | ").take(2).collect::<Vec<_>>().join(" | "))
        .collect();
    assert_eq!(
        heads,
        ["| parameter | of", "|---|---|---|---|", "| `target` | all", "| `high` | `a`",]
    );
}

#[test]
fn every_scheme_has_a_colour_and_a_hatch_that_no_other_has() {
    let names = TABLE.iter().map(|row| row.name);
    let queues = QUEUE_TABLE.iter().map(|row| row.name);
    let names: BTreeSet<&str> = names.chain(queues).collect();
    let looks: Vec<_> = names.into_iter().map(|name| (name, scheme_look(name))).collect();
    for (place, (name, look)) in looks.iter().enumerate() {
        assert!(look.is_some(), "{name} has no row in `SCHEMES` of src/report/look.rs");
        let other = looks[..place].iter().find(|other| other.1 == *look);
        assert!(other.is_none(), "{name} looks as {other:?}");
    }
    assert_eq!(scheme_look("mine"), None);
}

#[test]
fn schemes_of_one_paper_differ_as_lines() {
    for (place, row) in TABLE.iter().enumerate() {
        let line = |name| scheme_look(name).map(|(colour, hatch)| (colour, hatch % 4));
        let paper = TABLE[..place].iter().filter(|other| other.paper == row.paper);
        let other = paper.clone().find(|other| line(other.name) == line(row.name));
        assert!(other.is_none(), "{} has the line of {other:?}", row.name);
    }
}
