//! Clusters of CTAs: where they start, and what their shared memories and barrier take.

use serde::{Deserialize, Serialize};

use super::machine::Machine;

/// How CTAs of a cluster work together (CUDA C++ Programming Guide, thread block clusters).
///
/// The CTAs of a cluster start together on SMs of one GPC. What one reads, writes or updates in the
/// shared memory of another takes `remote_cycles` and, at the SM that asks, its bytes over
/// `remote_bytes_per_cycle`; the barrier of the cluster takes a message there and back. Not
/// modelled: conflicts of several SMs at the shared memory that they ask, and how far two SMs of a
/// GPC lie apart (an H800 measures 181 cycles to the nearest and up to 213).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// GPCs, which share the pairs of SMs out evenly, in the order of their numbers.
    pub gpcs: u16,
    /// Cycles of a load from the shared memory of another CTA, from issue to result.
    pub remote_cycles: u32,
    /// Bytes per cycle that an SM gets from or sends to the shared memories of others.
    pub remote_bytes_per_cycle: u32,
    /// Bytes per cycle of the L2 that all SMs of a GPC together get from it; 0: any number.
    #[serde(default)]
    pub gpc_bytes_per_l2_cycle: u32,
    /// SMs of a GPC that CTAs go to before they go to the next GPC; 0: all of them. An SM that
    /// has room for more warps comes first.
    #[serde(default)]
    pub sms_in_turn: u16,
}

/// More GPCs than any GPU has.
const MOST_GPCS: u16 = 64;

/// SMs of a TPC, which lie in one GPC.
const SMS_OF_TPC: u16 = 2;

impl Cluster {
    /// The GPC of an SM, on a machine of so many SMs.
    #[must_use]
    pub fn gpc_of(&self, sm: u16, sms: u16) -> u16 {
        let pairs = u32::from(sms.div_ceil(SMS_OF_TPC)).max(1);
        let pair = u32::from(sm / SMS_OF_TPC);
        u16::try_from(pair * u32::from(self.gpcs.max(1)) / pairs).unwrap_or(0)
    }

    /// The SMs in the order in which CTAs come to an empty machine of so many.
    #[must_use]
    pub fn dispatch_order(&self, sms: u16) -> Vec<u16> {
        let in_turn = if self.sms_in_turn == 0 { sms.max(1) } else { self.sms_in_turn };
        let mut seen = vec![0_u16; usize::from(self.gpcs.max(1))];
        let mut turns: Vec<(u16, u16)> = (0..sms)
            .map(|sm| {
                let before = &mut seen[usize::from(self.gpc_of(sm, sms))];
                *before += 1;
                ((*before - 1) / in_turn, sm)
            })
            .collect();
        turns.sort_unstable();
        turns.into_iter().map(|(_, sm)| sm).collect()
    }
}

/// What does not hold of a machine's clusters, as `key = value`.
pub(super) fn problems(machine: &Machine) -> Vec<String> {
    let Some(cluster) = &machine.cluster else { return Vec::new() };
    let mut wrong = Vec::new();
    if !(1..=MOST_GPCS).contains(&cluster.gpcs) {
        wrong.push(format!("cluster.gpcs = {} (from 1 to {MOST_GPCS})", cluster.gpcs));
    }
    let least = machine.shared.latency_cycles;
    if !(least..=10_000).contains(&cluster.remote_cycles) {
        let value = cluster.remote_cycles;
        wrong.push(format!(
            "cluster.remote_cycles = {value} (from shared.latency_cycles = {least} to 10000)"
        ));
    }
    let bytes = cluster.remote_bytes_per_cycle;
    if !(1..=1024).contains(&bytes) {
        wrong.push(format!("cluster.remote_bytes_per_cycle = {bytes} (from 1 to 1024)"));
    }
    let bytes = cluster.gpc_bytes_per_l2_cycle;
    if bytes != 0 && !(32..=65_536).contains(&bytes) {
        wrong.push(format!(
            "cluster.gpc_bytes_per_l2_cycle = {bytes} (from 32 to 65536, or 0: any number)"
        ));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::Cluster;

    #[test]
    fn gpcs_of_an_h100_have_16_or_18_sms() {
        let cluster = Cluster {
            gpcs: 8,
            remote_cycles: 203,
            remote_bytes_per_cycle: 16,
            gpc_bytes_per_l2_cycle: 0,
            sms_in_turn: 0,
        };
        let mut sizes = [0; 8];
        for sm in 0..132 {
            sizes[usize::from(cluster.gpc_of(sm, 132))] += 1;
            assert_eq!(cluster.gpc_of(sm, 132), cluster.gpc_of(sm / 2 * 2, 132), "a TPC is whole");
        }
        assert_eq!(sizes.iter().sum::<u16>(), 132);
        assert!(sizes.iter().all(|size| [16, 18].contains(size)), "{sizes:?}");
    }
    #[test]
    fn ctas_go_from_gpc_to_gpc() {
        let order = |sms_in_turn| {
            let cluster = Cluster {
                gpcs: 2,
                remote_cycles: 203,
                remote_bytes_per_cycle: 16,
                gpc_bytes_per_l2_cycle: 0,
                sms_in_turn,
            };
            cluster.dispatch_order(12)
        };
        assert_eq!(order(0), (0..12).collect::<Vec<_>>());
        assert_eq!(order(4), [0, 1, 2, 3, 6, 7, 8, 9, 4, 5, 10, 11]);
    }
}
