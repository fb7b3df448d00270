//! The folders of sweeps that `reports/records` holds, packed: what figures and tables of
//! `reports` are made from.

use std::fs::File;
use std::path::{Path, PathBuf};

/// The folder `reports`.
pub(crate) fn reports() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("reports")
}

/// Unpacks `reports/records/NAME.tar.xz` into `folder` and gives the sweep's folder.
pub(crate) fn unpacked(name: &str, folder: &Path) -> PathBuf {
    let path = reports().join("records").join(format!("{name}.tar.xz"));
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    tar::Archive::new(liblzma::read::XzDecoder::new(file)).unpack(folder).unwrap();
    folder.join(name)
}
