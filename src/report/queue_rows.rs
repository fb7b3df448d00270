//! The tables of queues as rows of words: what the terminal and the page show alike.

use super::format::{brief, grouped, short};
use super::queue::{BASELINE, Panel, class_of, job_name, over_name, panels};
use crate::results::{
    Analysis, Gain, InterferenceRecord, MatchingRecord, NamedRun, Over, PatternRecord,
    PublishedSlowdown, QueueGain, QueueRun,
};

/// Patterns up to which all are shown, used or not.
const PATTERNS: usize = 40;
/// Classes up to which the matrix is shown.
const CLASSES: usize = 12;
/// Rows of a table of runs or groups.
const ROWS: usize = 80;

/// A table with what is to be said of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    /// What it shows.
    pub(crate) title: String,
    /// Names of its columns.
    pub(crate) header: Vec<String>,
    /// As many cells in each.
    pub(crate) rows: Vec<Vec<String>>,
    /// Sentences below it.
    pub(crate) notes: Vec<String>,
}

/// The tables of the queues of `analysis`; none without queues.
pub(crate) fn sections(analysis: &Analysis) -> Vec<Section> {
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

fn header<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(String::from).into()
}

fn classification(known: &InterferenceRecord) -> Section {
    let row = |app: &crate::results::ClassifiedRecord| {
        vec![
            brief(&app.app, 30),
            format!("{:.2}", app.dram_gb_per_s),
            format!("{:.2}", app.l2_to_l1_gb_per_s),
            format!("{:.3}", app.memory_to_compute),
            format!("{:.2}", app.ipc),
            brief(&app.class, 20),
            if app.fits { "fits".into() } else { "nearest".into() },
        ]
    };
    let bounds = known.thresholds.iter();
    let bounds = bounds.map(|one| format!("{} = {} of {}", one.name, short(one.value), one.metric));
    let nearest = known.apps.iter().filter(|app| !app.fits);
    let mut notes = vec![bounds.collect::<Vec<_>>().join("; ")];
    notes.extend(nearest.map(|app| format!("{}: {}", app.app, app.reason)));
    notes.retain(|note| !note.is_empty());
    Section {
        title: format!("Classes of applications ({})", known.schemes.join(", ")),
        header: header(["application", "MB GB/s", "L2->L1 GB/s", "R", "IPC", "class", "rule"]),
        rows: known.apps.iter().map(row).collect(),
        notes,
    }
}

fn matrix(known: &InterferenceRecord) -> Section {
    let title = format!("Slow-down by classes ({})", known.schemes.join(", "));
    let count = known.classes.len();
    if count > CLASSES {
        let notes = vec![format!("{count} classes: the matrix is in the record")];
        return Section { title, notes, ..Section::default() };
    }
    let row = |(disturbs, values): (&String, &Vec<f64>)| {
        let cell = |(suffers, value): (&String, &f64)| {
            let published = published(known, disturbs, suffers);
            let beside =
                published.map(|reported| format!(" ({})", range(reported))).unwrap_or_default();
            format!("{value:.2}{beside}")
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
    Section {
        title,
        header: std::iter::once("disturbs".into()).chain(columns).collect(),
        rows: known.classes.iter().zip(&known.slowdown).map(row).collect(),
        notes: vec![notes.join("; ")],
    }
}

/// What was published of one class beside another.
pub(crate) fn published<'a>(
    known: &'a InterferenceRecord,
    disturbs: &str,
    suffers: &str,
) -> Option<&'a PublishedSlowdown> {
    known
        .published
        .iter()
        .find(|reported| reported.disturbs == disturbs && reported.suffers == suffers)
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
    let mut found: Vec<(&MatchingRecord, Vec<&str>)> = Vec::new();
    let runs = panel.of(first);
    for named in &runs {
        for matching in named.run.matchings.iter().filter(|one| !one.patterns.is_empty()) {
            match found.iter_mut().find(|(other, _)| *other == matching) {
                Some((_, names)) => names.push(named.name),
                None => found.push((matching, vec![named.name])),
            }
        }
    }
    found.iter().map(|(matching, names)| pattern_rows(first, matching, names)).collect()
}

