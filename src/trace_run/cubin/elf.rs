//! ELF files: sections, symbols and relocations.

use super::{index_at, u16_at, u32_at, u64_at};

const NOBITS: u32 = 8;
const SYMTAB: u32 = 2;
const REL: u32 = 9;
const RELA: u32 = 4;

/// A section.
#[derive(Clone, Debug)]
pub(super) struct Section<'a> {
    pub(super) name: &'a str,
    pub(super) kind: u32,
    pub(super) bytes: &'a [u8],
    pub(super) size: usize,
    pub(super) info: u32,
    pub(super) align: usize,
}

/// A symbol.
#[derive(Clone, Debug)]
pub(super) struct Symbol<'a> {
    pub(super) name: &'a str,
    pub(super) section: usize,
    pub(super) value: u64,
    pub(super) size: u64,
}

/// A place that holds the address of a symbol.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relocation {
    /// Index of the section with the place.
    pub(super) section: usize,
    pub(super) offset: usize,
    pub(super) kind: u32,
    pub(super) symbol: usize,
    pub(super) addend: Option<u64>,
}

/// An ELF file.
#[derive(Clone, Debug)]
pub(super) struct Elf<'a> {
    pub(super) sections: Vec<Section<'a>>,
    pub(super) symbols: Vec<Symbol<'a>>,
    pub(super) relocations: Vec<Relocation>,
}

impl<'a> Elf<'a> {
    /// Reads `bytes`; none when they are damaged.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        bytes.starts_with(b"\x7fELF\x02\x01").then_some(())?;
        let (table, entry) = (index_at(bytes, 40)?, usize::from(u16_at(bytes, 58)?));
        let (count, names) = (u16_at(bytes, 60)?, usize::from(u16_at(bytes, 62)?));
        let head = |index: usize| bytes.get(table.checked_add(index * entry)?..);
        let names = contents(bytes, head(names)?)?;
        let mut elf = Self { sections: Vec::new(), symbols: Vec::new(), relocations: Vec::new() };
        for index in 0..usize::from(count) {
            elf.sections.push(section(bytes, head(index)?, names)?);
        }
        for index in 0..usize::from(count) {
            let (bytes, kind) = (elf.sections[index].bytes, elf.sections[index].kind);
            let link = usize::try_from(u32_at(head(index)?, 40)?).ok()?;
            match kind {
                SYMTAB => {
                    let names = elf.sections.get(link)?.bytes;
                    elf.symbols = bytes.chunks_exact(24).filter_map(|s| symbol(s, names)).collect();
                }
                REL | RELA => elf.relocate(index, bytes, kind == RELA),
                _ => {}
            }
        }
        Some(elf)
    }

    fn relocate(&mut self, index: usize, bytes: &[u8], addends: bool) {
        let section = self.sections[index].info;
        let read = |row: &[u8]| {
            Some(Relocation {
                section: usize::try_from(section).ok()?,
                offset: index_at(row, 0)?,
                kind: u32_at(row, 8)?,
                symbol: usize::try_from(u32_at(row, 12)?).ok()?,
                addend: if addends { u64_at(row, 16) } else { None },
            })
        };
        let rows = bytes.chunks_exact(if addends { 24 } else { 16 });
        self.relocations.extend(rows.filter_map(read));
    }
}

fn contents<'a>(bytes: &'a [u8], head: &[u8]) -> Option<&'a [u8]> {
    if u32_at(head, 4)? == NOBITS {
        return Some(&[]);
    }
    let (offset, size) = (index_at(head, 24)?, index_at(head, 32)?);
    bytes.get(offset..offset.checked_add(size)?)
}

fn section<'a>(bytes: &'a [u8], head: &[u8], names: &'a [u8]) -> Option<Section<'a>> {
    Some(Section {
        name: text(names, u32_at(head, 0)?)?,
        kind: u32_at(head, 4)?,
        bytes: contents(bytes, head)?,
        size: index_at(head, 32)?,
        info: u32_at(head, 44)?,
        align: index_at(head, 48)?.max(1),
    })
}

fn symbol<'a>(row: &[u8], names: &'a [u8]) -> Option<Symbol<'a>> {
    Some(Symbol {
        name: text(names, u32_at(row, 0)?)?,
        section: usize::from(u16_at(row, 6)?),
        value: u64_at(row, 8)?,
        size: u64_at(row, 16)?,
    })
}

fn text(names: &[u8], at: u32) -> Option<&str> {
    let name = names.get(usize::try_from(at).ok()?..)?;
    let end = name.iter().position(|&byte| byte == 0)?;
    std::str::from_utf8(&name[..end]).ok()
}

/// What a program or a library is linked with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dynamic<'a> {
    /// Libraries that it needs.
    pub(crate) needed: Vec<&'a str>,
    /// Functions and variables that others must have.
    pub(crate) undefined: Vec<&'a str>,
    /// Those that it has.
    pub(crate) defined: Vec<&'a str>,
    /// It has code of GPUs.
    pub(crate) has_kernels: bool,
}

const DYNSYM: u32 = 11;
const DYNAMIC: u32 = 6;
const NEEDED: u64 = 1;

/// What the ELF file `bytes` is linked with; none when it is not one.
pub(crate) fn dynamic(bytes: &[u8]) -> Option<Dynamic<'_>> {
    let elf = Elf::read(bytes)?;
    let names = elf.sections.iter().find(|one| one.name == ".dynstr").map(|one| one.bytes);
    let names = names.unwrap_or_default();
    let mut found = Dynamic::default();
    for section in &elf.sections {
        found.has_kernels |= section.name == ".nv_fatbin";
        if section.kind == DYNSYM {
            for symbol in section.bytes.chunks_exact(24).filter_map(|row| symbol(row, names)) {
                let list = match symbol.section {
                    0 => &mut found.undefined,
                    _ => &mut found.defined,
                };
                list.push(symbol.name);
            }
        }
        if section.kind == DYNAMIC {
            let rows = section.bytes.chunks_exact(16);
            let needed = rows.filter(|row| u64_at(row, 0) == Some(NEEDED));
            found.needed.extend(needed.filter_map(|row| text(names, u32_at(row, 8)?)));
        }
    }
    Some(found)
}
