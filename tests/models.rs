//! Is every model file right?

use gpumodel::spec::{IsaTable, Models};

#[test]
fn every_machine_loads_and_passes_its_checks() {
    let models = Models::builtin();
    let wrong: Vec<String> = models
        .machine_names()
        .into_iter()
        .filter_map(|name| models.machine(name, &[]).err())
        .map(|error| error.to_string())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_opcode_table_loads() {
    let models = Models::builtin();
    for name in models.names("isa") {
        let table = IsaTable::load(&models, name).unwrap_or_else(|error| panic!("{error}"));
        assert!(table.opcodes().count() > 80, "{name}");
    }
}
