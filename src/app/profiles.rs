//! Interval profiles kept between runs, in the user's cache folder.
//!
//! One file per store, choice of launches, machine and build of the program. It
//! saves the walk over the code, a few percent of a run at best: a missing, damaged
//! or foreign file, or a folder that cannot be written, costs no more than that.

use std::path::Path;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use gpumodel_core::units::{to_u32, to_usize};
use gpumodel_sim::ProfileImage;

use super::shelf::Shelf;

/// First words of a file: its kind and version.
const MAGIC: [u32; 2] = [u32::from_le_bytes(*b"gpro"), 1];

/// Smaller profiles are found sooner than a file is read.
const LEAST_BYTES: usize = 16 << 10;

/// Bytes of all files together; the ones written longest ago go first.
const MOST_BYTES: u64 = 64 << 20;

/// The files of one folder.
#[derive(Clone, Debug)]
pub(super) struct Profiles(Shelf);

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(u128);

impl Key {
    /// The key of a run of the launches `chosen` of a store on a machine, both by
    /// their hashes.
    pub(super) fn new(store: &str, machine: &str, chosen: &[usize]) -> Self {
        let mut hash = Xxh3::new();
        for word in [env!("CARGO_PKG_VERSION"), env!("GPUMODEL_SOURCE"), store, machine] {
            hash.update(word.as_bytes());
            hash.update(b"\n");
        }
        for &kernel in chosen {
            hash.update(&gpumodel_core::units::to_u64(kernel).to_le_bytes());
        }
        Self(hash.digest128())
    }
}

impl Profiles {
    /// Files in `profiles` of the folder `cache`.
    pub(super) fn new(cache: &Path) -> Self {
        Self(Shelf::new(cache.join("profiles"), "profile", MOST_BYTES))
    }

    /// What is kept for `key`; nothing where there is no whole file.
    pub(super) fn load(&self, key: Key) -> Vec<ProfileImage> {
        decode(key, &self.0.read(key.0)).unwrap_or_default()
    }

    /// Keeps what a run has found, where that is worth a file. Nothing happens
    /// where the folder cannot be written.
    pub(super) fn save(&self, key: Key, images: &[ProfileImage]) {
        let bytes = encode(key, images);
        if bytes.len() >= LEAST_BYTES {
            self.0.write(key.0, &bytes);
        }
    }

    /// Removes what programs have left that were killed while they wrote.
    pub(super) fn clean(&self) {
        self.0.clean();
    }
}

/// Magic, key, number of images, lengths and words of each; then a checksum.
fn encode(key: Key, images: &[ProfileImage]) -> Vec<u8> {
    let mut bytes: Vec<u8> = MAGIC.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend_from_slice(&key.0.to_le_bytes());
    bytes.extend_from_slice(&to_u32(images.len()).to_le_bytes());
    for image in images {
        bytes.extend_from_slice(&to_u32(image.words().len()).to_le_bytes());
        image.words().iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    }
    let sum = xxh3_64(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

fn decode(key: Key, bytes: &[u8]) -> Option<Vec<ProfileImage>> {
    let (content, sum) = bytes.split_last_chunk()?;
    (xxh3_64(content) == u64::from_le_bytes(*sum)).then_some(())?;
    let (kind, rest) = content.split_first_chunk::<8>()?;
    let magic: Vec<u8> = MAGIC.iter().flat_map(|word| word.to_le_bytes()).collect();
    let (found, rest) = rest.split_first_chunk()?;
    (kind[..] == magic && u128::from_le_bytes(*found) == key.0).then_some(())?;
    let (words, odd) = rest.as_chunks::<4>();
    let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
    let count = words.next().filter(|_| odd.is_empty())?;
    let mut images = Vec::new();
    for _ in 0..count {
        let length = to_usize(words.next()?);
        (length <= words.len()).then_some(())?;
        images.push(ProfileImage::new(words.by_ref().take(length).collect()));
    }
    (words.len() == 0).then_some(images)
}

#[cfg(test)]
mod tests {
    use super::{Key, LEAST_BYTES, MOST_BYTES, Profiles, decode, encode};
    use gpumodel_core::units::to_u64;
    use gpumodel_sim::ProfileImage;

    fn images(words: u32) -> Vec<ProfileImage> {
        vec![ProfileImage::new((0..words).collect()), ProfileImage::default()]
    }

    #[test]
    fn only_the_whole_file_of_the_key_is_read() {
        let key = Key::new("store", "machine", &[0, 1]);
        let bytes = encode(key, &images(40));
        assert_eq!(decode(key, &bytes), Some(images(40)));
        for other in [
            Key::new("store", "machine", &[0]),
            Key::new("store", "another", &[0, 1]),
            Key::new("another", "machine", &[0, 1]),
        ] {
            assert_eq!(decode(other, &bytes), None);
        }
        for length in 0..bytes.len() {
            assert_eq!(decode(key, &bytes[..length]), None, "cut at {length}");
            let mut damaged = bytes.clone();
            damaged[length] ^= 0x10;
            assert_eq!(decode(key, &damaged), None, "damaged at {length}");
        }
    }

    #[test]
    fn small_profiles_are_not_kept_and_the_oldest_make_room() {
        let cache = tempfile::tempdir().unwrap();
        let profiles = Profiles::new(cache.path());
        let key = |number: usize| Key::new("store", "machine", &[number]);
        profiles.save(key(0), &images(10));
        assert!(profiles.load(key(0)).is_empty());
        let large = u32::try_from(MOST_BYTES / 20).unwrap();
        assert!(large as usize > LEAST_BYTES);
        for number in 0..8 {
            profiles.save(key(number), &images(large));
            assert_eq!(profiles.load(key(number)), images(large), "{number}");
        }
        let folder = std::fs::read_dir(cache.path().join("profiles")).unwrap();
        let sizes = folder.map(|entry| entry.unwrap().metadata().unwrap().len());
        assert!(sizes.sum::<u64>() <= MOST_BYTES);
        assert!(profiles.load(key(0)).is_empty(), "the first one has gone");
        profiles.save(key(9), &images(u32::try_from(MOST_BYTES / 8).unwrap()));
        assert!(profiles.load(key(9)).is_empty(), "one file does not fill the folder");
        assert_eq!(to_u64(profiles.load(key(7)).len()), 2);
    }

    #[test]
    fn a_place_that_cannot_be_written_costs_nothing_but_time() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let profiles = Profiles::new(file.path());
        profiles.save(Key::new("s", "m", &[]), &images(100_000));
        assert!(profiles.load(Key::new("s", "m", &[])).is_empty());
    }
}
