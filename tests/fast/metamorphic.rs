//! Do real traces of one program on several GPUs agree where they must?

use std::collections::BTreeMap;

use gpumodel::core::isa::Access;
use gpumodel::trace::Store;

use crate::rendering::{converted, reference};

/// The addresses of one global instruction, by warp and CTA.
type Touched = BTreeMap<(u64, u32), Vec<(usize, u64)>>;

/// The global loads and stores of a launch by program counter, true for stores, their
/// addresses counted from the lowest one.
fn global(store: &Store) -> Vec<(bool, Touched)> {
    let code = store.code(0).unwrap();
    let mut found: BTreeMap<u64, (bool, Touched)> = BTreeMap::new();
    let mut access = Access::default();
    for ordinal in 0..store.kernel(0).cta_count() {
        let cta = store.cta(0, ordinal).unwrap();
        let place = cta.position.linear(store.kernel(0).launch().grid);
        for warp in 0..cta.warp_count() {
            let mut cursor = cta.warp(warp);
            while cursor.next_segment().is_some() {
                while let Some(number) = cursor.instruction() {
                    let instruction = &code.instructions[usize::try_from(number).unwrap()];
                    let opcode = &code.opcodes[usize::try_from(instruction.opcode).unwrap()];
                    cursor.access(&mut access);
                    if opcode.starts_with("LDG") || opcode.starts_with("STG") {
                        let (_, touched) = found
                            .entry(instruction.pc)
                            .or_insert_with(|| (opcode.starts_with('S'), Touched::new()));
                        touched.entry((place, warp)).or_default().extend(access.active());
                    }
                }
            }
        }
    }
    let mut all: Vec<(bool, Touched)> = found.into_values().collect();
    for (_, touched) in &mut all {
        let base = touched.values().flatten().map(|&(_, address)| address).min().unwrap_or(0);
        touched.values_mut().flatten().for_each(|(_, address)| *address -= base);
    }
    all.sort();
    all
}

#[test]
fn vector_addition_touches_the_same_on_three_architectures() {
    let Some(reference) = reference() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folders = ["vecadd_raw_sm61", "vecadd_raw_sm70", "vecadd_lineinfo_raw_sm75"];
    let all = folders.map(|folder| {
        let store = converted(&reference.join("real").join(folder), scratch.path());
        let launch = store.kernel(0).launch();
        assert_eq!((&*launch.name, launch.grid.x), ("_Z6vecAddPdS_S_i", 98), "{folder}");
        global(&store)
    });
    // Two loads and a store of 100 000 doubles each, by every thread below 100 000.
    let stores: Vec<bool> = all[0].iter().map(|(store, _)| *store).collect();
    assert_eq!(stores, [false, false, true]);
    let lanes = all[0].iter().map(|(_, touched)| touched.values().map(Vec::len).sum::<usize>());
    assert_eq!(lanes.collect::<Vec<_>>(), [100_000; 3]);
    assert!(all[0] == all[1] && all[0] == all[2]);
}
