//! Trace texts that are made while they are converted: no file holds them.

use std::io::{self, BufWriter, PipeWriter, Write};
use std::path::{Path, PathBuf};
use std::thread;

use crate::trace::error::TraceError;
use crate::trace::store::Command;
use crate::trace::writer::StoreWriter;

use super::request::{ConvertReport, ConvertRequest, Progress};
use super::source::Source;
use super::{Outcome, import_source};

/// Who makes trace texts; they are read as they come, so that they may be longer than
/// memory and disk are large.
pub trait Texts: Sync {
    /// What errors and warnings call them.
    fn name(&self) -> String;
    /// Copies and launches in order; launches count from 0.
    fn commands(&self) -> Vec<Command>;
    /// What [`Texts::write`] tells its progress in all, about the bytes of the texts.
    fn about_bytes(&self) -> u64;
    /// Writes the text of a launch as Accel-Sim's tracer would, and tells `passed` how
    /// far it is.
    ///
    /// # Errors
    /// What `out` says, or why there is no such text.
    fn write(&self, launch: usize, out: &mut dyn Write, passed: &dyn Fn(u64)) -> io::Result<()>;
}

/// Converts `texts` to the store at `output`: the bytes are those that
/// [`convert`](super::convert) makes of files with these texts. On an error nothing is
/// left behind.
///
/// # Errors
/// [`TraceError`]; [`TraceError::Io`] with `what` = `make` holds what
/// [`Texts::write`] said.
pub fn convert_texts(
    texts: &dyn Texts,
    output: &Path,
    progress: &dyn Progress,
) -> Result<ConvertReport, TraceError> {
    let request = ConvertRequest { output: output.to_path_buf(), ..ConvertRequest::default() };
    progress.begin(texts.about_bytes());
    let mut writer = StoreWriter::create(output)?;
    let mut report = ConvertReport::default();
    for command in texts.commands() {
        match command {
            Command::MemcpyHtoD { .. } => writer.command(command),
            Command::Kernel(launch) => {
                let name = PathBuf::from(format!("{}, launch {}", texts.name(), launch + 1));
                let made = Made { texts, launch, name };
                if let Outcome::Taken(imported) = made.import(&request, &mut writer, progress)? {
                    report.add(&made.name, &imported);
                }
            }
        }
    }
    if report.kernels == 0 {
        return Err(TraceError::Request(format!("{}: no launch to convert", texts.name())));
    }
    report.store_bytes = writer.finish()?;
    Ok(report)
}

/// One launch of some texts.
struct Made<'a> {
    texts: &'a dyn Texts,
    launch: usize,
    name: PathBuf,
}

impl Made<'_> {
    /// Writes the text on one thread and imports it on others.
    fn import(
        &self,
        request: &ConvertRequest,
        writer: &mut StoreWriter,
        progress: &dyn Progress,
    ) -> Result<Outcome, TraceError> {
        let wrong = |error| TraceError::io("make", &self.name, error);
        let (reader, pipe) = io::pipe().map_err(wrong)?;
        thread::scope(|scope| {
            let made = scope.spawn(|| self.write(pipe, progress));
            let source = Source::made(&self.name, reader);
            let imported = import_source(source, request, writer, progress);
            match made.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
                // Importing stopped first, and says why.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => imported,
                Err(error) => Err(wrong(error)),
                Ok(()) => imported,
            }
        })
    }

    fn write(&self, pipe: PipeWriter, progress: &dyn Progress) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 16, pipe);
        self.texts.write(self.launch, &mut out, &|bytes| progress.advance(bytes))?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use super::{Texts, convert_texts};
    use crate::trace::error::TraceError;
    use crate::trace::store::Command;
    use crate::trace::{ConvertRequest, Silent, convert};

    /// One launch of so many CTAs.
    struct Launch {
        ctas: u32,
        fails: bool,
    }

    impl Launch {
        fn text(&self) -> String {
            let mut text = format!(
                "-kernel name = k\n-kernel id = 1\n-grid dim = ({},1,1)\n-block dim = (32,1,1)\n\
                 -shmem = 0\n-nregs = 8\n-binary version = 70\n-cuda stream id = 0\n\
                 -shmem base_addr = 0x0\n-local mem base_addr = 0x0\n-nvbit version = none\n\
                 -accelsim tracer version = 5\n-enable lineinfo = 0\n\n",
                self.ctas
            );
            for cta in 0..self.ctas {
                text += &format!("#BEGIN_TB\nthread block = {cta},0,0\nwarp = 0\ninsts = 1\n");
                text += "0000 ffffffff 0 EXIT 0 0 \n#END_TB\n";
            }
            text
        }
    }

    impl Texts for Launch {
        fn name(&self) -> String {
            "test".into()
        }

        fn commands(&self) -> Vec<Command> {
            vec![Command::MemcpyHtoD { destination: 64, bytes: 32 }, Command::Kernel(0)]
        }

        fn about_bytes(&self) -> u64 {
            1
        }

        fn write(&self, _: usize, out: &mut dyn Write, passed: &dyn Fn(u64)) -> io::Result<()> {
            out.write_all(self.text().as_bytes())?;
            passed(1);
            if self.fails { Err(io::Error::other("no more")) } else { Ok(()) }
        }
    }

    #[test]
    fn made_texts_give_the_store_of_their_files() {
        let scratch = tempfile::tempdir().unwrap();
        let launch = Launch { ctas: 40_000, fails: false };
        let made = scratch.path().join("made.gpt");
        let report = convert_texts(&launch, &made, &Silent).unwrap();
        std::fs::write(scratch.path().join("kernel-1.traceg"), launch.text()).unwrap();
        let list = scratch.path().join("kernelslist.g");
        std::fs::write(&list, "MemcpyHtoD,0x40,32\nkernel-1.traceg\n").unwrap();
        let output = scratch.path().join("read.gpt");
        let request = ConvertRequest { inputs: vec![list], output, ..Default::default() };
        let read = convert(&request, &Silent).unwrap();
        assert_eq!((report.kernels, report.text_bytes), (1, read.text_bytes));
        assert!(std::fs::read(made).unwrap() == std::fs::read(&request.output).unwrap());
    }

    #[test]
    fn a_text_that_cannot_be_made_leaves_no_store() {
        let scratch = tempfile::tempdir().unwrap();
        let output = scratch.path().join("made.gpt");
        let error = convert_texts(&Launch { ctas: 3, fails: true }, &output, &Silent).unwrap_err();
        assert!(matches!(error, TraceError::Io { what: "make", .. }), "{error}");
        assert_eq!(error.to_string(), "cannot make test, launch 1");
        assert_eq!(scratch.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn a_text_that_cannot_be_read_stops_who_makes_it() {
        struct Endless;
        impl Texts for Endless {
            fn name(&self) -> String {
                "endless".into()
            }
            fn commands(&self) -> Vec<Command> {
                vec![Command::Kernel(0)]
            }
            fn about_bytes(&self) -> u64 {
                0
            }
            fn write(&self, _: usize, out: &mut dyn Write, _: &dyn Fn(u64)) -> io::Result<()> {
                loop {
                    out.write_all(b"no trace\n")?;
                }
            }
        }
        let scratch = tempfile::tempdir().unwrap();
        let error = convert_texts(&Endless, &scratch.path().join("made.gpt"), &Silent);
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("endless, launch 1:1: expected"), "{error}");
    }
}
