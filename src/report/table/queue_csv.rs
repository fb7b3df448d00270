//! The tables of queues for CSV: every row with whole names, intervals in columns of their own.

use super::queue::{Compared, compared, members, over_base, published};
use super::{Cell, Column, Table};
use crate::queue::{BASELINE, class_of, job_name, over_name, panels};
use crate::results::{
    Analysis, ClassifiedRecord, Gain, GroupRecord, InterferenceRecord, MatchingRecord, NamedRun,
    PatternRecord, QueueGain, QueueRun,
};

/// Every queue of `analysis` under every scheme.
pub(super) fn runs(analysis: &Analysis) -> Table {
    let columns: [Column<Compared<'_>>; 8] = [
        ("queue", |(named, _)| named.run.queue.clone().into()),
        ("scheme", |(named, _)| named.name.into()),
        ("cycles", |(named, _)| Cell::Count(named.run.cycles)),
        ("throughput IPC", |(named, _)| Cell::Number(named.run.throughput_ipc, 2)),
        ("mean job IPC", |(named, _)| Cell::Number(named.run.mean_job_ipc, 2)),
        ("throughput over even", |(_, gain)| over_base(gain.as_ref().and_then(|g| g.throughput))),
        ("IPC over even", |(_, gain)| over_base(gain.as_ref().and_then(|gain| gain.ipc))),
        ("job IPC over even", |(_, gain)| over_base(gain.as_ref().and_then(|gain| gain.job_ipc))),
    ];
    let panels = panels(std::slice::from_ref(analysis));
    Table::new(&columns, panels.iter().flat_map(compared))
}

/// Gains by distribution and their average; none of a single queue.
pub(super) fn gains(analysis: &Analysis) -> Table {
    fn low(gain: Option<Gain>) -> Cell {
        Cell::number(gain.and_then(|gain| gain.interval).map(|(low, _)| low), 3)
    }
    fn high(gain: Option<Gain>) -> Cell {
        Cell::number(gain.and_then(|gain| gain.interval).map(|(_, high)| high), 3)
    }
    let columns: [Column<QueueGain>; 12] = [
        ("classes", |gain| over_name(&gain.over).into()),
        ("scheme", |gain| gain.scheme.as_str().into()),
        ("queues", |gain| gain.queues.to_string().into()),
        ("throughput over even", |gain| over_base(gain.throughput)),
        ("throughput over even low", |gain| low(gain.throughput)),
        ("throughput over even high", |gain| high(gain.throughput)),
        ("IPC over even", |gain| over_base(gain.ipc)),
        ("IPC over even low", |gain| low(gain.ipc)),
        ("IPC over even high", |gain| high(gain.ipc)),
        ("job IPC over even", |gain| over_base(gain.job_ipc)),
        ("job IPC over even low", |gain| low(gain.job_ipc)),
        ("job IPC over even high", |gain| high(gain.job_ipc)),
    ];
    let panels = panels(std::slice::from_ref(analysis));
    let several = panels.iter().filter(|panel| panel.queues().len() > 1);
    Table::new(&columns, several.flat_map(|panel| panel.gains(BASELINE)))
}

/// The groups of every queue under every scheme.
pub(super) fn groups(analysis: &Analysis) -> Table {
    type Row<'a> = (&'a Analysis, &'a QueueRun, (&'a str, usize), &'a GroupRecord);
    let columns: [Column<Row<'_>>; 7] = [
        ("queue", |(_, run, ..)| run.queue.as_str().into()),
        ("scheme", |(_, _, (scheme, _), _)| scheme.to_owned().into()),
        ("group", |(_, _, (_, place), _)| (place + 1).to_string().into()),
        ("start cycle", |(.., group)| Cell::Count(group.start_cycle)),
        ("end cycle", |(.., group)| Cell::Count(group.end_cycle)),
        ("SMs", |(.., group)| {
            let sms = group.shares.first().into_iter().flat_map(|share| &share.sms);
            sms.map(u64::to_string).collect::<Vec<_>>().join("+").into()
        }),
        ("members", |(analysis, run, _, group)| {
            let member = group.members(run).map(|job| match class_of(analysis, job) {
                Some(class) => format!("{} ({class})", job_name(job)),
                None => job_name(job).to_owned(),
            });
            member.collect::<Vec<_>>().join(", ").into()
        }),
    ];
    let panels = panels(std::slice::from_ref(analysis));
    let runs = panels.iter().flat_map(compared).map(|(named, _)| named);
    let rows = runs.flat_map(|named| {
        let groups = named.run.groups.iter().enumerate();
        groups.map(move |(place, group)| (analysis, named.run, (named.name, place), group))
    });
    Table::new(&columns, rows)
}

