//! Reads the configuration of Accel-Sim and GPGPU-Sim (`gpgpusim.config`,
//! `trace.config`) into a machine file.
//!
//! Every value names the line it is from. Options without a counterpart are
//! listed in the file with the reason; unknown ones are listed and handed back.

mod address;
mod cache_line;
mod caches;
mod core;
mod dram;
mod ignored;
mod levels;
mod memory;
mod options;
mod sheet;

use std::path::PathBuf;

use self::core::write_core;
use self::ignored::{modelled, reason};
use self::memory::write_memory;
use self::options::{Entry, Options};
use self::sheet::Sheet;
use super::error::SpecError;
use gpumodel_core::models::read_text_lossy;

/// A machine file made from a foreign configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The text of the machine file.
    pub text: String,
    /// Options that the importer does not know, as `file:line -key value`, files as
    /// they were typed, with the nearest known one.
    pub unknown: Vec<String>,
    /// Options with a value that the model does not stand for, likewise, with the one that it
    /// does.
    pub unmodelled: Vec<String>,
    /// Options that have no counterpart in the model, likewise.
    pub ignored: Vec<String>,
}

/// What every machine file of an import begins with.
pub const IMPORT_MARK: &str = "# Written by `gpumodel machine import`";

/// What the configuration does not say of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportLabel {
    /// The machine's name and the name in reference tables.
    pub name: String,
    /// One sentence about the machine.
    pub description: String,
}

/// Reads `files`: a `gpgpusim.config` and, for trace-driven timing, a
/// `trace.config`; of an option given twice the last one counts.
///
/// # Errors
/// [`SpecError`] with file and line for text that is no option file or a value that the
/// model cannot stand for, and for files without any option of the simulator. Missing options
/// have the simulator's defaults.
pub fn import_accelsim(files: &[PathBuf], label: &ImportLabel) -> Result<Import, SpecError> {
    let mut texts = Vec::new();
    for path in files {
        texts.push((path.display().to_string(), read_text_lossy(path)?));
    }
    let mut options = Options::read(&texts)?;
    let mut sheet = Sheet::default();
    let names = files.iter().filter_map(|path| path.file_name());
    let names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    sheet.comment(&format!(
        "{} from {} (data of Accel-Sim and GPGPU-Sim,\n\
         BSD licences). The model of a simulator's model: for the silicon see the machine\n\
         of that name. Change the import, not this file.",
        IMPORT_MARK.trim_start_matches("# "),
        names.join(" and ")
    ));
    sheet.word("name", &label.name);
    sheet.word("reference_name", &label.name);
    sheet.word("description", &label.description);
    write_core(&mut options, &mut sheet)?;
    write_memory(&mut options, &mut sheet)?;
    options.check_used()?;
    if let Some(perfect) = options.unused().find(|entry| entry.key == "-gpgpu_perfect_mem")
        && perfect.flag()?
    {
        return Err(perfect.refuse("0: a memory in which nothing misses is not modelled"));
    }
    Ok(finish(&options, sheet))
}

/// Lists what was not used and closes the file.
fn finish(options: &Options, mut sheet: Sheet) -> Import {
    let (ignored, unknown): (Vec<&Entry>, Vec<&Entry>) =
        options.unused().partition(|entry| reason(&entry.key, &entry.value).is_some());
    if !ignored.is_empty() {
        sheet.note("Not modelled:");
        for entry in &ignored {
            let reason = reason(&entry.key, &entry.value).unwrap_or_default();
            sheet.comment(&format!("  {}  ({reason})", entry.cite()));
        }
    }
    if !unknown.is_empty() {
        sheet.note("Unknown to the importer, or with a value that the model does not stand for:");
        for entry in &unknown {
            sheet.comment(&format!("  {}", entry.cite()));
        }
    }
    let ignored = ignored.iter().map(|entry| entry.cited_as_typed()).collect();
    let (mut unmodelled, mut strange) = (Vec::new(), Vec::new());
    for entry in unknown {
        let cited = entry.cited_as_typed();
        let nearest = || options.nearest(&entry.key);
        match modelled(&entry.key) {
            Some((only, why)) => unmodelled.push(format!("{cited}: modelled as {only} ({why})")),
            None => strange.push(match nearest() {
                Some(known) => format!("{cited}; did you mean {known}?"),
                None => cited,
            }),
        }
    }
    Import { unknown: strange, unmodelled, ignored, text: sheet.finish() }
}
