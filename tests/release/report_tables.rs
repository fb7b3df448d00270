//! Do the texts of `reports` agree with the data of their tables?
//!
//! One inner module for each NAME in `reports/README.md`: `BLESS=1 cargo test --test release NAME`
//! writes the tables of a text again.

mod findings {
    //! Does `reports/FINDINGS.md` agree with its runs?
    //!
    //! `BLESS=1 cargo test --test release findings` writes its tables from
    //! `reports/data/findings.csv`.

    use std::fmt::Write as _;
    use std::fs;

    use crate::report_data::{Run, distinct, hold_table, reports, rows};

    /// STP / ANTT / fairness / energy of each scheme and mix of a machine, the best in bold.
    fn table(machine: &str, runs: &[Run]) -> String {
        let own = runs.iter().filter(|run| run.machine == machine);
        let own: Vec<(String, &Run)> = own.map(|run| (run.label(runs), run)).collect();
        let mixes = distinct(own.iter().map(|(_, run)| &run.mix));
        let names: Vec<&str> = mixes.iter().map(|mix| mix.as_str()).collect();
        let mut text = format!("| scheme | {} |\n|---|", names.join(" | "));
        text.push_str(&"---|".repeat(mixes.len()));
        for scheme in distinct(own.iter().map(|(label, _)| label)) {
            let _ = write!(text, "\n| `{scheme}` |");
            for mix in &mixes {
                let all: Vec<&Run> =
                    own.iter().map(|(_, run)| *run).filter(|run| run.mix == **mix).collect();
                let run = own.iter().find(|(label, run)| label == scheme && run.mix == **mix);
                let shown = run.map_or("not run".into(), |(_, run)| values(run, &all));
                let _ = write!(text, " {shown} |");
            }
        }
        text.push('\n');
        text
    }

    /// STP / ANTT / fairness / energy of a run, bold where none of `all` is better.
    fn values(run: &Run, all: &[&Run]) -> String {
        let shown = [
            bold(format!("{:.2}", run.stp), run, all, |run| run.stp),
            bold(format!("{:.2}", run.antt), run, all, |run| -run.antt),
            bold(format!("{:.2}", run.fairness_min_speedup), run, all, |run| {
                run.fairness_min_speedup
            }),
            bold(format!("{:.3}", nanojoules(run)), run, all, |run| -nanojoules(run)),
        ];
        shown.join(" / ")
    }

    /// Nanojoules of a thread instruction.
    fn nanojoules(run: &Run) -> f64 {
        run.energy_joules * 1e9 / run.thread_instructions
    }

    /// The number, bold where no other run is better.
    fn bold(shown: String, run: &Run, all: &[&Run], better: fn(&Run) -> f64) -> String {
        let best = all.iter().all(|other| better(other) <= better(run));
        if best { format!("**{shown}**") } else { shown }
    }

    #[test]
    fn the_findings_name_the_build_of_every_cell() {
        let runs: Vec<Run> = rows("findings");
        let text = fs::read_to_string(reports().join("FINDINGS.md")).unwrap();
        let builds = distinct(runs.iter().map(|run| &run.build));
        let unnamed: Vec<&&String> =
            builds.iter().filter(|build| !text.contains(&format!("`{build}`"))).collect();
        assert!(unnamed.is_empty(), "say which cells are of {unnamed:?}, and of which day it is");
        let one = format!("All {} cells are of one build", runs.len());
        assert_eq!(text.contains(&one), builds.len() == 1, "{} of {builds:?}", runs.len());
    }

    #[test]
    fn the_findings_follow_from_their_runs() {
        let runs: Vec<Run> = rows("findings");
        let path = reports().join("FINDINGS.md");
        let machines = distinct(runs.iter().map(|run| &run.machine));
        assert_eq!(machines.len(), 2, "a machine as UGPU's, and one like an H100");
        for machine in machines {
            hold_table(&path, machine, &table(machine, &runs));
        }
    }
}

