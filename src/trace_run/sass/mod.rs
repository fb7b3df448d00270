//! SASS: the text of `nvdisasm -hex`, its operands, and what each instruction does.

mod code;
mod decode;
mod operand;
mod text;

pub use code::{Code, Decoded};
pub(crate) use decode::Step;
pub(crate) use decode::{Control, CtaBarrier, half_to_single};
pub(crate) use operand::{Address, Constant, PredicateFile};
pub(crate) use text::Guard;
pub use text::disassemble;
