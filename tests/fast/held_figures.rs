//! Do figures show what a run got when a setting exceeds the machine?

use gpumodel::report::figure::{Drawing, Figure, FigureInput};
use gpumodel::report::results::Analysis;

use crate::picture::texts;
use crate::shown_slices::{sliced, surface};
use crate::shown_study::{alone, cycles, studied};

fn draw(name: &str, records: &[Analysis]) -> Drawing {
    Figure::named(name).unwrap().draw(&FigureInput::new(records)).unwrap()
}

/// Column number `column` of a figure's values.
fn column(drawing: &Drawing, column: usize) -> Vec<String> {
    let mut reader = csv::Reader::from_reader(drawing.csv.as_bytes());
    reader.records().map(|row| row.unwrap()[column].to_string()).collect()
}

fn says(drawing: &Drawing, words: &str) -> bool {
    texts(&drawing.svg).iter().any(|text| text.words.contains(words))
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
    let drawing = draw("sm-scaling", &records);
    assert_eq!(column(&drawing, 1), ["1", "2", "4", "8", "12", "16"]);
    assert!(says(&drawing, "3 more runs held as much as others"));
    let drawing = draw("ctas", &records);
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
    let drawing = draw("slice-speed", &records);
    assert!(column(&drawing, 3).iter().all(|count| count != "100"), "{}", drawing.csv);
    assert!(says(&drawing, "One more run held as much as another"));
    let mut pair = surface([1, 0], false);
    let mut beyond = pair.coruns[0].clone();
    beyond.parameters.extend([(sms, "100".into()), (channels, "64".into())]);
    pair.coruns.push(beyond);
    let drawing = draw("slice-surface", &[pair]);
    assert_eq!(column(&drawing, 2).len(), 8);
    assert!(says(&drawing, "One more run held as much as another"));
}
