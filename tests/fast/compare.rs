//! Are records compared with a reference as the counting rules say?

use assert_cmd::Command;
use gpumodel::report::results::{
    Analysis, ComparedRow, Comparison, Quantity, ReferenceTable, Summary,
};

use crate::shown::{data, small};

fn compare(table: &str) -> Comparison {
    let table = ReferenceTable::read(&data(table)).unwrap();
    Comparison::new(&[small()], &table, None)
}

fn row(comparison: &Comparison, line: u64) -> &ComparedRow {
    comparison.rows.iter().find(|row| row.line == line).unwrap()
}

fn error(row: &ComparedRow, quantity: Quantity) -> f64 {
    row.pairs[&quantity].error.unwrap()
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
}

#[test]
fn a_run_is_compared_beyond_launch_latency() {
    let comparison = compare("runs.csv");
    let all = row(&comparison, 2);
    // 6500 - 3 x 1000 cycles against 5800 - 3 x 1000.
    close(error(all, Quantity::CyclesBeyondLaunch), 25.0);
    // 1200 of 2000 sectors hit against 1000 of 2000; 400 of 800 against 320 of 800.
    close(error(all, Quantity::L1HitRate), 10.0);
    close(error(all, Quantity::L2HitRate), 10.0);
    // Merged reads are hits: 1090 against 1000 + 90.
    close(error(all, Quantity::L1ReadHits), 0.0);
    // 1500 sectors against 1000.
    close(error(all, Quantity::DramBytes), 50.0);
    close(all.pairs[&Quantity::DramBytes].model, 48_000.0);
    close(error(all, Quantity::ThreadInstructions), 0.0);
}

#[test]
fn a_subset_of_launches_is_compared_with_that_subset() {
    let comparison = compare("runs.csv");
    let some = row(&comparison, 3);
    // 2000 + 3000 - 2 x 1000 against 5500 - 2 x 1000.
    close(error(some, Quantity::CyclesBeyondLaunch), -100.0 / 7.0);
    close(some.pairs[&Quantity::L1HitRate].model, 0.5);
    assert!(!some.pairs.contains_key(&Quantity::L1ReadHits), "the row does not say");
    // 160 write sectors are too few for a relative error to count.
    assert!(!some.pairs[&Quantity::DramWriteBytes].counted);
    assert!(some.pairs[&Quantity::DramReadBytes].counted);
}

#[test]
fn the_launch_latency_of_the_table_can_be_given() {
    let table = ReferenceTable::read(&data("runs.csv")).unwrap();
    let comparison = Comparison::new(&[small()], &table, Some(600));
    // 3500 against 5800 - 3 x 600.
    close(error(row(&comparison, 2), Quantity::CyclesBeyondLaunch), -12.5);
}

#[test]
fn coverage_names_the_omissions() {
    let coverage = compare("runs.csv").coverage;
    assert_eq!((coverage.compared_rows, coverage.reference_rows), (3, 5));
    assert_eq!(coverage.rows_without_record, ["apps/missing", "apps/one (launches 1-8)"]);
    assert!(coverage.records_without_row.is_empty());
    assert!(coverage.not_comparable[0].contains("8 launches"), "{:?}", coverage.not_comparable);
}

#[test]
fn a_run_of_some_ctas_is_not_compared() {
    let mut part = small();
    part.filters.insert("ctas".into(), "0-9".into());
    let table = ReferenceTable::read(&data("runs.csv")).unwrap();
    let comparison = Comparison::new(&[part], &table, None);
    assert!(comparison.rows.is_empty());
    let refused = &comparison.coverage.not_comparable;
    assert!(refused.iter().all(|reason| reason.contains("CTAs 0-9")), "{refused:?}");
}

#[test]
fn summaries_are_mean_median_and_worst_of_the_rows_that_count() {
    let comparison = compare("runs.csv");
    let of = |quantity| comparison.summary.iter().find(|s| s.quantity == quantity).unwrap();
    let cycles: &Summary = of(Quantity::CyclesBeyondLaunch);
    // +25 %, -14.29 %, and 8 cycles against 10: -20 %.
    assert_eq!(cycles.counted, 3);
    close(cycles.mean_absolute, (25.0 + 100.0 / 7.0 + 20.0) / 3.0);
    close(cycles.median_absolute, 20.0);
    close(cycles.mean_signed, (25.0 - 100.0 / 7.0 - 20.0) / 3.0);
    close(cycles.worst, 25.0);
    assert_eq!(cycles.worst_trace, "apps/one");
    let dram = of(Quantity::DramBytes);
    assert_eq!((dram.counted, dram.pairs), (2, 3), "0 sectors do not count");
}

