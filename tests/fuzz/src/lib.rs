//! Code that the fuzz targets share. A target is a file in `src/bin`: it gives any bytes
//! to one kind of reader and checks what must hold for all of them.

mod archive;
mod place;
mod store;
mod trace;

pub use archive::unfolded;
pub use place::{Bounded, Place, named, split, text};
pub use store::{assembled, disassembled, forged};
pub use trace::{converted, walked};
