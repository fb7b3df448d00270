//! Does a `.tracez` equal its text, and is a damaged one refused?

use std::fs;
use std::path::{Path, PathBuf};

use gpumodel::core::units::Dim3;
use gpumodel::trace::{ConvertRequest, Silent, Store, TraceError, convert, expand};

use crate::packing::{Packing, packed};
use crate::rendering::{converted, grouped, reference, text};

/// Two thread blocks with address modes 0, 1 and 2, tails and an empty warp.
const SMALL: &str = include_str!("../../traces/golden/v1.traceg");

/// All files below `folder` that hold one kernel's trace.
fn traces(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                open.push(path);
            } else if name.contains(".trace") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The store of `bytes` as the file `name`.
fn store(folder: &Path, name: &str, bytes: &[u8]) -> Result<Store, TraceError> {
    let input = folder.join(name);
    fs::write(&input, bytes).unwrap();
    let output = folder.join(format!("{name}.gpt"));
    let request =
        ConvertRequest { inputs: vec![input], output: output.clone(), ..Default::default() };
    convert(&request, &Silent)?;
    Store::open(&output)
}

fn hash(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let store = store(folder, name, bytes).unwrap();
    store.verify().unwrap();
    store.content_hash()
}

/// Cluster lines that are zero all over a launch say nothing and are not kept.
fn without_zero_clusters(text: &str) -> String {
    let zero = |line: &&str| {
        ["cluster id = 0,0,0", "cluster cta = 0,0,0", "cluster rank = 0"].contains(line)
    };
    text.lines().filter(|line| !zero(line)).flat_map(|line| [line, "\n"]).collect()
}

fn survives(path: &Path, packing: Packing) {
    let folder = tempfile::tempdir().unwrap();
    let text = without_zero_clusters(&text(path));
    let plain = hash(folder.path(), "kernel-1.text", text.as_bytes());
    let binary = hash(folder.path(), "kernel-1.other", &packed(&text, packing));
    assert_eq!(plain, binary, "{}", path.display());
}

#[test]
fn committed_samples_survive_in_binary() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces");
    for (number, path) in traces(&samples).iter().enumerate() {
        let chunk = [1, 7, 256, 100_000][number % 4];
        let dictionary = [0, 300, 8 << 10][number % 3];
        survives(path, Packing { chunk, dictionary, ..Packing::default() });
    }
}

#[test]
fn real_traces_survive_in_binary() {
    let Some(reference) = reference() else { return };
    for folder in ["real", "generated"] {
        for path in traces(&reference.join(folder)) {
            survives(&path, Packing::default());
        }
    }
}

#[test]
fn clusters_are_kept_as_the_text_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let lines = "0,0,0\ncluster id = 3,0,0\ncluster cta = 0,0,0\ncluster rank = 0\n";
    let other = "1,0,0\ncluster id = 3,0,0\ncluster cta = 1,0,0\ncluster rank = 1\n";
    let text = without_zero_clusters(SMALL);
    let text = text.replace("block = 0,0,0\n", &format!("block = {lines}"));
    let text = text.replace("block = 1,0,0\n", &format!("block = {other}"));
    let packed = packed(&text, Packing::default());
    let binary = store(folder.path(), "binary", &packed).unwrap();
    assert_eq!(hash(folder.path(), "text", text.as_bytes()), binary.content_hash());
    let note = binary.tails(0, 1).unwrap().note;
    assert_eq!(note, b"cluster id = 3,0,0\ncluster cta = 1,0,0\ncluster rank = 1");
}

#[test]
fn the_expanded_text_is_the_grouped_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tracez");
    fs::write(&path, packed(SMALL, Packing { chunk: 2, ..Packing::default() })).unwrap();
    let mut expanded = Vec::new();
    expand(&path, &mut expanded).unwrap();
    let expanded = String::from_utf8(expanded).unwrap();
    assert_eq!(grouped(&expanded), grouped(&without_zero_clusters(SMALL)));
    assert!(expanded.starts_with("-kernel name = small\n"));
}

