//! Is every workload file listed, described and scalable?

use std::collections::BTreeSet;
use std::fs;

use crate::common::workloads;
use gpumodel::trace::Command;
use gpumodel::trace::workload::Workload;

#[test]
fn scale_multiplies_ctas_or_their_work() {
    for name in gpumodel::trace::workload::names(&gpumodel::models()).into_iter() {
        let ctas = |scale| {
            let workload = Workload::load_scaled(name, &gpumodel::models(), scale).unwrap();
            (0..workload.kernel_count()).map(|k| workload.kernel(k).cta_count()).collect::<Vec<_>>()
        };
        let whole = ctas(1.0);
        assert!(ctas(1e-6).iter().all(|&ctas| ctas > 0), "{name}");
        // Kernels of papers that print their grids are longer at a larger scale, or have
        // more launches; some papers run kernels that fill no GPU.
        if name.starts_with("ilp-") || name.starts_with("ws-") {
            assert!(ctas(2.0).iter().sum::<u64>() >= whole.iter().sum(), "{name}");
            continue;
        }
        let twice: Vec<u64> = whole.iter().map(|ctas| 2 * ctas).collect();
        assert_eq!(ctas(2.0), twice, "{name}");
        assert!(whole.iter().sum::<u64>() >= 80, "{name} fills no GPU at scale 1: {whole:?}");
    }
}

#[test]
fn scale_shrinks_tables_that_are_scaled_and_leaves_the_others() {
    let largest = |name: &str, scale| {
        let workload = Workload::load_scaled(name, &gpumodel::models(), scale).unwrap();
        let copied = workload.commands().filter_map(|command| match command {
            Command::Copy(copy) => Some(copy.bytes),
            Command::Kernel(_) => None,
        });
        copied.max().unwrap()
    };
    for name in ["gather-skewed", "update-random", "saxpy"] {
        assert_eq!(largest(name, 0.25), largest(name, 1.0) / 4, "{name}");
    }
    for name in ["gather", "ilp-gups", "lookup", "sparse-rows"] {
        assert_eq!(largest(name, 0.25), largest(name, 1.0), "{name}");
    }
}

#[test]
fn every_workload_file_is_listed_and_described() {
    let files: BTreeSet<String> = fs::read_dir(workloads())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(
        files,
        gpumodel::trace::workload::names(&gpumodel::models())
            .into_iter()
            .map(str::to_owned)
            .collect()
    );
    for name in gpumodel::trace::workload::names(&gpumodel::models()).into_iter() {
        let workload = Workload::load(name, &gpumodel::models()).unwrap();
        assert!(
            !workload.description().contains('\n') && workload.description().len() < 80,
            "{name}"
        );
        assert!(workload.behaviour().len() > 40, "{name}: say what is hard about it");
        assert!(!workload.source().is_empty(), "{name}");
    }
}
