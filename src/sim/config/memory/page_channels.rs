//! Which memory channels a page lies in, and how its address is put together from
//! a place in those channels: what lets channels belong to applications.

use super::address_map::AddressMap;

/// The groups of channels that a machine's pages lie in: a page lies in all channels
/// of one group. The address bits that choose the group are above the page's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageChannels {
    page_bits: u32,
    /// Address bits that choose the group, lowest first.
    bits: Vec<u32>,
    /// By group.
    channels: Vec<Vec<u32>>,
}

impl PageChannels {
    /// The groups of pages of `page_bytes` bytes (a power of two) under `map`; `None`
    /// where every page lies in all channels, or channels are no plain bits of the
    /// address.
    #[must_use]
    pub fn of(map: &AddressMap, page_bytes: u32) -> Option<Self> {
        let page_bits = page_bytes.trailing_zeros();
        let all = map.channel_bits()?;
        let chooses = |bit: &u32| *bit >= page_bits;
        let places = (0_u32..).zip(&all).filter(|(_, bit)| chooses(bit));
        let places: Vec<u32> = places.map(|(place, _)| place).collect();
        if places.is_empty() {
            return None;
        }
        let group = |channel: u32| {
            let bits = places.iter().enumerate();
            bits.fold(0, |group, (at, place)| group | (channel >> place & 1) << at)
        };
        let channels = (0..1_u32 << places.len())
            .map(|number| (0..map.channels()).filter(|&c| group(c) == number).collect())
            .collect();
        Some(Self { page_bits, bits: all.into_iter().filter(chooses).collect(), channels })
    }

    /// Channels by group.
    #[must_use]
    pub fn groups(&self) -> &[Vec<u32>] {
        &self.channels
    }

    /// Address bits of a page's offset.
    #[must_use]
    pub fn page_bits(&self) -> u32 {
        self.page_bits
    }

    /// The frame in a group that a page-aligned part of an address names: its bits
    /// above the page without those of the group, and the group.
    #[must_use]
    pub fn apart(&self, address: u64) -> (u64, u32) {
        let mut group = 0;
        let mut rest = address >> self.page_bits;
        for (at, bit) in self.bits.iter().enumerate().rev() {
            let shift = bit - self.page_bits;
            let one = rest >> shift & 1;
            group |= u32::from(one == 1) << at;
            rest = rest >> (shift + 1) << shift | rest & ((1 << shift) - 1);
        }
        (rest, group)
    }

    /// The first address of frame `frame` of a group: the inverse of
    /// [`PageChannels::apart`].
    #[must_use]
    pub fn together(&self, frame: u64, group: u32) -> u64 {
        let mut page = frame;
        for (at, bit) in self.bits.iter().enumerate() {
            let shift = bit - self.page_bits;
            let one = u64::from(group >> at & 1);
            page = page >> shift << (shift + 1) | one << shift | page & ((1 << shift) - 1);
        }
        page << self.page_bits
    }
}

#[cfg(test)]
mod tests {
    use super::PageChannels;
    use crate::config::Mapping;
    use proptest::prelude::*;

    fn ugpu() -> PageChannels {
        let map =
            Mapping::load("ugpu", &gpumodel_models::builtin()).unwrap().for_machine(32, 2).unwrap();
        PageChannels::of(&map, 4096).unwrap()
    }

    #[test]
    fn figure_8_keeps_a_block_of_128_bytes_in_a_row_and_parts_two() {
        let map =
            Mapping::load("ugpu", &gpumodel_models::builtin()).unwrap().for_machine(32, 2).unwrap();
        assert!(map.keeps_whole(128) && map.keeps_whole(64) && map.keeps_whole(32));
        assert!(!map.keeps_whole(256));
    }

    #[test]
    fn a_page_of_figure_8_lies_in_one_channel_of_each_of_four_stacks() {
        let pages = ugpu();
        assert_eq!(pages.groups().len(), 8);
        assert_eq!(pages.groups()[0], [0, 1, 2, 3]);
        assert_eq!(pages.groups()[7], [28, 29, 30, 31]);
    }

    #[test]
    fn each_page_size_has_a_mapping_that_keeps_a_page_in_one_channel_of_each_stack() {
        for (bits, size) in
            (13..).zip(["8k", "16k", "32k", "64k", "128k", "256k", "512k", "1m", "2m"])
        {
            let map = Mapping::load(&format!("ugpu-{size}"), &gpumodel_models::builtin()).unwrap();
            let map = map.for_machine(32, 2).unwrap();
            let pages = PageChannels::of(&map, 1 << bits).unwrap();
            assert_eq!(pages.groups(), ugpu().groups(), "{size}");
            assert_eq!(pages.apart(5 << bits), (0, 5));
        }
    }

    #[test]
    fn pages_larger_than_the_channel_bits_allow_lie_everywhere() {
        let map =
            Mapping::load("ugpu", &gpumodel_models::builtin()).unwrap().for_machine(32, 2).unwrap();
        assert_eq!(PageChannels::of(&map, 1 << 15), None);
        let hashed = Mapping::load("volta", &gpumodel_models::builtin())
            .unwrap()
            .for_machine(32, 2)
            .unwrap();
        assert_eq!(PageChannels::of(&hashed, 4096), None);
    }

    proptest! {
        #[test]
        fn a_frame_and_its_group_make_the_address(page in 0_u64..1 << 35) {
            let pages = ugpu();
            let (frame, group) = pages.apart(page << 12);
            prop_assert_eq!(u64::from(group), page & 7);
            prop_assert_eq!(frame, page >> 3);
            prop_assert_eq!(pages.together(frame, group), page << 12);
        }
    }
}
