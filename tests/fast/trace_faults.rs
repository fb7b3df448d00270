//! Is bad input refused with its place, without a panic or leftover files, and are faults of
//! traces reported as such: versions, handles, damaged files among good ones?

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use gpumodel::core::isa::Access;
use gpumodel::trace::{ConvertReport, ConvertRequest, Silent, Store, TraceError, convert};
use proptest::prelude::*;

use crate::skip;

/// A small grouped trace with every address mode, tails and an empty warp.
const GROUPED: &str = include_str!("../../traces/golden/v1.traceg");

const RAW: &str = "\
-kernel name = small
-kernel id = 3
-grid dim = (2,1,1)
-block dim = (64,1,1)
-shmem = 0
-nregs = 8
-accelsim tracer version = 5
#traces format = small

1 0 0 1 0000 ffffffff 1 R1 MOV 0 0 7 
0 0 0 0 0000 ffffffff 1 R1 MOV 0 0 7 
";

/// Converts `text` in a fresh folder.
fn try_text(text: &[u8]) -> (tempfile::TempDir, Result<PathBuf, TraceError>) {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("kernel-3.traceg");
    fs::write(&input, text).unwrap();
    let output = folder.path().join("out.gpt");
    let request =
        ConvertRequest { inputs: vec![input], output: output.clone(), ..Default::default() };
    let result = convert(&request, &Silent).map(|_| output);
    (folder, result)
}

/// The error for `text`, after checking that nothing was left behind.
fn error(text: &[u8]) -> String {
    let (folder, result) = try_text(text);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    result.unwrap_err().to_string()
}

fn refused(text: &str, from: &str, to: &str, line: u64, wanted: &str) {
    assert!(text.contains(from), "{from}");
    let error = error(text.replacen(from, to, 1).as_bytes());
    let place = format!("kernel-3.traceg:{line}: expected ");
    assert!(error.contains(&place) && error.contains(wanted), "{from} -> {to}: {error}");
}

#[test]
fn wrong_headers_name_their_line() {
    refused(GROUPED, "-kernel name = small", "kernel name = small", 1, "an Accel-Sim trace");
    refused(GROUPED, "-kernel id = 3", "-kernel id = three", 2, "32-bit number");
    refused(GROUPED, "(2,1,1)", "(2,1)", 3, "(x,y,z)");
    refused(GROUPED, "(2,1,1)", "(0,1,1)", 12, "a grid of 1 to");
    refused(GROUPED, "(2,1,1)", "(4294967295,4294967295,4294967295)", 12, "a grid of 1 to");
    refused(GROUPED, "(64,1,1)", "(64,1024,1024)", 12, "a block of 1 to 1024 threads");
    refused(GROUPED, "-nregs = 8", "-nregs", 6, "-key = value");
    refused(GROUPED, "-nregs = 8\n", "", 11, "-nregs");
    refused(GROUPED, "-shmem = 0", "-kernel id = 4", 5, "once");
}

#[test]
fn a_file_of_unknown_format_is_refused_with_the_known_formats() {
    let said = error(b"hello\n");
    let trace = "an Accel-Sim trace, which starts with `-kernel name = …`; or a `.tracez`, which \
                 starts with the same and has a NUL byte";
    assert!(said.contains(&format!("kernel-3.traceg:1: expected {trace}")), "{said}");
    assert!(said.ends_with(", found `hello`"), "{said}");
    let blank = "\n \r\n";
    for (text, words) in [("", "the file is empty"), (blank, "the file has blank lines alone")] {
        let said = error(text.as_bytes());
        assert!(said.ends_with(&format!("found nothing: {words}")), "{said}");
    }
}

