//! Does `gpumodel guide` show its topics and refuse others, and do shells get completions?

use assert_cmd::Command;
use gpumodel::app::guide::{PAGES, TOPICS};

use crate::common::program::{gpumodel, stderr, stdout};

#[test]
fn without_a_topic_it_lists_all_with_one_line_each() {
    let list = stdout(&gpumodel(&["guide"]).success());
    for topic in TOPICS {
        let mut lines = list.lines().filter(|line| line.trim().starts_with(topic.name));
        let line = lines.next().unwrap_or_else(|| panic!("{} is not in {list}", topic.name));
        assert!(line.ends_with(topic.summary), "{line}");
        assert!(line.chars().count() <= 100, "{line}");
        assert_eq!(lines.next(), None);
    }
}

#[test]
fn with_a_topic_it_prints_its_markdown() {
    let schemes = stdout(&gpumodel(&["guide", "schemes"]).success());
    let topic = TOPICS.iter().find(|topic| topic.name == "schemes").unwrap();
    assert_eq!(schemes, topic.text);
}

#[test]
fn guide_and_help_fit_a_terminal_and_stand_whole_in_a_pipe() {
    let shown = |words: &[&str], columns: Option<&str>| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("gpumodel"));
        command.env_remove("COLUMNS").envs(columns.map(|columns| ("COLUMNS", columns)));
        stdout(&command.args(words).assert().success())
    };
    let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap();
    let code = |line: &&str| line.starts_with("    ");
    for words in [&["plot", "--help"][..], &["guide", "sharing"], &["guide", "hotspots"]] {
        let narrow = shown(words, Some("70"));
        let prose: Vec<&str> = narrow.lines().filter(|line| !code(line)).collect();
        assert!(widest(&prose.join("\n")) <= 70, "{words:?}: {narrow}");
        assert!(widest(&shown(words, None)) > 100, "{words:?}");
    }
}

#[test]
fn a_scheme_has_a_page_that_its_variants_share() {
    for page in PAGES {
        for scheme in page.schemes() {
            let shown = stdout(&gpumodel(&["guide", "schemes", scheme]).success());
            assert_eq!(shown, page.text, "{scheme}");
        }
    }
}

#[test]
fn an_unknown_page_is_refused_with_the_nearest() {
    let said = |words: &[&str]| {
        let refused = gpumodel(&[&["guide"], words].concat()).code(2);
        assert_eq!(stdout(&refused), "");
        stderr(&refused)
    };
    let near = said(&["schemes", "warped-slcer"]);
    let expected = "error: the guide has no page on a scheme warped-slcer (did you mean warped-slicer?); the schemes are: bp, ";
    assert!(near.starts_with(expected), "{near}");
    let swapped = said(&["schemes", "qso"]);
    assert!(swapped.contains("a scheme qso (did you mean qos-bp?)"), "{swapped}");
    let topic = said(&["qso"]);
    assert!(topic.contains("no topic qso (did you mean schemes qos-bp?)"), "{topic}");
    let bare = said(&["ugpu-soft"]);
    assert!(bare.contains("no topic ugpu-soft (did you mean schemes ugpu-soft?)"), "{bare}");
    let other = said(&["sweeps", "ugpu"]);
    assert!(other.contains("the topic sweeps has no pages, expected `schemes SCHEME`"), "{other}");
}

#[test]
fn an_unknown_topic_is_refused_with_the_nearest() {
    let refused = gpumodel(&["guide", "schemas"]).code(2);
    assert_eq!(stdout(&refused), "");
    let said = stderr(&refused);
    assert!(said.starts_with("error: the guide has no topic schemas (did you mean schemes?); the topics are: tutorial, "), "{said}");
    let refused = stderr(&gpumodel(&["guide", "zzz"]).code(2));
    assert!(!refused.contains("did you mean"), "{refused}");
}

#[test]
fn completions_know_every_verb_and_other_shells_are_refused() {
    let help = stdout(&gpumodel(&["--help"]).success());
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = listed.take_while(|line| !line.is_empty());
    let verbs: Vec<&str> = lines.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(verbs.contains(&"analyze") && verbs.contains(&"completions"), "{help}");
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&gpumodel(&["completions", shell]).success());
        for verb in &verbs {
            assert!(script.contains(verb), "{shell}: {verb}");
        }
    }
    let refused = stderr(&gpumodel(&["completions", "dash"]).code(2));
    assert!(refused.contains("[possible values: bash"), "{refused}");
}
