//! What this process works on: claims that it has, or is about to have.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gpumodel_core::units::Passing;

/// A claim, which ends with this value.
#[derive(Debug)]
pub(in super::super) struct Claim {
    /// It goes before the key is free: another thread would take it for its own.
    _file: Passing,
    _key: HeldKey,
}

impl Claim {
    pub(super) fn new(file: Passing, key: HeldKey) -> Self {
        Self { _file: file, _key: key }
    }
}

/// The keys of one process in one folder.
#[derive(Clone, Debug, Default)]
pub(super) struct Held(Arc<Mutex<BTreeSet<String>>>);

impl Held {
    /// Takes `key`; `None`: a thread of this process has it.
    pub(super) fn take(&self, key: &str) -> Option<HeldKey> {
        let new = self.lock().insert(key.to_owned());
        new.then(|| HeldKey { key: key.to_owned(), held: self.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        // A set of words: a panic leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A key that is taken as long as this value is there.
#[derive(Debug)]
pub(super) struct HeldKey {
    key: String,
    held: Held,
}

impl Drop for HeldKey {
    fn drop(&mut self) {
        self.held.lock().remove(&self.key);
    }
}
