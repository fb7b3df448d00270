//! Does a kill of `convert` anywhere lose no data and damage no store?

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::sweep_faults::draw;
use crate::sweep_place::Place;

/// How often a conversion is killed.
const KILLS: u32 = 50;

#[test]
fn a_killed_conversion_gives_the_same_bytes_the_next_time() {
    let place = Place::new();
    place.trace("t", "saxpy", 1.0);
    fs::create_dir(place.path("out")).unwrap();
    let convert = |output: &str| {
        let mut command = place.command(&["convert", "t", "-o", output]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let start = Instant::now();
    assert!(convert("whole.gpt").status().unwrap().success());
    let whole = u64::try_from(start.elapsed().as_millis()).unwrap().max(1);
    let expected = fs::read(place.path("whole.gpt")).unwrap();
    let names = || {
        let entries = fs::read_dir(place.path("out")).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
    };
    let (mut killed, mut half, mut seed) = (0, 0, 0);
    while killed < KILLS {
        seed += 1;
        assert!(seed < 10 * KILLS, "{killed} of {seed} were killed");
        let mut child = convert("out/t.gpt").spawn().unwrap();
        std::thread::sleep(Duration::from_millis(draw(seed, whole)));
        killed += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        // A store under its name is whole; a partial one has another name.
        if let Ok(store) = fs::read(place.path("out/t.gpt")) {
            assert!(store == expected, "seed {seed}");
        }
        half += u32::from(names().iter().any(|name| name != "t.gpt"));
        // The next run may be killed as well.
        if seed % 3 == 0 {
            assert!(convert("out/t.gpt").status().unwrap().success());
            assert!(fs::read(place.path("out/t.gpt")).unwrap() == expected, "seed {seed}");
            fs::remove_dir_all(place.path("out")).unwrap();
            fs::create_dir(place.path("out")).unwrap();
        }
    }
    assert!(half > KILLS / 10, "{half} of {KILLS} were killed while they wrote");
}
