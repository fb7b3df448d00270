//! Do the tables of `models/workloads/CALIBRATION.md` agree with the models' runs, and with their
//! launches?

mod solo_needs {
    //! Do the launches of the papers' kernels need what the papers print, and does
    //! `models/workloads/CALIBRATION.md` agree? Nothing runs here.

    use std::fs;

    use gpumodel::core::isa::Launch;
    use gpumodel::sim::Need;
    use gpumodel::sim::config::Machine;
    use gpumodel::trace::workload::Workload;
    use toml::Value;

    use crate::common::workloads;

    fn paper(name: &str) -> Value {
        toml::from_str(&gpumodel::models().text("papers", name).unwrap().text).unwrap()
    }

    fn warped_slicer() -> Machine {
        gpumodel::models().machine("warped-slicer", &[]).unwrap().machine
    }

    /// The first launch of a workload.
    fn launch(name: &str) -> Launch {
        let workload = Workload::load(name, &gpumodel::models()).unwrap();
        workload.kernel(0).launch().clone()
    }

    /// The cells of the calibration's table under the header that begins with `header`.
    fn table(header: &str) -> Vec<Vec<String>> {
        let text = fs::read_to_string(workloads().join("CALIBRATION.md")).unwrap();
        let lines = text.lines().skip_while(|line| !line.starts_with(header)).skip(2);
        let cells = |line: &str| -> Vec<String> {
            line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect()
        };
        lines.take_while(|line| line.starts_with('|')).map(cells).collect()
    }

    /// The paper's values of an application.
    fn printed<'a>(paper: &'a Value, app: &str) -> &'a Value {
        &paper["solo"]["app"][app]
    }

    fn number(value: &Value) -> f64 {
        let whole = value.as_integer().and_then(|whole| i32::try_from(whole).ok()).map(f64::from);
        whole.or(value.as_float()).unwrap()
    }

    #[test]
    fn warped_slicer_s_launches_are_those_of_table_2_and_cuts_are_listed() {
        let (paper, machine) = (paper("warped-slicer"), warped_slicer());
        let rows = table("| model | grid printed | modelled | block printed |");
        assert_eq!(rows.len(), paper["solo"]["app"].as_table().unwrap().len());
        for row in rows {
            let (app, launch) = (printed(&paper, &row[0]), launch(&row[0]));
            let printed = |key: &str| u64::try_from(app[key].as_integer().unwrap()).unwrap();
            let reported: Vec<u64> = row[1..].iter().map(|cell| cell.parse().unwrap()).collect();
            let found = [
                printed("grid"),
                launch.grid.count(),
                printed("block"),
                launch.block.count(),
                u64::from(launch.registers),
                u64::from(launch.shared_bytes),
                u64::from(Need::of(&launch, &machine).fits(&machine).0),
            ];
            assert_eq!(reported, found, "{}", row[0]);
            assert_eq!(reported[2], reported[3], "block of {}", row[0]);
            assert!(
                reported[1] == reported[0] || ["ws-dxt", "ws-nn"].contains(&row[0].as_str()),
                "{row:?}"
            );
            assert!(reported[1] <= reported[0], "{row:?}");
        }
    }

    #[test]
    fn a_full_sm_holds_the_registers_and_shared_memory_of_table_2() {
        let (paper, machine) = (paper("warped-slicer"), warped_slicer());
        for (name, app) in paper["solo"]["app"].as_table().unwrap() {
            let need = Need::of(&launch(name), &machine);
            let ctas = need.fits(&machine).0;
            let percent = |each: u32, all: u32| 100.0 * f64::from(ctas * each) / f64::from(all);
            // Printed is the mean over a run, in which an SM is not always full.
            let held = percent(need.registers, machine.sm.registers);
            let most = number(&app["registers_percent"]);
            assert!((-1.0..=5.0).contains(&(held - most)), "{name}: {held} %, printed {most}");
            let held = percent(need.shared_bytes, machine.shared.bytes);
            let most = number(&app["shared_percent"]);
            assert!((held - most).abs() < 1.0, "{name}: {held} % of shared memory, printed {most}");
        }
    }

    #[test]
    fn half_an_sm_holds_the_ctas_of_table_3_s_even_halves() {
        let (paper, mut half) = (paper("warped-slicer"), warped_slicer());
        half.sm.max_ctas /= 2;
        half.sm.max_warps /= 2;
        half.sm.registers /= 2;
        half.shared.bytes /= 2;
        for pair in paper["partitions"]["pair"].as_array().unwrap() {
            let [apps, even] = ["apps", "even"].map(|key| pair[key].as_array().unwrap());
            for (app, ctas) in apps.iter().zip(even) {
                let name = app.as_str().unwrap();
                let found = Need::of(&launch(name), &half).fits(&half).0;
                assert_eq!(Some(i64::from(found)), ctas.as_integer(), "{name}");
            }
        }
    }

    #[test]
    fn ugpu_s_memory_is_the_printed_one_of_table_2() {
        let paper = paper("ugpu");
        let rows = table("| model | MB printed | touched | error |");
        assert_eq!(rows.len(), paper["solo"]["app"].as_table().unwrap().len());
        for row in rows {
            let shown = |place: usize| row[place].trim_end_matches(" %").parse::<f64>().unwrap();
            let (reported, ours, error) = (shown(1), shown(2), shown(3));
            assert_eq!(reported, number(&printed(&paper, &row[0])["footprint_mb"]), "{row:?}");
            // From the numbers before rounding.
            assert!((100.0 * (ours / reported - 1.0) - error).abs() < 1.0, "{row:?}");
        }
    }
}

