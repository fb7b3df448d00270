//! SASS: the text of `nvdisasm -hex`, its operands, and what each instruction does.

mod code;
#[cfg(test)]
mod control_bits_tests;
mod decode;
mod disassemble;
mod operand;
mod text;

pub use code::{Code, Decoded};
pub(crate) use decode::Step;
pub(crate) use decode::{Control, CtaBarrier, half_to_single};
pub use disassemble::disassemble;
pub(crate) use operand::{Address, Constant, PredicateFile};
pub(crate) use text::Guard;
