//! A program before it runs: what it is linked with, and whether the runtime has all of it.

use std::collections::BTreeSet;
use std::path::Path;

use crate::cubin::{Dynamic, dynamic};
use crate::error::RunError;

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

/// Refuses `program` when it cannot run with the runtime in the file `runtime`; returns the
/// name of the runtime that it is linked with.
///
/// # Errors
/// When it is no such program; the error says what to do.
pub(crate) fn check(program: &Path, runtime: &Path) -> Result<&'static str, RunError> {
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
            "the CUDA runtime is linked into it; compile it with `nvcc -cudart shared`".into()
        }
        None => "it is not linked with libcudart, and has no kernels".into(),
    })
}