#[test]
fn lists_and_folders_take_them_and_any_thread_count_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let bytes = packed(SMALL, Packing::default());
    fs::create_dir(at("listed")).unwrap();
    fs::create_dir(at("bare")).unwrap();
    for id in [2, 10] {
        let text = SMALL.replace("-kernel id = 3", &format!("-kernel id = {id}"));
        let bytes = packed(&text, Packing::default());
        fs::write(at(&format!("bare/kernel-{id}.tracez")), bytes).unwrap();
    }
    // The text of the same kernel is not taken a second time.
    fs::write(at("bare/kernel-2.traceg"), SMALL).unwrap();
    fs::write(at("listed/kernel-1.tracez"), &bytes).unwrap();
    fs::write(at("listed/kernelslist.g"), "MemcpyHtoD,0x10,4\nkernel-1.tracez\n").unwrap();
    let bare = converted(&at("bare"), folder.path());
    let ids = (0..bare.kernel_count()).map(|kernel| bare.kernel(kernel).launch().id);
    assert_eq!(ids.collect::<Vec<_>>(), [2, 10]);
    assert_eq!(converted(&at("listed"), folder.path()).commands().count(), 2);
    let stores = [1, 4].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| converted(&at("bare"), folder.path()));
        fs::read(at("out.gpt")).unwrap()
    });
    assert!(stores[0] == stores[1]);
}

/// The output of a conversion of `bytes`; an error may leave no files.
fn attempt(bytes: &[u8]) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let said = store(folder.path(), "k.tracez", bytes).and_then(|store| {
        store.verify()?;
        Ok(store.content_hash())
    });
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1 + usize::from(said.is_ok()));
    said.map_err(|error| error.to_string())
}

#[test]
fn a_file_cut_anywhere_is_refused_with_the_place() {
    let bytes = packed(SMALL, Packing { chunk: 2, dictionary: 0, level: 3 });
    let nul = bytes.iter().position(|&byte| byte == 0).unwrap();
    for end in nul + 1..bytes.len() {
        let error = attempt(&bytes[..end]).unwrap_err();
        let placed = error.contains("k.tracez: byte ") && error.contains("expected");
        assert!(placed, "cut to {end}: {error}");
    }
}

#[test]
fn every_flipped_byte_is_an_error_or_a_store() {
    let bytes = packed(SMALL, Packing { chunk: 2, dictionary: 300, level: 3 });
    let nul = bytes.iter().position(|&byte| byte == 0).unwrap();
    let index = usize::try_from(place(&bytes)).unwrap();
    let mut refused = 0;
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] ^= flip;
            let said = attempt(&bytes);
            if at >= nul
                && let Err(error) = &said
            {
                assert!(error.contains("k.tracez: byte ") || at == nul, "byte {at}: {error}");
            }
            refused += usize::from(at >= index && said.is_err());
        }
    }
    // In the index only positions and clusters may change unnoticed.
    assert!(refused * 2 > (bytes.len() - index) * 3, "{refused} of {}", bytes.len() - index);
}

/// The place of the index.
fn place(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[bytes.len() - 8..].try_into().unwrap())
}

/// The error after the bytes at `at` were replaced by `new`.
fn error_with(at: usize, new: &[u8]) -> String {
    let mut bytes = packed(SMALL, Packing { chunk: 2, dictionary: 300, level: 3 });
    bytes[at..at + new.len()].copy_from_slice(new);
    attempt(&bytes).unwrap_err()
}