#[test]
fn correlation_is_pearsons_of_the_logarithms() {
    let comparison = compare("runs.csv");
    let cycles = comparison.summary.iter().find(|s| s.quantity == Quantity::CyclesBeyondLaunch);
    let points: [(f64, f64); 3] = [(3500.0, 2800.0), (3000.0, 3500.0), (8.0, 10.0)];
    let (x, y): (Vec<f64>, Vec<f64>) = points.iter().map(|(m, r)| (m.ln(), r.ln())).unzip();
    let mean = |v: &[f64]| v.iter().sum::<f64>() / 3.0;
    let (mx, my) = (mean(&x), mean(&y));
    let dot = |a: &[f64], ma: f64, b: &[f64], mb: f64| -> f64 {
        a.iter().zip(b).map(|(p, q)| (p - ma) * (q - mb)).sum()
    };
    let r = dot(&x, mx, &y, my) / (dot(&x, mx, &x, mx) * dot(&y, my, &y, my)).sqrt();
    close(cycles.unwrap().correlation.unwrap(), r);
}

#[test]
fn a_table_of_launches_is_compared_launch_by_launch() {
    let comparison = compare("launches.csv");
    let errors: Vec<f64> =
        comparison.rows.iter().map(|row| error(row, Quantity::CyclesBeyondLaunch)).collect();
    // 1000 against 800, 2000 against 3000, 500 against 500; the record has no fourth launch.
    assert_eq!(errors.len(), 3);
    close(errors[0], 25.0);
    close(errors[1], -100.0 / 3.0);
    close(errors[2], 0.0);
    assert_eq!(comparison.rows[1].kernel.as_deref(), Some("scale<float, 4> & \"co\""));
    let refused = &comparison.coverage.not_comparable;
    assert_eq!(refused.len(), 2);
    assert!(refused[1].contains("`another_kernel`") && refused[1].contains("`u_empty`"));
}

#[test]
fn hardware_counters_are_means_per_launch_with_the_launch_in_the_elapsed_cycles() {
    let comparison = compare("hardware.csv");
    let row = &comparison.rows[0];
    // Two launches named Kernel: 3500 cycles, 1750 each, against 1000.
    close(row.pairs[&Quantity::CyclesBeyondLaunch].model, 1750.0);
    close(error(row, Quantity::CyclesBeyondLaunch), 75.0);
    // 560 + 380 read hits, 470 each, against 940.
    close(row.pairs[&Quantity::L1ReadHits].model, 470.0);
    // 350 of 450 against 175 of 225.
    close(error(row, Quantity::L2HitRate), 0.0);
    // 500 read sectors per launch against 2000.
    close(error(row, Quantity::DramReadBytes), -75.0);
}

#[test]
fn a_row_about_a_kernel_takes_launches_of_that_name_or_none() {
    let mut record = small();
    record.solo[0].kernels[1].name = String::from("_Z7Kernel2P4NodePi");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let cycles = |kernel: &str| {
        let row =
            format!("machine,trace,kernel,launches,elapsed_cycles\ntiny,apps/one,{kernel},1000\n");
        std::fs::write(&path, row).unwrap();
        let table = ReferenceTable::read(&path).unwrap();
        let comparison = Comparison::new(std::slice::from_ref(&record), &table, None);
        let pair = |row: &ComparedRow| row.pairs[&Quantity::CyclesBeyondLaunch].model;
        comparison.rows.first().map(pair).ok_or_else(|| format!("{:?}", comparison.coverage))
    };
    assert_eq!(cycles("Kernel,all"), Ok(1750.0), "2000 and 1500: Kernel2 holds the word too");
    assert_eq!(cycles("Kernel2,1-3"), Ok(3000.0));
    assert_eq!(cycles("_Z6Kernel,all"), Ok(1750.0), "a part of the name");
    assert_eq!(cycles("Kernel,1"), Ok(2000.0), "the first launch alone");
    let said = cycles("bfs_x,all").unwrap_err();
    assert!(said.contains("line 2 is about the kernel `bfs_x`"), "{said}");
}

