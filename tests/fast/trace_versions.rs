//! Is every version of the tracer's text read, and written back unchanged? Can stores of every
//! released version still be read, record by record?
//!
//! `traces/golden` has, per version of the format, a small trace as text and the
//! store that the program of that version made from it. To add a version:
//! write the text, run this test with `BLESS=1`, commit both; never bless an old
//! version again.

use std::fs;
use std::path::{Path, PathBuf};

use gpumodel::core::isa::Access;
use gpumodel::core::units::counted;
use gpumodel::trace::{ConvertRequest, Silent, Store, convert, export};

use crate::packing::{Packing, packed};
use crate::rendering::{compare_all, converted};

/// One block of one warp in the form of one version.
struct Sample {
    name: &'static str,
    /// Header lines after the six that every version has.
    header: &'static str,
    raw: bool,
    /// Further lines of the block's frame.
    frame: &'static str,
    lines: &'static [&'static str],
    /// The lines as they are written back, where they are other ones.
    back: Option<&'static [&'static str]>,
    /// Every address of active lanes, in order.
    addresses: &'static [u64],
    /// Lines that are kept as text from the sources on.
    open: u64,
}

const NONE: Sample = Sample {
    name: "",
    header: "",
    raw: false,
    frame: "",
    lines: &[],
    back: None,
    addresses: &[],
    open: 0,
};

