//! Are binary traces, whatever they hold, taken whole or refused with their place, and
//! expanded by the same rules?

#![no_main]

use std::io::{self, Write};

use gpumodel::trace::expand;
use gpumodel_fuzz::{Place, converted, named};

/// Takes so many bytes, then refuses.
struct Bounded(usize);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or_else(|| io::Error::other("enough"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let place = Place::new();
    let path = place.file("kernel-1", bytes);
    converted(&place, "kernel-1");
    if let Err(error) = expand(&path, &mut Bounded(1 << 20)) {
        let _ = named(&error, "");
    }
});
