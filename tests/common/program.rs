//! The program as a user runs it.

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use assert_cmd::assert::Assert;

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
