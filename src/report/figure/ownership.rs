//! How many SMs and memory channels belong to each application over time, as the plans of each
//! scheme say: step areas, SMs above, channels below.

use super::prelude::*;

/// Room left of the panels, at least and at most: names take what they need.
const LEFT: f64 = 48.0;
const WIDEST: f64 = 200.0;
const RIGHT: f64 = 14.0;
/// Room of numbers and of the title between a name and a panel, and where the title stands.
const NUMBERS: f64 = 38.0;
const TITLE: f64 = 29.0;
/// Heights of both areas of a panel, the room above them, and between panels.
const SMS: f64 = 56.0;
const CHANNELS: f64 = 44.0;
const ABOVE: f64 = 6.0;
const BETWEEN: f64 = 13.0;
/// Schemes that are drawn.
const SCHEMES: usize = 12;
/// How far a part runs into the next, so that no seam shows between them.
const SEAM: f64 = 0.4;
/// Narrower parts have no line above them.
const STEP: f64 = 1.5;

/// What is missing where no plan says.
const MISSING: &str = "no plan of the record says how SMs are divided";

/// One scheme's panel.
struct Panel<'a> {
    name: String,
    run: &'a CoRun,
    stretches: Vec<Stretch>,
    /// The places of its applications, from below.
    places: Vec<usize>,
}

/// A time in which ownership stays as it is.
struct Stretch {
    from: u64,
    to: u64,
    sms: Division,
    channels: Division,
}

/// How many of something each application has for itself, and how many several share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Division {
    own: Vec<u64>,
    shared: u64,
}

/// What one area of a panel divides.
struct Kind {
    title: &'static str,
    /// Usual height of the area.
    height: f64,
    /// How many there are; 0: the area is not drawn.
    all: u64,
    of: fn(&Stretch) -> &Division,
}

/// How many SMs and channels there are; no channels where none are owned.
#[derive(Clone, Copy)]
struct Totals {
    sms: u64,
    channels: u64,
}

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let record = input.mix()?;
    let totals = Totals::of(record);
    let panels = panels(input, record, totals);
    ensure(!panels.is_empty(), MISSING)?;
    let mut layout = input.layout("Owners of SMs and memory channels over time");
    layout.legend(&entries(&panels));
    let drawn = &panels[..panels.len().min(SCHEMES)];
    let end = drawn.iter().map(|panel| panel.run.cycles).max().unwrap_or(1);
    let names: Vec<&str> = drawn.iter().map(|panel| panel.name.as_str()).collect();
    let left = layout.left_of(&names, LABEL, (LEFT, WIDEST), NUMBERS + 8.0);
    for (place, panel) in drawn.iter().enumerate() {
        layout.skip(BETWEEN);
        panel.draw(&mut layout, totals, (left, end), place + 1 == drawn.len());
    }
    layout.note("As planned: SMs that are being vacated, and pages under way, count for the new owner. White: without an owner. Ticks above: decisions.");
    layout.left_out(panels.len() - drawn.len(), "schemes are not drawn");
    Ok(layout.finish(&input.footer()).with_csv(table(&panels)))
}

/// The applications in their colours, and what they share.
fn entries(panels: &[Panel<'_>]) -> Vec<Entry> {
    let mut entries = app_entries(panels.iter().map(|panel| (panel.run, &panel.places[..])));
    let mut stretches = panels.iter().flat_map(|panel| &panel.stretches);
    let shared = stretches.any(|one| one.sms.shared > 0 || one.channels.shared > 0);
    entries.extend(shared.then(|| Entry::new(Swatch::Fill(Fill::plain(REST)), "shared")));
    entries
}

/// The co-runs whose plans divide SMs.
fn panels<'a>(input: &FigureInput<'_>, record: &'a Analysis, totals: Totals) -> Vec<Panel<'a>> {
    let panel = |(name, run): (String, _)| {
        let stretches = stretches(run, totals);
        let any = |one: &Stretch| one.sms != Division::of_none(run.apps.len());
        let places = input.places(run);
        stretches.iter().any(any).then_some(Panel { name, run, stretches, places })
    };
    scheme_names(&record.coruns).into_iter().zip(&record.coruns).filter_map(panel).collect()
}

/// The list `key` of a plan; empty where it has none.
fn list<'a>(decision: &'a DecisionRecord, key: &str) -> &'a [serde_json::Value] {
    decision.plan.get(key).and_then(serde_json::Value::as_array).map_or(&[], Vec::as_slice)
}

