//! Does a layout send each address where the simulator's decoder does?

#![allow(clippy::cast_possible_truncation, reason = "parts of a location are small numbers")]

use proptest::prelude::*;

use super::super::layout::{BankGroupBits, BankIndex, Layout, PartitionIndex, Shape, Unfit, draw};
use crate::config::Location;

const HBM: &str = "00000000.00000000.00000000.00000000.0000RRRR.RRRRRRRR.RBBBCCCB.CCCSSSSS";
const GDDR: &str = "00000000.00000000.00000000.00000000.0000RRRR.RRRRRRRR.RBBBCCCC.BCCSSSSS";
const FERMI: &str = "00000000.00000000.00000000.00000000.0000RRRR.RRRRRRRR.BBBCCCCB.CCSSSSSS";
const CHANNELS: &str = "00000000.00000000.00000000.00000000.0000RRRR.RRRRRRRR.RBBDDDCC.BCCSSSSS";

fn layout(bits: &str, channel_bit: Option<u32>, partition_index: PartitionIndex) -> Layout {
    Layout {
        channel_bit,
        bits: bits.to_owned(),
        partition_index,
        seed: None,
        bank_index: BankIndex::Linear,
        bank_group: BankGroupBits::Low,
    }
}

fn shape(channels: u32, slices: u32) -> Shape {
    Shape { channels, slices, request_bytes: 32, bank_groups: 4, banks_per_group: 4 }
}

/// The simulator's decoder, step by step.
struct Naive<'a> {
    layout: &'a Layout,
    shape: Shape,
}

/// The bits of `address` under the letters, packed: highest letter first.
fn packed(bits: &str, address: u64, letters: &str) -> u64 {
    let letters_of = bits.chars().filter(|c| "RBCSD0".contains(*c));
    let under = (0..64_u32).rev().zip(letters_of).filter(|(_, c)| letters.contains(*c));
    under.fold(0, |value, (bit, _)| value << 1 | address >> bit & 1)
}

/// Index bits and the upper bits XORed onto each, as the equations for 16, 32 and 64 list them.
fn equations(places: u32) -> &'static [&'static [u32]] {
    match places {
        16 => &[
            &[11, 10, 9, 8, 6, 4, 3, 0],
            &[12, 8, 7, 6, 5, 3, 1, 0],
            &[9, 8, 7, 6, 4, 2, 1],
            &[10, 9, 8, 7, 5, 3, 2],
        ],
        32 => &[
            &[13, 12, 11, 10, 9, 6, 5, 3, 0],
            &[14, 13, 12, 11, 10, 7, 6, 4, 1],
            &[14, 10, 9, 8, 7, 6, 3, 2, 0],
            &[11, 10, 9, 8, 7, 4, 3, 1],
            &[12, 11, 10, 9, 8, 5, 4, 2],
        ],
        64 => &[
            &[18, 17, 16, 15, 12, 10, 6, 5, 0],
            &[15, 13, 12, 11, 10, 7, 5, 1, 0],
            &[16, 14, 13, 12, 11, 8, 6, 2, 1],
            &[17, 15, 14, 13, 12, 9, 7, 3, 2],
            &[18, 16, 15, 14, 13, 10, 8, 4, 3],
            &[17, 16, 15, 14, 11, 9, 5, 4],
        ],
        _ => panic!("no equations for {places}"),
    }
}

fn ipoly(upper: u64, index: u32, places: u32) -> u32 {
    let sum = |bits: &&[u32]| bits.iter().fold(0, |sum, bit| sum ^ (upper >> bit & 1) as u32);
    (0..).zip(equations(places)).fold(index, |index, (at, bits)| index ^ sum(bits) << at)
}

fn pae(a: u64, b: u32) -> u32 {
    let a = |bits: &[u32]| bits.iter().fold(0, |sum, bit| sum ^ (a >> bit & 1) as u32);
    let b = |bit: u32| b >> bit & 1;
    let new = [
        a(&[13, 10, 9, 5, 0]) ^ b(3) ^ b(0) ^ b(0),
        a(&[12, 11, 6, 1]) ^ b(3) ^ b(2) ^ b(1) ^ b(1),
        a(&[14, 9, 8, 7, 2]) ^ b(1) ^ b(2),
        a(&[11, 10, 8, 3]) ^ b(2) ^ b(3) ^ b(3),
        a(&[12, 9, 8, 5, 4]) ^ b(1) ^ b(0) ^ b(4),
    ];
    (0..).zip(new).fold(0, |all, (at, bit)| all | bit << at)
}

