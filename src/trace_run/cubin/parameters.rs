//! What `.nv.info` says of a kernel.

use gpumodel_core::units::Dim3;

use super::bytes::{u16_at, u32_at};

const VALUE_IN_LINE: u8 = 4;
const PARAMETER: u8 = 0x17;
const PARAMETER_BANK: u8 = 0x0a;
const CLUSTER: u8 = 0x3d;
const FRAME_BYTES: u8 = 0x11;
const STACK_BYTES: u8 = 0x12;

/// The parameters of a kernel in constant bank 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parameters {
    /// Where they begin.
    pub(super) base: u32,
    /// Offset from there, and bytes, of each.
    pub(super) list: Vec<(u32, u32)>,
    /// CTAs of a cluster.
    pub(super) cluster: Option<Dim3>,
}

/// Every attribute of an `.nv.info` section: its kind and its value.
fn attributes(mut info: &[u8]) -> Vec<(u8, &[u8])> {
    let mut all = Vec::new();
    while let [format, kind, low, high, rest @ ..] = info {
        if *format != VALUE_IN_LINE {
            all.push((*kind, &info[2..4]));
            info = rest;
            continue;
        }
        let size = usize::from(u16::from_le_bytes([*low, *high]));
        let Some(value) = rest.get(..size) else { break };
        all.push((*kind, value));
        info = &rest[size..];
    }
    all
}

/// The parameters in the section `info` of a kernel.
pub(super) fn parameters(info: &[u8]) -> Parameters {
    let mut found = Parameters::default();
    let mut rows = Vec::new();
    for (kind, value) in attributes(info) {
        match kind {
            CLUSTER => {
                let size = |at: usize| u32_at(value, at);
                found.cluster =
                    size(0).zip(size(4)).zip(size(8)).map(|((x, y), z)| Dim3 { x, y, z });
            }
            PARAMETER_BANK => found.base = u16_at(value, 4).unwrap_or(0).into(),
            PARAMETER => {
                let row = || {
                    let (number, offset) = (u16_at(value, 4)?, u16_at(value, 6)?);
                    Some((number, u32::from(offset), u32_at(value, 8)? >> 18))
                };
                rows.extend(row());
            }
            _ => {}
        }
    }
    rows.sort_unstable();
    found.list = rows.into_iter().map(|(_, offset, bytes)| (offset, bytes)).collect();
    found
}

/// The bytes of stack of the function with the symbol `symbol`, from the section `.nv.info`.
pub(super) fn stack_bytes(info: &[u8], symbol: usize) -> u32 {
    let of = |value: &[u8]| u32_at(value, 0).is_some_and(|n| usize::try_from(n) == Ok(symbol));
    attributes(info)
        .into_iter()
        .filter(|(kind, value)| matches!(*kind, FRAME_BYTES | STACK_BYTES) && of(value))
        .filter_map(|(_, value)| u32_at(value, 4))
        // What the compiler does not know, as of recursive functions.
        .filter(|&bytes| bytes != u32::MAX)
        .max()
        .unwrap_or(0)
}