#[test]
fn a_run_that_names_a_kernel_is_about_its_launches_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let compared = |rows: &str| {
        let text = format!("machine,trace,kernel,launches,cycles\n{rows}");
        std::fs::write(&path, text).unwrap();
        let table = ReferenceTable::read(&path).unwrap();
        let comparison = Comparison::new(&[small()], &table, None);
        comparison.answered(&table).map(|()| comparison).map_err(|error| error.to_string())
    };
    let found = compared("tiny,apps/one,Kernel,all,5000\ntiny,apps/one,scale,all,3500\n");
    let found = found.unwrap();
    let model = |row: &ComparedRow| row.pairs[&Quantity::CyclesBeyondLaunch].model;
    // 2000 + 1500 cycles of two launches and 3000 of one, a launch 1000: not the 3500 of all.
    assert_eq!(found.rows.iter().map(model).collect::<Vec<_>>(), [1500.0, 2000.0]);
    let text = gpumodel::report::table::comparison(&found, None);
    assert!(text.contains("apps/one Kernel") && text.contains("apps/one scale"), "{text}");
    let said = compared("tiny,apps/one,NoSuchKernel,all,5000\n").unwrap_err();
    assert!(said.contains("line 2 is about the kernel `NoSuchKernel`"), "{said}");
    // An empty cell: the whole application.
    assert_eq!(model(&compared("tiny,apps/one,,all,5800\n").unwrap().rows[0]), 3500.0);
}

#[test]
fn tables_say_what_is_subtracted_and_what_a_star_means() {
    let shown = |table: &str| gpumodel::report::table::comparison(&compare(table), None);
    let (runs, hardware) = (shown("runs.csv"), shown("hardware.csv"));
    assert!(runs.contains("cycles - launch") && runs.contains("ref. - launch"), "{runs}");
    assert!(runs.contains("launch latency is subtracted from both sides"), "{runs}");
    assert!(!hardware.contains("launch:") && !hardware.contains("- launch"), "{hardware}");
    for text in [runs, hardware, shown("launches.csv")] {
        let star = text.lines().any(|line| line.contains("*") && !line.starts_with("  *: "));
        assert_eq!(text.contains("  *: "), star, "{text}");
    }
}

/// The small record with stalls: half of the first launch's slot-cycles lie on SMs
/// without work.
fn stalled() -> Analysis {
    let mut record = small();
    let stalls = |shares: &[(&str, f64)]| {
        shares.iter().map(|&(cause, share)| (cause.to_string(), share)).collect()
    };
    let [first, second, ..] = &mut record.solo[0].kernels[..] else { panic!("two launches") };
    first.stall_fractions = stalls(&[
        ("issued", 0.1),
        ("execution_resource", 0.05),
        ("instruction_buffer_empty", 0.05),
        ("barrier", 0.05),
        ("long_memory_latency", 0.1),
        ("short_raw", 0.05),
        ("idle", 0.6),
    ]);
    first.held_slot_fraction = Some(0.5);
    second.stall_fractions = stalls(&[("issued", 0.5), ("long_memory_latency", 0.5)]);
    second.held_slot_fraction = Some(1.0);
    record
}

#[test]
fn slot_cycles_are_compared_over_the_sms_that_have_work() {
    let table = ReferenceTable::read(&data("slots.csv")).unwrap();
    let comparison = Comparison::new(&[stalled()], &table, None);
    let slots = |line: u64| {
        let quantities = [
            Quantity::IssuedSlots,
            Quantity::PipeSlots,
            Quantity::IdleSlots,
            Quantity::ScoreboardSlots,
        ];
        quantities.map(|quantity| row(&comparison, line).pairs[&quantity].model)
    };
    // One launch: every share doubles, and of 0.6 idle 0.5 had no work.
    for (found, expected) in slots(2).into_iter().zip([0.2, 0.1, 0.4, 0.3]) {
        close(found, expected);
    }
    close(error(row(&comparison, 2), Quantity::IssuedSlots), -10.0);
    close(error(row(&comparison, 2), Quantity::IdleSlots), 10.0);
    // Two, of 1000 and 2000 cycles: (0.1 + 2 x 0.5) / (0.5 + 2 x 1) issued.
    for (found, expected) in slots(3).into_iter().zip([0.44, 0.02, 0.08, 0.46]) {
        close(found, expected);
    }
    // No slot-cycles in the table: nothing to compare.
    assert!(!row(&comparison, 4).pairs.contains_key(&Quantity::IssuedSlots));
    // A record that does not say where work was is not compared.
    let silent = Comparison::new(&[small()], &table, None);
    assert!(!row(&silent, 2).pairs.contains_key(&Quantity::IssuedSlots));
    assert!(!silent.summary.iter().any(|s| s.quantity == Quantity::IssuedSlots));
}