impl Naive<'_> {
    fn locate(&self, address: u64) -> Location {
        let Shape { channels, slices, request_bytes, .. } = self.shape;
        let address = address / u64::from(request_bytes) * u64::from(request_bytes);
        let (mut channel, rest, upper) = self.channel(address);
        let bits = &self.layout.bits;
        let (bank, row) = (packed(bits, rest, "B") as u32, packed(bits, rest, "R"));
        let mut slice = bank & (slices - 1);
        let number = channel * slices + slice;
        match self.layout.partition_index {
            PartitionIndex::Linear => {}
            PartitionIndex::Xor => channel ^= (upper & u64::from(channels - 1)) as u32,
            PartitionIndex::Pae => channel = pae(upper, channel),
            PartitionIndex::Ipoly => {
                let places = channels.next_power_of_two() * slices;
                let number = ipoly(upper, number, places) % (channels * slices);
                (channel, slice) = (number / slices, number % slices);
            }
            PartitionIndex::Random => {
                let block = address >> (self.layout.channel_bit.unwrap() - slices.ilog2());
                let number = (draw(1, block) % u64::from(channels * slices)) as u32;
                (channel, slice) = (number / slices, number % slices);
            }
        }
        let (bank_group, bank) = self.bank(bank, row);
        let column = (packed(bits, rest, "CS") >> 5) as u32;
        Location { channel, slice, pseudo_channel: 0, bank_group, bank, row: row as u32, column }
    }

    /// Channel, address without it, upper bits.
    fn channel(&self, address: u64) -> (u32, u64, u64) {
        let (channels, slices) = (self.shape.channels, self.shape.slices);
        let Some(bit) = self.layout.channel_bit else {
            let channel = packed(&self.layout.bits, address, "D") as u32;
            let above = channels.ilog2() + slices.ilog2();
            return (channel, address, address >> (above - 1));
        };
        let (above, below) = (address >> bit, address & ((1 << bit) - 1));
        let count = u64::from(channels);
        let rest = (above / count) << bit | below;
        let upper = if channels.is_power_of_two() {
            address >> (bit + channels.ilog2() + slices.ilog2())
        } else {
            above / count
        };
        ((above % count) as u32, rest, upper)
    }

    fn bank(&self, bank: u32, row: u64) -> (u32, u32) {
        let (groups, each) = (self.shape.bank_groups, self.shape.banks_per_group);
        let bank = match self.layout.bank_index {
            BankIndex::Linear => bank,
            BankIndex::Xor => bank ^ (row as u32 & (groups * each - 1)),
            BankIndex::Ipoly => ipoly(row, bank, groups * each),
        };
        match self.layout.bank_group {
            BankGroupBits::Low => (bank % groups, bank / groups),
            BankGroupBits::High => (bank / each, bank % each),
        }
    }
}

/// An address whose row needs only letters `R`.
fn within(layout: &Layout, shape: &Shape, address: u64) -> u64 {
    address % ((1 << 28) * u64::from(if layout.channel_bit.is_some() { shape.channels } else { 1 }))
}

