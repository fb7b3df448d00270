//! Tables and sentences in a terminal of some width.

use comfy_table::{CellAlignment, ColumnConstraint, Width, presets};

use super::Table;
use super::cells::Head;

/// Left of the first column.
const INDENT: usize = 2;
/// Between columns.
const GAP: usize = 2;
/// What a column of text needs at least, where its words are short.
const TEXT: usize = 12;
/// Words up to this length are broken only where nothing else helps.
const WORD: usize = 24;

/// A column with the room that it takes.
struct Room {
    /// Its place in the table.
    column: usize,
    /// The longest word, [`TEXT`] at least; of numbers, the longest cell.
    least: usize,
    /// The same without that least.
    tight: usize,
    /// The same with broken words.
    broken: usize,
    /// Without wrapping.
    whole: usize,
    /// What it gets.
    given: usize,
}

impl Room {
    fn new(column: usize, head: &Head, cells: &[Vec<String>]) -> Self {
        let longest = |between: char| {
            let parts = cells.iter().flat_map(|row| row[column].split(['\n', between]));
            parts.map(length).max().unwrap_or(0)
        };
        let (cells, word) = (longest('\n'), longest(' '));
        let header = head.name.split(' ').map(length).max().unwrap_or(0);
        let whole = cells.max(length(&head.name));
        let text = |least: usize| header.max(if head.left { cells.min(least) } else { cells });
        let least = word.clamp(TEXT, WORD);
        let (least, tight, broken) = (text(least), text(word.min(WORD)), text(TEXT));
        Self { column, least, tight, broken: broken.min(tight), whole, given: 0 }
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// The width of columns that are `wide`.
fn sum(rooms: &[Room], wide: impl Fn(&Room) -> usize) -> usize {
    INDENT + rooms.iter().map(|room| wide(room) + GAP).sum::<usize>() - GAP.min(rooms.len() * GAP)
}

/// The rooms of the columns of `table` in `width`, and the places of those left out.
fn rooms(table: &Table, cells: &[Vec<String>], width: usize) -> (Vec<Room>, Vec<usize>) {
    let heads = table.columns.iter().enumerate();
    let mut rooms: Vec<Room> = heads.map(|(at, head)| Room::new(at, head, cells)).collect();
    let mut left_out: Vec<usize> = Vec::new();
    let turn = |room: &Room| table.columns[room.column].dropped;
    let needed = |room: &Room| if table.in_lines { room.whole } else { room.least };
    while sum(&rooms, needed) > width {
        let next = (0..rooms.len()).filter(|&at| turn(&rooms[at]).is_some());
        let Some(next) = next.min_by_key(|&at| turn(&rooms[at])) else { break };
        left_out.push(rooms.remove(next).column);
    }
    let stages: [fn(&Room) -> usize; 3] =
        [|room| room.least, |room| room.tight, |room| room.broken];
    let stage = stages.into_iter().find(|wide| sum(&rooms, wide) <= width).unwrap_or(stages[2]);
    rooms.iter_mut().for_each(|room| room.given = stage(room));
    // Character by character to the column that is cut into most lines.
    for _ in sum(&rooms, |room| room.given)..width {
        let narrow = rooms.iter_mut().filter(|room| room.given < room.whole);
        let Some(most) = narrow.max_by_key(|room| 1000 * room.whole / room.given.max(1)) else {
            break;
        };
        most.given += 1;
    }
    left_out.sort_unstable();
    (rooms, left_out)
}

/// The table as [`Table::terminal`] says.
pub(super) fn terminal(of: &Table, width: Option<usize>) -> String {
    let cells: Vec<Vec<String>> =
        of.rows().iter().map(|row| row.iter().map(unbroken).collect()).collect();
    let (rooms, left_out) = rooms(of, &cells, width.unwrap_or(usize::from(u16::MAX)));
    let mut table = comfy_table::Table::new();
    table.load_style(presets::NOTHING);
    let head = |room: &Room| of.columns[room.column].name.clone();
    table.set_header(rooms.iter().map(head));
    for row in &cells {
        table.add_row(rooms.iter().map(|room| row[room.column].clone()));
    }
    for (column, room) in table.column_iter_mut().zip(&rooms) {
        let before = if column.index == 0 { INDENT } else { GAP };
        column.set_padding((u16::try_from(before).unwrap_or_default(), 0));
        let wide = u16::try_from(before + room.given).unwrap_or(u16::MAX);
        column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(wide)));
        let left = of.columns[room.column].left;
        let alignment = if left { CellAlignment::Left } else { CellAlignment::Right };
        column.set_cell_alignment(alignment);
    }
    let names: Vec<&str> = left_out.iter().map(|&at| of.columns[at].name.as_str()).collect();
    let note = match names.is_empty() {
        true => String::new(),
        false => format!("  left out (a wider terminal or --csv has them): {}\n", names.join(", ")),
    };
    table.trim_fmt().replace(NO_BREAK, " ") + "\n" + &note
}

