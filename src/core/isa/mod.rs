//! What an instruction is to us: the plain types that trace, synth and machine
//! share. No file formats and no timing of a particular GPU live here.

mod access;
mod code;
mod control;
mod opcode;
mod register;

pub use access::{Access, AddressMode, AsyncFields, BulkCopy, ObjectStep};
pub use code::{AddressWindows, Code, Instruction, Launch, MOST_IMMEDIATES, Segment, traced_width};
pub use control::ControlBits;
pub use opcode::{Effect, Listing, Opcode, Space, Unit, flops};
pub use register::{Register, RegisterFile};
