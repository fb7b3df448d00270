//! Are logs of NVBit's `mem_trace`, whatever they hold, taken whole or refused with
//! their place?

#![no_main]

use gpumodel_fuzz::{Place, converted};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let place = Place::new();
    place.file("log", bytes);
    converted(&place, "log");
});
