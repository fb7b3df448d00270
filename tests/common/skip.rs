//! Is it seen that a test was skipped?

use std::io::Write;

/// Says why a test is skipped. What is printed by a test that passes is not shown; this is.
pub(crate) fn skipped(why: &str) {
    // Nobody needs to hear it.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

#[test]
fn a_skip_is_seen_although_the_test_passes() {
    const INNER: &str = "GPUMODEL_TEST_SKIP";
    if std::env::var_os(INNER).is_some() {
        skipped("to be seen");
        return;
    }
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args(["common::skip::a_skip_is_seen_although_the_test_passes", "--exact"]);
    let output = again.env(INNER, "1").env_remove("RUST_TEST_NOCAPTURE").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("skipped: to be seen\n"), "{said}");
}