#[test]
fn a_text_that_ends_within_a_block_is_reported_as_truncated() {
    let begin = GROUPED.find("#BEGIN_TB").unwrap() + 2;
    for cut in begin..GROUPED.len() {
        let text = &GROUPED[..cut];
        if text.trim_end().ends_with("#END_TB") {
            // Between blocks there is nothing to miss.
            continue;
        }
        let (said, line) = (error(text.as_bytes()), text.lines().count());
        // A last line may be whole as it is: then the next one is missing.
        let placed = [line, line + 1].iter().any(|line| said.contains(&format!(".traceg:{line}:")));
        assert!(placed && said.contains("it is cut off"), "{cut}: {said}");
    }
    let whole = GROUPED.trim_end();
    assert!(try_text(whole.as_bytes()).1.is_ok(), "a last line needs no end");
}

#[test]
fn broken_frames_name_their_line() {
    refused(GROUPED, "insts = 4", "insts = 5", 24, "5 instruction lines");
    refused(GROUPED, "insts = 4", "insts = 3", 24, "3 instruction lines");
    refused(GROUPED, "insts = 4", "insts = 18446744073709551615", 24, "instruction lines");
    refused(GROUPED, "insts = 4", "insts = many", 18, "insts = NUMBER");
    refused(GROUPED, "warp = 1", "warp = 2", 24, "a warp below 2");
    refused(GROUPED, "warp = 1", "warp = 0", 24, "every warp once");
    refused(GROUPED, "block = 1,0,0", "block = 2,0,0", 31, "inside the grid (2,1,1)");
    refused(GROUPED, "block = 1,0,0", "block = 0,0,0", 31, "every thread block once");
    refused(GROUPED, "#END_TB\n\n#BEGIN", "#BEGIN", 27, "#END_TB");
    refused(GROUPED, "warp = 0\n", "", 17, "warp = 0");
    refused(GROUPED, "thread block = 0,0,0\n", "", 16, "thread block = x,y,z");
}

#[test]
fn broken_lines_name_their_field() {
    refused(GROUPED, "1 R1 MOV", "1 Q1 MOV", 19, "a register, found `Q1 MOV");
    refused(GROUPED, "0000 ffffffff 1", "0000 ffffff 1", 19, "a mask of 8 hexadecimal digits");
    refused(GROUPED, "0000 ffffffff 1", "x000 ffffffff 1", 19, "a program counter");
    refused(GROUPED, "4 1 0x7f0000000000 4", "4 7 0x7f0000000000 4", 20, "an address mode");
    refused(GROUPED, "0x7f0000000000 4", "0xfffffffffffffffff 4", 20, "an address");
    refused(GROUPED, "1 R1 4 1", "1 R1 400 1", 20, "a width in bytes");
    refused(GROUPED, "8 -16 0", "8", 21, "one difference per further active lane");
    refused(GROUPED, "0020 00000013 0", "0020 00000013 99999999999", 21, "a count of destinations");
}

#[test]
fn raw_lines_outside_the_grid_are_refused() {
    assert!(try_text(RAW.as_bytes()).1.is_ok());
    refused(RAW, "1 0 0 1", "2 0 0 1", 10, "a CTA inside (2,1,1)");
    refused(RAW, "1 0 0 1", "1 0 0 2", 10, "a warp below 2");
    refused(RAW, "0 0 0 0 0000", "0 0 0 0000", 11, "a mask of 8");
    refused(RAW, "1 0 0 1 0000", "0000", 9, "raw lines of CTA x, y, z, warp");
    refused(RAW, "0 0 0 0 0000", "#BEGIN_TB\n0 0 0 0 0000", 11, "only instruction lines");
}

#[test]
fn cut_texts_are_refused_and_line_ends_do_not_matter() {
    let hash = |text: &str| {
        let (_folder, output) = try_text(text.as_bytes());
        Store::open(&output.unwrap()).unwrap().content_hash()
    };
    assert_eq!(hash(GROUPED), hash(&GROUPED.replace('\n', "\r\n")));
    assert_eq!(hash(GROUPED), hash(GROUPED.trim_end()));
    let body = GROUPED.find("#BEGIN_TB").unwrap();
    for end in body + 1..GROUPED.len() - 1 {
        // Cut between two thread blocks the text is whole, only shorter.
        if !GROUPED[..end].trim_end().ends_with("#END_TB") {
            error(&GROUPED.as_bytes()[..end]);
        }
    }
}

