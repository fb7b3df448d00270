//! The plan file of a sweep.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use gpumodel_core::toml::{Node, read_file};
use gpumodel_core::units::{Cycle, did_you_mean, quoted, shown, to_u64};

use super::mixes::Mixes;
use crate::error::InvalidValue;
use crate::scheme::{REPLAY, parse_scheme};
use crate::{AppName, EndWhen, Ending, SweepError};

/// The most cells of a plan.
const MAX_CELLS: usize = 200_000;

/// A plan, checked.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The file.
    pub(super) path: PathBuf,
    /// The applications, by name.
    pub(super) apps: Vec<AppName>,
    /// By mix: indices of applications.
    pub(super) mixes: Vec<Vec<usize>>,
    /// Machines with their settings.
    pub(super) machines: Vec<NamedSettings>,
    /// Schemes as `analyze` takes them.
    pub(super) schemes: Vec<String>,
    pub(super) seeds: Vec<u64>,
    pub(super) until: Ending,
    pub(super) window: Option<Cycle>,
    /// Steady stretches are passed over.
    pub(super) fast_forward: bool,
    /// Arrival cycles by application.
    arrivals: BTreeMap<String, Cycle>,
    /// Cycles between the arrivals of the applications of a mix.
    spacing: Cycle,
    /// By machine and by scheme: the index of its item in the file's list.
    words: [Vec<usize>; 2],
    /// The lines of keys.
    lines: Node,
}

/// Keys of a plan.
const MACHINES: &str = "machines";
const SCHEMES: &str = "schemes";

/// The most applications of a plan.
const MAX_APPS: usize = 10_000;

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[allow(dead_code, reason = "a description for readers")]
    description: Option<String>,
    #[serde(default)]
    apps: BTreeMap<String, String>,
    #[serde(default)]
    mixes: Mixes,
    #[serde(default)]
    machines: Vec<String>,
    #[serde(default)]
    schemes: Vec<String>,
    seeds: Option<Vec<u64>>,
    until: Option<String>,
    window: Option<Cycle>,
    #[serde(default)]
    fast_forward: bool,
    #[serde(default)]
    arrive: BTreeMap<String, Cycle>,
    #[serde(default)]
    spacing: Cycle,
}

impl Plan {
    /// Reads the plan at `path`.
    ///
    /// # Errors
    /// With file and line, or key, what was expected and what was found.
    pub(super) fn read(path: &Path) -> Result<Self, SweepError> {
        let (raw, lines) = read_file(path).map_err(Box::new)?;
        Self::new(path, raw, lines.clone()).map_err(|invalid| SweepError::Plan {
            path: path.to_path_buf(),
            line: lines.line(&invalid.keys),
            message: invalid.message,
        })
    }

    fn new(path: &Path, raw: Raw, lines: Node) -> Result<Self, InvalidValue> {
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        let apps = apps(folder, &raw.apps)?;
        let names: Vec<&str> = apps.iter().map(|app| app.name.as_str()).collect();
        let until = raw.until.as_deref().unwrap_or_default();
        let until = if raw.until.is_some() { until.parse() } else { Ok(Ending::default()) };
        let until = until.map_err(|message| InvalidValue::of("until", format!("until: {message}")));
        let mixes = raw.mixes.of(&names)?;
        let (machines, of_machines) = machines(folder, &raw.machines)?;
        let (schemes, of_schemes) = schemes(&raw.schemes)?;
        let plan = Self {
            path: path.to_path_buf(),
            mixes,
            machines,
            schemes,
            seeds: raw.seeds.unwrap_or_else(|| vec![0]),
            until: until?,
            window: raw.window,
            fast_forward: raw.fast_forward,
            arrivals: arrivals(raw.arrive, &names)?,
            spacing: raw.spacing,
            apps,
            words: [of_machines, of_schemes],
            lines,
        };
        plan.check().map(|()| plan)
    }

    /// The line of the machine at `place` among the machines.
    pub(super) fn line_of_machine(&self, index: usize) -> Option<u32> {
        self.lines.line(&InvalidValue::of(MACHINES, "").item(self.words[0][index]).keys)
    }

