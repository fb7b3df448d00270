//! Does the program name, read and write what a user expects: names from the source, one rule for
//! folders, settings from the environment, files of any name?

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;

use crate::sweep_place::Place;

/// The program in `folder`, without settings of the user.
fn program(folder: &Path) -> Command {
    let mut program = Command::new(assert_cmd::cargo::cargo_bin!("gpumodel"));
    program.current_dir(folder).env_remove("GPUMODEL_MACHINE");
    program
        .env("XDG_CONFIG_HOME", folder.join("config"))
        .env("GPUMODEL_CACHE", folder.join("cache"));
    program
}

fn run(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = program(folder).args(words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// The names of the applications of a record on standard output.
fn names(folder: &Path, words: &[&str]) -> Vec<String> {
    let (code, record, said) = run(folder, words);
    assert_eq!(code, Some(0), "{said}");
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let solo = record["solo"].as_array().unwrap();
    solo.iter().map(|app| app["app"].as_str().unwrap().to_owned()).collect()
}

/// A place with the traces `silicon/sgemm` and `rodinia/sgemm`.
fn place() -> Place {
    let place = Place::new();
    for (suite, trace) in [("silicon", "m"), ("rodinia", "s")] {
        fs::create_dir(place.path(suite)).unwrap();
        fs::rename(place.path(trace), place.path(suite).join("sgemm")).unwrap();
    }
    place
}

#[test]
fn an_application_is_called_by_what_it_was_made_from() {
    let place = place();
    let (root, inside) = (place.path("."), place.path("silicon/sgemm"));
    let (code, _, said) = run(&root, &["convert", "silicon/sgemm", "-o", "a.gpt"]);
    assert_eq!(code, Some(0), "{said}");
    let whole = inside.display().to_string();
    for (folder, way) in [
        (&root, "silicon/sgemm"),
        (&root, "./silicon/../silicon/sgemm/"),
        (&root, "silicon/sgemm/kernelslist.g"),
        (&root, whole.as_str()),
        (&inside, "."),
        (&root, "a.gpt"),
        (&inside, "../../a.gpt"),
    ] {
        let words = ["analyze", way, "-m", "v100", "--json", "/dev/stdout"];
        assert_eq!(names(folder, &words), ["silicon/sgemm"], "{way}");
    }
    let table = run(&root, &["analyze", "a.gpt", "-m", "v100"]).1;
    assert!(table.starts_with("sgemm on v100: "), "{table}");
    let table = run(&root, &["analyze", "a.gpt", "rodinia/sgemm", "-m", "v100"]).1;
    for name in ["sgemm (silicon) on v100: ", "sgemm (rodinia) on v100: "] {
        assert!(table.contains(name), "{table}");
    }
}

#[test]
fn a_table_s_row_may_be_of_the_last_component() {
    let place = place();
    let root = place.path(".");
    let words = ["analyze", "silicon/sgemm", "-m", "v100", "--json", "r.json", "-q"];
    assert_eq!(run(&root, &words).0, Some(0));
    let header = "machine,trace,launches,kernels,cycles";
    for (row, found) in [("sgemm", 0), ("silicon/sgemm", 0), ("silicon", 2), ("a/sgemm", 2)] {
        fs::write(place.path("t.csv"), format!("{header}\nv100,{row},all,1,5000\n")).unwrap();
        let (code, _, said) = run(&root, &["compare", "r.json", "--reference", "t.csv"]);
        assert_eq!(code, Some(found), "{row}: {said}");
    }
}

#[test]
fn the_default_machine_is_that_of_the_environment_else_of_the_config_file() {
    let place = place();
    let root = place.path(".");
    let machine = |variable: Option<&str>| {
        let mut program = program(&root);
        variable.map(|name| program.env("GPUMODEL_MACHINE", name));
        let output = program.args(["analyze", "silicon/sgemm"]).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let (code, said) = machine(None);
    assert!(code == Some(2) && said.contains("--machine <M,…>"), "{said}");
    assert!(said.contains("tip: `gpumodel machine list`") && said.contains("GPUMODEL_MACHINE"));
    assert!(machine(Some("gtx-1080")).1.contains("sgemm on gtx-1080: "));
    fs::create_dir_all(place.path("config/gpumodel")).unwrap();
    let config = place.path("config/gpumodel/config.toml");
    fs::write(&config, "machine = 'v100'\n").unwrap();
    assert!(machine(None).1.contains("sgemm on v100: "));
    assert!(machine(Some("gtx-1080")).1.contains("sgemm on gtx-1080: "));
    fs::write(&config, "machine = 'v1000'\n").unwrap();
    let (code, said) = machine(None);
    let names = "machine v1000, which ";
    assert!(
        code == Some(2) && said.contains(names) && said.contains("config.toml names"),
        "{said}"
    );
    fs::write(&config, "\nmachne = 'v100'\n").unwrap();
    let (code, said) = machine(None);
    assert!(code == Some(2) && said.contains("config.toml:2: unknown key `machne`"), "{said}");
    assert!(said.contains("did you mean `machine`?"), "{said}");
}

#[test]
fn quiet_is_quiet_verbose_tells_more_and_pipes_get_no_colour() {
    let place = place();
    let root = place.path(".");
    let convert = |more: &[&str]| {
        let words = [&["convert", "silicon/sgemm", "-o", "a.gpt"], more].concat();
        let (code, _, said) = run(&root, &words);
        assert!(code == Some(0) && !said.contains('\u{1b}'), "{said}");
        said
    };
    assert!(convert(&[]).contains("1 kernel,"));
    assert_eq!(convert(&["--quiet"]), "");
    assert!(convert(&["--verbose"]).contains("ended after "));
    let (code, _, said) = run(&root, &["inspect", "none", "-q"]);
    assert!(code == Some(2) && said.starts_with("error: ") && !said.contains('\u{1b}'), "{said}");
}

#[test]
fn paths_need_not_be_utf_8() {
    let place = place();
    let root = place.path(".");
    let odd = |bytes: &[u8]| root.join(std::ffi::OsStr::from_bytes(bytes));
    fs::create_dir(odd(b"a\xff")).unwrap();
    fs::rename(place.path("silicon/sgemm"), odd(b"a\xff/\xe4")).unwrap();
    let mut analyze = program(&root);
    analyze.args(["analyze", "-m", "v100"]).arg(odd(b"a\xff/\xe4"));
    analyze.arg("--json").arg(odd(b"\xfe.json")).arg("-o").arg(odd(b"\xfd"));
    analyze.assert().success();
    assert!(odd(b"\xfe.json").is_file() && odd(b"\xfd").join("index.html").is_file());
    let store = odd(b"a\xff/s.gpt");
    program(&root).arg("convert").arg(odd(b"a\xff/\xe4")).arg("-o").arg(&store).assert().success();
    program(&root).arg("inspect").arg(&store).assert().success();
}

#[test]
fn the_file_of_a_memory_standard_need_not_be_utf_8() {
    let place = place();
    let root = place.path(".");
    let spec = root.join(std::ffi::OsStr::from_bytes(b"own\xff.toml"));
    fs::write(&spec, "description = 'mine'\nbase = 'hbm2'\n").unwrap();
    fs::write(root.join("requests.txt"), "0 0x40 R\n").unwrap();
    let run = |spec: &std::path::Path| {
        let mut dram = program(&root);
        dram.args(["dram", "--requests", "requests.txt", "--json", "-", "--spec"]).arg(spec);
        let output = dram.assert().success();
        serde_json::from_slice::<serde_json::Value>(&output.get_output().stdout).unwrap()
    };
    let (mine, base) = (run(&spec), run("hbm2".as_ref()));
    assert_eq!(mine["last_read_done_cycle"], base["last_read_done_cycle"]);
    assert_ne!(mine["spec"], base["spec"]);
}

#[test]
fn paths_of_machines_and_models_need_not_be_utf_8() {
    let place = place();
    let root = place.path(".");
    let odd = |bytes: &[u8]| root.join(std::ffi::OsStr::from_bytes(bytes));
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let (machine, model) = (odd(b"a\xff.toml"), odd(b"m\xe4.toml"));
    fs::copy(models.join("gpus/gtx-1080.toml"), &machine).unwrap();
    fs::copy(models.join("workloads/saxpy.toml"), &model).unwrap();
    let mut app = std::ffi::OsString::from("A=synth:");
    app.push(&model);
    app.push(":scale=0.05");
    let analyze =
        |machine: &Path| program(&root).args(["analyze", "-m"]).arg(machine).arg(&app).assert();
    let table = analyze(&machine).success();
    let text = String::from_utf8_lossy(&table.get_output().stdout).into_owned();
    assert!(text.starts_with("A on a\u{fffd}: "), "{text}");
    for verb in ["show", "check"] {
        program(&root).args(["machine", verb]).arg(&machine).assert().success();
    }
    let synth =
        program(&root).arg("synth").arg(&model).args(["--scale", "0.01", "-o", "t"]).assert();
    synth.success();
    let refused = analyze(&odd(b"none\xff.toml")).code(2);
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(said.contains("cannot read ") && said.contains("none\u{fffd}.toml"), "{said}");
}

#[test]
fn a_foreign_folder_or_file_is_spared_unless_forced() {
    let place = place();
    let root = place.path(".");
    fs::create_dir(place.path("mine")).unwrap();
    fs::write(place.path("mine/notes"), "mine").unwrap();
    let analyze = ["analyze", "silicon/sgemm", "-m", "v100", "-q"];
    let text = "machines = ['v100']\nschemes = ['even']\n[mixes]\nlists = [['g']]\n";
    let plan = place.plan("plan", text);
    for words in [
        &[&analyze[..], &["-o", "mine"]].concat()[..],
        &["sweep", &plan, "-o", "mine"],
        &["synth", "saxpy", "--scale", "0.01", "-o", "mine"],
        &["convert", "silicon/sgemm", "--to", "traceg", "-o", "mine"],
        &["reproduce", "slate", "--quick", "-o", "mine"],
    ] {
        let (code, _, said) = run(&root, words);
        assert_eq!(code, Some(2), "{words:?}: {said}");
        assert!(
            said.contains("mine holds notes and is not ") && said.contains("--force"),
            "{said}"
        );
    }
    let (code, _, said) = run(&root, &[&analyze[..], &["-o", "mine", "--force"]].concat());
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(fs::read_to_string(place.path("mine/notes")).unwrap(), "mine");
    let again = run(&root, &[&analyze[..], &["-o", "mine"]].concat());
    assert_eq!(again.0, Some(0), "it is ours by now: {}", again.2);
}

#[test]
fn a_folder_of_folders_of_traces_names_them() {
    let place = place();
    let (code, _, said) = run(&place.path("."), &["analyze", "silicon", "-m", "v100"]);
    assert!(code == Some(2) && said.contains("; there are some in silicon/sgemm"), "{said}");
}

#[test]
fn every_write_error_names_its_file_after_the_table_is_shown() {
    let place = place();
    let root = place.path(".");
    let words = ["analyze", "silicon/sgemm", "-m", "v100", "--json", "/dev/full"];
    let (code, table, said) = run(&root, &words);
    assert!(code == Some(2) && said.contains("cannot write /dev/full: No space"), "{said}");
    assert!(table.starts_with("sgemm on v100: "), "{table}");
}

#[test]
fn inspect_takes_what_analyze_takes() {
    let place = place();
    let root = place.path(".");
    for app in ["silicon/sgemm", "silicon/sgemm/kernelslist.g", "a=silicon/sgemm", "synth:saxpy"] {
        let (code, text, said) = run(&root, &["inspect", app, "--json", "-"]);
        assert_eq!(code, Some(0), "{app}: {said}");
        assert!(text.contains("gpumodel.inspect/1"), "{app}");
    }
    let (code, text, _) = run(&root, &["inspect", "silicon/sgemm", "b=synth:saxpy"]);
    assert!(code == Some(0) && text.starts_with("sgemm:\n") && text.contains("\n\nb:\n"), "{text}");
    let (_, json, _) = run(&root, &["inspect", "silicon/sgemm", "synth:saxpy", "--json", "-"]);
    let both: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(both.as_array().is_some_and(|documents| documents.len() == 2), "{json}");
}

#[test]
fn the_version_names_the_commit_of_a_checkout_and_records_do_not() {
    let place = place();
    let root = place.path(".");
    let version = run(&root, &["--version"]).1;
    let number = concat!("gpumodel ", env!("CARGO_PKG_VERSION"));
    assert!(version.starts_with(number), "{version}");
    let words = ["analyze", "silicon/sgemm", "-m", "v100", "--json", "-"];
    assert!(run(&root, &words).1.contains(&format!("\"program\": \"{number}\"")));
}
