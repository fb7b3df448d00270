//! The folders of records that `reports/records` holds, packed: what figures and tables of
//! `reports` are made from, and the tables' places in texts.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use gpumodel::report::results::SweepFiles;

/// The folder `reports`.
pub(crate) fn reports() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("reports")
}

/// Unpacks `reports/records/NAME.tar.xz` into `folder` and gives the folder that it holds.
pub(crate) fn unpacked(name: &str, folder: &Path) -> PathBuf {
    let path = reports().join("records").join(format!("{name}.tar.xz"));
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    tar::Archive::new(liblzma::read::XzDecoder::new(file)).unpack(folder).unwrap();
    folder.join(name)
}

/// Checks that `table` stands between the lines `<!-- NAME -->` and `<!-- end NAME -->` of the
/// text at `path`; with `BLESS` set, writes it there.
pub(crate) fn hold_table(path: &Path, name: &str, table: &str) {
    let mut text = fs::read_to_string(path).unwrap();
    let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- end {name} -->"));
    let begin = text.find(&open).expect("a place for the table") + open.len();
    let end = text.find(&close).expect("its end");
    if std::env::var_os("BLESS").is_some() {
        text.replace_range(begin..end, table);
        fs::write(path, &text).unwrap();
    } else {
        assert_eq!(&text[begin..end], table, "BLESS=1 writes {name} anew");
    }
}

/// What `plot` takes of `path`: a file and the folder of a sweep as they are, of another
/// folder the files in it, by name.
pub(crate) fn records_in(path: &Path) -> Vec<PathBuf> {
    if path.is_file() || SweepFiles::new(path).begun() {
        return vec![path.to_path_buf()];
    }
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}