    /// The line of the scheme `typed`.
    pub(super) fn line_of_scheme(&self, typed: &str) -> Option<u32> {
        let index = self.schemes.iter().position(|scheme| scheme == typed)?;
        self.lines.line(&InvalidValue::of(SCHEMES, "").item(self.words[1][index]).keys)
    }

    /// The line of the application called `name`.
    pub(super) fn line_of_app(&self, name: &str) -> Option<u32> {
        self.lines.line(&InvalidValue::of("apps", "").within(name).keys)
    }

    /// How many cells there are.
    pub(super) fn cells(&self) -> usize {
        [self.mixes.len(), self.machines.len(), self.schemes.len(), self.seeds.len()]
            .into_iter()
            .fold(1, usize::saturating_mul)
    }

    /// The arrival cycles of a mix, without applications that start at cycle 0.
    pub(super) fn arrivals(&self, mix: &[usize]) -> Vec<(String, Cycle)> {
        let turn = |index: usize| self.spacing.saturating_mul(to_u64(index));
        let of = |(index, &app): (usize, &usize)| {
            let name = &self.apps[app].name;
            (name.clone(), self.arrivals.get(name).copied().unwrap_or_else(|| turn(index)))
        };
        let named =
            |(name, cycle): &(String, Cycle)| *cycle > 0 || self.arrivals.contains_key(name);
        mix.iter().enumerate().map(of).filter(named).collect()
    }

    fn check(&self) -> Result<(), InvalidValue> {
        for (key, count) in [("seeds", self.seeds.len()), (SCHEMES, self.schemes.len())] {
            if count == 0 {
                return Err(InvalidValue::of(key, format!("{key}: expected one at least")));
            }
        }
        let twice = |at: &usize| self.seeds[..*at].contains(&self.seeds[*at]);
        if let Some(at) = (0..self.seeds.len()).find(twice) {
            let message = format!("seeds: {} appears twice: leave one out", self.seeds[at]);
            return Err(InvalidValue::of("seeds", message).item(at));
        }
        if self.cells() > MAX_CELLS {
            let message = format!("expected at most {MAX_CELLS} cells, found {}", self.cells());
            return Err(InvalidValue { keys: Vec::new(), message });
        }
        self.check_end()?;
        let mut sizes: Vec<&Vec<usize>> = self.mixes.iter().collect();
        sizes.sort_by_key(|mix| mix.len());
        sizes.dedup_by_key(|mix| mix.len());
        for (typed, word) in self.schemes.iter().zip(&self.words[1]) {
            for mix in &sizes {
                let apps: Vec<AppName> = mix.iter().map(|&app| self.apps[app].clone()).collect();
                parse_scheme(typed, &apps).map_err(|error| {
                    InvalidValue::of(SCHEMES, format!("schemes: {}: {error}", shown(typed)))
                        .item(*word)
                })?;
            }
        }
        Ok(())
    }

    fn check_end(&self) -> Result<(), InvalidValue> {
        let targets = self.until.when == EndWhen::Targets;
        let message = match self.window {
            Some(0) => String::from("window: expected at least 1, found 0"),
            Some(_) if !targets && self.until.when != EndWhen::Clock => format!(
                "window: belongs to until = \"targets\" or \"cycles=N\", found until = \"{}\"",
                self.until
            ),
            None if targets && self.until.cycles.is_none() => {
                let message = "window: expected with until = \"targets\", as window = 2000000";
                return Err(InvalidValue::of("until", message));
            }
            _ => return Ok(()),
        };
        Err(InvalidValue::of("window", message))
    }
}

fn apps(folder: &Path, raw: &BTreeMap<String, String>) -> Result<Vec<AppName>, InvalidValue> {
    if raw.is_empty() {
        let message = "expected applications in [apps], as saxpy = \"synth:saxpy\"";
        return Err(InvalidValue::of("apps", message));
    }
    if raw.len() > MAX_APPS {
        let message = format!("apps: expected at most {MAX_APPS}, found {}", raw.len());
        return Err(InvalidValue::of("apps", message));
    }
    Ok(raw.iter().map(|(name, source)| AppName::within(folder, name, source)).collect())
}

