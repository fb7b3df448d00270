//! Does any command list lead to traces next to it or to a refusal with its place?

#![no_main]

use gpumodel::trace::sources;
use gpumodel_fuzz::{Place, converted, named};

const TRACE: &[u8] = include_bytes!("../../../../traces/golden/v1.traceg");

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let place = Place::new();
    place.file("kernel-1.traceg", TRACE);
    place.file("kernel-2.traceg", b"-kernel name = k\n");
    place.file("more/kernelslist.g", b"kernel-1.traceg\n");
    let list = place.file("kernelslist.g", bytes);
    match sources(&[list]) {
        Ok(found) => assert!(found.iter().all(|path| path.exists()), "{found:?}"),
        Err(error) => named(&error, "kernelslist.g"),
    }
    converted(&place, "kernelslist.g");
});