fn pattern_rows(queue: &str, matching: &MatchingRecord, names: &[&str]) -> Section {
    let all = matching.patterns.len();
    let shown = |pattern: &&PatternRecord| all <= PATTERNS || pattern.groups > 0;
    let row = |pattern: &PatternRecord| {
        let vector: Vec<String> = pattern.counts.iter().map(u32::to_string).collect();
        vec![
            brief(&members(matching, pattern), 40),
            brief(&format!("({})", vector.join(", ")), 40),
            format!("{:.4}", pattern.efficiency),
            pattern.groups.to_string(),
        ]
    };
    let waiting = matching.classes.iter().zip(&matching.waiting);
    let waiting: Vec<String> = waiting.map(|(class, count)| format!("{class} {count}")).collect();
    let used = matching.patterns.iter().filter(|pattern| pattern.groups > 0).count();
    let when = match matching.cycle {
        0 => String::new(),
        cycle => format!(" at cycle {}", grouped(cycle)),
    };
    Section {
        title: format!("Patterns of {queue}{when} ({})", names.join(", ")),
        header: header(["pattern", "P_k", "e_k", "L_k"]),
        rows: matching.patterns.iter().filter(shown).map(row).collect(),
        notes: vec![
            format!("{used} of {all} patterns are used; waiting: {}", waiting.join(", ")),
            format!("sum of efficiencies {:.4}; {}", matching.objective, matching.reason),
        ],
    }
}

/// The classes of a pattern, each as often as it has applications.
fn members(matching: &MatchingRecord, pattern: &PatternRecord) -> String {
    let named = matching.classes.iter().zip(&pattern.counts).filter(|(_, count)| **count > 0);
    let words = named.map(|(class, count)| match count {
        1 => class.clone(),
        count => format!("{count} {class}"),
    });
    words.collect::<Vec<_>>().join(" + ")
}

fn runs(panel: &Panel<'_>) -> Section {
    let mut rows = Vec::new();
    for queue in panel.queues() {
        let runs = panel.of(queue);
        let gains = crate::results::gains(&runs, BASELINE);
        rows.extend(runs.iter().map(|named| run_row(named, &gains)));
    }
    let more = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    let mut notes = vec![format!(
        "over, IPC, job IPC: throughput, mean IPC, and that of each job's application, over {BASELINE}"
    )];
    if more > 0 {
        notes.push(format!("{more} more runs are in the record"));
    }
    Section {
        title: format!("Queues, {}", panel.title()),
        header: header([
            "queue",
            "scheme",
            "cycles",
            "throughput",
            "IPC",
            "over",
            "IPC",
            "job IPC",
        ]),
        rows,
        notes,
    }
}

fn run_row(named: &NamedRun<'_>, gains: &[QueueGain]) -> Vec<String> {
    let own = gains.iter().find(|gain| gain.scheme == named.name);
    let over = |of: fn(&QueueGain) -> Option<Gain>| match own.and_then(of) {
        Some(gain) => format!("{:.3}", gain.mean),
        None => "–".into(),
    };
    vec![
        brief(&named.run.queue, 24),
        brief(named.name, 28),
        named.run.cycles.to_string(),
        format!("{:.2}", named.run.throughput_ipc),
        format!("{:.2}", named.run.mean_job_ipc),
        over(|gain| gain.throughput),
        over(|gain| gain.ipc),
        over(|gain| gain.job_ipc),
    ]
}

/// Gains by distribution and their average; none of a single queue.
fn over_baseline(panel: &Panel<'_>) -> Option<Section> {
    let gains = panel.gains(BASELINE);
    if panel.queues().len() < 2 || gains.is_empty() {
        return None;
    }
    let mut overs: Vec<_> = Vec::new();
    for gain in &gains {
        if !overs.contains(&&gain.over) {
            overs.push(&gain.over);
        }
    }
    overs.sort_by_key(|over| **over == Over::Average);
    let reported = |gain: Option<Gain>| match gain {
        None => "–".into(),
        Some(Gain { mean, interval: None }) => format!("{mean:.3}"),
        Some(Gain { mean, interval: Some((low, high)) }) => {
            format!("{mean:.3} [{low:.3}, {high:.3}]")
        }
    };
    let row = |gain: &QueueGain| {
        vec![
            brief(over_name(&gain.over), 16),
            brief(&gain.scheme, 22),
            gain.queues.to_string(),
            reported(gain.throughput),
            reported(gain.ipc),
            reported(gain.job_ipc),
        ]
    };
    let of =
        |over: &Over| gains.iter().filter(|gain| gain.over == *over).map(row).collect::<Vec<_>>();
    Some(Section {
        title: format!("Over {BASELINE}, {}", panel.title()),
        header: header(["classes", "scheme", "queues", "throughput", "IPC", "job IPC"]),
        rows: overs.into_iter().flat_map(of).collect(),
        notes: vec!["in brackets: 95 % interval over seeds".into()],
    })
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
    let mut notes = vec![match run.early_finishers.as_str() {
        "" => format!("SMs were divided anew {moved} times within groups"),
        rule => format!(
            "SMs were divided anew {moved} times within groups; those of early finishers: {rule}"
        ),
    }];
    let more = run.groups.len().saturating_sub(ROWS);
    if more > 0 {
        notes.push(format!("{more} more groups are in the record"));
    }
    Section {
        title: format!("Schedule of {} under {scheme}", run.queue),
        header: header(["group", "start", "end", "SMs", "members"]),
        rows: rows.collect(),
        notes,
    }
}
