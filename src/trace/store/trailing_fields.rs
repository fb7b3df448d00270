//! What lines carried beyond the fields we know, verbatim, and further lines of
//! a CTA's frame. Stored next to a chunk; only an export reads them.
//!
//! Layout: count, length and bytes of every distinct tail; then per CTA its
//! note (length, bytes) and per warp a count of tails, each as instructions
//! since the last tail and a tail number.

use std::sync::Arc;

use gpumodel_core::units::{to_u64, to_usize};
use rustc_hash::FxHashMap;

use super::records::{Batch, Block, Piece};
use super::varint::{self, Reader};
use crate::error::ByteFault;

/// Packs the tails and notes of `blocks`; empty when there are none.
pub(super) fn pack(blocks: &[Block]) -> Vec<u8> {
    let mut table = Table::default();
    let mut body = Vec::new();
    let mut any = false;
    for block in blocks {
        any |= !block.note.is_empty();
        varint::put(&mut body, to_u64(block.note.len()));
        body.extend_from_slice(&block.note);
        for warp in &block.warps {
            let count: usize = warp.iter().map(|piece| tails(piece).len()).sum();
            varint::put(&mut body, to_u64(count));
            table.warp(warp, &mut body);
        }
    }
    if !any && table.numbers.is_empty() {
        return Vec::new();
    }
    let mut out = Vec::new();
    varint::put(&mut out, to_u64(table.numbers.len()));
    out.extend_from_slice(&table.bytes);
    out.extend_from_slice(&body);
    out
}

/// The tails of a piece: index of the record in the batch, and number of the text there.
fn tails(piece: &Piece) -> &[(u32, u32)] {
    let all = &piece.batch.tails;
    let before = |end: usize| all.partition_point(|(at, _)| to_usize(*at) < end);
    match all.is_empty() {
        true => all,
        false => &all[before(piece.records.start)..before(piece.records.end)],
    }
}

/// Not in the table so far.
const NEW: u64 = u64::MAX;

/// The distinct tails so far.
#[derive(Debug, Default)]
struct Table<'a> {
    numbers: FxHashMap<&'a [u8], u64>,
    bytes: Vec<u8>,
    /// The batch of the last tail, and the numbers of its texts here, or [`NEW`].
    batch: Option<&'a Arc<Batch>>,
    of_batch: Vec<u64>,
}

impl<'a> Table<'a> {
    /// Appends the tails of one warp to `body`.
    fn warp(&mut self, pieces: &'a [Piece], body: &mut Vec<u8>) {
        let (mut passed, mut next) = (0, 0);
        for piece in pieces {
            let tails = tails(piece);
            if !tails.is_empty() {
                self.enter(&piece.batch);
            }
            for &(at, text) in tails {
                let at = passed + to_u64(to_usize(at) - piece.records.start);
                let known = self.of_batch[to_usize(text)];
                let number = if known == NEW { self.number(&piece.batch, text) } else { known };
                varint::put(body, at - next);
                varint::put(body, number);
                next = at + 1;
            }
            passed += to_u64(piece.records.len());
        }
    }

    /// Forgets the numbers of another batch's texts.
    fn enter(&mut self, batch: &'a Arc<Batch>) {
        if !self.batch.is_some_and(|last| Arc::ptr_eq(last, batch)) {
            self.batch = Some(batch);
            self.of_batch.clear();
            self.of_batch.resize(batch.texts.len(), NEW);
        }
    }

    /// The number of a text of `batch` that is new there.
    #[cold]
    fn number(&mut self, batch: &'a Batch, text: u32) -> u64 {
        let tail = batch.texts.get(text);
        let new = to_u64(self.numbers.len());
        let number = *self.numbers.entry(tail).or_insert(new);
        if number == new {
            varint::put(&mut self.bytes, to_u64(tail.len()));
            self.bytes.extend_from_slice(tail);
        }
        self.of_batch[to_usize(text)] = number;
        number
    }
}

/// The tails of one CTA.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CtaTrailingFields {
    /// Lines of the CTA's frame beyond `thread block`, LF between them; empty
    /// when there are none.
    pub note: Vec<u8>,
    /// Per warp: position of the instruction in its warp, from 0, and the text
    /// after its last known field, verbatim.
    pub warps: Vec<Vec<(u64, Vec<u8>)>>,
}

/// Reads the tails of all `ctas` CTAs with `warps` warps each.
pub(super) fn unpack(
    bytes: &[u8],
    ctas: usize,
    warps: usize,
) -> Result<Vec<CtaTrailingFields>, ByteFault> {
    let mut reader = Reader::new(bytes);
    let count = reader.count(1);
    let table: Vec<&[u8]> = (0..count)
        .map(|_| {
            let length = reader.count(1);
            reader.take(length)
        })
        .collect();
    if ctas.saturating_mul(warps) > reader.left() {
        return Err(ByteFault::new(0, "tails for every warp", "fewer bytes than warps"));
    }
    let mut all = Vec::with_capacity(ctas);
    for _ in 0..ctas {
        let length = reader.count(1);
        let note = reader.take(length).to_vec();
        let warps = (0..warps).map(|_| warp_tails(&mut reader, &table)).collect();
        all.push(CtaTrailingFields { note, warps });
    }
    reader.check("tails")?;
    Ok(all)
}

fn warp_tails(reader: &mut Reader<'_>, table: &[&[u8]]) -> Vec<(u64, Vec<u8>)> {
    let count = reader.count(2);
    let mut next = 0_u64;
    let mut tails = Vec::with_capacity(count);
    for _ in 0..count {
        let at = next.saturating_add(reader.number());
        let number = usize::try_from(reader.number()).unwrap_or(usize::MAX);
        let text = table.get(number).copied().unwrap_or_default();
        tails.push((at, text.to_vec()));
        next = at.saturating_add(1);
    }
    tails
}
