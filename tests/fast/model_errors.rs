//! Does a user with a wrong model file get a useful error?

mod given;

use std::fs;

use gpumodel::sim::config::{ImportLabel, IsaTable, import_accelsim};
use proptest::prelude::*;

/// The error for a machine file that inherits from `v100` and adds `text`.
fn error(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    fs::write(&file, format!("base = \"v100\"\ndescription = \"mine\"\n{text}")).unwrap();
    let error = gpumodel::models().machine(file.to_str().unwrap(), &[]).unwrap_err();
    error.to_string().replace(folder.path().to_str().unwrap(), "")
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_nearest() {
    let found = error("[l1]\nlatency_cyles = { value = 30, assumed = \"x\" }\n");
    let expected = "/mine.toml:4: unknown key `l1.latency_cyles`; did you mean `latency_cycles`?";
    assert_eq!(found, expected);
    assert!(error("[l3]\n").contains("unknown key `l3`; did you mean `l1`?"));
}

#[test]
fn a_value_of_the_wrong_kind_says_what_was_expected() {
    let found = error("[sm]\nschedulers = { value = \"four\", assumed = \"x\" }\n");
    assert!(
        found.starts_with("/mine.toml:4: `sm.schedulers`: expected a whole number from 0 to 4294967295, found string"),
        "{found}"
    );
    let found = error("[sm]\npolicy = { value = \"gtoo\", assumed = \"x\" }\n");
    assert!(found.ends_with("found \"gtoo\"; did you mean `gto`?"), "{found}");
    let found = error("[dispatch]\nsms = { value = -1, assumed = \"x\" }\n");
    assert!(
        found.contains("expected a whole number from 0 to 65535, found integer `-1`"),
        "{found}"
    );
    let found = error("[clocks]\ncore_mhz = { value = nan, assumed = \"x\" }\n");
    assert!(found.contains("`clocks.core_mhz`") && found.contains("found nan"), "{found}");
}

#[test]
fn a_number_without_a_source_is_refused() {
    let found = error("[l1]\nlatency_cycles = 30\n");
    assert!(
        found.contains("/mine.toml:4: `l1.latency_cycles` must say where it is from"),
        "{found}"
    );
    assert!(found.contains("found 30"), "{found}");
}

#[test]
fn every_failed_check_is_listed() {
    let found = error(
        "[sm]\nschedulers = { value = 3, assumed = \"x\" }\n\
         [l2]\nslices = { value = 63, assumed = \"x\" }\n\
         [shared]\nunit_bytes = { value = 0, assumed = \"x\" }\n\
         [l1]\ncarve_outs_bytes = { value = [8, 4], assumed = \"x\" }\n",
    );
    for part in [
        "64 warps on 3 schedulers",
        "63 slices on 32 channels",
        "shared.unit_bytes = 0",
        "[8, 4] does not ascend",
    ] {
        assert!(found.contains(part), "{part} is not in {found}");
    }
}

#[test]
fn a_missing_key_and_an_unknown_name_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bare.toml");
    fs::write(&file, "description = \"bare\"\nisa = \"volta\"\n").unwrap();
    let models = gpumodel::models();
    let found = models.machine(file.to_str().unwrap(), &[]).unwrap_err().to_string();
    let missing =
        "bare.toml:1: `clocks` is missing; what a machine does not say comes from its base";
    assert!(found.contains(missing), "{found}");
    let found = models.machine("v10", &[]).unwrap_err().to_string();
    assert!(
        found.starts_with("no `v10` in models/gpus; did you mean `v100`?; known: a100"),
        "{found}"
    );
    let place = folder.path().display();
    for (missing, why) in [(format!("{place}/no"), "no such file"), (place.to_string(), "a folder")]
    {
        let found = models.machine(&missing, &[]).unwrap_err();
        assert_eq!(found.to_string(), format!("cannot read {missing}"));
        let source = std::error::Error::source(&found).unwrap().to_string();
        assert!(source.contains(why), "{source}");
    }
    let found = error("isa = \"voltaic\"\n");
    assert!(found.contains("no `voltaic` in models/isa; did you mean `volta`?"), "{found}");
}

