//! Are the words of constant loads inferred where a trace lacks their addresses, and only there?
//! The traces are written here, in the format of Accel-Sim 1.

use std::fmt::Write;
use std::fs;

use gpumodel::app::{AnalyzeRequest, AppName, Unwatched, analyze};

/// Lane `i` reads 4 (i % 8): eight distinct words.
const EIGHT: &str = "0x0 4 4 4 4 4 4 4 -28 4 4 4 4 4 4 4 -28 4 4 4 4 4 4 4 -28 4 4 4 4 4 4 4";
/// Lane `i` reads 32 (i / 8): four.
const FOUR: &str = "0x0 0 0 0 0 0 0 0 32 0 0 0 0 0 0 0 32 0 0 0 0 0 0 0 32 0 0 0 0 0 0 0";

/// Words read by the constant loads of a launch of one warp with these lines, and loads that are
/// said to be inferred.
fn words(target: u32, lines: &[String]) -> (u64, u64) {
    let mut text = format!(
        "-kernel name = table\n-kernel id = 1\n-grid dim = (1,1,1)\n-block dim = (32,1,1)\n\
         -shmem = 1024\n-nregs = 32\n-binary version = {target}\n-cuda stream id = 0\n\
         -shmem base_addr = 0x00007f2000000000\n-local mem base_addr = 0x00007f3000000000\n\
         -nvbit version = 1.5.5\n-accelsim tracer version = 3\n\n\
         #traces format = PC mask dest_num opcode src_num mem_width\n\n\
         #BEGIN_TB\n\nthread block = 0,0,0\n\nwarp = 0\ninsts = {}\n",
        lines.len() + 1
    );
    for (place, line) in lines.iter().enumerate() {
        writeln!(text, "{:04x} ffffffff {line}", 16 * place).unwrap();
    }
    text += "0ff0 ffffffff 0 EXIT 0 0 \n\n#END_TB\n";
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("kernelslist.g"), "kernel-1.traceg\n").unwrap();
    fs::write(folder.path().join("kernel-1.traceg"), text).unwrap();
    let app = AppName::parse(folder.path().to_str().unwrap());
    let request = AnalyzeRequest::new(vec![app], "gv100", &folder.path().join("cache"));
    let solo = analyze(&request, &Unwatched).unwrap().solo.remove(0);
    let said = solo.kernels[0].assumptions.iter();
    let inferred = said.filter(|row| row.what.contains("whose index differs by lane"));
    (solo.constant_cache.unwrap().passes, inferred.map(|row| row.instructions).sum())
}

/// `count` constant loads, and the sum of what they read.
fn loads(count: u32) -> impl Iterator<Item = String> {
    (0..count).flat_map(|_| ["1 R20 LDC 0 0 ".to_owned(), "1 R21 FADD 2 R20 R21 0 ".to_owned()])
}

/// A kernel whose index is twice the lane's part of an address, as in a DCT of blocks: it is in
/// R8, which no operand lists.
fn table(addresses: &str, index: &str) -> Vec<String> {
    let before =
        ["1 R4 S2R 0 0 ".to_owned(), "1 R10 SHF.L.U32 2 R4 R255 0 ".to_owned(), index.to_owned()];
    let after = format!("1 R12 LDS.U 1 R10 4 2 {addresses} ");
    let sum = "0 STS 2 R11 R21 4 1 0x100 4 ".to_owned();
    before.into_iter().chain(loads(3)).chain([after, sum]).collect()
}

const INDEX: &str = "1 R8 SHF.L.U32 2 R4 R255 0 ";

#[test]
fn lanes_read_as_many_words_as_addresses_of_the_same_origin_show() {
    assert_eq!(words(70, &table(EIGHT, INDEX)), (24, 3));
    assert_eq!(words(70, &table(FOUR, INDEX)), (12, 3));
    let sum = "1 R8 IADD3 2 R4 R30 0 ";
    assert_eq!(words(80, &table(EIGHT, sum)), (24, 3), "a sum differs where its parts do");
}

#[test]
fn an_index_that_nothing_shows_to_differ_is_one_word_in_a_fixed_time() {
    let same = "0x0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0";
    assert_eq!(words(70, &table(same, INDEX)), (0, 0), "all lanes read one address");
    let other = "1 R8 SHF.L.U32 2 R5 R255 0 ";
    assert_eq!(words(70, &table(EIGHT, other)), (0, 0), "of another origin");
    let lost = "1 R8 SHF.R.U32.HI 2 R255 R4 0 ";
    assert_eq!(
        words(70, &table(EIGHT, lost)),
        (0, 0),
        "a shift to the right may lose what differs"
    );
    assert_eq!(words(90, &table(EIGHT, INDEX)), (0, 0), "Hopper reads at fixed offsets too");
}

#[test]
fn the_index_is_a_register_that_nothing_else_reads() {
    let mut read = table(EIGHT, INDEX);
    read.push("1 R9 FADD 1 R8 0 ".to_owned());
    assert_eq!(words(70, &read), (0, 0), "an addition reads it");
    let mut wide = table(EIGHT, INDEX);
    wide.push("1 R9 LDG.E.SYS 1 R7 4 1 0x7f4000000000 0 ".to_owned());
    assert_eq!(words(70, &wide), (0, 0), "the upper half of an address");
    let mut again = table(EIGHT, INDEX);
    again.insert(3, "1 R8 S2R 0 0 ".to_owned());
    assert_eq!(words(70, &again), (0, 0), "it is written again before the loads");
}
