//! Address mappings as data: which bits of an address choose channel, slice,
//! bank, row and column. Knows no timing; a machine's channel count comes later.

use gpumodel_core::models::ModelFiles;
use std::collections::BTreeMap;

use super::address_map::AddressMap;
use super::file::Folder;
use super::file::{Leaf, MemoryFile};
use crate::config::error::SpecError;
use gpumodel_core::toml::TomlError;

/// Width of the addresses that mappings take apart, in bits.
pub(super) const ADDRESS_BITS: u32 = 47;

/// The parts of a [`Location`] inside a channel, in the order of packing.
pub(super) const FIELDS: [&str; 5] = ["column", "pseudo_channel", "bank_group", "bank", "row"];

/// Where an address lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// Memory channel of the GPU.
    pub channel: u32,
    /// L2 slice within the channel.
    pub slice: u32,
    /// Pseudo channel within the channel.
    pub pseudo_channel: u32,
    /// Bank group within the pseudo channel.
    pub bank_group: u32,
    /// Bank within the group.
    pub bank: u32,
    /// Row of the bank.
    pub row: u32,
    /// Access within the row.
    pub column: u32,
}

/// How the address bits are used, for any number of channels.
///
/// With `interleave.shift` the channel is the remainder of the address above that
/// bit divided by the channel count (for a power of two: bits inserted there),
/// and all other bits count in the address *without* the channel. With
/// `interleave.channel` the channel is a list of bits of the address itself and
/// so are all others; `xor.channel` lists the bits that are XORed onto each of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    /// Name: the file's stem.
    pub name: String,
    /// One sentence: whose mapping this is.
    pub description: String,
    /// How the channel is found.
    pub(super) interleave: Interleave,
    /// Bits of each of [`FIELDS`], lowest first.
    pub(super) fields: [Vec<u32>; 5],
    /// Bits XORed onto the bits of each of [`FIELDS`], in the same order.
    pub(super) xor: [Vec<u32>; 5],
    /// Bits XORed onto each bit of the channel, which takes none of them itself.
    pub(super) channel_xor: Vec<Vec<u32>>,
    /// Bits of the slice, lowest first; a machine uses as many as it needs.
    pub(super) slice: Vec<u32>,
    /// Bits that choose nothing, as on a simulator that drops them: addresses that differ in
    /// them alone lie in one place.
    pub(super) dropped: Vec<u32>,
    /// How channel and slice are spread by upper bits; those inside an access count nothing.
    pub(super) hash: Hash,
}

/// How the channel is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Interleave {
    /// Remainder of the address above this bit.
    Divide(u32),
    /// These bits of the address, lowest first.
    Bits(Vec<u32>),
}

/// How channel and slice are spread by upper bits; those inside an access count nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    /// Not at all.
    None,
    /// Remainder of the upper bits' polynomial (Rau, ISCA 1991), from the lowest
    /// upper bit on, as many bits as given.
    Polynomial(u32, u32),
    /// XOR of groups of upper bits.
    Fold(u32, u32),
}

impl Mapping {
    /// Reads the mapping `name` (a stem in `models/memory/mappings`, or a path).
    ///
    /// # Errors
    /// Any [`SpecError`]: an unreadable file, unknown keys, bits out of range.
    pub fn load(name: &str, models: &ModelFiles) -> Result<Self, SpecError> {
        let file = MemoryFile::load(Folder::Mappings, name.as_ref(), models)?;
        let mut reader = Reader { file: &file, leaves: file.leaves.clone() };
        let interleave = reader.interleave()?;
        let fields = FIELDS.map(|field| reader.bits(&format!("fields.{field}")));
        let xor = FIELDS.map(|field| reader.bits(&format!("xor.{field}")));
        let channel_xor = reader.channel_xor()?;
        let slice = reader.bits("fields.slice")?;
        let dropped = reader.bits("fields.dropped")?;
        let hash = reader.hash()?;
        reader.nothing_left()?;
        Ok(Self {
            name: file.name.clone(),
            description: file.description.clone(),
            interleave,
            fields: all(fields)?,
            xor: all(xor)?,
            channel_xor,
            slice,
            dropped,
            hash,
        })
    }

    /// The names of the mappings.
    pub fn names(models: &ModelFiles) -> Vec<&str> {
        models.names(Folder::Mappings.path())
    }

    /// The mapping of a machine with `channels` channels of `slices` L2 slices each.
    ///
    /// # Errors
    /// [`SpecError::InconsistentMemory`] when the bits do not name every address
    /// exactly once, or when the slices are no power of two or need more bits
    /// than the mapping has.
    pub fn for_machine(&self, channels: u32, slices: u32) -> Result<AddressMap, SpecError> {
        AddressMap::new(self, channels, slices)
    }
}

