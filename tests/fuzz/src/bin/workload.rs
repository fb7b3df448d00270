//! Is any workload model refused with its place, or can it be walked and written as a
//! trace?

#![no_main]

use gpumodel::core::isa::Access;
use gpumodel::trace::Command;
use gpumodel::trace::workload::{Compression, WarpStream, Workload, write_folder};
use gpumodel_fuzz::{Place, converted, named, split, text};

/// Most segments of a warp and instructions in all that are walked through.
const SEGMENTS: usize = 300;
const INSTRUCTIONS: u64 = 3000;

/// The largest grid that is written.
const CTAS: u64 = 4;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = split(bytes) else { return };
    let scale = [1.0, 0.01, 3.5, 1e6][usize::from(kind % 4)];
    let workload = match Workload::parse("mine", "mine.toml", text(rest).to_owned(), scale) {
        Ok(workload) => workload,
        Err(error) => return named(&error, "mine.toml"),
    };
    let mut left = INSTRUCTIONS;
    for index in (0..workload.kernel_count()).take(3) {
        let kernel = workload.kernel(index);
        let code = kernel.code();
        for ordinal in [0, kernel.cta_count() - 1] {
            let cta = kernel.cta(ordinal);
            for warp in [0, cta.warp_count() - 1] {
                left = walk(cta.warp(warp), &code, left);
            }
        }
    }
    let ctas: u64 =
        (0..workload.kernel_count().min(9)).map(|n| workload.kernel(n).cta_count()).sum();
    if left > INSTRUCTIONS / 2 && ctas <= CTAS && workload.kernel_count() <= 4 {
        write(&workload);
    }
});

/// Walks one warp; returns the rest of `left` instructions.
fn walk(mut warp: WarpStream, code: &gpumodel::core::isa::Code, mut left: u64) -> u64 {
    let mut access = Access::default();
    for _ in 0..SEGMENTS {
        let Some(segment) = warp.next_segment() else { return left };
        let segment = code.segments[usize::try_from(segment).expect("a segment")];
        for number in segment.first..segment.first + segment.length {
            if left == 0 {
                return 0;
            }
            left -= 1;
            let instruction = &code.instructions[usize::try_from(number).expect("an instruction")];
            if instruction.width == 0 {
                warp.skip(1);
            } else {
                warp.access(&mut access);
            }
        }
    }
    0
}

/// Writes a small workload, which must be a trace.
fn write(workload: &Workload) {
    let place = Place::new();
    match write_folder(workload, &place.at("folder"), Compression::None, &mut |_| {}) {
        Ok(report) => {
            assert_eq!(report.kernels, workload.kernel_count());
            let copies = workload.commands().filter(|c| matches!(c, Command::Copy(_)));
            if report.kernels > 0 && copies.count() < 9 {
                converted(&place, "folder");
            }
        }
        Err(error) => {
            named(&error, "mine.toml");
            assert_eq!(place.count(), 0, "nothing is left");
        }
    }
}
