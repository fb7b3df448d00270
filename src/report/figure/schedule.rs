//! Which jobs of a queue ran together: one panel per scheme, one lane per place in the
//! group, a bar per application in the fill of its class, its name or letters above.

use super::prelude::*;
use super::queue_timeline::QueueTimeline;
use crate::queue::{class_of, job_name};

const LANE: f64 = 27.0;
const BAR: f64 = 13.0;
/// From the top of a bar up to the middle of the name above it.
const ABOVE: f64 = 6.5;
/// Lanes of a panel at most.
const LANES: usize = 16;
/// Applications that the key names.
const KEY: usize = 60;
/// Group boundaries nearer to each other are one.
const NEAR: f64 = 3.0;

pub(super) fn draw(input: &FigureInput<'_>) -> Drawn {
    let timeline = QueueTimeline::new(input)?;
    let members =
        timeline.runs.iter().flat_map(|(_, run)| &run.groups).map(|group| group.jobs.len());
    let bar_rows = members.max().unwrap_or(1).clamp(1, LANES);
    let mut names = Names::of(&timeline);
    let mut layout = timeline.layout("Schedule");
    let height = LANE * float(bar_rows) + 2.0;
    timeline.panels(&mut layout, height, |layout, run, area, time| {
        boundaries(layout, run, area, time);
        for bar_row in 0..bar_rows {
            let top = area.y + LANE * float(bar_row + 1) - BAR;
            let at = (area.x - 6.0, top + BAR / 2.0);
            let number = (bar_row + 1).to_string();
            layout.canvas.text(Label::new(number, at, NOTE, Anchor::Right).coloured(SOFT_INK));
            for (bar, job) in bars(run, bar_row, top, time) {
                layout.canvas.bar(bar, timeline.fill(job));
                names.tell(layout, &bar, job_name(job));
            }
        }
    });
    names.explain(&mut layout);
    layout.note("Lanes are places in the group; thin lines: a group begins.");
    Ok(layout.finish(&input.footer()).with_csv(table(&timeline)))
}

/// A thin line where a group begins.
fn boundaries(layout: &mut Layout, run: &QueueRun, area: &Area, time: &Scale) {
    let mut last = f64::MIN;
    for group in &run.groups {
        let x = time.at(float(group.start_cycle));
        if x - last >= NEAR {
            layout.canvas.line(vec![(x, area.y), (x, area.bottom())], SOFT_INK, 0.6);
            last = x;
        }
    }
}

/// The jobs at one place of every group, with their bars.
fn bars<'a>(run: &'a QueueRun, place: usize, top: f64, time: &Scale) -> Vec<(Area, &'a JobRecord)> {
    let mut bar_row = BarRow::default();
    let bar = |group: &'a GroupRecord| {
        let job = group.members(run).nth(place)?;
        let ends = (time.at(float(job.start_cycle)), time.at(float(job.end_cycle)));
        let (from, to) = bar_row.add(ends.0, ends.1)?;
        Some((Area::new(from, top, to - from, BAR), job))
    };
    run.groups.iter().filter_map(bar).collect()
}

/// What bars are called: by the application's name where that has room, else by letters.
struct Names<'a> {
    /// In order; the letters are those of the place.
    names: Vec<&'a str>,
    /// The places of those that a bar has letters of.
    lettered: BTreeSet<usize>,
    /// Bars that are too narrow for letters.
    narrow: usize,
}

impl<'a> Names<'a> {
    fn of(timeline: &QueueTimeline<'a>) -> Self {
        let jobs = timeline.runs.iter().flat_map(|(_, run)| run.jobs.iter());
        let names: BTreeSet<&'a str> = jobs.map(job_name).collect();
        Self { names: names.into_iter().collect(), lettered: BTreeSet::new(), narrow: 0 }
    }

    /// Writes the name of `app` above its bar.
    fn tell(&mut self, layout: &mut Layout, bar: &Area, app: &str) {
        let fits = |words: &str| text_width(words, NOTE) + 1.0 <= bar.width;
        let place = self.names.binary_search(&app).unwrap_or(0);
        let words = if fits(app) { app.to_string() } else { letters(place) };
        if !fits(&words) {
            self.narrow += 1;
            return;
        }
        if words != app {
            self.lettered.insert(place);
        }
        let at = (bar.x + bar.width / 2.0, bar.y - ABOVE);
        layout.canvas.text_before(Label::new(words, at, NOTE, Anchor::Centre));
    }

    /// Says what letters mean, and how many bars have none.
    fn explain(&self, layout: &mut Layout) {
        if !self.lettered.is_empty() {
            let known = self.lettered.iter().take(KEY);
            let reported: Vec<String> =
                known.map(|&place| format!("{}={}", letters(place), self.names[place])).collect();
            let left = self.lettered.len().saturating_sub(KEY);
            let more = if left > 0 { format!("; {left} more") } else { String::new() };
            layout.note(&format!("Above bars: {}{more}.", reported.join(", ")));
        }
        match self.narrow {
            0 => {}
            1 => layout.note("One bar is too narrow for a name."),
            narrow => layout.note(&format!("{narrow} bars are too narrow for a name.")),
        }
    }
}

/// `a` to `z`, then `aa` and so on.
fn letters(mut place: usize) -> String {
    let mut letters = String::new();
    loop {
        let letter = ('a'..='z').nth(place % 26).unwrap_or('a');
        letters.insert(0, letter);
        if place < 26 {
            return letters;
        }
        place = place / 26 - 1;
    }
}

fn table(timeline: &QueueTimeline<'_>) -> String {
    let mut lines = Vec::new();
    for (scheme, run) in &timeline.runs {
        for (number, group) in run.groups.iter().enumerate() {
            lines.extend(group.members(run).enumerate().map(|(place, job)| {
                let (class, start) = (class_of(timeline.record, job), job.start_cycle);
                let (end, group_end) = (job.end_cycle, group.end_cycle);
                row![scheme, number + 1, place + 1, job.app, class, start, end, group_end]
            }));
        }
    }
    csv("scheme,group,place,app,class,start_cycle,end_cycle,group_end_cycle", lines)
}

#[cfg(test)]
mod tests {
    use super::letters;

    #[test]
    fn letters_go_on_behind_z() {
        let reported = [0, 25, 26, 51, 52, 26 + 26 * 26].map(letters);
        assert_eq!(reported, ["a", "z", "aa", "az", "ba", "aaa"]);
    }
}
