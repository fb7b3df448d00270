//! Temporary.
use std::hash::{Hash,Hasher};
pub(crate) fn dump(kind: &str, text: &str) {
    if let Ok(dir) = std::env::var("REPORT_DUMP") {
        let mut h = std::collections::hash_map::DefaultHasher::new();
        text.hash(&mut h);
        let _ = std::fs::write(format!("{dir}/{kind}-{:016x}", h.finish()), text);
    }
}
