//! Queues of applications: classes, slow-downs, patterns, runs and schedules.

use std::fmt::Write as _;

use gpumodel_core::units::{counted, to_u64};

use super::{Cell, Column, THREAD_IPC, Table};
use crate::document::Block;
use crate::format::{brief, grouped, short};
use crate::queue::{BASELINE, Panel, class_of, job_name, over_name, panels};
use crate::results::{
    Analysis, ClassifiedRecord, Gain, InterferenceRecord, MatchingRecord, NamedRun, Over,
    PatternRecord, PublishedSlowdown, QueueGain, QueueRun, gains,
};
use crate::{distinct, group_by};

/// Patterns up to which all are shown, used or not.
const PATTERNS: usize = 40;
/// Classes up to which the matrix is shown.
const CLASSES: usize = 12;
/// Rows of a table of runs or groups.
const ROWS: usize = 80;

/// Rows up to which a page shows a table at once.
const OPEN: usize = 40;
/// Columns of text.
const TEXT: [&str; 3] = ["scheme", "members", "rule"];

/// A table with what is to be said of it.
struct Section {
    /// What it shows.
    title: String,
    table: Table,
    /// Sentences below it.
    notes: Vec<String>,
}

/// The queues of `analysis` as text: what their applications are, the patterns that
/// were weighed, every queue under every scheme, what schemes gain, and of a single
/// queue which applications ran together. Empty without queues.
#[must_use]
pub fn queue(analysis: &Analysis, width: Option<usize>) -> String {
    let mut text = String::new();
    for Section { title, table, notes } in sections(analysis) {
        let _ = writeln!(text, "{}", brief(&title, 110));
        if !table.is_empty() {
            text += &table.terminal(width);
        }
        for note in notes {
            let _ = writeln!(text, "  {}", brief(&note, 400));
        }
        text.push('\n');
    }
    text
}

/// The same on a page; long tables are folded.
pub(crate) fn queue_blocks(analysis: &Analysis) -> Vec<Block> {
    let mut blocks = Vec::new();
    for Section { title, table, notes } in sections(analysis) {
        let folded = table.len() > OPEN || title.starts_with("Schedule");
        let table = (!table.is_empty()).then_some(Block::Table(table));
        let note = |note: String| Block::Note(format!("{}.", note.trim_end_matches('.')));
        let body = table.into_iter().chain(notes.into_iter().map(note));
        if folded {
            blocks.push(Block::Folded(title, body.collect()));
        } else {
            blocks.push(Block::Heading(3, title));
            blocks.extend(body);
        }
    }
    blocks
}

/// The tables of the queues of `analysis`; none without queues.
fn sections(analysis: &Analysis) -> Vec<Section> {
    let mut sections = Vec::new();
    if analysis.queues.is_empty() {
        return sections;
    }
    for known in &analysis.interference {
        sections.push(classification(known));
        sections.push(matrix(known));
    }
    for panel in panels(std::slice::from_ref(analysis)) {
        sections.extend(patterns(&panel));
        sections.push(runs(&panel));
        sections.extend(over_baseline(&panel));
        sections.extend(schedule(analysis, &panel));
    }
    sections
}

/// A table with text in the first column and in those of [`TEXT`].
fn table<T>(columns: &[Column<T>], items: impl IntoIterator<Item = T>) -> Table {
    let text = |at: &usize| *at == 0 || TEXT.contains(&columns[*at].0);
    let left: Vec<usize> = (0..columns.len()).filter(text).collect();
    Table::new(columns, items).left(&left)
}

fn classification(known: &InterferenceRecord) -> Section {
    let columns: [Column<&ClassifiedRecord>; 7] = [
        ("application", |app| Cell::Cut(app.app.clone(), 30)),
        ("DRAM GB/s", |app| Cell::Number(app.dram_gb_per_s, 2)),
        ("L2 to L1 GB/s", |app| Cell::Number(app.l2_to_l1_gb_per_s, 2)),
        ("memory/compute", |app| Cell::Number(app.memory_to_compute, 3)),
        (THREAD_IPC, |app| Cell::Number(app.ipc, 2)),
        ("class", |app| Cell::Cut(app.class.clone(), 20)),
        ("rule", |app| String::from(if app.fits { "fits" } else { "nearest" }).into()),
    ];
    let bounds = known.thresholds.iter();
    let bounds = bounds.map(|one| format!("{} = {} of {}", one.name, short(one.value), one.metric));
    let nearest = known.apps.iter().filter(|app| !app.fits);
    let mut notes = vec![bounds.collect::<Vec<_>>().join("; ")];
    notes.extend(nearest.map(|app| format!("{}: {}", app.app, app.reason)));
    notes.retain(|note| !note.is_empty());
    Section {
        title: format!("Classes of applications ({})", known.schemes.join(", ")),
        table: table(&columns, &known.apps),
        notes,
    }
}