/// The patterns that each scheme weighed.
pub(super) fn patterns(analysis: &Analysis) -> Table {
    type Row<'a> = (NamedRun<'a>, &'a MatchingRecord, &'a PatternRecord);
    let columns: [Column<Row<'_>>; 7] = [
        ("queue", |(named, ..)| named.run.queue.as_str().into()),
        ("scheme", |(named, ..)| named.name.into()),
        ("cycle", |(_, matching, _)| Cell::Count(matching.cycle)),
        ("pattern", |(_, matching, pattern)| members(matching, pattern).into()),
        ("P_k", |(.., pattern)| {
            let counts: Vec<String> = pattern.counts.iter().map(u32::to_string).collect();
            counts.join(" ").into()
        }),
        ("e_k", |(.., pattern)| Cell::Number(pattern.efficiency, 4)),
        ("L_k", |(.., pattern)| Cell::Count(pattern.groups)),
    ];
    let panels = panels(std::slice::from_ref(analysis));
    let runs = panels.iter().flat_map(compared).map(|(named, _)| named);
    let rows = runs.flat_map(|named| {
        let all = named.run.matchings.iter();
        all.flat_map(move |one| one.patterns.iter().map(move |pattern| (named, one, pattern)))
    });
    Table::new(&columns, rows)
}

/// What each application of the queues is, and what it was judged by.
pub(super) fn classes(analysis: &Analysis) -> Table {
    type Row<'a> = (&'a InterferenceRecord, &'a ClassifiedRecord);
    let columns: [Column<Row<'_>>; 8] = [
        ("schemes", |(known, _)| known.schemes.join(", ").into()),
        ("application", |(_, app)| app.app.as_str().into()),
        ("MB GB/s", |(_, app)| Cell::Number(app.dram_gb_per_s, 2)),
        ("L2->L1 GB/s", |(_, app)| Cell::Number(app.l2_to_l1_gb_per_s, 2)),
        ("R", |(_, app)| Cell::Number(app.memory_to_compute, 3)),
        ("thread IPC", |(_, app)| Cell::Number(app.ipc, 2)),
        ("class", |(_, app)| app.class.as_str().into()),
        ("rule", |(_, app)| String::from(if app.fits { "fits" } else { "nearest" }).into()),
    ];
    let known = analysis.interference.iter();
    Table::new(&columns, known.flat_map(|known| known.apps.iter().map(move |app| (known, app))))
}

/// How much each class slows each other one, and what was published of it.
pub(super) fn slowdowns(analysis: &Analysis) -> Table {
    type Row<'a> = (&'a InterferenceRecord, (&'a str, &'a str), f64);
    let columns: [Column<Row<'_>>; 6] = [
        ("schemes", |(known, ..)| known.schemes.join(", ").into()),
        ("disturbs", |(_, (disturbs, _), _)| disturbs.to_owned().into()),
        ("suffers", |(_, (_, suffers), _)| suffers.to_owned().into()),
        ("slowdown", |(.., slowdown)| Cell::Number(*slowdown, 2)),
        ("published low", |(known, (disturbs, suffers), _)| {
            Cell::number(published(known, disturbs, suffers).map(|printed| printed.low), 2)
        }),
        ("published high", |(known, (disturbs, suffers), _)| {
            Cell::number(published(known, disturbs, suffers).map(|printed| printed.high), 2)
        }),
    ];
    let rows = analysis.interference.iter().flat_map(|known| {
        let rows = known.classes.iter().zip(&known.slowdown);
        rows.flat_map(move |(disturbs, values)| {
            let pairs = known.classes.iter().zip(values);
            pairs
                .map(move |(suffers, &value)| (known, (disturbs.as_str(), suffers.as_str()), value))
        })
    });
    Table::new(&columns, rows)
}
