//! Is every column of the tables of sweeps explained, in its place and with its unit?

use gpumodel::report::results::Tidy;

const TEXT: &str = include_str!("../../reports/COLUMNS.md");

/// The columns that the section `title` explains.
fn explained(title: &str) -> Vec<&'static str> {
    let section = TEXT.split("\n## ").find(|section| section.starts_with(title)).unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split_once('`').unwrap().0).collect()
}

/// The columns of a table without rows.
fn written(table: Tidy<Vec<u8>>) -> Vec<String> {
    let csv = table.finish().unwrap().swap_remove(0);
    String::from_utf8(csv).unwrap().trim_end().split(',').map(str::to_owned).collect()
}

#[test]
fn every_column_is_explained_once_in_its_order() {
    let open = |_: &str| Ok(Vec::new());
    let tables =
        [("`cells`", Tidy::of_cells(open).unwrap()), ("`apps`", Tidy::of_apps(open).unwrap())];
    for (title, table) in tables {
        let columns = written(table);
        let both = explained("In both");
        let (first, own) = columns.split_at(both.len());
        assert_eq!(first, both, "of both tables");
        assert_eq!(own, explained(title), "of {title}");
    }
}

#[test]
fn what_is_counted_in_sectors_says_so() {
    let counted = ["_accesses` |", "_hits` |", "_sectors` |"];
    let of_sectors: Vec<&str> =
        TEXT.lines().filter(|line| counted.iter().any(|column| line.contains(column))).collect();
    assert_eq!(of_sectors.len(), 12, "six in each table");
    assert!(of_sectors.iter().all(|line| line.contains("sectors of 32 bytes")), "{of_sectors:?}");
}
