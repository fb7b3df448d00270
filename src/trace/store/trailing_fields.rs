//! What lines carried beyond the fields we know, verbatim, and further lines of
//! a CTA's frame. Stored next to a chunk; only an export reads them.
//!
//! Layout: count, length and bytes of every distinct tail; then per CTA its
//! note (length, bytes) and per warp a count of tails, each as instructions
//! since the last tail and a tail number.

use std::collections::HashMap;

use gpumodel_core::units::{to_u64, to_usize};

use super::records::Block;
use super::varint::{self, Reader};
use crate::error::ByteFault;

/// Packs the tails and notes of `blocks`; empty when there are none.
pub(super) fn pack(blocks: &[Block]) -> Vec<u8> {
    let mut table = Vec::new();
    let mut numbers: HashMap<&[u8], u64> = HashMap::new();
    let mut body = Vec::new();
    let mut any = false;
    for block in blocks {
        any |= !block.note.is_empty();
        varint::put(&mut body, to_u64(block.note.len()));
        body.extend_from_slice(&block.note);
        for warp in &block.warps {
            let tails = of_warp(warp);
            varint::put(&mut body, to_u64(tails.len()));
            let mut next = 0;
            for (at, tail) in tails {
                let new = to_u64(numbers.len());
                let number = *numbers.entry(tail).or_insert(new);
                if number == new {
                    varint::put(&mut table, to_u64(tail.len()));
                    table.extend_from_slice(tail);
                }
                varint::put(&mut body, at - next);
                varint::put(&mut body, number);
                next = at + 1;
            }
        }
    }
    if !any && numbers.is_empty() {
        return Vec::new();
    }
    let mut out = Vec::new();
    varint::put(&mut out, to_u64(numbers.len()));
    out.extend_from_slice(&table);
    out.extend_from_slice(&body);
    out
}

/// The tails of one warp: position in the warp and text.
fn of_warp(pieces: &[super::records::Piece]) -> Vec<(u64, &[u8])> {
    let mut passed = 0;
    let mut found = Vec::new();
    for piece in pieces {
        let all = &piece.batch.tails;
        let from = all.partition_point(|(at, _)| to_usize(*at) < piece.records.start);
        for (at, tail) in &all[from..] {
            if to_usize(*at) >= piece.records.end {
                break;
            }
            found.push((passed + to_u64(to_usize(*at) - piece.records.start), &**tail));
        }
        passed += to_u64(piece.records.len());
    }
    found
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