fn all<const N: usize>(
    lists: [Result<Vec<u32>, SpecError>; N],
) -> Result<[Vec<u32>; N], SpecError> {
    let mut bits = std::array::from_fn(|_| Vec::new());
    for (slot, list) in bits.iter_mut().zip(lists) {
        *slot = list?;
    }
    Ok(bits)
}

/// Takes the leaves of a mapping file one after the other.
struct Reader<'a> {
    file: &'a MemoryFile,
    leaves: BTreeMap<String, Leaf>,
}

impl Reader<'_> {
    fn bits(&mut self, key: &str) -> Result<Vec<u32>, SpecError> {
        let Some(leaf) = self.leaves.remove(key) else { return Ok(Vec::new()) };
        bit_list(&leaf.text).ok_or_else(|| {
            let expected =
                format!("bits below {ADDRESS_BITS}, low to high, such as \"5-7, 9\" or \"15-\"");
            SpecError::value(&leaf.place, key, expected, format!("`{}`", leaf.text))
        })
    }

    /// Lists of bits, one for each bit of the channel.
    fn channel_xor(&mut self) -> Result<Vec<Vec<u32>>, SpecError> {
        let Some(leaf) = self.leaves.remove("xor.channel") else { return Ok(Vec::new()) };
        let lists: Option<Vec<_>> = leaf.text.split(';').map(bit_list).collect();
        lists.ok_or_else(|| {
            let expected = format!(
                "lists of bits below {ADDRESS_BITS}, one per bit of the channel, such as \"17; 16, 18\""
            );
            SpecError::value(&leaf.place, "xor.channel", expected, format!("`{}`", leaf.text))
        })
    }

    fn single(&mut self, key: &str, missing: u32) -> Result<u32, SpecError> {
        let Some(leaf) = self.leaves.remove(key) else { return Ok(missing) };
        let value = leaf.text.parse().ok().filter(|bit| *bit < ADDRESS_BITS);
        value.ok_or_else(|| {
            let expected = format!("a bit below {ADDRESS_BITS}");
            SpecError::value(&leaf.place, key, expected, format!("`{}`", leaf.text))
        })
    }

    fn interleave(&mut self) -> Result<Interleave, SpecError> {
        let listed = self.bits("interleave.channel")?;
        let shift = self.leaves.contains_key("interleave.shift");
        match (listed.is_empty(), shift) {
            (true, true) => Ok(Interleave::Divide(self.single("interleave.shift", 0)?)),
            (false, false) => Ok(Interleave::Bits(listed)),
            _ => Err(SpecError::InconsistentMemory {
                name: self.file.name.clone(),
                problem: "give exactly one of interleave.shift and interleave.channel".to_owned(),
            }),
        }
    }

    fn hash(&mut self) -> Result<Hash, SpecError> {
        let Some(leaf) = self.leaves.remove("hash.kind") else { return Ok(Hash::None) };
        let from = self.single("hash.from", 0)?;
        let bits = self.single("hash.bits", ADDRESS_BITS - 1)?;
        match leaf.text.as_str() {
            "none" => Ok(Hash::None),
            "polynomial" => Ok(Hash::Polynomial(from, bits)),
            "fold" => Ok(Hash::Fold(from, bits)),
            other => {
                let expected = "none, polynomial or fold";
                Err(SpecError::value(&leaf.place, "hash.kind", expected, format!("`{other}`")))
            }
        }
    }

    fn nothing_left(&self) -> Result<(), SpecError> {
        if let Some((key, Leaf { text, place })) = self.file.expressions.iter().next() {
            let (place, found) = (place.clone(), format!("`{text}`"));
            return Err(TomlError::Source { place, key: key.clone(), found }.into());
        }
        let Some((key, leaf)) = self.leaves.iter().next() else { return Ok(()) };
        let known = [
            "interleave.shift",
            "interleave.channel",
            "fields.slice",
            "fields.dropped",
            "xor.channel",
            "hash.kind",
        ];
        let lists = FIELDS.iter().flat_map(|f| [format!("fields.{f}"), format!("xor.{f}")]);
        let known: Vec<String> = known.map(str::to_owned).into_iter().chain(lists).collect();
        Err(SpecError::unknown(&leaf.place, key, known.iter().map(String::as_str)))
    }
}

/// `5-7, 9, 15-` to bits; an open end runs to the last address bit.
fn bit_list(text: &str) -> Option<Vec<u32>> {
    let mut bits = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (low, high) = match part.split_once('-') {
            None => (part, part),
            Some((low, "")) => (low, "46"),
            Some(ends) => ends,
        };
        let (low, high) = (low.parse::<u32>().ok()?, high.parse::<u32>().ok()?);
        if low > high || high >= ADDRESS_BITS {
            return None;
        }
        bits.extend(low..=high);
    }
    Some(bits)
}
