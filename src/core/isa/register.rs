//! Register names as traces print them.

use std::fmt;

/// Which register file a name belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RegisterFile {
    /// `R<n>`: one 32-bit value per thread.
    General,
    /// `UR<n>`: one value per warp (Turing and later).
    Uniform,
    /// `P<n>`: one bit per thread.
    Predicate,
    /// `UP<n>`: one bit per warp.
    UniformPredicate,
}

/// One register: file and number, packed in 16 bits (2 + 14).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(u16);

impl Register {
    /// `RZ`, which reads as zero and never carries a dependency.
    pub const ZERO: Self = Self(255);

    const NUMBER_BITS: u32 = 14;

    /// Makes a register; `None` when the number needs more than 14 bits.
    #[must_use]
    pub const fn new(file: RegisterFile, number: u16) -> Option<Self> {
        if number >> Self::NUMBER_BITS != 0 {
            return None;
        }
        Some(Self(((file as u16) << Self::NUMBER_BITS) | number))
    }

    /// The packed form, for storing; [`Register::from_bits`] is its inverse.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// A register from its packed form. Every value is a register.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// The register file.
    #[must_use]
    pub const fn file(self) -> RegisterFile {
        match self.0 >> Self::NUMBER_BITS {
            0 => RegisterFile::General,
            1 => RegisterFile::Uniform,
            2 => RegisterFile::Predicate,
            _ => RegisterFile::UniformPredicate,
        }
    }

    /// The number within its file.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0 & ((1 << Self::NUMBER_BITS) - 1)
    }

    /// True for the names that hold a constant: `R255`, `UR63`, `P7`, `UP7`.
    /// They never carry a dependency.
    #[must_use]
    pub const fn is_constant(self) -> bool {
        match self.file() {
            RegisterFile::General => self.number() == 255,
            RegisterFile::Uniform => self.number() == 63,
            RegisterFile::Predicate | RegisterFile::UniformPredicate => self.number() == 7,
        }
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.file() {
            RegisterFile::General => "R",
            RegisterFile::Uniform => "UR",
            RegisterFile::Predicate => "P",
            RegisterFile::UniformPredicate => "UP",
        };
        write!(f, "{prefix}{}", self.number())
    }
}

impl fmt::Debug for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::{Register, RegisterFile};

    #[test]
    fn packed_form_is_a_bijection() {
        for bits in 0..=u16::MAX {
            let register = Register::from_bits(bits);
            assert_eq!(Register::new(register.file(), register.number()), Some(register));
        }
        assert!(Register::ZERO.is_constant());
        assert_eq!(Register::new(RegisterFile::General, 1 << 14), None);
    }
}
