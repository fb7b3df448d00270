//! Are profiles of Nsight Compute and Nsight Systems compared launch by launch?

use std::path::PathBuf;

use assert_cmd::Command;
use gpumodel::report::results::{Analysis, ComparedRow, Comparison, Quantity, ReferenceTable};
use tempfile::TempDir;

use crate::shown::{data, small};

/// The details page as versions from 2022 on print it, with a rule, thousands and scaled units.
const DETAILS: &str = r#"==PROF== Connected to process 4711 (/home/me/one)
the program says, "hello", world
==PROF== Disconnected from process 4711
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description"
"0","4711","one","127.0.0.1","Kernel(Node *, int *)","1","7","(128, 1, 1)","(16, 2, 1)","0","8.0","GPU Speed Of Light Throughput","Elapsed Cycles","cycle","2,500","","",""
"0","4711","one","127.0.0.1","Kernel(Node *, int *)","1","7","(128, 1, 1)","(16, 2, 1)","0","8.0","GPU Speed Of Light Throughput","Memory Throughput","%","61.5","","",""
"0","4711","one","127.0.0.1","Kernel(Node *, int *)","1","7","(128, 1, 1)","(16, 2, 1)","0","8.0","GPU Speed Of Light Throughput","Duration","us","2.5","","",""
"0","4711","one","127.0.0.1","Kernel(Node *, int *)","1","7","(128, 1, 1)","(16, 2, 1)","0","8.0","GPU Speed Of Light Throughput","SM Frequency","Ghz","1.41","","",""
"0","4711","one","127.0.0.1","Kernel(Node *, int *)","1","7","(128, 1, 1)","(16, 2, 1)","0","8.0","Memory Workload Analysis","Memory Throughput","Gbyte/s","16","","",""
"0","4711","one","127.0.0.1","Kernel(Node *, int *)","1","7","(128, 1, 1)","(16, 2, 1)","0","8.0","Memory Workload Analysis","L1/TEX Hit Rate","%","50","","",""
"0","4711","one","127.0.0.1","Kernel(Node *, int *)","1","7","(128, 1, 1)","(16, 2, 1)","0","8.0","Memory Workload Analysis","","","","Hint","OPT","Reads are ""strided"", see below"
"0","4711","one","127.0.0.1","Kernel(Node *, int *)","1","7","(128, 1, 1)","(16, 2, 1)","0","8.0","Launch Statistics","Registers Per Thread","register/thread","40","","",""
"0","4711","one","127.0.0.1","Kernel(Node *, int *)","1","7","(128, 1, 1)","(16, 2, 1)","0","8.0","Occupancy","Theoretical Occupancy","%","50","","",""
"1","4711","one","127.0.0.1","void fill<double>(T1 *)","1","7","(128, 1, 1)","(1, 1, 1)","0","8.0","GPU Speed Of Light Throughput","Elapsed Cycles","cycle","900","","",""
"2","4711","one","127.0.0.1","Kernel(Node *, int *)","1","7","(128, 1, 1)","(16, 2, 1)","0","8.0","GPU Speed Of Light Throughput","Elapsed Cycles","cycle","1,000","","",""
"#;

/// The raw page: a line of units, then a line for each launch.
const RAW: &str = r#""ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","dram__bytes_read.sum","dram__bytes_write.sum","gpc__cycles_elapsed.max","l1tex__t_sectors.sum","l1tex__t_sectors_lookup_hit.sum","lts__t_sectors_srcunit_tex.sum","lts__t_sector_hit_rate.pct","smsp__inst_executed.sum","smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio","smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio","smsp__average_warps_issue_stalled_selected_per_issue_active.ratio"
"","","","","","","","","","","","Kbyte","byte","cycle","sector","sector","sector","%","inst","inst","inst","inst"
"0","9","one","h","Kernel","1","7","(128, 1, 1)","(16, 2, 1)","0","8.0","16.00","6,400","2,000","1,250","500","400","75","4,000","1","3","1"
"1","9","one","h","scale","1","7","(128, 1, 1)","(16, 2, 1)","0","8.0","n/a","0","3,000","500","150","350","n/a","1,000","0","0","1"
"0","10","two","h","u_empty()","1","7","(128, 1, 1)","(16, 2, 1)","0","8.0","0","0","504","0","0","0","n/a","1","0","0","0"
"#;

/// Metrics alone, as the versions of 2020 print them: no extents, and the time of the launch.
const OLD: &str = r#"==PROF== Profiling "Kernel" - 1: 0%....50%....100% - 2 passes
"ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream","Section Name","Metric Name","Metric Unit","Metric Value"
"0","7","one","127.0.0.1","Kernel","2020-Nov-13 18:14:36","1","7","Command line profiler metrics","sm__cycles_elapsed.max","cycle","1.600,5"
"0","7","one","127.0.0.1","Kernel","2020-Nov-13 18:14:36","1","7","Command line profiler metrics","dram__sectors_read.sum","sector","2.000"
"#;

