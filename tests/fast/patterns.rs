//! Do the patterns of the workloads' README run as written, and does a power law survive
//! into a trace?

use std::fs;

use gpumodel::core::isa::Access;
use gpumodel::trace::workload::{Compression, Workload, write_folder};

use crate::common::workloads;
use crate::synth::parse;

/// A workload in which the README's names are known.
const HEAD: &str = "\
description = 'd'
behaviour = 'b'
source = 's'
[constants]
n = 1024
width = 64
height = 16
window = 64
nodes = 64
[buffers]
x = { bytes = 65536 }
y = { bytes = 4096 }
[[kernel]]
name = 'k'
grid = [4]
block = [64]
let = { row = 'global / width', column = 'global % width' }
code = [{ loop = 'k', count = 40, body = [
";

/// The README's addresses in global memory, each as an instruction.
fn patterns() -> Vec<String> {
    let readme = fs::read_to_string(workloads().join("README.md")).unwrap();
    let (_, after) = readme.split_once("Patterns, as addresses").unwrap();
    let (table, _) = after.split_once("## ").unwrap();
    let code = table.split('`').skip(1).step_by(2);
    let line = |code: &str| match code {
        address if address.starts_with("[x") || address.starts_with("[y") => {
            Some(format!("R2 = LDG.E.SYS R4 {address}"))
        }
        guarded if guarded.starts_with("@(tx") => Some(guarded.to_owned()),
        _ => None,
    };
    code.filter_map(line).collect()
}

#[test]
fn patterns_of_the_readme_run() {
    let patterns = patterns();
    assert!(patterns.len() >= 14, "{patterns:?}");
    for pattern in patterns {
        let text = format!("{HEAD}\"{pattern}\",\n] }}, 'EXIT']\n");
        let workload = parse(&text).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out");
        write_folder(&workload, &target, Compression::None, &mut |_| {})
            .unwrap_or_else(|error| panic!("{pattern}: {error}"));
    }
}

/// The addresses in `rank` that the first CTA of `gather-skewed` reads.
fn gathered() -> Vec<u64> {
    let workload = Workload::load("gather-skewed", &gpumodel::models()).unwrap();
    let kernel = workload.kernel(0);
    let (code, cta) = (kernel.code(), kernel.cta(0));
    let mut addresses = Vec::new();
    for warp in 0..cta.warp_count() {
        let mut stream = cta.warp(warp);
        while let Some(segment) = stream.next_segment() {
            let instructions = &code.instructions[code.segments[segment as usize].range()];
            for (place, instruction) in instructions.iter().enumerate() {
                if instruction.width == 0 {
                    stream.skip(1);
                    continue;
                }
                let mut access = Access::default();
                stream.access(&mut access);
                // Behind the eight loads of edges, each load has its address before it.
                if instruction.sources[0].number() >= 16 {
                    assert_eq!(instructions[place - 1].destinations, instruction.sources);
                    addresses.extend(access.active().map(|(_, address)| address));
                }
            }
        }
    }
    addresses
}

#[test]
fn a_skewed_gather_reads_a_few_words_most() {
    let drawn = gathered();
    assert_eq!(drawn.len(), 128 * 8);
    assert_eq!(drawn, gathered());
    let mut counts = std::collections::BTreeMap::new();
    for address in drawn {
        *counts.entry(address).or_insert(0_u32) += 1;
    }
    let mut counts: Vec<u32> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    // By the law the hundred most popular of 2 million words have a fifth of the reads.
    let top: u32 = counts.iter().take(100).sum();
    assert!((160..500).contains(&top), "{top} of 1024: {counts:?}");
    assert!(counts.len() > 500, "{}", counts.len());
}
