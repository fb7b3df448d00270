//! Pages between the channels of UGPU's stacks, on the SMs' clock.

use super::MemorySystem;
use crate::config::PageChannels;
use crate::counters::KernelCounts;
use crate::dram::ChannelCounters;
use crate::gpu::event_queue::Event;
use crate::gpu::event_queue::EventQueue;
use crate::testkit::fixture::{memory_of, translating};

/// Bytes of UGPU's pages.
const PAGE: u32 = 4096;

/// The memory system of a machine, and where its pages lie.
fn memory_system(name: &str, set: &[(&str, &str)]) -> (MemorySystem, Option<PageChannels>) {
    let resolved = translating(name, set);
    let (standard, map) = memory_of(&resolved);
    let pages = PageChannels::of(&map, PAGE);
    (MemorySystem::new(&resolved.machine, &standard, map), pages)
}

/// Works until nothing is left; which pages were there when.
fn copied(memory_system: &mut MemorySystem, queue: &mut EventQueue<Event>) -> Vec<(u32, u64)> {
    let (mut counts, mut copied) = (vec![KernelCounts::default()], Vec::new());
    while let Some(event) = queue.next() {
        match event {
            Event::PageCopy { stack } => memory_system.on_page_copy(stack, queue, &mut counts),
            Event::Channel { channel } => memory_system.on_channel(channel, queue, &mut counts),
            Event::PageCopied { token } => copied.push((token, queue.now())),
            other => panic!("{other:?}"),
        }
    }
    copied
}

#[test]
fn a_page_is_thirty_two_migrations_and_takes_144_cycles() {
    let (mut memory_system, pages) = memory_system("ugpu", &[]);
    let (pages, mut queue) = (pages.unwrap(), EventQueue::new());
    assert!(memory_system.can_copy_pages());
    memory_system.copy_page(9, pages.together(1234, 2), pages.together(77, 5), PAGE, &mut queue);
    // 45 clocks at 440 MHz on a clock of 1.4 GHz.
    assert_eq!(copied(&mut memory_system, &mut queue), [(9, 144)]);
    let halves: Vec<u64> = memory_system.channel_counts().iter().map(|c| c.migrations).collect();
    for (channel, &halves) in (0_u32..).zip(&halves) {
        let ends = [2, 5].map(|group| pages.groups()[group].contains(&channel));
        assert_eq!(halves, if ends.contains(&true) { 8 } else { 0 }, "channel {channel}");
    }
    assert_eq!(halves.iter().sum::<u64>(), 2 * 32);
    let lent: u64 = memory_system.channel_counts().iter().map(|c| c.lent_clocks).sum();
    assert_eq!(lent, 32 * 2);
    // 16 banks of either end, four per channel.
    let activates: u64 = memory_system.channel_counts().iter().map(|c| c.activates).sum();
    assert_eq!(activates, 2 * 16);
}

#[test]
fn larger_pages_have_more_columns_and_then_more_rows() {
    let sizes = [
        (4096_u32, "ugpu", 1),
        (8192, "ugpu-8k", 1),
        (65_536, "ugpu-64k", 1),
        (131_072, "ugpu-128k", 2),
        (2_097_152, "ugpu-2m", 32),
    ];
    for (bytes, mapping, rows) in sizes {
        let keys = [("translation.page_bytes", &*bytes.to_string()), ("dram.mapping", mapping)];
        let (mut memory_system, _) = memory_system("ugpu", &keys);
        let resolved = translating("ugpu", &keys);
        let pages = PageChannels::of(&memory_of(&resolved).1, bytes).unwrap();
        let mut queue = EventQueue::new();
        memory_system.copy_page(
            1,
            pages.together(1234, 2),
            pages.together(77, 5),
            bytes,
            &mut queue,
        );
        copied(&mut memory_system, &mut queue);
        let sum = |of: fn(&ChannelCounters) -> u64| -> u64 {
            memory_system.channel_counts().iter().map(of).sum()
        };
        assert_eq!(sum(|c| c.migrations), 2 * u64::from(bytes / 128), "{mapping}");
        // Of a bank of each group and stack at both ends.
        let activates = 2 * 16 * rows;
        let found = (sum(|c| c.activates), sum(|c| c.copy_activates));
        assert_eq!(found, (activates, activates), "{mapping}");
    }
}

#[test]
fn any_number_of_pages_may_be_under_way() {
    let (mut memory_system, pages) = memory_system("ugpu", &[]);
    let (pages, mut queue) = (pages.unwrap(), EventQueue::new());
    for token in 0..300 {
        let (from, to) = (token % 8, (token * 3 + 1 + token / 8) % 8);
        let to = if to == from { (to + 1) % 8 } else { to };
        let [from, to] = [(0, from), (1, to)]
            .map(|(end, group)| pages.together(u64::from(token * 37 + end), group));
        memory_system.copy_page(token, from, to, PAGE, &mut queue);
    }
    let copied = copied(&mut memory_system, &mut queue);
    let mut tokens: Vec<u32> = copied.iter().map(|page| page.0).collect();
    tokens.sort_unstable();
    assert!(tokens.into_iter().eq(0..300));
    let halves: u64 = memory_system.channel_counts().iter().map(|c| c.migrations).sum();
    assert_eq!(halves, 300 * 64);
    // Faster than one page after the other.
    let last = copied.last().unwrap().1;
    assert!(last < 300 * 144, "{last}");
}

#[test]
fn pages_stay_where_the_memory_or_their_size_does_not_let_them_go() {
    assert!(!memory_system("v100", &[]).0.can_copy_pages());
    assert!(!memory_system("ugpu", &[("translation.page_bytes", "32768")]).0.can_copy_pages());
    assert!(memory_system("ugpu", &[("translation.page_bytes", "8192")]).0.can_copy_pages());
}