/// Launches of Nsight Systems; a copy is none.
const TRACE: &str = "\
Processing [report.sqlite] with [cuda_gpu_trace.py]...
Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name
90,10,1,,,,,,,,,,0.1,10,Pageable,Device,GPU (0),1,7,[CUDA memcpy HtoD]
300,1500,3,16,2,1,128,1,1,32,0,0,,,,,GPU (0),1,7,\"void scale<float, (int)4>(T1 *, int)\"
100,1000,2,16,2,1,128,1,1,32,0,0,,,,,GPU (0),1,7,\"Kernel(Node *, int *)\"
";

/// Its kernels.
const SUMMARY: &str = "\
Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
70.0,8750,5,1750.0,1750.0,1700,1800,1.0,\"Kernel(Node *, int *)\"
30.0,3000,1,3000.0,3000.0,3000,3000,0.0,\"void scale<float, (int)4>(T1 *, int)\"
";

fn file(text: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("card.csv");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn records() -> Vec<Analysis> {
    vec![small()]
}

fn compare(text: impl AsRef<[u8]>) -> Comparison {
    let (_folder, path) = file(text);
    let table = ReferenceTable::read_for(&path, &records()).unwrap();
    Comparison::new(&records(), &table, None)
}

fn refused(text: impl AsRef<[u8]>) -> String {
    let (_folder, path) = file(text);
    ReferenceTable::read_for(&path, &records()).unwrap_err().to_string()
}

fn row<'c>(comparison: &'c Comparison, label: &str) -> &'c ComparedRow {
    comparison.rows.iter().find(|row| row.label() == label).unwrap()
}

fn reference(row: &ComparedRow, quantity: Quantity) -> f64 {
    row.pairs[&quantity].reference
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9 * expected.abs().max(1.0), "{found}, not {expected}");
}

#[test]
fn the_details_page_is_read_in_its_units() {
    let comparison = compare(DETAILS);
    let first = row(&comparison, "apps/one #1");
    // The model has 2000 cycles, launch included, as the profiler counts.
    close(first.pairs[&Quantity::CyclesBeyondLaunch].error.unwrap(), -20.0);
    close(reference(first, Quantity::Duration), 2500.0);
    // 2000 cycles at 1000 MHz.
    close(first.pairs[&Quantity::Duration].model, 2000.0);
    close(reference(first, Quantity::L1HitRate), 0.5);
    close(reference(first, Quantity::TheoreticalOccupancy), 0.5);
    close(first.pairs[&Quantity::Registers].error.unwrap(), -20.0);
    // 16 GB/s for 2.5 µs.
    close(reference(first, Quantity::DramBytes), 40_000.0);
    assert_eq!(comparison.rows.len(), 2, "launch 3 is the second of its name");
    close(reference(row(&comparison, "apps/one #3"), Quantity::CyclesBeyondLaunch), 1000.0);
    assert_eq!(comparison.coverage.rows_without_record, ["line 14: `fill`"]);
    assert_eq!((comparison.coverage.compared_rows, comparison.coverage.reference_rows), (2, 3));
    assert!(comparison.notes[0].contains("at 1410 MHz"), "{:?}", comparison.notes);
}

#[test]
fn the_raw_page_has_a_line_for_each_launch_of_each_process() {
    let comparison = compare(RAW);
    let labels: Vec<String> = comparison.rows.iter().map(ComparedRow::label).collect();
    assert_eq!(labels, ["apps/one #1", "apps/one #2", "apps/two #1"]);
    let first = &comparison.rows[0];
    close(reference(first, Quantity::DramReadBytes), 16_000.0);
    close(reference(first, Quantity::DramBytes), 22_400.0);
    close(reference(first, Quantity::L1HitRate), 0.4);
    close(reference(first, Quantity::L2HitRate), 0.75);
    close(first.pairs[&Quantity::L1Sectors].error.unwrap(), -20.0);
    close(first.pairs[&Quantity::WarpInstructions].error.unwrap(), 0.0);
    // Three of four stalls; the warp that was selected did not stall.
    close(reference(first, Quantity::LongMemoryStalls), 0.75);
    close(reference(first, Quantity::BarrierStalls), 0.25);
    let second = &comparison.rows[1];
    assert!(!second.pairs.contains_key(&Quantity::DramReadBytes), "n/a");
    close(comparison.rows[2].pairs[&Quantity::CyclesBeyondLaunch].error.unwrap(), 100.0);
}

#[test]
fn old_versions_and_decimal_commas_are_read() {
    let comparison = compare(OLD);
    let first = &comparison.rows[0];
    close(reference(first, Quantity::CyclesBeyondLaunch), 1600.5);
    close(reference(first, Quantity::DramReadBytes), 64_000.0);
    assert_eq!(comparison.rows.len(), 1);
    let timed = |unit: &str, time: &str| {
        let text = OLD.replace("sm__cycles_elapsed.max\",\"cycle\",\"1.600,5", "METRIC");
        compare(text.replace("METRIC", &format!("gpu__time_duration.sum\",\"{unit}\",\"{time}")))
    };
    for (unit, time) in [
        ("nsecond", "2000"),
        ("us", "2"),
        ("msecond", "0.002"),
        ("s", "2e-06"),
        ("second", "2e-06"),
    ] {
        close(reference(&timed(unit, time).rows[0], Quantity::Duration), 2000.0);
    }
    let wide: Vec<u8> = OLD.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let of_powershell = compare([&[0xff, 0xfe][..], &wide].concat());
    assert_eq!(of_powershell.rows, comparison.rows);
}

