//! A store as text again: grouped traces and their command list, as Accel-Sim's
//! post-processor writes them.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use gpumodel_core::isa::{Access, Code};
use gpumodel_core::units::{WholeFolder, to_u64, to_usize};

use super::cursor::{Cta, WarpCursor};
use super::reader::{Command, Store};
use super::trailing_fields::CtaTrailingFields;
use crate::error::TraceError;
use crate::filter::Filter;
use crate::grouped_text::{CTA_END, LIST, LineText, copy_line, push_cta, push_warp};
use crate::import::ConvertRequest;

/// Tracers before this one repeat CTA and warp in front of every line.
const BARE_LINES_SINCE: u32 = 3;

/// Writes the launches of `store` that the filters of `request` take to the
/// folder `request.output`: `kernelslist.g` and one `kernel-<n>.traceg` per launch, numbered
/// in list order; files of the same names in a folder that exists are replaced. Returns the
/// number of launches. On an error nothing is left behind.
///
/// Converting the folder again gives a store with the same content, but for
/// launches that were left out, and control bits, which the text does not have.
///
/// # Errors
/// [`TraceError`] when the folder cannot be written, when a launch is
/// memory-only ([`super::KernelSummary::memory_only`]), or when the store is damaged.
pub fn export(store: &Store, request: &ConvertRequest) -> Result<usize, TraceError> {
    let filter = &request.filter;
    whole(store, filter)?;
    let folder = WholeFolder::create(&request.output).map_err(TraceError::Output)?;
    let mut list = String::new();
    let mut names = Vec::new();
    for command in store.commands() {
        match command {
            Command::Copy(copy) => list.push_str(&copy_line(&copy)),
            Command::Kernel(kernel) if filter.takes(&store.kernel(kernel).launch()) => {
                let name = format!("kernel-{}.traceg", names.len() + 1);
                Export::new(store, kernel)?
                    .all(&folder.path().join(&name))
                    .map_err(|halt| halt.at(&request.output.join(&name)))?;
                list.push_str(&name);
                list.push('\n');
                names.push(name);
            }
            Command::Kernel(_) => {}
        }
    }
    let unwritten = |error| TraceError::io("write", &request.output.join(LIST), error);
    fs::write(folder.path().join(LIST), list).map_err(unwritten)?;
    let kernels = names.len();
    names.push(LIST.to_owned());
    folder.finish(&names).map_err(TraceError::Output)?;
    Ok(kernels)
}

/// Fails when a launch that `filter` takes is memory-only.
fn whole(store: &Store, filter: &Filter) -> Result<(), TraceError> {
    let mut kernels = (0..store.kernel_count()).map(|kernel| store.kernel(kernel));
    let refused = kernels.find(|one| one.memory_only() && filter.takes(&one.launch()));
    let Some(kernel) = refused else { return Ok(()) };
    Err(TraceError::Request(format!(
        "{}: `{}` is of a `mem_trace` log, which has accesses alone; a trace made of it would pass \
         for one of whole kernels",
        store.path().display(),
        kernel.name()
    )))
}

/// Why the writing of a launch ended early.
enum Halt {
    /// The output refused bytes.
    Output(io::Error),
    /// The store is damaged.
    Store(TraceError),
}

impl Halt {
    /// The error of the output `path`, which still has another name.
    fn at(self, path: &Path) -> TraceError {
        match self {
            Self::Output(error) => TraceError::io("write", path, error),
            Self::Store(error) => error,
        }
    }
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<TraceError> for Halt {
    fn from(error: TraceError) -> Self {
        Self::Store(error)
    }
}

/// One launch that is written as text.
struct Export<'s> {
    store: &'s Store,
    kernel: usize,
    code: Arc<Code>,
    texts: Vec<LineText>,
    /// Lines repeat CTA and warp.
    leading: bool,
}

impl<'s> Export<'s> {
    fn new(store: &'s Store, kernel: usize) -> Result<Self, TraceError> {
        let code = store.code(kernel)?;
        let texts = LineText::of(&code);
        let version = store.kernel(kernel).header().lines().find_map(|line| {
            line.strip_prefix("-accelsim tracer version = ")?.split('.').next()?.parse().ok()
        });
        let leading = version.unwrap_or(0) < BARE_LINES_SINCE;
        Ok(Self { store, kernel, code, texts, leading })
    }

    fn all(&self, path: &Path) -> Result<(), Halt> {
        let mut file = BufWriter::with_capacity(1 << 18, fs::File::create(path)?);
        let summary = self.store.kernel(self.kernel);
        header(summary.header(), &mut file)?;
        let mut out = Vec::new();
        for ordinal in 0..summary.cta_count() {
            let cta = self.store.cta(self.kernel, ordinal)?;
            let tails = self.store.tails(self.kernel, ordinal)?;
            self.cta(&cta, &tails, &mut out);
            file.write_all(&out)?;
            out.clear();
        }
        Ok(file.flush()?)
    }

    fn cta(&self, cta: &Cta, tails: &CtaTrailingFields, out: &mut Vec<u8>) {
        let at = cta.position;
        push_cta(out, at);
        if !tails.note.is_empty() {
            out.extend_from_slice(&tails.note);
            out.push(b'\n');
        }
        for warp in 0..cta.warp_count() {
            push_warp(out, warp, cta.warp_instructions(warp));
            let tails = tails.warps.get(to_usize(warp)).map_or(&[][..], |tails| &tails[..]);
            let lead = match self.leading {
                true => format!("{} {} {} {warp} ", at.x, at.y, at.z),
                false => String::new(),
            };
            self.warp(cta.warp(warp), tails, &lead, out);
        }
        out.extend_from_slice(CTA_END);
    }

    fn warp(
        &self,
        mut cursor: WarpCursor,
        tails: &[(u64, Vec<u8>)],
        lead: &str,
        out: &mut Vec<u8>,
    ) {
        let mut access = Access::default();
        let mut tails = tails.iter().peekable();
        let mut passed = 0_usize;
        while cursor.next_segment().is_some() {
            while let Some(number) = cursor.instruction() {
                let number = to_usize(number);
                let mask = cursor.mask();
                let addressed = self.code.instructions[number].width > 0;
                if addressed {
                    cursor.access(&mut access);
                } else {
                    cursor.skip(1);
                }
                out.extend_from_slice(lead.as_bytes());
                self.texts[number].push(out, mask, addressed.then_some(&access));
                if let Some((_, tail)) = tails.next_if(|tail| tail.0 == to_u64(passed)) {
                    out.extend_from_slice(tail);
                    out.push(b' ');
                }
                out.push(b'\n');
                passed += 1;
            }
        }
    }
}

/// The header with the blank lines that tracers put around its last line, a comment.
fn header(lines: &str, out: &mut impl Write) -> io::Result<()> {
    match lines.rsplit_once('\n') {
        Some((keys, comment)) if comment.starts_with('#') => {
            write!(out, "{keys}\n\n{comment}\n\n\n")
        }
        _ => writeln!(out, "{lines}"),
    }
}
