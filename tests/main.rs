//! The integration tests: one file per question, one binary.
#![allow(clippy::unwrap_used)]

mod layers;
