//! Do the figures of slices of several sizes follow from the numbers, and show what a run got
//! when a setting exceeds the machine?

use gpumodel::report::figure::{Drawing, Figure, FigureInput};
use gpumodel::report::results::{Analysis, MigrationRecord};

use crate::drawn::texts;
use crate::shown_study::{alone, apart, cycles, sliced, studied, surface, surfaces};

fn drawn(name: &str, records: &[Analysis]) -> Result<Drawing, String> {
    let figure = Figure::named(name).unwrap();
    figure.draw(&FigureInput::new(records)).map_err(|error| error.to_string())
}

fn rows(drawing: &Drawing) -> Vec<Vec<String>> {
    let mut reader = csv::Reader::from_reader(drawing.csv.as_bytes());
    reader.records().map(|row| row.unwrap().iter().map(str::to_string).collect()).collect()
}

/// Column number `column` of a figure's values.
fn column(drawing: &Drawing, column: usize) -> Vec<String> {
    rows(drawing).into_iter().map(|mut row| row.swap_remove(column)).collect()
}

fn says(drawing: &Drawing, words: &str) -> bool {
    texts(&drawing.svg).iter().any(|text| text.words.contains(words))
}

#[test]
fn speed_is_over_the_most_of_a_line_for_each_resource() {
    let drawing = drawn("slice-speed", &sliced(2, false)).unwrap();
    let rows = rows(&drawing);
    let reported = |app: &str, resource: &str| -> Vec<(String, f64)> {
        let own = rows.iter().filter(|row| row[0] == app && row[2] == resource);
        own.map(|row| (row[3].clone(), row[5].parse().unwrap())).collect()
    };
    // The first computes: channels change nothing, SMs everything.
    assert!(reported("BO", "channels").iter().all(|(_, speed)| (speed - 1.0).abs() < 1e-9));
    let sms: Vec<(String, f64)> =
        [(20, 0.25), (40, 0.5), (60, 0.75), (80, 1.0)].map(|(n, s)| (n.to_string(), s)).into();
    assert_eq!(reported("BO", "sms"), sms);
    // The second has 53 per channel: 1696 with all, less than 40 SMs could.
    let channels: Vec<f64> = reported("FD", "channels").iter().map(|point| point.1).collect();
    assert_eq!(channels, [0.125, 0.25, 0.5, 0.75, 1.0]);
    assert!(reported("FD", "sms").iter().all(|(_, speed)| (speed - 1.0).abs() < 1e-9));
    assert_eq!(drawing.plots.len(), 2);
    assert!(says(&drawing, "FD (40 SMs)") && says(&drawing, "FD (16 channels)"));
}

#[test]
fn speed_is_over_half_of_the_machine_if_it_ran() {
    let mut records = sliced(2, false);
    records.iter_mut().for_each(|record| record.machine.sms = 80);
    let drawing = drawn("slice-speed", &records).unwrap();
    assert!(says(&drawing, "speed over 40 SMs, 16 ch."));
    let speeds = |app: &str, resource: &str| -> Vec<f64> {
        let rows = rows(&drawing).into_iter();
        let own = rows.filter(|row| row[0] == app && row[2] == resource);
        own.map(|row| row[5].parse().unwrap()).collect()
    };
    assert_eq!(speeds("BO", "sms"), [0.5, 1.0, 1.5, 2.0]);
    assert_eq!(speeds("FD", "channels"), [0.25, 0.5, 1.0, 1.5, 2.0]);
    // No run had all channels: only a pair, which divides them, shows that there are 32.
    for record in &mut records {
        record.coruns.retain(|run| run.apps[0].channels < 32);
    }
    let over = |records: &[Analysis], words: &str| {
        assert!(says(&drawn("slice-speed", records).unwrap(), words), "{words}");
    };
    over(&records, "speed over the largest");
    let mut pair = surface([1, 0], false);
    pair.machine.sms = 80;
    for app in pair.coruns.iter_mut().flat_map(|run| &mut run.apps) {
        app.migration = Some(MigrationRecord::default());
    }
    records.push(pair);
    over(&records, "speed over 40 SMs, 16 ch.");
    // One of them did not run on half.
    records[1].coruns.retain(|run| (run.apps[0].sms, run.apps[0].channels) != (40, 16));
    over(&records, "speed over the largest");
}