mod solo_tables {
    //! Do the tables of `models/workloads/CALIBRATION.md` agree with the models' runs?
    //!
    //! `BLESS=1 cargo test --test release solo_tables` writes them from
    //! `reports/data/solo-PAPER.csv`, `slate-scaling.csv` and `warped-slicer-curves.csv`.

    use std::collections::BTreeMap;
    use std::fmt::Write as _;

    use serde::Deserialize;
    use toml::Value;

    use crate::common::workloads;
    use crate::report_data::{hold_table, rows};
    use crate::solo::{
        Profile, Study, arcs_class, count, curve, demand_and_supply, gflop_per_s, ilp_class,
        number, slate_class, ugpu_class, warped_slicer_class,
    };

    /// Paper, place in the text, how it is written.
    type Table = (&'static str, &'static str, fn(&Study) -> String);

    const TABLES: &[Table] = &[
        ("slate", "slate", slate),
        ("arcs", "arcs", arcs),
        ("ugpu", "ugpu", ugpu),
        ("ugpu", "networks", networks),
        ("warped-slicer", "warped-slicer", warped_slicer),
        ("warped-slicer", "units", units),
        ("warped-slicer", "curves", curves),
        ("ilp-smra", "ilp-smra", ilp),
    ];

    /// A kernel of ARCS takes so many times as long as its model.
    const ARCS_SHORTER: f64 = 10.0;

    /// The most CTAs that an SM of Warped-Slicer holds.
    const MOST_CTAS: u32 = 8;

