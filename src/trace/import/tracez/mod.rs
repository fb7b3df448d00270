//! The binary traces of Accel-Sim 2.x, `.tracez`: mapped, expanded to grouped
//! text in parallel and parsed like it. [`super::container`] has the layout.
//!
//! The lines of the frame come from the index. Those of clusters are written
//! when any block of the launch says something of them that is not zero.

mod container;
mod expand;

use std::io::Write;
use std::path::Path;

use rayon::prelude::*;
use zstd::dict::DecoderDictionary;

use crate::error::{ByteFault, LineFault, TraceError};
use crate::store::file::Map;
use gpumodel_core::units::{quoted, to_u64};

use super::Conversion;
use super::accelsim::header::{self, Header};
use super::accelsim::parse::{Dialect, Piece, TextParser};
use super::accelsim::{Import, dialect};
use super::source::{Source, TextBlock};
use container::{Container, Totals};
use expand::{Job, Jobs, Slot, Text};

/// Jobs that are expanded at once, per thread.
const AHEAD: usize = 2;

/// True when `start`, the first bytes of a file, is a header that a NUL ends.
pub(crate) fn recognise(start: &[u8]) -> bool {
    // `contains` is fast, and most texts have none.
    if !start.contains(&0) {
        return false;
    }
    let Some(nul) = start.iter().position(|&byte| byte == 0) else { return false };
    let mut lines = start[..nul].split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    start.trim_ascii_start().starts_with(b"-kernel")
        && lines.all(|line| matches!(line.first(), None | Some(b'-' | b'#')))
}

/// Imports the `.tracez` of `source` if the request takes it.
pub(crate) fn import(
    source: Source,
    _first: TextBlock,
    conversion: &mut Conversion<'_>,
) -> Result<(), TraceError> {
    let path = source.path();
    if let Some(name) = source.compression() {
        let damage =
            ByteFault::new(0, "a `.tracez` as it was written", format!("one inside {name}"));
        return Err(damage.in_bytes(path));
    }
    let map = map(path)?;
    let opened = Opened::new(path, &map)?;
    if !conversion.request.filter.takes(&opened.header.launch) {
        conversion.left_out.push(opened.header.launch);
        return Ok(());
    }
    conversion.remark(path, opened.header.version_remark());
    let progress = conversion.progress;
    let dialect = opened.dialect()?;
    let mut import = Import::new(path, dialect, &opened.header, conversion);
    let mut text_bytes = to_u64(opened.container.header.len());
    let parser = TextParser::new(dialect);
    let make = |job: &Job<'_>, slot: &mut Slot<'_>| {
        job.expand(slot)?;
        let parsed = parser.parse(&slot.text.bytes);
        let piece = parsed.map_err(|fault| damage(&slot.text, fault))?;
        check_marks(&slot.text, job, &piece)?;
        Ok(piece)
    };
    opened.batches(make, |made| {
        for (job, text, piece) in made {
            text_bytes += to_u64(text.bytes.len());
            progress.advance(job.file_bytes);
            import.grouped(piece).map_err(|fault| damage(text, fault).in_bytes(path))?;
        }
        import.flush()
    })?;
    import.imported.text_bytes = text_bytes;
    import.imported.file_bytes = to_u64(map.len());
    let imported = import.end()?;
    conversion.add(path, &imported);
    Ok(())
}

/// Writes the `.tracez` at `path` as the grouped text that it stands for.
///
/// # Errors
/// [`TraceError`] when it cannot be read or is damaged, or `out` refuses.
pub fn expand(path: &Path, out: &mut dyn Write) -> Result<(), TraceError> {
    let map = map(path)?;
    let opened = Opened::new(path, &map)?;
    let header = opened.container.header;
    out.write_all(header).map_err(TraceError::Output)?;
    if !header.ends_with(b"\n") {
        out.write_all(b"\n").map_err(TraceError::Output)?;
    }
    let mut write = |made: Made<'_, '_, ()>| {
        made.map(|(_, text, ())| &text.bytes).try_for_each(|bytes| out.write_all(bytes))
    };
    opened.batches(Job::expand, |made| write(made).map_err(TraceError::Output))
}

/// Jobs, their texts and their results, in order.
type Made<'m, 'a, T> = &'m mut dyn Iterator<Item = (&'m Job<'a>, &'m Text, T)>;

