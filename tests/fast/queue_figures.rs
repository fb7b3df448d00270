//! Do the pictures of queues follow from the numbers?

use assert_cmd::Command;
use gpumodel::report::figure::{Area, Drawing, FIGURES, Figure, FigureInput, Source};
use gpumodel::report::results::{Analysis, with_short_names};
use gpumodel::report::{ReportError, page, table, write_all};

use crate::covering::clear;
use crate::drawn::{boxes, texts};
use crate::shown::small;
use crate::shown_queue::{Size, TWENTY, queued};

const STUDY: Size = Size { distributions: 5, seeds: 3, ..TWENTY };

fn draw(name: &str, records: &[Analysis]) -> Drawing {
    Figure::named(name).unwrap().draw(&FigureInput::new(records)).unwrap()
}

fn words(drawing: &Drawing) -> Vec<String> {
    texts(&drawing.svg).into_iter().map(|text| text.words).collect()
}

/// Jobs without a class, on a record that knows none.
fn unclassified(size: Size) -> Analysis {
    let mut record = queued(size);
    record.interference[0].apps.clear();
    record.queues.iter_mut().flat_map(|run| &mut run.jobs).for_each(|job| job.class = None);
    record
}

/// Every application is a separate class.
fn own_classes(jobs: u64) -> Analysis {
    let mut record = queued(Size { jobs, ..TWENTY });
    let names: Vec<String> = record.queues[0].jobs.iter().map(|job| job.app.clone()).collect();
    for job in record.queues.iter_mut().flat_map(|run| &mut run.jobs) {
        job.class = Some(job.app.clone());
    }
    let known = &mut record.interference[0];
    known.slowdown = vec![vec![1.25; names.len()]; names.len()];
    (known.classes, known.apps, known.published) = (names, Vec::new(), Vec::new());
    record
}

/// Scenes of every kind, by name.
fn gallery() -> Vec<(String, Drawing)> {
    let three = Size { jobs: 36, group: 3, ..TWENTY };
    let mut written = queued(TWENTY);
    written.queues.iter_mut().for_each(|run| {
        run.distribution = None;
        run.queue = "a queue with a rather long name that a person wrote down".into();
    });
    let scenes: Vec<(&str, Vec<Analysis>)> = vec![
        ("20 jobs", vec![queued(TWENTY)]),
        ("36 jobs", vec![queued(three)]),
        ("1 job", vec![queued(Size { jobs: 1, ..TWENTY })]),
        ("12 schemes", vec![queued(Size { schemes: 12, ..three })]),
        ("1000 jobs", vec![queued(Size { jobs: 1000, ..TWENTY })]),
        ("no class", vec![unclassified(TWENTY)]),
        ("own classes", vec![own_classes(20)]),
        ("36 own classes", vec![own_classes(36)]),
        ("a written queue", vec![written]),
        ("a study", vec![queued(STUDY), queued(Size { jobs: 36, group: 3, ..STUDY })]),
        ("many schemes", vec![queued(Size { schemes: 11, seeds: 2, ..STUDY })]),
    ];
    let mut drawings = Vec::new();
    for (input, records) in scenes {
        for figure in FIGURES.iter().filter(|figure| figure.source == Source::Queues) {
            let name = format!("{} of {input}", figure.name);
            let drawing =
                figure.draw(&FigureInput::new(&records)).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(!drawing.csv.is_empty(), "{name} has values");
            drawings.push((name, drawing));
        }
    }
    drawings
}

#[test]
fn no_elements_overlap() {
    for (name, drawing) in gallery() {
        if let Some(folder) = std::env::var_os("GALLERY") {
            let file = std::path::Path::new(&folder).join(format!("{name}.svg"));
            std::fs::write(file, &drawing.svg).unwrap();
        }
        assert!(drawing.svg.len() < 1 << 20, "{name} takes {} bytes", drawing.svg.len());
        clear(&name, &drawing);
    }
}

#[test]
fn the_map_shows_every_slow_down_and_the_published_ones() {
    let drawing = draw("interference", &[queued(TWENTY)]);
    let words = words(&drawing);
    for expected in ["2.83", "1.02", "2.05", "1.06–", "1.51", "as found", "as published"] {
        assert!(words.iter().any(|word| word.contains(expected)), "{expected}: {words:?}");
    }
    // Sixteen cells, six of them published.
    assert_eq!(words.iter().filter(|word| *word == "–").count(), 10, "{words:?}");
    let lines: Vec<&str> = drawing.csv.lines().collect();
    assert_eq!(lines.len(), 17);
    assert!(lines.contains(&"A,M,1.44,1.06,1.51") && lines.contains(&"A,MC,1.25,,"));
}