#[test]
fn times_of_nsight_systems_are_compared_at_the_clock_of_the_record() {
    let launches = compare(TRACE);
    let times = |row: &ComparedRow| row.pairs[&Quantity::Duration].error.unwrap();
    close(times(row(&launches, "apps/one #1")), 100.0);
    close(times(row(&launches, "apps/one #2")), 100.0);
    assert_eq!(launches.rows.len(), 2, "in the order of their starts, without the copy");
    let kernels = compare(SUMMARY);
    // The mean of 2000 and 1500 cycles at 1 GHz.
    close(times(row(&kernels, "apps/one #1,3")), 0.0);
    close(times(row(&kernels, "apps/one #2")), 0.0);
    assert!(kernels.notes[0].contains("5 launches of `Kernel` in the profile, 2 in the record"));
}

#[test]
fn what_cannot_be_compared_says_where_and_what_to_do() {
    let cases = [
        (
            RAW.replace("6,400", "many"),
            "card.csv:3: column 13 (`dram__bytes_write.sum`): expected a number >= 0, found `many`",
        ),
        (RAW.replace("Kbyte", "Furlong"), "card.csv:3: the unit of `dram__bytes_read.sum`"),
        (RAW.replacen("\"9\",", "\"9,", 1), "card.csv:3: column"),
        (
            DETAILS.replace("\"Hint\",\"OPT\",", "\"Hint\",\"OPT\",\"\",\"\",\"\","),
            "expected at most 18 cells",
        ),
        (DETAILS.replace("(16, 2, 1)", "(8, 2, 1)"), "`Kernel` with another grid or block"),
        (TRACE.replace(",1500,3,", ",x,3,"), "card.csv:4: column 2 (`Duration (ns)`)"),
        (TRACE.replace("(ns)", "(furlong)"), "expected a time in ns, us, ms or s"),
        (String::from("==ERROR== ERR_NVGPUCTRPERM - no permission\n"), "Nsight Compute has failed"),
        (DETAILS.split_inclusive('\n').take(4).collect(), "expected metrics of a launch"),
    ];
    for (text, expected) in cases {
        let found = refused(&text);
        assert!(found.contains(expected), "{found}\nnot {expected}");
    }
    let found = refused(b"NVR\0\x0a\x01binary");
    assert!(found.contains("`ncu --import card.csv --page raw --csv > card.csv`"), "{found}");
}

#[test]
fn a_profile_without_a_metric_of_records_is_refused() {
    let text = OLD.replace("sm__cycles_elapsed.max", "a").replace("dram__sectors_read.sum", "b");
    let (_folder, path) = file(text);
    let table = ReferenceTable::read_for(&path, &records()).unwrap();
    let comparison = Comparison::new(&records(), &table, None);
    let found = comparison.answered(&table).unwrap_err().to_string();
    assert!(found.contains("expected a metric that records have, as `Elapsed Cycles`"), "{found}");
}

/// Bytes that go missing, change or double anywhere give rows or an error.
#[test]
fn damaged_profiles_never_panic() {
    let records = records();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("card.csv");
    for (text, step) in [(DETAILS, 37), (RAW, 7), (OLD, 7), (TRACE, 7), (SUMMARY, 5)] {
        for at in (0..text.len()).step_by(step) {
            let (before, after) = text.as_bytes().split_at(at);
            let damages = [
                before.to_vec(),
                [before, &after[1..]].concat(),
                [before, b"\"", after].concat(),
                [before, b",\n", after].concat(),
                [before, &[0xff, 0], &after[1..]].concat(),
                [before, b"(((((9e999", after].concat(),
            ];
            for damaged in damages {
                std::fs::write(&path, damaged).unwrap();
                match ReferenceTable::read_for(&path, &records) {
                    Ok(table) => {
                        assert!(!Comparison::new(&records, &table, None).to_json().is_empty())
                    }
                    Err(error) => assert!(error.to_string().contains("card.csv")),
                }
            }
        }
    }
}

#[test]
fn the_verb_prints_a_row_for_each_launch_and_draws_them() {
    let (folder, path) = file(TRACE);
    let drawn = folder.path().join("card.svg");
    let json = folder.path().join("card.json");
    let mut command = Command::cargo_bin("gpumodel").unwrap();
    command.arg("compare").arg(data("record.json")).arg("--reference").arg(&path);
    let output = command.arg("-o").arg(&drawn).arg("--json").arg(&json).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("apps/one #1 Kernel"), "{text}");
    assert!(text.contains("2.00 µs"), "{text}");
    assert!(text.contains("time (%)"), "{text}");
    assert!(std::fs::read_to_string(drawn).unwrap().contains("Times against the reference"));
    assert!(std::fs::read_to_string(json).unwrap().contains("\"duration\""));
}
