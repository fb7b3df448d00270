//! What was measured of a card: a table of values with their sources.

use std::path::Path;

use gpumodel_core::models::{ModelFiles, ModelText, read_text};
use gpumodel_core::toml::TomlError;

use super::MeasureError;
use super::benchmark::{BENCHMARKS, Benchmark, variants};

/// The columns of a table.
const COLUMNS: &str = "benchmark,at,value,source";

/// One published value.
#[derive(Debug)]
struct Row {
    benchmark: &'static str,
    at: String,
    value: f64,
    source: String,
}

/// The published values of one card; none where nothing is known.
#[derive(Debug, Default)]
pub(super) struct Published(Vec<Row>);

impl Published {
    /// Those of `file`, else of `models/measured/MACHINE.csv`, else none.
    pub(super) fn load(
        file: Option<&Path>,
        machine: &str,
        models: &ModelFiles,
    ) -> Result<Self, MeasureError> {
        if let Some(file) = file {
            let text = read_text(file)
                .map_err(|error| MeasureError::File(Box::new(TomlError::from(error))))?;
            return Self::read(&file.display().to_string(), &text);
        }
        match models.file(&format!("measured/{machine}.csv")) {
            Some(ModelText { origin, text }) => Self::read(origin, text),
            None => Ok(Self::default()),
        }
    }

    /// Reads a table: comments after `#`, the columns, then a line per value.
    fn read(file: &str, text: &str) -> Result<Self, MeasureError> {
        let wrong = |line: usize, what: String| MeasureError::Published {
            file: file.to_owned(),
            line,
            what,
        };
        let lines = (1..).zip(text.lines().map(str::trim));
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        match lines.next() {
            Some((_, COLUMNS)) => (),
            Some((line, found)) => {
                return Err(wrong(
                    line,
                    format!("expected the columns `{COLUMNS}`, found `{found}`"),
                ));
            }
            None => {
                return Err(wrong(1, format!("expected the columns `{COLUMNS}`, found nothing")));
            }
        }
        let mut rows: Vec<Row> = Vec::new();
        for (number, line) in lines {
            let row = Self::read_row(line).map_err(|what| wrong(number, what))?;
            if rows.iter().any(|known| known.benchmark == row.benchmark && known.at == row.at) {
                return Err(wrong(number, format!("a second `{}` at {}", row.benchmark, row.at)));
            }
            rows.push(row);
        }
        Ok(Self(rows))
    }

    fn read_row(line: &str) -> Result<Row, String> {
        let fields: Vec<&str> = line.splitn(4, ',').map(str::trim).collect();
        let &[name, at, value, source] = fields.as_slice() else {
            return Err(format!("expected four fields, `{COLUMNS}`, found {}", fields.len()));
        };
        let benchmark = BENCHMARKS.iter().find(|known| known.name == name);
        let benchmark = benchmark.ok_or_else(|| {
            format!("no benchmark `{name}`: `gpumodel machine measure --list` names all")
        })?;
        (benchmark.check)(at)?;
        let found = value.parse().ok().filter(|&value: &f64| value.is_finite() && value > 0.0);
        let value = found.ok_or_else(|| format!("expected a number above 0, found `{value}`"))?;
        if source.is_empty() {
            return Err(String::from("expected the source of the value, found nothing"));
        }
        Ok(Row { benchmark: benchmark.name, at: at.to_owned(), value, source: source.to_owned() })
    }

    /// The points of a benchmark that are known, and the `usual` ones: numbers in order.
    pub(super) fn points(&self, benchmark: &Benchmark, usual: Vec<String>) -> Vec<String> {
        let known = self.0.iter().filter(|row| row.benchmark == benchmark.name);
        let mut points = usual;
        for row in known {
            for variant in std::iter::once(&"").chain(variants(benchmark.name)) {
                let at = format!("{}{variant}", row.at);
                if !points.contains(&at) {
                    points.push(at);
                }
            }
        }
        let number = |at: &String| at.parse::<f64>().unwrap_or(0.0);
        points.sort_by(|a, b| number(a).total_cmp(&number(b)));
        points
    }

    /// The published value of a benchmark at a point, with its source; of a point without one,
    /// the value of which it is a [variant](variants).
    pub(super) fn row(&self, benchmark: &str, at: &str) -> Option<(f64, &str)> {
        let found = |at: &str| self.0.iter().find(|row| row.benchmark == benchmark && row.at == at);
        let row = found(at).or_else(|| found(at.split_once('@')?.0))?;
        Some((row.value, &row.source))
    }
}

#[cfg(test)]
mod tests {
    use super::Published;

    #[test]
    fn a_wrong_line_is_named_with_what_was_expected() {
        let head = "# mine\nbenchmark,at,value,source\n";
        for (line, words) in [
            ("load-latency,64,30", "t.csv:3: expected four fields"),
            ("load,64,30,me", "t.csv:3: no benchmark `load`"),
            ("load-latency,small,30,me", "t.csv:3: expected a number"),
            ("load-latency,64,-1,me", "t.csv:3: expected a number above 0, found `-1`"),
            ("load-latency,64,30,", "t.csv:3: expected the source"),
            (
                "load-latency,64,30,a\nload-latency,64,31,b",
                "t.csv:4: a second `load-latency` at 64",
            ),
        ] {
            let error =
                Published::read("t.csv", &format!("{head}{line}\n")).unwrap_err().to_string();
            assert!(error.starts_with(words), "{error}");
        }
        assert!(Published::read("t.csv", "").unwrap_err().to_string().contains("found nothing"));
        let rows = Published::read("t.csv", &format!("{head}load-latency,64,30,a, b\n")).unwrap();
        assert_eq!(rows.row("load-latency", "64"), Some((30.0, "a, b")));
        assert_eq!(rows.row("load-latency", "65"), None);
    }

    #[test]
    fn every_table_of_published_values_is_read() {
        let models = gpumodel_models::builtin();
        let tables: Vec<&str> = models
            .texts()
            .map(|(path, _)| path)
            .filter(|path| path.starts_with("measured/"))
            .collect();
        assert!(tables.len() >= 5, "{tables:?}");
        for path in tables {
            let name = path.trim_start_matches("measured/").trim_end_matches(".csv");
            assert!(models.named("gpus", name).is_some(), "{path}: no such machine");
            assert!(!Published::load(None, name, &models).unwrap().0.is_empty(), "{path}");
        }
    }
}