mod paper_tables {
    //! Does `reports/PAPERS.md` agree with the whole reproductions, and say why rows fail?
    //!
    //! `BLESS=1 cargo test --test release paper_tables` writes its tables from
    //! `reports/whole/PAPER.csv`, which is the `headlines.csv` of `gpumodel reproduce PAPER`, and
    //! the reasons from `models/papers/PAPER.toml`.

    use std::fmt::Write as _;
    use std::fs;
    use std::path::Path;

    use serde::Deserialize;

    use crate::report_data::{hold_table, reports};

    /// A line of `headlines.csv`.
    #[derive(Debug, Deserialize)]
    struct Line {
        scheme: String,
        over: String,
        set: String,
        measure: String,
        published_percent_low: f64,
        published_percent_high: f64,
        modelled_percent: f64,
        verdict: String,
        published: String,
    }

    impl Line {
        fn is_of(&self, other: &Self) -> bool {
            let words = |line: &Self| {
                let Self { scheme, over, set, measure, published, .. } = line;
                [scheme, over, set, measure, published].map(String::clone)
            };
            words(self) == words(other)
        }

        /// The printed gain or range.
        fn printed(&self) -> String {
            let (low, high) = (self.published_percent_low, self.published_percent_high);
            match low.total_cmp(&high) {
                std::cmp::Ordering::Equal => format!("{low:+} %"),
                _ => format!("{low} to {high} %"),
            }
        }
    }

    /// The headlines of a paper's file.
    #[derive(Debug, Deserialize)]
    struct Paper {
        headline: Vec<Reason>,
    }

    #[derive(Debug, Deserialize)]
    struct Reason {
        scheme: String,
        #[serde(default)]
        over: String,
        set: String,
        measure: String,
        analysis: Option<String>,
        impossible: Option<String>,
    }

    /// The rows of a file, each with how many mixes it is of: the last line of those of the same
    /// headline holds their mean.
    fn rows(path: &Path) -> Vec<(Line, usize)> {
        let mut rows: Vec<(Line, usize)> = Vec::new();
        for line in csv::Reader::from_path(path).unwrap().deserialize() {
            let line: Line = line.unwrap();
            let last = rows.pop_if(|(last, _)| last.is_of(&line));
            rows.push((line, last.map_or(0, |(_, mixes)| mixes + 1)));
        }
        rows
    }

    fn table(name: &str) -> String {
        let path = reports().join("whole").join(format!("{name}.csv"));
        let paper = reports().join(format!("../models/papers/{name}.toml"));
        let paper: Paper = toml::from_str(&fs::read_to_string(paper).unwrap()).unwrap();
        let mut table = String::from(
            "| | over | of | mixes | by | paper | model | |\n|---|---|---|---|---|---|---|---|\n",
        );
        let mut reasons: Vec<(&String, Vec<String>)> = Vec::new();
        for (at, (row, mixes)) in rows(&path).iter().enumerate() {
            let Line { scheme, over, set, measure, modelled_percent, verdict, .. } = row;
            let over = if over.is_empty() { String::new() } else { format!("`{over}`") };
            let number = (at + 1).to_string();
            let _ = writeln!(
                table,
                "| {number}: `{scheme}` | {over} | {set} | {mixes} | {measure} | {} | \
                 {modelled_percent:+.1} % | {verdict} |",
                row.printed(),
            );
            if ["same sign", "contradicts", "impossible", "no value"].contains(&verdict.as_str()) {
                let its = |reason: &&Reason| {
                    (&reason.scheme, &reason.over, &reason.set, &reason.measure)
                        == (&row.scheme, &row.over, &row.set, &row.measure)
                };
                let row_of = paper.headline.iter().find(its);
                let reason =
                    row_of.and_then(|its| its.impossible.as_ref().or(its.analysis.as_ref()));
                let reason = reason.unwrap_or_else(|| panic!("{name}: why does {row:?}"));
                match reasons.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, rows)) => rows.push(number),
                    None => reasons.push((reason, vec![number])),
                }
            }
        }
        table.push('\n');
        for (reason, rows) in reasons {
            let _ = writeln!(table, "- {}: {reason}", rows.join(", "));
        }
        table
    }

    #[test]
    fn the_verdicts_are_those_that_reproduce_prints() {
        let read = |name: &str| fs::read_to_string(reports().join(name)).unwrap();
        let (printed, text) = (read("quick/report.md"), read("PAPERS.md"));
        let rule: Vec<&str> =
            printed.lines().filter(|line| line.starts_with("- ")).take(5).collect();
        for (line, verdict) in
            rule.iter().zip(["agrees", "same sign", "contradicts", "impossible", "error"])
        {
            assert!(line.starts_with(&format!("- {verdict}: ")), "{line}");
            assert!(text.lines().any(|own| own == *line), "PAPERS.md lacks: {line}");
        }
    }

    #[test]
    fn the_tables_of_papers_give_reasons_for_failing_rows() {
        let folder = fs::read_dir(reports().join("whole")).unwrap();
        let mut names: Vec<String> = folder
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|name| Some(name.strip_suffix(".csv")?.to_owned()))
            .collect();
        names.sort();
        assert!(names.len() >= 3, "{names:?}");
        for name in names {
            hold_table(&reports().join("PAPERS.md"), &name, &table(&name));
        }
    }
}

