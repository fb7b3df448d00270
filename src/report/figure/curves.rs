//! Speed of each application against its CTAs per SM, as a scheme saw it when it
//! divided the SM, with what it chose (Warped-Slicer, Fig. 3b).

use gpumodel_core::units::to_usize;

use super::prelude::*;
use crate::results::CurveRecord;

const DOT: f64 = 3.0;

/// One application's points: CTAs and share of its largest speed.
struct Curve<'a> {
    record: &'a CurveRecord,
    points: Vec<(u32, f64)>,
    most: u32,
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let record = input.mix()?;
    let names = scheme_names(&record.coruns);
    let found: Vec<(&String, &DecisionRecord)> = names
        .iter()
        .zip(&record.coruns)
        .filter_map(|(name, run)| Some((name, decision(run)?)))
        .collect();
    let missing = "no scheme of the record sampled speeds against CTAs";
    ensure(!found.is_empty(), missing)?;
    let mut layout = input.layout("Speed against CTAs per SM, and the choice");
    let mut names = apps(&found);
    names.sort_by_key(|app| input.app_rank(app));
    layout.legend(&Entry::marks(&names));
    for (name, decision) in &found {
        let (cycle, reason) = (grouped(decision.cycle), &decision.reason);
        layout.note(&format!("{name}, cycle {cycle}: {reason}."));
        layout.skip(3.0);
        panel(&mut layout, decision, &names);
    }
    let chosen = |curve: &CurveRecord| curve.chosen > 0;
    let any = found.iter().flat_map(|(_, decision)| &decision.curves).any(chosen);
    let full = if any { "full, with a dashed line: chosen" } else { "none was chosen" };
    layout.note(&format!("Each as a share of its largest speed; open marks: sampled; {full}."));
    Ok(layout.finish(&input.footer()).with_csv(table(&found)))
}

/// The decision of `run` that knows most applications, the first of equal ones.
fn decision(run: &CoRun) -> Option<&DecisionRecord> {
    let count = |decision: &DecisionRecord| curves(decision).len();
    let more = |best: Option<&DecisionRecord>, next| best.is_none_or(|b| count(next) > count(b));
    let reported = run.decisions.iter().filter(|decision| count(decision) > 0);
    reported.fold(None, |best, next| if more(best, next) { Some(next) } else { best })
}

/// The curves of a decision that have points.
fn curves(decision: &DecisionRecord) -> Vec<Curve<'_>> {
    let curve = |record| {
        let points = points(record);
        let most = points.last()?.0.max(record.chosen);
        Some(Curve { record, points, most })
    };
    decision.curves.iter().filter_map(curve).collect()
}

/// The sampled points of a curve, normalised where the record does not say.
fn points(record: &CurveRecord) -> Vec<(u32, f64)> {
    let ipc = &record.ipc;
    let best = ipc.iter().flatten().copied().fold(0.0, f64::max);
    let reported = record.normalized.iter().flatten().next().is_some();
    let shares: Vec<Option<f64>> = match reported {
        true => record.normalized.clone(),
        false if best > 0.0 => ipc.iter().map(|value| value.map(|v| v / best)).collect(),
        false => Vec::new(),
    };
    let numbered = (1..).zip(shares);
    numbered.filter_map(|(ctas, share)| Some((ctas, share.filter(|s| s.is_finite())?))).collect()
}

/// Every application that a curve is about.
fn apps<'a>(found: &[(&String, &'a DecisionRecord)]) -> Vec<&'a str> {
    let curves = found.iter().flat_map(|(_, decision)| &decision.curves);
    distinct(curves.map(|curve| curve.app.as_str()))
}

/// The curves of a decision, each in the look of its application's place in `apps`.
fn panel(layout: &mut Layout, decision: &DecisionRecord, apps: &[&str]) {
    let curves = curves(decision);
    let most = curves.iter().map(|curve| curve.most).max();
    let level = |area: &Area| Scale::linear(0.0, 1.05, area.bottom(), area.y);
    let plot = CountPlot::new(layout, most, "CTAs per SM", level, "normalised speed");
    for curve in &curves {
        let place = apps.iter().position(|app| *app == curve.record.app);
        draw_curve(layout, curve, &plot, place.unwrap_or(apps.len()));
    }
    plot.finish(layout, 42.0);
}

fn draw_curve(layout: &mut Layout, curve: &Curve<'_>, plot: &CountPlot, index: usize) {
    let place = |&(ctas, share): &(u32, f64)| plot.at(ctas, share);
    let line: Vec<(f64, f64)> = curve.points.iter().map(place).collect();
    layout.canvas.stroke(&line, index, 1.6);
    for point in &line {
        layout.canvas.marker(*point, index, DOT, false);
    }
    let chosen = curve.record.chosen;
    if chosen == 0 {
        return;
    }
    let share = curve.points.iter().find(|(ctas, _)| *ctas == chosen).map(|point| point.1);
    let top = plot.at(chosen, share.unwrap_or(1.0));
    layout.canvas.dashes(plot.at(chosen, 0.0), top, Fill::of(index).colour, 1.0);
    if share.is_some() {
        layout.canvas.marker(top, index, DOT + 2.0, true);
    }
}

fn table(found: &[(&String, &DecisionRecord)]) -> String {
    let mut lines = Vec::new();
    for (scheme, decision) in found {
        for curve in curves(decision) {
            let record = curve.record;
            lines.extend(curve.points.iter().map(|&(ctas, share)| {
                let ipc = record.ipc.get(to_usize(ctas - 1)).copied().flatten();
                row![scheme, record.app, ctas, ipc, share, record.chosen == ctas]
            }));
        }
    }
    csv("scheme,app,ctas_per_sm,ipc,normalized,chosen", lines)
}

#[cfg(test)]
mod tests {
    use super::points;
    use crate::results::CurveRecord;

    #[test]
    fn points_are_those_that_were_sampled() {
        let curve = |normalized| CurveRecord {
            app: "a".into(),
            ipc: vec![Some(1.0), None, Some(4.0)],
            normalized,
            chosen: 3,
        };
        assert_eq!(points(&curve(Vec::new())), [(1, 0.25), (3, 1.0)]);
        assert_eq!(points(&curve(vec![Some(0.5), Some(0.9)])), [(1, 0.5), (2, 0.9)]);
    }
}
