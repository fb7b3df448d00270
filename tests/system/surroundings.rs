//! Does the program bear its surroundings: a full disk, a terminal that hangs up, a read-only
//! folder?

mod full_disk {
    //! Do `convert` and `sweep` report a full disk and leave no partial files?

    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use crate::sweep_place::{Place, bytes};

    const PLAN: &str = "machines = ['warped-slicer']\nschemes = ['left-over', 'even', 'spatial']\n\
        seeds = [1, 2, 3, 4]\n[mixes]\nlists = [['m', 's'], ['s', 'm']]\n";

    /// A trace whose store does not compress well.
    const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/samples/gather");

    /// The program with a disk of so many kilobytes at `small`; its files are then copied to
    /// `kept`.
    fn on_small_disk(
        place: &Place,
        kilobytes: u32,
        words: &[&str],
    ) -> Option<(Option<i32>, String)> {
        let _ = fs::create_dir(place.path("small"));
        let mount = format!("mount -t tmpfs -o size={kilobytes}k none small");
        let cache = if words[0] == "analyze" { "small/cache" } else { "cache" };
        let before = format!("{mount} && export GPUMODEL_CACHE={cache}");
        place.mounted(&before, words, "cp -a small/. kept")
    }

    /// Files that are not finished, and records that are not whole.
    fn half_written(folder: &Path) -> Vec<String> {
        let whole = |name: &str, bytes: &[u8]| {
            let json = name.ends_with(".json");
            !json || serde_json::from_slice::<serde_json::Value>(bytes).is_ok()
        };
        let found = bytes(folder).into_iter().filter_map(|(path, bytes)| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            (name.starts_with('.') || !whole(&name, &bytes)).then_some(name)
        });
        found.collect()
    }

    #[test]
    fn a_store_that_exceeds_the_disk_is_an_error_and_leaves_nothing() {
        let place = Place::new();
        fs::create_dir(place.path("kept")).unwrap();
        let words = ["convert", TRACE, "-o", "small/t.gpt"];
        let Some((code, said)) = on_small_disk(&place, 16, &words) else { return };
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("small/t.gpt") && said.contains("No space left"), "{said}");
        assert_eq!(place.content("kept").len(), 0, "{said}");
    }

    #[test]
    fn a_sweep_that_exceeds_the_disk_is_an_error_and_resumes_elsewhere() {
        let place = Place::new();
        let plan = place.plan("plan", PLAN);
        assert_eq!(place.sweep(&plan, "whole", &[]).0, Some(0));
        // From too small for the list of cells to large enough for some records.
        for kilobytes in [8, 64, 512] {
            fs::create_dir(place.path("kept")).unwrap();
            let words = ["sweep", plan.as_str(), "--out", "small/out"];
            let Some((code, said)) = on_small_disk(&place, kilobytes, &words) else { return };
            assert_eq!(code, Some(2), "{kilobytes}: {said}");
            assert!(said.contains("error: cannot write into small/out"), "{said}");
            assert!(said.contains("No space left"), "{said}");
            assert_eq!(half_written(&place.path("kept")), Vec::<String>::new(), "{kilobytes}");
            let (code, said) = place.sweep(&plan, "kept/out", &["--resume"]);
            assert_eq!(code, Some(0), "{said}");
            assert!(place.content("kept/out") == place.content("whole"), "{kilobytes}");
            fs::remove_dir_all(place.path("kept")).unwrap();
        }
    }

    #[test]
    fn a_cache_folder_that_exceeds_the_disk_is_an_error() {
        let place = Place::new();
        fs::create_dir(place.path("kept")).unwrap();
        let words = ["analyze", TRACE, "--machine", "gtx-1080"];
        let Some((code, said)) = on_small_disk(&place, 16, &words) else { return };
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("small/cache") && said.contains("GPUMODEL_CACHE"), "{said}");
        assert!(said.contains("No space left"), "{said}");
        assert_eq!(half_written(&place.path("kept")), Vec::<String>::new());
    }

    #[test]
    fn a_full_standard_output_is_reported_as_such() {
        for words in [
            &["machine", "list"][..],
            &["machine", "show", "v100", "--json", "-"],
            &["scheme", "list"],
            &["synth", "--list"],
            &["plot", "--list"],
        ] {
            let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
            let mut program = Command::new(env!("CARGO_BIN_EXE_gpumodel"));
            let output = program.args(words).stdout(full).output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
            assert!(said.starts_with("error: cannot write to standard output: No space"), "{said}");
        }
    }
}

mod hangup {
    //! Does what `nohup` starts outlive its terminal?

    use std::fs;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use crate::skip::skipped;
    use crate::sweep_place::Place;