mod silicon {
    //! Does `reports/SILICON.md` agree with the runs against a card's counters?
    //!
    //! `BLESS=1 cargo test --test release silicon` writes its table from
    //! `reports/data/silicon.csv`, which `reports/draw silicon` makes.

    use std::fmt::Write as _;

    use serde::Deserialize;

    use crate::report_data::{distinct, hold_table, reports, rows};

    /// The launches with columns.
    const FAR: [&str; 4] = ["dct_1d", "btree_find_range", "sobol", "quasirandom"];

    #[derive(Debug, Deserialize)]
    struct Line {
        mechanism: String,
        keys: String,
        launch: String,
        cycles: f64,
        card: f64,
    }

    impl Line {
        /// Its error in percent.
        fn error(&self) -> f64 {
            100.0 * (self.cycles / self.card - 1.0)
        }
    }

    /// Mean of the absolute errors, and the one farthest from zero.
    fn mean_and_worst(lines: &[&Line]) -> (f64, f64) {
        let errors: Vec<f64> = lines.iter().map(|line| line.error()).collect();
        let mean = errors.iter().map(|error| error.abs()).sum::<f64>() / errors.len() as f64;
        (mean, errors.into_iter().fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a }))
    }

    #[test]
    fn mechanisms_move_launches_as_their_runs_say() {
        let lines: Vec<Line> = rows("silicon");
        let mut text = format!("| | keys | `{}` | mean | worst |\n|---|---|", FAR.join("` | `"));
        text.push_str(&"---|".repeat(FAR.len() + 2));
        for mechanism in distinct(lines.iter().map(|line| &line.mechanism)) {
            let of: Vec<&Line> = lines.iter().filter(|l| l.mechanism == *mechanism).collect();
            let _ = write!(text, "\n| {mechanism} | {} |", of[0].keys.replace(' ', ", "));
            for launch in FAR {
                let line = of.iter().find(|line| line.launch == launch).unwrap();
                let _ = write!(text, " {:+.1} |", line.error());
            }
            assert_eq!(of.len(), 6, "{mechanism}");
            let (mean, worst) = mean_and_worst(&of);
            let _ = write!(text, " {mean:.1} | {worst:+.1} |");
        }
        text.push('\n');
        hold_table(&reports().join("SILICON.md"), "silicon", &text);
    }
}

mod software_tables {
    //! Do the pairs in `reports/SOFTWARE.md` agree with their runs?
    //!
    //! `BLESS=1 cargo test --test release software_tables` writes them from
    //! `reports/data/slate-pairs.csv` and `arcs-pairs.csv`.

    use std::collections::BTreeMap;
    use std::fmt::Write as _;

    use crate::report_data::{Run, hold_table, reports, rows};

    /// The gain that Slate prints over MPS, by pair (section V.E).
    const SLATE: [(&str, &str); 5] = [
        ("BS + RG", "+31 % (kernels)"),
        ("GS + GS2", "+24 %"),
        ("GS + RG", "+35 %, the best"),
        ("BS + MM", "-2 %"),
        ("mean", "+11 %, +18 % over CUDA, MPS +6 % over CUDA"),
    ];

