//! What applications with SMs and channels of their own feel of each other.

use gpumodel_core::contract::Migration;

use crate::testkit::multi_app_fixture::MultiAppFixture;
use crate::testkit::scripted::{Line, Script, line};
use crate::tests::reallocation::{reader, script, split, ugpu, user};

#[test]
fn a_fixed_partition_without_shared_translation_isolates_to_the_cycle() {
    let resolved = ugpu(&[("translation.ideal", "true")]);
    let plan = split(&resolved, 4, Migration::Stay, Vec::new());
    for lines in [reader(200), user(200)] {
        let beside = |other: &[Line], turns: u32| {
            let one = Script::new(&resolved, &lines, 200, 64, 128);
            let fixture =
                MultiAppFixture::new(vec![one, Script::new(&resolved, other, turns, 64, 128)]);
            let mut counts = fixture.under(&resolved, &plan).kernels[0].clone();
            // Sums over spans, which others' ends cut.
            counts.stalls.iter_mut().for_each(|slots| *slots = (*slots * 1e6).round());
            counts
        };
        let beside_little = beside(&reader(1), 1);
        for (other, turns) in
            [(reader(4000), 300), (reader(64), 30), (user(4000), 100), (user(3), 300)]
        {
            assert_eq!(beside(&other, turns), beside_little);
        }
    }
}

/// Waves of CTAs that end when others of the neighbour do: places come free on both sides
/// in the same cycles, by events before and behind those of the neighbour.
#[test]
fn who_has_sms_of_its_own_gets_ctas_whenever_others_do() {
    let resolved = ugpu(&[("translation.ideal", "true")]);
    let plan = split(&resolved, 4, Migration::Stay, Vec::new());
    let chain = [line("FFMA", Some(3), Some(3)), line("FADD", Some(4), Some(2))];
    for lines in [&reader(60)[..], &chain] {
        let beside = |ctas: u32, turns: u32, threads: u32| {
            let one = Script::new(&resolved, lines, 3, 1200, 128);
            let fixture = MultiAppFixture::new(vec![
                one,
                Script::new(&resolved, lines, turns, ctas, threads),
            ]);
            let counts = &fixture.under(&resolved, &plan).kernels[0];
            (counts.first_cta, counts.end, counts.l2, counts.dram_reads, counts.dram_writes)
        };
        let beside_little = beside(1, 1, 128);
        for (ctas, turns, threads) in
            [(1200, 3, 128), (900, 2, 96), (2000, 1, 128), (3000, 1, 32), (40, 60, 256)]
        {
            assert_eq!(beside(ctas, turns, threads), beside_little, "{ctas} CTAs of {turns} turns");
        }
    }
}

#[test]
fn shared_tlbs_and_walkers_leak() {
    let resolved = ugpu(&[]);
    let plan = split(&resolved, 4, Migration::Stay, Vec::new());
    let run = |pages: u64, turns: u32| {
        let fixture = MultiAppFixture::new(vec![
            script(&resolved, 200, 200, 64),
            script(&resolved, pages, turns, 64),
        ]);
        fixture.under(&resolved, &plan).kernels[0].end
    };
    assert_ne!(run(1, 1), run(8000, 300));
}
