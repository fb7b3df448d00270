//! How far are the workload models of the papers' kernels from our own programs of them?
//!
//! `NVCC=… cargo test --test release paper_programs -- --nocapture` prints the table that
//! `models/workloads/CALIBRATION.md` holds. Needs a CUDA toolkit; without it one line says that
//! it is skipped.

use std::collections::BTreeMap;
use std::path::Path;

use gpumodel::trace::Store;
use gpumodel::trace::workload::Workload;

use super::real_programs::{KINDS, Traced, distance};
use crate::common::program::{compile, toolkit, trace};

/// The programs, with the models whose kernels they have: each with the most points by which the
/// mixes differ, and the most by which sectors per access do, as a factor.
const PROGRAMS: [(&str, &[(&str, f64, f64)]); 4] = [
    (
        "slate_arcs",
        &[
            ("black-scholes", 4.0, 1.1),
            ("quasirandom", 6.0, 1.1),
            ("gaussian", 12.0, 1.35),
            ("sgemm", 1.0, 1.1),
            ("matrix-transpose", 16.0, 1.1),
            ("binomial-options", 2.0, 1.1),
            ("fdtd3d", 12.0, 1.25),
            ("nbody", 6.0, 1.1),
            ("tpacf", 15.0, 1.15),
            ("lavamd", 10.0, 1.2),
            ("md5hash", 3.0, 1.1),
            ("particle-filter", 14.0, 1.6),
        ],
    ),
    (
        "warped_slicer",
        &[
            ("ws-mm", 47.0, 1.1),
            ("ws-hot", 23.0, 1.15),
            ("ws-knn", 12.0, 1.1),
            ("ws-lbm", 8.0, 1.15),
            ("ws-blk", 13.0, 1.1),
            ("ws-img", 19.0, 1.65),
            ("ws-dxt", 14.0, 1.2),
            ("ws-bfs", 5.0, 1.95),
            ("ws-nn", 16.0, 1.45),
            ("ws-mvp", 25.0, 1.1),
        ],
    ),
    (
        "ilp_smra",
        &[
            ("ilp-gups", 6.0, 1.1),
            ("ilp-lps", 15.0, 1.15),
            ("ilp-hs", 15.0, 1.1),
            ("ilp-bp", 12.0, 1.1),
            ("ilp-spmv", 21.0, 1.15),
            ("ilp-bfs2", 16.0, 1.35),
            ("ilp-3ds", 11.0, 1.45),
            ("ilp-lud", 9.0, 1.3),
            ("ilp-sad", 8.0, 1.25),
            ("ilp-fft", 16.0, 1.4),
            ("ilp-nn", 16.0, 1.45),
            ("ilp-blk", 4.0, 1.1),
            ("ilp-ray", 10.0, 1.25),
        ],
    ),
    (
        "ugpu",
        &[
            ("ugpu-fwt", 16.0, 1.1),
            ("ugpu-srad", 18.0, 1.1),
            ("ugpu-cp", 12.0, 1.1),
            ("ugpu-mriq", 14.0, 1.1),
            ("ugpu-pf", 30.0, 1.1),
            ("ugpu-hotspot", 15.0, 1.2),
            ("ugpu-lbm", 8.0, 1.2),
            ("ugpu-bh", 2.0, 1.1),
            ("ugpu-dxtc", 15.0, 1.2),
            ("ugpu-convs", 15.0, 1.1),
            ("ugpu-lavamd", 17.0, 1.25),
            ("ugpu-sc", 13.0, 1.1),
            ("ugpu-euler3d", 17.0, 1.1),
            ("ugpu-dwt2d", 8.0, 1.15),
            ("ugpu-pvc", 17.0, 1.1),
        ],
    ),
];

/// What the kernels of a program do on sm_80, by the names of their models.
fn traced(nvcc: &Path, name: &str, models: &[(&str, f64, f64)]) -> BTreeMap<String, Traced> {
    let scratch = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.cu"));
    let (program, store) = (scratch.path().join(name), scratch.path().join("store.gpt"));
    assert!(compile(nvcc, "80", &source, &program), "{name}");
    let said = trace(&nvcc.with_file_name("nvdisasm"), "a100", &program, &store);
    assert!(said.contains(&format!("{name}: PASS")), "{name}: {said}");
    let store = Store::open(&store).unwrap();
    let of = |&(model, ..): &(&str, f64, f64)| {
        (model.to_owned(), Traced::read(&store, &model.replace('-', "_"), None))
    };
    models.iter().map(of).collect()
}

#[test]
#[allow(clippy::print_stdout)]
fn models_do_what_our_programs_of_the_papers_do() {
    let Some(nvcc) = toolkit() else { return };
    println!("| model | mix | {} | sectors per access | per warp |", KINDS.join(" | "));
    let mut far = Vec::new();
    for (name, models) in PROGRAMS {
        let programs = traced(&nvcc, name, models);
        for &(model, most_mix, most_sectors) in models {
            let program = &programs[model];
            let workload = Workload::load(model, &gpumodel::models()).unwrap();
            let declared = Traced::declared(&workload, 2, 4);
            let (ours, theirs) = (declared.shares(), program.shares());
            let mix = distance(&ours, &theirs);
            let shares = ours.iter().zip(&theirs).map(|(a, b)| format!("{a:.0} / {b:.0}"));
            let (a, b) = (declared.sectors_per_access(), program.sectors_per_access());
            println!(
                "| `{model}` | {mix:.0} | {} | {} / {b:.1} | {:.0} / {:.0} |",
                shares.collect::<Vec<_>>().join(" | "),
                if a.is_nan() { String::from("-") } else { format!("{a:.1}") },
                declared.per_warp(),
                program.per_warp(),
            );
            assert!(declared.per_warp() > 0.0 && program.per_warp() > 0.0, "{model}");
            // Without accesses of the model there is nothing to compare.
            let apart = if a.is_nan() { 1.0 } else { (a / b).max(b / a) };
            if !(mix <= most_mix && apart <= most_sectors) {
                far.push(format!("{model} is {mix:.1} points and {a:.2} for {b:.2} sectors off"));
            }
        }
    }
    assert!(far.is_empty(), "{far:#?}");
}