const SAMPLES: &[Sample] = &[
    Sample {
        name: "before 1.2: CTA and warp first, full addresses of 16 digits",
        lines: &[
            "0 0 0 0 0008 ffffffff 1 R1 MOV 0 0 ",
            "0 0 0 0 0010 00000003 1 R4 LDG.E 1 R2 4 1 0x00007f0000000000 4 ",
            "0 0 0 0 0018 00000005 1 R5 LDG.E 1 R2 4 0 0x00007f0000000010 0x00007f0000000000 ",
        ],
        back: Some(&[
            "0 0 0 0 0008 ffffffff 1 R1 MOV 0 0 ",
            "0 0 0 0 0010 00000003 1 R4 LDG.E 1 R2 4 1 0x7f0000000000 4 ",
            "0 0 0 0 0018 00000005 1 R5 LDG.E 1 R2 4 0 0x7f0000000010 0x7f0000000000 ",
        ]),
        addresses: &[0x7f00_0000_0000, 0x7f00_0000_0004, 0x7f00_0000_0010, 0x7f00_0000_0000],
        ..NONE
    },
    Sample {
        name: "1.2: CTA and warp first",
        header: "-nvbit version = 1.4\n-accelsim tracer version = 1.2\n",
        lines: &[
            "0 0 0 0 0000 ffffffff 1 R1 IMAD.MOV.U32 2 R255 R255 0 ",
            "0 0 0 0 0010 00000003 0 STG.E.SYS 2 R2 R4 4 1 0x7f0000000000 8 ",
        ],
        addresses: &[0x7f00_0000_0000, 0x7f00_0000_0008],
        ..NONE
    },
    Sample {
        name: "3: differences, no immediate",
        header: "-nvbit version = 1.5.3\n-accelsim tracer version = 3\n",
        lines: &[
            "0000 ffffffff 1 R1 MOV 0 0 ",
            "0010 0000000b 1 R4 LDG.E 1 R2 4 2 0x7f0000000100 4 -260 ",
            "0020 00000000 0 STG.E 2 R2 R4 4 1 0x0 0 ",
        ],
        addresses: &[0x7f00_0000_0100, 0x7f00_0000_0104, 0x7f00_0000_0000],
        ..NONE
    },
    Sample {
        name: "4: source lines",
        header: "-accelsim tracer version = 4\n-enable lineinfo = 1\n",
        lines: &["17 0000 ffffffff 1 R1 MOV 0 0 ", "0 0010 00000001 1 R4 LDS.U 1 R2 4 2 0x40 "],
        addresses: &[0x40],
        ..NONE
    },
    Sample {
        name: "late 4: an immediate on every line",
        header: "-accelsim tracer version = 4\n-enable lineinfo = 0\n",
        lines: &["0000 ffffffff 0 LDGDEPBAR 0 0 0 ", "0010 ffffffff 0 DEPBAR.LE 0 0 2 "],
        ..NONE
    },
    Sample {
        name: "5: what a private dialect stored",
        header: "-nvbit version = 1.7.4\n-accelsim tracer version = 5\n-enable lineinfo = 0\n",
        lines: &[
            "0000 00000003 0 STG.E 2 R2 R4 4 1 0x7f0000000000 4 0 STORE_DATA I32 1 REG0:T0:7 T1:8 ",
        ],
        addresses: &[0x7f00_0000_0000, 0x7f00_0000_0004],
        ..NONE
    },
    Sample {
        name: "5, raw: of each LDGSTS the record with the global address",
        header: "-accelsim tracer version = 5\n-enable lineinfo = 0\n",
        raw: true,
        lines: &[
            "0 0 0 0 0000 00000003 0 LDGSTS.E 2 R1 R2 4 1 0x40 4 0 ",
            "0 0 0 0 0000 00000003 0 LDGSTS.E 2 R1 R2 4 1 0x7f0000000000 4 0 ",
        ],
        back: Some(&["0000 00000003 0 LDGSTS.E 2 R1 R2 4 1 0x7f0000000000 4 0 "]),
        addresses: &[0x7f00_0000_0000, 0x7f00_0000_0004],
        ..NONE
    },
    Sample {
        name: "5, raw, with the tracer's SM and warp slot",
        header: "-accelsim tracer version = 5\n-enable lineinfo = 1\n",
        raw: true,
        lines: &["0 0 0 0 13 7 99 0000 ffffffff 1 R1 MOV 0 0 5 "],
        back: Some(&["99 0000 ffffffff 1 R1 MOV 0 0 5 "]),
        ..NONE
    },
    Sample {
        name: "late 5: two immediates, uniform registers, clusters",
        header: "-nvbit version = 1.8\n-accelsim tracer version = 5\n-enable lineinfo = 0\n",
        frame: "cluster id = 0,0,0\ncluster cta = 1,0,0\ncluster rank = 1\n",
        lines: &[
            "0000 ffffffff 1 UR4 S2UR 0 0 0 0 ",
            "0010 ffffffff 0 ISETP.GE.AND 2 R5 UR4 0 -1 192 ",
            "0020 00000003 1 R11 LDG.E 1 R2 4 1 0x7f0000000000 4 0 0 ",
        ],
        addresses: &[0x7f00_0000_0000, 0x7f00_0000_0004],
        ..NONE
    },
    Sample {
        name: "6: values, several destinations",
        header: "-nvbit version = 1.8\n-accelsim tracer version = 6\n-enable lineinfo = 0\n",
        lines: &[
            "0000 ffffffff 1 R1 LDC 0 0 0 0 NoVal ",
            "0010 ffffffff 2 R4 R5 LDSM.16.M88.2 1 R2 2 1 0x0 16 0 0 NoVal ",
            "0020 00000001 1 R3 IADD3 2 R1 R2 0 0 0 Val 1 0x7 2 0x3 0x4 ",
        ],
        addresses: &[
            0x0, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x80, 0x90, 0xa0, 0xb0, 0xc0, 0xd0,
            0xe0, 0xf0, 0x100, 0x110, 0x120, 0x130, 0x140, 0x150, 0x160, 0x170, 0x180, 0x190,
            0x1a0, 0x1b0, 0x1c0, 0x1d0, 0x1e0, 0x1f0,
        ],
        ..NONE
    },
    Sample {
        name: "6, raw, with eleven fields first",
        header: "-accelsim tracer version = 6\n-enable lineinfo = 0\n",
        raw: true,
        lines: &["0 0 0 0 13 7 0 0 0 0 0 0000 ffffffff 1 R1 MOV 0 0 5 0 NoVal "],
        back: Some(&["0000 ffffffff 1 R1 MOV 0 0 5 0 NoVal "]),
        ..NONE
    },
    Sample {
        name: "TMA addresses and commit groups",
        header: "-accelsim tracer version = 6\n-enable lineinfo = 0\n",
        lines: &[
            "0000 00000001 0 UTMALDG.2D 2 UR8 UR4 16 3 0x7f0000000000 0x7f0000000080 0 0 NoVal ",
            "0000 00000001 0 UTMALDG.2D 2 UR8 UR4 16 4 0x7f0000001000 128 -64 0 0 NoVal ",
            "0010 ffffffff 1 R24 HGMMA.64x64x16.F32 2 R24 UR4 3 0 0 0 NoVal ",
            "0020 00000001 1 R4 LDG.E 1 R2 4 2 0x7f0000000000 0 0 NoVal ",
        ],
        addresses: &[0x7f00_0000_0000],
        open: 3,
        ..NONE
    },
];

/// The text of a trace: `lines` in their frame unless `raw`.
fn trace(sample: &Sample, raw: bool, lines: &[&str]) -> String {
    let Sample { header, frame, .. } = sample;
    let count = lines.len();
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let header = format!(
        "-kernel name = k\n-kernel id = 1\n-grid dim = (1,1,1)\n-block dim = (32,1,1)\n\
         -shmem = 0\n-nregs = 8\n{header}\n#traces format = unreliable\n"
    );
    match raw {
        true => format!("{header}\n{lines}"),
        false => format!(
            "{header}\n#BEGIN_TB\n\nthread block = 0,0,0\n{frame}\nwarp = 0\ninsts = {count}\n\
             {lines}\n#END_TB\n"
        ),
    }
}