    /// Kernels of ARCS 2018 that issue in less than half of their slots.
    const LOW: [&str; 3] = ["FD", "PF", "TP"];

    /// By mix, names joined by ` + `, and by scheme: its run.
    type Runs = BTreeMap<String, BTreeMap<String, Run>>;

    fn runs(name: &str) -> Runs {
        let mut runs = Runs::new();
        for run in rows::<Run>(name) {
            runs.entry(run.mix.clone()).or_default().insert(run.scheme.clone(), run);
        }
        runs
    }

    /// How much faster `scheme` ends than `over` in a mix; 0 is as fast.
    fn gain(mix: &BTreeMap<String, Run>, scheme: &str, over: &str) -> f64 {
        mix[over].makespan_cycles / mix[scheme].makespan_cycles - 1.0
    }

    #[allow(clippy::cast_precision_loss, reason = "few values")]
    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    fn percent(gain: f64) -> String {
        format!("{:+.0} %", gain * 100.0)
    }

    /// The gains of a mix, or the means of several: of `slate` over both, and of MPS over CUDA.
    fn gains(of: &[&BTreeMap<String, Run>]) -> String {
        let over = [("slate", "mps-leftover"), ("slate", "cuda"), ("mps-leftover", "cuda")];
        let gain = |(scheme, over)| {
            percent(mean(&of.iter().map(|mix| gain(mix, scheme, over)).collect::<Vec<_>>()))
        };
        over.map(gain).join(" | ")
    }

    #[test]
    fn the_pairs_of_slate_follow_from_their_runs() {
        let runs = runs("slate-pairs");
        assert_eq!(runs.len(), 15);
        let paper =
            |name: &str| SLATE.iter().find(|(of, _)| *of == name).map_or("", |(_, said)| said);
        let mut table = String::from(
            "| pair | runs them | over `mps-leftover` | over `cuda` | `mps-leftover` over `cuda` | \
             the paper, over MPS |\n|---|---|---|---|---|---|\n",
        );
        for (name, mix) in &runs {
            let together = mix["slate"].first_reason.ends_with("they go together");
            let how = if together { "together" } else { "in turns" };
            assert_eq!(together, name.contains("RG"), "as in the paper: {name}");
            let _ = writeln!(table, "| {name} | {how} | {} | {} |", gains(&[mix]), paper(name));
        }
        let all: Vec<_> = runs.values().collect();
        let _ = writeln!(table, "| mean | | {} | {} |", gains(&all), paper("mean"));
        let others: Vec<_> = runs.iter().filter(|(name, _)| !name.contains("TR")).collect();
        let of = gains(&others.iter().map(|(_, mix)| *mix).collect::<Vec<_>>());
        let _ = writeln!(table, "| mean without the transpose, ten pairs | | {of} | |");
        hold_table(&reports().join("SOFTWARE.md"), "slate-pairs", &table);
    }

    /// Both orders of each pair, the one whose first name comes first in the alphabet first.
    fn pairs(runs: &Runs) -> Vec<(String, [&BTreeMap<String, Run>; 2])> {
        let turned = |name: &str| {
            let (first, second) = name.split_once(" + ").unwrap();
            (first < second).then(|| format!("{second} + {first}"))
        };
        let both = |(name, mix)| Some((String::clone(name), [mix, &runs[&turned(name)?]]));
        runs.iter().filter_map(both).collect()
    }

