//! Are faults of traces told as such: versions, handles, damaged files among good ones?

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use gpumodel::trace::{ConvertReport, ConvertRequest, Silent, Store, TraceError, convert};

use crate::skip;

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
