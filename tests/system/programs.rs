//! Do CUDA programs compute on this computer what they compute on a GPU, and do their traces
//! run in the model? Needs nvcc; without it one line says that it is skipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::program::gpumodel;
use crate::skip::skipped;

/// Where nvcc is: as the variable says, else on `PATH`.
fn nvcc() -> Option<PathBuf> {
    let named = std::env::var_os("NVCC").map(PathBuf::from);
    let folders = std::env::var_os("PATH")?;
    let on_path = std::env::split_paths(&folders).map(|folder| folder.join("nvcc"));
    named.into_iter().chain(on_path).find(|path| path.is_file())
}

/// The runtime next to the program under test.
fn has_runtime() -> bool {
    let program = Path::new(env!("CARGO_BIN_EXE_gpumodel"));
    program.with_file_name("libgpumodel_cuda_runtime.so").is_file()
}

/// Compiles `source` with the shared runtime of the toolkit around `nvcc`.
fn compile(nvcc: &Path, source: &Path, program: &Path) -> bool {
    let toolkit = nvcc.parent().and_then(Path::parent).unwrap();
    let mut command = Command::new(nvcc);
    command.args(["-arch=sm_80", "-o"]).arg(program).arg(source);
    command.arg("-I").arg(toolkit.join("include/cccl"));
    let packaged = toolkit.join("lib/libcudart.so.13");
    if packaged.is_file() {
        command.args(["-cudart", "none", "-L"]).arg(toolkit.join("lib"));
        command.arg("-l:libcudart.so.13");
    } else {
        command.args(["-cudart", "shared"]);
    }
    command.env("PATH", with_front(toolkit.join("bin"))).status().unwrap().success()
}

fn with_front(folder: PathBuf) -> std::ffi::OsString {
    let others = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&others))).unwrap()
}

#[test]
fn every_program_passes_and_its_trace_is_the_same_twice_and_runs() {
    let Some(nvcc) = nvcc().filter(|_| has_runtime()) else {
        skipped("CUDA programs: no nvcc (NVCC names it), or `cargo build` did not run");
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let mut sources: Vec<PathBuf> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    sources.retain(|path| path.extension().is_some_and(|kind| kind == "cu"));
    sources.sort();
    assert!(sources.len() >= 39);
    let disassembler = nvcc.with_file_name("nvdisasm");
    for source in sources {
        let name = source.file_stem().unwrap().to_str().unwrap();
        let program = scratch.path().join(name);
        assert!(compile(&nvcc, &source, &program), "{name}");
        let trace = |output: &Path| {
            let words = [Path::new("trace"), Path::new("-o"), output, Path::new("--nvdisasm")];
            let rest = [disassembler.as_path(), Path::new("--"), &program];
            let words: Vec<&str> =
                words.into_iter().chain(rest).map(|word| word.to_str().unwrap()).collect();
            let done = gpumodel(&words).code(0);
            String::from_utf8_lossy(&done.get_output().stdout).into_owned()
        };
        let stores = ["one", "two"].map(|run| scratch.path().join(format!("{name}-{run}.gpt")));
        for store in &stores {
            let said = trace(store);
            assert!(said.contains(&format!("{name}: PASS")), "{name}: {said}");
        }
        let [one, two] = stores.map(|store| {
            gpumodel(&["analyze", store.to_str().unwrap(), "--machine", "a100"]).code(0);
            std::fs::read(store).unwrap()
        });
        assert!(one == two, "{name}: two runs, two traces");
    }
}
