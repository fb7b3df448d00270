//! One queue under every scheme over the same time: what the schedule and the SM
//! shares are drawn on.

use super::prelude::*;
use crate::look::class_looks;
use crate::queue::{class_of, classes, panels};

/// Room left of the panels.
const LEFT: f64 = 48.0;
/// As much where names are long.
const WIDEST: f64 = 200.0;
const RIGHT: f64 = 14.0;
/// Room of numbers between the name of a panel and the panel.
const NUMBERS: f64 = 26.0;
/// Schemes that are drawn.
const SCHEMES: usize = 12;
/// Classes with a fill of their own; the rest share one.
const CLASSES: usize = 14;
/// They, the rest and jobs without a class differ without colour.
const _: () = assert!(CLASSES + 2 <= HATCHED);

/// A queue and its runs.
pub(super) struct QueueTimeline<'a> {
    pub(super) record: &'a Analysis,
    queue: &'a str,
    queues: usize,
    /// The runs with the names of their schemes.
    pub(super) runs: Vec<(String, &'a QueueRun)>,
    classes: Vec<&'a str>,
    /// What each class looks like, and is called.
    looks: Vec<usize>,
    shown: Vec<String>,
    end: u64,
    sheet: Sheet,
}

impl<'a> QueueTimeline<'a> {
    /// The queue that `input` names, else the first.
    pub(super) fn new(input: &FigureInput<'a>) -> Result<Self, Missing> {
        let records = input.records;
        let names = records.iter().flat_map(|record| &record.queues).map(|run| run.queue.as_str());
        let Some(first) = names.clone().next() else { return Err(NO_QUEUE.into()) };
        let known: Vec<&str> = names.collect::<BTreeSet<_>>().into_iter().collect();
        let queue = input.queue.unwrap_or(first);
        let holds = |record: &&Analysis| record.queues.iter().any(|run| run.queue == queue);
        let Some(record) = records.iter().find(holds) else {
            let some = known[..known.len().min(12)].join(", ");
            let more = if known.len() > 12 { ", …" } else { "" };
            let missing = format!("no queue is called {queue}; there are {some}{more}");
            return Err(missing.into());
        };
        let panels = panels(std::slice::from_ref(record));
        let panel = panels.iter().find(|panel| panel.queues().contains(&queue));
        let runs: Vec<(String, &QueueRun)> = panel.map_or_else(Vec::new, |panel| {
            let own = panel.names.iter().zip(&panel.runs).filter(|(_, run)| run.queue == queue);
            own.map(|(name, run)| (name.clone(), *run)).collect()
        });
        let refs: Vec<&QueueRun> = runs.iter().map(|(_, run)| *run).collect();
        let end = refs.iter().map(|run| span(run)).max().unwrap_or(0);
        if end == 0 {
            return Err(format!("nothing of {queue} took time").into());
        }
        let classes = classes(record, &refs);
        let (sheet, queues, looks) = (input.sheet, known.len(), class_looks(&classes));
        let shown = classes.iter().map(|class| input.shown(class).to_owned()).collect();
        Ok(Self { record, queue, queues, runs, classes, looks, shown, end, sheet })
    }

    /// The fill of the class at `place`; `None` where it shares that of the rest.
    fn own(&self, place: usize) -> Option<Fill> {
        (place < CLASSES).then(|| Fill::of(self.looks[place]))
    }

    /// Classes without a fill of their own.
    fn others(&self) -> Fill {
        Fill::of(CLASSES).over(SOFT_INK)
    }

    /// The fill of jobs without a class.
    fn unclassified(&self) -> Fill {
        Fill::of(CLASSES + 1).over(REST)
    }

    /// A layout with the title and the classes.
    pub(super) fn layout(&self, title: &str) -> Layout {
        let mut layout = Layout::new(self.sheet, &format!("{title}: {}", self.queue));
        let class = |(place, class): (usize, &String)| {
            Some(Entry::new(Swatch::Fill(self.own(place)?), class.as_str()))
        };
        let mut entries: Vec<Entry> = self.shown.iter().enumerate().filter_map(class).collect();
        let rest = self.classes.len() - entries.len();
        if rest > 0 {
            let words = format!("other ({rest} classes)");
            entries.push(Entry::new(Swatch::Fill(self.others()), words));
        }
        let jobs = || self.runs.iter().flat_map(|(_, run)| &run.jobs);
        if jobs().any(|job| class_of(self.record, job).is_none()) {
            entries.push(Entry::new(Swatch::Fill(self.unclassified()), "not classified"));
        }
        layout.legend(&entries);
        layout
    }

    /// What a job is filled with.
    pub(super) fn fill(&self, job: &JobRecord) -> Fill {
        let Some(class) = class_of(self.record, job) else { return self.unclassified() };
        let place = self.classes.iter().position(|other| *other == class);
        place.and_then(|place| self.own(place)).unwrap_or(self.others())
    }

    /// Draws a panel for every scheme, `height` high, each with `draw`.
    pub(super) fn panels(
        &self,
        layout: &mut Layout,
        height: f64,
        mut draw: impl FnMut(&mut Layout, &'a QueueRun, &Area, &Scale),
    ) {
        let names: Vec<&str> = self.runs.iter().map(|(name, _)| name.as_str()).collect();
        let names = &names[..names.len().min(SCHEMES)];
        let left = layout.left_of(names, LABEL, (LEFT, WIDEST), NUMBERS + 8.0);
        let last = names.len() - 1;
        for (index, (name, run)) in self.runs.iter().take(SCHEMES).enumerate() {
            let area = layout.plot(left, RIGHT, height);
            let time = Scale::linear(0.0, float(self.end), area.x, area.right());
            across(&mut layout.canvas, &area, &time, if index == last { "cycle" } else { "" });
            let at = (left - NUMBERS, area.y + area.height / 2.0);
            left_of(&mut layout.canvas, name, at, (left - NUMBERS - 8.0, area.height));
            draw(layout, run, &area, &time);
            outline(&mut layout.canvas, &area);
            layout.skip(if index == last { 36.0 } else { 8.0 + AXIS_HEIGHT });
        }
        if self.queues > 1 {
            layout.note(&format!("One of {} queues; --queue NAME shows another.", self.queues));
        }
        layout.left_out(self.runs.len() - names.len(), "schemes are not drawn");
    }
}

fn span(run: &QueueRun) -> u64 {
    let jobs = run.jobs.iter().map(|job| job.end_cycle);
    let groups = run.groups.iter().map(|group| group.end_cycle);
    jobs.chain(groups).fold(run.cycles, u64::max)
}