#[test]
fn a_line_without_end_is_refused() {
    let mut text = GROUPED.as_bytes().to_vec();
    text.extend(std::iter::repeat_n(b'x', 5 << 20));
    assert!(error(&text).contains("expected a line of less than 2 MiB"));
}

#[test]
fn cut_archives_are_refused() {
    let packed = zstd::bulk::compress(GROUPED.as_bytes(), 3).unwrap();
    assert!(try_text(&packed).1.is_ok());
    let cut = error(&packed[..packed.len() - 5]);
    assert!(cut.contains("kernel-3.traceg:1: expected whole zstd data"), "{cut}");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, GROUPED.as_bytes()).unwrap();
    let gzip: Vec<u8> = gzip.finish().unwrap();
    assert!(try_text(&gzip).1.is_ok());
    error(&gzip[..gzip.len() - 5]);
}

#[test]
fn the_program_ends_with_2_and_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("kernelslist.g");
    fs::write(&list, "MemcpyHtoD,0x00,4\nkernel-9.traceg\n").unwrap();
    let output = folder.path().join("out.gpt");
    let program = |arguments: &[&Path]| {
        let mut command = Command::cargo_bin("gpumodel").unwrap();
        let output = command.args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, text) = program(&[Path::new("convert"), folder.path(), Path::new("-o"), &output]);
    assert_eq!(code, Some(2));
    assert!(text.contains("kernelslist.g:2: expected a trace file that exists"), "{text}");
    assert!(text.contains("`kernel-9.traceg`"), "{text}");
    assert!(!output.exists());
    let (code, text) = program(&[Path::new("inspect"), &list]);
    assert_eq!(code, Some(2));
    assert!(text.contains("kernelslist.g:2: expected a trace file that exists"), "{text}");
}

#[test]
fn archives_of_several_streams_are_read_to_their_end() {
    let (first, second) = GROUPED.as_bytes().split_at(GROUPED.len() / 2);
    let xz = |text: &[u8]| {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
        std::io::Write::write_all(&mut encoder, text).unwrap();
        encoder.finish().unwrap()
    };
    let both = [xz(first), xz(second)].concat();
    let (_folder, output) = try_text(&both);
    let store = Store::open(&output.unwrap()).unwrap();
    assert_eq!(store.kernel(0).cta_count(), 2);
    assert_eq!(store.kernel(0).text_bytes(), u64::try_from(GROUPED.len()).unwrap());
    error(&both[..both.len() - 20]);
    error(&xz(first));
}

/// The bytes of a good store.
fn store() -> Vec<u8> {
    let (_folder, output) = try_text(GROUPED.as_bytes());
    fs::read(output.unwrap()).unwrap()
}

/// Everything that a reader can ask of a store, or the first error.
fn read_all(path: &Path) -> Result<Vec<String>, TraceError> {
    let store = Store::open(path)?;
    let mut said =
        vec![store.content_hash(), format!("{:?}", store.commands().collect::<Vec<_>>())];
    let mut access = Access::default();
    for kernel in 0..store.kernel_count() {
        said.push(format!("{:?}{:?}", store.kernel(kernel).launch(), store.code(kernel)?));
        let code = store.code(kernel)?;
        for ordinal in 0..store.kernel(kernel).cta_count() {
            let cta = store.cta(kernel, ordinal)?;
            said.push(format!("{:?}{:?}", cta.position, store.tails(kernel, ordinal)?));
            for warp in 0..cta.warp_count() {
                let mut cursor = cta.warp(warp);
                while cursor.next_segment().is_some() {
                    while let Some(number) = cursor.instruction() {
                        let width = code.instructions[usize::try_from(number).unwrap()].width;
                        if width > 0 {
                            cursor.access(&mut access);
                            said.push(format!("{:?}", access.active().collect::<Vec<_>>()));
                        } else {
                            said.push(cursor.skip(1).to_string());
                        }
                    }
                }
            }
        }
    }
    store.verify()?;
    Ok(said)
}

