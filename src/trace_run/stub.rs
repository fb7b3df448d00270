//! A library with nothing but a name and a symbol version.
//!
//! Programs are linked with `libcudart.so.13` and its symbol version of the same name, and the
//! loader asks for both before it looks for a function. The functions come from the preloaded
//! runtime.

/// Bytes of the library `name`, which is also its one symbol version.
#[must_use]
pub(crate) fn library(name: &str) -> Vec<u8> {
    let mut strings = vec![0];
    strings.extend_from_slice(name.as_bytes());
    strings.push(0);
    let parts = Parts {
        strings: HEADERS,
        symbols: align(HEADERS + strings.len()),
        versions: align(HEADERS + strings.len()) + SYMBOL,
        definitions: align(HEADERS + strings.len()) + SYMBOL + 8,
        dynamic: align(HEADERS + strings.len()) + SYMBOL + 8 + DEFINITIONS,
    };
    let mut bytes = parts.headers();
    bytes.extend_from_slice(&strings);
    bytes.resize(parts.definitions, 0);
    // One version: the library's own.
    for half in [1_u16, 1, 1, 1] {
        bytes.extend(half.to_le_bytes());
    }
    for word in [hash(name), 20, 0, 1, 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.resize(parts.dynamic, 0);
    for (tag, value) in parts.entries(strings.len()) {
        bytes.extend(tag.to_le_bytes());
        bytes.extend((value as u64).to_le_bytes());
    }
    bytes
}

const HEADERS: usize = 64 + 2 * 56;
const SYMBOL: usize = 24;
const DEFINITIONS: usize = 32;
const ENTRIES: usize = 9;

/// Where the parts lie.
struct Parts {
    strings: usize,
    symbols: usize,
    versions: usize,
    definitions: usize,
    dynamic: usize,
}

impl Parts {
    /// The entries of the dynamic section.
    fn entries(&self, strings: usize) -> [(u64, usize); ENTRIES] {
        [
            (14, 1),                         // DT_SONAME
            (5, self.strings),               // DT_STRTAB
            (10, strings),                   // DT_STRSZ
            (6, self.symbols),               // DT_SYMTAB
            (11, SYMBOL),                    // DT_SYMENT
            (0x6fff_fff0, self.versions),    // DT_VERSYM
            (0x6fff_fffc, self.definitions), // DT_VERDEF
            (0x6fff_fffd, 1),                // DT_VERDEFNUM
            (0, 0),
        ]
    }

    /// The header of the file, and those of its two segments.
    fn headers(&self) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        let machine: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
        for half in [3, machine] {
            bytes.extend(half.to_le_bytes());
        }
        bytes.extend(1_u32.to_le_bytes());
        for word in [0_u64, 64, 0] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(0_u32.to_le_bytes());
        for half in [64_u16, 56, 2, 64, 0, 0] {
            bytes.extend(half.to_le_bytes());
        }
        let size = ENTRIES * 16;
        segment(&mut bytes, [1, 6], 0, self.dynamic + size);
        segment(&mut bytes, [2, 6], self.dynamic, size);
        bytes
    }
}

fn segment(bytes: &mut Vec<u8>, kind: [u32; 2], at: usize, size: usize) {
    for word in kind {
        bytes.extend(word.to_le_bytes());
    }
    for word in [at, at, at, size, size, 0x1000] {
        bytes.extend((word as u64).to_le_bytes());
    }
}

fn align(at: usize) -> usize {
    at.next_multiple_of(8)
}

/// The hash of a name in ELF files.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0, |hash: u32, byte| {
        let hash = (hash << 4).wrapping_add(byte.into());
        let high = hash & 0xf000_0000;
        (hash ^ high >> 24) & !high
    })
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn names_have_the_hash_of_the_standard() {
        assert_eq!(hash("printf"), 0x077905a6);
    }
}
