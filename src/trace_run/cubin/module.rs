//! A cubin as the executor needs it: one image of code with its addresses resolved, kernels,
//! constant banks and variables.

use std::collections::BTreeMap;

use gpumodel_core::units::Dim3;

use super::elf::{Elf, Relocation, Section};
use super::{u16_at, u32_at};
use crate::RunError;
use crate::execute::system_call;

/// Relocation types of NVIDIA's ELF files.
const ABS_32: u32 = 1;
const ABS_64: u32 = 2;
const ABS_32_LO_20: u32 = 43;
const ABS_32_HI_20: u32 = 44;
const ABS_32_LO_32: u32 = 56;
const ABS_32_HI_32: u32 = 57;
/// In the target of a call, which is 47 bits at bit 34 of the instruction and counts 4 bytes.
const ABS_47_34: u32 = 58;
/// The same with 8 lower bits at bit 16 (from compute capability 9 on).
const ABS_55_16_34: u32 = 75;

/// What `.nv.info` says of a kernel: formats and kinds of its attributes.
const VALUE_IN_LINE: u8 = 4;
const PARAMETER: u8 = 0x17;
const PARAMETER_BANK: u8 = 0x0a;
const MOST_THREADS: u8 = 0x05;
const CLUSTER: u8 = 0x3d;
const REGISTERS: u8 = 0x2f;
const FRAME_BYTES: u8 = 0x11;
const STACK_BYTES: u8 = 0x12;

/// A kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its mangled name.
    pub name: String,
    /// Where its code begins in [`Module::image`].
    pub start: u64,
    /// Bytes of its code.
    pub size: u64,
    /// Registers of a thread.
    pub registers: u32,
    /// Static shared bytes of a CTA.
    pub shared_bytes: u32,
    /// Bytes of stack of a thread.
    pub stack_bytes: u32,
    /// Where parameters begin in constant bank 0.
    pub parameter_base: u32,
    /// Threads of a CTA at most, where the code says so (`__launch_bounds__`).
    pub most_threads: Option<u32>,
    /// CTAs of a cluster, where the code says so.
    pub cluster: Option<Dim3>,
    /// Offset from there, and bytes, of each parameter.
    pub parameters: Vec<(u32, u32)>,
    /// Constant banks by number; bank 0 without parameters.
    pub banks: BTreeMap<u8, Vec<u8>>,
}

/// A variable of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its mangled name.
    pub name: String,
    /// Offset in the module's variables, or in constant bank 3.
    pub offset: u64,
    /// Its size.
    pub bytes: u64,
    /// It lies in constant bank 3.
    pub constant: bool,
}

/// A cubin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// All code, function after function.
    pub image: Vec<u8>,
    /// The kernels.
    pub functions: Vec<Function>,
    /// First contents of the variables in device memory.
    pub globals: Vec<u8>,
    /// The variables.
    pub variables: Vec<Variable>,
    /// Constant bank 3, which all functions share and the host writes.
    pub constants: Vec<u8>,
}

/// Reads a module.
struct Reader<'a> {
    elf: Elf<'a>,
    /// Per section where it begins: of code in the image, of variables in device memory.
    starts: Vec<u64>,
    /// The sections with their addresses filled in.
    contents: Vec<Vec<u8>>,
}

impl Module {
    /// Bytes of the variables of `cubin` in device memory.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn global_bytes(cubin: &[u8]) -> Result<u64, RunError> {
        let elf = Elf::read(cubin).ok_or_else(damaged)?;
        let (_, bytes) = place(&elf, is_global, 0);
        Ok(bytes)
    }

    /// Reads `cubin`, whose variables lie at `base` in device memory.
    ///
    /// # Errors
    /// When it is damaged, or needs what is not supported.
    pub fn read(cubin: &[u8], base: u64) -> Result<Self, RunError> {
        let elf = Elf::read(cubin).ok_or_else(damaged)?;
        if elf.sections.iter().map(|one| one.size).sum::<usize>() > 1 << 30 {
            return Err(RunError::code("the program's device code has more than 1 GiB"));
        }
        let launches = |one: &Relocation| {
            elf.symbols.get(one.symbol).is_some_and(|one| one.name.contains(LAUNCH_IN_KERNEL))
        };
        if elf.relocations.iter().any(launches) {
            return Err(RunError::code(
                "the program launches kernels from kernels (dynamic parallelism), which is not \
                 supported; launch them from the host",
            ));
        }
        let (code, code_bytes) = place(&elf, is_code, 0);
        let (globals, global_bytes) = place(&elf, is_global, base);
        let starts = code.iter().zip(&globals).map(|(code, data)| code.or(*data)).collect();
        let starts: Vec<Option<u64>> = starts;
        let starts: Vec<u64> = starts.into_iter().map(Option::unwrap_or_default).collect();
        let contents = elf.sections.iter().map(|one| one.bytes.to_vec()).collect();
        let mut reader = Reader { elf, starts, contents };
        for relocation in reader.elf.relocations.clone() {
            reader.relocate(relocation)?;
        }
        Ok(Self {
            image: reader.gather(is_code, 0, code_bytes),
            globals: reader.gather(is_global, base, global_bytes - base),
            functions: reader.functions(),
            variables: reader.variables(base),
            constants: reader.constants(),
        })
    }
}

