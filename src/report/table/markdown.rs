//! Markdown in a terminal of some width, as far as the guide uses it: paragraphs and lists break
//! between words, tables are laid out as all others, code stands as it is.

use super::Table;
use super::layout::{NO_BREAK, wrap_line};

/// Left of code.
const CODE: &str = "    ";
/// Code of so many characters in a table does not break.
const CODE_IN_LINE: usize = 22;

/// `text` in lines of at most `width` characters, as far as code and long words allow; `None`: as
/// it is.
#[must_use]
pub fn markdown(text: &str, width: Option<usize>) -> String {
    let Some(wide) = width else { return text.to_owned() };
    let mut all = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let code = lines.by_ref().take_while(|line| !line.starts_with("```"));
            code.for_each(|line| all += &format!("{CODE}{line}\n"));
        } else if is_row(line) {
            let mut rows = vec![cells(line)];
            while let Some(row) = lines.next_if(|line| is_row(line)) {
                rows.push(cells(row));
            }
            all += &table(rows).terminal(width);
        } else {
            wrap_line(&mut all, &without_links(line), wide, if is_item(line) { 2 } else { 0 });
            all.push('\n');
        }
    }
    all
}

/// Whether `line` is an item of a list.
fn is_item(line: &str) -> bool {
    let (mark, _) = line.trim_start().split_once(' ').unwrap_or_default();
    mark == "-" || mark.strip_suffix('.').is_some_and(|number| number.parse::<u8>().is_ok())
}

fn is_row(line: &str) -> bool {
    line.starts_with('|')
}

/// The cells of a row: `\|` is a character of one.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim().trim_start_matches('|').trim_end_matches('|').replace("\\|", "\u{0}");
    line.split('|')
        .map(|cell| whole_code(&without_links(cell.trim()).replace('\u{0}', "|")))
        .collect()
}

/// `cell` without breaks in short pieces of code.
fn whole_code(cell: &str) -> String {
    let part = |(place, part): (usize, &str)| match place % 2 {
        1 if part.len() <= CODE_IN_LINE => part.replace(' ', &NO_BREAK.to_string()),
        _ => part.to_owned(),
    };
    cell.split('`').enumerate().map(part).collect::<Vec<_>>().join("`")
}

/// Rows below a header and a rule.
fn table(rows: Vec<Vec<String>>) -> Table {
    let mut rows = rows.into_iter();
    let header = rows.next().unwrap_or_default();
    let columns = header.len();
    let full = |mut row: Vec<String>| {
        row.resize(columns, String::new());
        row
    };
    let left: Vec<usize> = (0..columns).collect();
    Table::of_texts(header, rows.skip(1).map(full)).left(&left)
}

/// `line` with the texts of its links, and with the addresses of those that lead to the web.
fn without_links(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, words, address, after)) = next_link(rest) {
        let figure = before.strip_suffix('!');
        text += figure.unwrap_or(before);
        if figure.is_some() {
            text += &format!("(figure: {words})");
        } else if address.starts_with("http") {
            text += &format!("{words} ({address})");
        } else {
            text += words;
        }
        rest = after;
    }
    text + rest
}

/// What is before the first link of `line`, its words and address, and what is behind it.
fn next_link(line: &str) -> Option<(&str, &str, &str, &str)> {
    let middle = line.find("](")?;
    let from = line[..middle].rfind('[')?;
    let end = middle + line[middle..].find(')')?;
    Some((&line[..from], &line[from + 1..middle], &line[middle + 2..end], &line[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::{markdown, without_links};

    const TEXT: &str = "# Title

A sentence of several words.

- a first item of a list

**Bold** words are no item.

```sh
a command --with=many --options=of some length
```

| key | means |
|---|---|
| `a\\|b c` | either of both |
";

    const LINES: &str = "# Title

A sentence of
several words.

- a first item of
  a list

**Bold** words are
no item.

    a command --with=many --options=of some length

  key      means
  `a|b c`  either
           of both
";

    #[test]
    fn text_breaks_between_words_and_code_stands() {
        assert_eq!(markdown(TEXT, Some(18)), LINES);
        assert_eq!(markdown(TEXT, None), TEXT);
    }

    #[test]
    fn a_link_is_its_words_or_an_address() {
        assert_eq!(without_links("see [a](b.md), [c](https://d)!"), "see a, c (https://d)!");
        assert_eq!(without_links("![Bars](x.svg) and a[0] (no)"), "(figure: Bars) and a[0] (no)");
    }
}
