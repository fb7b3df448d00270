//! Is a cached conversion used when valid, and made again otherwise?

use std::fs;
use std::path::{Path, PathBuf};

use gpumodel::app::{App, AppName, RunError};
use gpumodel::trace::Silent;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/samples").join(name)
}

fn open(path: &Path, cache: &Path) -> Result<App, RunError> {
    let typed = AppName { name: String::from("x"), path: path.to_path_buf() };
    App::open(&typed, None, cache, &Silent)
}

/// The only file of the cache that ends so.
fn only(cache: &Path, ending: &str) -> PathBuf {
    let files = fs::read_dir(cache.join("stores")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.to_string_lossy().ends_with(ending)).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[test]
fn damaged_conversions_are_made_again_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let source = sample("reduce");
    let hash = open(&source, &cache).unwrap().store.content_hash();
    let again = open(&source, &cache).unwrap();
    assert!(again.warnings.is_empty(), "{:?}", again.warnings);
    for (ending, place) in [(".gpt", 300), (".gpt", 20), (".notes", 3)] {
        let file = only(&cache, ending);
        let mut bytes = fs::read(&file).unwrap();
        bytes[place] ^= 1;
        fs::write(&file, bytes).unwrap();
        let mended = open(&source, &cache).unwrap();
        assert!(mended.warnings[0].contains("made again"), "{ending} {place}");
        assert_eq!(mended.store.content_hash(), hash);
        mended.store.verify().unwrap();
        assert!(open(&source, &cache).unwrap().warnings.is_empty());
    }
}

#[cfg(unix)]
#[test]
fn a_list_is_converted_again_when_a_file_elsewhere_changes() {
    let folder = tempfile::tempdir().unwrap();
    let [cache, lists, traces] = ["cache", "lists", "kernel-traces"].map(|n| folder.path().join(n));
    fs::create_dir_all(&lists).unwrap();
    fs::create_dir_all(&traces).unwrap();
    let trace = traces.join("one.traceg.xz");
    let copy = |name: &str| fs::copy(sample(name).join("kernel-1.traceg.xz"), &trace).unwrap();
    // A list names files in its folder; a link there may lead anywhere.
    std::os::unix::fs::symlink(&traces, lists.join("kernels")).unwrap();
    let list = lists.join("kernelslist.g");
    fs::write(&list, "kernels/one.traceg.xz\n").unwrap();
    copy("saxpy");
    let saxpy = open(&list, &cache).unwrap().store.content_hash();
    copy("reduce");
    let reduce = open(&list, &cache).unwrap().store.content_hash();
    assert_ne!(saxpy, reduce);
    assert_eq!(open(&list, &cache).unwrap().store.content_hash(), reduce);
}

#[test]
fn a_read_only_cache_is_one_error() {
    let folder = tempfile::tempdir().unwrap();
    let source = sample("saxpy");
    let taken = folder.path().join("taken");
    fs::write(&taken, "a file").unwrap();
    let error = open(&source, &taken).unwrap_err();
    assert!(matches!(error, RunError::Cache { .. }), "{error}");
    // A folder in the way of the store, as good as one that refuses it.
    let cache = folder.path().join("cache");
    open(&source, &cache).unwrap();
    let stored = only(&cache, ".gpt");
    fs::remove_file(&stored).unwrap();
    fs::create_dir(&stored).unwrap();
    let error = open(&source, &cache).unwrap_err();
    assert!(matches!(error, RunError::Cache { .. }), "{error}");
    assert!(error.to_string().contains("GPUMODEL_CACHE"), "{error}");
}
