//! Where results go: to standard output, or into a file.

use std::io::{self, StdoutLock, Write};
use std::path::Path;

use gpumodel_core::units::WholeFile;

/// Standard output, whose errors say that they are of it.
pub(super) struct Stdout(StdoutLock<'static>);

/// Standard output, this thread's alone as long as the value lives.
pub(super) fn stdout() -> Stdout {
    Stdout(io::stdout().lock())
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(|error| named(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(|error| named(&error))
    }
}

/// The same error in words that name the output; its kind tells closed pipes.
fn named(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))
}

/// Writes `text` to `path`, or to standard output for `-`.
pub(super) fn write_text(path: &Path, text: &str) -> io::Result<()> {
    if path == Path::new("-") {
        return stdout().write_all(text.as_bytes());
    }
    WholeFile::write(path, text.as_bytes())
}

/// Endings of pictures that are no SVG.
const OTHER_PICTURES: [&str; 6] = ["pdf", "png", "eps", "ps", "jpg", "jpeg"];

/// Refuses a name for a figure that says another form than SVG, which is what is written.
pub(super) fn check_svg(path: &Path) -> Result<(), String> {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    if !OTHER_PICTURES.contains(&ending.as_str()) {
        return Ok(());
    }
    // What is to be converted with has no JPEG.
    let form = if ending.starts_with('j') { "png" } else { ending.as_str() };
    let (svg, other) = (path.with_extension("svg"), path.with_extension(form));
    let (shown, svg, other) = (path.display(), svg.display(), other.display());
    Err(format!(
        "{shown}: figures are written as SVG; name it {svg}, and convert that: \
         rsvg-convert -f {form} {svg} -o {other}"
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::check_svg;

    #[test]
    fn names_of_other_pictures_are_refused_with_the_way_to_them() {
        for fine in ["a.svg", "a.SVG", "a", "-", "pdf", "a.pdf/b.svg", "a.json"] {
            assert_eq!(check_svg(Path::new(fine)), Ok(()), "{fine}");
        }
        for (name, way) in [
            ("f/a.pdf", "convert that: rsvg-convert -f pdf f/a.svg -o f/a.pdf"),
            ("a.PNG", "rsvg-convert -f png a.svg -o a.png"),
            ("a.jpeg", "rsvg-convert -f png a.svg -o a.png"),
        ] {
            let said = check_svg(Path::new(name)).unwrap_err();
            assert!(said.starts_with(name) && said.ends_with(way), "{said}");
        }
    }
}
