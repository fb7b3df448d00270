//! A document that is written twice: as Markdown, and as a page with its figures inside.

use std::fmt::Write as _;

use super::figure::Drawing;
use super::page::{STYLE, table};
use super::{ReportError, escape};

/// A piece of a document. Texts are plain: both forms escape them.
#[derive(Debug)]
pub(super) enum Block {
    /// A heading of a level from 1.
    Heading(usize, String),
    /// A paragraph.
    Text(String),
    /// Sentences that stand for themselves.
    List(Vec<String>),
    /// Column names, and rows.
    Table(Vec<&'static str>, Vec<Vec<String>>),
    /// A figure: its file without folder, what it shows, and itself or why there is none.
    Figure(String, String, Result<Drawing, ReportError>),
}

/// The document as Markdown: figures are links to their files.
pub(super) fn markdown(blocks: &[Block]) -> String {
    let mut text = String::new();
    for block in blocks {
        match block {
            Block::Heading(level, title) => {
                let _ = writeln!(text, "{} {}\n", "#".repeat(*level), plain(title));
            }
            Block::Text(said) => {
                let _ = writeln!(text, "{}\n", plain(said));
            }
            Block::List(items) => {
                items.iter().for_each(|item| {
                    let _ = writeln!(text, "- {}", plain(item));
                });
                text.push('\n');
            }
            Block::Table(header, rows) => {
                let _ =
                    writeln!(text, "| {} |\n|{}", header.join(" | "), "---|".repeat(header.len()));
                for row in rows {
                    let cells: Vec<String> = row.iter().map(|cell| plain(cell)).collect();
                    let _ = writeln!(text, "| {} |", cells.join(" | "));
                }
                text.push('\n');
            }
            Block::Figure(file, about, Ok(_)) => {
                let _ = writeln!(text, "![{}]({file})\n", plain(about));
            }
            Block::Figure(_, about, Err(error)) => {
                let _ =
                    writeln!(text, "{}: not drawn: {}\n", plain(about), plain(&error.to_string()));
            }
        }
    }
    crate::dump::dump("md", &text);
    text
}

/// The document as a page of its own called `title`.
pub(super) fn html(title: &str, blocks: &[Block]) -> String {
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n",
        escape(title)
    );
    for block in blocks {
        match block {
            Block::Heading(level, title) => {
                let _ = writeln!(text, "<h{level}>{}</h{level}>", escape(title));
            }
            Block::Text(said) => {
                let _ = writeln!(text, "<p>{}</p>", escape(said));
            }
            Block::List(items) => {
                text += "<ul>\n";
                items.iter().for_each(|item| {
                    let _ = writeln!(text, "<li>{}</li>", escape(item));
                });
                text += "</ul>\n";
            }
            Block::Table(header, rows) => {
                let rows = rows.iter().map(|row| row.iter().map(|cell| escape(cell)).collect());
                table(&mut text, header, rows);
            }
            Block::Figure(file, about, drawing) => figure(&mut text, (file, about), drawing),
        }
    }
    text += "</main>\n</body>\n</html>\n";
    crate::dump::dump("html", &text);
    text
}

fn figure(text: &mut String, (file, about): (&str, &str), drawing: &Result<Drawing, ReportError>) {
    let (file, about) = (escape(file), escape(about));
    let _ = match drawing {
        Ok(drawing) => writeln!(
            text,
            "<figure id=\"{file}\">\n{}<figcaption>{about} (<a href=\"{file}\">{file}</a>)</figcaption>\n</figure>",
            drawing.svg
        ),
        Err(error) => {
            let why = escape(&error.to_string());
            writeln!(text, "<p class=\"soft\">{about}: not drawn: {why}</p>")
        }
    };
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

#[cfg(test)]
mod tests {
    use super::{Block, html, markdown};
    use crate::ReportError;

    fn blocks() -> Vec<Block> {
        vec![
            Block::Heading(2, String::from("a_b")),
            Block::Table(vec!["x", "y"], vec![vec![String::from("1|2"), String::from("<i>")]]),
            Block::List(vec![String::from("one\ntwo")]),
            Block::Figure(
                String::from("f.svg"),
                String::from("F"),
                Err(ReportError::UnknownApp { name: String::from("a"), known: String::from("b") }),
            ),
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
