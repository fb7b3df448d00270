//! Are the cells of a sweep's folder plotted and compared as the records of `analyze`?

use std::fs;

use gpumodel::report::results::{SweepFiles, TABLE_FORMS};

use super::FAILING;
use crate::sweep_place::Place;

#[test]
fn a_folder_of_cells_is_plotted_as_its_mixes() {
    let place = Place::new();
    let plan = place.plan(
        "plan",
        "machines = ['warped-slicer']\nschemes = ['left-over', 'even']\n\
        [mixes]\nlists = [['m', 's'], ['s', 'm']]\n",
    );
    place.sweep(&plan, "out", &[]);
    let plot = ["--figure", "normalized", "--metric", "stp", "--csv", "x.csv", "-o", "x.svg"];
    let (code, said) = place.run(&[&["plot", "out"][..], &plot].concat());
    assert_eq!(code, Some(0), "{said}");
    let text = fs::read_to_string(place.path("x.csv")).unwrap();
    assert!(text.contains("m+s") && text.contains("s+m") && !text.contains('['), "{text}");
    let row = "machine,trace,launches,kernels,cycles\nwarped-slicer,m,all,1,5000\n";
    fs::write(place.path("r.csv"), row).unwrap();
    for (figure, words) in [
        (&["stalls"][..], "m: "),
        (&["activity"], "tenths of the peak"),
        (&["correlation", "--reference", "r.csv"], "1 of 1 reference rows"),
    ] {
        let plot = [&["plot", "out", "-o", "y.svg", "--figure"][..], figure].concat();
        let (code, said) = place.run(&plot);
        assert_eq!(code, Some(0), "{said}");
        let drawn = fs::read_to_string(place.path("y.svg")).unwrap();
        assert!(drawn.contains(words) && !drawn.contains("[2]"), "each once: {drawn}");
    }
    let (code, said) = place.run(&["compare", "out", "--reference", "r.csv"]);
    assert!(code == Some(0) && said.matches("\n  m ").count() == 1, "{said}");
}

#[test]
fn a_table_of_cells_is_plotted_and_compared_as_its_folder() {
    let place = Place::new();
    let plan = place.plan("plan", FAILING);
    place.sweep(&plan, "out", &[]);
    let plot = |records: &str, svg: &str| {
        let how = ["--figure", "normalized", "--metric", "stp", "--baseline", "even", "-o", svg];
        let (code, said) = place.run(&[&["plot", records][..], &how].concat());
        assert_eq!(code, Some(0), "{records}: {said}");
        fs::read_to_string(place.path(svg)).unwrap()
    };
    let row = "machine,trace,launches,kernels,cycles\nwarped-slicer,m,all,1,5000\n";
    fs::write(place.path("r.csv"), row).unwrap();
    let compare = |records: &str| place.run(&["compare", records, "--reference", "r.csv"]);
    let (whole, compared) = (plot("out", "x.svg"), compare("out"));
    assert_eq!(compared.0, Some(0), "{}", compared.1);
    for table in TABLE_FORMS.iter().flat_map(|form| ["cells", "apps"].map(|name| (name, form))) {
        let table = format!("out/{}.{}", table.0, table.1);
        assert!(plot(&table, "y.svg") == whole && compare(&table) == compared, "{table}");
    }
    // Selected rows, with a failed cell.
    let keys = SweepFiles::new(&place.path("out")).cells().unwrap();
    let chosen = format!("stp,key\n1,{}\n1,{}\n", keys[1].key, keys[0].key);
    fs::write(place.path("out/some.csv"), &chosen).unwrap();
    assert!(plot("out/some.csv", "y.svg") == whole);
    fs::write(place.path("some.csv"), &chosen).unwrap();
    fs::write(place.path("none.csv"), "mix,stp\nm+s,1\n").unwrap();
    for (table, words) in [
        (
            "some.csv",
            "some.csv: expected the records of its cells in the same folder, found no cells/",
        ),
        ("none.csv", "none.csv:1: expected a table of `gpumodel sweep`, with a column key"),
        ("plan.toml", "plan.toml:2:1: not a record of `gpumodel analyze`"),
    ] {
        let (code, said) = compare(table);
        assert!(code == Some(2) && said.contains(words), "{said}");
    }
}
