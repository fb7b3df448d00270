//! Microbenchmarks: the model's curve and published points over it, a figure for each
//! benchmark whose points are numbers.

use super::Drawing;
use super::prelude::*;
use crate::results::{BenchmarkRecord, Measurements};

/// A benchmark's values as numbers.
struct Values {
    model: Vec<(f64, f64)>,
    published: Vec<(f64, f64)>,
}

/// The figures of `measurements`: the benchmark's name, and what is drawn of it.
#[must_use]
pub fn benchmark_figures(measurements: &Measurements, sheet: Sheet) -> Vec<(String, Drawing)> {
    let drawn = |benchmark: &BenchmarkRecord| {
        let values = values(benchmark)?;
        Some((benchmark.name.clone(), draw(measurements, benchmark, &values, sheet)))
    };
    measurements.benchmarks.iter().filter_map(drawn).collect()
}

/// The values of a benchmark with at least two points that are numbers; 0 has no place on a
/// logarithmic axis.
fn values(benchmark: &BenchmarkRecord) -> Option<Values> {
    let place = |at: &str| at.parse::<f64>().ok().filter(|at| *at > 0.0);
    let rows = || benchmark.rows.iter().filter_map(|row| Some((place(&row.at)?, row)));
    let model: Vec<_> = rows().map(|(at, row)| (at, row.model)).collect();
    let published = rows().filter_map(|(at, row)| Some((at, row.published?))).collect();
    (model.len() > 1).then_some(Values { model, published })
}

fn draw(
    measurements: &Measurements,
    benchmark: &BenchmarkRecord,
    values: &Values,
    sheet: Sheet,
) -> Drawing {
    let title = format!("{} of {}", benchmark.name, measurements.machine);
    let mut layout = Layout::new(sheet, &title);
    let mut entries = vec![Entry::new(Swatch::Mark(0), "model")];
    if !values.published.is_empty() {
        entries.push(Entry::new(Swatch::Ring(INK), "published"));
    }
    layout.legend(&entries);
    let area = layout.plot(62.0, 14.0, layout.chosen(150.0));
    let (x, y) = scales(&area, values);
    across(&mut layout.canvas, &area, &x, &benchmark.at);
    down(&mut layout.canvas, &area, &y, &benchmark.unit, 12.0);
    let place = |&(at, value): &(f64, f64)| (x.at(at), y.at(value));
    layout.canvas.curve(&values.model.iter().map(place).collect::<Vec<_>>(), 0);
    for point in values.published.iter().map(place) {
        layout.canvas.circle(point, 5.0, INK, false);
    }
    outline(&mut layout.canvas, &area);
    layout.skip(36.0);
    if let Some(errors) = benchmark.errors() {
        layout.note(&format!(
            "{} published values: mean error {:.1} %, worst {:.0} %.",
            errors.count, errors.mean_percent, errors.worst_percent
        ));
    }
    let footer =
        format!("{} {}; {}", measurements.machine, measurements.machine_hash, measurements.program);
    layout.finish(&footer).with_csv(table(benchmark))
}

/// Sizes are shown as powers, and so are times that grow with them.
fn scales(area: &Area, values: &Values) -> (Scale, Scale) {
    let all = || values.model.iter().chain(&values.published).copied();
    let least = all().map(|(at, _)| at).fold(f64::MAX, f64::min);
    let most = all().map(|(at, _)| at).fold(0.0, f64::max);
    let highest = all().map(|(_, value)| value).fold(0.0, f64::max);
    let x = Scale::log(least / 1.15, most * 1.15, area.x, area.right());
    (x, Scale::from_zero(1.05 * highest, area.bottom(), area.y))
}

fn table(benchmark: &BenchmarkRecord) -> String {
    let rows = benchmark.rows.iter();
    let lines = rows.map(|row| row![row.at, row.model, row.published, row.error_percent]);
    csv("at,model,published,error_percent", lines.collect::<Vec<_>>())
}
