//! Traces to stores and back.

use gpumodel::core::isa::Access;
use gpumodel::core::units::ByteCount;
use gpumodel::trace::{ConvertRequest, Silent, Store, convert, export};

use super::place::{Place, named};

/// Most CTAs of a kernel that are walked through.
const CTAS: u64 = 40;

/// Most instructions that are walked: a few bytes may describe billions.
const INSTRUCTIONS: u64 = 200_000;

/// Converts the file `input` of `place`; what is taken must be whole and come back from
/// its own text, what is refused must be named and leave nothing behind.
pub fn converted(place: &Place, input: &str) {
    let request = |input: &str, output: &str| ConvertRequest {
        inputs: vec![place.at(input)],
        output: place.at(output),
        memory: Some(ByteCount(1 << 14)),
        ..ConvertRequest::default()
    };
    let before = place.count();
    let result = convert(&request(input, "out.gpt"), &Silent);
    assert_eq!(place.count(), before + usize::from(result.is_ok()), "files are left");
    if let Err(error) = result {
        let folder = place.path().display().to_string();
        return named(&error, &folder);
    }
    let store = Store::open(&place.at("out.gpt")).expect("a store that was just written");
    store.verify().expect("a store that was just written");
    store.check_blocks().expect("a store that was just written");
    if !walked(&store) || export(&store, &request("out.gpt", "text")).is_err() {
        return;
    }
    let ctas: u64 = (0..store.kernel_count()).map(|kernel| store.kernel(kernel).cta_count()).sum();
    if ctas == 0 {
        return;
    }
    convert(&request("text", "again.gpt"), &Silent).expect("the text of a store is a trace");
    let again = Store::open(&place.at("again.gpt")).expect("a store that was just written");
    assert_eq!(again.kernel_count(), store.kernel_count());
    for kernel in 0..store.kernel_count() {
        let (one, other) = (store.kernel(kernel), again.kernel(kernel));
        assert_eq!(one.cta_count(), other.cta_count());
        assert_eq!(one.warp_instructions(), other.warp_instructions());
        assert_eq!(one.thread_instructions(), other.thread_instructions());
        assert_eq!(one.memory_instructions(), other.memory_instructions());
    }
    assert_eq!(again.content_hash(), store.content_hash(), "the same content");
}

/// Reads everything of a store, within bounds; false where these ended it.
pub fn walked(store: &Store) -> bool {
    let mut left = INSTRUCTIONS;
    let mut access = Access::default();
    for kernel in 0..store.kernel_count() {
        let ctas = store.kernel(kernel).cta_count();
        let (_, _) = (store.code(kernel).is_ok(), store.cta_ranges(kernel).is_ok());
        for ordinal in 0..ctas.min(CTAS) {
            let (Ok(cta), _) = (store.cta(kernel, ordinal), store.tails(kernel, ordinal)) else {
                continue;
            };
            for warp in 0..cta.warp_count() {
                let mut cursor = cta.warp(warp);
                while cursor.next_segment().is_some() {
                    while cursor.instruction().is_some() {
                        cursor.access(&mut access);
                        left -= 1;
                        if left == 0 {
                            return false;
                        }
                    }
                }
            }
        }
    }
    true
}
