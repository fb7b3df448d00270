//! Multi-Instance GPU: the instances into which a machine can be divided.

use gpumodel_core::contract::{MigFacts, MigProfile};
use serde::{Deserialize, Serialize};

use super::machine::Machine;

/// The instances of a machine.
///
/// An instance has SMs and memory slices to itself; the L2 and the channels belong to the memory
/// slices, in equal parts. The data of an application lie in its memory slices alone, spread over
/// their channels as over those of the whole machine. An instance that fits one half of an L2 in
/// two halves never asks the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mig {
    /// Memory slices of the machine.
    pub memory_slices: u32,
    /// The kinds of instances, each as
    /// `3g.20gb sms=42 memory=4 count=2 engines=3 starts=0,4`; none: the machine has no instances.
    pub profiles: Vec<String>,
}

impl Mig {
    /// The same as facts, without instances that need more SMs than `machine` has, as where a
    /// user has set fewer; `None` where none is left, or the channels are not whole slices.
    pub(crate) fn facts(&self, machine: &Machine) -> Option<MigFacts> {
        let profiles = self.profiles.iter().map(|row| profile(row)).collect::<Option<Vec<_>>>()?;
        let fits = |profile: &MigProfile| profile.sms <= machine.dispatch.sms;
        let profiles: Vec<MigProfile> = profiles.into_iter().filter(fits).collect();
        let memory_slices = self.memory_slices;
        let whole = memory_slices > 0 && machine.dram.channels.is_multiple_of(memory_slices);
        (whole && !profiles.is_empty()).then_some(MigFacts { memory_slices, profiles })
    }
}

/// The profile that `row` describes.
fn profile(row: &str) -> Option<MigProfile> {
    let mut words = row.split_whitespace();
    let name = words.next()?.to_owned();
    let mut found = MigProfile { name, ..MigProfile::default() };
    let mut seen = 0;
    for word in words {
        let (key, value) = word.split_once('=')?;
        match key {
            "sms" => found.sms = value.parse().ok()?,
            "memory" => found.memory_slices = value.parse().ok()?,
            "count" => found.instances = value.parse().ok()?,
            "engines" => found.copy_engines = value.parse().ok()?,
            "starts" => {
                found.starts = value.split(',').map(|at| at.parse().ok()).collect::<Option<_>>()?;
            }
            _ => return None,
        }
        seen += 1;
    }
    (seen == 5).then_some(found)
}

/// What does not hold of a machine's instances.
pub(super) fn problems(machine: &Machine) -> Vec<String> {
    let Some(mig) = machine.mig.as_ref().filter(|mig| !mig.profiles.is_empty()) else {
        return Vec::new();
    };
    let slices = mig.memory_slices;
    if slices == 0 || slices > 64 {
        return vec![format!("mig.memory_slices = {slices}")];
    }
    if machine.translation.is_some() {
        return vec![String::from(
            "mig with translation: expected one of them, since both place pages",
        )];
    }
    let mut wrong = Vec::new();
    for row in &mig.profiles {
        let Some(found) = profile(row) else {
            wrong.push(format!(
                "mig.profiles: `{row}`, expected as `3g.20gb sms=42 memory=4 count=2 engines=3 starts=0,4`"
            ));
            continue;
        };
        let inside =
            |&start: &u32| u64::from(start) + u64::from(found.memory_slices) <= slices.into();
        let counts = found.memory_slices > 0 && found.instances > 0 && found.sms > 0;
        if !(counts && found.starts.iter().all(inside)) {
            wrong.push(format!("mig.profiles: `{row}` of {slices} memory slices"));
        }
    }
    wrong
}