/// Expands the items of the list `key` to values, and gives the index of each value's item.
/// Refuses a list that expands too far, before it expands further.
fn expanded<T>(
    key: &str,
    items: &[String],
    make: impl Fn(NamedSettings) -> T,
) -> Result<(Vec<T>, Vec<usize>), InvalidValue> {
    let (mut values, mut indices) = (Vec::new(), Vec::new());
    for (index, item) in items.iter().enumerate() {
        let invalid = |error| InvalidValue::of(key, format!("{key}: {error}")).item(index);
        for one in combinations(item).map_err(invalid)? {
            values.push(make(one));
            indices.push(index);
        }
        if values.len() > MAX_CELLS {
            let most = format!("expected at most {MAX_CELLS} after lists are multiplied out");
            return Err(InvalidValue::of(key, format!("{key}: {most}")));
        }
    }
    Ok((values, indices))
}

/// The machines, and by machine the index of its item.
fn machines(
    folder: &Path,
    items: &[String],
) -> Result<(Vec<NamedSettings>, Vec<usize>), InvalidValue> {
    if items.is_empty() {
        return Err(InvalidValue::of(MACHINES, "expected machines, as machines = [\"v100\"]"));
    }
    expanded(MACHINES, items, |mut machine| {
        if machine.name.contains('/') || machine.name.ends_with(".toml") {
            machine.name = folder.join(&machine.name).display().to_string();
        }
        machine
    })
}

/// The schemes, and by scheme the index of its item.
fn schemes(items: &[String]) -> Result<(Vec<String>, Vec<usize>), InvalidValue> {
    let is_replay = |item: &String| item.split(':').next().is_some_and(|n| n.trim() == REPLAY);
    if let Some(index) = items.iter().position(is_replay) {
        let message = "schemes: replay is only for the run that it repeats";
        return Err(InvalidValue::of(SCHEMES, message).item(index));
    }
    expanded(SCHEMES, items, |scheme| {
        let settings = scheme.settings.iter().map(|(key, value)| format!(":{key}={value}"));
        scheme.name.clone() + &settings.collect::<String>()
    })
}

fn arrivals(
    arrive: BTreeMap<String, Cycle>,
    names: &[&str],
) -> Result<BTreeMap<String, Cycle>, InvalidValue> {
    if let Some(name) = arrive.keys().find(|name| !names.contains(&name.as_str())) {
        let hint = did_you_mean(name, names.iter().copied());
        return Err(
            InvalidValue::of("arrive", format!("arrive: no application {name}{hint}")).within(name)
        );
    }
    Ok(arrive)
}

/// The names in a plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlanNames {
    /// Every application.
    pub(crate) apps: Vec<String>,
    /// Every mix: its applications.
    pub(crate) mixes: Vec<Vec<String>>,
    /// Every scheme with its parameters.
    pub(crate) schemes: Vec<String>,
}

/// The names in the plan at `path`; reads none of the files that it names.
///
/// # Errors
/// As reading the plan.
pub(crate) fn plan_names(path: &Path) -> Result<PlanNames, SweepError> {
    let plan = Plan::read(path)?;
    let name = |&app: &usize| plan.apps[app].name.clone();
    Ok(PlanNames {
        apps: plan.apps.iter().map(|app| app.name.clone()).collect(),
        mixes: plan.mixes.iter().map(|mix| mix.iter().map(name).collect()).collect(),
        schemes: plan.schemes,
    })
}

/// A name with settings of one value each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedSettings {
    pub(super) name: String,
    pub(super) settings: Vec<(String, String)>,
}

