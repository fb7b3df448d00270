//! Counts the warp instructions that the kernels of a store execute, by opcode.
//!
//! ```text
//! cargo run -p gpumodel-trace --example count_opcodes -- STORE.gpt
//! ```
#![allow(clippy::print_stdout, reason = "the table is the output of this program")]

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::path::Path;

use gpumodel_trace::Store;

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("usage: count_opcodes STORE.gpt")?;
    let mut counts: Vec<(String, u64)> =
        count_opcodes(&Store::open(Path::new(&path))?)?.into_iter().collect();
    // The most frequent first; names break ties.
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    for (opcode, count) in counts {
        println!("{count:>12}  {opcode}");
    }
    Ok(())
}

/// Warp instructions that all kernels of `store` execute, by opcode.
fn count_opcodes(store: &Store) -> Result<BTreeMap<String, u64>, Box<dyn Error>> {
    let mut counts = BTreeMap::new();
    for kernel in 0..store.kernel_count() {
        let code = store.code(kernel)?;
        // A segment is a straight run of instructions: each runs as often as the segment.
        for (segment, times) in code.segments.iter().zip(store.executed(kernel)?) {
            for instruction in &code.instructions[segment.range()] {
                let opcode = &code.opcodes[usize::try_from(instruction.opcode)?];
                *counts.entry(opcode.clone()).or_default() += times;
            }
        }
    }
    Ok(counts)
}