#[test]
fn a_store_cut_anywhere_is_refused() {
    let bytes = store();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.gpt");
    for end in 0..bytes.len() {
        fs::write(&path, &bytes[..end]).unwrap();
        assert!(read_all(&path).is_err(), "cut to {end} of {}", bytes.len());
    }
}

#[test]
fn every_flipped_byte_of_a_store_is_an_error_or_harmless() {
    let bytes = store();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flipped.gpt");
    fs::write(&path, &bytes).unwrap();
    let good = read_all(&path).unwrap();
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x41;
        fs::write(&path, &flipped).unwrap();
        if let Ok(said) = read_all(&path) {
            assert_eq!(said, good, "byte {at}");
        }
    }
}

#[test]
fn another_version_is_named() {
    let mut bytes = store();
    bytes[8] = 9;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.gpt");
    fs::write(&path, &bytes).unwrap();
    let error = Store::open(&path).unwrap_err().to_string();
    assert!(error.contains("byte 8: expected version 1, found version 9"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn damaged_text_never_panics(
        edits in prop::collection::vec((0..GROUPED.len(), any::<u8>(), any::<bool>()), 1..6),
        raw in any::<bool>(),
    ) {
        let mut text = if raw { RAW } else { GROUPED }.as_bytes().to_vec();
        for (at, byte, insert) in edits {
            let at = at % text.len();
            if insert { text.insert(at, byte) } else { text[at] = byte }
        }
        let (folder, result) = try_text(&text);
        if let Ok(output) = &result {
            prop_assert!(read_all(output).is_ok());
        }
        prop_assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1 + usize::from(result.is_ok()));
    }
}

/// A grouped trace of one warp of kernel `id`, whose lines end in `tail`.
fn trace(id: u32, version: &str, stream: &str, tail: &str) -> String {
    format!(
        "-kernel name = k{id}\n-kernel id = {id}\n-grid dim = (1,1,1)\n-block dim = (32,1,1)\n\
         -shmem = 0\n-nregs = 8\n-binary version = 70\n-cuda stream id = {stream}\n\
         -accelsim tracer version = {version}\n\n#traces format = x\n\n#BEGIN_TB\n\n\
         thread block = 0,0,0\n\nwarp = 0\ninsts = 2\n\
         0000 ffffffff 1 R{id} MOV 1 R2 0 {tail}\n0010 ffffffff 0 EXIT 0 0 {tail}\n\n#END_TB\n"
    )
}

fn converted(folder: &Path, output: &Path, skip: bool) -> Result<ConvertReport, TraceError> {
    let (inputs, output) = (vec![folder.to_path_buf()], output.to_path_buf());
    convert(&ConvertRequest { inputs, output, skip_damaged: skip, ..Default::default() }, &Silent)
}

/// The warnings of one trace.
fn warnings(text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("kernel-1.traceg");
    fs::write(&input, text).unwrap();
    converted(&input, &folder.path().join("out.gpt"), false).unwrap().warnings
}

#[test]
fn an_unknown_version_is_named_and_no_value_is_no_unknown_field() {
    assert_eq!(warnings(&trace(1, "6", "0", "0 NoVal")), Vec::<String>::new());
    let [one] = &warnings(&trace(1, "7", "0", "0 NoVal"))[..] else { panic!("one warning") };
    assert!(one.ends_with("tracer version `7` is not known; read as version 6"), "{one}");
    let [one] = &warnings(&trace(1, "6", "0", "0 NoVal x"))[..] else { panic!("one warning") };
    assert!(one.contains("2 lines with unknown fields at the end"), "{one}");
}

/// A folder of `kernels`, each a file's text, and its list.
fn folder(kernels: &[&[u8]]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let name = |place| format!("kernel-{}.traceg", place + 1);
    for (place, text) in kernels.iter().enumerate() {
        fs::write(folder.path().join(name(place)), text).unwrap();
    }
    let list: String = (0..kernels.len()).map(|place| format!("./{}\n", name(place))).collect();
    fs::write(folder.path().join("kernelslist.g"), list).unwrap();
    folder
}

#[test]
fn damaged_files_are_skipped_and_counted_where_that_is_asked() {
    let good = [1, 2, 3].map(|id| trace(id, "3", "-1431650176", ""));
    let [one, two, three] = good.each_ref().map(|text| text.as_bytes());
    let packed = crate::compression::xz(two);
    let (cut, half) = (&two[..two.len() - 40], &packed[..packed.len() / 2]);
    let whole = folder(&[one, three]);
    let clean = whole.path().join("clean.gpt");
    converted(whole.path(), &clean, true).unwrap();
    let clean = Store::open(&clean).unwrap();
    for damaged in [&b""[..], b"no trace\n", cut, half] {
        let folder = folder(&[one, damaged, three]);
        let output = folder.path().join("out.gpt");
        assert!(converted(folder.path(), &output, false).is_err());
        let report = converted(folder.path(), &output, true).unwrap();
        assert_eq!((report.kernels, report.skipped), (2, 1));
        let [warning] = &report.warnings[..] else { panic!("{:?}", report.warnings) };
        let named = warning.starts_with("damaged and skipped: ");
        assert!(named && warning.contains("kernel-2.traceg"), "{warning}");
        let store = Store::open(&output).unwrap();
        store.verify().unwrap();
        assert_eq!((store.skipped_files(), clean.skipped_files()), (1, 0));
        assert_eq!(store.commands().collect::<Vec<_>>(), clean.commands().collect::<Vec<_>>());
        for kernel in 0..2 {
            assert_eq!(store.kernel(kernel).launch(), clean.kernel(kernel).launch());
            assert_eq!(store.kernel(kernel).launch().stream, 0xaaaa_c080);
            assert_eq!(store.code(kernel).unwrap(), clean.code(kernel).unwrap());
        }
    }
    // Nothing is left of a trace that is damaged as a whole.
    let all = folder(&[b""]);
    let error = converted(all.path(), &all.path().join("out.gpt"), true).unwrap_err().to_string();
    assert!(error.contains("nothing to convert") && error.contains("the file is empty"), "{error}");
}

#[test]
fn the_command_line_says_how_many_files_were_skipped() {
    let good = trace(1, "3", "0", "");
    let folder = folder(&[good.as_bytes(), b""]);
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpumodel"));
        command.current_dir(folder.path()).env("GPUMODEL_CACHE", folder.path().join("cache"));
        let output = command.args(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let words = "skipped 1 damaged trace file;";
    let (code, _, said) = run(&["convert", "kernelslist.g", "-o", "a.gpt", "--skip-damaged"]);
    assert!(code == Some(0) && said.contains(words), "{said}");
    assert!(run(&["inspect", "a.gpt"]).1.contains(words));
    let direct = ["analyze", "kernelslist.g", "-m", "v100", "--json", "-", "--skip-damaged"];
    for arguments in [&["analyze", "a.gpt", "-m", "v100", "--json", "-"][..], &direct] {
        let (code, record, said) = run(arguments);
        assert!(code == Some(0) && record.contains(words), "{said}");
    }
    assert_eq!(run(&direct[..6]).0, Some(2));
}

#[test]
fn published_kinds_of_faults_convert() {
    for (case, warned) in
        [("line-ends/version-7", "version `7` is not known"), ("many-streams/negative", "")]
    {
        let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/reference/cases");
        let path = cases.join(case);
        if !path.exists() {
            return skip::skipped(&format!("no {}", path.display()));
        }
        let out = tempfile::tempdir().unwrap();
        let report = converted(&path, &out.path().join("out.gpt"), false).unwrap();
        let said = report.warnings.join("\n");
        assert!(said.contains(warned), "{case}: {said}");
    }
}
