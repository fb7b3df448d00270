//! Are the cells of several plans in one folder kept apart?

use std::collections::BTreeSet;
use std::fs;

use gpumodel::report::results::SweepFiles;

use crate::sweep_place::Place;

const PLAN: &str = "machines = ['warped-slicer']\nschemes = ['left-over', 'even']\n\
    [mixes]\nlists = [['m', 's']]\n";

/// The fields of `column` in the table `name` of the folder `out`.
fn column(place: &Place, name: &str, column: &str) -> Vec<String> {
    let mut reader = csv::Reader::from_path(place.path("out").join(name)).unwrap();
    let header = reader.headers().unwrap().clone();
    let place = header.iter().position(|found| found == column).unwrap();
    reader.records().map(|row| row.unwrap()[place].to_owned()).collect()
}

/// A folder with the cells of a plan, in which `m` became another trace meanwhile.
fn edited() -> Place {
    let place = Place::new();
    let plan = place.plan("plan", PLAN);
    let (code, said) = place.sweep(&plan, "out", &[]);
    assert!(code == Some(0) && !said.contains("not of this plan"), "{said}");
    fs::remove_dir_all(place.path("m")).unwrap();
    place.trace("m", "compute", 0.2);
    let (code, said) = place.sweep(&plan, "out", &["--resume"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("out holds 2 cells that are not of this plan"), "{said}");
    place
}

#[test]
fn tables_show_the_store_of_a_name() {
    let place = edited();
    let of_cells = column(&place, "cells.csv", "store_hashes");
    assert!(of_cells[0] == of_cells[1] && of_cells[2] == of_cells[3], "{of_cells:?}");
    assert_ne!(of_cells[0], of_cells[2]);
    let (apps, of_apps) =
        (column(&place, "apps.csv", "app"), column(&place, "apps.csv", "store_hash"));
    let stores = |name: &str| {
        let own = apps.iter().zip(&of_apps).filter(|(app, _)| *app == name);
        own.map(|(_, store)| store.clone()).collect::<BTreeSet<_>>()
    };
    assert_eq!((stores("m").len(), stores("s").len()), (2, 1));
    assert_eq!(of_cells[0], [&of_apps[0][..], &of_apps[1]].join(" + "));
    assert_eq!(column(&place, "apps.csv", "store_hashes")[0], of_cells[0]);
}

#[test]
fn a_figure_shows_applications_of_one_name_apart() {
    let place = edited();
    let plot = ["--figure", "normalized", "--csv", "x.csv", "-o", "x.svg"];
    let (code, said) = place.run(&[&["plot", "out"][..], &plot].concat());
    assert_eq!(code, Some(0), "{said}");
    let text = fs::read_to_string(place.path("x.csv")).unwrap();
    for hashes in column(&place, "cells.csv", "store_hashes") {
        assert_eq!(text.matches(&format!("m ({})+s,", &hashes[..8])).count(), 2, "{text}");
    }
    assert!(!text.contains('['), "{text}");
}

#[test]
fn a_reference_is_not_compared_with_two_applications_of_its_name() {
    let place = edited();
    let row = "machine,trace,launches,kernels,cycles\nwarped-slicer,NAME,all,1,5000\n";
    fs::write(place.path("m.csv"), row.replace("NAME", "m")).unwrap();
    fs::write(place.path("s.csv"), row.replace("NAME", "s")).unwrap();
    let keys = SweepFiles::new(&place.path("out")).cells().unwrap();
    for verb in [&["compare", "out"][..], &["plot", "out", "--figure", "correlation"]] {
        let options = ["--reference", "m.csv", "-o", "x.svg"];
        let (code, said) = place.run(&[verb, &options].concat());
        assert!(code == Some(2) && said.contains("m is not one application"), "{said}");
        assert!(said.contains(&keys[0].key) && said.contains("store_hashes"), "{said}");
    }
    assert_eq!(place.run(&["compare", "out", "--reference", "s.csv"]).0, Some(0));
    let chosen = format!("key\n{}\n{}\n", keys[0].key, keys[1].key);
    fs::write(place.path("out/some.csv"), chosen).unwrap();
    let (code, said) = place.run(&["compare", "out/some.csv", "--reference", "m.csv"]);
    assert_eq!(code, Some(0), "{said}");
}
