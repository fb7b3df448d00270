//! The kernels of `tests/data/kernels.txt`.

use std::path::{Path, PathBuf};

use gpumodel::trace::workload::{Compression, Workload, write_folder};
use gpumodel::trace::{ConvertRequest, Silent, convert};

use super::small_files::small_files;

/// Kernel `name`, as `sharing/copy`, as a store in `folder`, called after the last part.
pub(crate) fn store(folder: &Path, name: &str) -> PathBuf {
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
