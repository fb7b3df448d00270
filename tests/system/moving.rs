//! Do files that change, lead elsewhere or never end do no harm?

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use gpumodel::trace::{ConvertRequest, Silent, Store, convert, sources};

const GROUPED: &str = include_str!("../../traces/golden/v1.traceg");

fn program() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin("gpumodel"))
}

/// The program's output and exit code; it must end in 20 seconds.
fn said(command: &mut Command) -> (Option<i32>, String) {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("no end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

/// A folder with the small trace as `kernel-3.traceg`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("kernel-3.traceg"), GROUPED).unwrap();
    folder
}

/// The store of the folder's trace, scattered over many chunks.
fn store(folder: &Path) -> PathBuf {
    let lines = "0010 ffffffff 1 R1 LDG.E 1 R2 4 1 0x7f0000000000 4 \n";
    let mut text = GROUPED[..GROUPED.find("#BEGIN_TB").unwrap()].replace("(2,1,1)", "(40,1,1)");
    for cta in 0..40 {
        let body = lines.repeat(4000).replace("7f0000", &format!("7f{cta:04x}"));
        text += &format!("#BEGIN_TB\nthread block = {cta},0,0\nwarp = 0\ninsts = 4000\n{body}");
        text += "#END_TB\n";
    }
    let (input, output) = (folder.join("long.traceg"), folder.join("long.gpt"));
    fs::write(&input, text).unwrap();
    let request =
        ConvertRequest { inputs: vec![input], output: output.clone(), ..ConvertRequest::default() };
    convert(&request, &Silent).unwrap();
    output
}

fn list(text: &str) -> String {
    let folder = folder();
    let list = folder.path().join("kernelslist.g");
    fs::write(&list, text).unwrap();
    sources(&[list]).map_or_else(|error| error.to_string(), |paths| format!("{paths:?}"))
}

#[test]
fn a_store_that_shrinks_while_it_is_open_is_an_error() {
    let folder = folder();
    let path = store(folder.path());
    let opened = Store::open(&path).unwrap();
    opened.cta(0, 0).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(100).unwrap();
    // Decoded chunks stay; others are an error, as is a full read.
    assert!(opened.cta(0, 0).is_ok());
    assert_eq!(opened.kernel(0).cta_count(), 40);
    let said = opened.cta(0, 39).unwrap_err().to_string();
    assert!(said.contains("long.gpt: byte ") && said.contains("another program cut it"), "{said}");
    assert!(opened.verify().is_err() && opened.check_blocks().is_err());
    file.set_len(0).unwrap();
    assert!(opened.verify().is_err() && opened.commands().count() == 1);
    assert!(Store::open(&path).is_err());
}

/// A store whose CTAs take half of an SM's shared memory each, so that the last are read late.
#[cfg(target_os = "linux")]
fn slow_store(folder: &Path) -> PathBuf {
    const CTAS: u64 = 400;
    let head = GROUPED[..GROUPED.find("#BEGIN_TB").unwrap()].replace("shmem = 0", "shmem = 49152");
    let mut text = head.replace("(2,1,1)", &format!("({CTAS},1,1)"));
    for cta in 0..CTAS {
        text += &format!("#BEGIN_TB\nthread block = {cta},0,0\nwarp = 0\ninsts = 300\n");
        for line in 0..300 {
            // Far apart, as a stride would not say.
            let place = ((cta * 300 + line).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 30) << 7;
            text += &format!("0010 ffffffff 1 R1 LDG.E 1 R2 4 1 0x7f{place:010x} 4 \n");
        }
        text += "#END_TB\n";
    }
    let (input, output) = (folder.join("slow.traceg"), folder.join("slow.gpt"));
    fs::write(&input, text).unwrap();
    let request =
        ConvertRequest { inputs: vec![input], output: output.clone(), ..ConvertRequest::default() };
    convert(&request, &Silent).unwrap();
    output
}

/// Whether a process has the file open.
#[cfg(target_os = "linux")]
fn has_open(pid: u32, path: &Path) -> bool {
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    open.flatten().any(|one| fs::read_link(one.path()).is_ok_and(|open| open == path))
}

#[cfg(target_os = "linux")]
#[test]
fn a_store_that_shrinks_during_analysis_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = slow_store(&folder.path().canonicalize().unwrap());
    let bytes = fs::read(&path).unwrap();
    for wait in [0, 5, 20] {
        fs::write(&path, &bytes).unwrap();
        let mut command = program();
        command.arg("analyze").arg(&path).args(["--machine", "gtx-1080"]);
        command.env("GPUMODEL_CACHE", folder.path().join("cache"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        while !has_open(child.id(), &path) && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(wait));
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(5000).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "after {wait} ms: {said}");
        assert!(said.contains("slow.gpt: byte ") && said.contains("expected"), "{said}");
    }
}

#[test]
fn a_store_overwritten_while_open_is_an_error() {
    let folder = folder();
    let path = store(folder.path());
    let opened = Store::open(&path).unwrap();
    let length = fs::metadata(&path).unwrap().len();
    let hash = opened.content_hash();
    fs::write(&path, vec![0xff; usize::try_from(length).unwrap()]).unwrap();
    let said = opened.cta(0, 39).unwrap_err().to_string();
    assert!(said.contains("expected the block's checksum"), "{said}");
    assert_eq!((opened.content_hash(), opened.kernel(0).launch().name), (hash, "small".to_owned()));
    assert!(opened.verify().is_err());
}

