//! Does the store of a real `mem_trace` log match the log's columns?

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::memlog_text::{program, said};
use crate::rendering::{converted, reference, text};

fn real(name: &str) -> Option<PathBuf> {
    Some(reference()?.join("real/memtrace_logs").join(name))
}

/// Launch 0's accesses of a real log of triples, read in another way: by its columns.
fn columns(text: &str) -> Vec<(u32, u32, String, Vec<u64>)> {
    let lines = text.lines().filter(|line| line.contains(" - grid_launch_id "));
    let row = |line: &str| {
        let columns: Vec<&str> = line.split(' ').collect();
        let at = |key: &str| columns.iter().position(|&column| column == key).unwrap();
        let cta = columns[at("CTA") + 1].split(',').next().unwrap().parse().unwrap();
        let slot = columns[at("warp") + 1].parse().unwrap();
        let addresses = columns.iter().filter_map(|column| {
            let (lane, address) = column.rsplit_once(",0x")?;
            lane.starts_with("Thread").then(|| u64::from_str_radix(address, 16).unwrap())
        });
        (cta, slot, columns[at("warp") + 3].to_owned(), addresses.collect())
    };
    lines.map(row).collect()
}

#[test]
fn the_real_log_of_vecadd_matches_its_columns() {
    let Some(path) = real("vectoradd_modified_memtrace.txt.xz") else { return };
    let rows = columns(&text(&path));
    let count = |opcode: &str| rows.iter().filter(|row| row.2 == opcode).count();
    assert_eq!([count("LDG.E.64.SYS"), count("STG.E.64.SYS"), rows.len()], [512, 256, 8 * 32 * 3]);
    let folder = tempfile::tempdir().unwrap();
    let store = converted(&path, folder.path());
    let said = said(&store);
    assert_eq!(said.len(), 8 * 32);
    for ((_, cta, warp), found) in &said {
        // Every slot from 0 to 31 of the CTA is used.
        let of = rows.iter().filter(|row| row.0 == cta[0] && row.1 == *warp);
        let wanted: Vec<_> = of.map(|row| (row.2.clone(), 8, row.3.clone())).collect();
        let found: Vec<_> =
            found.iter().map(|row| (row.0.clone(), row.1, row.2.to_vec())).collect();
        assert_eq!(found, wanted, "CTA {cta:?} warp {warp}");
    }
}

#[test]
fn caches_and_dram_of_the_real_log_are_its_sectors() {
    let Some(path) = real("vectoradd_modified_memtrace.txt.xz") else { return };
    let rows = columns(&text(&path));
    let sectors = |opcode: &str| {
        let of = rows.iter().filter(|row| row.2.starts_with(opcode));
        let mut all: Vec<u64> = of.flat_map(|row| row.3.iter().map(|at| at / 32)).collect();
        all.sort_unstable();
        all.dedup();
        u64::try_from(all.len()).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let words = ["analyze", path.to_str().unwrap(), "--machine", "v100", "--json", "-"];
    let (code, json, said) = program(folder.path(), &words);
    assert_eq!(code, Some(0), "{said}");
    let json: Value = serde_json::from_str(&json).unwrap();
    let kernel = &json["solo"][0]["kernels"][0];
    assert_eq!(kernel["warp_instructions"], 768);
    // Every sector once: 32 lanes of 8 bytes are 8 sectors, and no two accesses meet.
    assert_eq!(kernel["l1"]["accesses"], sectors("LDG") + sectors("STG"));
    assert_eq!(kernel["l1"]["reads"], sectors("LDG"));
    assert_eq!(kernel["dram"]["read_sectors"], sectors("LDG"));
}

#[test]
fn the_real_log_of_pairs_is_refused_with_its_reason() {
    let Some(path) = real("memtrace_out.txt.xz") else { return };
    let pairs = text(&path).lines().filter(|line| line.starts_with("0x")).count();
    let folder = tempfile::tempdir().unwrap();
    let words = ["convert", path.to_str().unwrap(), "-o", "out.gpt"];
    let (code, _, said) = program(folder.path(), &words);
    assert_eq!((code, pairs), (Some(2), 24_576));
    assert!(said.contains("24576 lines of `0xDATA,0xADDRESS` alone"), "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
