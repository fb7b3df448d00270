//! Records that answer one row of a reference table together: it would count twice.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::slice;

use super::{Analysis, Comparison, RecordError, ReferenceTable};

/// Refuses `records` of one machine as it is set that answer the same row of `table`;
/// `from` says what each of them was read from. The same machine otherwise set is another.
///
/// # Errors
/// [`RecordError::Twice`] with the two and the row.
pub fn refuse_twice(
    records: &[Analysis],
    from: &[PathBuf],
    table: &ReferenceTable,
) -> Result<(), RecordError> {
    let mut answered = BTreeMap::new();
    for (record, other) in records.iter().zip(from) {
        let machine = &record.machine;
        for row in Comparison::new(slice::from_ref(record), table, None).rows {
            let key = (row.line, machine.name.as_str(), machine.hash.as_str());
            if let Some(one) = answered.insert(key, other) {
                return Err(RecordError::Twice {
                    table: table.path.clone(),
                    line: row.line,
                    row: format!("{} {}", row.machine, row.trace),
                    both: Box::new([one.clone(), other.clone()]),
                });
            }
        }
    }
    Ok(())
}
