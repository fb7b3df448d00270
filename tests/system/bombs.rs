//! Does a conversion stay within its memory, whatever the file claims or expands to?
//!
//! Archives are bombs by repetition: a member that expands to 16 MiB, many times over.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::compression::{bzip2, gzip, xz};
use crate::packing::{Packing, packed};

/// Bytes of one member's text, about.
const MEMBER: usize = 16 << 20;
/// Most memory of the whole program, in KiB: the files below expand to far more.
const MOST_KIB: u64 = 300 << 10;

const HEADER: &str = "\
-kernel name = bomb
-kernel id = 1
-grid dim = (1,1,1)
-block dim = (32,1,1)
-shmem = 0
-nregs = 8
-accelsim tracer version = 5
#traces format = bomb

";
const FRAME: &str = "#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\ninsts = 4000000000\n";
const LINE: &str = "0000 ffffffff 1 R1 MOV 0 0 7 \n";

/// A compressor of one whole member.
type Pack = fn(&[u8]) -> Vec<u8>;

const PACKERS: [(&str, Pack); 4] = [("xz", xz), ("gzip", gzip), ("bzip2", bzip2), ("zstd", zstd)];

fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(text, 1).unwrap()
}

/// Peak memory of `child` so far in KiB, while it lives.
fn peak(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// The output of a conversion of `bytes`; an error may leave no files, and memory is
/// held either way.
#[allow(clippy::print_stdout)]
fn converted(name: &str, bytes: &[u8]) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("bomb");
    fs::write(&input, bytes).unwrap();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("gpumodel"));
    command.args(["convert", "bomb", "-o", "out.gpt", "--memory", "16M"]);
    let command = command.current_dir(folder.path()).env("RAYON_NUM_THREADS", "2");
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        most = peak(&child).unwrap_or(0).max(most);
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    println!("{name}: {} MiB, {}", most >> 10, said.trim());
    assert!(most < MOST_KIB, "{name}: {most} KiB");
    let left = fs::read_dir(folder.path()).unwrap().count();
    match output.status.code() {
        Some(0) => Ok(()),
        Some(2) if left == 1 => Err(said),
        code => panic!("{name}: {code:?}, {left} file(s): {said}"),
    }
}

fn refused(name: &str, bytes: &[u8], wanted: &str) {
    let said = converted(name, bytes).unwrap_err();
    assert!(said.contains(wanted), "{name}: {said}");
}

/// `start`, then `line` without end: `members` times 16 MiB of it.
fn endless(pack: Pack, start: &str, line: &str, members: usize) -> Vec<u8> {
    let member = pack(line.repeat(MEMBER / line.len()).as_bytes());
    [pack(start.as_bytes()), member.repeat(members)].concat()
}

#[test]
fn zeros_stop_at_the_first_line_in_every_compression() {
    for (name, pack) in PACKERS {
        let bomb = endless(pack, "", "\0", 64);
        assert!(bomb.len() < MEMBER, "{name}");
        refused(name, &bomb, "bomb:1: expected a line of less than 2 MiB");
        let bomb = endless(pack, &format!("{HEADER}{FRAME}"), "\0", 64);
        refused(name, &bomb, "bomb:14: expected a line of less than 2 MiB");
    }
}

#[test]
fn endless_lines_stay_within_memory_in_every_compression() {
    for (name, pack) in PACKERS {
        let wrong = endless(pack, &format!("{HEADER}{FRAME}"), "wrong\n", 64);
        refused(name, &wrong, "bomb:14: expected");
    }
    let raw = endless(zstd, HEADER, &format!("0 0 0 0 {LINE}"), 12);
    converted("raw", &raw).unwrap();
    let blank =
        endless(zstd, &format!("{HEADER}{FRAME}"), &format!("{}{LINE}", "\n".repeat(1000)), 8);
    refused("blank", &blank, "4000000000 instruction lines");
    let key = endless(zstd, &HEADER.replace("#traces", "-traces"), "-key = value\n", 64);
    refused("header", &key, "once");
    let list = endless(zstd, "", "MemcpyHtoD,0x7f0000000000,4\n", 64);
    refused("list", &list, "a command list of more than 64 MiB");
    let strays = endless(zstd, "MemcpyHtoD,0x0,1\n", "stray\n", 64);
    refused("strays", &strays, "a command list of more than 64 MiB");
}