proptest! {
    #[test]
    fn layouts_decode_as_the_simulator_does(
        (bits, channel_bit) in prop::sample::select(vec![
            (HBM, Some(8)), (GDDR, Some(8)), (FERMI, Some(8)), (GDDR, Some(10)), (HBM, Some(5)),
            (GDDR, Some(13)), (CHANNELS, None),
        ]),
        channels in prop::sample::select(vec![1, 2, 6, 8, 11, 12, 16, 24, 32, 40, 48, 144]),
        slices in prop::sample::select(vec![1, 2, 4]),
        index in prop::sample::select(vec![
            PartitionIndex::Linear, PartitionIndex::Xor, PartitionIndex::Ipoly,
            PartitionIndex::Pae, PartitionIndex::Random,
        ]),
        bank_index in prop::sample::select(vec![
            BankIndex::Linear, BankIndex::Xor, BankIndex::Ipoly,
        ]),
        high in any::<bool>(),
        groups in prop::sample::select(vec![1, 2, 4]),
        addresses in prop::collection::vec(any::<u64>(), 40),
    ) {
        let bank_group = if high { BankGroupBits::High } else { BankGroupBits::Low };
        let layout = Layout { bank_index, bank_group, ..layout(bits, channel_bit, index) };
        let shape = Shape {
            bank_groups: groups, banks_per_group: 16 / groups, ..shape(channels, slices)
        };
        let map = layout.map(&shape);
        let fits = match index {
            PartitionIndex::Linear => true,
            PartitionIndex::Random => channel_bit.is_some(),
            PartitionIndex::Xor => channels.is_power_of_two(),
            PartitionIndex::Pae => channels == 32,
            PartitionIndex::Ipoly => {
                channels > 1 && [16, 32, 64].contains(&(channels.next_power_of_two() * slices))
            }
        };
        let three = channel_bit.is_some() || (channels.is_power_of_two() && channels >= 8);
        prop_assert_eq!(map.is_ok(), fits && three, "{:?}", map.err());
        let Ok(map) = map else { return Ok(()) };
        let naive = Naive { layout: &layout, shape };
        for address in addresses {
            let address = address % (1 << 47);
            prop_assert_eq!(map.locate(address), naive.locate(address), "{:#x}", address);
        }
    }

    #[test]
    fn a_line_that_is_one_request_lies_where_it_begins(
        channel_bit in 0_u32..9, channels in 1_u32..50, address in 0_u64..1 << 32
    ) {
        let layout = layout(GDDR, Some(channel_bit), PartitionIndex::Linear);
        let shape = Shape { request_bytes: 128, ..shape(channels, 2) };
        let map = layout.map(&shape).unwrap();
        let (first, found) = (map.locate(address / 128 * 128), map.locate(address));
        let piece = (address % 128 / 32) as u32;
        prop_assert_eq!(found, Location { column: first.column | piece, ..first });
        prop_assert!(map.keeps_whole(128));
    }

    #[test]
    fn two_addresses_of_a_channel_never_meet(
        channels in 1_u32..160,
        channel_bit in 5_u32..28,
        pair in prop::array::uniform2(0_u64..1 << 47),
        near in 0_u32..47,
    ) {
        let layout = layout(HBM, Some(channel_bit), PartitionIndex::Linear);
        // Either any two, or two that differ in one bit.
        let pair = if near < 5 { pair } else { [pair[0], pair[0] ^ 1 << near] };
        let shape = shape(channels, 2);
        let map = layout.map(&shape).unwrap();
        let [one, other] = pair.map(|address| within(&layout, &shape, address) / 32 * 32);
        prop_assert_eq!(map.locate(one) == map.locate(other), one == other);
    }
}

#[test]
fn twelve_channels_are_a_remainder_and_the_quotient_is_the_rest() {
    let map = layout(GDDR, Some(8), PartitionIndex::Linear).map(&shape(12, 2)).unwrap();
    let place = |address| map.locate(address);
    assert_eq!([0, 11, 12].map(|block| place(block * 256).channel), [0, 11, 0]);
    // The 13th block is the second of channel 0: quotient 1, address bit 8, a column.
    assert_eq!((place(12 * 256).column, place(12 * 256).row), (1 << 2, 0));
    // Bit 7 is the lowest letter B: the slice, and the lowest bit of the bank group.
    assert_eq!((place(1 << 7).slice, place(1 << 7).bank_group, place(1 << 7).bank), (1, 1, 0));
    // Quotient 2^7 is bit 15 of the rest, the lowest of the row.
    assert_eq!(place(12 << 15).row, 1);
}

