//! Are any machines, opcode tables, memory standards and address mappings usable, or
//! refused with their place?

#![no_main]

use std::collections::BTreeMap;
use std::io;

use gpumodel::app::{DramJob, RequestFormat};
use gpumodel::sim::config::{AddressMap, IsaTable, Mapping, MemoryStandard};
use gpumodel_fuzz::{Place, named, split};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = split(bytes) else { return };
    let place = Place::new();
    match kind % 4 {
        0 => machine(&place, rest),
        1 => table(&place, rest),
        2 => memory(&place, rest),
        _ => mapping(&place, rest),
    }
});

fn machine(place: &Place, bytes: &[u8]) {
    let file = place.file("mine.toml", bytes).display().to_string();
    match gpumodel::models().examine(&file, &[]) {
        Ok((resolved, problems)) => {
            assert_eq!(resolved.hash.len(), 32);
            assert!(!resolved.listing().is_empty());
            let _ = resolved.machine.peak_gb_per_s();
            assert!(problems.iter().all(|problem| !problem.to_string().is_empty()));
        }
        // The error for a missing base has the base's name.
        Err(error) if error.to_string().starts_with("no `") => {}
        Err(error) => named(&error, "mine"),
    }
}

fn table(place: &Place, bytes: &[u8]) {
    place.file("isa/mine.toml", bytes);
    let models = match gpumodel::app::models(Some(place.path())) {
        Ok(models) => models,
        Err(error) => return named(&error, "mine"),
    };
    match IsaTable::load(&models, "mine") {
        Ok(table) => assert!(table.opcodes().count() < 100_000),
        Err(error) if error.to_string().starts_with("no `") => {}
        Err(error) => named(&error, "mine"),
    }
}

/// A standard that is taken must serve requests.
fn memory(place: &Place, bytes: &[u8]) {
    let file = place.file("mine.toml", bytes).display().to_string();
    let standard = match MemoryStandard::load(&file, &gpumodel::models(), &BTreeMap::new()) {
        Ok(standard) => standard,
        Err(error) if error.to_string().starts_with("no `") => return,
        Err(error) => return named(&error, "mine"),
    };
    assert!(standard.channel_bytes() > 0 && standard.peak_bytes_per_clock() > 0.0);
    let job = DramJob::new(&file, &gpumodel::models(), &[]).expect("what was read before");
    let requests = "0 0 R\n1 0x40 W 64\n9 0x100000 R\n90 0x40 R 200\n3000 0x7fff00 W\n";
    let record = job.run("r", requests.as_bytes(), RequestFormat::Address, Some(&mut io::sink()));
    assert_eq!(record.expect("good requests").requests, 5);
}

fn mapping(place: &Place, bytes: &[u8]) {
    let file = place.file("mine.toml", bytes).display().to_string();
    let mapping = match Mapping::load(&file, &gpumodel::models()) {
        Ok(mapping) => mapping,
        Err(error) if error.to_string().starts_with("no `") => return,
        Err(error) => return named(&error, "mine"),
    };
    for (channels, slices) in [(1, 1), (8, 2), (24, 4), (32, 1), (40, 2)] {
        match mapping.for_machine(channels, slices) {
            Ok(map) => round(&map),
            Err(error) => named(&error, "mine"),
        }
    }
}

/// The address of a location maps back to it.
fn round(map: &AddressMap) {
    let starts = !(map.access_bytes() - 1);
    for bit in 0..40 {
        let found = map.locate((0x5a_5a5a_5a5a ^ (1 << bit)) & starts);
        assert!(found.channel < map.channels() && found.slice < map.slices(), "{found:?}");
        assert_eq!(map.locate(map.address(found)), found, "bit {bit}");
    }
}