fn damaged() -> RunError {
    RunError::code("a cubin of the program is damaged")
}

/// Part of the names of the functions that launch kernels from kernels.
const LAUNCH_IN_KERNEL: &str = "LaunchDevice";

/// Why code that refers to `symbol` in a way that is not known cannot be run.
fn unsupported(symbol: &str, way: &str) -> RunError {
    RunError::code(format!(
        "the program's code refers to `{symbol}` by {way}, which is not supported; compile without \
         -G (-lineinfo keeps the lines of the source) and -rdc=true, and report it"
    ))
}

/// Writes the target of the call at `offset`.
fn call_target(bytes: &mut [u8], offset: usize, target: u64) -> Option<()> {
    const FIRST_BIT: u32 = 34;
    const FIELD: u128 = ((1 << 47) - 1) << FIRST_BIT;
    let place: &mut [u8; 16] = bytes.get_mut(offset..)?.first_chunk_mut()?;
    let target = u128::from(target >> 2) << FIRST_BIT & FIELD;
    *place = (u128::from_le_bytes(*place) & !FIELD | target).to_le_bytes();
    Some(())
}

fn is_code(section: &Section<'_>) -> bool {
    section.name.starts_with(".text.")
}

fn is_global(section: &Section<'_>) -> bool {
    section.name.starts_with(".nv.global")
}

/// Where sections that are `taken` begin from `at` on, and the end of the last.
fn place(elf: &Elf<'_>, taken: fn(&Section<'_>) -> bool, mut at: u64) -> (Vec<Option<u64>>, u64) {
    let mut starts = vec![None; elf.sections.len()];
    for (section, start) in elf.sections.iter().zip(&mut starts) {
        if taken(section) {
            at = at.next_multiple_of(section.align.clamp(128, 1 << 20) as u64);
            *start = Some(at);
            at = at.saturating_add(section.size as u64);
        }
    }
    (starts, at)
}

