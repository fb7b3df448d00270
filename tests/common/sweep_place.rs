//! A folder with small applications and plans for sweeps of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gpumodel::trace::workload::{Compression, Workload, write_folder};

/// Applications `m` (arithmetic) and `s` (streams) as small traces, `g` as a workload model, and a cache.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.trace("m", "compute", 0.1);
        place.trace("s", "saxpy", 0.1);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The form of an application as `analyze` takes it.
    pub(crate) fn app(&self, name: &str) -> String {
        if name == "g" {
            String::from("synth:compute")
        } else {
            self.path(name).display().to_string()
        }
    }

    /// Writes a workload model as the trace `name`.
    pub(crate) fn trace(&self, name: &str, model: &str, scale: f64) {
        let workload = Workload::load_scaled(model, &gpumodel::models(), scale).unwrap();
        write_folder(&workload, &self.path(name), Compression::None, &mut |_| {}).unwrap();
    }

    /// A plan with the applications; `none` does not exist.
    pub(crate) fn plan(&self, name: &str, text: &str) -> String {
        let apps = "[apps]\nm = 'm'\ns = 's'\nnone = 'none'\ng = 'synth:compute'\n";
        let name = format!("{name}.toml");
        fs::write(self.path(&name), format!("{text}\n{apps}")).unwrap();
        name
    }

    /// The program in this folder.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("gpumodel"));
        command.current_dir(self.0.path()).args(words).stdin(Stdio::null());
        command.env("GPUMODEL_CACHE", self.path("cache"));
        command
    }

    /// Runs the program: its exit code, and what it said.
    pub(crate) fn run(&self, words: &[&str]) -> (Option<i32>, String) {
        let output = self.command(words).output().unwrap();
        let said = [&output.stdout[..], &output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    }

    /// Runs the program after `before` and before `after`, lines of a shell, whose mounts are
    /// its own where it is root's: its exit code, and what was said. `None`: `before` fails.
    #[cfg(target_os = "linux")]
    pub(crate) fn mounted(
        &self,
        before: &str,
        words: &[&str],
        after: &str,
    ) -> Option<(Option<i32>, String)> {
        let program = self.command(&[]).get_program().to_owned();
        let shell = |line: &str| {
            // Only root gets a separate mount namespace.
            let own =
                "[ \"$(id -u)\" = 0 ] && exec unshare --mount sh -c \"$@\"; exec sh -c \"$@\"";
            let mut shell = Command::new("sh");
            shell.args(["-c", own, "sh", line]).arg(&program).args(words);
            shell.current_dir(self.path("")).env("GPUMODEL_CACHE", self.path("cache"));
            shell.stdin(Stdio::null()).output().ok()
        };
        if !shell(before).is_some_and(|output| output.status.success()) {
            crate::skip::skipped(&format!("this cannot be done here: {before}"));
            return None;
        }
        let line = format!("{before} || exit 99\n\"$0\" \"$@\"\ncode=$?\n{after}\nexit $code");
        let output = shell(&line)?;
        let said = [&output.stdout[..], &output.stderr].concat();
        Some((output.status.code(), String::from_utf8(said).unwrap()))
    }

    pub(crate) fn sweep(&self, plan: &str, out: &str, options: &[&str]) -> (Option<i32>, String) {
        self.run(&[&["sweep", plan, "--out", out][..], options].concat())
    }

    /// Every file of a folder by its path there, with its bytes.
    pub(crate) fn content(&self, folder: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let root = self.path(folder);
        let relative = |(path, bytes): (PathBuf, Vec<u8>)| {
            (path.strip_prefix(&root).unwrap().to_path_buf(), bytes)
        };
        bytes(&root).into_iter().map(relative).collect()
    }
}

/// Every file below a folder with its bytes.
pub(crate) fn bytes(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(bytes(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}