#[test]
fn the_command_prints_the_table_or_the_json() {
    let run = |arguments: &[&str]| {
        let mut command = Command::cargo_bin("gpumodel").unwrap();
        command.arg("compare").arg(data("record.json")).args(arguments);
        let reference = data("runs.csv");
        let assert = command.arg("--reference").arg(reference).assert().success();
        String::from_utf8(assert.get_output().stdout.clone()).unwrap()
    };
    let text = run(&[]);
    let line = text.lines().find(|line| line.contains("apps/one ")).unwrap();
    for cell in ["3500", "2800", "+25.0 %", "60 %", "50 %", "+10.0", "48 kB", "32 kB", "+50.0 %"] {
        assert!(line.contains(cell), "{cell} is not in {line}");
    }
    assert!(text.contains("coverage: 3 of 5 reference rows"));
    let json: Comparison = serde_json::from_str(&run(&["--json", "-"])).unwrap();
    assert_eq!(json.rows, compare("runs.csv").rows);
}

#[test]
fn records_that_no_row_is_about_are_refused_with_both_names() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("other.csv");
    std::fs::write(&table, "machine,trace,cycles\nm,apps/one,5\n").unwrap();
    let mut command = Command::cargo_bin("gpumodel").unwrap();
    command.arg("compare").arg(data("record.json")).arg("--reference").arg(&table);
    let assert = command.assert().code(2);
    let message = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(message.contains("other.csv") && message.contains("tiny apps/one"), "{message}");
}

/// The program's output and its exit code.
fn run(words: &[&str]) -> (Option<i32>, String) {
    let output = Command::cargo_bin("gpumodel").unwrap().args(words).output().unwrap();
    let said = [&output.stdout[..], &output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn a_row_that_matches_two_records_is_refused_with_both() {
    let folder = tempfile::tempdir().unwrap();
    let (copy, other) = (folder.path().join("copy.json"), folder.path().join("other.json"));
    let mut again = small();
    again.solo[0].cycles += 1;
    std::fs::write(&copy, again.to_json()).unwrap();
    let mut set = small();
    set.machine.hash = String::from("of the machine otherwise set");
    std::fs::write(&other, set.to_json()).unwrap();
    let (first, table) = (data("record.json"), data("runs.csv"));
    let [first, copy, other, table] =
        [&first, &copy, &other, &table].map(|path| path.to_str().unwrap());
    let none: &[&str] = &[];
    let figure: &[&str] = &["--figure", "correlation", "-o", "-"];
    for (verb, options) in [("compare", none), ("plot", figure)] {
        let of = |second: &str| {
            run(&[&[verb, first, second, "--reference", table][..], options].concat())
        };
        let (code, said) = of(copy);
        let words = format!("apps/one is in {first} and in {copy}, so that this row would");
        assert!(code == Some(2) && said.contains(&words), "{said}");
        assert!(said.contains("runs.csv:2: "), "{said}");
        assert_eq!(of(first).0, Some(0), "what is the same counts once");
        assert_eq!(of(other).0, Some(0), "two settings are two machines");
    }
}

#[test]
fn a_duplicate_row_is_refused_with_both_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let refused = |text: &str| {
        std::fs::write(&path, text).unwrap();
        ReferenceTable::read(&path).map(drop).map_err(|error| error.to_string())
    };
    let runs = "machine,trace,launches,cycles\nm,a,all,5\nm,a,1-2,5\nm,b,all,5\nn,a,all,5\n";
    assert_eq!(refused(runs), Ok(()));
    let said = refused(&format!("{runs}m,a,,6\n")).unwrap_err();
    let words = "t.csv:6: expected one row about `m` `a` (launches all), found another in line 2; ";
    assert!(said.contains(words), "{said}");
    let launches = "machine,trace,launch,name,cycles\nm,a,1,k,5\nm,a,2,k,5\n";
    assert_eq!(refused(launches), Ok(()));
    let said = refused(&format!("{launches}m,a,1,k,5\n")).unwrap_err();
    assert!(said.contains("t.csv:4: ") && said.contains("in line 2; leave one"), "{said}");
    let hardware = "machine,trace,kernel,elapsed_cycles\nm,a,k,5\nm,a,l,5\n";
    assert_eq!(refused(hardware), Ok(()));
    assert!(refused(&format!("{hardware}m,a,l,7\n")).unwrap_err().contains("t.csv:4: "));
}

#[test]
fn found_values_are_quoted_in_short() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let long = "x".repeat(100_000);
    let numbers = "machine,trace,launches,cycles\n";
    for (text, words) in [
        (format!("{long}\n"), "expected the columns `machine`"),
        (format!("{numbers}m,a,{long},5\n"), "expected launches as `all`"),
        (format!("{numbers}m,a,all,{long}\n"), "column `cycles`: expected a number >= 0"),
        (format!("{numbers}{long},a,all,5\n{long},a,all,5\n"), "expected one row about `xx"),
    ] {
        std::fs::write(&path, text).unwrap();
        let said = ReferenceTable::read(&path).unwrap_err().to_string();
        assert!(said.contains(words) && said.contains("x…`"), "{said}");
        assert!(said.len() < path.as_os_str().len() + 400, "{} bytes", said.len());
    }
}

