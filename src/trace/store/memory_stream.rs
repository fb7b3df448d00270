//! The memory stream of a warp: its accesses as differences from their predictions.
//!
//! | byte | meaning |
//! |---|---|
//! | `0x00`-`0x7f` | that many accesses plus one are exactly as predicted |
//! | `0x80` + bits | one access; bit 0: the base differs, a signed number follows; bits 1-2, shape: 0 the last one, 1 a stride follows (signed), 2 a list of the chunk's table follows (number), 3 a packed list follows. The shape comes before the base |
//! | `0xff` | one access in full: a byte mode, the base, the stride (signed), a packed list of one difference per further active lane |
//!
//! An access without lanes takes part only as "predicted" or in full.

use gpumodel_core::isa::{Access, AddressMode};
use gpumodel_core::units::{Dim3, to_usize};

use super::address_model::{AccessKind, Classified, Lists, Model, Shape, Slot};
use super::{lanes, varint};

const EXPLICIT: u8 = 0x80;
const VERBATIM: u8 = 0xff;
const BASE: u8 = 1;
const NEW_STRIDE: u8 = 1 << 1;
const TABLE_LIST: u8 = 2 << 1;
const INLINE_LIST: u8 = 3 << 1;
const LONGEST_RUN: u32 = 0x80;

/// The lists of a chunk and, by their number in [`Lists`], which are in its table: those
/// that occur more than once.
#[derive(Debug)]
struct ListTable<'a> {
    lists: &'a Lists,
    entries: Vec<Option<u32>>,
}

impl<'a> ListTable<'a> {
    fn new(lists: &'a Lists) -> Self {
        let mut next = 0;
        let entry = |(_, count)| {
            (count > 1).then(|| {
                next += 1;
                next - 1
            })
        };
        Self { lists, entries: lists.iter().map(entry).collect() }
    }

    fn explicit(&self, slot: &mut Slot<u32>, seen: &Classified, out: &mut Vec<u8>) {
        if let AccessKind::Irregular(mode, stride, list) = seen.kind {
            out.extend([VERBATIM, mode.number()]);
            varint::put(out, seen.base);
            varint::put_signed(out, stride);
            lanes::pack(self.lists.get(list), out);
            return;
        }
        let head = out.len();
        out.push(EXPLICIT);
        match seen.kind {
            AccessKind::Stride(step) if slot.shape != Shape::Stride(step) => {
                slot.shape = Shape::Stride(step);
                out[head] |= NEW_STRIDE;
                varint::put_signed(out, step);
            }
            AccessKind::List(list) if slot.shape != Shape::List(list) => {
                slot.shape = Shape::List(list);
                if let Some(entry) = self.entries[to_usize(list)] {
                    out[head] |= TABLE_LIST;
                    varint::put(out, u64::from(entry));
                } else {
                    out[head] |= INLINE_LIST;
                    lanes::pack(self.lists.get(list), out);
                }
            }
            _ => {}
        }
        let first = seen.mask.trailing_zeros();
        let residue = seen.base.wrapping_sub(slot.expect(first)).cast_signed();
        if residue != 0 {
            out[head] |= BASE;
            varint::put_signed(out, residue);
        }
        slot.pass(first, seen.base);
    }
}

/// Writes memory streams of one chunk.
#[derive(Debug)]
pub(super) struct StreamWriter<'a> {
    models: &'a [Model],
    table: ListTable<'a>,
    /// Per instruction its state and the stream that has it.
    slots: Vec<(u32, Slot<u32>)>,
    stream: u32,
}

impl<'a> StreamWriter<'a> {
    /// Streams of accesses that `models` predict; `lists` are those of the chunk.
    pub(super) fn new(models: &'a [Model], lists: &'a Lists) -> Self {
        let start = |model| (0, Slot::new(model, Dim3::default(), 0));
        let slots = models.iter().map(start).collect();
        Self { models, table: ListTable::new(lists), slots, stream: 0 }
    }

    /// Appends the stream of the warp at `cta`, `warp`.
    pub(super) fn write(
        &mut self,
        cta: Dim3,
        warp: u32,
        accesses: &[Classified],
        out: &mut Vec<u8>,
    ) {
        self.stream += 1;
        let mut run = 0;
        for seen in accesses {
            let index = to_usize(seen.slot);
            let (stream, slot) = &mut self.slots[index];
            if *stream != self.stream {
                (*stream, *slot) = (self.stream, Slot::new(&self.models[index], cta, warp));
            }
            if predicted(slot, seen) {
                run += 1;
                continue;
            }
            flush(&mut run, out);
            self.table.explicit(slot, seen, out);
        }
        flush(&mut run, out);
    }
}

/// True when the prediction is exactly this access; then it is passed.
fn predicted(slot: &mut Slot<u32>, seen: &Classified) -> bool {
    let first = seen.mask.trailing_zeros();
    let fits = match seen.kind {
        AccessKind::Zero => return true,
        AccessKind::Irregular(..) => return false,
        AccessKind::Single => true,
        AccessKind::Stride(step) => slot.shape == Shape::Stride(step),
        AccessKind::List(list) => slot.shape == Shape::List(list),
    };
    let same = fits && slot.expect(first) == seen.base;
    if same {
        slot.pass(first, seen.base);
    }
    same
}

