//! What `gpumodel trace` asks of the runtime in the program, and its answer: two files.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The variable that names the folder with both files.
pub const VARIABLE: &str = "GPUMODEL_TRACE_RUN";
/// The request.
const REQUEST: &str = "request.json";
/// The answer.
const ANSWER: &str = "answer.json";

/// What this crate was compiled from.
const BUILD: &str = env!("GPUMODEL_TRACE_RUN_BUILD");

/// A request as it is written.
#[derive(Serialize, Deserialize)]
struct Sent<R> {
    /// What the writer was compiled from.
    build: String,
    request: R,
}

/// A device as a program sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Compute capability, as 80.
    pub sm: u32,
    /// SMs.
    pub sms: u32,
    /// Threads of an SM.
    pub threads_per_sm: u32,
    /// CTAs of an SM.
    pub ctas_per_sm: u32,
    /// Registers of an SM.
    pub registers_per_sm: u32,
    /// Parts of an SM, each with its registers and a scheduler.
    pub partitions: u32,
    /// A warp gets registers in multiples of this many.
    pub register_unit: u32,
    /// Shared bytes of an SM.
    pub shared_bytes_per_sm: u64,
    /// A CTA gets shared bytes in multiples of this many.
    pub shared_unit_bytes: u32,
    /// Shared bytes of each CTA that the system takes.
    pub reserved_shared_bytes: u64,
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// Bytes of the L2.
    pub l2_bytes: u64,
    /// Clock of the SMs.
    pub clock_khz: u32,
    /// Clock of the memory.
    pub memory_clock_khz: u32,
    /// Lines of the memory bus.
    pub bus_bits: u32,
}

/// What is recorded, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The store to write.
    pub output: PathBuf,
    /// Name of the program, which the store remembers.
    pub source: String,
    /// `nvdisasm`.
    pub nvdisasm: PathBuf,
    /// The device.
    pub device: Device,
    /// Ids of the launches to record.
    pub kernels: Option<String>,
    /// Names of the launches to record.
    pub names: Option<String>,
    /// CTAs to record.
    pub ctas: Option<String>,
}

/// How it ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Why it ended early.
    pub error: Option<String>,
    /// Launches that were executed.
    pub launches: u64,
    /// Launches that were recorded.
    pub recorded: u64,
    /// Warp instructions that were executed.
    pub instructions: u64,
    /// Seconds that kernels took.
    pub seconds: f64,
}

impl Request {
    /// Writes it to `folder`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        let sent = Sent { build: BUILD.to_owned(), request: self };
        fs::write(folder.join(REQUEST), serde_json::to_vec_pretty(&sent)?)
    }

    /// Reads it from `folder`.
    ///
    /// # Errors
    /// When the file cannot be read, or a program of another build has written it.
    pub fn read(folder: &Path) -> std::io::Result<Self> {
        let sent: serde_json::Value = serde_json::from_slice(&fs::read(folder.join(REQUEST))?)?;
        if sent["build"] != BUILD {
            return Err(std::io::Error::other(
                "gpumodel and its CUDA runtime are not of one build; build both from the same \
                 source: `cargo build --release -p gpumodel -p gpumodel-cuda-runtime`",
            ));
        }
        Ok(serde_json::from_value::<Sent<Self>>(sent)?.request)
    }
}

impl Answer {
    /// Writes it to `folder`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        fs::write(folder.join(ANSWER), serde_json::to_vec_pretty(self)?)
    }

    /// Reads it from `folder`; none when there is none.
    #[must_use]
    pub fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(folder.join(ANSWER)).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{BUILD, REQUEST, Request};
    use std::fs;

    #[test]
    fn a_request_of_another_build_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let request = Request { source: "app".to_owned(), ..Request::default() };
        request.write(folder.path()).unwrap();
        assert_eq!(Request::read(folder.path()).unwrap(), request);
        let file = folder.path().join(REQUEST);
        let other = fs::read_to_string(&file).unwrap().replace(BUILD, "0123456789abcdef");
        for text in [&other, "{}"] {
            fs::write(&file, text).unwrap();
            let error = Request::read(folder.path()).unwrap_err().to_string();
            assert!(error.contains("not of one build"), "{error}");
        }
    }
}
