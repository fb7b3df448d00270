//! Is a workload model's store, made without text, equal to the store of its text?

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use gpumodel::app::{App, AppName, RunError};
use gpumodel::trace::workload::{Compression, Workload, write_folder};
use gpumodel::trace::{ConvertRequest, Silent, Store, convert};

use crate::synth::small;

/// The application `synth:MODEL`, its store in `cache`.
fn open(model: &str, cache: &Path) -> Result<App, RunError> {
    let path = PathBuf::from(format!("synth:{model}"));
    App::open(&AppName { name: String::from("x"), path }, None, cache, &Silent)
}

/// The store of a workload's texts, in `folder`.
fn of_texts(name: &str, scale: f64, folder: &Path) -> Store {
    let workload = Workload::load_scaled(name, &gpumodel::models(), scale).unwrap();
    let texts = folder.join("texts");
    write_folder(&workload, &texts, Compression::None, &mut |_| {}).unwrap();
    let output = folder.join("texts.gpt");
    let inputs = vec![texts];
    convert(&ConvertRequest { inputs, output: output.clone(), ..Default::default() }, &Silent)
        .unwrap();
    Store::open(&output).unwrap()
}

#[test]
fn a_store_made_without_text_equals_the_store_of_its_text() {
    // The first two have several chunks: of CTAs that repeat each other, and of others.
    for (name, scale) in [
        ("compute", 1.0),
        ("gather", 1.0),
        ("gather-skewed", 0.1),
        ("gaussian", 0.05),
        ("histogram", 0.1),
        ("ilp-ray", 0.1),
        ("lavamd", 0.01),
        ("matmul-tiled", 0.1),
        ("md5hash", 0.0002),
        ("reduce", 0.2),
        ("sparse-rows", 0.1),
        ("two-streams", 0.3),
        ("ugpu-pf", 0.001),
        ("ws-nn", 0.01),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let app = open(&format!("{name}:scale={scale}"), &folder.path().join("cache")).unwrap();
        let texts = of_texts(name, scale, folder.path());
        assert_eq!(app.store.content_hash(), texts.content_hash(), "{name}");
        // All but the sizes of the texts, which have none, and the name of their folder.
        let chunks = |store: &Store| -> Vec<u64> {
            (0..store.kernel_count()).map(|one| store.kernel(one).compressed_bytes()).collect()
        };
        assert_eq!(chunks(&app.store), chunks(&texts), "{name}");
        app.store.verify().unwrap();
    }
}

#[test]
fn the_size_of_a_missing_text_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let app = open("saxpy:scale=0.05", &folder.path().join("cache")).unwrap();
    let texts = of_texts("saxpy", 0.05, folder.path());
    let inspected = |store: &Store, words: &[&str]| {
        let mut inspect = Command::cargo_bin("gpumodel").unwrap();
        inspect.arg("inspect").arg(store.path()).args(words);
        String::from_utf8(inspect.output().unwrap().stdout).unwrap()
    };
    let json = |store: &Store| -> serde_json::Value {
        serde_json::from_str(&inspected(store, &["--json", "-"])).unwrap()
    };
    let (without, with) = (json(&app.store), json(&texts));
    for key in ["store_over_text", "store_over_source"] {
        assert!(without.get(key).unwrap().is_null(), "{key}: {without}");
        assert!(with[key].as_f64().unwrap() > 0.0, "{key}: {with}");
    }
    let (without, with) = (inspected(&app.store, &[]), inspected(&texts, &[]));
    let reported = "made without text, from a program or a workload model";
    assert!(without.contains(reported) && !without.contains("% of the text"), "{without}");
    assert!(with.contains("% of the text") && !with.contains(reported), "{with}");
}

#[test]
fn bytes_are_the_same_on_any_number_of_threads() {
    let bytes = |threads: usize| {
        let folder = tempfile::tempdir().unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let app = open("gather:scale=0.9", folder.path()).unwrap();
            fs::read(app.store.path()).unwrap()
        })
    };
    assert!(bytes(1) == bytes(3));
}

#[test]
fn an_impossible_cta_is_named_and_leaves_no_store() {
    let folder = tempfile::tempdir().unwrap();
    let (file, cache) = (folder.path().join("own.toml"), folder.path().join("cache"));
    let code = r#""R2 = LDG.E.SYS R4 [x + 4096 * cta]", "EXIT","#;
    fs::write(&file, small(code)).unwrap();
    let error = open(file.to_str().unwrap(), &cache).unwrap_err().to_string();
    let place = format!("{}:13: kernel `k`, CTA (1,0,0), warp 0: lane 0: ", file.display());
    assert!(error.starts_with(&place), "{error}");
    assert_eq!(fs::read_dir(cache.join("stores")).unwrap().count(), 0);
}
