//! The report of microbenchmarks: a page, and next to it its figures and values.

use super::document::{Block, html};
use super::figure::{Sheet, benchmark_figures};
use super::results::Measurements;
use super::table::benchmark_tables;

/// The files of the report by name: `index.html`, `measure.json`, `values.csv`, `errors.csv`,
/// and each figure as SVG with its values.
#[must_use]
pub fn benchmark_files(measurements: &Measurements) -> Vec<(String, String)> {
    let figures = benchmark_figures(measurements, Sheet::default());
    let title = format!("Microbenchmarks on {}", measurements.machine);
    let machine = format!("{} (hash {})", measurements.machine, measurements.machine_hash);
    let mut facts = vec![
        (String::from("Machine"), machine),
        (String::from("Program"), measurements.program.clone()),
    ];
    if let Some(errors) = measurements.errors {
        let text = format!(
            "mean {:.1} %, median {:.1} %, worst {:.0} % of {} published values",
            errors.mean_percent, errors.median_percent, errors.worst_percent, errors.count
        );
        facts.push((String::from("Error"), text));
    }
    let tables = benchmark_tables(measurements);
    let mut files: Vec<(String, String)> =
        tables.iter().map(|(name, table)| (format!("{name}.csv"), table.csv())).collect();
    let [values, errors] = tables.map(|(_, table)| table);
    let mut blocks = vec![Block::Heading(1, title.clone()), Block::Facts(facts)];
    if !errors.is_empty() {
        blocks.push(Block::Table(errors));
    }
    for (name, drawing) in figures {
        let about = measurements.benchmarks.iter().find(|benchmark| benchmark.name == name);
        let about = about.map_or_else(String::new, |benchmark| benchmark.about.clone());
        files.push((format!("{name}.svg"), drawing.svg.clone()));
        files.push((format!("{name}.csv"), drawing.csv.clone()));
        blocks.push(Block::Figure(format!("{name}.svg"), about, Ok(drawing)));
    }
    blocks.extend([Block::Heading(2, String::from("Every value")), Block::Table(values)]);
    let json =
        serde_json::to_string_pretty(measurements).expect("plain data has no reason to fail");
    files.push((String::from("measure.json"), json + "\n"));
    files.push((String::from("index.html"), html(&title, &blocks)));
    files
}
