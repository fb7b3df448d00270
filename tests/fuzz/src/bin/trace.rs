//! Are traces as text, raw or grouped, plain or packed, whatever they hold, taken whole
//! or refused with their place?

#![no_main]

use gpumodel_fuzz::{Place, converted, unfolded};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let place = Place::new();
    place.file("kernel-1", &unfolded(bytes));
    converted(&place, "kernel-1");
});
