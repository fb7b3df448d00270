//! Does address translation appear only on machines that translate?

use assert_cmd::Command;
use serde_json::Value;

/// The output of `analyze` for a sample, as a table and as a record.
fn analyze(sample: &str, machine: &str, set: &[&str]) -> (String, Value) {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record.json");
    let mut command = Command::cargo_bin("gpumodel").unwrap();
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command.env("GPUMODEL_CACHE", folder.path().join("cache"));
    command.arg("analyze").arg(format!("traces/samples/{sample}"));
    command.args(["--machine", machine, "--json"]).arg(&record);
    set.iter().for_each(|word| _ = command.args(["--set", word]));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
    (String::from_utf8(output.stdout).unwrap(), record)
}

#[test]
fn a_machine_that_translates_says_so_in_table_and_record() {
    let (table, record) = analyze("saxpy", "ugpu", &[]);
    assert!(table.contains("page walks"), "{table}");
    let app = &record["solo"][0];
    let count = |path: &str| app.pointer(path).and_then(Value::as_u64).unwrap();
    let misses = |tlb: &str| {
        count(&format!("/translation/{tlb}/accesses")) - count(&format!("/translation/{tlb}/hits"))
    };
    assert!(count("/translation/walks") > 0);
    assert_eq!(misses("l1_tlb"), count("/translation/l2_tlb/accesses"));
    assert_eq!(misses("l2_tlb"), count("/translation/walks"));
    assert!(count("/translation/walk_reads") >= count("/translation/walks"));
    assert_eq!(count("/translation/faults"), 0);
    let by_sm = app["l1_tlb_by_sm"].as_array().unwrap();
    let sum: u64 = by_sm.iter().map(|sm| sm["accesses"].as_u64().unwrap()).sum();
    assert_eq!((by_sm.len(), sum), (80, count("/translation/l1_tlb/accesses")));
}

#[test]
fn a_machine_that_does_not_translate_is_silent_about_it() {
    for machine in ["v100", "accelsim-qv100"] {
        let (table, record) = analyze("saxpy", machine, &[]);
        assert!(!table.contains("TLB"), "{table}");
        assert!(!record.to_string().contains("tlb"), "{machine}");
        assert!(!record.to_string().contains("translation"), "{machine}");
    }
}

#[test]
fn pages_fault_once_each_unless_a_copy_brought_them() {
    let demand = "translation.demand_paging=true";
    let faults = |sample: &str, set: &[&str]| {
        let (_, record) = analyze(sample, "ugpu", set);
        let cycles = record["solo"][0]["cycles"].as_u64().unwrap();
        let faults = record["solo"][0]["translation"]["faults"].as_u64().unwrap();
        assert_eq!(faults > 0, cycles > 28_000, "{sample}: {faults} faults, {cycles} cycles");
        faults
    };
    // Both arrays of saxpy are copied in, as all of transpose's input; its output
    // of 512 KB is not.
    assert_eq!(faults("saxpy", &[demand]), 0);
    assert_eq!(faults("transpose", &[demand]), 128);
    assert_eq!(faults("transpose", &[demand, "translation.page_bytes=65536"]), 8);
}
