//! Runs `nvdisasm`.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::error::RunError;

/// The text of the code `image` of architecture `sm`, printed by `nvdisasm` at `tool`.
///
/// # Errors
/// When the tool cannot be run or refuses the code.
pub fn disassemble(tool: &Path, image: &[u8], sm: u32, folder: &Path) -> Result<String, RunError> {
    if image.is_empty() {
        return Ok(String::new());
    }
    let failed = |what: String| {
        RunError::code(format!(
            "{}: {what}; name the nvdisasm of the toolkit that compiled the program with \
             --nvdisasm",
            tool.display()
        ))
    };
    let file = tempfile::Builder::new().suffix(".bin").tempfile_in(folder);
    let mut file = file.map_err(|error| failed(error.to_string()))?;
    file.write_all(image).map_err(|error| failed(error.to_string()))?;
    let done = Command::new(tool)
        .env_remove("LD_PRELOAD")
        .env_remove("LD_LIBRARY_PATH")
        .args(["-hex", "-b", &format!("SM{sm}")])
        .arg(file.path())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !done.status.success() {
        let message = String::from_utf8_lossy(&done.stderr);
        return Err(failed(message.lines().next().unwrap_or("it failed").to_owned()));
    }
    String::from_utf8(done.stdout).map_err(|_| failed("its output is no text".into()))
}
