//! Is any store read within bounds, or refused with its place?

#![no_main]

use gpumodel::trace::Store;
use gpumodel_fuzz::{Place, assembled, forged, named, split, walked};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = split(bytes) else { return };
    let place = Place::new();
    let bytes = match kind % 4 {
        0 => bytes[1..].to_vec(),
        1 => forged(rest),
        _ => assembled(rest),
    };
    let path = place.file("x.gpt", &bytes);
    assert!(!Store::recognise(&path) || bytes.starts_with(b"gptrace\n"));
    let store = match Store::open(&path) {
        Ok(store) => store,
        Err(error) => return named(&error, "x.gpt"),
    };
    walked(&store);
    for kernel in 0..store.kernel_count() {
        if let Err(error) = store.executed(kernel) {
            named(&error, "x.gpt");
        }
    }
    assert_eq!(store.content_hash().len(), 32);
    for checked in [store.verify(), store.check_blocks()] {
        if let Err(error) = checked {
            named(&error, "x.gpt");
        }
    }
});
