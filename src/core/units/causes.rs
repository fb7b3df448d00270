//! Errors with what caused them, in words.

use std::error::Error;

/// What `error` says, then what its causes say. An error leaves it to its causes to say
/// what they are, so that nothing stands there twice.
#[must_use]
pub fn with_causes(error: &dyn Error) -> Vec<String> {
    let mut words = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(inner) = cause {
        words.push(inner.to_string());
        cause = inner.source();
    }
    words
}
