//! A run of a program: what it is linked with and whether the runtime has all of it, the request to
//! the runtime, the program itself, the answer.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use crate::RunError;
use crate::cubin::{Dynamic, dynamic};
use crate::request::{Answer, Request, VARIABLE};
use crate::stub;

/// File name of the runtime.
const LIBRARY: &str = "libgpumodel_cuda_runtime.so";
/// The variable that names the runtime's file.
const LIBRARY_VARIABLE: &str = "GPUMODEL_CUDA_RUNTIME";
/// The runtimes that programs are linked with.
const RUNTIMES: [&str; 2] = ["libcudart.so.12", "libcudart.so.13"];

/// Libraries with kernels or calls that the runtime does not serve, and what to do.
const REFUSED: &[(&str, &str)] = &[
    ("libcublas", "replace cuBLAS calls by kernels of the program"),
    ("libcudnn", "replace cuDNN calls by kernels of the program"),
    ("libcufft", "replace cuFFT calls by kernels of the program"),
    ("libcusparse", "replace cuSPARSE calls by kernels of the program"),
    ("libcusolver", "replace cuSOLVER calls by kernels of the program"),
    ("libcurand.so", "use the device functions of cuRAND, or numbers of the program"),
    ("libtorch", "trace the program's kernels alone; PyTorch needs a GPU and NVBit"),
    ("libcuda.so", "use the runtime's functions instead of the driver's"),
];

/// A program to run.
#[derive(Clone, Debug)]
pub struct Session<'a> {
    /// The program.
    pub program: &'a OsStr,
    /// Its arguments.
    pub arguments: &'a [OsString],
    /// A folder for temporary files.
    pub folder: &'a Path,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What the runtime says.
    pub answer: Answer,
    /// What the program says.
    pub status: ExitStatus,
}

impl Session<'_> {
    /// Runs the program; the store is written where `request` says.
    ///
    /// # Errors
    /// When the program cannot be run or traced.
    pub fn run(&self, request: &Request) -> Result<Outcome, RunError> {
        let program = find(self.program)?;
        let library = library()?;
        let linked = check(&program, &library)?;
        let failed = |path: &Path, error: std::io::Error| {
            RunError::code(format!("{}: {error}", path.display()))
        };
        let stub = self.folder.join(linked);
        fs::write(&stub, stub::library(linked)).map_err(|error| failed(&stub, error))?;
        request.write(self.folder).map_err(|error| failed(self.folder, error))?;
        let status = Command::new(&program)
            .args(self.arguments)
            .env(VARIABLE, self.folder)
            .env("LD_PRELOAD", before("LD_PRELOAD", &library)?)
            .env("LD_LIBRARY_PATH", before("LD_LIBRARY_PATH", self.folder)?)
            .status()
            .map_err(|error| failed(&program, error))?;
        let Some(answer) = Answer::read(self.folder) else {
            return Err(RunError::code(format!(
                "{}: it ended ({status}) before its trace was complete; it must return from main \
                 or call exit",
                program.display()
            )));
        };
        match answer.error {
            Some(what) => Err(RunError::Code(what)),
            None => Ok(Outcome { answer, status }),
        }
    }
}

/// The value of `variable` with `path` in front. The loader splits such lists at blanks, colons
/// and semicolons.
fn before(variable: &str, path: &Path) -> Result<OsString, RunError> {
    if path.as_os_str().as_encoded_bytes().iter().any(|byte| b" :;\t\n".contains(byte)) {
        return Err(RunError::code(format!(
            "{}: the path has a blank, a colon or a semicolon, which {variable} cannot hold; use \
             another folder",
            path.display()
        )));
    }
    let mut value = path.as_os_str().to_owned();
    if let Some(old) = std::env::var_os(variable).filter(|old| !old.is_empty()) {
        value.push(":");
        value.push(old);
    }
    Ok(value)
}

/// The file of a program, in the folders of `PATH` unless its name has a folder.
fn find(program: &OsStr) -> Result<PathBuf, RunError> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return match path.is_file() {
            true => Ok(path.to_path_buf()),
            false => Err(RunError::code(format!("{}: there is no such file", path.display()))),
        };
    }
    on_path(path).ok_or_else(|| {
        let name = path.display();
        RunError::code(format!("{name}: no such program on PATH; ./{name} names one here"))
    })
}

fn on_path(name: &Path) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The file of the runtime: as the environment says, else next to this program.
fn library() -> Result<PathBuf, RunError> {
    if let Some(named) = std::env::var_os(LIBRARY_VARIABLE).map(PathBuf::from) {
        return match named.is_file() {
            true => Ok(named),
            false => Err(RunError::code(format!(
                "{}: there is no such file, and {LIBRARY_VARIABLE} names it",
                named.display()
            ))),
        };
    }
    let here = std::env::current_exe().ok();
    let folder = here.as_deref().and_then(Path::parent);
    let places = ["", "..", "../lib", "../lib/gpumodel"];
    let found = places.into_iter().filter_map(|place| Some(folder?.join(place).join(LIBRARY)));
    found.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        RunError::code(format!(
            "{LIBRARY}, the CUDA runtime of `gpumodel trace`, is not next to this program; build \
             it with `cargo build --release -p gpumodel-cuda-runtime`, or name its file in \
             {LIBRARY_VARIABLE}"
        ))
    })
}