fn matrix(known: &InterferenceRecord) -> Section {
    let title = format!("Slow-down by classes ({})", known.schemes.join(", "));
    let count = known.classes.len();
    if count > CLASSES {
        let notes = vec![format!("{count} classes: the matrix is in the record")];
        return Section { title, table: Table::default(), notes };
    }
    let row = |(disturbs, values): (&String, &Vec<f64>)| {
        let cell = |(suffers, value): (&String, &f64)| {
            let printed = published(known, disturbs, suffers);
            let printed = printed.map(|printed| format!(" ({})", range(printed)));
            format!("{value:.2}{}", printed.unwrap_or_default())
        };
        let cells = known.classes.iter().zip(values).map(cell);
        std::iter::once(brief(disturbs, 20)).chain(cells).collect()
    };
    let mut notes = vec!["rows disturb, columns suffer".to_string()];
    if !known.published.is_empty() {
        notes.push("in brackets: as published".into());
    }
    notes.push(match known.pairs.len() {
        0 => "given by the user".into(),
        1 => "found with one pair".into(),
        pairs => format!("found with {pairs} pairs"),
    });
    let columns = known.classes.iter().map(|class| brief(class, 20));
    let header = std::iter::once("disturbs".into()).chain(columns);
    let rows = known.classes.iter().zip(&known.slowdown).map(row);
    Section { title, table: Table::of_texts(header, rows), notes: vec![notes.join("; ")] }
}

/// What was published of one class next to another.
pub(crate) fn published<'a>(
    known: &'a InterferenceRecord,
    disturbs: &str,
    suffers: &str,
) -> Option<&'a PublishedSlowdown> {
    known
        .published
        .iter()
        .find(|printed| printed.disturbs == disturbs && printed.suffers == suffers)
}

/// A published value, or the range in which it lies.
pub(crate) fn range(reported: &PublishedSlowdown) -> String {
    if reported.high > reported.low {
        format!("{:.2}–{:.2}", reported.low, reported.high)
    } else {
        format!("{:.2}", reported.low)
    }
}

/// The patterns of the first queue: equal groupings of several schemes once.
fn patterns(panel: &Panel<'_>) -> Vec<Section> {
    let queues = panel.queues();
    let Some(first) = queues.first() else { return Vec::new() };
    let runs = panel.of(first);
    let found = runs.iter().flat_map(|named| {
        let weighed = named.run.matchings.iter().filter(|one| !one.patterns.is_empty());
        weighed.map(|matching| (matching, named.name))
    });
    let found = group_by(found).into_iter();
    found.map(|(matching, names)| pattern_rows(first, matching, &names)).collect()
}

fn pattern_rows(queue: &str, matching: &MatchingRecord, names: &[&str]) -> Section {
    let all = matching.patterns.len();
    let shown = |pattern: &&PatternRecord| all <= PATTERNS || pattern.groups > 0;
    let columns: [Column<(&MatchingRecord, &PatternRecord)>; 4] = [
        ("pattern", |(matching, pattern)| Cell::Cut(members(matching, pattern), 40)),
        ("counts", |(_, pattern)| {
            let counts: Vec<String> = pattern.counts.iter().map(u32::to_string).collect();
            Cell::Cut(format!("({})", counts.join(", ")), 40)
        }),
        ("efficiency", |(_, pattern)| Cell::Number(pattern.efficiency, 4)),
        ("groups", |(_, pattern)| pattern.groups.to_string().into()),
    ];
    let waiting = matching.classes.iter().zip(&matching.waiting);
    let waiting: Vec<String> = waiting.map(|(class, count)| format!("{class} {count}")).collect();
    let used = matching.patterns.iter().filter(|pattern| pattern.groups > 0).count();
    let patterns = matching.patterns.iter().filter(shown).map(|pattern| (matching, pattern));
    let when = match matching.cycle {
        0 => String::new(),
        cycle => format!(" at cycle {}", grouped(cycle)),
    };
    Section {
        title: format!("Patterns of {queue}{when} ({})", names.join(", ")),
        table: table(&columns, patterns),
        notes: vec![
            String::from(
                "counts: applications by class; efficiency: of such a group; groups: how many \
                 (P_k, e_k and L_k of ILP-SMRA)",
            ),
            format!("{used} of {all} patterns are used; waiting: {}", waiting.join(", ")),
            format!("sum of efficiencies {:.4}; {}", matching.objective, matching.reason),
        ],
    }
}

/// The classes of a pattern, each as often as it has applications.
pub(super) fn members(matching: &MatchingRecord, pattern: &PatternRecord) -> String {
    let named = matching.classes.iter().zip(&pattern.counts).filter(|(_, count)| **count > 0);
    let words = named.map(|(class, count)| match count {
        1 => class.clone(),
        count => format!("{count} {class}"),
    });
    words.collect::<Vec<_>>().join(" + ")
}

