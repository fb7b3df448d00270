//! Does every record of a trace survive the store?

use std::fs;
use std::path::{Path, PathBuf};

use gpumodel::core::memory_copy::MemoryCopy;
use gpumodel::trace::{Command, ConvertRequest, Silent, Store, convert, export};

use crate::rendering::{compare_all, converted, reference, text};

/// The trace folders of one group that hold traces of ours.
fn folders(reference: &Path, group: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(reference.join(group)).unwrap();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| !folder.ends_with("memtrace_logs"));
    folders.sort();
    folders
}

/// The kernel files of a list.
fn listed(list: &Path) -> Vec<PathBuf> {
    let lines = fs::read_to_string(list).unwrap();
    let kernels = lines.lines().filter(|line| line.starts_with("kernel"));
    kernels.map(|line| list.with_file_name(line.trim())).collect()
}

fn lists(folder: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.to_string_lossy().contains("kernelslist")).collect()
}

fn survives(input: &Path, traces: &[PathBuf]) {
    let scratch = tempfile::tempdir().unwrap();
    let store = converted(input, scratch.path());
    store.verify().unwrap();
    assert_eq!(store.kernel_count(), traces.len(), "{}", input.display());
    for (kernel, trace) in traces.iter().enumerate() {
        compare_all(&store, kernel, &text(trace));
    }
}

fn group_survives(group: &str) {
    let Some(reference) = reference() else { return };
    for folder in folders(&reference, group) {
        let lists = lists(&folder);
        if lists.is_empty() {
            survives(&folder, &[folder.join("kernel-1.traceg")]);
        }
        for list in lists {
            survives(&list, &listed(&list));
        }
    }
}

#[test]
fn real_traces_survive() {
    group_survives("real");
}

#[test]
fn traces_of_programs_survive() {
    group_survives("apps");
}

#[test]
fn generated_traces_survive() {
    group_survives("generated");
}

#[test]
fn raw_and_grouped_forms_have_one_hash() {
    let Some(reference) = reference() else { return };
    for folder in ["decoder_sm89_raw_and_grouped", "two_streams_sm75_raw_and_grouped"] {
        let hashes = lists(&reference.join("real").join(folder)).into_iter().map(|list| {
            let scratch = tempfile::tempdir().unwrap();
            converted(&list, scratch.path()).content_hash()
        });
        let hashes: Vec<String> = hashes.collect();
        assert_eq!(hashes.len(), 2);
        assert_eq!(hashes[0], hashes[1], "{folder}");
    }
}

#[test]
fn stores_are_as_small_as_promised() {
    let Some(reference) = reference() else { return };
    let (mut text, mut source, mut stored) = (0, 0, 0);
    for group in ["real", "apps", "generated"] {
        for folder in folders(&reference, group) {
            let scratch = tempfile::tempdir().unwrap();
            let store = converted(&folder, scratch.path());
            let kernels = (0..store.kernel_count()).map(|kernel| store.kernel(kernel));
            let (mut folder_text, mut folder_source) = (0, 0);
            for kernel in kernels {
                folder_text += kernel.text_bytes();
                folder_source += kernel.source_bytes();
            }
            assert!(store.file_bytes() <= 8 * folder_source, "{}", folder.display());
            (text, source) = (text + folder_text, source + folder_source);
            stored += store.file_bytes();
        }
    }
    // Measured 2026-11-21: 0.74 % of the text, 0.50 of the compressed files.
    assert!(stored * 100 <= text, "{stored} of {text}");
    assert!(stored * 4 <= source * 3, "{stored} of {source}");
}

#[test]
fn commands_keep_their_order() {
    let Some(reference) = reference() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let store = converted(&reference.join("apps/mriq"), scratch.path());
    let copy = |address, bytes| Command::Copy(MemoryCopy::to_device(address, bytes));
    let expected = [
        copy(0x7f40_0100_0000, 2048),
        copy(0x7f40_0100_0800, 2048),
        Command::Kernel(0),
        copy(0x7f40_0100_1a00, 8192),
        copy(0x7f40_0100_3a00, 8192),
        copy(0x7f40_0100_5a00, 8192),
        Command::Kernel(1),
    ];
    assert_eq!(store.commands().collect::<Vec<_>>(), expected);
    let launch = store.kernel(1).launch();
    assert_eq!(
        launch.name,
        text(&reference.join("apps/mriq/kernel-2.traceg.xz"))
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("-kernel name = "))
            .unwrap()
    );
    assert_eq!(store.kernel(1).warp_instructions(), 1_918_848);
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let Some(reference) = reference() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let stores = [1, 2, 5].map(|threads| {
        let output = scratch.path().join(format!("{threads}.gpt"));
        let inputs = vec![reference.join("apps/BlackScholes"), reference.join("apps/bfs")];
        let request = ConvertRequest { inputs, output: output.clone(), ..Default::default() };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| convert(&request, &Silent)).unwrap();
        assert!(Store::open(&output).is_ok());
        fs::read(output).unwrap()
    });
    assert!(stores[0] == stores[1] && stores[1] == stores[2]);
}

#[test]
fn text_written_from_a_store_equals_its_source() {
    let Some(reference) = reference() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folders = ["apps/bfs", "real/atax_v6_sm90", "real/decoder_sm89_raw_and_grouped"];
    for (number, folder) in folders.into_iter().enumerate() {
        let store = converted(&reference.join(folder), scratch.path());
        let output = scratch.path().join(number.to_string());
        let request = ConvertRequest { output: output.clone(), ..Default::default() };
        assert_eq!(export(&store, &request).unwrap(), store.kernel_count());
        let hash = store.content_hash();
        assert_eq!(converted(&output, scratch.path()).content_hash(), hash, "{folder}");
        assert_eq!(export(&store, &request).unwrap(), store.kernel_count(), "replaced");
        assert_eq!(converted(&output, scratch.path()).content_hash(), hash, "{folder}");
    }
    let grouped = text(&scratch.path().join("2/kernel-1.traceg"));
    let folder = reference.join("real/decoder_sm89_raw_and_grouped");
    let original = text(&folder.join("kernel-1-ctx_0x55ddb0567af0.traceg.xz"));
    let lines = |text: &str| text.lines().filter(|l| !l.is_empty()).map(str::to_owned).collect();
    let [grouped, original]: [Vec<String>; 2] = [lines(&grouped), lines(&original)];
    assert!(grouped == original, "the tracer's own lines, byte by byte");
}