#[test]
fn a_wrong_override_names_the_word() {
    let set = |key: &str, value: &str| {
        let overrides = [(key.to_owned(), value.to_owned())];
        gpumodel::models().machine("v100", &overrides).unwrap_err().to_string()
    };
    assert_eq!(
        set("l1.latency", "3"),
        "--set l1.latency=3: unknown key `l1.latency`; did you mean `l1.latency_cycles`?"
    );
    assert!(
        set("l1.latency_cycles", "fast")
            .contains("--set l1.latency_cycles=fast: `l1.latency_cycles`: expected a whole number")
    );
    assert!(set("l1.latency_cycles.x", "3").contains("unknown key"));
    assert!(set("l1..x", "3").contains("expected SECTION.KEY=VALUE"));
    for (key, value) in [
        ("sm.schedulers", "0"),
        ("clocks.core_mhz", "0.0001"),
        ("clocks.dram_mhz", "0.0001"),
        ("dispatch.kernel_launch_cycles", "9223372036854775807"),
        ("dispatch.cta_launch_cycles", "9223372036854775807"),
        ("dispatch.kernel_retire_cycles", "9223372036854775807"),
        ("quirks.refetch_cycles", "4294967295"),
        ("interconnect.header_bytes", "4294967295"),
        ("l2.accesses_per_cycle", "4294967295"),
        ("shared.banks", "128"),
    ] {
        assert!(set(key, value).contains(&format!("{key} = {value}")), "{key}");
    }
}

#[test]
fn hostile_files_end_in_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hostile.toml");
    let models = gpumodel::models();
    let deep = format!("a = {}1{}", "[".repeat(20_000), "]".repeat(20_000));
    let big = "x".repeat(5 << 20);
    for text in [
        "",
        "\0\u{fffd}",
        "= =",
        "a = 99999999999999999999",
        "a = 1979-05-27",
        "base = 3",
        &deep,
        &big,
    ] {
        fs::write(&file, text).unwrap();
        assert!(models.machine(file.to_str().unwrap(), &[]).is_err());
    }
    fs::write(&file, [0xff, 0xfe, 0x00]).unwrap();
    assert!(models.machine(file.to_str().unwrap(), &[]).is_err());
}

/// The error for an opcode table of the one class `body`.
fn table_error(body: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("isa")).unwrap();
    let text = format!("description = \"x\"\n[classes.a]\n{body}\n[prefixes]\n\"\" = \"a\"\n");
    fs::write(folder.path().join("isa/mine.toml"), text).unwrap();
    let models = gpumodel::app::models(Some(folder.path())).unwrap();
    let error = IsaTable::load(&models, "mine").unwrap_err().to_string();
    error.replace(folder.path().to_str().unwrap(), "")
}

#[test]
fn an_incomplete_opcode_table_is_refused() {
    let found = table_error("unit = \"int\"");
    assert!(
        found.starts_with("/isa/mine.toml:2: `classes.a` must say where it is from"),
        "{found}"
    );
    let found = table_error("published = \"y\"");
    assert!(found.contains("`classes.a.unit` is missing"), "{found}");
    let found = table_error("published = \"y\"\nunit = \"memory\"\neffect = \"load\"");
    assert!(found.contains("`classes.a.space` is missing"), "{found}");
    let found = table_error("published = \"y\"\nunit = \"fpu\"");
    assert!(found.contains("`classes.a.unit`: expected one of int, fp32"), "{found}");
    let body = "published = \"y\"\nunit = \"int\"\nopcodes = [\"X\"]\n\
                [classes.b]\npublished = \"y\"\nunit = \"int\"\nopcodes = [\"X\"]";
    let found = table_error(body);
    assert!(found.contains("found X, which class `a` also has ("), "{found}");
    assert_eq!(found.matches(".toml:").count(), 2, "both places: {found}");
}

/// `text` with some bytes replaced.
fn damaged(text: &str, changes: &[(usize, u8)]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for &(at, byte) in changes {
        let at = at % bytes.len();
        bytes[at] = byte;
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_damaged_file_ends_in_an_error_or_a_machine(
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..40),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let models = gpumodel::models();
        let file = folder.path().join("damaged.toml");
        fs::write(&file, damaged(&models.text("gpus", "v100").unwrap().text, &changes)).unwrap();
        let _ = models.machine(file.to_str().unwrap(), &[]);
        let config = folder.path().join("gpgpusim.config");
        let good = include_str!("../data/accelsim-small/gpgpusim.config");
        fs::write(&config, damaged(good, &changes)).unwrap();
        let label = ImportLabel { name: "x".to_owned(), description: "x".to_owned() };
        if let Ok(import) = import_accelsim(&[config], &label) {
            fs::write(&file, import.text).unwrap();
            // Whatever is imported is at least a readable machine file.
            models.examine(file.to_str().unwrap(), &[]).unwrap();
        }
    }
}
