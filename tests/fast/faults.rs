//! Is a bad workload file refused with file, line and what to do, and never
//! with a panic?

use std::fs;

use gpumodel::trace::workload::{Compression, Workload, write_folder};

use crate::common::workloads;
use crate::synth::{parse, small};

#[test]
fn faults_name_file_line_and_the_nearest_word() {
    let good = small("'EXIT',");
    for (old, new, line, word) in [
        ("registers", "regsters", 10, "did you mean `registers`"),
        ("bytes = 4096", "byts = 4096", 5, "did you mean `bytes`"),
        ("bytes = 4096", "bytes = 'size'", 5, "unknown name `size`"),
        ("bytes = 4096", "bytes = 0", 5, "at least 1"),
        ("grid = [2]", "grid = [0]", 8, "expected 1 to"),
        ("grid = [2]", "grid = []", 8, "not empty"),
        ("grid = [2]", "grid = 2", 8, "a list that is not empty, found 2"),
        ("block = [40]", "block = [2000]", 9, "expected 1 to 1024"),
        ("block = [40]", "block = [100, 100]", 6, "at most 1024"),
        ("name = 'k'\n", "", 6, "`kernel.name` is missing"),
        ("name = 'k'", "name = 'k", 7, ""),
        ("registers = 16", "registers = 900", 10, "expected 1 to 255"),
        ("'EXIT',", "'FADD',", 13, "must end with"),
        ("'EXIT',", "'@lane EXIT',", 13, "must end with"),
        ("'EXIT',", "'R1 = LDG R2 [y]', 'EXIT'", 13, "unknown name `y`"),
        ("'EXIT',", "'R1 = LDG R2 [x + lan]', 'EXIT'", 13, "did you mean `lane`"),
        ("'EXIT',", "\n'R16 = FADD', 'EXIT'", 14, "R16, but the kernel has `registers = 16`"),
        ("'EXIT',", "'R1 = LDG R2', 'EXIT'", 13, "needs an address"),
        ("'EXIT',", "{ lop = 'k', body = ['FADD'] }, 'EXIT'", 13, "did you mean `loop`"),
        ("'EXIT',", "{ loop = 'k', count = 0, body = ['FADD'] }, 'EXIT'", 13, "expected 1 to"),
        ("'EXIT',", "{ loop = 'k', body = ['FADD'] }, 'EXIT'", 13, "`kernel.code.count` is mi"),
        ("'EXIT',", "{ copies = 'u', count = 'lane', body = ['FADD'] }, 'EXIT'", 13, "constants"),
        ("'EXIT',", "{ when = 'tx < 3', body = ['BAR.SYNC'] }, 'EXIT'", 13, "never be passed"),
        ("'EXIT',", "7, 'EXIT'", 13, "an instruction or a section"),
    ] {
        let text = good.replacen(old, new, 1);
        assert_ne!(text, good, "{old}");
        let message = parse(&text).unwrap_err().to_string();
        assert!(message.starts_with(&format!("test.toml:{line}: ")), "{new}: {message}");
        assert!(message.contains(word), "{new}: {message}");
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.toml");
    fs::write(&path, b"description = 'a'\n# 20 \xb0C\n").unwrap();
    let name = path.to_str().unwrap();
    let workload = Workload::load(name, &gpumodel::models()).unwrap_err();
    let machine = gpumodel::models().machine(name, &[]).unwrap_err();
    for error in [&workload as &dyn std::error::Error, &machine] {
        let cause = error.source().map(ToString::to_string).unwrap_or_default();
        assert!(error.to_string().contains("w.toml"), "{error}");
        assert!(cause.starts_with("line 2 is no UTF-8"), "{error}: {cause}");
    }
}

#[test]
fn a_scale_that_a_workload_lacks_is_refused() {
    let good = small("'EXIT',");
    for (scale, word) in [(2.0, "[scaled]"), (0.0, "above 0"), (f64::NAN, "above 0")] {
        let text = good.clone();
        let message = Workload::parse("test", "test.toml", text, scale).unwrap_err().to_string();
        assert!(message.starts_with("test.toml: ") && message.contains(word), "{message}");
    }
}

#[test]
fn an_address_outside_its_space_is_refused_and_leaves_nothing() {
    for (code, word) in [
        ("R1 = LDG.E.SYS R2 [4096]", "in no buffer; the nearest is `x`, 4096 bytes from 0x7f4"),
        ("R1 = LDG.E.SYS R2 [x + 4096]", "do not lie in `x`, 4096 bytes from 0x7f4"),
        ("R1 = LDG.E.SYS R2 [x + 4*lane - 4]", "lane 0"),
        ("R1 = LDG.E.64.SYS R2 [x + 4]", "no multiple of 8"),
        ("R1 = LDS R2 [4*thread + 128]", "lane 0: LDS: 4 bytes at offset 0x100"),
        ("R1 = LDSM.16.M88.4 R2 [248]", "no multiple of 16"),
    ] {
        let workload = parse(&small(&format!("'{code}', 'EXIT'"))).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out");
        let error = write_folder(&workload, &target, Compression::None, &mut |_| {}).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains(word) && message.starts_with("test.toml:13: "),
            "{code}: {message}"
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{code}");
    }
}

#[test]
fn an_address_that_runs_into_the_next_buffer_is_refused() {
    let two = |code: &str| {
        let text = small(&format!("{code}, 'EXIT'"));
        parse(&text.replacen("x = { bytes = 4096 }", "x = { bytes = 512 }\ny = { bytes = 512 }", 1))
            .unwrap()
    };
    let written = |workload: &Workload| {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out");
        write_folder(workload, &target, Compression::None, &mut |_| {}).map(|_| ())
    };
    let message = written(&two("'R1 = LDG R2 [x + 4*global + 512]'")).unwrap_err().to_string();
    assert!(message.starts_with("test.toml:14: "), "{message}");
    assert!(message.contains("do not lie in `x`, 512 bytes from 0x7f4"), "{message}");
    assert!(message.contains(", but in `y`"), "{message}");
    // Where several buffers are named, any of them is meant.
    written(&two("'R1 = LDG R2 [select(lane < 16, x, y) + 4*lane]'")).unwrap();
    written(&two("'R1 = LDG R2 [x + (y - x) * (lane % 2) + 4*lane]'")).unwrap();
    // But not those that a condition or a key names, nor those that a copy does not take.
    for address in [
        "select(d == 0, x, y) + 4*lane + 512*(1 - d)",
        "select(x < y, x, y) + 4*lane + 512*d",
        "x + 4 * hash(y, lane, 128) + 512*d",
    ] {
        let copies = format!("{{ copies = 'd', count = 2, body = ['R1 = LDG R2 [{address}]'] }}");
        let message = written(&two(&copies)).unwrap_err().to_string();
        assert!(message.contains("do not lie in `x`"), "{message}");
    }
}

#[test]
fn a_very_long_warp_can_be_walked_but_not_written() {
    let code = "{ loop = 'a', count = 16777216, body = ['FADD'] }, 'EXIT'";
    let workload = parse(&small(code)).unwrap();
    let mut stream = workload.kernel(0).cta(0).warp(0);
    let mut trips = 0;
    while let Some(segment) = stream.next_segment() {
        trips += u32::from(segment == 0);
    }
    assert_eq!(trips, 1 << 24);
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    let error = write_folder(&workload, &target, Compression::None, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("more than 1048576 instructions"), "{error}");
}

#[test]
fn a_short_file_cannot_exhaust_memory() {
    let copies = |inner: &str| {
        format!(
            "{{ copies = 'a', count = 4096, body = [{{ copies = 'b', count = 4096, body = [{inner}] }}] }}, 'EXIT'"
        )
    };
    let long = "lane + ".repeat(40) + "lane";
    for (inner, word) in
        [("'FADD'".to_owned(), "static instructions"), (format!("'@({long}) FADD'"), "parts")]
    {
        let message = parse(&small(&copies(&inner))).unwrap_err().to_string();
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn broken_files_never_panic() {
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};
    let texts: Vec<Vec<u8>> = gpumodel::trace::workload::names(&gpumodel::models())
        .into_iter()
        .map(|n| fs::read(workloads().join(format!("{n}.toml"))).unwrap())
        .collect();
    let mut runner = TestRunner::new_with_rng(
        Config { cases: 300, failure_persistence: None, ..Config::default() },
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    );
    let broken =
        (0..texts.len(), any::<prop::sample::Index>(), any::<prop::sample::Index>(), "\\PC{0,6}");
    runner
        .run(&broken, |(file, from, to, new)| {
            let mut text = texts[file].clone();
            let (a, b) = (from.index(text.len()), to.index(text.len()));
            let end = a.max(b).min(a.min(b) + 20);
            text.splice(a.min(b)..end, new.bytes());
            if let Ok(text) = String::from_utf8(text)
                && let Ok(workload) = Workload::parse("broken", "broken.toml", text, 0.01)
            {
                let mut stream = workload.kernel(0).cta(0).warp(0);
                for _ in 0..100 {
                    let Some(_) = stream.next_segment() else { break };
                }
            }
            Ok(())
        })
        .unwrap();
}
