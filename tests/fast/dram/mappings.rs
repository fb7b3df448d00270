//! Does every mapping name each address once, and does it spread strides?

use std::collections::{BTreeMap, BTreeSet};

use gpumodel::sim::config::{AddressMap, Mapping, MemoryStandard};
use proptest::prelude::*;

/// Mapping, channels, slices, standard.
const MACHINES: [(&str, u32, u32, &str); 25] = [
    ("accelsim-qv100", 32, 2, "accelsim-hbm"),
    ("accelsim-a100", 40, 4, "accelsim-hbm"),
    ("accelsim-rtx3070", 16, 2, "accelsim-gddr"),
    ("accelsim-rtx2060", 12, 2, "accelsim-gddr"),
    ("accelsim-titanx", 12, 2, "accelsim-gddr"),
    ("ugpu", 32, 2, "ugpu-hbm-900"),
    ("volta", 32, 2, "v100-hbm2"),
    ("ampere", 40, 2, "a100-hbm2"),
    ("ampere", 80, 1, "a100-hbm2"),
    ("hopper", 80, 1, "h100-hbm3"),
    ("turing", 12, 2, "rtx2060-gddr6"),
    ("turing", 16, 2, "rtx3070-gddr6"),
    ("pascal", 8, 2, "gtx1080-gddr5x"),
    ("kepler", 6, 2, "k40c-gddr5"),
    ("warped-slicer", 6, 1, "warped-slicer-gddr5"),
    ("ampere", 1, 1, "a100-hbm2"),
    ("ugpu-8k", 32, 2, "ugpu-hbm-900"),
    ("ugpu-16k", 32, 2, "ugpu-hbm-900"),
    ("ugpu-32k", 32, 2, "ugpu-hbm-900"),
    ("ugpu-64k", 32, 2, "ugpu-hbm-900"),
    ("ugpu-128k", 32, 2, "ugpu-hbm-900"),
    ("ugpu-256k", 32, 2, "ugpu-hbm-900"),
    ("ugpu-512k", 32, 2, "ugpu-hbm-900"),
    ("ugpu-1m", 32, 2, "ugpu-hbm-900"),
    ("ugpu-2m", 32, 2, "ugpu-hbm-900"),
];

fn map(at: usize) -> AddressMap {
    let (name, channels, slices, _) = MACHINES[at];
    Mapping::load(name, &gpumodel::models()).unwrap().for_machine(channels, slices).unwrap()
}

#[test]
fn every_machine_has_a_mapping_that_fits_its_memory() {
    for (at, (name, .., standard)) in MACHINES.into_iter().enumerate() {
        let standard =
            MemoryStandard::load(standard, &gpumodel::models(), &BTreeMap::new()).unwrap();
        map(at).fits(&standard).unwrap();
        assert!(map(at).access_bytes() <= u64::from(standard.bytes_per_access), "{name}");
    }
}

#[test]
fn a_mapping_for_other_banks_is_refused() {
    let standard = MemoryStandard::load("ugpu-hbm", &gpumodel::models(), &BTreeMap::new()).unwrap();
    let error = map(6).fits(&standard).unwrap_err();
    assert!(error.to_string().contains("pseudo_channel"), "{error}");
}

#[test]
fn bits_that_cannot_choose_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let refused = |channel: &str, xor: &str| {
        let text = format!(
            "[interleave]\nchannel = {{ value = \"{channel}\", assumed = \"x\" }}\n\
             [fields]\ncolumn = {{ value = \"5-14\", assumed = \"x\" }}\n\
             bank = {{ value = \"15-16\", assumed = \"x\" }}\n\
             row = {{ value = \"17-44\", assumed = \"x\" }}\n\
             [xor]\nbank = {{ value = \"{xor}\", assumed = \"x\" }}\n"
        );
        std::fs::write(&path, text).unwrap();
        let mapping = Mapping::load(path.to_str().unwrap(), &gpumodel::models()).unwrap();
        mapping.for_machine(4, 1).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(refused("45-46", "17-18"), Ok(()));
    for (channel, xor, words) in [
        ("0-46", "17-18", "its channel bits name 2^47 channels, the machine has 4"),
        ("0-46, 0-46", "17-18", "its channel bits name 2^94 channels, the machine has 4"),
        ("45, 45", "17-18", "its channel bits name one bit twice"),
        ("45-46", "17-44", "xor.bank has more bits than fields.bank"),
    ] {
        let error = refused(channel, xor).unwrap_err();
        assert!(error.contains(words) && error.contains("mine"), "{error}");
    }
}

