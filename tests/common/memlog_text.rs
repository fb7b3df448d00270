//! Logs of NVBit's `mem_trace` in every spelling, and the contents of stores made from them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use gpumodel::core::isa;
use gpumodel::trace::{ConvertReport, ConvertRequest, Silent, Store, TraceError, convert};

/// One access of one warp.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Access {
    pub(crate) launch: u64,
    pub(crate) cta: [u32; 3],
    pub(crate) slot: u32,
    pub(crate) opcode: &'static str,
    /// By lane; 0: the lane is off.
    pub(crate) addresses: [u64; 32],
}

/// The spelling of a log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Dialect {
    /// NVBit 1.5.5: a launch says one more than its accesses.
    Ahead,
    /// Later ones: both say the same.
    Equal,
    /// Numbers without leading zeros.
    Short,
    /// SM, PC, size and triples of lane, data and address.
    Triples,
}

pub(crate) const DIALECTS: [Dialect; 4] =
    [Dialect::Ahead, Dialect::Equal, Dialect::Short, Dialect::Triples];
/// Grid and block of every launch here: warps of 32, 32 and 8 threads.
pub(crate) const GRID: [u32; 3] = [3, 2, 1];
pub(crate) const BLOCK: [u32; 3] = [72, 1, 1];

pub(crate) fn launch_line(launch: u64, dialect: Dialect) -> String {
    let id = launch + u64::from(dialect == Dialect::Ahead);
    let extent = |[x, y, z]: [u32; 3]| format!("{x},{y},{z}");
    format!(
        "MEMTRACE: CTX 0x00000000deadbee0 - LAUNCH - Kernel pc 0x00007f00{launch:08x} - Kernel name \
         void k{launch}<(a) - (b)>(float*, int) - grid launch id {id} - grid size {} - block size {} \
         - nregs 12 - shmem 0 - cuda stream id 0\n",
        extent(GRID),
        extent(BLOCK)
    )
}

pub(crate) fn access_line(access: &Access, dialect: Dialect) -> String {
    let Access { launch, cta: [x, y, z], slot, opcode, addresses } = access;
    let head = format!(
        "MEMTRACE: CTX 0x00000000deadbee0 - grid_launch_id {launch} - CTA {x},{y},{z} - warp {slot} - "
    );
    let lanes = addresses.iter().enumerate();
    let short = |word: String, address: &u64| word + &format!("0x{address:x} ");
    let padded = |word: String, address: &u64| word + &format!("0x{address:016x} ");
    let words = match dialect {
        Dialect::Ahead | Dialect::Equal => addresses.iter().fold(String::new(), padded),
        Dialect::Short => addresses.iter().fold(String::new(), short),
        Dialect::Triples => lanes.fold(String::new(), |words, (lane, address)| {
            words + &format!("Thread{lane},0x{:016x},0x{address:016x} ", lane * 7)
        }),
    };
    match dialect {
        Dialect::Triples => format!(
            "{head}SM_id 5 - pc 0x{:x} - {opcode} - Size {} - MREF per threads(threadidx,data,address) \
             : {words}\n",
            pc(opcode),
            width(opcode)
        ),
        _ => format!("{head}{opcode} - {words}\n"),
    }
}

pub(crate) fn pc(opcode: &str) -> u64 {
    0x100 + u64::try_from(opcode.len()).unwrap()
}

pub(crate) fn width(opcode: &str) -> u8 {
    if opcode.contains("64") { 8 } else { 4 }
}

/// A log with what applications and tools say between the lines.
pub(crate) fn log(accesses: &[Access], launches: u64, dialect: Dialect) -> String {
    let mut text = String::from("------------- NVBit -------------\nkernel sizes of this run: 8\n");
    text += "MEMTRACE: STARTING CONTEXT 0xdeadbee0\n";
    for launch in 0..launches {
        text += &launch_line(launch, dialect);
        let _ = writeln!(text, "No CUDA error.");
    }
    for access in accesses {
        text += &access_line(access, dialect);
    }
    text + "Final sum = 24576; sum/n = 3\n"
}