impl Totals {
    fn of(record: &Analysis) -> Self {
        let decisions = || record.coruns.iter().flat_map(|run| &run.decisions);
        let count = |value: &serde_json::Value| value.as_array().map_or(0, |all| length(all));
        let sms = decisions().flat_map(|one| list(one, "shares")).map(count).max();
        let sms = sms.filter(|sms| *sms > 0).unwrap_or(record.machine.sms.max(1));
        let owned = decisions().map(|one| list(one, "channels").iter().map(count).sum());
        Self { sms, channels: owned.max().unwrap_or(0) }
    }
}

/// How many values a list has.
fn length(all: &[serde_json::Value]) -> u64 {
    gpumodel_core::units::to_u64(all.len())
}

/// The times in which ownership stays as it is, from the first plan to the end of the run.
fn stretches(run: &CoRun, totals: Totals) -> Vec<Stretch> {
    let mut plans: Vec<(u64, &DecisionRecord)> = Vec::new();
    for decision in &run.decisions {
        let delay = decision.plan.get("delay").and_then(serde_json::Value::as_u64).unwrap_or(0);
        let from = decision.cycle.saturating_add(delay);
        plans.retain(|(other, _)| *other < from);
        plans.push((from, decision));
    }
    let ends = run.apps.iter().flat_map(|app| [app.arrival_cycle, app.end_cycle]);
    let cuts: BTreeSet<u64> = plans.iter().map(|(from, _)| *from).chain(ends).collect();
    let cuts: Vec<u64> = cuts.into_iter().filter(|cut| *cut < run.cycles).collect();
    let next = cuts.iter().skip(1).copied().chain([run.cycles]);
    let stretch = |(&from, to): (&u64, u64)| {
        let (_, decision) = plans.iter().rev().find(|(start, _)| *start <= from)?;
        let active: Vec<bool> = run.apps.iter().map(|app| is_active(app, from)).collect();
        let sms = sms(list(decision, "shares"), &active, totals.sms);
        let channels = channels(list(decision, "channels"), &sms, &active, totals.channels);
        Some(Stretch { from, to, sms, channels })
    };
    cuts.iter().zip(next).filter_map(stretch).collect()
}

/// Whether an application is there at a cycle: those that are started again stay.
fn is_active(app: &CoRunApp, cycle: u64) -> bool {
    let ended = app.finished && app.runs <= 1 && app.end_cycle > 0 && app.end_cycle <= cycle;
    app.arrival_cycle <= cycle && !ended
}

/// The SMs of each application: those where it alone may hold CTAs.
fn sms(shares: &[serde_json::Value], active: &[bool], all: u64) -> Division {
    let quotas = |app: usize| shares.get(app).filter(|_| active[app]);
    let holds = |quota: &serde_json::Value| quota.as_u64().is_some_and(|ctas| ctas > 0);
    let by_sm = shares.iter().filter_map(serde_json::Value::as_array).map(Vec::len).max();
    let mut division = Division::of_none(active.len());
    // A quota that is the same everywhere is one number.
    let (places, each) = by_sm.map_or((1, all), |places| (places, 1));
    for sm in 0..places {
        let here = |app: &usize| {
            let quota = quotas(*app).and_then(|share| match share.as_array() {
                Some(by_sm) => by_sm.get(sm),
                None => Some(share),
            });
            quota.is_some_and(holds)
        };
        division.give((0..active.len()).filter(here), each);
    }
    division
}

/// The channels of each application; where none are owned, those that have SMs share all.
fn channels(lists: &[serde_json::Value], sms: &Division, active: &[bool], all: u64) -> Division {
    let mut division = Division::of_none(active.len());
    if lists.is_empty() {
        let present = |app: &usize| sms.own[*app] > 0 || (sms.shared > 0 && active[*app]);
        division.give((0..active.len()).filter(present), all);
        return division;
    }
    for (app, list) in lists.iter().enumerate().filter(|(app, _)| active.get(*app) == Some(&true)) {
        division.own[app] = list.as_array().map_or(0, |all| length(all));
    }
    division
}