    /// Rows of the pairs among `pairs` that hold a kernel of [`LOW`], or none, and their means.
    fn group(pairs: &[(String, [&BTreeMap<String, Run>; 2])], low: bool) -> String {
        let is_low = |name: &String| name.split(" + ").any(|app| LOW.contains(&app));
        let mut rows = String::new();
        let mut sums: [Vec<f64>; 2] = Default::default();
        let mut turnarounds: [Vec<f64>; 2] = Default::default();
        for (name, orders) in pairs.iter().filter(|(name, _)| is_low(name) == low) {
            let _ = write!(rows, "| {name} ");
            let mut means = Vec::new();
            for (at, scheme) in ["pt", "sim"].into_iter().enumerate() {
                let gains = orders.map(|mix| gain(mix, scheme, "sequential"));
                let _ = write!(
                    rows,
                    "| {} ",
                    gains.map(|gain| format!("{:.2}", 1.0 + gain)).join(", ")
                );
                means.push(percent(mean(&gains)));
                sums[at].extend(gains);
                turnarounds[at].extend(orders.map(|mix| mix[scheme].antt));
            }
            let _ = writeln!(rows, "| {} |", means.join(", "));
        }
        let (name, paper) = match low {
            true => ("low ISU", "the paper: +5.3, +9.8 %; ANTT of `sim` 49.2 % worse"),
            false => ("high ISU", "the paper: -0.5, +0.3 %; ANTT of `sim` 78.7 % worse"),
        };
        let sums = sums.map(|gains| format!("{:+.1} %", mean(&gains) * 100.0)).join(", ");
        let turnarounds = turnarounds.map(|antt| format!("{:.2}", mean(&antt))).join(", ");
        let _ =
            writeln!(rows, "| **mean, {name}** | | ANTT {turnarounds} | **{sums}** ({paper}) |");
        rows
    }

    #[test]
    fn the_pairs_of_tenancy_follow_from_their_runs() {
        let runs = runs("arcs-pairs");
        let pairs = pairs(&runs);
        assert_eq!((runs.len(), pairs.len()), (42, 21));
        let head = "| pair | `pt`: first, second comes first | `sim`: the same | mean of `pt`, \
                    `sim` |\n|---|---|---|---|\n";
        let table = format!("{head}{}{}", group(&pairs, true), group(&pairs, false));
        hold_table(&reports().join("SOFTWARE.md"), "arcs-pairs", &table);
    }
}

mod study_tables {
    //! Do the gains in `reports/ILP_SMRA.md` and the times of tasks in `reports/SOFTWARE.md`
    //! agree with the figures' tables?
    //!
    //! `BLESS=1 cargo test --test release study_tables` writes them from `reports/data/queues.csv`,
    //! `queues-job-ipc.csv` and `tasks.csv`.

    use std::collections::BTreeMap;
    use std::fmt::Write as _;

    use crate::report_data::{hold_table, reports, rows};

    /// The gains that ILP-SMRA prints over `even-queue`, by scheme (figures 3a and 4a).
    const GAINS: [(&str, &str); 3] = [
        ("ilp", "+19 %, +23 %"),
        ("ilp-smra", "+36 %, +44 %"),
        ("profile-based", "+26 %, not printed"),
    ];

    /// The values of Slate's figure 5 and table III, by benchmark.
    const TASKS: [(&str, &str); 5] = [
        ("gaussian", "task 10 halves the time of task 1, and is 28 to 31 % faster than CUDA"),
        ("black-scholes", "2 % faster with 1, 5 % slower with 10"),
        ("quasirandom", "faster"),
        ("sgemm", "faster"),
        ("matrix-transpose", "faster"),
    ];

    /// A row of a figure's own table by the names of its columns.
    type Row = BTreeMap<String, String>;

    /// The number in `column` of the row that holds these words in these columns.
    fn number(rows: &[Row], words: [(&str, &str); 2], column: &str) -> f64 {
        let row = rows.iter().find(|row| words.iter().all(|(name, word)| row[*name] == *word));
        row.unwrap_or_else(|| panic!("no row with {words:?}"))[column].parse().unwrap()
    }

    #[test]
    fn gains_of_queues_follow_from_their_figure() {
        let (throughput, ipc) = (rows("queues"), rows("queues-job-ipc"));
        let mut table = String::from(
            "| over `even-queue`, average of the five distributions | throughput | IPC of each \
             job's application | the paper (Fig. 3a, 4a) |\n|---|---|---|---|\n",
        );
        for (scheme, paper) in GAINS {
            let percent = |rows: &[Row], column| {
                let ratio = number(rows, [("queues", "average"), ("scheme", scheme)], column);
                format!("{:+.1}", (ratio - 1.0) * 100.0)
            };
            let [mean, low, high] =
                ["normalized", "low", "high"].map(|end| percent(&throughput, end));
            let own = percent(&ipc, "normalized");
            let _ =
                writeln!(table, "| `{scheme}` | {mean} % ({low} to {high}) | {own} % | {paper} |");
        }
        hold_table(&reports().join("ILP_SMRA.md"), "gains", &table);
    }