fn runs(panel: &Panel<'_>) -> Section {
    let columns: [Column<Compared<'_>>; 8] = [
        ("queue", |(named, _)| Cell::Cut(named.run.queue.clone(), 24)),
        ("scheme", |(named, _)| Cell::Cut(named.name.to_owned(), 28)),
        ("cycles", |(named, _)| named.run.cycles.to_string().into()),
        (THREAD_IPC, |(named, _)| Cell::Number(named.run.throughput_ipc, 2)),
        ("mean of jobs", |(named, _)| Cell::Number(named.run.mean_job_ipc, 2)),
        ("gain", |(_, gain)| over_base(gain.as_ref().and_then(|gain| gain.throughput))),
        ("gain of mean", |(_, gain)| over_base(gain.as_ref().and_then(|gain| gain.ipc))),
        ("gain of jobs", |(_, gain)| over_base(gain.as_ref().and_then(|gain| gain.job_ipc))),
    ];
    let mut rows = compared(panel);
    let more = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    let mut notes = vec![
        String::from("mean of jobs: of the thread IPC of each job while it ran"),
        format!(
            "gain: of the thread IPC over {BASELINE}; of mean: of that mean; of jobs: mean of each \
             job's own gain"
        ),
    ];
    if more > 0 {
        notes.push(format!("{more} more runs are in the record"));
    }
    Section { title: format!("Queues, {}", panel.title()), table: table(&columns, rows), notes }
}

/// A queue under a scheme, with its gain over the baseline.
pub(super) type Compared<'a> = (NamedRun<'a>, Option<QueueGain>);

/// Every queue under every scheme.
pub(super) fn compared<'a>(panel: &'a Panel<'_>) -> Vec<Compared<'a>> {
    let mut rows: Vec<Compared<'a>> = Vec::new();
    for queue in panel.queues() {
        let runs = panel.of(queue);
        let gains = gains(&runs, BASELINE);
        let own = |named: &NamedRun<'_>| gains.iter().find(|gain| gain.scheme == named.name);
        rows.extend(runs.iter().map(|named| (*named, own(named).cloned())));
    }
    rows
}

pub(super) fn over_base(gain: Option<Gain>) -> Cell {
    Cell::number(gain.map(|gain| gain.mean), 3)
}

/// Gains by distribution and their average; none of a single queue.
fn over_baseline(panel: &Panel<'_>) -> Option<Section> {
    let gains = panel.gains(BASELINE);
    if panel.queues().len() < 2 || gains.is_empty() {
        return None;
    }
    let mut overs = distinct(gains.iter().map(|gain| &gain.over));
    overs.sort_by_key(|over| **over == Over::Average);
    let columns: [Column<&QueueGain>; 6] = [
        ("classes", |gain| Cell::Cut(over_name(&gain.over).to_owned(), 16)),
        ("scheme", |gain| Cell::Cut(gain.scheme.clone(), 22)),
        ("queues", |gain| gain.queues.to_string().into()),
        ("gain", |gain| gain.throughput.map(in_words).into()),
        ("gain of mean", |gain| gain.ipc.map(in_words).into()),
        ("gain of jobs", |gain| gain.job_ipc.map(in_words).into()),
    ];
    let of = |over: &Over| gains.iter().filter(|gain| gain.over == *over).collect::<Vec<_>>();
    Some(Section {
        title: format!("Over {BASELINE}, {}", panel.title()),
        table: table(&columns, overs.into_iter().flat_map(of)),
        notes: vec!["of thread IPC; in brackets: 95 % interval over seeds".into()],
    })
}

/// A gain with its interval.
fn in_words(Gain { mean, interval }: Gain) -> String {
    let interval = interval.map(|(low, high)| format!(" [{low:.3}, {high:.3}]"));
    format!("{mean:.3}{}", interval.unwrap_or_default())
}

/// The groups of a single queue under every scheme.
fn schedule(analysis: &Analysis, panel: &Panel<'_>) -> Vec<Section> {
    let queues = panel.queues();
    let [queue] = queues[..] else { return Vec::new() };
    panel.of(queue).iter().map(|named| groups(analysis, named.name, named.run)).collect()
}

fn groups(analysis: &Analysis, scheme: &str, run: &QueueRun) -> Section {
    let rows = run.groups.iter().enumerate().take(ROWS).map(|(number, group)| {
        let members = group.members(run).map(|job| match class_of(analysis, job) {
            Some(class) => format!("{} ({})", brief(job_name(job), 16), brief(class, 8)),
            None => brief(job_name(job), 16),
        });
        let sms = group.shares.first().map(|share| &share.sms).into_iter().flatten();
        vec![
            (number + 1).to_string(),
            group.start_cycle.to_string(),
            group.end_cycle.to_string(),
            sms.map(u64::to_string).collect::<Vec<_>>().join("+"),
            brief(&members.collect::<Vec<_>>().join(", "), 72),
        ]
    });
    let moved = run.groups.iter().map(|group| group.shares.len().saturating_sub(1)).sum::<usize>();
    let moved = format!("SMs were reallocated {} within groups", counted(to_u64(moved), "time"));
    let mut notes = vec![match run.early_finishers.as_str() {
        "" => moved,
        rule => format!("{moved}; those of early finishers: {rule}"),
    }];
    let more = run.groups.len().saturating_sub(ROWS);
    if more > 0 {
        notes.push(format!("{more} more groups are in the record"));
    }
    Section {
        title: format!("Schedule of {} under {scheme}", run.queue),
        table: Table::of_texts(["group", "start", "end", "SMs", "members"], rows).left(&[0, 4]),
        notes,
    }
}
