//! A document and its forms: plain text for the terminal, an HTML page with its figures inside,
//! and Markdown with links to them.

use std::fmt::Write as _;

use super::chart::Drawing;
use super::escape;
use super::format::{brief, grouped};
use super::table::{Cell, Table};

/// A piece of a document. Texts are plain: every form escapes them.
#[derive(Debug)]
pub(crate) enum Block {
    /// A heading of a level from 1.
    Heading(usize, String),
    /// A paragraph.
    Text(String),
    /// A paragraph of less weight.
    Note(String),
    /// Sentences that stand for themselves.
    List(Vec<String>),
    /// Terms with what is said of them.
    Facts(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// Blocks that a page folds under their title.
    Folded(String, Vec<Block>),
    /// A figure: its file without folder, what it shows, and the drawing or why there is none.
    Figure(String, String, Result<Drawing, String>),
    /// Markup of a page; other forms leave it out.
    Markup(&'static str),
}

/// A cell on a page.
fn cell_html(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) | Cell::Cut(text, _) | Cell::Scheme(text) => escape(text),
        Cell::Titled(text, title) if title.is_empty() || title == text => escape(&brief(text, 44)),
        Cell::Titled(text, title) => {
            format!("<span title=\"{}\">{}</span>", escape(title), escape(&brief(text, 44)))
        }
        Cell::Count(count) => grouped(*count),
        Cell::Number(value, _) if !value.is_finite() => "∞".into(),
        Cell::Noted(..) | Cell::Number(..) | Cell::Share(_) | Cell::Shown(..) => {
            escape(&cell.terminal())
        }
    }
}

impl Table {
    fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let rows = self.rows().iter();
        let rows = rows.map(|row| line(row.iter().map(|cell| plain(&cell.terminal())).collect()));
        let header: Vec<String> = self.header().map(str::to_owned).collect();
        let rule = format!("|{}\n", "---|".repeat(header.len()));
        line(header) + &rule + &rows.collect::<String>() + "\n"
    }

    fn html(&self) -> String {
        let names = self.header().map(|name| format!("<th scope=\"col\">{}</th>", escape(name)));
        let mut text = format!(
            "<div class=\"scroll\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n",
            names.collect::<String>()
        );
        for row in self.rows() {
            let cells = row.iter().map(|cell| format!("<td>{}</td>", cell_html(cell)));
            let _ = writeln!(text, "<tr>{}</tr>", cells.collect::<String>());
        }
        text + "</tbody>\n</table></div>\n"
    }
}

/// The document as Markdown: figures are links to their files.
pub(super) fn markdown(blocks: &[Block]) -> String {
    blocks.iter().map(Block::markdown).collect()
}

/// The document as a page called `title`.
pub(super) fn html(title: &str, blocks: &[Block]) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{}</main>\n</body>\n</html>\n",
        escape(title),
        blocks.iter().map(Block::html).collect::<String>()
    )
}

impl Block {
    fn markdown(&self) -> String {
        match self {
            Self::Heading(level, title) => format!("{} {}\n\n", "#".repeat(*level), plain(title)),
            Self::Text(text) | Self::Note(text) => format!("{}\n\n", plain(text)),
            Self::List(items) => {
                let items = items.iter().map(|item| format!("- {}\n", plain(item)));
                items.collect::<String>() + "\n"
            }
            Self::Facts(facts) => {
                let items = facts
                    .iter()
                    .map(|(term, said)| format!("- {}: {}\n", plain(term), plain(said)));
                items.collect::<String>() + "\n"
            }
            Self::Table(table) => table.markdown(),
            Self::Folded(title, blocks) => format!("{}\n\n{}", plain(title), markdown(blocks)),
            Self::Figure(file, about, Ok(drawing)) => {
                format!("**{}**\n\n![{}]({file})\n\n", plain(&drawing.title), plain(about))
            }
            Self::Figure(_, about, Err(error)) => {
                format!("{}: not drawn: {}\n\n", plain(about), plain(error))
            }
            Self::Markup(_) => String::new(),
        }
    }

