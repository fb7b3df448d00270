//! Speed of each application against its CTAs per SM, as a scheme saw it when it
//! divided the SM, with what it chose (Warped-Slicer, Fig. 3b). Of two applications
//! the second runs from the right, so that the lines meet where both share the SM.

use gpumodel_core::units::to_usize;

use super::prelude::*;
use crate::results::CurveRecord;

const LEFT: f64 = 62.0;
const RIGHT: f64 = 20.0;
const HEIGHT: f64 = 150.0;
/// Room for the axis of one application.
const AXIS: f64 = 30.0;
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
    layout.legend(&Entry::marks(&apps(&found)));
    for (name, decision) in &found {
        layout.note(&format!("{name}, cycle {}: {}", grouped(decision.cycle), decision.reason));
        layout.skip(3.0);
        panel(&mut layout, decision);
    }
    layout.note("Each as a share of its own largest speed; open marks: sampled; full: chosen. Of two applications each axis spans its own largest count.");
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

/// Every application that a curve is about, in the order of the legend.
fn apps<'a>(found: &[(&String, &'a DecisionRecord)]) -> Vec<&'a str> {
    let curves = found.iter().flat_map(|(_, decision)| &decision.curves);
    distinct(curves.map(|curve| curve.app.as_str()))
}

fn panel(layout: &mut Layout, decision: &DecisionRecord) {
    let curves = curves(decision);
    let mirrored = curves.len() == 2;
    layout.skip(if mirrored { AXIS } else { 0.0 });
    let area = layout.plot(LEFT, RIGHT, layout.chosen(HEIGHT));
    let level = Scale::linear(0.0, 1.05, area.bottom(), area.y);
    down(&mut layout.canvas, &area, &level, "normalised speed", 12.0);
    let most = curves.iter().map(|curve| curve.most).max().unwrap_or(1);
    for (index, curve) in curves.iter().enumerate() {
        let back = mirrored && index == 1;
        let whole = if mirrored { curve.most } else { most };
        let (from, to) = (area.x + 6.0, area.right() - 6.0);
        let ends = if back { (to, from) } else { (from, to) };
        // No CTAs lie at the very edge, so that both have the same SM.
        let x = Scale::linear(0.0, f64::from(whole), ends.0, ends.1);
        if mirrored || index == 0 {
            let title = if mirrored {
                format!("CTAs of {}", fit(&curve.record.app, LABEL, layout.share(250.0)))
            } else {
                "CTAs per SM".into()
            };
            axis(layout, &area, &x, whole, &title, back);
        }
        draw_curve(layout, curve, &x, &level, index);
    }
    outline(&mut layout.canvas, &area);
    layout.skip(AXIS + 12.0);
}

/// Whole numbers of CTAs below `area`, or above it.
fn axis(layout: &mut Layout, area: &Area, x: &Scale, most: u32, title: &str, above: bool) {
    let step = most.div_ceil(if layout.narrow() { 8 } else { 16 }).max(1);
    let (labels, titles) = if above { (-8.0, -22.0) } else { (9.0, 23.0) };
    let edge = if above { area.y } else { area.bottom() };
    for ctas in (step..=most).step_by(to_usize(step)) {
        let at = x.at(f64::from(ctas));
        let tick = if above { area.y + 4.0 } else { area.bottom() - 4.0 };
        layout.canvas.line(vec![(at, edge), (at, tick)], INK, 0.8);
        let label = short(f64::from(ctas));
        layout.canvas.write(label, (at, edge + labels), LABEL, Anchor::Centre);
    }
    layout.canvas.write(title, (area.x + area.width / 2.0, edge + titles), LABEL, Anchor::Centre);
}

fn draw_curve(layout: &mut Layout, curve: &Curve<'_>, x: &Scale, level: &Scale, index: usize) {
    let place = |&(ctas, share): &(u32, f64)| (x.at(f64::from(ctas)), level.at(share));
    let line: Vec<(f64, f64)> = curve.points.iter().map(place).collect();
    layout.canvas.stroke(&line, index, 1.6);
    for point in &line {
        layout.canvas.marker(*point, index, DOT, false);
    }
    let chosen = curve.record.chosen;
    if chosen == 0 {
        return;
    }
    let at = x.at(f64::from(chosen));
    let bottom = level.at(level.low());
    let share = curve.points.iter().find(|(ctas, _)| *ctas == chosen).map(|point| point.1);
    let top = share.map_or(level.at(1.0), |share| level.at(share));
    layout.canvas.dashes((at, bottom), (at, top), Fill::of(index).colour, 1.0);
    if share.is_some() {
        layout.canvas.marker((at, top), index, DOT + 2.0, true);
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
