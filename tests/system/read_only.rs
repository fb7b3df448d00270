//! Can a read-only folder be analyzed and swept, without a write to it?

use std::fs;

use crate::sweep_place::Place;

const PLAN: &str = "machines = ['warped-slicer']\nschemes = ['left-over', 'even']\n\
    [apps]\nm = 'fixed/m'\ns = 'fixed/s'\na = 'fixed/a.gpt'\n\
    [mixes]\nlists = [['m', 's'], ['a', 's']]\n";

/// A folder `fixed` with traces, a store of one, and a cache folder that knows the plan.
fn place() -> Place {
    let place = Place::new();
    fs::create_dir(place.path("fixed")).unwrap();
    for name in ["m", "s"] {
        fs::rename(place.path(name), place.path("fixed").join(name)).unwrap();
    }
    fs::write(place.path("plan.toml"), PLAN).unwrap();
    let (code, said) = place.run(&["convert", "fixed/m", "-o", "fixed/a.gpt"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = place.sweep("plan.toml", "whole", &[]);
    assert_eq!(code, Some(0), "{said}");
    fs::rename(place.path("cache"), place.path("fixed/cache")).unwrap();
    place
}

/// The program where `fixed` cannot be written and is the cache folder, or `other` is.
fn run(place: &Place, cache: &str, words: &[&str]) -> Option<(Option<i32>, String)> {
    // Permissions do not bind root.
    let root = "[ $(id -u) = 0 ]";
    let mount = "{ mount --bind fixed fixed && mount -o remount,bind,ro fixed; }";
    let before = format!(
        "if {root}; then {mount}; else chmod -R a-w fixed; fi && ! touch fixed/mine 2>/dev/null \
         && export GPUMODEL_CACHE={cache}"
    );
    place.mounted(&before, words, &format!("{root} || chmod -R u+w fixed"))
}

#[test]
fn stores_traces_and_their_cache_need_no_permission_to_write() {
    let place = place();
    let before = place.content("fixed");
    let sweep = ["sweep", "plan.toml", "--out", "out"];
    let Some((code, said)) = run(&place, "fixed/cache", &sweep) else { return };
    assert_eq!(code, Some(0), "{said}");
    assert!(place.content("out") == place.content("whole"), "other bytes");
    // Results that the cache lacks are computed, and not kept.
    let analyze = ["analyze", "fixed/a.gpt", "fixed/s", "--machine", "gtx-1080"];
    for (cache, options) in
        [("fixed/cache", ["--scheme", "warped-slicer"]), ("cache", ["--scheme", "even"])]
    {
        let words = [&analyze[..], &options].concat();
        let (code, said) = run(&place, cache, &words).unwrap();
        assert_eq!(code, Some(0), "{said}");
    }
    assert!(place.content("fixed") == before, "something was written");
}

#[test]
fn a_cache_folder_without_room_for_a_trace_is_an_error_with_advice() {
    let place = place();
    fs::remove_dir_all(place.path("fixed/cache")).unwrap();
    fs::create_dir(place.path("fixed/cache")).unwrap();
    let words = ["analyze", "fixed/s", "--machine", "gtx-1080"];
    let Some((code, said)) = run(&place, "fixed/cache", &words) else { return };
    assert!(code == Some(2) && said.contains("GPUMODEL_CACHE"), "{said}");
    let words = ["sweep", "plan.toml", "--out", "fixed/out"];
    let (code, said) = run(&place, "cache", &words).unwrap();
    assert!(code == Some(2) && said.contains("cannot write into fixed/out"), "{said}");
    assert_eq!(place.content("fixed/cache").len(), 0);
    assert!(!place.path("fixed/out").exists());
}
