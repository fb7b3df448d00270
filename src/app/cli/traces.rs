//! Trace folders as outputs: one that the program wrote before is replaced whole.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::Path;

use gpumodel_core::units::FolderPurpose;

/// The list of a trace folder.
const LIST: &str = "kernelslist.g";

/// Lets `write` write a trace folder, and removes the traces that an earlier one of ours there
/// had and this one has not.
pub(super) fn replace_traces<T, E: Into<Box<dyn Error + Send + Sync>>>(
    folder: &Path,
    write: impl FnOnce() -> Result<T, E>,
) -> Result<T, Box<dyn Error + Send + Sync>> {
    let ours = FolderPurpose::Traces.owns(folder);
    let before = if ours { listed(folder) } else { BTreeSet::new() };
    let written = write().map_err(Into::into)?;
    for name in before.difference(&listed(folder)) {
        // What is not there need not be removed.
        let _ = fs::remove_file(folder.join(name));
    }
    FolderPurpose::Traces.mark(folder)?;
    Ok(written)
}

/// The trace files of the folder's own that its list names.
fn listed(folder: &Path) -> BTreeSet<String> {
    let list = fs::read_to_string(folder.join(LIST)).unwrap_or_default();
    let names = list.lines().filter(|line| line.starts_with("kernel-") && !line.contains('/'));
    names.map(str::to_owned).collect()
}
