//! Hot spots: the instructions of each launch that lose most.

use std::fmt::Write as _;

use super::{Cell, Column, Table};
use crate::format::{brief, grouped, percent, plain_name, ratio};
use crate::kernels::top_stall;
use crate::results::{Analysis, AppRecord, HotInstruction, HotMeasure, HotRecord, KernelRecord};

/// Launches with their own table; the record has all.
const LAUNCHES: usize = 8;

/// What the tables count, below them.
const LEGEND: &str = "A stall is an issue slot of a scheduler lost for a cycle, charged to the \
                      load whose result a warp waits for, else to the instruction at which it \
                      stands. `*` marks the instructions with most of a column.";

/// The hot spots of the solo runs as text, launches with most stalls first. Empty where none
/// were counted.
pub(super) fn hot(analysis: &Analysis, width: Option<usize>) -> String {
    let mut text = String::new();
    for app in &analysis.solo {
        app_tables(&mut text, app, width);
    }
    if !text.is_empty() {
        let _ = writeln!(text, "{LEGEND}\n");
    }
    text
}

fn app_tables(text: &mut String, app: &AppRecord, width: Option<usize>) {
    let mut launches: Vec<(&KernelRecord, &HotRecord)> =
        app.kernels.iter().filter_map(|kernel| Some((kernel, kernel.hot.as_ref()?))).collect();
    launches.sort_by(|(_, a), (_, b)| b.stall_slot_cycles.total_cmp(&a.stall_slot_cycles));
    for (kernel, hot) in launches.iter().take(LAUNCHES) {
        let _ = writeln!(
            text,
            "{}, launch {} ({}): {} of {} instructions, {:.0} slot-cycles stalled",
            brief(&app.app, 60),
            kernel.launch,
            brief(&plain_name(&kernel.name), 44),
            hot.rows.len(),
            grouped(hot.instructions),
            hot.stall_slot_cycles,
        );
        *text += &instructions(hot).terminal(width);
        // Rounding may be negative.
        let rest =
            |part: f64| percent(ratio(part, hot.stall_slot_cycles).map(|share| share.max(0.0)));
        let _ = writeln!(
            text,
            "  other instructions {}, charged to none {}\n",
            rest(hot.other_stall_slot_cycles),
            rest(hot.unattributed_slot_cycles),
        );
    }
    if launches.len() > LAUNCHES {
        let _ = writeln!(text, "  {} more launches in the record\n", launches.len() - LAUNCHES);
    }
}

/// The source line of an instruction; none where the tracer wrote 0, as of programs without line
/// information.
fn source_line(row: &HotInstruction) -> Cell {
    row.line.filter(|&line| line > 0).into()
}

/// Every instruction that the records of `runs` list, launches in order.
pub(super) fn hot_table(runs: &[(&Analysis, &AppRecord)]) -> Table {
    type Listed<'a> = (&'a Analysis, &'a AppRecord, &'a KernelRecord, &'a HotInstruction);
    let columns: [Column<Listed<'_>>; 14] = [
        ("machine", |(record, ..)| record.machine.name.as_str().into()),
        ("application", |(_, app, ..)| app.app.as_str().into()),
        ("launch", |(.., kernel, _)| Cell::Count(kernel.launch.into())),
        ("kernel", |(.., kernel, _)| kernel.name.as_str().into()),
        ("PC", |(.., row)| format!("{:#06x}", row.pc).into()),
        ("opcode", |(.., row)| row.opcode.as_str().into()),
        ("line", |(.., row)| source_line(row)),
        ("stall slot cycles", |(.., row)| Cell::Number(row.stall_slot_cycles, 0)),
        ("stalls", |(.., kernel, row)| {
            let whole = kernel.hot.as_ref().map_or(0.0, |hot| hot.stall_slot_cycles);
            Cell::Share(ratio(row.stall_slot_cycles, whole))
        }),
        ("top stall", |(.., row)| top_stall(&row.stalls).map(|(cause, _)| cause).into()),
        ("L1 misses", |(.., row)| Cell::Count(row.l1_misses)),
        ("L1 accesses", |(.., row)| Cell::Count(row.l1_accesses)),
        ("sectors/request", |(.., row)| {
            let measure = HotMeasure::SectorsPerRequest;
            Cell::number((row.sectors > 0).then(|| measure.of(row)), 1)
        }),
        ("bank conflict cycles", |(.., row)| Cell::Count(row.bank_conflict_cycles)),
    ];
    let launches = runs
        .iter()
        .flat_map(|&(record, app)| app.kernels.iter().map(move |kernel| (record, app, kernel)));
    let rows = launches.flat_map(|(record, app, kernel)| {
        let rows = kernel.hot.iter().flat_map(|hot| &hot.rows);
        rows.map(move |row| (record, app, kernel, row))
    });
    Table::new(&columns, rows)
}

/// An instruction in a table.
struct Row<'a> {
    hot: &'a HotRecord,
    row: &'a HotInstruction,
    /// By measure: it is among those with most.
    marked: [bool; HotMeasure::ALL.len()],
}

impl Row<'_> {
    /// `value` with a mark where it is one of the largest; nothing where `there` is false.
    fn marked(&self, measure: HotMeasure, there: bool, value: &str) -> Cell {
        let mark = if self.marked[measure as usize] { "*" } else { " " };
        there.then(|| format!("{value}{mark}")).into()
    }
}

fn columns<'a>() -> [Column<Row<'a>>; 8] {
    [
        ("PC", |row| format!("{:#06x}", row.row.pc).into()),
        ("opcode", |row| Cell::Cut(row.row.opcode.clone(), 28)),
        ("line", |row| source_line(row.row)),
        ("stalls", |row| {
            let share = percent(ratio(row.row.stall_slot_cycles, row.hot.stall_slot_cycles));
            row.marked(HotMeasure::Stalls, true, &share)
        }),
        ("top stall", |row| top_stall(&row.row.stalls).map(|(cause, _)| cause).into()),
        ("L1 misses", |row| {
            let (misses, accesses) = (row.row.l1_misses, row.row.l1_accesses);
            row.marked(HotMeasure::L1Misses, accesses > 0, &grouped(misses))
        }),
        ("sectors per request", |row| {
            let measure = HotMeasure::SectorsPerRequest;
            row.marked(measure, row.row.sectors > 0, &format!("{:.1}", measure.of(row.row)))
        }),
        ("bank conflicts", |row| {
            let cycles = row.row.bank_conflict_cycles;
            row.marked(HotMeasure::BankConflicts, cycles > 0, &grouped(cycles))
        }),
    ]
}

/// The instructions of a launch, most stalls first.
fn instructions(hot: &HotRecord) -> Table {
    let most = usize::try_from(hot.most).unwrap_or(usize::MAX);
    let largest = HotMeasure::ALL.map(|measure| measure.first(&hot.rows, most));
    let rows = hot.rows.iter().enumerate().map(|(place, row)| {
        let marked = std::array::from_fn(|measure| largest[measure].contains(&place));
        Row { hot, row, marked }
    });
    let table = Table::new(&columns(), rows).left(&[0, 1, 4]);
    table.dropping(&["line", "bank conflicts"])
}
