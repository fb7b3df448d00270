//! CUDA programs of `tests/programs`: compiled by a toolkit, if one is installed, and run by
//! `gpumodel trace`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::program::gpumodel;
use super::skip::skipped;

/// A toolkit with which programs can be traced; without one, a line says what is skipped.
pub(crate) fn toolkit() -> Option<PathBuf> {
    let found = nvcc().filter(|_| has_runtime());
    if found.is_none() {
        skipped("CUDA programs: no nvcc (NVCC names it), or `cargo build` did not run");
    }
    found
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
    let toolkit = nvcc.parent().and_then(Path::parent).unwrap();
    let mut command = Command::new(nvcc);
    command.arg(format!("-arch=sm_{sm}")).arg("-o").arg(program).arg(source);
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