fn flush(run: &mut u32, out: &mut Vec<u8>) {
    while *run > 0 {
        let part = (*run).min(LONGEST_RUN);
        out.push(varint::low_byte(u64::from(part - 1)));
        *run -= part;
    }
}

/// Where a list lies in a chunk, and how many differences it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListAt {
    pub(super) at: u32,
    pub(super) count: u32,
}

/// What a stream needs of its chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamSource<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) models: &'a [Model],
    pub(super) lists: &'a [ListAt],
    pub(super) cta: Dim3,
    pub(super) warp: u32,
}

/// A position in a memory stream with the predictions made so far.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    at: usize,
    run: u32,
    slots: Box<[Option<Slot<ListAt>>]>,
}

impl Stream {
    /// The stream that starts at byte `at` of a chunk with `models` models.
    pub(super) fn new(at: usize, models: usize) -> Self {
        Self { at, run: 0, slots: vec![None; models].into() }
    }

    /// Passes the next access, by the instruction `index` of the chunk, and
    /// fills `into`, unless that is `None`.
    #[inline]
    pub(super) fn next(
        &mut self,
        source: StreamSource<'_>,
        index: usize,
        mask: u32,
        into: Option<&mut Access>,
    ) {
        let (Some(slot), Some(model)) = (self.slots.get_mut(index), source.models.get(index))
        else {
            return none(mask, into);
        };
        if self.run == 0 {
            let control = source.bytes.get(self.at).copied().unwrap_or(0);
            self.at += 1;
            if control == VERBATIM {
                return self.verbatim(source.bytes, mask, into);
            }
            if control >= EXPLICIT {
                let slot = slot.get_or_insert_with(|| Slot::new(model, source.cta, source.warp));
                let residue = shape_and_residue(source, &mut self.at, control, mask, slot);
                return pass(source.bytes, slot, residue, mask, model.full, into);
            }
            self.run = u32::from(control) + 1;
        }
        self.run -= 1;
        if mask == 0 {
            return none(0, into);
        }
        let slot = slot.get_or_insert_with(|| Slot::new(model, source.cta, source.warp));
        pass(source.bytes, slot, 0, mask, model.full, into);
    }

    fn verbatim(&mut self, bytes: &[u8], mask: u32, into: Option<&mut Access>) {
        let mode = bytes.get(self.at).copied().and_then(AddressMode::of_number);
        let mode = mode.unwrap_or(AddressMode::Delta);
        self.at += 1;
        let base = varint::get(bytes, &mut self.at);
        let stride = varint::unfold(varint::get(bytes, &mut self.at));
        let count = if mode == AddressMode::Stride { 0 } else { lanes::delta_count(mask) };
        if let Some(into) = into {
            *into = Access { mask, mode, base, stride, ..Access::default() };
            if mode != AddressMode::Stride {
                lanes::unpack(bytes, self.at, base, mask, into);
            }
        }
        lanes::pass(bytes, &mut self.at, count);
    }
}

fn shape_and_residue(
    source: StreamSource<'_>,
    at: &mut usize,
    control: u8,
    mask: u32,
    slot: &mut Slot<ListAt>,
) -> i64 {
    let bytes = source.bytes;
    match control & INLINE_LIST {
        NEW_STRIDE => slot.shape = Shape::Stride(varint::unfold(varint::get(bytes, at))),
        TABLE_LIST => {
            let entry = usize::try_from(varint::get(bytes, at)).unwrap_or(usize::MAX);
            let list = source.lists.get(entry).copied();
            slot.shape = list.map_or(Shape::Stride(0), Shape::List);
        }
        INLINE_LIST => {
            let count = lanes::delta_count(mask);
            let place = u32::try_from(*at).unwrap_or(u32::MAX);
            slot.shape = Shape::List(ListAt { at: place, count });
            lanes::pass(bytes, at, count);
        }
        _ => {}
    }
    if control & BASE == 0 { 0 } else { varint::unfold(varint::get(bytes, at)) }
}

#[inline]
fn pass(
    bytes: &[u8],
    slot: &mut Slot<ListAt>,
    residue: i64,
    mask: u32,
    full: bool,
    into: Option<&mut Access>,
) {
    let first = mask.trailing_zeros();
    let base = slot.expect(first).wrapping_add_signed(residue);
    slot.pass(first, base);
    let Some(into) = into else { return };
    into.mask = mask;
    into.base = base;
    into.stride = 0;
    into.mode = if full { AddressMode::List } else { AddressMode::Delta };
    match slot.shape {
        _ if mask.is_power_of_two() => into.lanes[to_usize(first)] = base,
        Shape::List(list) if list.count == lanes::delta_count(mask) => {
            lanes::unpack(bytes, to_usize(list.at), base, mask, into);
        }
        Shape::List(_) => lanes::spread(base, 0, mask, full, into),
        Shape::Stride(step) => lanes::spread(base, step, mask, full, into),
    }
}

/// Fills in an access at address 0 with stride 0: one without lanes, or one that no model
/// covers, which only damaged stores have.
fn none(mask: u32, into: Option<&mut Access>) {
    if let Some(into) = into {
        *into = Access { mask, ..Access::default() };
    }
}