impl Division {
    /// None of anything for so many applications.
    fn of_none(apps: usize) -> Self {
        Self { own: vec![0; apps], shared: 0 }
    }

    /// Adds `count` that belong to `owners`.
    fn give(&mut self, mut owners: impl Iterator<Item = usize>, count: u64) {
        match (owners.next(), owners.next()) {
            (None, _) => {}
            (Some(app), None) => self.own[app] = self.own[app].saturating_add(count),
            (Some(_), Some(_)) => self.shared = self.shared.saturating_add(count),
        }
    }

    /// The parts from below, applications in the order `places`: a fill and how many.
    fn parts(&self, places: &[usize]) -> impl Iterator<Item = (Fill, u64)> {
        let own = places.iter().enumerate().map(|(at, app)| (Fill::flat(at), self.own[*app]));
        own.chain([(Fill::plain(REST), self.shared)]).filter(|(_, count)| *count > 0)
    }
}

impl Panel<'_> {
    /// Draws both areas of a scheme above its axis, which has a title below the last.
    fn draw(&self, layout: &mut Layout, totals: Totals, (left, end): (f64, u64), last: bool) {
        let top = layout.top();
        let kinds = [
            Kind { title: "SMs", height: SMS, all: totals.sms, of: |one| &one.sms },
            Kind {
                title: "channels",
                height: CHANNELS,
                all: totals.channels,
                of: |one| &one.channels,
            },
        ];
        let shown = kinds.iter().filter(|kind| kind.all > 0).count();
        for (place, kind) in kinds.iter().take(shown).enumerate() {
            layout.skip(if place == 0 { 0.0 } else { ABOVE });
            let area = layout.plot(left, RIGHT, layout.chosen(kind.height));
            let time = Scale::linear(0.0, float(end), area.x, area.right());
            if place + 1 == shown {
                across(&mut layout.canvas, &area, &time, if last { "cycle" } else { "" });
            } else {
                ticks(&mut layout.canvas, &area, &time);
            }
            if place == 0 {
                decision_ticks(layout, self.run, &time, (area.y - 4.0, area.y));
            }
            numbers(layout, &area, kind);
            self.fill(layout, &area, &time, kind);
            outline(&mut layout.canvas, &area);
        }
        let at = (left - NUMBERS, f64::midpoint(top, layout.top()));
        let room = (left - NUMBERS - 8.0, layout.top() - top);
        left_of(&mut layout.canvas, &self.name, at, room);
        layout.skip(if last { 36.0 } else { AXIS_HEIGHT - 6.0 });
    }

    /// Fills an area with the parts of a kind.
    fn fill(&self, layout: &mut Layout, area: &Area, time: &Scale, kind: &Kind) {
        let level = Scale::linear(0.0, float(kind.all), area.bottom(), area.y);
        let of = kind.of;
        let mut bar_row = BarRow::default();
        for same in self.stretches.chunk_by(|one, next| of(one) == of(next)) {
            let (first, last) = (&same[0], &same[same.len() - 1]);
            let ends = (time.at(float(first.from)), time.at(float(last.to)));
            let Some((from, to)) = bar_row.add(ends.0, ends.1) else { continue };
            let beyond = (to + SEAM).min(area.right());
            let mut below = 0_u64;
            for (fill, count) in of(first).parts(&self.places) {
                let above = below.saturating_add(count);
                let (top, bottom) = (level.at(float(above)), level.at(float(below)));
                layout.canvas.fill(Area::new(from, top, beyond - from, bottom - top), fill);
                if to - from >= STEP {
                    layout.canvas.line(vec![(from, top), (to, top)], INK, 0.5);
                }
                below = above;
            }
        }
    }
}

