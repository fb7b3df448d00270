//! Records for the tests that show them: the committed one, and one with more
//! of everything.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gpumodel::record::{
    Analysis, AppRecord, CacheCounters, DramCounters, Interval, KernelRecord, SCHEMA,
};

/// A file of `tests/data/report`.
pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/report").join(name)
}

/// The committed record.
pub(crate) fn small() -> Analysis {
    Analysis::read(&data("record.json")).unwrap()
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// `launches` launches of kernels with long names on four streams.
pub(crate) fn crowded(launches: u32) -> Analysis {
    let mut dice = Dice(u64::from(launches));
    let mut ends = [0_u64; 4];
    let mut app =
        AppRecord { app: "real/a_network_with_a_long_name".into(), ..AppRecord::default() };
    for launch in 1..=launches {
        let stream = usize::try_from(launch % 4).unwrap();
        let cycles = 5_000 + dice.roll(60_000) * dice.roll(10);
        let kernel = kernel(&mut dice, launch, ends[stream], cycles);
        ends[stream] += cycles;
        app.timeline.push(Interval {
            start_cycle: kernel.start_cycle,
            end_cycle: kernel.end_cycle,
            warp_instructions: kernel.warp_instructions,
            dram_sectors: kernel.dram.read_sectors,
            resident_ctas: 8.0,
        });
        app.l1 += kernel.l1;
        app.kernels.push(kernel);
    }
    app.cycles = ends.into_iter().max().unwrap();
    Analysis {
        schema: SCHEMA.into(),
        program: "gpumodel 0.1.0".into(),
        machine: small().machine,
        solo: vec![app],
        ..Analysis::default()
    }
}

fn kernel(dice: &mut Dice, launch: u32, start_cycle: u64, cycles: u64) -> KernelRecord {
    let accesses = dice.roll(1_000_000);
    let cache =
        CacheCounters { accesses, hits: dice.roll(accesses + 1), ..CacheCounters::default() };
    let causes =
        ["issued", "barrier", "long_memory", "short_raw", "execution", "ibuffer", "pipe", "idle"];
    let weights: Vec<f64> =
        causes.iter().map(|_| f64::from(u32::try_from(dice.roll(100)).unwrap()) + 1.0).collect();
    let sum: f64 = weights.iter().sum();
    let stalls = causes.iter().zip(&weights).map(|(c, w)| ((*c).to_string(), w / sum));
    let variant = dice.roll(30);
    let (few, many) = (dice.roll(16), dice.roll(18));
    let (instructions, sectors) = (1 + dice.roll(16 << few), dice.roll(2 << many));
    KernelRecord {
        name: match variant % 3 {
            0 => format!("void library::kernel_with_a_long_name<{variant}, float & \"half\">(int)"),
            1 => format!("a_kernel_of_the_library_that_has_a_name_of_many_words_{variant}"),
            _ => format!("_ZN7library6detail6stage{}ILi4EEvPf", variant % 10),
        },
        id: launch,
        launch,
        stream: u64::from(launch % 4) * 4_000_000_000,
        start_cycle,
        end_cycle: start_cycle + cycles,
        cycles,
        launch_cycles: 5_000,
        warp_instructions: instructions,
        thread_instructions: dice.roll(1 << 24),
        occupancy: 0.5,
        l1: cache,
        l2: cache,
        dram: DramCounters { read_sectors: sectors, ..DramCounters::default() },
        stall_fractions: stalls.collect::<BTreeMap<_, _>>(),
        ..KernelRecord::default()
    }
}