#[test]
fn ipoly_wraps_round_where_channels_are_no_power_of_two() {
    let map = layout(HBM, Some(8), PartitionIndex::Ipoly).map(&shape(24, 2)).unwrap();
    let number = |address| map.locate(address).channel * 2 + map.locate(address).slice;
    // Quotient 2: upper bit 1, onto bits 1 and 2.
    assert_eq!(number(2 * 24 * 256), 0b110);
    // Channel 23, quotient 2: 46 ^ 6 = 40; channel 20, quotient 8: bits 3 and 4: 40 ^ 24 = 48 = 0.
    assert_eq!(number((2 * 24 + 23) * 256), 40);
    assert_eq!(number((8 * 24 + 20) * 256), 0);
    // Quotient 1 is both the slice's bit and upper bit 0: 1 ^ 0b11.
    assert_eq!(number(24 * 256), 0b10);
}

#[test]
fn random_places_stay_and_depend_on_the_seed() {
    let own = layout(GDDR, Some(8), PartitionIndex::Random);
    let map = |seed| Layout { seed, ..own.clone() }.map(&shape(10, 2)).unwrap();
    let (first, one, two) = (map(None), map(Some(1)), map(Some(2)));
    let places = |map: &crate::config::AddressMap| -> Vec<u32> {
        (0..4000_u64).map(|block| map.locate(block * 128).channel).collect()
    };
    assert_eq!(places(&first), places(&one));
    assert_ne!(places(&one), places(&two));
    let counts = (0..10).map(|channel| places(&one).iter().filter(|c| **c == channel).count());
    assert!(counts.into_iter().all(|count| (320..480).contains(&count)));
    assert_eq!(one.locate(5 * 128).channel, one.locate(5 * 128 + 96).channel, "blocks of 128");
}

#[test]
fn what_the_simulator_stops_at_is_refused_by_its_part() {
    let refused = |layout: &Layout, shape: Shape| layout.map(&shape).unwrap_err();
    let hbm = |index| layout(HBM, Some(8), index);
    let linear = hbm(PartitionIndex::Linear);
    assert!(matches!(refused(&hbm(PartitionIndex::Ipoly), shape(40, 4)), Unfit::Partition(_)));
    assert!(matches!(refused(&hbm(PartitionIndex::Xor), shape(24, 2)), Unfit::Partition(_)));
    assert!(matches!(refused(&hbm(PartitionIndex::Pae), shape(16, 2)), Unfit::Partition(_)));
    assert!(matches!(refused(&linear, shape(8, 3)), Unfit::Slices(_)));
    assert!(matches!(refused(&linear, shape(1025, 1)), Unfit::Channels(_)));
    let short = layout("RRBBCC", Some(8), PartitionIndex::Linear);
    assert!(matches!(refused(&short, shape(8, 1)), Unfit::Bits(_)));
    let both = layout(CHANNELS, Some(8), PartitionIndex::Linear);
    assert!(matches!(refused(&both, shape(8, 1)), Unfit::Bits(_)));
    let letters = layout(CHANNELS, None, PartitionIndex::Linear);
    assert!(matches!(refused(&letters, shape(12, 1)), Unfit::Channels(_)));
    assert!(matches!(refused(&letters, shape(4, 1)), Unfit::Bits(_)));
    let few = Shape { banks_per_group: 2, ..shape(8, 1) };
    assert!(matches!(refused(&linear, few), Unfit::Banks(_)));
    let odd = Layout { bank_index: BankIndex::Ipoly, ..linear.clone() };
    let odd_shape = Shape { banks_per_group: 32, ..shape(8, 1) };
    assert!(matches!(refused(&odd, odd_shape), Unfit::BankIndex(_)));
}

#[test]
fn lines_of_a_slice_lose_channel_and_slice() {
    // The simulator indexes the sets of its L2 by the quotient without the slice's bit.
    let map = layout(GDDR, Some(8), PartitionIndex::Linear).map(&shape(12, 2)).unwrap();
    let naive = |address: u64| {
        let rest = ((address >> 8) / 12) << 8 | address & 255;
        rest >> 8 << 7 | rest & 127
    };
    for address in [0, 128, 256, 12 * 256 + 160, 0x1234_5660, 0x7_ffff_ffe0] {
        assert_eq!(map.within_slice(address), naive(address), "{address:#x}");
    }
}