#[test]
fn what_cannot_be_xored_onto_a_channel_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let made = |interleave: &str, xor: &str| {
        let text = format!(
            "[interleave]\n{interleave}\n[fields]\ncolumn = {{ value = \"5-9\", assumed = \"x\" }}\n\
             bank = {{ value = \"12-14\", assumed = \"x\" }}\n\
             row = {{ value = \"15-\", assumed = \"x\" }}\n\
             [xor]\nchannel = {{ value = \"{xor}\", assumed = \"x\" }}\n"
        );
        std::fs::write(&path, text).unwrap();
        let mapping = Mapping::load(path.to_str().unwrap(), &gpumodel::models());
        mapping.and_then(|mapping| mapping.for_machine(4, 1)).map_err(|error| error.to_string())
    };
    let bits = "channel = { value = \"10-11\", assumed = \"x\" }";
    let map = made(bits, "12, 14; 13").unwrap();
    for (address, channel) in [(0, 0), (1 << 10, 1), (1 << 12, 1), (5 << 12, 0), (1 << 13, 2)] {
        assert_eq!(map.locate(address).channel, channel, "{address:#x}");
        assert_eq!(map.address(map.locate(address)), address);
    }
    for (interleave, xor, words) in [
        (bits, "12", "a list in xor.channel for each of its 2 channel bits, found 1"),
        (bits, "12; 10", "xor.channel has address bit 10, which is a channel bit"),
        (bits, "12; x", "one per bit of the channel"),
        (
            "shift = { value = 10, assumed = \"x\" }",
            "12; 13",
            "xor.channel needs interleave.channel",
        ),
    ] {
        let error = made(interleave, xor).unwrap_err();
        assert!(error.contains(words) && error.contains("mine"), "{error}");
    }
}

/// Facts of `PER_SLICE/L2_slices_V100.csv` of chrirocca/GPUNetBench (at 6e483f0), which gives the
/// L2 slice of each KiB of a MiB.
#[test]
fn a_v100_has_its_measured_slices() {
    let map = map(6);
    for address in (0..1 << 21).step_by(96).chain((5 << 33)..(5 << 33) + 4096) {
        let access = address / 32 * 32;
        assert_eq!(map.address(map.locate(address)), access, "{address:#x}");
    }
    let slice = |kib: u64| map.locate(kib << 10).channel;
    let together = [
        [0, 16, 68, 84, 129, 145, 197, 213, 290, 306, 358, 374, 522, 538, 590, 1005],
        [42, 58, 110, 126, 171, 187, 239, 255, 264, 280, 332, 348, 544, 560, 612, 983],
        [7, 23, 67, 83, 134, 150, 194, 210, 293, 309, 353, 369, 525, 541, 585, 1018],
    ];
    for kib in &together {
        assert!(kib.iter().all(|&one| slice(one) == slice(kib[0])), "{kib:?}");
    }
    let of = |kib: std::ops::Range<u64>| kib.map(slice).collect::<BTreeSet<_>>().len();
    assert_eq!([of(0..16), of(0..32), of(32..64), of(0..64)], [16, 16, 16, 32]);
    let all = (0..1024).map(slice).fold(BTreeMap::new(), |mut counts, slice| {
        *counts.entry(slice).or_insert(0) += 1;
        counts
    });
    assert!(all.len() == 32 && all.values().all(|&kib| kib == 32), "{all:?}");
}