impl Reader<'_> {
    fn relocate(&mut self, relocation: Relocation) -> Result<(), RunError> {
        let Relocation { section, offset, kind, symbol, addend } = relocation;
        let Some(target) = self.elf.sections.get(section) else { return Ok(()) };
        // Debugging information needs no addresses here.
        if target.name.starts_with(".debug") || target.name.starts_with(".nv.info") {
            return Ok(());
        }
        let symbol = self.elf.symbols.get(symbol).ok_or_else(damaged)?;
        let call = (symbol.section == 0).then(|| system_call(symbol.name)).flatten();
        let start = call.or_else(|| self.starts.get(symbol.section).copied()).unwrap_or(0);
        let value = start.wrapping_add(symbol.value).wrapping_add(addend.unwrap_or(0));
        let bytes = &mut self.contents[section];
        let written = match kind {
            ABS_32 => put(bytes, offset, &value.to_le_bytes()[..4]),
            ABS_64 => put(bytes, offset, &value.to_le_bytes()),
            ABS_32_LO_20 | ABS_32_LO_32 => put(bytes, offset + 4, &value.to_le_bytes()[..4]),
            ABS_32_HI_20 | ABS_32_HI_32 => put(bytes, offset + 4, &value.to_le_bytes()[4..]),
            ABS_47_34 => call_target(bytes, offset, value),
            ABS_55_16_34 => put(bytes, offset + 2, &[(value >> 2).to_le_bytes()[0]])
                .and_then(|()| call_target(bytes, offset, value >> 8)),
            _ => return Err(unsupported(symbol.name, &format!("relocation type {kind}"))),
        };
        written.ok_or_else(damaged)
    }

    fn gather(&self, taken: fn(&Section<'_>) -> bool, base: u64, size: u64) -> Vec<u8> {
        let mut all = vec![0; usize::try_from(size).unwrap_or(0)];
        for (index, section) in self.elf.sections.iter().enumerate() {
            let start = usize::try_from(self.starts[index].wrapping_sub(base)).unwrap_or(0);
            if taken(section) {
                put(&mut all, start, &self.contents[index]);
            }
        }
        all
    }

    fn named(&self, name: &str) -> Option<usize> {
        self.elf.sections.iter().position(|section| section.name == name)
    }

    fn constants(&self) -> Vec<u8> {
        self.named(".nv.constant3").map_or(Vec::new(), |at| self.contents[at].clone())
    }

    fn functions(&self) -> Vec<Function> {
        let sections = self.elf.sections.iter().enumerate();
        sections
            .filter_map(|(index, section)| {
                let name = section.name.strip_prefix(".text.")?;
                self.named(&format!(".nv.info.{name}")).map(|info| self.function(index, info, name))
            })
            .collect()
    }

    fn function(&self, index: usize, info: usize, name: &str) -> Function {
        let section = &self.elf.sections[index];
        let shared = self.named(&format!(".nv.shared.{name}"));
        let shared = shared.map_or(0, |at| self.elf.sections[at].size);
        let mut banks = BTreeMap::new();
        for (at, bank) in self.elf.sections.iter().enumerate() {
            let Some(rest) = bank.name.strip_prefix(".nv.constant") else { continue };
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let (number, owner) = rest.split_at(digits);
            if owner.is_empty() || owner.strip_prefix('.') == Some(name) {
                banks.extend(number.parse::<u8>().ok().map(|n| (n, self.contents[at].clone())));
            }
        }
        let read = parameters(self.elf.sections[info].bytes);
        let symbol = self.elf.symbols.iter().rposition(|s| s.name == name && s.section == index);
        let common = self.named(".nv.info").map(|at| self.elf.sections[at].bytes);
        let common = common.zip(symbol);
        let of_function =
            |kinds: &[u8]| common.map_or(0, |(info, symbol)| largest_of(kinds, info, symbol));
        Function {
            name: name.to_owned(),
            start: self.starts[index],
            size: section.size as u64,
            // From Hopper on the section's header lacks them.
            registers: (section.info >> 24).max(of_function(&[REGISTERS])),
            shared_bytes: u32::try_from(shared).unwrap_or(u32::MAX),
            stack_bytes: of_function(&[FRAME_BYTES, STACK_BYTES]),
            parameter_base: read.base,
            parameters: read.list,
            most_threads: read.most_threads,
            cluster: read.cluster,
            banks,
        }
    }

    fn variables(&self, base: u64) -> Vec<Variable> {
        let named = |symbol: &&super::elf::Symbol<'_>| symbol.size > 0;
        self.elf
            .symbols
            .iter()
            .filter(named)
            .filter_map(|symbol| {
                let section = self.elf.sections.get(symbol.section)?;
                let constant = section.name == ".nv.constant3";
                (constant || is_global(section)).then(|| Variable {
                    name: symbol.name.to_owned(),
                    offset: match constant {
                        true => symbol.value,
                        false => self.starts[symbol.section] + symbol.value - base,
                    },
                    bytes: symbol.size,
                    constant,
                })
            })
            .collect()
    }
}

fn put(bytes: &mut [u8], at: usize, new: &[u8]) -> Option<()> {
    bytes.get_mut(at..at.checked_add(new.len())?)?.copy_from_slice(new);
    Some(())
}

/// The parameters of a kernel in constant bank 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Parameters {
    /// Where they begin.
    base: u32,
    /// Offset from there, and bytes, of each.
    list: Vec<(u32, u32)>,
    /// Threads of a CTA at most.
    most_threads: Option<u32>,
    /// CTAs of a cluster.
    cluster: Option<Dim3>,
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
fn parameters(info: &[u8]) -> Parameters {
    let mut found = Parameters::default();
    let mut rows = Vec::new();
    for (kind, value) in attributes(info) {
        match kind {
            CLUSTER => {
                let size = |at: usize| u32_at(value, at);
                found.cluster =
                    size(0).zip(size(4)).zip(size(8)).map(|((x, y), z)| Dim3 { x, y, z });
            }
            MOST_THREADS => {
                let sizes = [0, 4, 8].map(|at| u32_at(value, at));
                let all = sizes.into_iter().flatten().fold(1, u32::saturating_mul);
                found.most_threads = Some(all);
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

/// The largest attribute of these kinds of the function with the symbol `symbol`, from the section
/// `.nv.info`; 0 without one.
fn largest_of(kinds: &[u8], info: &[u8], symbol: usize) -> u32 {
    let of = |value: &[u8]| u32_at(value, 0).is_some_and(|n| usize::try_from(n) == Ok(symbol));
    attributes(info)
        .into_iter()
        .filter(|(kind, value)| kinds.contains(kind) && of(value))
        .filter_map(|(_, value)| u32_at(value, 4))
        // What the compiler does not know, as of recursive functions.
        .filter(|&number| number != u32::MAX)
        .max()
        .unwrap_or(0)
}
