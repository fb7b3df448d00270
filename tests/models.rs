//! Is every model file right?

use gpumodel::spec::Models;

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