#[test]
fn a_mapping_to_one_place_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, "[interleave]\nshift = { value = 6, assumed = \"x\" }\n").unwrap();
    let error = Mapping::load(path.to_str().unwrap(), &gpumodel::models())
        .unwrap()
        .for_machine(6, 1)
        .unwrap_err();
    let words = "expected bits of a column, bank or row, found none";
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn a_mapping_that_divides_an_access_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let made = |interleave: &str, slice: &str, channels: u32| {
        let text = format!(
            "[interleave]\n{interleave} = {{ value = \"8\", assumed = \"x\" }}\n\
             [fields]\ncolumn = {{ value = \"6-14\", assumed = \"x\" }}\n\
             row = {{ value = \"15-\", assumed = \"x\" }}\n\
             slice = {{ value = \"{slice}\", assumed = \"x\" }}\n\
             [hash]\nkind = {{ value = \"polynomial\", assumed = \"no bit named\" }}\n"
        );
        let text = text.replace("\"8\"", if interleave == "shift" { "8" } else { "\"5\"" });
        let text = if channels == 2 { text.split("[hash]").next().unwrap() } else { &text };
        std::fs::write(&path, text).unwrap();
        let mapping = Mapping::load(path.to_str().unwrap(), &gpumodel::models()).unwrap();
        mapping.for_machine(channels, 2).map_err(|error| error.to_string())
    };
    let map = made("shift", "9", 24).unwrap();
    for address in (0..1 << 16).chain((1 << 40)..(1 << 40) + 4096) {
        let whole = map.locate(address / 64 * 64);
        assert_eq!(map.locate(address), whole, "{address}: bits inside an access count nothing");
        assert_eq!(map.locate(map.address(whole)), whole, "{address}");
    }
    for (interleave, slice, channels) in [("shift", "4", 24), ("channel", "9", 2)] {
        let error = made(interleave, slice, channels).unwrap_err();
        let words = "chooses a channel or slice, but the lowest bit of column, bank and row is 6";
        assert!(error.contains(words) && error.contains("mine"), "{error}");
    }
}

#[test]
fn neighbouring_accesses_lie_in_different_places() {
    for (at, machine) in MACHINES.iter().enumerate() {
        let map = map(at);
        let places: BTreeSet<_> =
            (0..4096).map(|i| map.locate((7 << 30) + i * map.access_bytes())).collect();
        assert_eq!(places.len(), 4096, "{machine:?}");
    }
}

#[test]
fn powers_of_two_spread_over_the_slices_of_hashed_machines() {
    for at in [0, 2, 6, 7, 9, 10, 11, 12, 13] {
        let map = map(at);
        let ports = map.channels() * map.slices();
        for shift in 8..20 {
            let mut hits = BTreeMap::new();
            for i in 0..u64::from(ports) * 64 {
                let place = map.locate(i << shift);
                *hits.entry((place.channel, place.slice)).or_insert(0u32) += 1;
            }
            let most = hits.values().max().copied().unwrap();
            assert!(most <= 3 * 64, "{:?}, stride 2^{shift}: {most}", MACHINES[at]);
        }
    }
}

#[test]
fn qv100_interleaves_channels_at_256_bytes() {
    let map = map(0);
    let channel = |address| map.locate(address).channel;
    assert_eq!(channel(0), channel(255));
    assert_ne!(channel(0), channel(256));
    // The sub-partition is address bit 13; IPOLY starts at bit 14 (x^6 + x + 1).
    assert_eq!(map.locate(1 << 13).slice, 1);
    let place = map.locate(1 << 14);
    assert_eq!((place.channel, place.slice), (1, 1));
}

#[test]
fn dropped_bits_choose_nothing() {
    for (at, machine) in MACHINES.iter().enumerate().take(5) {
        let map = map(at);
        // A whole row of every channel ends below this bit of the address.
        let above = (1 << 28) * u64::from(map.channels());
        assert_eq!(map.locate(0x1800), map.locate(0x1800 + (above << 8)), "{machine:?}");
        assert_ne!(map.locate(0x1800), map.locate(0x1800 + above / 2), "{machine:?}");
    }
}

#[test]
fn slices_must_be_a_power_of_two() {
    let error =
        Mapping::load("volta", &gpumodel::models()).unwrap().for_machine(32, 3).unwrap_err();
    assert!(error.to_string().contains("power of two"), "{error}");
}

proptest! {
    #[test]
    fn an_address_comes_back_from_its_location(at in 0..MACHINES.len(), address in 0u64..1 << 47) {
        let map = map(at);
        // The simulator's channels have 28 bits of an address.
        let simulated = MACHINES[at].0.starts_with("accelsim");
        let end = if simulated { (1 << 28) * u64::from(map.channels()) } else { 1 << 47 };
        let address = address % end;
        let first = address - address % map.access_bytes();
        prop_assert_eq!(map.address(map.locate(address)), first);
    }

    #[test]
    fn a_location_comes_back_from_its_address(at in 0..MACHINES.len(), address in 0u64..1 << 40) {
        let map = map(at);
        let place = map.locate(address);
        prop_assert!(place.channel < map.channels() && place.slice < map.slices());
        prop_assert_eq!(map.locate(map.address(place)), place);
    }
}