    /// An analysis after a line of a shell, hung up again and again: its exit code.
    fn hung_up(before: &str) -> Option<i32> {
        let place = Place::new();
        let line = format!("{before}; echo begun; exec \"$0\" \"$@\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).arg(place.command(&[]).get_program());
        shell.args(["analyze", "m", "s", "--machine", "warped-slicer", "--scheme", "even"]);
        shell.current_dir(place.path("")).env("GPUMODEL_CACHE", place.path("cache"));
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = shell.spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut begun = String::new();
        said.read_line(&mut begun).unwrap();
        assert_eq!(begun, "begun\n");
        let pid = child.id().to_string();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status.code();
            }
            // It may have ended by now.
            let _ = Command::new("kill").args(["-HUP", &pid]).stderr(Stdio::null()).status();
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether these tests were started with `nohup` themselves, which no shell takes back.
    fn ignored_here() -> bool {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1
    }

    #[test]
    fn a_hang_up_stays_ignored_under_nohup() {
        assert_eq!(hung_up("trap '' HUP"), Some(0));
    }

    #[test]
    fn a_hang_up_ends_the_program_unless_ignored() {
        if ignored_here() {
            return skipped("hang-ups are ignored here");
        }
        assert_ne!(hung_up("true"), Some(0));
    }
}

mod read_only {
    //! Can a read-only folder be analyzed and swept, without a write to it?

    use std::fs;

    use crate::sweep_place::Place;

    const PLAN: &str = "machines = ['warped-slicer']\nschemes = ['left-over', 'even']\n\
        [apps]\nm = 'fixed/m'\ns = 'fixed/s'\na = 'fixed/a.gpt'\n\
        [mixes]\nlists = [['m', 's'], ['a', 's']]\n";

    /// A folder `fixed` with traces, a store of one, and a cache folder that knows the plan.
    fn place() -> Place {
        let place = Place::new();
        fs::create_dir(place.path("fixed")).unwrap();
        for name in ["m", "s"] {
            fs::rename(place.path(name), place.path("fixed").join(name)).unwrap();
        }
        fs::write(place.path("plan.toml"), PLAN).unwrap();
        let (code, said) = place.run(&["convert", "fixed/m", "-o", "fixed/a.gpt"]);
        assert_eq!(code, Some(0), "{said}");
        let (code, said) = place.sweep("plan.toml", "whole", &[]);
        assert_eq!(code, Some(0), "{said}");
        fs::rename(place.path("cache"), place.path("fixed/cache")).unwrap();
        place
    }

    /// The program where `fixed` cannot be written and is the cache folder, or `other` is.
    fn run(place: &Place, cache: &str, words: &[&str]) -> Option<(Option<i32>, String)> {
        // Permissions do not bind root.
        let root = "[ $(id -u) = 0 ]";
        let mount = "{ mount --bind fixed fixed && mount -o remount,bind,ro fixed; }";
        let before = format!(
            "if {root}; then {mount}; else chmod -R a-w fixed; fi && ! touch fixed/mine \
             2>/dev/null && export GPUMODEL_CACHE={cache}"
        );
        place.mounted(&before, words, &format!("{root} || chmod -R u+w fixed"))
    }

    #[test]
    fn stores_traces_and_their_cache_need_no_permission_to_write() {
        let place = place();
        let before = place.content("fixed");
        let sweep = ["sweep", "plan.toml", "--out", "out"];
        let Some((code, said)) = run(&place, "fixed/cache", &sweep) else { return };
        assert_eq!(code, Some(0), "{said}");
        assert!(place.content("out") == place.content("whole"), "other bytes");
        // Results that the cache lacks are computed, and not kept.
        let analyze = ["analyze", "fixed/a.gpt", "fixed/s", "--machine", "gtx-1080"];
        for (cache, options) in
            [("fixed/cache", ["--scheme", "warped-slicer"]), ("cache", ["--scheme", "even"])]
        {
            let words = [&analyze[..], &options].concat();
            let (code, said) = run(&place, cache, &words).unwrap();
            assert_eq!(code, Some(0), "{said}");
        }
        assert!(place.content("fixed") == before, "something was written");
    }

    #[test]
    fn a_cache_folder_without_room_for_a_trace_is_an_error_with_advice() {
        let place = place();
        fs::remove_dir_all(place.path("fixed/cache")).unwrap();
        fs::create_dir(place.path("fixed/cache")).unwrap();
        let words = ["analyze", "fixed/s", "--machine", "gtx-1080"];
        let Some((code, said)) = run(&place, "fixed/cache", &words) else { return };
        assert!(code == Some(2) && said.contains("GPUMODEL_CACHE"), "{said}");
        let words = ["sweep", "plan.toml", "--out", "fixed/out"];
        let (code, said) = run(&place, "cache", &words).unwrap();
        assert!(code == Some(2) && said.contains("cannot write into fixed/out"), "{said}");
        assert_eq!(place.content("fixed/cache").len(), 0);
        assert!(!place.path("fixed/out").exists());
    }
}
