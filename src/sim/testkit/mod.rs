//! Hand-made kernels and machines for the tests of this crate.

pub(crate) mod fixture;
pub(crate) mod scripted;