/// How many there are of what an area divides, left of it.
fn numbers(layout: &mut Layout, area: &Area, kind: &Kind) {
    let half = NOTE / 2.0;
    let most = short(float(kind.all));
    for (words, y) in [("0".into(), area.bottom() - half), (most, area.y + half)] {
        layout.canvas.write(words, (area.x - 5.0, y), NOTE, Anchor::Right);
    }
    let fits = text_width(kind.title, NOTE) <= area.height + ABOVE;
    let title = if fits { kind.title } else { "ch." };
    let at = (area.x - TITLE, area.y + area.height / 2.0);
    layout.canvas.text(Label::new(title, at, NOTE, Anchor::Centre).upwards());
}

/// A line for each stretch and application that owns something in it.
fn table(panels: &[Panel<'_>]) -> String {
    let mut lines = Vec::new();
    for panel in panels {
        for Stretch { from, to, sms, channels } in &panel.stretches {
            let counts = sms.own.iter().zip(&channels.own);
            let apps = panel.run.apps.iter().map(|app| app.app.as_str()).zip(counts);
            let all = apps.chain([("shared", (&sms.shared, &channels.shared))]);
            let any = all.filter(|(_, (sms, channels))| **sms > 0 || **channels > 0);
            lines.extend(
                any.map(|(app, (sms, channels))| row![panel.name, from, to, app, sms, channels]),
            );
        }
    }
    csv("scheme,start_cycle,end_cycle,app,sms,channels", lines)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Totals, stretches};
    use crate::results::{CoRun, CoRunApp, DecisionRecord};

    /// A run of 100 cycles of two applications, the second of which ends at 60.
    fn run(plans: &[(u64, serde_json::Value)]) -> CoRun {
        let decision = |(cycle, plan): &(u64, serde_json::Value)| DecisionRecord {
            cycle: *cycle,
            plan: plan.clone(),
            ..DecisionRecord::default()
        };
        let app = |end_cycle| CoRunApp { end_cycle, finished: true, runs: 1, ..Default::default() };
        CoRun {
            cycles: 100,
            apps: vec![app(100), app(60)],
            decisions: plans.iter().map(decision).collect(),
            ..CoRun::default()
        }
    }

    /// From, to, SMs and channels of each, and shared.
    fn found(run: &CoRun) -> Vec<(u64, u64, [u64; 3], [u64; 3])> {
        let all = stretches(run, Totals { sms: 4, channels: 8 });
        let row = |of: &super::Division| [of.own[0], of.own[1], of.shared];
        all.iter().map(|one| (one.from, one.to, row(&one.sms), row(&one.channels))).collect()
    }

    #[test]
    fn an_sm_belongs_to_the_only_one_that_may_use_it() {
        let plan = json!({"shares": [[2, 2, 2, 0], [0, 0, 1, 0]], "channels": [[0, 1, 2], [3]]});
        let run = run(&[(0, plan)]);
        let expected = [(0, 60, [2, 0, 1], [3, 1, 0]), (60, 100, [3, 0, 0], [3, 0, 0])];
        assert_eq!(found(&run), expected);
    }

    #[test]
    fn a_plan_holds_from_the_end_of_its_delay_to_the_next() {
        let halves = json!({"shares": [[1, 1, 0, 0], [0, 0, 1, 1]], "channels": [], "delay": 0});
        let alone = json!({"shares": [1, "waiting"], "channels": [], "delay": 30});
        let late = json!({"shares": ["waiting", 1], "channels": [], "delay": 5});
        let run = run(&[(0, halves), (10, alone), (40, late)]);
        let expected = [
            (0, 40, [2, 2, 0], [0, 0, 8]),
            (40, 45, [4, 0, 0], [8, 0, 0]),
            (45, 60, [0, 4, 0], [0, 8, 0]),
            (60, 100, [0, 0, 0], [0, 0, 0]),
        ];
        assert_eq!(found(&run), expected);
    }

    #[test]
    fn what_all_may_use_is_shared() {
        let run = run(&[(0, json!({"shares": [8, 8], "channels": []}))]);
        assert_eq!(found(&run)[0], (0, 60, [0, 0, 4], [0, 0, 8]));
        assert_eq!(found(&run)[1], (60, 100, [4, 0, 0], [8, 0, 0]));
    }
}