#[test]
fn launches_that_take_longer_than_a_row_are_refused_with_it() {
    let (record, table) = (data("record.json"), data("runs.csv"));
    let [record, table] = [&record, &table].map(|path| path.to_str().unwrap());
    let compare = ["compare", record, "--reference", table, "--launch-cycles"];
    // 5800 cycles of three launches.
    let (code, said) = run(&[&compare[..], &["2000"]].concat());
    let words = "runs.csv:2: expected at least the cycles that the launches of apps/one take";
    assert!(code == Some(2) && said.contains(words), "{said}");
    assert!(said.contains("found 200 fewer") && said.contains("--launch-cycles"), "{said}");
    assert_eq!(run(&[&compare[..], &["1010"]].concat()).0, Some(0));
}

#[test]
fn malformed_tables_are_refused_with_file_and_line() {
    let header = "machine,trace,launches,kernels,cycles,l1_accesses,l1_misses\n";
    let cases = [
        ("", 1, "machine"),
        ("pair,done\na,1\n", 1, "machine"),
        (header, 1, "rows"),
        (&format!("{header}m,t,all,1,5,1,0\nm,t,all,1,many,1,0\n"), 3, "cycles"),
        (&format!("{header}m,t,all,1,-5,1,0\n"), 2, "cycles"),
        (&format!("{header}m,t,all,1,inf,1,0\n"), 2, "cycles"),
        (&format!("{header}m,t,8-1,1,5,1,0\n"), 2, "launches"),
        (&format!("{header}m,t,all,none,5,1,0\n"), 2, "kernels"),
        (&format!("{header}m,t,all,1,5,1,2\n"), 2, "misses"),
        (&format!("{header}m,t,all\n"), 2, "CSV"),
        (&format!("{header},t,all,1,5,1,1\n"), 2, "machine"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    for (text, line, word) in cases {
        std::fs::write(&path, text).unwrap();
        let message = ReferenceTable::read(&path).unwrap_err().to_string();
        let place = format!("table.csv:{line}: ");
        assert!(message.contains(&place) && message.contains(word), "{text:?}: {message}");
    }
    std::fs::write(&path, b"machine,trace,cycles\n\xff,a,1\n").unwrap();
    assert!(ReferenceTable::read(&path).unwrap_err().to_string().contains("table.csv:2: "));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn hostile_tables_are_read_or_refused(rows in "[a-z0-9,.\"\n-]{0,80}", bytes in ".{0,40}") {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = format!("machine,trace,launches,kernels,cycles,l1_accesses,l1_misses\n{rows}{bytes}");
        std::fs::write(file.path(), text).unwrap();
        match ReferenceTable::read(file.path()) {
            Ok(table) => proptest::prop_assert!(table.rows.iter().all(|row| row.line > 1)),
            Err(error) => proptest::prop_assert!(error.to_string().contains(':')),
        }
    }
}

#[test]
fn the_reference_tables_next_to_the_project_are_read() {
    let tables = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/reference");
    if !tables.exists() {
        crate::skip::skipped("reference traces not present");
        return;
    }
    for name in ["cyclesim/results.csv", "cyclesim/kernels.csv", "hardware/silicon.csv"] {
        let table = ReferenceTable::read(&tables.join(name)).unwrap();
        assert!(table.rows.len() >= 11, "{name}");
        assert!(table.rows.iter().all(|row| row.cycles > Some(0.0)), "{name}");
    }
}