#[test]
fn a_map_has_a_cell_for_every_division_and_a_dash_for_missing_applications() {
    let drawing = drawn("slice-surface", &[surface([1, 0], false)]).unwrap();
    assert_eq!(rows(&drawing).len(), 8);
    assert_eq!(texts(&drawing.svg).iter().filter(|text| text.words == "–").count(), 1);
    // FD with 20 SMs and 24 channels is bound by SMs: 1200 of 1696; BO has 60 of 80.
    assert!(says(&drawing, "1.46") && says(&drawing, "SMs of FD"), "{}", drawing.csv);
    let best = rows(&drawing).into_iter().find(|row| row[4].starts_with("1.457")).unwrap();
    assert_eq!(best[..4], ["FD+BO", "FD", "20", "24"]);
}

#[test]
fn omissions_are_reported() {
    let drawing = drawn("slice-surface", &surfaces(6, false)).unwrap();
    assert!(says(&drawing, "2 more pairs are not drawn"));
    assert!(says(&drawn("slice-speed", &sliced(9, false)).unwrap(), "more lines are not drawn"));
}

#[test]
fn values_that_no_map_can_show_are_omitted() {
    for value in [f64::NAN, f64::INFINITY, 0.0] {
        let mut pair = surface([1, 0], false);
        pair.coruns.iter_mut().for_each(|run| run.stp = value);
        assert!(drawn("slice-surface", &[pair]).unwrap_err().contains("slices of several sizes"));
        let mut alone = sliced(1, false);
        alone[0].coruns.iter_mut().for_each(|run| run.apps[0].ipc = value);
        assert!(drawn("slice-speed", &alone).unwrap_err().contains("slices of several sizes"));
    }
    assert!(drawn("slice-speed", &apart(1, false)).is_err());
    assert!(drawn("slice-surface", &sliced(1, false)).is_err());
}

#[test]
fn missing_sms_and_ctas_have_no_points() {
    let mut record = studied(0, false);
    let solo = record.solo[0].clone();
    for sms in [16, 20, 100] {
        let mut run = alone(&solo, "solo", ("sms", sms), cycles(0));
        run.apps[0].sms = 16;
        record.coruns.push(run);
    }
    for ctas in [8, 100] {
        record.coruns.push(alone(&solo, "pt", ("ctas", ctas), cycles(0)));
    }
    let records = [record];
    let drawing = drawn("sm-scaling", &records).unwrap();
    assert_eq!(column(&drawing, 1), ["1", "2", "4", "8", "12", "16"]);
    assert!(says(&drawing, "3 more runs held as much as others"));
    let drawing = drawn("ctas", &records).unwrap();
    assert_eq!(column(&drawing, 2), ["1", "2", "3", "4", "6", "8"]);
    assert!(says(&drawing, "2 more runs held as much as others"));
}

#[test]
fn a_slice_beyond_the_machine_is_drawn_where_it_ran() {
    let mut records = sliced(1, false);
    let (sms, channels) = (String::from("sms"), String::from("channels"));
    let mut beyond = records[0].coruns.last().unwrap().clone();
    assert_eq!((beyond.apps[0].sms, beyond.apps[0].channels), (80, 16));
    beyond.parameters.insert(sms.clone(), "100".into());
    records[0].coruns.push(beyond);
    let drawing = drawn("slice-speed", &records).unwrap();
    assert!(column(&drawing, 3).iter().all(|count| count != "100"), "{}", drawing.csv);
    assert!(says(&drawing, "One more run held as much as another"));
    let mut pair = surface([1, 0], false);
    let mut beyond = pair.coruns[0].clone();
    beyond.parameters.extend([(sms, "100".into()), (channels, "64".into())]);
    pair.coruns.push(beyond);
    let drawing = drawn("slice-surface", &[pair]).unwrap();
    assert_eq!(column(&drawing, 2).len(), 8);
    assert!(says(&drawing, "One more run held as much as another"));
}