    #[test]
    fn times_of_tasks_follow_from_their_figure() {
        let rows = rows("tasks");
        let mut table =
            String::from("| | task of 1 | task of 10 | the paper |\n|---|---|---|---|\n");
        for (app, paper) in TASKS {
            let time = |task| number(&rows, [("app", app), ("task_blocks", task)], "normalized");
            let _ = writeln!(table, "| `{app}` | {:.2} | {:.2} | {paper} |", time("1"), time("10"));
        }
        hold_table(&reports().join("SOFTWARE.md"), "tasks", &table);
    }
}

mod ugpu_tables {
    //! Do the tables of `reports/UGPU.md` agree with their runs?
    //!
    //! `BLESS=1 cargo test --test release ugpu_tables` writes them from
    //! `reports/data/ugpu-joint.csv`.

    use std::collections::BTreeMap;
    use std::fmt::Write as _;

    use crate::report_data::{Run, distinct, hold_table, reports, rows};

    /// Place in the text, how it is written.
    type Table = (&'static str, fn(&Study) -> String);

    const TABLES: &[Table] = &[("joint", each_mix), ("energy", energies)];

    /// The runs of a study.
    struct Study {
        runs: Vec<Labelled>,
    }

    struct Labelled {
        /// The applications, and how the machine is set.
        mix: String,
        /// The scheme, with the parameters in which its runs differ.
        scheme: String,
        run: Run,
    }

    /// The runs of a mix by scheme.
    type Mix<'a> = BTreeMap<&'a str, &'a Run>;

    impl Study {
        fn read(name: &str) -> Self {
            let runs: Vec<Run> = rows(name);
            let labels: Vec<String> = runs.iter().map(|run| run.label(&runs)).collect();
            let all: Vec<_> = runs.iter().map(|run| run.overrides.clone()).collect();
            let labelled = |(run, scheme): (Run, String)| {
                // What all runs have is no part of a name.
                let everywhere = |key, value| all.iter().all(|of| of.get(key) == Some(value));
                let own = run.overrides.iter().filter(|&(key, value)| !everywhere(key, value));
                let settings = own.map(|(key, value)| format!("; `{key}={value}`"));
                let mix = listed(&run.mix, " + ") + &settings.collect::<String>();
                Labelled { mix, scheme, run }
            };
            Self { runs: runs.into_iter().zip(labels).map(labelled).collect() }
        }

        fn mixes(&self) -> Vec<&str> {
            distinct(self.runs.iter().map(|run| run.mix.as_str()))
        }

        fn schemes(&self) -> Vec<&str> {
            distinct(self.runs.iter().map(|run| run.scheme.as_str()))
        }

        /// The runs of `mix`, by scheme.
        fn of(&self, mix: &str) -> Mix<'_> {
            let own = self.runs.iter().filter(|run| run.mix == mix);
            own.map(|run| (run.scheme.as_str(), &run.run)).collect()
        }
    }

    /// The applications of a mix as the tables write them.
    fn listed(mix: &str, between: &str) -> String {
        mix.replace(between, ", ").to_uppercase()
    }

    /// STP of a run over that of the baseline; `None`: one of them was not run.
    fn gain(mix: &Mix<'_>, scheme: &str, baseline: &str) -> Option<f64> {
        Some(mix.get(scheme)?.stp / mix.get(baseline)?.stp)
    }

    fn percent(ratio: f64) -> String {
        format!("{:+.0} %", (ratio - 1.0) * 100.0)
    }