/// Every address that the store's only warp touches.
fn addresses(store: &Store) -> Vec<u64> {
    let code = store.code(0).unwrap();
    let mut cursor = store.cta(0, 0).unwrap().warp(0);
    let (mut access, mut found) = (Access::default(), Vec::new());
    while cursor.next_segment().is_some() {
        while let Some(number) = cursor.instruction() {
            let addressed = code.instructions[usize::try_from(number).unwrap()].width > 0;
            cursor.access(&mut access);
            found.extend(access.active().filter(|_| addressed).map(|(_, address)| address));
        }
    }
    found
}

fn written_back(store: &Store, folder: &Path) -> String {
    let output = folder.join("back");
    export(store, &ConvertRequest { output: output.clone(), ..Default::default() }).unwrap();
    fs::read_to_string(output.join("kernel-1.traceg")).unwrap()
}

fn full_lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.is_empty()).collect()
}

#[test]
fn every_version_is_understood_and_written_back() {
    for sample in SAMPLES {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("in");
        fs::write(&input, trace(sample, sample.raw, sample.lines)).unwrap();
        let store = converted(&input, folder.path());
        let back = sample.back.unwrap_or(sample.lines);
        let count = u64::try_from(back.len()).unwrap();
        assert_eq!(store.kernel(0).warp_instructions(), count, "{}", sample.name);
        assert_eq!(addresses(&store), sample.addresses, "{}", sample.name);
        let text = written_back(&store, folder.path());
        let expected = trace(sample, false, back);
        assert_eq!(full_lines(&text), full_lines(&expected), "{}", sample.name);
        fs::write(&input, packed(&expected, Packing::default())).unwrap();
        let hash = store.content_hash();
        assert_eq!(converted(&input, folder.path()).content_hash(), hash, "{}", sample.name);
    }
}

#[test]
fn fields_that_are_not_known_may_look_like_a_setting() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in");
    let instruction = "0000 ffffffff 1 R1 MOV 0 0 9 clock = 5 ";
    for line in [instruction.to_owned(), format!("0 0 0 0 {instruction}")] {
        fs::write(&input, trace(&NONE, false, &[&line])).unwrap();
        let store = converted(&input, folder.path());
        let hash = store.content_hash();
        fs::write(&input, written_back(&store, folder.path())).unwrap();
        assert_eq!(converted(&input, folder.path()).content_hash(), hash, "{line}");
        fs::remove_dir_all(folder.path().join("back")).unwrap();
    }
}

#[test]
fn unmodelled_features_are_counted_and_reported() {
    for sample in SAMPLES {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("in");
        fs::write(&input, trace(sample, sample.raw, sample.lines)).unwrap();
        let output = folder.path().join("out.gpt");
        let request =
            ConvertRequest { inputs: vec![input], output: output.clone(), ..Default::default() };
        let warnings = convert(&request, &Silent).unwrap().warnings.join("\n");
        let wanted = format!("{} of bulk copies", counted(sample.open, "line"));
        assert_eq!(warnings.contains(&wanted), sample.open > 0, "{}: {warnings}", sample.name);
        let mut inspect = assert_cmd::Command::cargo_bin("gpumodel").unwrap();
        let json = inspect.args(["inspect", "--json", "-"]).arg(&output).output().unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
        assert_eq!(json["unmodelled_instructions"], sample.open, "{}", sample.name);
    }
}

#[test]
fn lists_of_several_contexts_follow_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    for context in ["0x20", "0x100"] {
        let name = format!("kernel-1-ctx_{context}.traceg");
        let text = trace(&SAMPLES[2], false, SAMPLES[2].lines).replace("name = k", &name);
        write(&name, &text.replace(&name, &format!("name = {context}")));
        write(&format!("kernelslist_ctx_{context}"), &format!("{name}\n"));
    }
    let output = folder.path().join("out.gpt");
    let inputs = vec![folder.path().to_path_buf()];
    let request = ConvertRequest { inputs, output: output.clone(), ..Default::default() };
    let report = convert(&request, &Silent).unwrap();
    let said = "2 command lists, each of a context of its own, one after another: \
                kernelslist_ctx_0x20, kernelslist_ctx_0x100";
    assert!(report.warnings.iter().any(|one| one.contains(said)), "{:?}", report.warnings);
    let store = Store::open(&output).unwrap();
    let names = (0..store.kernel_count()).map(|kernel| store.kernel(kernel).launch().name);
    assert_eq!(names.collect::<Vec<_>>(), ["0x20", "0x100"]);
}