    /// A table of `columns`, separated as they are in it, and rows.
    fn table(columns: &str, rows: impl IntoIterator<Item = Vec<String>>) -> String {
        let mut text = format!("| {columns} |\n|{}\n", "---|".repeat(columns.split(" | ").count()));
        for row in rows {
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
        text
    }

    /// A row per model of which something is printed.
    fn printed(study: &Study, columns: &str, row: impl Fn(&str, &Value) -> Vec<String>) -> String {
        let models = study.models();
        let known = models.iter().filter_map(|model| Some((*model, study.printed(model)?)));
        let named = |(model, values): (&str, &Value)| {
            std::iter::once(format!("`{model}`")).chain(row(model, values)).collect()
        };
        table(columns, known.map(named))
    }

    /// A value of a row, whole or not.
    fn of(row: &Value, key: &str) -> f64 {
        row[key].as_integer().map_or_else(|| number(row, key), |whole| whole as f64)
    }

    /// The difference from the printed value.
    fn error(printed: f64, ours: f64) -> String {
        match ours / printed {
            times if times >= 2.0 => format!("{times:.1} times"),
            times => format!("{:+.0} %", (times - 1.0) * 100.0),
        }
    }

    /// This many digits of a number; of a large one all before the point.
    fn digits(value: f64, wanted: i32) -> String {
        if value == 0.0 {
            return String::from("0");
        }
        #[allow(clippy::cast_possible_truncation, reason = "a number's size in powers of ten")]
        let size = value.abs().log10().floor() as i32;
        let places = usize::try_from((wanted - 1 - size).max(0)).unwrap();
        format!("{value:.places$}")
    }

    /// Bandwidth: below one, with a digit behind the point.
    fn gb(value: f64) -> String {
        if value < 1.0 { format!("{value:.1}") } else { format!("{value:.0}") }
    }

    fn millions(cycles: f64) -> f64 {
        cycles / 1e6
    }

    fn slate(study: &Study) -> String {
        let columns = "model | GB/s printed | modelled | error | GFLOP/s printed | modelled | \
                       class printed | modelled | cycles";
        printed(study, columns, |model, row| {
            let word = |key: &str| row[key].as_str().unwrap();
            let bytes = [number(row, "gb_per_s"), study.modelled(model, "gb_per_s")];
            vec![
                format!("{:.1}", bytes[0]),
                format!("{:.1}", bytes[1]),
                error(bytes[0], bytes[1]),
                format!("{:.1}", number(row, "gflop_per_s")),
                format!("{:.1}", gflop_per_s(study, model)),
                format!("{} {}", word("compute"), word("memory")),
                slate_class(study, model),
                study.alone(model).cycles.to_string(),
            ]
        })
    }

    /// A row of the own table of the figure `sm-scaling`.
    #[derive(Deserialize)]
    struct Scaling {
        sms: String,
        gb_per_s: f64,
    }

    fn stream() -> String {
        let points: Vec<Scaling> = rows("slate-scaling");
        let sms: Vec<&str> = points.iter().map(|point| point.sms.as_str()).collect();
        let moved = points.iter().map(|point| format!("{:.0}", point.gb_per_s));
        let row = std::iter::once(String::from("GB/s")).chain(moved).collect();
        table(&format!("SMs | {}", sms.join(" | ")), [row])
    }

    fn arcs(study: &Study) -> String {
        let columns = "model | ms / 10 printed | modelled | error | ISU printed | modelled | group \
                       | modelled | cycles | what holds it back most";
        let listed = |group: &str, model: &str| {
            let models = study.paper["groups"][group].as_array().unwrap();
            models.iter().any(|entry| entry.as_str() == Some(model))
        };
        // The printed times hold what the transformation takes.
        let longer = 1.0 + number(&study.paper["transformation"], "added_time_percent") / 100.0;
        printed(study, columns, |model, row| {
            let time = number(row, "time_ms") / ARCS_SHORTER / longer;
            let times = [time, study.modelled(model, "time_ms")];
            vec![
                format!("{:.3}", times[0]),
                format!("{:.3}", times[1]),
                format!("{:+.1} %", (times[1] / times[0] - 1.0) * 100.0),
                format!("{:.1} %", number(row, "issued_percent")),
                format!("{:.1} %", study.modelled(model, "issued_percent")),
                String::from(if listed("low", model) { "low" } else { "high" }),
                arcs_class(study, model),
                study.alone(model).cycles.to_string(),
                held_back(study, model),
            ]
        })
    }

    /// The two causes that take most of the slot-cycles of a model's launches.
    fn held_back(study: &Study, model: &str) -> String {
        let app = study.alone(model);
        let mut known = [
            ("barriers", app.barrier),
            ("units, operand banks", app.execution_resource),
            ("instructions", app.instruction_buffer_empty),
            ("memory latency", app.long_memory_latency),
            ("dependent arithmetic", app.short_raw),
        ];
        known.sort_by(|a, b| b.1.total_cmp(&a.1));
        let words =
            known.iter().take(2).map(|(words, share)| format!("{words} {:.0} %", share * 100.0));
        words.collect::<Vec<_>>().join(", ")
    }

    /// The columns of a run on UGPU's machine: launches, M cycles, DRAM, demand, supply.
    fn on_ugpu(study: &Study, model: &str, launches: String) -> Vec<String> {
        let app = study.alone(model);
        let [demand, supply] = demand_and_supply(study, model);
        vec![
            launches,
            format!("{:.1}", millions(count(app.cycles))),
            gb(app.dram_bytes() / app.seconds(true) / 1e9),
            format!("{demand:.0}"),
            format!("{supply:.0}"),
        ]
    }

    /// The letter of what a model is bound by.
    fn letter(bound: &str) -> &'static str {
        if bound == "memory" { "M" } else { "C" }
    }

    fn ugpu(study: &Study) -> String {
        let columns = "model | MPKI printed | modelled | error | launches | M cycles | DRAM GB/s | \
                       demand | supply | bound";
        printed(study, columns, |model, row| {
            let misses = [of(row, "mpki_thread"), study.modelled(model, "mpki_thread")];
            let (kernels, ran) = (of(row, "kernels"), study.modelled(model, "kernels"));
            let launches = if kernels < ran {
                format!("{kernels} x {}", ran / kernels)
            } else {
                ran.to_string()
            };
            let mut cells =
                vec![misses[0].to_string(), digits(misses[1], 3), error(misses[0], misses[1])];
            cells.extend(on_ugpu(study, model, launches));
            let bound = row["bound"].as_str().unwrap();
            cells.push(format!("{} {}", letter(bound), letter(&ugpu_class(study, model))));
            cells
        })
    }

    /// The models of which nothing is printed.
    fn networks(study: &Study) -> String {
        let columns = "model | MPKI | launches | M cycles | DRAM GB/s | demand | supply | bound";
        let models = study.models().into_iter().filter(|model| study.printed(model).is_none());
        let row = |model: &str| {
            let launches = study.modelled(model, "kernels").to_string();
            let misses = digits(study.modelled(model, "mpki_thread"), 3);
            let mut cells = vec![format!("`{model}`"), misses];
            cells.extend(on_ugpu(study, model, launches));
            cells.push(letter(&ugpu_class(study, model)).to_owned());
            cells
        };
        table(columns, models.map(row))
    }

