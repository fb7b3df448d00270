//! Many small files kept as one text, which a reader can read and extend.
//!
//! A line `-- NAME --` stands before the text of each. Of a file with other bytes than lines of
//! plain text it is `-- NAME escaped --`: then `\r`, `\0`, `\\` and `\xNN` are bytes, and a
//! `\` at the end of a line stands for no line break.

use std::fs;
use std::path::{Path, PathBuf};

use gpumodel::trace::workload::{Compression, Workload, write_folder};
use gpumodel::trace::{ConvertRequest, Silent, convert};

/// The names and bytes of the files in `text`; lines before the first are about all of them.
pub(crate) fn small_files(text: &str) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, bool, Vec<u8>)> = Vec::new();
    for line in text.split_inclusive('\n') {
        if let Some((name, escaped)) = heading(line) {
            files.push((name.to_owned(), escaped, Vec::new()));
        } else if let Some((_, escaped, bytes)) = files.last_mut() {
            bytes.extend(if *escaped { unescaped(line) } else { line.into() });
        }
    }
    files.into_iter().map(|(name, _, bytes)| (name, bytes)).collect()
}

/// Writes the files of the text at `archive` into `folder`.
pub(crate) fn unpack(archive: &Path, folder: &Path) {
    let text = fs::read_to_string(archive).expect("an archive of small files");
    for (name, bytes) in small_files(&text) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder)).expect("a folder");
        fs::write(path, bytes).expect("a small file");
    }
}

/// The name in a heading, and whether the file is escaped.
fn heading(line: &str) -> Option<(&str, bool)> {
    let name = line.trim_end().strip_prefix("-- ")?.strip_suffix(" --")?;
    Some(name.strip_suffix(" escaped").map_or((name, false), |name| (name, true)))
}

fn unescaped(line: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = line.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'r') => bytes.push(b'\r'),
            Some(b'0') => bytes.push(0),
            Some(b'\\') => bytes.push(b'\\'),
            Some(b'x') => {
                let digits = [rest.next(), rest.next()].map(Option::unwrap_or_default);
                let digits = std::str::from_utf8(&digits).expect("two digits").to_owned();
                bytes.push(u8::from_str_radix(&digits, 16).expect("two hexadecimal digits"));
            }
            Some(b'\n') | None => {}
            Some(other) => panic!("`\\{}` is no escape", char::from(other)),
        }
    }
    bytes
}

/// Kernel `name` of `tests/data/kernels.txt`, as `sharing/copy`, as a store in `folder`, called after the last part.
pub(crate) fn kernel_store(folder: &Path, name: &str) -> PathBuf {
    let mut files = small_files(include_str!("../data/kernels.txt")).into_iter();
    let (_, bytes) = files.find(|(other, _)| other == name).expect("a kernel of kernels.txt");
    let text = String::from_utf8(bytes).unwrap();
    let name = name.rsplit('/').next().unwrap();
    let workload = Workload::parse(name, "kernels.txt", text, 1.0).unwrap();
    let (traces, path) = (folder.join(name), folder.join(format!("{name}.gpt")));
    write_folder(&workload, &traces, Compression::None, &mut |_| {}).unwrap();
    let inputs = vec![traces];
    let request = ConvertRequest { inputs, output: path.clone(), ..ConvertRequest::default() };
    convert(&request, &Silent).unwrap();
    path
}