#[test]
fn lines_of_100_megabytes_are_refused() {
    let long = |before: &str, with: &str, after: &str| {
        [before.as_bytes(), &with.as_bytes().repeat((100 << 20) / with.len()), after.as_bytes()]
            .concat()
    };
    let wanted = "expected a line of less than 2 MiB";
    refused("header line", &long("-kernel name = ", "x", "\n"), wanted);
    let start = format!("{HEADER}{FRAME}0000 ffffffff 1 R1 ");
    refused("instruction line", &long(&start, "MOV", "\n"), wanted);
    let start = format!("{HEADER}{FRAME}0000 ffffffff 0 LDG 0 4 0 0x0");
    refused("addresses", &long(&start, " 0x10", "\n#END_TB\n"), wanted);
    refused("list line", &long("MemcpyHtoD,0x0,1\n", "x", "\n"), wanted);
    refused("list command", &long("kernel", "x", "\n"), wanted);
}

#[test]
fn a_thread_block_too_long_is_refused_in_bounded_memory() {
    let grouped = format!("{HEADER}{FRAME}");
    let tail = "0000 ffffffff 1 R1 MOV 0 0 7 tail that is kept as it stands\n";
    for line in [LINE, tail, "0010 ffffffff 1 R1 LDG.E 1 R2 4 1 0x7f0000000000 4 7 \n"] {
        refused(line, &endless(zstd, &grouped, line, 4), "cut off");
    }
    let start = grouped.replace("warp = 0\ninsts = 4000000000\n", "");
    refused("notes", &endless(zstd, &start, "cluster id = 0,0,0\n", 64), "of further lines");
}

#[test]
fn frames_of_a_binary_trace_stay_within_memory() {
    let lines = LINE.repeat(400_000);
    let mut text = HEADER.replace("grid dim = (1,", "grid dim = (8,");
    for cta in 0..8 {
        text += &format!("#BEGIN_TB\n\nthread block = {cta},0,0\n\nwarp = 0\ninsts = 400000\n");
        text += &format!("{lines}\n#END_TB\n\n");
    }
    let packing = Packing { chunk: 1 << 20, dictionary: 0, level: 1 };
    let bytes = packed(&text, packing);
    assert!(bytes.len() < 1 << 20);
    converted("tracez", &bytes).unwrap();
}

#[test]
fn false_counts_take_no_memory() {
    let good = format!("{HEADER}{FRAME}{LINE}\n#END_TB\n").replace("4000000000", "1");
    assert!(converted("good", good.as_bytes()).is_ok());
    for (from, to, wanted) in [
        ("insts = 1", "insts = 4000000000", "4000000000 instruction lines"),
        ("1 R1 MOV", "200 R1 MOV", "a register"),
        ("1 R1 MOV", "4000000000 R1 MOV", "a count of destinations"),
        ("MOV 0 0", "MOV 4000000000 0", "a count of sources"),
        ("(1,1,1)", "(4000000000,4000000000,4000000000)", "a grid of 1 to"),
        ("(32,1,1)", "(4000000000,1,1)", "a block of 1 to 1024 threads"),
        ("warp = 0", "warp = 4000000000", "a warp below 1"),
        ("block = 0,0,0", "block = 4000000000,0,0", "inside the grid (1,1,1)"),
        ("-shmem = 0", "-shmem = 1099511627776", "32-bit number"),
        ("-nregs = 8", "-nregs = 4294967296", "32-bit number"),
    ] {
        refused(to, good.replace(from, to).as_bytes(), wanted);
    }
    // A grid that is as large as one may be costs nothing by itself.
    let wide = good.replace("(1,1,1)", "(2147483647,65535,1)");
    converted("grid", wide.as_bytes()).unwrap();
    let raw = format!("{HEADER}4000000000 1 1 0 {LINE}0 0 0 0 {LINE}");
    let raw = raw.replace("(1,1,1)", "(4294967295,2,2)");
    converted("raw grid", raw.as_bytes()).unwrap();
    assert!(Path::new("/proc/self/status").exists(), "memory is measured there");
}
