//! Interval profiles of code in the cache folder.
//!
//! One file per store, selection of launches, machine and build of the program. It saves the
//! analysis of the code, a few percent of a run at best.

use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use gpumodel_core::units::{to_u32, to_usize};
use gpumodel_sim::ProfileImage;

use super::{DiskCache, Kind};

/// Smaller profiles are computed faster than a file is read.
const LEAST_BYTES: usize = 16 << 10;

/// The profiles in a cache folder.
#[derive(Clone, Debug)]
pub(crate) struct Profiles(DiskCache);

/// Identifies the file of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(u128);

impl Key {
    /// The key of a run of the launches `chosen`; store and machine are given by their hashes.
    pub(crate) fn new(store: &str, machine: &str, chosen: &[usize]) -> Self {
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
    /// The profiles in the folder `cache`.
    pub(crate) fn new(cache: &Path) -> Self {
        Self(DiskCache::new(cache))
    }

    /// The profiles of `key`; empty if there is no intact file.
    pub(crate) fn load(&self, key: Key) -> Vec<ProfileImage> {
        self.0.get(Kind::Profiles, key.0).and_then(|bytes| decode(&bytes)).unwrap_or_default()
    }

    /// Stores the profiles of a run if they are worth a file.
    pub(crate) fn save(&self, key: Key, images: &[ProfileImage]) {
        let bytes = encode(images);
        if bytes.len() >= LEAST_BYTES {
            self.0.put(Kind::Profiles, key.0, &bytes);
        }
    }
}

/// The number of images, then the length and the words of each.
fn encode(images: &[ProfileImage]) -> Vec<u8> {
    let mut bytes = to_u32(images.len()).to_le_bytes().to_vec();
    for image in images {
        bytes.extend_from_slice(&to_u32(image.words().len()).to_le_bytes());
        image.words().iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    }
    bytes
}

fn decode(bytes: &[u8]) -> Option<Vec<ProfileImage>> {
    let (key_parts, odd) = bytes.as_chunks::<4>();
    let mut key_parts = key_parts.iter().map(|word| u32::from_le_bytes(*word));
    let count = key_parts.next().filter(|_| odd.is_empty())?;
    let mut images = Vec::new();
    for _ in 0..count {
        let length = to_usize(key_parts.next()?);
        (length <= key_parts.len()).then_some(())?;
        images.push(ProfileImage::new(key_parts.by_ref().take(length).collect()));
    }
    (key_parts.len() == 0).then_some(images)
}

#[cfg(test)]
mod tests {
    use gpumodel_sim::ProfileImage;

    use super::{Key, LEAST_BYTES, Profiles, decode, encode};

    fn images(key_parts: u32) -> Vec<ProfileImage> {
        vec![ProfileImage::new((0..key_parts).collect()), ProfileImage::default()]
    }

    #[test]
    fn images_come_back_whole_or_not_at_all() {
        let bytes = encode(&images(40));
        assert_eq!(decode(&bytes), Some(images(40)));
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length]), None, "cut at {length}");
        }
    }

    #[test]
    fn only_the_profiles_of_the_key_are_read_and_small_ones_are_not_kept() {
        let cache = tempfile::tempdir().unwrap();
        let profiles = Profiles::new(cache.path());
        let key = Key::new("store", "machine", &[0, 1]);
        profiles.save(key, &images(10));
        assert!(profiles.load(key).is_empty());
        let large = u32::try_from(LEAST_BYTES).unwrap();
        profiles.save(key, &images(large));
        assert_eq!(profiles.load(key), images(large));
        for other in [
            Key::new("store", "machine", &[0]),
            Key::new("store", "another", &[0, 1]),
            Key::new("another", "machine", &[0, 1]),
        ] {
            assert!(profiles.load(other).is_empty());
        }
    }
}
