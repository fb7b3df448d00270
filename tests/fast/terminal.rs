//! Does a terminal get colours and bars with phases, no colours with `NO_COLOR`, and a pipe
//! neither?

use std::process::{Command, Stdio};

use crate::skip::skipped;
use crate::sweep_place::Place;

/// What a terminal of 100 columns shows of the program; `None`: `script` of util-linux, which
/// makes one, is absent.
fn shown(place: &Place, words: &str, variables: &[(&str, &str)]) -> Option<String> {
    let program = place.command(&[]).get_program().to_owned();
    let line = format!("stty cols 100; exec '{}' {words}", program.to_str()?);
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(place.path(""));
    script.env_remove("NO_COLOR").env("TERM", "xterm").env("GPUMODEL_CACHE", place.path("cache"));
    script.envs(variables.iter().copied()).stdin(Stdio::null());
    let version = Command::new("script").arg("--version").output();
    let linux =
        version.is_ok_and(|said| said.stdout.windows(10).any(|words| words == b"util-linux"));
    if !linux {
        skipped("no `script` of util-linux, which makes terminals");
        return None;
    }
    Some(String::from_utf8_lossy(&script.output().unwrap().stdout).into_owned())
}

/// Whether a text sets colours or weights: control sequences that end in `m`.
fn coloured(text: &str) -> bool {
    text.split("\u{1b}[").skip(1).any(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';');
        end.is_some_and(|end| rest[end..].starts_with('m'))
    })
}

#[test]
fn a_terminal_gets_colours_unless_no_color_is_set() {
    let place = Place::new();
    for (words, always) in [("analyze --nope", true), ("analyze m -m v100", false)] {
        let Some(plain) = shown(&place, words, &[("NO_COLOR", "1")]) else { return };
        assert!(!coloured(&plain) && plain.len() > 100, "{words}: {plain:?}");
        let colours = shown(&place, words, &[]).unwrap();
        assert_eq!(coloured(&colours), always, "{words}: {colours:?}");
        let empty = shown(&place, words, &[("NO_COLOR", "")]).unwrap();
        assert_eq!(coloured(&empty), always, "an empty variable is none: {empty:?}");
    }
    let (_, piped) = place.run(&["analyze", "--nope"]);
    assert!(!piped.contains('\u{1b}'), "{piped:?}");
}

#[test]
fn bars_say_which_phase_of_how_many_runs() {
    let place = Place::new();
    let words = "analyze m s -m warped-slicer --scheme even";
    let Some(text) = shown(&place, words, &[]) else { return };
    assert!(text.contains("phase 1 of 2 converting ") && text.contains("phase 2 of 2 running "));
    let targets = format!("{words} --until targets --window 1000");
    let text = shown(&place, &targets, &[]).unwrap();
    assert!(text.contains("phase 2 of 3 running "), "{text:?}");
    assert!(text.contains("phase 3 of 3 running "), "{text:?}");
    assert!(!text.contains("0/0 "), "a bar has a length before it is shown: {text:?}");
    let quiet = shown(&place, &format!("-q {words}"), &[]).unwrap();
    assert!(!quiet.contains("phase"), "{quiet:?}");
}