#[test]
fn bars_are_what_schemes_gain_on_the_queues_of_a_distribution() {
    let record = queued(STUDY);
    let drawing = draw("queues", std::slice::from_ref(&record));
    let mut ratios = Vec::new();
    for seed in 1..=3 {
        let of = |scheme: &str| {
            let is = |run: &&gpumodel::report::results::QueueRun| {
                let own = (run.scheme.as_str(), run.seed, run.distribution.as_deref());
                own == (scheme, seed, Some("C"))
            };
            record.queues.iter().find(is).unwrap().throughput_ipc
        };
        ratios.push(of("ilp-smra") / of("even-queue"));
    }
    let mean = ratios.iter().sum::<f64>() / 3.0;
    let line =
        drawing.csv.lines().find(|line| line.contains(",2,C,ilp-smra,throughput,3,")).unwrap();
    let value: f64 = line.split(',').nth(6).unwrap().parse().unwrap();
    assert!((value - mean).abs() < 1e-12, "{line}: {mean}");
    assert!(drawing.csv.lines().any(|line| line.contains("average,ilp,throughput,15,")));
    assert!(words(&drawing).iter().any(|word| word == "average"));
}

#[test]
fn metric_and_baseline_are_chosen_or_refused() {
    let records = [queued(STUDY)];
    let figure = Figure::named("queues").unwrap();
    let input = || FigureInput::new(&records);
    let drawing = figure.draw(&input().by("job-ipc").against("ilp")).unwrap();
    assert!(drawing.csv.lines().any(|line| line.contains(",equal,ilp,job-ipc,3,1,1,1")));
    let error = |input: FigureInput<'_>| figure.draw(&input).unwrap_err().to_string();
    assert!(error(input().by("speed")).contains("throughput, ipc, job-ipc"));
    assert!(error(input().against("cuda")).contains("even-queue, profile-based, ilp, ilp-smra"));
    let none = [small()];
    for name in ["interference", "queues", "schedule", "sm-share"] {
        let error =
            Figure::named(name).unwrap().draw(&FigureInput::new(&none)).unwrap_err().to_string();
        assert!(error.contains("--queue FILE.toml"), "{error}");
    }
}

#[test]
fn one_queue_is_chosen_by_name() {
    let records = [queued(STUDY)];
    for name in ["schedule", "sm-share"] {
        let figure = Figure::named(name).unwrap();
        let chosen = figure.draw(&FigureInput::new(&records).of("MC-2")).unwrap();
        assert!(chosen.title.ends_with(": MC-2"), "{}", chosen.title);
        let error = figure.draw(&FigureInput::new(&records).of("MC-9")).unwrap_err().to_string();
        assert!(error.contains("no queue is called MC-9; there are A-1, A-2"), "{error}");
    }
}

#[test]
fn plot_takes_the_queue_from_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let (json, svg, values) =
        (folder.path().join("r.json"), folder.path().join("s.svg"), folder.path().join("s.csv"));
    let record = queued(STUDY);
    std::fs::write(&json, record.to_json()).unwrap();
    let plot = |queue: &str| {
        let mut command = Command::cargo_bin("gpumodel").unwrap();
        command.arg("plot").arg(&json).args(["--figure", "schedule", "--queue", queue]);
        command.arg("-o").arg(&svg).arg("--csv").arg(&values);
        command.assert()
    };
    plot("A-3").success();
    let records = [with_short_names(&record)];
    let drawing =
        Figure::named("schedule").unwrap().draw(&FigureInput::new(&records).of("A-3")).unwrap();
    assert_eq!(std::fs::read_to_string(&svg).unwrap(), drawing.svg);
    assert_eq!(std::fs::read_to_string(&values).unwrap(), drawing.csv);
    plot("B-3").code(2);
}

#[test]
fn a_class_has_one_colour_in_every_queue() {
    let mut record = queued(STUDY);
    let whole = draw("schedule", std::slice::from_ref(&record));
    for job in record.queues.iter_mut().flat_map(|run| &mut run.jobs) {
        if job.class.as_deref() == Some("MC") {
            job.class = Some("A".into());
        }
    }
    let fewer = draw("schedule", std::slice::from_ref(&record));
    let swatches = |drawing: &Drawing| -> Vec<String> {
        let legend = drawing.legends[0];
        let all = boxes(&drawing.svg).into_iter().filter(|(area, _)| legend.holds(area));
        all.map(|(_, fill)| fill).collect()
    };
    assert_eq!(swatches(&whole), swatches(&fewer));
    assert_eq!(swatches(&whole).len(), 4);
}