fn map(path: &Path) -> Result<Map, TraceError> {
    Map::open(path).map_err(|error| TraceError::io("read", path, error))
}

/// A mapped file whose header and index were checked.
struct Opened<'a> {
    path: &'a Path,
    map: &'a Map,
    container: Container<'a>,
    dictionary: DecoderDictionary<'static>,
    header: Header,
    totals: Totals,
}

impl<'a> Opened<'a> {
    fn new(path: &'a Path, map: &'a Map) -> Result<Self, TraceError> {
        let wrong = |damage: ByteFault| damage.in_bytes(path);
        let container = Container::new(map).map_err(wrong)?;
        let header = header::read(container.header).map_err(|fault| fault.in_file(path, 1))?;
        let rest = container.header[header.bytes..].trim_ascii();
        if !rest.is_empty() {
            let fault = LineFault::new(header.lines, "the end of the header", quoted(rest));
            return Err(fault.in_file(path, 1));
        }
        let totals = container.check(header.launch.warps_per_cta()).map_err(wrong)?;
        let dictionary = DecoderDictionary::try_copy(container.dictionary).map_err(|error| {
            let at = container.start - container.dictionary.len();
            wrong(ByteFault::new(at, "a dictionary of zstd", format!("damage ({error})")))
        })?;
        Ok(Self { path, map, container, dictionary, header, totals })
    }

    fn jobs(&self) -> Jobs<'a> {
        Jobs::new(self.container, self.totals.clustered)
    }

    /// The form of the lines, from the first ones.
    fn dialect(&self) -> Result<Dialect, TraceError> {
        let wrong = |damage: ByteFault| damage.in_bytes(self.path);
        let job = self.jobs().next().transpose().map_err(wrong)?.unwrap_or_default();
        let mut slot = self.slot()?;
        job.expand(&mut slot).map_err(wrong)?;
        let Slot { text, .. } = &slot;
        dialect(&text.bytes, &self.header).map_err(|fault| wrong(damage(text, fault)))
    }

    fn slot(&self) -> Result<Slot<'_>, TraceError> {
        Slot::new(&self.dictionary).map_err(|error| TraceError::io("expand", self.path, error))
    }

    /// Calls `make` for every job in parallel and `take` in order, a bounded
    /// number at a time.
    fn batches<T: Send>(
        &self,
        make: impl Fn(&Job<'a>, &mut Slot<'_>) -> Result<T, ByteFault> + Sync,
        mut take: impl FnMut(Made<'_, 'a, T>) -> Result<(), TraceError>,
    ) -> Result<(), TraceError> {
        let wrong = |damage: ByteFault| damage.in_bytes(self.path);
        let most = rayon::current_num_threads() * AHEAD;
        let slots: Result<Vec<Slot<'_>>, TraceError> = (0..most).map(|_| self.slot()).collect();
        let mut slots = slots?;
        let mut jobs = self.jobs();
        loop {
            self.map.whole().map_err(wrong)?;
            let batch: Result<Vec<Job<'a>>, ByteFault> = jobs.by_ref().take(most).collect();
            let batch = batch.map_err(wrong)?;
            if batch.is_empty() {
                return Ok(());
            }
            let both = batch.par_iter().zip(&mut slots);
            let made: Vec<Result<T, ByteFault>> = both.map(|(job, slot)| make(job, slot)).collect();
            let texts = batch.iter().zip(&slots).map(|(job, slot)| (job, &slot.text));
            // What comes before the first error is taken: it may hold an earlier one.
            let mut error = None;
            let made = made.into_iter().map_while(|made| made.map_err(|e| error = Some(e)).ok());
            take(&mut texts.zip(made).map(|((job, text), made)| (job, text, made)))?;
            error.map_or(Ok(()), |error| Err(wrong(error)))?;
        }
    }
}

/// A fault in the text of a job as one in the file.
fn damage(text: &Text, fault: LineFault) -> ByteFault {
    ByteFault::new(text.place(fault.line), fault.expected, fault.found)
}

/// Sub-chunks hold instruction lines alone.
fn check_marks(text: &Text, job: &Job<'_>, piece: &Piece) -> Result<(), ByteFault> {
    if piece.marks.len() == job.marks {
        return Ok(());
    }
    Err(ByteFault::new(text.place(0), "instruction lines alone in sub-chunks", "lines of a frame"))
}
