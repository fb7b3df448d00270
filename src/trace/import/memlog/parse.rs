//! Parses one block of a log, independently of all others.

use std::io::BufRead;

use rustc_hash::FxHashMap;

use crate::store::records::{AddressList, Record, Static};
use gpumodel_core::isa::{self, traced_width};
use gpumodel_core::units::{Dim3, WARP_LANES, quoted, to_u32};

use super::super::accelsim::parse as text;
use super::line::{self, Access, Line, Opening};
use crate::error::LineFault;

/// A parsed block.
#[derive(Debug, Default)]
pub(super) struct Piece {
    /// The records, still without their places and statics.
    pub(super) records: text::Piece,
    pub(super) statics: Vec<Static>,
    /// Of each static: the line has its PC.
    pub(super) placed: Vec<bool>,
    /// Of each record.
    pub(super) heads: Vec<Head>,
    /// Launches, each with the records before it and its line.
    pub(super) launches: Vec<(usize, u64, Opening)>,
    /// Lines that are not the tool's.
    pub(super) others: u64,
    /// Lines of data and address alone.
    pub(super) pairs: u64,
}

/// Where an access belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) context: u64,
    pub(super) id: u64,
    pub(super) cta: Dim3,
    pub(super) slot: u64,
    /// Line in the block, from 0.
    pub(super) line: u64,
}

/// The fields by which static instructions of a log differ.
type Key<'a> = (&'a str, Option<u8>, Option<u64>);

/// Parses `text`, whole lines.
///
/// # Errors
/// A [`LineFault`] at the first line of the tool that is wrong.
pub(super) fn parse(text: &[u8]) -> Result<Piece, LineFault> {
    let mut piece = Piece::default();
    let mut numbers: FxHashMap<Key<'_>, u32> = FxHashMap::default();
    let mut addresses = [0; WARP_LANES];
    let mut after = text;
    let mut number = 0;
    while !after.is_empty() {
        let rest = after;
        // Reading from memory cannot fail.
        let bytes = after.skip_until(b'\n').unwrap_or(rest.len());
        let content = rest[..bytes].trim_ascii();
        let fault = |expected: &str| LineFault::new(number, expected, quoted(content));
        match line::read(content).map_err(fault)? {
            Line::Access(access) => {
                line::read_addresses(access.addresses, &mut addresses).map_err(|expected| {
                    LineFault::new(number, expected, quoted(access.addresses))
                })?;
                piece.access(&access, &addresses, number, &mut numbers);
            }
            Line::Launch(opening) => piece.launches.push((piece.heads.len(), number, *opening)),
            Line::Pair => piece.pairs += 1,
            Line::Other => piece.others += u64::from(!content.is_empty()),
        }
        number += 1;
    }
    Ok(piece)
}

impl Piece {
    fn access<'a>(
        &mut self,
        access: &Access<'a>,
        addresses: &[u64; WARP_LANES],
        line: u64,
        numbers: &mut FxHashMap<Key<'a>, u32>,
    ) {
        let Access { context, id, cta, slot, opcode, size, pc, .. } = *access;
        let number = *numbers.entry((opcode, size, pc)).or_insert_with(|| {
            self.statics.push(Static {
                pc: pc.unwrap_or_default(),
                opcode: opcode.into(),
                destinations: Box::default(),
                sources: Box::default(),
                width: size.unwrap_or_else(|| traced_width(opcode)),
                immediates: Box::default(),
                line: None,
                control: None,
            });
            self.placed.push(pc.is_some());
            to_u32(self.statics.len() - 1)
        });
        let batch = &mut self.records.batch;
        // A lane with address 0 is off.
        let lanes = addresses.iter().enumerate();
        let mask = lanes.fold(0, |mask, (lane, &address)| mask | u32::from(address != 0) << lane);
        let mut listed = isa::Access::default();
        listed.set(mask, addresses);
        batch.records.push(Record { number, mask });
        batch.accesses.push(AddressList::of(&listed, &mut batch.deltas));
        self.heads.push(Head { context, id, cta, slot, line });
    }
}
