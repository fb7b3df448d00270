//! Facts of the tag array, one each.

use super::naive::spec;
use super::tags::{Found, Leaving, TagArray};
use crate::config::Cache;

#[test]
fn a_sector_is_fetched_alone() {
    let mut tags = TagArray::new(&spec(4, 2), 0);
    let way = tags.allocate(8).unwrap();
    assert!(!tags.has_leaving());
    tags.expect(way, 1);
    assert_eq!(tags.lookup(8, 1).0, Found::Pending);
    assert_eq!(tags.fill(8, 1), Some(way));
    assert_eq!(tags.lookup(8, 1).0, Found::Hit);
    assert_eq!(tags.lookup(8, 0).0, Found::SectorMiss);
    assert_eq!(tags.lookup(12, 0).0, Found::LineMiss);
}

#[test]
fn the_least_recently_used_line_leaves_with_its_dirty_sectors() {
    let mut tags = TagArray::new(&spec(1, 2), 0);
    let first = tags.allocate(1).unwrap();
    tags.validate(first, 3);
    tags.soil(first, 3);
    tags.soil(first, 1);
    tags.write_bytes(first, 1, 0xff);
    let second = tags.allocate(2).unwrap();
    tags.touch(second);
    assert!(tags.allocate(3).is_some());
    let line = 128;
    assert_eq!(tags.next_leaving(), Some(Leaving { address: line + 32, bytes: 0xff }));
    assert_eq!(tags.next_leaving(), Some(Leaving { address: line + 96, bytes: u32::MAX }));
    assert_eq!(tags.next_leaving(), None);
}

#[test]
fn lines_with_sectors_on_the_way_stay() {
    let mut tags = TagArray::new(&spec(1, 1), 0);
    let way = tags.allocate(1).unwrap();
    tags.expect(way, 0);
    assert!(tags.allocate(2).is_none());
    tags.fill(1, 0);
    assert!(tags.allocate(2).is_some());
}

#[test]
fn a_sector_written_in_parts_is_whole_after_all_its_bytes() {
    let mut tags = TagArray::new(&spec(1, 1), 0);
    let way = tags.allocate(1).unwrap();
    assert!(!tags.write_bytes(way, 0, 0xffff));
    assert!(tags.partly_written(way, 0));
    assert!(tags.write_bytes(way, 0, 0xffff_0000));
}

#[test]
fn a_flush_sends_what_is_alive_once() {
    let mut tags = TagArray::new(&spec(4, 2), 0);
    for line in [3, 9] {
        let way = tags.allocate(line).unwrap();
        tags.validate(way, 0);
        tags.soil(way, 0);
    }
    tags.flush(|address| address == 9 * 128);
    assert_eq!(tags.next_leaving(), Some(Leaving { address: 3 * 128, bytes: u32::MAX }));
    tags.flush(|_| false);
    assert_eq!(tags.next_leaving(), None);
}

#[test]
fn a_flush_takes_one_way_of_every_set_after_the_other() {
    let mut tags = TagArray::new(&spec(4, 2), 0);
    for line in [3, 7, 2] {
        let way = tags.allocate(line).unwrap();
        tags.validate(way, 0);
        tags.soil(way, 0);
    }
    tags.flush(|_| false);
    let left = std::iter::from_fn(|| tags.next_leaving()).map(|leaving| leaving.address / 128);
    assert_eq!(left.collect::<Vec<_>>(), [2, 3, 7], "the second way of set 3 is last");
}

#[test]
fn beyond_the_limit_the_oldest_dirty_line_is_written_back_and_stays() {
    let limited = Cache { dirty_ways_percent: Some(50), ..spec(1, 4) };
    let mut tags = TagArray::new(&limited, 0);
    for line in 1..=3 {
        let way = tags.allocate(line).unwrap();
        tags.validate(way, 0);
        tags.soil(way, 0);
        tags.soil(way, 0);
    }
    assert_eq!(tags.next_leaving(), Some(Leaving { address: 128, bytes: u32::MAX }));
    assert_eq!(tags.next_leaving(), None, "two may stay dirty");
    assert_eq!(tags.lookup(1, 0).0, Found::Hit, "it is clean, not gone");
    let way = tags.lookup(1, 0).1.unwrap();
    tags.soil(way, 0);
    assert_eq!(tags.next_leaving(), Some(Leaving { address: 256, bytes: u32::MAX }));
}

#[test]
fn dirty_lines_are_spared_while_they_are_few() {
    let mut tags = TagArray::new(&spec(2, 2), 50);
    let way = tags.allocate(0).unwrap();
    tags.validate(way, 0);
    tags.soil(way, 0);
    tags.allocate(2).unwrap();
    tags.allocate(4).unwrap();
    assert_eq!(tags.lookup(0, 0).0, Found::Hit, "one of four lines is dirty");
    let way = tags.lookup(4, 0).1.unwrap();
    tags.soil(way, 0);
    tags.allocate(6).unwrap();
    assert_eq!(tags.lookup(0, 0).0, Found::LineMiss, "two of four are");
}
