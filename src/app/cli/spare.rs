//! Outputs that would cost what a command reads, refused before the work begins.

use std::path::{Path, PathBuf};

use gpumodel_trace::Store;

/// Refuses outputs, each with the option that names it, that would replace a store, one of
/// `inputs` or something in a folder among them, or each other.
///
/// Standard output (`-`), devices and pipes replace nothing. An input may be a name that is
/// no file.
pub(super) fn spare(inputs: &[PathBuf], outputs: &[(&str, Option<&Path>)]) -> Result<(), String> {
    let read: Vec<PathBuf> = inputs.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let mut written: Vec<(&str, PathBuf)> = Vec::new();
    for &(option, path) in outputs {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else { continue };
        let Some(real) = real(path) else { continue };
        let shown = path.display();
        if real.is_file() && Store::recognise(&real) {
            return Err(format!("{shown}: is a store; give the output another name"));
        }
        if real.is_file() && read.iter().any(|input| real.starts_with(input)) {
            let why = format!("is read by this command, and {option} would replace it");
            return Err(format!("{shown}: {why}; give the output another name"));
        }
        if let Some((other, _)) = written.iter().find(|(_, known)| *known == real) {
            let why = format!("is to be written by {other} and by {option}");
            return Err(format!("{shown}: {why}; give one of them another name"));
        }
        written.push((option, real));
    }
    Ok(())
}

/// The file that an output at `path` replaces or is going to be; `None`: there is something
/// that is no file, or no folder for one.
fn real(path: &Path) -> Option<PathBuf> {
    if let Ok(there) = path.canonicalize() {
        return there.is_file().then_some(there);
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new(".")).canonicalize().ok()?;
    Some(parent.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::spare;

    #[test]
    fn outputs_that_are_inputs_by_whatever_name_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("cells")).unwrap();
        for name in ["a.json", "b.json", "cells/k.json"] {
            fs::write(at(name), "mine").unwrap();
        }
        let inputs = [at("a.json"), at("cells"), PathBuf::from("v100")];
        let said = |name: &str| spare(&inputs, &[("--json", Some(at(name).as_path()))]);
        for name in ["a.json", "cells/../a.json", "cells/k.json"] {
            let error = said(name).unwrap_err();
            assert!(error.contains("and --json would replace it"), "{error}");
            assert!(error.starts_with(at(name).to_str().unwrap()), "{error}");
        }
        for name in ["b.json", "new.json", "cells/new.json", "nowhere/a.json"] {
            assert_eq!(said(name), Ok(()), "{name}");
        }
        assert_eq!(spare(&inputs, &[("--json", Some(Path::new("-"))), ("-o", None)]), Ok(()));
    }

    #[test]
    fn one_file_is_not_two_outputs() {
        let folder = tempfile::tempdir().unwrap();
        let (one, same) = (folder.path().join("x"), folder.path().join("./x"));
        let outputs = [("-o", Some(one.as_path())), ("--csv", Some(same.as_path()))];
        let error = spare(&[], &outputs).unwrap_err();
        assert!(error.contains("by -o and by --csv; give one of them another"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_what_they_are_and_devices_replace_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (input, link) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&input, "mine").unwrap();
        std::os::unix::fs::symlink(&input, &link).unwrap();
        assert!(spare(&[input], &[("--json", Some(link.as_path()))]).is_err());
        let null = Path::new("/dev/null");
        let outputs = [("-o", Some(null)), ("--json", Some(null))];
        assert_eq!(spare(&[null.to_path_buf()], &outputs), Ok(()));
    }
}
