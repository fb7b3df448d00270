//! Are binary traces, whatever they hold, taken whole or refused with their place, and
//! expanded by the same rules?

#![no_main]

use gpumodel::trace::expand;
use gpumodel_fuzz::{Bounded, Place, converted, named};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let place = Place::new();
    let path = place.file("kernel-1", bytes);
    converted(&place, "kernel-1");
    if let Err(error) = expand(&path, &mut Bounded(1 << 20)) {
        let _ = named(&error, "");
    }
});
