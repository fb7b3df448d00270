//! A workload as an Accel-Sim trace folder: `kernelslist.g` and one grouped
//! trace per launch.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use liblzma::write::XzEncoder;
use xxhash_rust::xxh3::Xxh3;

use gpumodel_core::units::{WholeFolder, to_u64};

use super::trace_text::{Halt, Totals, write_kernel};
use super::{Workload, WorkloadError};
use crate::Command;

/// The command list's file name.
const LIST: &str = "kernelslist.g";
/// Level of xz: these texts repeat over long distances.
const XZ_LEVEL: u32 = 6;

/// How trace files are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Plain text, `kernel-N.traceg`.
    None,
    /// One xz stream per file, `kernel-N.traceg.xz`.
    Xz,
}

/// What a trace folder holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderReport {
    /// Launches.
    pub kernels: usize,
    /// Instructions of warps.
    pub warp_instructions: u64,
    /// Instructions of threads: active lanes, summed.
    pub thread_instructions: u64,
    /// Bytes of the plain texts, the command list included.
    pub text_bytes: u64,
    /// XXH3 (64 bits, in hex) over the plain texts of the launches in order.
    pub text_hash: String,
    /// Instructions of warps, by opcode.
    pub opcodes: BTreeMap<String, u64>,
}

/// Writes `workload` into `folder`, which appears whole or not at all; files of
/// the same names in a folder that exists are replaced.
///
/// `progress` is called before each launch with its index.
///
/// # Errors
/// When an address lies outside its space, a warp does not end in time, or the
/// file system refuses.
pub fn write_folder(
    workload: &Workload,
    folder: &Path,
    compression: Compression,
    progress: &mut dyn FnMut(usize),
) -> Result<FolderReport, WorkloadError> {
    write_all(workload, folder, compression, progress).map_err(|halt| match halt {
        Halt::Workload(error) => error,
        Halt::Output(source) => WorkloadError::Write { path: folder.to_path_buf(), source },
    })
}

fn write_all(
    workload: &Workload,
    folder: &Path,
    compression: Compression,
    progress: &mut dyn FnMut(usize),
) -> Result<FolderReport, Halt> {
    let whole = WholeFolder::create(folder)?;
    let mut list = String::new();
    let mut names = Vec::new();
    let mut totals = Totals::default();
    let mut hash = Xxh3::new();
    for command in workload.commands() {
        match command {
            Command::MemcpyHtoD { destination, bytes } => {
                list.push_str(&format!("MemcpyHtoD,{destination:#018x},{bytes}\n"));
            }
            Command::Kernel(index) => {
                progress(index);
                let ending = if compression == Compression::Xz { ".xz" } else { "" };
                let name = format!("kernel-{}.traceg{ending}", index + 1);
                let target = whole.path().join(&name);
                let written = write_file(workload, index, &target, compression, &mut hash)?;
                totals.add(&written);
                list.push_str(&name);
                list.push('\n');
                names.push(name);
            }
        }
    }
    std::fs::write(whole.path().join(LIST), &list)?;
    let kernels = names.len();
    names.push(LIST.to_owned());
    whole.finish(&names)?;
    Ok(FolderReport {
        kernels,
        warp_instructions: totals.warp_instructions,
        thread_instructions: totals.thread_instructions,
        text_bytes: totals.text_bytes + to_u64(list.len()),
        text_hash: format!("{:016x}", hash.digest()),
        opcodes: totals.opcodes,
    })
}

fn write_file(
    workload: &Workload,
    index: usize,
    target: &Path,
    compression: Compression,
    hash: &mut Xxh3,
) -> Result<Totals, Halt> {
    let file = BufWriter::with_capacity(1 << 18, File::create(target)?);
    let kernel = workload.kernel(index);
    let (totals, mut file) = match compression {
        Compression::None => {
            let mut out = Hashed { inner: file, hash };
            (write_kernel(workload, &kernel, &mut out)?, out.inner)
        }
        Compression::Xz => {
            let mut out = Hashed { inner: XzEncoder::new(file, XZ_LEVEL), hash };
            (write_kernel(workload, &kernel, &mut out)?, out.inner.finish()?)
        }
    };
    file.flush()?;
    file.get_ref().sync_all()?;
    Ok(totals)
}

/// Passes bytes on and hashes them.
struct Hashed<'a, W> {
    inner: W,
    hash: &'a mut Xxh3,
}

impl<W: Write> Write for Hashed<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.inner.write(bytes)?;
        self.hash.update(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
