//! Tables in the terminal, and as CSV files.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use gpumodel_core::units::is_stream;
use gpumodel_report::table::Table;
use terminal_size::terminal_size_of;

use super::output::{check_file, check_overwrites, is_stdout, message, stdout, write_text};

/// The narrowest terminal that tables are fitted to.
const NARROWEST: usize = 40;

/// Writes tables as CSV.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct CsvArgument {
    /// Writes the tables as CSV, with every digit: the first to FILE, each other one next to
    /// it with its name before the ending, as `x-kernels.csv` next to `x.csv`; a device or pipe
    /// gets the first alone; `-` writes it to standard output, and nothing else
    #[arg(id = "csv", long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl CsvArgument {
    /// Tables to `file`, if there is one.
    pub(super) fn to(file: Option<PathBuf>) -> Self {
        Self { file }
    }

    /// Refuses files of tables called `names`, or `others`, that would replace one of `inputs`
    /// or each other, and tables that cannot be written; standard output is for one of them.
    pub(super) fn check(
        &self,
        inputs: &[PathBuf],
        others: &[(&str, Option<&Path>)],
        names: &[&str],
    ) -> Result<(), String> {
        let stdout = |path: Option<&Path>| path.is_some_and(is_stdout);
        if let Some((other, _)) = others.iter().find(|(_, path)| stdout(*path))
            && self.is_stdout()
        {
            return Err(format!("--csv and {other}: standard output takes one of them"));
        }
        let files = self.files(names);
        let own = files.iter().map(|file| ("--csv", Some(file.as_path())));
        check_overwrites(inputs, &others.iter().copied().chain(own).collect::<Vec<_>>())?;
        files.iter().try_for_each(|file| check_file(file).map_err(|error| error.to_string()))
    }

    /// Refuses the option, which is for the table of `what` alone; `how` the user gets it.
    pub(super) fn refuse(&self, what: &str, how: &str) -> Result<(), String> {
        match &self.file {
            Some(_) => Err(format!("--csv is for the list of {what}: {how}")),
            None => Ok(()),
        }
    }

    /// The files of tables called `names`.
    fn files(&self, names: &[&str]) -> Vec<PathBuf> {
        let Some(file) = &self.file else { return Vec::new() };
        let file = |place: usize| match place {
            0 => Some(file.clone()),
            // One device or pipe, one table.
            _ if is_stdout(file) || is_stream(file) => None,
            _ => Some(named(file, names[place])),
        };
        (0..names.len()).filter_map(file).collect()
    }

    /// Whether standard output is for CSV alone.
    pub(super) fn is_stdout(&self) -> bool {
        self.file.as_deref().is_some_and(is_stdout)
    }

    /// Shows `text` on standard output; on standard error where that is for CSV alone.
    pub(super) fn show(&self, text: &str) -> io::Result<()> {
        if self.is_stdout() {
            message(text.trim_end());
            return Ok(());
        }
        stdout().write_all(text.as_bytes())
    }

    /// Writes `tables`, each with its name.
    pub(super) fn write(&self, tables: &[(&str, Table)]) -> io::Result<()> {
        let names: Vec<&str> = tables.iter().map(|(name, _)| *name).collect();
        for (path, (_, table)) in self.files(&names).iter().zip(tables) {
            write_text(path, &table.csv())?;
        }
        Ok(())
    }

    /// Writes `text` alone.
    pub(super) fn write_one(&self, text: &str) -> io::Result<()> {
        self.file.as_deref().map_or(Ok(()), |path| write_text(path, text))
    }
}

/// `path` with `-name` before its ending.
pub(super) fn named(path: &Path, name: &str) -> PathBuf {
    let mut file = path.file_stem().unwrap_or_default().to_owned();
    file.push(format!("-{name}"));
    if let Some(ending) = path.extension() {
        file.push(".");
        file.push(ending);
    }
    path.with_file_name(file)
}

/// The width for tables on standard output: `COLUMNS`, else that of the terminal; `None`: it
/// is no terminal, and tables stand whole.
pub(super) fn width() -> Option<usize> {
    let typed = std::env::var("COLUMNS").ok().and_then(|typed| typed.parse().ok());
    let terminal = || terminal_size_of(io::stdout()).map(|(width, _)| width.0.into());
    typed.or_else(terminal).filter(|&width| width > 0).map(|width: usize| width.max(NARROWEST))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{CsvArgument, named};

    #[test]
    fn tables_after_the_first_have_their_name_in_that_of_the_file() {
        let argument = CsvArgument { file: Some("out/x.csv".into()) };
        assert_eq!(
            argument.files(&["summary", "kernels"]),
            [PathBuf::from("out/x.csv"), PathBuf::from("out/x-kernels.csv")]
        );
        assert_eq!(named(Path::new("x"), "a"), Path::new("x-a"));
        let stdout = CsvArgument { file: Some("-".into()) };
        let json = [("--json", Some(Path::new("-")))];
        assert!(stdout.check(&[], &json, &["summary"]).is_err());
        assert_eq!(stdout.files(&["summary", "kernels"]).len(), 1);
        for stream in ["/dev/stdout", "/dev/null"].into_iter().filter(|_| cfg!(unix)) {
            let argument = CsvArgument { file: Some(stream.into()) };
            assert_eq!(argument.files(&["summary", "kernels"]), [PathBuf::from(stream)]);
        }
        assert!(CsvArgument::default().files(&["summary"]).is_empty());
    }
}