#[test]
fn lists_do_not_escape_their_folder() {
    let outside = "kernelslist.g:1: expected a trace file in the list's own folder, or an absolute path, found";
    for line in ["kernel/../../etc/passwd", "kernel-3/../../x"] {
        let said = list(line);
        assert!(said.contains(outside), "{line}: {said}");
    }
    // A line that does not start with `kernel` is no command, as for Accel-Sim.
    for line in ["/etc/passwd", "../kernel-3.traceg", "../../etc/passwd"] {
        let said = list(&format!("kernel-3.traceg\n{line}\n"));
        assert!(said.contains("kernel-3.traceg") && !said.contains("passwd"), "{line}: {said}");
    }
    for line in ["kernel-4.traceg", "kernel-3.traceg/.."] {
        assert!(list(line).contains("a trace file that exists"), "{line}");
    }
}

#[test]
fn lists_that_name_lists_and_links_in_circles_end() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("kernelslist.g"), "kernelslist.g\n").unwrap();
    let convert =
        |name: &str| said(program().arg("convert").arg(at(name)).arg("-o").arg(at("out.gpt")));
    let (code, text) = convert("kernelslist.g");
    assert_eq!(code, Some(2));
    assert!(text.contains("kernelslist.g:1: expected an Accel-Sim trace"), "{text}");
    symlink(at("kernel-b"), at("kernel-a")).unwrap();
    symlink(at("kernel-a"), at("kernel-b")).unwrap();
    fs::write(at("kernelslist.g"), "kernel-a\n").unwrap();
    for name in ["kernelslist.g", "kernel-a"] {
        let (code, text) = convert(name);
        assert!(code == Some(2) && text.contains("kernel-a"), "{text}");
    }
    assert!(!at("out.gpt").exists());
}

#[test]
fn launches_named_twice_are_two_and_reported() {
    let folder = folder();
    let list = folder.path().join("kernelslist.g");
    fs::write(&list, "kernel-3.traceg\nkernel-3.traceg\nkernel-3.traceg\n").unwrap();
    let output = folder.path().join("out.gpt");
    let (code, text) = said(program().arg("convert").arg(&list).arg("-o").arg(&output));
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("named before: taken as a further launch, as 1 other repeated name"),
        "{text}"
    );
    assert_eq!(Store::open(&output).unwrap().kernel_count(), 3);
}

#[test]
fn pipes_devices_folders_and_empty_files_are_refused_immediately() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    assert!(Command::new("mkfifo").arg(at("kernel-9.traceg")).status().unwrap().success());
    fs::write(at("empty"), "").unwrap();
    fs::create_dir(at("sub")).unwrap();
    let inputs =
        [at("kernel-9.traceg"), "/dev/zero".into(), at("empty"), at("sub"), folder.path().into()];
    for input in inputs {
        for verb in ["convert", "inspect", "analyze"] {
            let mut command = program();
            command.current_dir(folder.path()).arg(verb).arg(&input);
            match verb {
                "convert" => command.args(["-o", "out.gpt"]),
                "analyze" => command.args(["--machine", "gtx-1080"]).env("GPUMODEL_CACHE", "cache"),
                _ => &mut command,
            };
            let (code, text) = said(&mut command);
            assert!(code == Some(2) && text.contains("error: "), "{verb} {input:?}: {text}");
            assert!(!at("out.gpt").exists());
        }
    }
}

/// The folder's new files.
fn left(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| !path.ends_with("long.traceg")).collect()
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fs::remove_file(store(folder.path())).unwrap();
    let line = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).arg(program().get_program()).args(["convert", "long.traceg"]);
    let (code, text) = said(shell.args(["-o", "out.gpt"]).current_dir(folder.path()));
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("cannot write out.gpt") && text.contains("because: "), "{text}");
    assert!(left(folder.path()).is_empty(), "{:?}", left(folder.path()));
    let (code, text) = said(
        program().args(["convert", "long.traceg", "-o", "/dev/full"]).current_dir(folder.path()),
    );
    assert!(code == Some(2) && text.contains("/dev/full: it is no regular file"), "{text}");
}

/// The code and the words with which the program ends that is interrupted while it converts
/// a trace of `folder`, which is its cache too.
fn interrupted(folder: &Path, words: &[&str]) -> (Option<i32>, String) {
    fs::remove_file(store(folder)).unwrap();
    let input = folder.join("long.traceg");
    let long = fs::read(&input).unwrap();
    fs::write(&input, [&long[..], &b"\n".repeat(200 << 20)].concat()).unwrap();
    let mut command = program();
    command.args(words).current_dir(folder).env("GPUMODEL_CACHE", folder);
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while left(folder).is_empty() && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

#[test]
fn an_interrupt_exits_with_130_and_a_message_and_leaves_nothing() {
    const WORDS: &str = "interrupted: unfinished outputs are removed\n";
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = interrupted(folder.path(), &["convert", "long.traceg", "-o", "out.gpt"]);
    assert!(code == Some(130) && said.contains(WORDS), "{code:?}: {said}");
    assert!(left(folder.path()).is_empty(), "{:?}", left(folder.path()));
    let analyze = ["analyze", "long.traceg", "--machine", "v100"];
    let (code, said) = interrupted(folder.path(), &analyze);
    assert!(code == Some(130) && said.contains(WORDS), "{code:?}: {said}");
    assert!(said.contains("the same command begins again, with the applications that"), "{said}");
}