    fn html(&self) -> String {
        match self {
            Self::Heading(level, title) => format!("<h{level}>{}</h{level}>\n", escape(title)),
            Self::Text(text) => format!("<p>{}</p>\n", escape(text)),
            Self::Note(text) => format!("<p class=\"soft\">{}</p>\n", escape(text)),
            Self::List(items) => {
                let items = items.iter().map(|item| format!("<li>{}</li>\n", escape(item)));
                format!("<ul>\n{}</ul>\n", items.collect::<String>())
            }
            Self::Facts(facts) => {
                let items = facts.iter().map(|(term, said)| {
                    format!("<dt>{}</dt><dd>{}</dd>\n", escape(term), escape(said))
                });
                format!("<dl>\n{}</dl>\n", items.collect::<String>())
            }
            Self::Table(table) => table.html(),
            Self::Folded(title, blocks) => format!(
                "<details>\n<summary>{}</summary>\n{}</details>\n",
                escape(title),
                blocks.iter().map(Self::html).collect::<String>()
            ),
            Self::Figure(file, about, Ok(drawing)) => {
                let [file, about, title] = [file, about, &drawing.title].map(|text| escape(text));
                let (id, svg) = (file.trim_end_matches(".svg"), &drawing.svg);
                format!(
                    "<figure id=\"{id}\">\n<strong>{title}</strong>\n{svg}<figcaption>{about} (<a href=\"{file}\">{file}</a>)</figcaption>\n</figure>\n",
                )
            }
            Self::Figure(_, about, Err(error)) => {
                let (about, why) = (escape(about), escape(error));
                format!("<p class=\"soft\">{about}: not drawn: {why}</p>\n")
            }
            Self::Markup(markup) => (*markup).to_owned(),
        }
    }
}

/// `text` without what Markdown gives a meaning at these places.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '<' | '>' | '*' | '_' | '`' | '[' | ']' | '\\' => plain.extend(['\\', c]),
            '\n' | '\r' => plain.push(' '),
            other => plain.push(other),
        }
    }
    plain
}

/// How pages look.
const STYLE: &str = "
:root { color-scheme: light dark; --ink: #202020; --soft: #555; --paper: #fff; --line: #ccc; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --soft: #aaa; --paper: #161616; --line: #444; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; } h2 { font-size: 1.2rem; margin-top: 2rem; overflow-wrap: anywhere; }
a { color: inherit; } .soft, figcaption, dt { color: var(--soft); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; } dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .875rem; margin: .5rem 0; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 10rem; }
td:last-child, th:last-child { text-align: left; }
figure { display: inline-block; vertical-align: top; margin: .8rem .8rem .8rem 0; max-width: 30rem; width: 100%; }
figure svg { width: 100%; height: auto; background: #fff; border: 1px solid var(--line); border-radius: 4px; }
figcaption { font-size: .85rem; } figcaption::first-letter { text-transform: uppercase; }
summary { cursor: pointer; }
@media print {
:root { --ink: #000; --soft: #444; --paper: #fff; --line: #bbb; }
body { font-size: 9pt; } main { max-width: none; padding: 0; } h2 { break-after: avoid; } figure, tr { break-inside: avoid; }
.scroll { overflow: visible; } table { font-size: 7.5pt; } th, td { padding: .1rem .25rem; } th { white-space: normal; } th:first-child, td:first-child { min-width: 6rem; } figure { width: 8.5cm; }
}
";

#[cfg(test)]
mod tests {
    use super::{Block, html, markdown};
    use crate::table::Table;

    fn blocks() -> Vec<Block> {
        let row = vec![String::from("1|2"), String::from("<i>")];
        vec![
            Block::Heading(2, String::from("a_b")),
            Block::Table(Table::of_texts(["x", "y"], [row])),
            Block::List(vec![String::from("one\ntwo")]),
            Block::Figure(String::from("f.svg"), String::from("F"), Err("no kernels".into())),
        ]
    }

    #[test]
    fn no_text_becomes_markup() {
        let text = markdown(&blocks());
        let table =
            "## a\\_b\n\n| x | y |\n|---|---|\n| 1\\|2 | \\<i\\> |\n\n- one two\n\nF: not drawn";
        assert!(text.starts_with(table), "{text}");
        let page = html("t<", &blocks());
        assert!(page.contains("<title>t&lt;</title>") && page.contains("<td>&lt;i&gt;</td>"));
        assert!(page.contains("<h2>a_b</h2>") && page.ends_with("</html>\n"));
    }
}