/// Every combination of the values in `name:key=1,2:other=a,b`; the last list varies fastest.
///
/// # Errors
/// When a part has no `=`, a list has an empty item, or a key is repeated.
pub(super) fn combinations(typed: &str) -> Result<Vec<NamedSettings>, String> {
    let mut parts = typed.split(':');
    let name = parts.next().unwrap_or_default().trim().to_owned();
    if name.is_empty() {
        return Err(format!("expected a name, found {}", quoted(typed.as_bytes())));
    }
    let mut all = vec![NamedSettings { name, settings: Vec::new() }];
    for part in parts {
        let found = || quoted(part.as_bytes());
        let (key, values) = part
            .split_once('=')
            .ok_or_else(|| format!("expected key=value after the colon, found {}", found()))?;
        let (key, values) = (key.trim(), list(values));
        if all[0].settings.iter().any(|(known, _)| known == key) {
            return Err(format!("{} appears twice in {}", shown(key), quoted(typed.as_bytes())));
        }
        if key.is_empty() || values.iter().any(|value| value.is_empty()) {
            return Err(format!("expected key=value or key=value,value, found {}", found()));
        }
        if all.len().saturating_mul(values.len()) > MAX_COMBINATIONS {
            return Err(format!("expected at most {MAX_COMBINATIONS} combinations in one item"));
        }
        let with = |one: &NamedSettings, value: &str| {
            let mut one = one.clone();
            one.settings.push((key.to_owned(), value.to_owned()));
            one
        };
        all = all.iter().flat_map(|one| values.iter().map(move |v| with(one, v))).collect();
    }
    Ok(all)
}

/// The most combinations of one item.
const MAX_COMBINATIONS: usize = 10_000;