#[test]
fn bzip2_is_read_to_its_end_and_cut_ones_are_refused() {
    let text = trace(&SAMPLES[2], false, SAMPLES[2].lines);
    let pack = |text: &str| {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let (first, second) = text.split_at(text.len() / 2);
    let bytes = [pack(first), pack(second)].concat();
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("kernel-1.traceg.bz2");
    fs::write(&input, &bytes).unwrap();
    let store = converted(&input, folder.path());
    assert_eq!(store.kernel(0).text_bytes(), u64::try_from(text.len()).unwrap());
    fs::write(&input, &bytes[..bytes.len() - 5]).unwrap();
    let output = folder.path().join("cut.gpt");
    let request = ConvertRequest { inputs: vec![input], output, ..Default::default() };
    let error = convert(&request, &Silent).unwrap_err().to_string();
    assert!(error.contains("expected whole bzip2 data"), "{error}");
}

/// Every released version of the store; the last one is what this program writes.
const VERSIONS: &[&str] = &["v1"];

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/golden").join(name)
}

#[test]
fn every_golden_store_equals_its_text() {
    let scratch = tempfile::tempdir().unwrap();
    for version in VERSIONS {
        let text = golden(&format!("{version}.traceg"));
        let path = golden(&format!("{version}.gpt"));
        let fresh = converted(&text, scratch.path());
        if Some(version) == VERSIONS.last() && std::env::var_os("BLESS").is_some() {
            fs::copy(fresh.path(), &path).unwrap();
        }
        let store = Store::open(&path).unwrap();
        store.verify().unwrap();
        compare_all(&store, 0, &fs::read_to_string(&text).unwrap());
        assert_eq!(store.content_hash(), fresh.content_hash());
    }
}

#[test]
fn inspect_says_what_the_golden_store_holds() {
    let json = assert_cmd::Command::cargo_bin("gpumodel")
        .unwrap()
        .args(["inspect", "--verify", "--json", "-"])
        .arg(golden("v1.gpt"))
        .output()
        .unwrap();
    assert_eq!(json.status.code(), Some(0));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let kernel = &json["kernels"][0];
    assert_eq!(kernel["grid"], serde_json::json!([2, 1, 1]));
    assert_eq!([&kernel["warp_instructions"], &kernel["thread_instructions"]], [7, 165]);
    assert_eq!([&kernel["memory_instructions"], &kernel["registers"]], [3, 8]);
    // Lines 0x7f0000000000, …1000 (lanes at +0 and +8), …0f80 (lane at -16 from
    // there), …0100 and …0300; pages …0000 and …1000.
    assert_eq!(kernel["footprint"]["lines_128_bytes"], 5);
    assert_eq!(kernel["footprint"]["pages_4096_bytes"], 2);
    assert_eq!(kernel["mix"][0], serde_json::json!({"opcode": "EXIT", "warp_instructions": 3}));
}

#[test]
fn verify_ends_with_1_on_damage() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("damaged.gpt");
    let mut bytes = fs::read(golden("v1.gpt")).unwrap();
    bytes[100] ^= 1;
    fs::write(&path, bytes).unwrap();
    let mut inspect = assert_cmd::Command::cargo_bin("gpumodel").unwrap();
    let output = inspect.arg("inspect").arg("--verify").arg(&path).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("byte 80: expected the block's checksum"), "{text}");
}

#[test]
fn the_program_writes_a_store_back_as_text() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("text");
    let convert = |arguments: &[&str]| {
        let mut program = assert_cmd::Command::cargo_bin("gpumodel").unwrap();
        let program = program.arg("convert").arg(golden("v1.gpt")).arg("-o").arg(&folder);
        program.args(arguments).output().unwrap().status.code()
    };
    // A store is no trace.
    assert_eq!(convert(&[]), Some(2));
    assert_eq!(convert(&["--to", "traceg"]), Some(0));
    // Its own folder is replaced, another one is spared.
    assert_eq!(convert(&["--to", "traceg"]), Some(0));
    fs::remove_file(folder.join("gpumodel.tag")).unwrap();
    assert_eq!(convert(&["--to", "traceg"]), Some(2));
    assert_eq!(convert(&["--to", "traceg", "--force"]), Some(0));
    assert_eq!(fs::read_to_string(folder.join("kernelslist.g")).unwrap(), "kernel-1.traceg\n");
    let golden = Store::open(&golden("v1.gpt")).unwrap();
    assert_eq!(converted(&folder, scratch.path()).content_hash(), golden.content_hash());
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 2);
}
