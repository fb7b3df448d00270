//! UGPU: unbalanced slices of SMs and memory channels (Zhao et al., ISCA 2025), and what
//! it is compared with.

mod algorithm;
mod demand;
mod online;
mod partition;
mod priority;
mod search;
mod static_partition;
#[cfg(test)]
mod tests;

use gpumodel_core::contract::{Facts, LawBroken};

pub(super) use online::{PARAMETERS, QOS_TARGET, qos_ugpu, ugpu, ugpu_ori, ugpu_soft};
pub(super) use search::{PARAMETERS as SEARCH, bp_cd_search, cd_search};
pub(super) use static_partition::{
    BALANCED, QOS, SHARED, UNEQUAL, bp, bp_bs, bp_sb, mps_share, qos_bp, qos_mps_share,
};
pub(super) use static_partition::{OFFLINE, ugpu_offline};

/// Refuses machines whose channels nobody can own before anything runs on them.
fn refuse(facts: &Facts, owns: bool) -> Result<(), LawBroken> {
    if owns && facts.channel_groups.is_empty() { Err(LawBroken::NoGroups) } else { Ok(()) }
}

/// The same of machines whose pages cannot follow.
fn refuse_staying(facts: &Facts) -> Result<(), LawBroken> {
    refuse(facts, true)?;
    if facts.pages_follow { Ok(()) } else { Err(LawBroken::PagesStay) }
}