/// The values between commas outside brackets and quotes.
fn list(values: &str) -> Vec<&str> {
    let (mut found, mut from, mut depth, mut quoted) = (Vec::new(), 0, 0_i32, false);
    for (at, letter) in values.char_indices() {
        match letter {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if depth == 0 && !quoted => {
                found.push(values[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    found.push(values[from..].trim());
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use gpumodel_trace::workload::Workload;

    use super::{Plan, combinations};

    const GOOD: &str = "machines = ['v100', 'own.toml:l1.latency_cycles=20,40']\n\
        schemes = ['left-over', 'warped-slicer:window=5000,10000:delay=0,7']\n\
        seeds = [1, 2]\nuntil = 'targets'\nwindow = 1000\narrive = { b = 50 }\n\
        [apps]\na = 'synth:saxpy'\nb = 'x/b.gpt'\n[mixes]\nall_pairs = true\n";

    #[test]
    fn the_plans_that_come_with_the_program_name_what_there_is() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let entries = std::fs::read_dir(root.join("models/plans")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let mut count = 0;
        for path in paths.chain([root.join("reports/sharing.toml")]) {
            let plan = Plan::read(&path).unwrap();
            let files = crate::models(None).unwrap();
            for machine in &plan.machines {
                files.machine(&machine.name, &machine.settings).unwrap();
            }
            for app in &plan.apps {
                let model = app.path.to_str().unwrap().strip_prefix("synth:").unwrap();
                let (model, scale) = model.split_once(":scale=").unwrap_or((model, "1"));
                Workload::load_scaled(model, &files, scale.parse().unwrap()).unwrap();
            }
            count += 1;
        }
        assert!(count > 5, "{count} plans");
    }

    fn read(text: &str) -> Result<Plan, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.toml");
        std::fs::write(&path, text).unwrap();
        Plan::read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn cells_are_the_product_of_what_is_listed() {
        let plan = read(GOOD).unwrap();
        assert_eq!((plan.machines.len(), plan.schemes.len()), (3, 5));
        assert_eq!(plan.cells(), 3 * 5 * 2);
        assert_eq!(plan.schemes[4], "warped-slicer:window=10000:delay=7");
        assert!(plan.machines[2].name.ends_with("/own.toml"), "{:?}", plan.machines);
        assert!(plan.apps[1].path.ends_with("x/b.gpt") && plan.apps[1].path.is_absolute());
    }

    #[test]
    fn plans_beyond_bounds_are_refused() {
        let list = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let wide = format!("'spatial:a={0}:b={0}:c={0}'", list(1000));
        let long = format!("'w:a={0}:b={0}', ", list(100)).repeat(2000);
        let apps: String = (0..3000).map(|n| format!("a{n} = 'x'\n")).collect();
        for (old, new, words) in [
            ("'left-over'", wide.as_str(), "at most 10000 combinations"),
            ("'left-over', ", long.as_str(), "schemes: expected at most 200000"),
            ("'v100', ", long.as_str(), "machines: expected at most 200000"),
            ("a = 'synth:saxpy'\n", apps.as_str(), "mixes: expected at most 100000"),
        ] {
            let said = read(&GOOD.replacen(old, new, 1)).unwrap_err();
            assert!(said.contains(words), "{words}: {said}");
        }
    }

    #[test]
    fn invalid_plans_are_refused_with_their_line() {
        for (old, new, words) in [
            ("machines", "machnes", "plan.toml:1: unknown key `machnes`; did you mean `machines`"),
            ("all_pairs", "all_pair", "plan.toml:11: unknown key `mixes.all_pair`"),
            ("'left-over'", "'leftover'", "plan.toml:2: schemes: leftover: "),
            ("'left-over'", "'leftover'", "did you mean left-over?"),
            ("delay=", "dely=", "did you mean delay?"),
            ("window=5000", "window=x", "found `x`"),
            ("arrive = { b", "arrive = { c", "plan.toml:6: arrive: no application c"),
            ("window = 1000\n", "", "window: expected with until"),
            ("'targets'", "'all'", "plan.toml:5: window: belongs to until"),
            ("'targets'", "'never'", "plan.toml:4: until: expected all, first"),
            (
                "window = 1000",
                "window = -1",
                "plan.toml:5: `window`: expected a whole number from 0",
            ),
            (
                "window = 1000",
                "spacing = -5",
                "`spacing`: expected a whole number from 0 on, found",
            ),
            ("seeds = [1, 2]", "seeds = []", "plan.toml:3: seeds: expected one"),
            ("seeds = [1, 2]", "seeds = [1, 2, 1]", "plan.toml:3: seeds: 1 appears twice"),
            ("a = 'synth:saxpy'\nb = 'x/b.gpt'\n", "", "expected applications"),
            (
                "all_pairs = true",
                "lists = [['a', 'q']]",
                "plan.toml:11: mixes.lists, list 1: no application q",
            ),
            ("all_pairs = true", "", "expected mixes"),
            ("'left-over'", "'bp-bs', 'replay:x.json'", "replay"),
            ("'left-over'", "'solo'", "runs one application"),
            ("'left-over'", "'ilp'", "queue"),
        ] {
            let text = GOOD.replacen(old, new, 1);
            assert_ne!(text, GOOD, "{old}");
            let said = read(&text).unwrap_err();
            assert!(said.contains(words) && said.contains("plan.toml"), "{new}: {said}");
        }
    }

    fn message(typed: &str) -> Vec<String> {
        let word = |(key, value): &(String, String)| format!("{key}={value}");
        let all = combinations(typed).unwrap().into_iter();
        all.map(|one| {
            let words: Vec<String> = one.settings.iter().map(word).collect();
            format!("{}|{}", one.name, words.join("|"))
        })
        .collect()
    }

    #[test]
    fn lists_multiply_out() {
        assert_eq!(message("even"), ["even|"]);
        assert_eq!(message("w:a=1, 2:b=x,y"), ["w|a=1|b=x", "w|a=1|b=y", "w|a=2|b=x", "w|a=2|b=y"]);
        assert_eq!(message("m:k=[1,2],[3]"), ["m|k=[1,2]", "m|k=[3]"]);
    }

    #[test]
    fn invalid_settings_are_refused() {
        for invalid in ["", ":a=1", "w:a", "w:a=", "w:a=1,,2", "w:=1", "w:a=1:a=2"] {
            assert!(combinations(invalid).is_err(), "{invalid}");
        }
        let many = format!(
            "w:a={0}:b={0}:c={0}",
            (0..30).map(|n| n.to_string()).collect::<Vec<_>>().join(",")
        );
        assert!(combinations(&many).unwrap_err().contains("at most"));
    }

    #[test]
    fn long_words_are_cut_in_errors() {
        let long = "\u{7f}é".repeat(5000);
        for invalid in [format!("w:{long}=1:{long}=2"), format!("w:{long}"), format!(":{long}")] {
            let error = combinations(&invalid).unwrap_err();
            assert!(error.len() < 500, "{} bytes: {error}", error.len());
        }
    }
}
