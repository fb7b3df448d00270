//! Decoded chunks that may be needed again, in bounded memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::chunk::Chunk;

/// Bytes of chunks that are kept although nobody uses them.
const KEPT_BYTES: usize = 256 << 20;

/// Chunks by number. A chunk in use is shared however old it is; of the others
/// the most recently decoded ones are kept.
#[derive(Debug, Default)]
pub(super) struct Cache {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    known: BTreeMap<u32, Weak<Chunk>>,
    recent: VecDeque<Arc<Chunk>>,
    recent_bytes: usize,
}

impl Cache {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // The lock guards plain tables that no panic leaves half changed.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The chunk `number`, if it is in memory.
    pub(super) fn get(&self, number: u32) -> Option<Arc<Chunk>> {
        self.lock().known.get(&number)?.upgrade()
    }

    /// Adds the chunk `number`; gives the one that is already there, if another
    /// thread was faster.
    pub(super) fn put(&self, number: u32, chunk: Chunk) -> Arc<Chunk> {
        let mut inner = self.lock();
        if let Some(other) = inner.known.get(&number).and_then(Weak::upgrade) {
            return other;
        }
        let chunk = Arc::new(chunk);
        inner.known.insert(number, Arc::downgrade(&chunk));
        inner.recent_bytes += chunk.size();
        inner.recent.push_back(Arc::clone(&chunk));
        while inner.recent_bytes > KEPT_BYTES && inner.recent.len() > 1 {
            if let Some(oldest) = inner.recent.pop_front() {
                inner.recent_bytes -= oldest.size();
            }
        }
        chunk
    }
}
