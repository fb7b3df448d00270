//! The values of a figure as CSV.

/// Lines of `rows` under `header`; every row has as many cells.
pub(super) fn csv<const N: usize>(header: [&str; N], rows: Vec<[String; N]>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(header).expect(MEMORY);
    for row in rows {
        writer.write_record(row).expect(MEMORY);
    }
    String::from_utf8(writer.into_inner().expect(MEMORY)).expect("every cell is text")
}

/// A value with all its digits; nothing for none, `inf` where it has no bound.
pub(super) fn cell(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Why writing cannot fail.
const MEMORY: &str = "memory takes every write";
