//! The program as a user runs it, and CUDA programs of `tests/programs` that it runs: compiled by
//! a toolkit, if one is installed.

use std::path::{Path, PathBuf};
use std::process::{Command as Process, Output};

use assert_cmd::Command;
use assert_cmd::assert::Assert;

use super::skip::skipped;

/// `gpumodel` with these words, run.
pub fn gpumodel(words: &[&str]) -> Assert {
    Command::new(assert_cmd::cargo::cargo_bin!("gpumodel")).args(words).assert()
}

/// Its standard output.
pub fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

/// Its standard error.
pub fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

/// `gpumodel` with these words, run with the cache in `folder`.
pub fn gpumodel_in(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("gpumodel"));
    command.env("GPUMODEL_CACHE", folder.join("cache")).args(words).output().unwrap()
}

/// A toolkit with which programs can be traced; without one, a line says what is skipped.
pub(crate) fn toolkit() -> Option<PathBuf> {
    let found = nvcc().filter(|_| has_runtime());
    if found.is_none() {
        skipped("CUDA programs: no nvcc (NVCC names it), or `cargo build` did not run");
    }
    found
}

/// Whether programs are compiled for this architecture: `CUDA_ARCHITECTURES=80,90a` names some.
pub(crate) fn compiled_for(sm: &str) -> bool {
    let named = std::env::var("CUDA_ARCHITECTURES");
    named.map_or(true, |named| named.split(',').any(|one| one == sm))
}

/// Where nvcc is: as the variable says, else on `PATH`.
fn nvcc() -> Option<PathBuf> {
    let named = std::env::var_os("NVCC").map(PathBuf::from);
    let folders = std::env::var_os("PATH")?;
    let on_path = std::env::split_paths(&folders).map(|folder| folder.join("nvcc"));
    named.into_iter().chain(on_path).find(|path| path.is_file())
}

/// The runtime next to the program under test.
fn has_runtime() -> bool {
    let program = assert_cmd::cargo::cargo_bin!("gpumodel");
    program.with_file_name("libgpumodel_cuda_runtime.so").is_file()
}

/// Compiles `source` with the shared runtime of the toolkit around `nvcc`.
pub(crate) fn compile(nvcc: &Path, sm: &str, source: &Path, program: &Path) -> bool {
    compile_with(nvcc, (sm, &[]), source, program)
}

/// The same with further options.
pub(crate) fn compile_with(
    nvcc: &Path,
    (sm, options): (&str, &[&str]),
    source: &Path,
    program: &Path,
) -> bool {
    let toolkit = nvcc.parent().and_then(Path::parent).unwrap();
    let mut command = Process::new(nvcc);
    command.args(options).arg(format!("-arch=sm_{sm}")).arg("-o").arg(program).arg(source);
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

/// Traces `program` to `output`; what it said.
pub(crate) fn trace(disassembler: &Path, device: &str, program: &Path, output: &Path) -> String {
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (output, disassembler, program) = (text(output), text(disassembler), text(program));
    let options = ["--device", device, "--nvdisasm", &disassembler, "--", &program];
    let words = [["trace", "-o", &output].as_slice(), &options].concat();
    let done = gpumodel(&words).code(0);
    String::from_utf8_lossy(&done.get_output().stdout).into_owned()
}
