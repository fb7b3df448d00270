//! UGPU: unbalanced slices of SMs and memory channels (Zhao et al., ISCA 2025), and the
//! schemes that the paper compares it with.

mod algorithm;
mod demand;
mod epoch;
mod online;
mod partition;
mod search;
mod static_partition;
#[cfg(test)]
mod tests;

pub(super) use online::{PARAMETERS, QOS_TARGET, qos_ugpu, ugpu};
pub(super) use search::{PARAMETERS as SEARCH, cd_search};
pub(super) use static_partition::{
    BALANCED, OFFLINE, QOS, SHARED, UNEQUAL, bp, bp_unequal, mps_share, qos_fixed, ugpu_offline,
};
