//! Is a skipped test visible?

use std::io::Write;

/// Says why a test is skipped, even though the output of passing tests is hidden.
pub(crate) fn skipped(why: &str) {
    // A closed standard error is no failure.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

#[test]
fn a_skipped_test_is_visible_although_it_passes() {
    const INNER: &str = "GPUMODEL_TEST_SKIP";
    if std::env::var_os(INNER).is_some() {
        skipped("to be seen");
        return;
    }
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args(["common::skip::a_skipped_test_is_visible_although_it_passes", "--exact"]);
    let output = again.env(INNER, "1").env_remove("RUST_TEST_NOCAPTURE").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("skipped: to be seen\n"), "{said}");
}