/// Accesses of two launches, mixed.
pub(crate) fn accesses() -> Vec<Access> {
    let mut all = Vec::new();
    for turn in 0..40_u32 {
        for launch in 0..2 {
            let cta = [turn % 3, turn / 7 % 2, 0];
            let slot = 11 + (turn * 5 + 2) % 3 * 4;
            let opcode = if turn % 4 == 3 { "STG.E.64.SYS" } else { "LDG.E.SYS" };
            let base = 0x7f00_0000_0000 + u64::from(turn) * 4096;
            let addresses = std::array::from_fn(|lane| match (turn % 5, lane % 3) {
                (2, 1) => 0,
                (3, _) => base + u64::try_from(lane * lane).unwrap() * 8,
                (4, _) => 0,
                _ => base + u64::try_from(lane).unwrap() * 8,
            });
            all.push(Access { launch, cta, slot, opcode, addresses });
        }
    }
    all
}

/// A folder with a log, and its conversion.
pub(crate) struct Made {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) report: ConvertReport,
}

impl Made {
    pub(crate) fn store(&self) -> Store {
        Store::open(&self.folder.path().join("out.gpt")).unwrap()
    }
}

pub(crate) fn request(folder: &Path, log: &[u8]) -> ConvertRequest {
    let input = folder.join("log");
    fs::write(&input, log).unwrap();
    let output = folder.join("out.gpt");
    ConvertRequest { inputs: vec![input], output, ..ConvertRequest::default() }
}

pub(crate) fn try_bytes(log: &[u8]) -> Result<Made, TraceError> {
    let folder = tempfile::tempdir().unwrap();
    let report = convert(&request(folder.path(), log), &Silent);
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1 + usize::from(report.is_ok()), "something was left");
    Ok(Made { folder, report: report? })
}

pub(crate) fn made(log: &str) -> Made {
    try_bytes(log.as_bytes()).unwrap()
}

/// The contents of a store, by launch, CTA and warp: opcode, width and lanes in order.
pub(crate) type Said = BTreeMap<(usize, [u32; 3], u32), Vec<(String, u8, [u64; 32])>>;

pub(crate) fn said(store: &Store) -> Said {
    let mut all = Said::new();
    let mut access = isa::Access::default();
    for kernel in 0..store.kernel_count() {
        let code = store.code(kernel).unwrap();
        for ordinal in 0..store.kernel(kernel).cta_count() {
            let cta = store.cta(kernel, ordinal).unwrap();
            for warp in 0..cta.warp_count() {
                let mut cursor = cta.warp(warp);
                let mut found = Vec::new();
                while cursor.next_segment().is_some() {
                    while let Some(number) = cursor.instruction() {
                        let one = &code.instructions[usize::try_from(number).unwrap()];
                        let opcode = &code.opcodes[usize::try_from(one.opcode).unwrap()];
                        cursor.access(&mut access);
                        let mut lanes = [0; 32];
                        access.active().for_each(|(lane, at)| lanes[lane] = at);
                        found.push((opcode.clone(), one.width, lanes));
                    }
                }
                let at = cta.position;
                all.insert((kernel, [at.x, at.y, at.z], warp), found);
            }
        }
    }
    all.retain(|_, found| !found.is_empty());
    all
}

/// The same of a list, its slots numbered as they rise in each CTA.
pub(crate) fn wanted(accesses: &[Access]) -> Said {
    let mut slots: BTreeMap<(u64, [u32; 3]), Vec<u32>> = BTreeMap::new();
    for one in accesses {
        let slots = slots.entry((one.launch, one.cta)).or_default();
        slots.push(one.slot);
        slots.sort_unstable();
        slots.dedup();
    }
    let mut all = Said::new();
    for one in accesses {
        let place = slots[&(one.launch, one.cta)].iter().position(|&slot| slot == one.slot);
        let key =
            (usize::try_from(one.launch).unwrap(), one.cta, u32::try_from(place.unwrap()).unwrap());
        let row = (one.opcode.to_owned(), width(one.opcode), one.addresses);
        all.entry(key).or_default().push(row);
    }
    all
}

/// Runs the program in `folder`; gives exit code, output and messages.
pub(crate) fn program(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::cargo_bin("gpumodel").unwrap();
    command.env("GPUMODEL_CACHE", folder.join("cache")).current_dir(folder);
    let output = command.args(words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}