#[test]
fn false_numbers_are_named_with_their_place() {
    let bytes = packed(SMALL, Packing { chunk: 2, dictionary: 300, level: 3 });
    let nul = bytes.iter().position(|&byte| byte == 0).unwrap();
    let index = usize::try_from(place(&bytes)).unwrap();
    let most = [0xff; 8];
    let wrong = |at: usize, new: &[u8], wanted: &str| {
        let error = error_with(at, new);
        assert!(error.contains(wanted), "{wanted}: {error}");
        error
    };
    let error = wrong(nul + 1, &most[..4], "expected a dictionary of 4294967295 bytes");
    assert!(error.contains(&format!("byte {}", nul + 9)), "{error}");
    wrong(bytes.len() - 8, &most, "expected the place of the index");
    let error = wrong(index, &most[..4], "thread blocks that fit into");
    assert!(error.contains(&format!("byte {index}")), "{error}");
    wrong(index + 4, &[2, 0, 0, 0], "inside the grid (2,1,1)");
    wrong(index + 44, &most[..4], "at most 2 warps");
    wrong(index + 48, &most[..4], "4294967295 instructions in the sub-chunks");
    wrong(index + 52, &most[..4], "the sub-chunks' counts of 17179869180 bytes");
    wrong(index + 56, &most, "a payload from");
    let warp =
        usize::try_from(u64::from_le_bytes(bytes[index + 56..index + 64].try_into().unwrap()));
    let warp = warp.unwrap();
    wrong(warp, &most[..4], "4 instructions in 2 sub-chunks, as the index says");
    wrong(warp + 8, &most[..4], "a zstd frame of 4294967295 bytes");
    wrong(warp + 12, &most[..4], "a zstd frame, found other bytes");
}

#[test]
fn frames_without_a_size_and_bombs_are_refused() {
    let bytes = packed(SMALL, Packing { chunk: 100, dictionary: 0, level: 3 });
    let bomb = |size: u64| {
        let line = "0000 ffffffff 1 R1 MOV 0 0 0 \n";
        let text = line.repeat(usize::try_from(size).unwrap() / line.len());
        zstd::bulk::compress(text.as_bytes(), 1).unwrap()
    };
    let bomb = with_first_frame(&bytes, &bomb(80 << 20));
    assert!(attempt(&bomb).unwrap_err().contains("a frame of at most 16777216 bytes"));
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_contentsize(false).unwrap();
    std::io::Write::write_all(&mut encoder, b"0000 ffffffff 1 R1 MOV 0 0 0\n").unwrap();
    let sizeless = with_first_frame(&bytes, &encoder.finish().unwrap());
    assert!(attempt(&sizeless).unwrap_err().contains("states its content's size"));
    let frames = "insts = 4\n0000 ffffffff 1 R1 MOV 0 0 0\n";
    let frames = with_first_frame(&bytes, &zstd::bulk::compress(frames.as_bytes(), 1).unwrap());
    assert!(attempt(&frames).unwrap_err().contains("instruction lines alone"));
    let more = "0000 ffffffff 1 R1 MOV 0 0 0\n".repeat(5);
    let more = with_first_frame(&bytes, &zstd::bulk::compress(more.as_bytes(), 1).unwrap());
    assert!(attempt(&more).unwrap_err().contains("4 instruction lines, as `insts` says"));
}

/// A file whose first warp, of one sub-chunk, has another payload with `frame`
/// behind all others.
fn with_first_frame(bytes: &[u8], frame: &[u8]) -> Vec<u8> {
    let index = usize::try_from(place(bytes)).unwrap();
    let le = |number: usize| u64::try_from(number).unwrap().to_le_bytes();
    let mut out = bytes[..index].to_vec();
    let head = &bytes[index + 48..index + 56];
    assert_eq!(head[4..], [1, 0, 0, 0]);
    out.extend_from_slice(head);
    out.extend_from_slice(&le(frame.len())[..4]);
    out.extend_from_slice(frame);
    let place = out.len();
    out.extend_from_slice(&bytes[index..bytes.len() - 8]);
    out[place + 56..place + 64].copy_from_slice(&le(index));
    out.extend_from_slice(&le(place));
    out
}

#[test]
fn nested_compression_is_refused_and_a_file_without_blocks_is_empty() {
    let bytes = packed(SMALL, Packing::default());
    let again = attempt(&zstd::bulk::compress(&bytes, 3).unwrap()).unwrap_err();
    assert!(again.contains("one inside zstd"), "{again}");
    let header = SMALL.split("#BEGIN_TB").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let empty = store(folder.path(), "empty", &packed(header, Packing::default()));
    assert_eq!(empty.unwrap().kernel(0).cta_count(), 0);
    assert_eq!(
        Dim3::new(2, 1, 1),
        converted(&folder.path().join("empty"), folder.path()).kernel(0).launch().grid
    );
}
