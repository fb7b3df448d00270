//! Does `gpumodel machine` keep its promises to scripts?

use std::fs;

use crate::common::program::{gpumodel, stderr, stdout};

#[test]
fn list_and_show_give_json() {
    let list = gpumodel(&["machine", "list", "--json", "-"]).success();
    let list: serde_json::Value = serde_json::from_str(&stdout(&list)).unwrap();
    let names: Vec<&str> =
        list["machines"].as_array().unwrap().iter().map(|m| m["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"gv100") && names.is_sorted());
    let show =
        gpumodel(&["machine", "show", "v100", "--set", "l1.banks=8", "--json", "-"]).success();
    let show: serde_json::Value = serde_json::from_str(&stdout(&show)).unwrap();
    let row = show["keys"].as_array().unwrap().iter().find(|row| row["key"] == "l1.banks").unwrap();
    assert_eq!((row["value"].as_u64(), row["kind"].as_str()), (Some(8), Some("set")));
    assert_eq!(show["overrides"]["l1.banks"], "8");
}

#[test]
fn check_reports_by_its_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let path = file.to_str().unwrap();
    fs::write(&file, "base = \"v100\"\ndescription = \"mine\"\n").unwrap();
    gpumodel(&["machine", "check", path]).code(0);
    fs::write(&file, "base = \"v100\"\ndescription = \"mine\"\n[sm]\nmax_ctas = 3\nschedulers = { value = 7, assumed = \"x\" }\n").unwrap();
    let found = stdout(&gpumodel(&["machine", "check", path]).code(1));
    assert!(
        found.contains("mine.toml:4: `sm.max_ctas`") && found.contains("64 warps on 7 schedulers"),
        "{found}"
    );
    fs::write(&file, "base = ").unwrap();
    gpumodel(&["machine", "check", path]).code(2);
    gpumodel(&["machine", "check", "no-such-machine"]).code(2);
}

#[test]
fn check_and_show_assemble_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let path = file.to_str().unwrap();
    let check = |section: &str, key: &str, value: &str| {
        let line = format!("[{section}]\n{key} = {{ value = {value}, assumed = \"a guess\" }}\n");
        fs::write(&file, format!("base = \"v100\"\ndescription = \"mine\"\n{line}")).unwrap();
        gpumodel(&["machine", "check", path])
    };
    // Unknown names: the machine cannot be read, and the error names the line.
    for (key, name, near) in [
        ("standard", "hbm22", "did you mean `hbm2`?"),
        ("standard", "foo", "accelsim-gddr, accelsim-hbm, gddr5, gddr5x, gddr6"),
        ("standard", "common", "expected a memory standard"),
        ("mapping", "voltaa", "did you mean `volta`?"),
    ] {
        let found = stderr(&check("dram", key, &format!("\"{name}\"")).code(2));
        assert!(found.contains(&format!("mine.toml:4: `dram.{key}`:")), "{found}");
        assert!(found.contains(name) && found.contains(near), "{found}");
        let set = format!("dram.{key}={name}");
        let found = stderr(&gpumodel(&["machine", "show", "v100", "--set", &set]).code(2));
        assert!(found.contains(&format!("--set {set}: `dram.{key}`:")), "{found}");
    }
    // An inconsistent machine: a failed check.
    for (section, key, value, set, words) in [
        ("dram", "standard", "\"gddr5\"", "gddr5", "volta is not a consistent memory"),
        ("dram", "standard", "\"./no.toml\"", "./no.toml", "cannot read ./no.toml"),
        ("clocks", "dram_mhz", "87700", "87700", "command clock is 877 MHz"),
    ] {
        let found = stdout(&check(section, key, value).code(1));
        assert!(found.contains("mine.toml: machine, memory standard and mapping"), "{found}");
        assert!(found.contains(words), "{found}");
        let set = format!("{section}.{key}={set}");
        let found = stderr(&gpumodel(&["machine", "show", "v100", "--set", &set]).code(2));
        assert!(found.contains(words), "{found}");
    }
    check("dram", "standard", "\"hbm2\"").code(0);
}

#[test]
fn import_writes_a_whole_file_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("small.toml");
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/accelsim-small");
    let (config, trace) = (format!("{data}/gpgpusim.config"), format!("{data}/trace.config"));
    let target_word = target.to_str().unwrap();
    let done = gpumodel(&["machine", "import", &config, &trace, "-o", target_word]).success();
    let messages = String::from_utf8(done.get_output().stderr.clone()).unwrap();
    assert!(
        messages.contains(&format!("unknown option, not used: {config}:40 -frobnicate 17")),
        "{messages}"
    );
    assert!(fs::read_to_string(&target).unwrap().contains("name = \"small\""));
    gpumodel(&["machine", "check", target_word]).success();
    fs::remove_file(&target).unwrap();
    let found = stderr(&gpumodel(&["machine", "import", &trace, "-o", target_word]).code(2));
    assert!(found.contains(&format!("error: {trace}: no `-")), "{found}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
