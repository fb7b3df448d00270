//! UGPU: unbalanced slices of SMs and memory channels (Zhao et al., ISCA 2025), and what
//! it is compared with.

mod algorithm;
mod alone;
mod counted;
mod demand;
mod favoured;
mod fixed;
#[cfg(test)]
mod fixture;
mod offline;
mod online;
mod partition;
mod search;
#[cfg(test)]
mod tests;

use gpumodel_core::contract::{Facts, LawBroken};

pub(super) use fixed::{
    BALANCED, PROMISED as SET, SHARED, UNEQUAL, bp, bp_bs, bp_sb, mps_share, qos_bp, qos_mps_share,
};
pub(super) use offline::{PARAMETERS as OFFLINE, ugpu_offline};
pub(super) use online::{PARAMETERS, PROMISED, qos_ugpu, ugpu, ugpu_ori, ugpu_soft};
pub(super) use search::{PARAMETERS as SEARCH, bp_cd_search, cd_search};

/// Refuses machines whose channels nobody can own before anything runs on them.
fn refuse(facts: &Facts, owns: bool) -> Result<(), LawBroken> {
    if owns && facts.channel_groups.is_empty() { Err(LawBroken::NoGroups) } else { Ok(()) }
}

/// The same of machines whose pages cannot follow.
fn refuse_staying(facts: &Facts) -> Result<(), LawBroken> {
    refuse(facts, true)?;
    if facts.pages_follow { Ok(()) } else { Err(LawBroken::PagesStay) }
}