    fn warped_slicer(study: &Study) -> String {
        let columns = "model | B instructions printed | modelled | error | MPKI printed | modelled \
                       | error | registers % | shared % | CTAs | kernel, M cycles printed \
                       | modelled | class printed | modelled";
        printed(study, columns, |model, row| {
            let ours = |key: &str| study.modelled(model, key);
            let done =
                [of(row, "inst_millions"), ours("inst_millions")].map(|millions| millions / 1e3);
            let misses = [of(row, "mpki_warp"), ours("mpki_warp")];
            let held = |key: &str| format!("{} {:.0}", of(row, key), ours(key));
            let app = study.alone(model);
            let cycles = count(app.kernel_cycles) / app.kernels as f64;
            vec![
                format!("{:.1}", done[0]),
                format!("{:.2}", done[1]),
                error(done[0], done[1]),
                misses[0].to_string(),
                digits(misses[1], 3),
                error(misses[0], misses[1]),
                held("registers_percent"),
                held("shared_percent"),
                app.ctas_per_sm.to_string(),
                printed_cycles(of(row, "profile_percent")),
                digits(millions(cycles), 3),
                row["class"].as_str().unwrap().to_owned(),
                warped_slicer_class(study, model),
            ]
        })
    }

    /// Millions of cycles of a kernel, of which 5 K are so many percent; the window of 2 M is the
    /// most that is printed.
    fn printed_cycles(percent: f64) -> String {
        let cycles = 0.5 / percent;
        if cycles < 2.0 { digits(cycles, 2) } else { String::from("2 or more") }
    }

    fn units(study: &Study) -> String {
        let columns = "model | ALU % printed | modelled | SFU % printed | modelled | LD/ST % \
                       printed | modelled";
        let keys = ["alu_percent", "sfu_percent", "load_store_percent"];
        printed(study, columns, |model, row| {
            let both = |key| [of(row, key), study.modelled(model, key)];
            keys.into_iter().flat_map(both).map(|percent| format!("{percent:.0}")).collect()
        })
    }

    fn curves(study: &Study) -> String {
        let counts: Vec<String> = (1..=MOST_CTAS).map(|ctas| ctas.to_string()).collect();
        let columns = format!("model | {} | paper", counts.join(" | "));
        printed(study, &columns, |model, _| {
            let points: BTreeMap<u32, f64> = curve(study, model).into_iter().collect();
            let text = |ctas| match points.get(&ctas) {
                Some(&speed) if speed >= 1.0 => String::from("1"),
                Some(speed) => format!("{speed:.2}"),
                None => String::new(),
            };
            (1..=MOST_CTAS).map(text).chain([shape(&study.paper["curves"], model)]).collect()
        })
    }

    /// The paper's points of a model's curve.
    fn shape(curves: &Value, model: &str) -> String {
        let is = |value: &Value| value.as_str() == Some(model);
        let mut lists = curves.as_table().unwrap().iter();
        let named =
            |(_, list): &(&String, &Value)| list.as_array().is_some_and(|l| l.iter().any(is));
        let Some((name, _)) = lists.find(named) else { return String::from("not shown") };
        let mut text = name.replace('_', " ");
        let points = curves["point"].as_array().unwrap().iter().filter(|point| is(&point["app"]));
        for (place, point) in points.enumerate() {
            let (speed, ctas) =
                (of(point, "of_best_percent") / 100.0, of(point, "at_ctas_percent"));
            let _ = write!(text, "{} {speed} at {ctas} %", if place == 0 { ";" } else { "," });
        }
        text
    }

    fn ilp(study: &Study) -> String {
        let columns = "model | class printed | modelled | MB GB/s | of peak | L2 GB/s | of peak \
                       | R | IPC | of peak | k cycles | M warp instructions";
        printed(study, columns, |model, row| {
            let (app, profile) = (study.alone(model), Profile::of(study, model));
            vec![
                row["class"].as_str().unwrap().to_owned(),
                ilp_class(study, model),
                format!("{:.0}", profile.dram),
                format!("{:.2}", profile.dram / profile.peak_dram),
                format!("{:.0}", profile.l2),
                format!("{:.2}", profile.l2 / profile.peak_dram),
                format!("{:.3}", profile.ratio),
                format!("{:.0}", profile.ipc),
                format!("{:.2}", profile.ipc / profile.peak_ipc),
                format!("{:.0}", count(app.cycles) / 1e3),
                format!("{:.1}", millions(count(app.warp_instructions))),
            ]
        })
    }

    #[test]
    fn the_tables_follow_from_their_runs() {
        let path = workloads().join("CALIBRATION.md");
        for (paper, name, write) in TABLES {
            hold_table(&path, name, &write(&Study::read(paper)));
        }
        hold_table(&path, "stream", &stream());
    }
}