#[test]
fn the_schedule_has_a_bar_for_every_job() {
    let record = queued(Size { schemes: 1, ..TWENTY });
    let drawing = draw("schedule", std::slice::from_ref(&record));
    let plot = drawing.plots[0];
    let run = &record.queues[0];
    let bars: Vec<Area> = boxes(&drawing.svg)
        .into_iter()
        .map(|(area, _)| area)
        .filter(|area| (area.height - 13.0).abs() < 0.01 && plot.holds(area))
        .collect();
    assert_eq!(bars.len(), run.jobs.len());
    let total: u64 = run.jobs.iter().map(|job| job.cycles).sum();
    let share =
        f64::from(u32::try_from(total).unwrap()) / f64::from(u32::try_from(run.cycles).unwrap());
    let width: f64 = bars.iter().map(|bar| bar.width).sum();
    assert!((width / plot.width - share).abs() < 0.01, "{width} of {}", plot.width);
    assert_eq!(drawing.csv.lines().count(), 21);
}

#[test]
fn shares_fill_the_machine_until_their_owners_end() {
    let mut record = queued(Size { jobs: 2, schemes: 4, ..TWENTY });
    record.queues.drain(..3);
    record.machine.sms = 60;
    let drawing = draw("sm-share", std::slice::from_ref(&record));
    let plot = drawing.plots[0];
    // Figures have one decimal.
    let (x, y, width, height) = (plot.x - 0.1, plot.y - 0.1, plot.width + 0.2, plot.height + 0.2);
    let around = Area { x, y, width, height };
    let white = "#FFFFFF";
    let parts: Vec<(Area, String)> =
        boxes(&drawing.svg).into_iter().filter(|(area, _)| around.holds(area)).collect();
    let sum = |idle: bool| -> f64 {
        let own = parts.iter().filter(|(_, fill)| (fill == white) == idle);
        own.map(|(area, _)| area.width * area.height).sum()
    };
    let whole = plot.width * plot.height;
    assert!((sum(true) + sum(false) - whole).abs() < whole * 0.01, "{parts:?}");
    assert!(sum(true) > 0.0, "one of both ends first");
    assert!(drawing.csv.lines().any(|line| line.contains(",8000,16000,26,")), "{}", drawing.csv);
}

#[test]
fn the_report_of_queues_needs_no_coruns() {
    let record = queued(STUDY);
    let folder = tempfile::tempdir().unwrap();
    let files = write_all(&record, folder.path()).unwrap();
    let named = |name: &str| files.iter().any(|file| file.ends_with(name));
    for name in ["interference", "queues", "schedule", "sm-share"] {
        assert!(named(&format!("{name}.svg")) && named(&format!("{name}.csv")), "{files:?}");
    }
    assert!(!named("schemes.svg"));
    let text = std::fs::read_to_string(folder.path().join("index.html")).unwrap();
    assert!(text.contains("<h2>Queues</h2>") && !text.contains("<h2>Together</h2>"));
    assert!(text.contains("<figure id=\"sm-share\">"));
    let mut hostile = queued(TWENTY);
    hostile.queues[0].queue = "<script>alert(1)</script>".into();
    hostile.interference[0].apps[0].class = "<b>".into();
    assert!(!page(&hostile, &[]).contains("<script>") && !page(&hostile, &[]).contains("<b>"));
}

#[test]
fn extreme_values_draw_or_refuse_and_end() {
    for (count, value) in [(u64::MAX, f64::MAX), (0, -1e300), (1, 5e-324), (7, f64::NAN)] {
        let mut record = queued(STUDY);
        record.machine.sms = count;
        for run in &mut record.queues {
            (run.cycles, run.throughput_ipc, run.mean_job_ipc) = (count, value, value);
            run.jobs[0].ipc = value;
            run.jobs[1].end_cycle = u64::MAX;
            let group = &mut run.groups[0];
            group.end_cycle = u64::MAX;
            group.shares[0].sms.fill(count);
        }
        record.interference[0].slowdown[0][0] = value;
        record.interference[0].published[0].high = value;
        for figure in FIGURES.iter().filter(|figure| figure.source == Source::Queues) {
            match figure.draw(&FigureInput::new(std::slice::from_ref(&record))) {
                Ok(drawing) => assert!(drawing.svg.len() < 1 << 20, "{}", figure.name),
                Err(error) => assert!(matches!(error, ReportError::Empty { .. }), "{error}"),
            }
        }
        assert!(!table::queue(&record, None).is_empty() && !page(&record, &[]).is_empty());
    }
}