/// A space at which no line breaks.
pub(super) const NO_BREAK: char = '\u{a0}';

/// A cell's text, in which the sign of percent stays with its number.
fn unbroken(cell: &super::Cell) -> String {
    cell.terminal().replace(" %", &format!("{NO_BREAK}%"))
}

/// `text` with every line in at most `width` characters, broken between words; what follows a
/// break is indented by two characters more. `None`: as it is.
#[must_use]
pub fn wrapped(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mut all = String::with_capacity(text.len());
    for line in text.lines() {
        wrap_line(&mut all, line, width, INDENT);
        all.push('\n');
    }
    all
}

/// Adds `line`; what follows a break is indented by `hanging` characters more.
pub(super) fn wrap_line(all: &mut String, line: &str, width: usize, hanging: usize) {
    if length(line) <= width {
        all.push_str(line);
        return;
    }
    let indent = line.len() - line.trim_start().len();
    let mut used = indent;
    all.push_str(&line[..indent]);
    let line = with_units(line);
    for (place, word) in line[indent..].split(' ').enumerate() {
        let more = length(word);
        if place > 0 && used + 1 + more > width {
            all.push('\n');
            used = indent + hanging;
            all.extend(std::iter::repeat_n(' ', used));
        } else if place > 0 {
            all.push(' ');
            used += 1;
        }
        all.extend(word.chars().map(|letter| if letter == NO_BREAK { ' ' } else { letter }));
        used += more;
    }
}

/// What stays on the line of the number before it.
const UNITS: [&str; 16] = [
    "%", "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "GB/s", "TB/s", "s", "ms", "µs", "mJ",
    "µJ",
];

/// `line` without a break between numbers and units.
fn with_units(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for (place, word) in line.split(' ').enumerate() {
        let number = text.ends_with(|letter: char| letter.is_ascii_digit());
        if place > 0 {
            let unit = word.trim_end_matches([',', ';', ':', '.', ')']);
            text.push(if number && UNITS.contains(&unit) { NO_BREAK } else { ' ' });
        }
        text.push_str(word);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::Table;
    use super::wrapped;

    fn table() -> Table {
        let row = ["a name of some words", "12345", "1 %", "long memory latency 53 %"];
        let header = ["kernel", "thread IPC", "share of peak", "top stall"];
        let row = row.map(str::to_owned).to_vec();
        Table::of_texts(header, [row]).left(&[0, 3]).dropping(&["share of peak"])
    }

    fn widest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    #[test]
    fn a_table_stands_whole_where_there_is_room() {
        let text = table().terminal(None);
        let lines = "  kernel                thread IPC  share of peak  top stall\n  \
                     a name of some words       12345            1 %  long memory latency 53 %\n";
        assert_eq!(text, lines);
        assert_eq!(table().terminal(Some(widest(lines))), lines);
    }

    #[test]
    fn a_narrower_table_wraps_words_before_it_leaves_out_a_column() {
        let wrapped = table().terminal(Some(50));
        assert!(widest(&wrapped) <= 50, "{wrapped}");
        assert!(wrapped.contains("share") && wrapped.contains("12345"), "{wrapped}");
        let least = table().terminal(Some(38));
        assert!(widest(least.split("  left out").next().unwrap()) <= 38, "{least}");
        assert!(
            least.ends_with("left out (a wider terminal or --csv has them): share of peak\n"),
            "{least}"
        );
    }

    #[test]
    fn words_stay_whole_before_short_ones_have_room_to_spare() {
        let row = ["warped-slicer", "minimum speedup"].map(str::to_owned).to_vec();
        let table = Table::of_texts(["scheme", "by"], [row]).left(&[0, 1]);
        let lines = "  scheme         by\n  warped-slicer  minimum\n                 speedup\n";
        assert_eq!(table.terminal(Some(24)), lines);
    }

    #[test]
    fn a_number_keeps_its_unit() {
        assert_eq!(wrapped("it takes 1.9 % of it", Some(13)), "it takes\n  1.9 % of it\n");
    }

    #[test]
    fn a_table_of_one_line_per_row_leaves_out_columns_before_it_wraps() {
        let text = table().in_lines().terminal(Some(62));
        let lines = "  kernel                thread IPC  top stall\n  \
                     a name of some words       12345  long memory latency 53 %\n  \
                     left out (a wider terminal or --csv has them): share of peak\n";
        assert_eq!(text, lines);
        let narrow = table().in_lines().terminal(Some(40));
        assert!(narrow.lines().count() > 3, "nothing else to leave out: {narrow}");
    }

    #[test]
    fn sentences_break_between_words_and_hang() {
        let text = "  note: one two three four\nshort\n";
        assert_eq!(wrapped(text, Some(16)), "  note: one two\n    three four\nshort\n");
        assert_eq!(wrapped(text, None), text);
    }
}