/// `nvdisasm`: as named, on PATH, next to nvcc, or in NVIDIA's Python packages.
///
/// # Errors
/// When it is in none of these places.
pub fn nvdisasm(named: Option<&Path>) -> Result<PathBuf, RunError> {
    const NAME: &str = "nvdisasm";
    if let Some(named) = named {
        return match named.is_file() {
            true => Ok(named.to_path_buf()),
            false => Err(RunError::code(format!("{}: there is no such file", named.display()))),
        };
    }
    let next_to_nvcc = on_path(Path::new("nvcc"))
        .and_then(|nvcc| nvcc.canonicalize().ok())
        .map(|nvcc| nvcc.with_file_name(NAME));
    let usual = Some(PathBuf::from("/usr/local/cuda/bin").join(NAME));
    let found = [on_path(Path::new(NAME)), next_to_nvcc, usual];
    found.into_iter().flatten().find(|path| path.is_file()).or_else(in_packages).ok_or_else(|| {
        RunError::code(
            "nvdisasm is neither on PATH nor next to nvcc; install it with a CUDA toolkit or \
             `pip install nvidia-cuda-nvdisasm`, or name it with --nvdisasm FILE",
        )
    })
}

/// In the packages of the Python on PATH, or of the active environment.
fn in_packages() -> Option<PathBuf> {
    let python = on_path(Path::new("python3"))?;
    let prefixes = [
        std::env::var_os("VIRTUAL_ENV").map(PathBuf::from),
        python.parent().and_then(Path::parent).map(Path::to_path_buf),
    ];
    let folders = prefixes.into_iter().flatten().filter_map(|prefix| {
        fs::read_dir(prefix.join("lib")).ok().map(|entries| {
            let mut all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            all.sort();
            all
        })
    });
    folders.flatten().find_map(|library| {
        let packages = library.join("site-packages/nvidia");
        let places = ["cu13/bin/nvdisasm", "cuda_nvdisasm/bin/nvdisasm"];
        places.into_iter().map(|place| packages.join(place)).find(|path| path.is_file())
    })
}

/// Refuses `program` when it cannot run with the runtime in the file `runtime`; returns the
/// name of the runtime that it is linked with.
///
/// # Errors
/// When it is no such program; the error says what to do.
fn check(program: &Path, runtime: &Path) -> Result<&'static str, RunError> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|error| RunError::code(format!("{}: {error}", path.display())))
    };
    let wrong = |what: String| RunError::code(format!("{}: {what}", program.display()));
    let bytes = read(program)?;
    let found = dynamic(&bytes).ok_or_else(|| {
        wrong("this is no executable of Linux; name the program itself, not a script".into())
    })?;
    let refused = |name: &&str| REFUSED.iter().find(|(library, _)| name.starts_with(library));
    if let Some((name, (_, advice))) = found.needed.iter().find_map(|n| Some((n, refused(n)?))) {
        return Err(wrong(format!("it is linked with {name}, which cannot be traced; {advice}")));
    }
    let linked = linked(&found).map_err(wrong)?;
    let library = read(runtime)?;
    let served = dynamic(&library).map(|library| library.defined).unwrap_or_default();
    let served: BTreeSet<&str> = served.into_iter().collect();
    let of_runtime = |name: &&&str| name.starts_with("cuda") || name.starts_with("__cuda");
    let missing: Vec<&str> = found
        .undefined
        .iter()
        .filter(of_runtime)
        .filter(|name| !served.contains(**name))
        .copied()
        .collect();
    match missing[..] {
        [] => Ok(linked),
        _ => Err(wrong(format!(
            "it calls {}, which the tracer's CUDA runtime does not have; leave the calls out, or \
             report them",
            missing.join(", ")
        ))),
    }
}

/// The runtime that a program is linked with.
fn linked(found: &Dynamic<'_>) -> Result<&'static str, String> {
    if let Some(linked) = RUNTIMES.into_iter().find(|name| found.needed.contains(name)) {
        return Ok(linked);
    }
    let other = found.needed.iter().find(|name| name.starts_with("libcudart"));
    Err(match other {
        Some(other) => format!("it is linked with {other}; compile it with CUDA 12 or 13"),
        None if found.has_kernels => {
            "the CUDA runtime is linked into it; compile it with `nvcc -cudart shared`, with NVIDIA's \
             Python packages with `-cudart none -Lcuda/nvidia/cu13/lib -l:libcudart.so.13`"
                .into()
        }
        None => "it is not linked with libcudart, and has no kernels".into(),
    })
}
