//! Reads the configuration of Accel-Sim and GPGPU-Sim (`gpgpusim.config`,
//! `trace.config`) into a machine file.
//!
//! Every value names the line it is from. Options without a counterpart are
//! listed in the file with the reason; unknown ones are listed and handed back.

mod address;
mod caches;
mod core;
mod dram;
mod levels;
mod options;

use std::fmt::{Display, Write as _};
use std::path::PathBuf;

use self::caches::{collector_queue, l1, l2, miss_queue};
use self::core::write_core;
use self::dram::dram;
use self::levels::Levels;
use self::options::{Entry, Options, modelled, reason};
use super::error::SpecError;
use gpumodel_core::models::read_text_lossy;
use gpumodel_core::toml::SourceKind;

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

/// Writes the sections from the L1 on, in the order of the file: crossbar, caches and memory.
fn write_memory(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    let levels = Levels::read(options)?;
    l1(options, sheet, &levels)?;
    interconnect(options, sheet)?;
    l2(options, sheet, &levels)?;
    dram(options, sheet, &levels)?;
    quirks(options, sheet)
}

fn interconnect(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    let mode = options.or("-network_mode", "1");
    mode.within(1..=2)?;
    sheet.section("interconnect");
    if mode.number::<u32>()? == 2 {
        let source = format!("{}: built-in crossbar, one packet per port and cycle", mode.cite());
        sheet.published("latency_cycles", 1, &source);
        sheet.published("flit_bytes", 0, &source);
        let arbiter = options.or("-icnt_arbiter_algo", "1");
        arbiter.number::<u32>()?;
        let source = format!("{}: FIFO inputs, one packet per output and cycle", arbiter.cite());
        sheet.choice("allocation", "matched", &source);
    } else {
        let source = format!("{}: a router with one-cycle allocators and its links", mode.cite());
        sheet.leaf("latency_cycles", &4, SourceKind::Assumed, &source);
        let flit = options.or("-icnt_flit_size", "32");
        sheet.published("flit_bytes", flit.within(1..=4096)?, &flit.cite());
    }
    sheet.published("header_bytes", 8, "GPGPU-Sim READ_PACKET_SIZE, WRITE_PACKET_SIZE");
    for (key, option) in
        [("input_queue", "-icnt_in_buffer_limit"), ("output_queue", "-icnt_out_buffer_limit")]
    {
        let value = options.or(option, "64");
        sheet.published(key, value.within(1..=1 << 20)?, &value.cite());
    }
    let port = options.or("-gpgpu_n_cores_per_cluster", "3");
    sheet.published("sms_per_port", port.number::<u32>()?, &port.cite());
    Ok(())
}

fn quirks(options: &mut Options, sheet: &mut Sheet) -> Result<(), SpecError> {
    sheet.section("quirks");
    sheet.published("instruction_buffer", 2, "GPGPU-Sim IBUFFER_SIZE");
    let lone = "Accel-Sim runs of one and four warps with eight independent FFMA on QV100: \
                2920 and 3037 cycles";
    sheet.leaf("refetch_cycles", &1, SourceKind::Fitted, lone);
    let together = options.or("-gpgpu_concurrent_kernel_sm", "0");
    sheet.published("serial_kernels", !together.flag()?, &together.cite());
    if together.flag()? {
        let busy = "Accel-Sim's main loop: a kernel waits for its own stream alone, 0 among them";
        sheet.published("per_thread_default_stream", true, busy);
    }
    let spreads = format!(
        "{}; GPGPU-Sim max_cta: where kernels run one by one, a grid that does not fill the GPU \
         is spread",
        together.cite()
    );
    sheet.published("spreads_small_grids", !together.flag()?, &spreads);
    collector_queue(options, sheet)?;
    miss_queue(options, sheet);
    for (key, source) in [
        ("listed_registers_only", "Accel-Sim scoreboard: the registers of the trace line"),
        (
            "pools_storage",
            "GPGPU-Sim occupy_shader_resource_1block: registers and shared memory are counted",
        ),
        ("whole_cta_barriers", "Accel-Sim trace_driven.cc: barrier 0, all threads, synchronising"),
        ("ignores_predicates", "Accel-Sim traces list no predicate registers"),
        (
            "accesses_null",
            "Accel-Sim trace_driven.cc: the address of every active lane is accessed, whatever it is",
        ),
        ("no_refresh", "GPGPU-Sim dram_t has no refresh"),
        ("textures_are_latency", "Accel-Sim: texture instructions take a fixed time"),
    ] {
        sheet.published(key, true, source);
    }
    Ok(())
}

/// A machine file being written: sections of sourced values, in order; the text so far.
#[derive(Debug, Default)]
struct Sheet {
    text: String,
}

impl Sheet {
    /// A comment, a line for each of the text's. Control characters, which TOML
    /// does not allow there, are replaced.
    fn comment(&mut self, text: &str) {
        for line in text.lines() {
            self.line(&format!("# {line}").replace(char::is_control, "\u{fffd}"));
        }
    }

    /// A comment after an empty line.
    fn note(&mut self, text: &str) {
        self.line("");
        self.comment(text);
    }

    /// A plain word that needs no source.
    fn word(&mut self, key: &str, value: &str) {
        self.line(&format!("{key} = {}", quoted(value)));
    }

    /// Opens a section.
    fn section(&mut self, name: &str) {
        self.line(&format!("\n[{name}]"));
    }

    /// A value that a file or the simulator's source states.
    fn published(&mut self, key: &str, value: impl Display, source: &str) {
        self.leaf(key, &value, SourceKind::Published, source);
    }

    /// A chosen word that a file or the simulator's source states.
    fn choice(&mut self, key: &str, value: &str, source: &str) {
        self.leaf(key, &quoted(value), SourceKind::Published, source);
    }

    /// A value that is known in another way.
    fn leaf(&mut self, key: &str, value: &dyn Display, kind: SourceKind, source: &str) {
        self.line(&format!("{key} = {{ value = {value}, {kind} = {} }}", quoted(source)));
    }

    /// The whole text.
    fn finish(self) -> String {
        self.text
    }

    fn line(&mut self, line: &str) {
        writeln!(self.text, "{line}").expect("a String takes everything");
    }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