    fn geometric_mean(values: &[f64]) -> f64 {
        (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
    }

    /// The first lines of a table.
    fn header(columns: &[String]) -> String {
        format!("| {} |\n|{}\n", columns.join(" | "), "---|".repeat(columns.len()))
    }

    /// STP, ANTT, gain over the first scheme, and of pairs what the first application has at
    /// the end.
    fn each_run(study: &Study) -> String {
        let schemes = study.schemes();
        table(study, |runs, scheme| described(runs, scheme, schemes[0]))
    }

    /// The same, with a last row of geometric means.
    fn each_mix(study: &Study) -> String {
        each_run(study) + &means(study, "mean gain", gain, geometric_mean)
    }

    /// Energy of a thread instruction over that under the first scheme; the last row has means.
    fn energies(study: &Study) -> String {
        let schemes = study.schemes();
        let text = |runs: &Mix<'_>, scheme: &str| energy(runs, scheme, schemes[0]).map(percent);
        table(study, text) + &means(study, "mean", energy, mean)
    }

    /// Energy of a thread instruction over that of the baseline.
    fn energy(mix: &Mix<'_>, scheme: &str, baseline: &str) -> Option<f64> {
        Some(energy_of_instruction(mix.get(scheme)?) / energy_of_instruction(mix.get(baseline)?))
    }

    fn energy_of_instruction(run: &Run) -> f64 {
        run.energy_joules / run.thread_instructions
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    /// The last row: the mean over the mixes of what `value` says of a scheme, the baseline
    /// being the first one.
    fn means(
        study: &Study,
        name: &str,
        value: fn(&Mix<'_>, &str, &str) -> Option<f64>,
        mean: impl Fn(&[f64]) -> f64,
    ) -> String {
        let schemes = study.schemes();
        let mixes = study.mixes();
        let mut text = format!("| {name} |");
        for scheme in &schemes {
            let values = mixes.iter().filter_map(|mix| value(&study.of(mix), scheme, schemes[0]));
            let values: Vec<f64> = values.collect();
            let mean = match values.len() {
                _ if scheme == &schemes[0] => String::new(),
                0 => "not run".into(),
                number => format!("{} ({number})", percent(mean(&values))),
            };
            let _ = write!(text, " {mean} |");
        }
        text + "\n"
    }

    /// A row per mix and a column per scheme: what `text` says of the mix's runs.
    fn table(study: &Study, text: impl Fn(&Mix<'_>, &str) -> Option<String>) -> String {
        let schemes = study.schemes();
        let names = schemes.iter().map(|scheme| format!("`{scheme}`"));
        let mut lines =
            header(&std::iter::once("mix".to_string()).chain(names).collect::<Vec<_>>());
        for name in study.mixes() {
            let runs = study.of(name);
            let _ = write!(lines, "| {name} |");
            for scheme in &schemes {
                let _ = write!(lines, " {} |", text(&runs, scheme).unwrap_or("not run".into()));
            }
            lines.push('\n');
        }
        lines
    }

    /// A run in words; `None`: it was not run.
    fn described(runs: &Mix<'_>, scheme: &str, baseline: &str) -> Option<String> {
        let run = runs.get(scheme)?;
        let mut text = format!("{:.2} / {:.2}", run.stp, run.antt);
        let Some(gain) = gain(runs, scheme, baseline).filter(|_| scheme != baseline) else {
            return Some(text);
        };
        let _ = write!(text, "; {}", percent(gain));
        if let ([sms, _], [channels, _]) = (&run.sms[..], &run.channels[..]) {
            let _ = write!(text, "; {sms}, {channels}");
        }
        Some(text)
    }

    #[test]
    fn the_tables_follow_from_their_runs() {
        let study = Study::read("ugpu-joint");
        for (name, write) in TABLES {
            hold_table(&reports().join("UGPU.md"), name, &write(&study));
        }
    }

    #[test]
    fn a_partition_from_profiles_is_above_the_one_found_at_run_time_in_the_mean() {
        let study = Study::read("ugpu-joint");
        let mixes = study.mixes().into_iter();
        let gains: Vec<f64> =
            mixes.filter_map(|mix| gain(&study.of(mix), "ugpu-offline", "ugpu")).collect();
        assert!(gains.len() >= 10, "{}", gains.len());
        assert!(geometric_mean(&gains) >= 1.0, "{gains:?}");
    }
}
