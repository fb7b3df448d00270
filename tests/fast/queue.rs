//! Is every queue completed, within the rules and as its scheme says, whatever was done
//! before and on any number of threads?

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use gpumodel::report::results::{Analysis, InterferenceRecord, QueueRun};
use gpumodel::trace::workload::{Compression, Workload, write_folder};

/// An application of each class: its workload model and scale. The second measures M on
/// `ilp-smra`, so the queues give its class.
const APPS: [(&str, &str, f64); 4] = [
    ("m", "stream-copy", 0.05),
    ("mc", "layers", 0.05),
    ("c", "lookup", 0.05),
    ("a", "polynomial", 0.25),
];

const SCHEMES: &str = "even-queue,profile-based:step=20,ilp,ilp-smra:t_c=1000:rest=1";

/// A folder with the applications, small, and a cache.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (name, model, scale) in APPS {
            let workload = Workload::load_scaled(model, &gpumodel::models(), scale).unwrap();
            write_folder(&workload, &place.path(name), Compression::None, &mut |_| {}).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a queue of the applications.
    fn queue(&self, name: &str, size: u32, text: &str) -> String {
        let apps: String = APPS.iter().map(|(app, ..)| format!("{app} = \"{app}\"\n")).collect();
        let path = self.path(name);
        let classes = "[classes]\nmc = \"MC\"\n";
        let queue = format!("group_size = {size}\n{text}\n[apps]\n{apps}{classes}");
        fs::write(&path, queue).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// `analyze` with `words` on `ilp-smra`.
    fn analyze(&self, words: &[&str]) -> Output {
        let mut command = Command::cargo_bin("gpumodel").unwrap();
        command.env("GPUMODEL_CACHE", self.path("cache"));
        command.args(["analyze", "--machine", "ilp-smra", "--json", "-"]).args(words);
        command.output().unwrap()
    }

    fn record(&self, words: &[&str]) -> Analysis {
        let output = self.analyze(words);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {errors}");
        Analysis::from_json(&output.stdout, Path::new("record")).unwrap()
    }

    fn refused(&self, words: &[&str]) -> String {
        let output = self.analyze(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

fn place(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

fn to_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap()
}

#[allow(clippy::cast_precision_loss, reason = "counts are below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

/// Every job ran once in one group, groups follow each other, and the sums are those
/// of the parts.
fn whole(run: &QueueRun, analysis: &Analysis) {
    let context = format!("{} under {}", run.queue, run.scheme);
    let mut end = 0;
    let mut seen = vec![0; run.jobs.len()];
    for (number, group) in run.groups.iter().enumerate() {
        let arrival = group.jobs.iter().map(|&job| run.jobs[place(job)].arrival_cycle).max();
        assert_eq!(Some(group.start_cycle), arrival.max(Some(end)), "{context}: group {number}");
        assert!((1..=run.group_size).contains(&(to_u64(group.jobs.len()))), "{context}");
        let ends = group.jobs.iter().map(|&job| run.jobs[place(job)].end_cycle);
        assert_eq!(ends.max(), Some(group.end_cycle), "{context}: group {number}");
        for &job in &group.jobs {
            let job_record = &run.jobs[place(job)];
            assert_eq!(job_record.group, to_u64(number), "{context}");
            assert_eq!(job_record.start_cycle, group.start_cycle, "{context}");
            seen[place(job)] += 1;
        }
        let shares = &group.shares;
        assert_eq!(shares[0].since_begin_cycles, 0, "{context}");
        let most = shares.iter().map(|share| share.sms.iter().sum::<u64>()).max();
        assert!(most <= Some(60), "{context}: {shares:?}");
        end = group.end_cycle;
    }
    assert!(seen.iter().all(|&times| times == 1), "{context}: {seen:?}");
    let solo = |name: &str| analysis.solo.iter().find(|app| app.app == name).unwrap();
    let work: u64 = run.jobs.iter().map(|job| solo(&job.app).thread_instructions).sum();
    assert_eq!((run.cycles, run.thread_instructions), (end, work), "{context}");
    let throughput = float(work) / float(end);
    assert!((run.throughput_ipc / throughput - 1.0).abs() < 1e-12, "{context}");
}

/// 1/N_G times the sum of 1/S over all ordered pairs of a group, by the matrix that
/// the scheme found (eq. 3).
fn worth(run: &QueueRun, known: &InterferenceRecord) -> f64 {
    let class = |job: u64| {
        let app = &run.jobs[place(job)].app;
        let found = known.apps.iter().find(|one| one.app == *app).unwrap();
        known.classes.iter().position(|class| *class == found.class).unwrap()
    };
    let group = |jobs: &Vec<u64>| {
        let mut sum = 0.0;
        for (place, &one) in jobs.iter().enumerate() {
            for &other in jobs.iter().skip(place + 1) {
                let (one, other) = (class(one), class(other));
                sum += known.slowdown[one][other].recip() + known.slowdown[other][one].recip();
            }
        }
        sum / float(run.group_size)
    };
    run.groups.iter().map(|one| group(&one.jobs)).sum()
}

fn find<'a>(analysis: &'a Analysis, queue: &str, scheme: &str) -> &'a QueueRun {
    let found = analysis.queues.iter().find(|run| run.queue == queue && run.scheme == scheme);
    found.unwrap_or_else(|| panic!("{queue} under {scheme}"))
}

#[test]
fn every_scheme_completes_generated_queues() {
    let place = Place::new();
    for (size, length) in [(2, 8), (3, 9)] {
        let text =
            format!("[generate]\nlength = {length}\nseeds = [2]\ndistributions = ['equal', 'A']");
        let queue = place.queue("q.toml", size, &text);
        let analysis = place.record(&["--queue", &queue, "--scheme", SCHEMES]);
        assert_eq!(analysis.queues.len(), 8);
        for run in &analysis.queues {
            whole(run, &analysis);
            let classes: Vec<&str> =
                run.jobs.iter().map(|job| job.class.as_deref().unwrap()).collect();
            let of = |class: &str| classes.iter().filter(|&&other| other == class).count();
            let dominant = if run.distribution.as_deref() == Some("A") { "A" } else { "M" };
            assert!(of(dominant) * 4 >= length, "{}: {classes:?}", run.queue);
        }
        let known = &analysis.interference[0];
        assert_eq!(known.classes, ["M", "MC", "C", "A"]);
        assert_eq!(known.schemes.len(), 2, "found once for both: {:?}", known.schemes);
        assert!(!known.published.is_empty());
        for queue in ["equal/2", "A/2"] {
            check_matching(&analysis, queue, known);
        }
    }
}

/// The integer program's groups are worth what it says, and not less than those in
/// order of arrival; within a class the order is that of arrival.
fn check_matching(analysis: &Analysis, queue: &str, known: &InterferenceRecord) {
    let ilp = find(analysis, queue, "ilp");
    let reported = ilp.matchings[0].objective;
    assert!((worth(ilp, known) - reported).abs() < 1e-9, "{queue}: {reported}");
    assert!(worth(find(analysis, queue, "even-queue"), known) <= reported + 1e-9, "{queue}");
    let smra = find(analysis, queue, "ilp-smra");
    let members = |run: &QueueRun| run.groups.iter().map(|g| g.jobs.clone()).collect::<Vec<_>>();
    assert_eq!(members(ilp), members(smra), "{queue}: the same groups");
    let mut last: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
    for (number, job) in ilp.jobs.iter().enumerate() {
        let class = job.class.as_deref().unwrap();
        if let Some((group, before)) = last.insert(class, (job.group, number)) {
            assert!(group <= job.group, "{queue}: job {number} overtakes {before}");
        }
    }
}

#[test]
fn one_at_a_time_is_a_solo_run_and_two_are_a_co_run() {
    let place = Place::new();
    let queue = place.queue("one.toml", 1, "order = ['m', 'a', 'm', 'c']");
    let analysis = place.record(&["--queue", &queue, "--scheme", "even-queue,ilp"]);
    for run in &analysis.queues {
        whole(run, &analysis);
        for job in &run.jobs {
            let alone = analysis.solo.iter().find(|app| app.app == job.app).unwrap();
            assert_eq!(job.cycles, alone.cycles, "{} under {}", job.app, run.scheme);
        }
    }
    let queue = place.queue("two.toml", 2, "early_finishers = 'given'\norder = ['c', 'a', 'mc']");
    let analysis = place.record(&["--queue", &queue, "--scheme", "even-queue"]);
    let run = &analysis.queues[0];
    let named = |name: &str| format!("{name}={}", place.path(name).display());
    let (a, c) = (named("a"), named("c"));
    let together = place.record(&["--scheme", "spatial", &a, &c]);
    let cycles: Vec<u64> = together.coruns[0].apps.iter().map(|app| app.cycles).collect();
    assert_eq!([run.jobs[1].cycles, run.jobs[0].cycles], cycles[..], "in the order of the pool");
    assert_eq!(run.groups[1].jobs, [2], "the last job has no partner");
}

#[test]
fn sms_of_early_finishers_stay_idle_if_the_queue_demands_it() {
    let place = Place::new();
    let end = |word: &str| {
        let text = format!("early_finishers = '{word}'\norder = ['m', 'a']");
        let queue = place.queue("q.toml", 2, &text);
        let schemes = "even-queue,smra:t_c=100000,profile-based:step=20";
        let analysis = place.record(&["--queue", &queue, "--scheme", schemes]);
        let cycles = analysis.queues.iter().map(|run| run.cycles);
        assert!(analysis.queues.iter().all(|run| run.early_finishers == word));
        cycles.collect::<Vec<_>>()
    };
    let (idle, given) = (end("idle"), end("given"));
    for (scheme, (idle, given)) in idle.iter().zip(&given).enumerate() {
        // A stream that fills the DRAM with its own SMs is no faster with all.
        let sooner = if scheme == 2 { idle >= given } else { idle > given };
        assert!(sooner, "scheme {scheme}: {idle} cycles against {given}");
    }
}

#[test]
fn no_application_runs_before_it_arrives() {
    let place = Place::new();
    let text = "order = [{app = 'c', arrival = 200000}, 'm', {app = 'a', arrival = 10},\n\
                {app = 'm', arrival = 200000}, 'mc']";
    let queue = place.queue("q.toml", 2, text);
    let analysis = place.record(&["--queue", &queue, "--scheme", "even-queue,ilp"]);
    for run in &analysis.queues {
        whole(run, &analysis);
        let order: Vec<&str> = run.jobs.iter().map(|job| job.app.as_str()).collect();
        assert_eq!(order, ["m", "mc", "a", "c", "m"], "by arrival");
        let alone = run.groups.iter().find(|group| group.jobs == [2]);
        assert!(alone.is_some(), "the third runs alone");
        assert_eq!(run.groups[2].start_cycle, 200_000, "the machine waits for an arrival");
    }
    assert_eq!(find(&analysis, "q", "ilp").matchings.len(), 3, "matched after arrivals");
}

#[test]
fn measured_slow_downs_replace_the_probes() {
    let place = Place::new();
    // Only C slows M, and only MC slows A.
    let rows = "[interference]\nM = {M=3,MC=1,C=1,A=1}\nMC = {M=3,MC=3,C=1,A=3}\n\
                C = {M=1,MC=1,C=3,A=1}\nA = {M=1,MC=3,C=1,A=3}";
    let text = |rows: &str| format!("order = ['m', 'mc', 'a', 'c']\n{rows}");
    let queue = place.queue("q.toml", 2, &text(rows));
    let analysis = place.record(&["--queue", &queue, "--scheme", "ilp"]);
    let known = &analysis.interference[0];
    assert!(known.pairs.is_empty() && known.slowdown[1] == [3.0, 3.0, 1.0, 3.0], "{known:?}");
    let groups = analysis.queues[0].groups.iter().map(|group| group.jobs.clone());
    assert_eq!(groups.collect::<Vec<_>>(), [vec![2, 0], vec![3, 1]], "M with A, C with MC");
    let queue = place.queue("q.toml", 2, &text("[interference]\nM = {M = 2.0}"));
    let error = place.refused(&["--queue", &queue, "--scheme", "ilp"]);
    assert!(error.contains("no slow-down of class") && error.contains("M, MC, C, A"), "{error}");
}

#[test]
fn known_results_are_not_computed_again() {
    let place = Place::new();
    let queue = place.queue("q.toml", 2, "[generate]\nlength = 4\ndistributions = ['equal', 'M']");
    let words = ["--queue", &queue, "--scheme", SCHEMES];
    let first = place.analyze(&words).stdout;
    assert!(!first.is_empty());
    let kept = || -> Vec<PathBuf> {
        let folder = fs::read_dir(place.path("cache/groups")).unwrap();
        let mut files: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    };
    let files = kept();
    let texts: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    // As after an early end, with one damaged file.
    for (number, file) in files.iter().enumerate() {
        match number % 3 {
            0 => fs::remove_file(file).unwrap(),
            1 => fs::write(file, &texts[number][..texts[number].len() / 2]).unwrap(),
            _ => {}
        }
    }
    for threads in ["1", "4"] {
        let again = place.analyze(&[&words[..], &["--threads", threads]].concat()).stdout;
        assert!(again == first, "on {threads} threads");
    }
    // Solo results are read only when a group must run again.
    let alone = |text: &[u8]| String::from_utf8_lossy(text).contains("{\"Solo\":");
    let whole = |(file, text): (&PathBuf, &Vec<u8>)| fs::read(file).is_ok_and(|now| now == *text);
    let mut groups = files.iter().zip(&texts).filter(|(_, text)| !alone(text));
    assert!(groups.clone().count() > 6 && groups.all(whole));
    files.iter().for_each(|file| fs::write(file, "").unwrap());
    assert!(place.analyze(&words).stdout == first, "from nothing");
    assert!(kept() == files && files.iter().zip(&texts).all(whole), "all is stored again");
}

#[test]
fn what_is_known_of_a_group_uses_the_current_names() {
    let place = Place::new();
    let record = |names: [&str; 2]| {
        let [one, other] = names;
        let text = format!(
            "group_size = 2\norder = ['{one}', '{other}']\n[apps]\n{one} = 'a'\n{other} = 'c'"
        );
        fs::write(place.path("q.toml"), text).unwrap();
        let queue = place.path("q.toml").to_str().unwrap().to_owned();
        let analysis = place.record(&["--queue", &queue, "--scheme", "profile-based:step=60"]);
        analysis.queues[0].groups[0].shares[0].reason.clone()
    };
    assert!(record(["one", "other"]).contains("one needs"));
    let again = record(["uno", "zwei"]);
    assert!(again.contains("uno needs") && again.contains("zwei needs"), "{again}");
}

#[test]
fn every_application_may_be_a_class() {
    let place = Place::new();
    let queue = place.queue("q.toml", 2, "order = ['m', 'a', 'm', 'c', 'mc', 'a']");
    let scheme = "ilp:classes=application";
    let analysis = place.record(&["--queue", &queue, "--scheme", scheme]);
    let run = &analysis.queues[0];
    whole(run, &analysis);
    let known = &analysis.interference[0];
    assert_eq!(known.classes, ["a", "c", "m", "mc"]);
    assert!((worth(run, known) - run.matchings[0].objective).abs() < 1e-9);
    let reason = &run.matchings[0].reason;
    assert!(reason.contains("10 patterns by eq. 1") && reason.contains("10 pairs run"), "{reason}");
}

#[test]
fn an_impossible_queue_is_refused() {
    let place = Place::new();
    let queue = place.queue("q.toml", 2, "order = ['m', 'a']");
    let refused = |words: &[&str], reported: &str| {
        let error = place.refused(words);
        assert!(error.contains(reported), "{words:?}: {error}");
    };
    refused(&["--queue", "no-such.toml"], "no-such.toml");
    let lost = place.path("lost.toml");
    fs::write(&lost, "group_size = 2\norder = ['x']\n[apps]\nx = 'no-such.gpt'").unwrap();
    let lost = lost.to_str().unwrap();
    refused(&["--queue", lost], &format!("{lost}:4: apps.x"));
    refused(&["--queue", lost], "there is no file or folder");
    refused(&["--queue", &queue, "--until", "first"], "--until is for applications");
    refused(&["--queue", &queue, "--window", "5"], "--window is for applications");
    refused(&["--queue", &queue, "--arrive", "m=5"], "--arrive is for applications");
    refused(&["--queue", &queue, "--scheme", "ilp-smr"], "did you mean ilp-smra?");
    refused(&["--queue", &queue, "--scheme", "solo"], "solo runs one application, found 2");
    refused(&["--queue", &queue, "--scheme", "ilp:alpha=2"], "alpha: expected a number from 0");
    refused(&["--scheme", "ilp", "synth:saxpy", "synth:compute"], "add --queue");
    let twice = format!("m={}", place.path("c").display());
    refused(&["--queue", &queue, &twice], "two applications are called m");
    let text = "[generate]\nlength = 4\n";
    let path = place.path("lack.toml");
    fs::write(&path, format!("group_size = 2\n{text}[apps]\na = 'a'")).unwrap();
    refused(&["--queue", path.to_str().unwrap()], "needs an application of class M");
}
