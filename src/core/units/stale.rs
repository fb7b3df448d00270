//! Files of network file systems whose handles have gone stale.

use std::error::Error;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Does `work` once more where the handle of a file has gone stale under it: another machine
/// has replaced or removed the file, and who opens it anew finds what is there now.
///
/// # Errors
/// Those of `work`, the second time where there was one.
pub fn unless_stale<T, E: Error + 'static>(work: impl Fn() -> Result<T, E>) -> Result<T, E> {
    match work() {
        Err(error) if is_stale(&error) => work(),
        done => done,
    }
}

/// The bytes of the file at `path`, also where it is replaced while it is read.
///
/// # Errors
/// Whatever the file system says.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    unless_stale(|| fs::read(path))
}

/// Whether an error is, or is caused by, a stale handle.
fn is_stale(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let error_of_file = error.downcast_ref::<io::Error>();
        if error_of_file.is_some_and(|one| one.kind() == ErrorKind::StaleNetworkFileHandle) {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::{self, ErrorKind};

    use super::{read_file, unless_stale};

    /// What comes of work that meets these errors, one each time, and how often it is done.
    fn done(errors: &[ErrorKind]) -> (io::Result<()>, usize) {
        let times = Cell::new(0);
        let outcome = unless_stale(|| {
            times.set(times.get() + 1);
            errors.get(times.get() - 1).map_or(Ok(()), |&kind| Err(kind.into()))
        });
        (outcome, times.get())
    }

    #[test]
    fn a_stale_handle_is_tried_once_more_and_nothing_else_is() {
        let stale = ErrorKind::StaleNetworkFileHandle;
        assert!(matches!(done(&[]), (Ok(()), 1)));
        assert!(matches!(done(&[stale]), (Ok(()), 2)));
        assert!(matches!(done(&[stale, stale]), (Err(error), 2) if error.kind() == stale));
        assert!(matches!(done(&[ErrorKind::NotFound]), (Err(_), 1)));
        let missing = read_file(std::path::Path::new("no/such/file")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_systems_number_is_a_stale_handle() {
        const ESTALE: i32 = 116;
        let kind = io::Error::from_raw_os_error(ESTALE).kind();
        assert_eq!(kind, ErrorKind::StaleNetworkFileHandle);
    }
}
