//! What an application had of the link to the host.

use gpumodel_core::units::Cycle;
use serde::{Deserialize, Serialize};

/// Copies and page faults of an application, where they take time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LinkRecord {
    /// Copies to the device.
    pub host_to_device_copies: u64,
    /// Their bytes.
    pub host_to_device_bytes: u64,
    /// Copies to the host.
    pub device_to_host_copies: u64,
    /// Their bytes.
    pub device_to_host_bytes: u64,
    /// Copies within the device.
    pub device_to_device_copies: u64,
    /// Their bytes.
    pub device_to_device_bytes: u64,
    /// Cycles during which a copy was under way, waits for its engine among them.
    pub copy_cycles: Cycle,
    /// Pages of managed memory that came because a kernel touched them.
    pub page_faults: u64,
    /// Their bytes.
    pub page_fault_bytes: u64,
    /// Cycles during which such a page was awaited.
    pub page_fault_cycles: Cycle,
}

impl LinkRecord {
    /// What was copied, in words: `None` where nothing was.
    #[must_use]
    pub fn copies(&self) -> Option<String> {
        let ways = [
            (self.host_to_device_copies, self.host_to_device_bytes, "to the device"),
            (self.device_to_host_copies, self.device_to_host_bytes, "to the host"),
            (self.device_to_device_copies, self.device_to_device_bytes, "within the device"),
        ];
        let said = ways.iter().filter(|way| way.0 > 0);
        let said: Vec<String> =
            said.map(|(copies, bytes, way)| format!("{copies} {way} ({bytes} bytes)")).collect();
        (!said.is_empty()).then(|| {
            format!("copies: {}, under way for {} cycles", said.join(", "), self.copy_cycles)
        })
    }

    /// What faulted, in words: `None` where nothing did.
    #[must_use]
    pub fn faults(&self) -> Option<String> {
        (self.page_faults > 0).then(|| {
            format!(
                "page faults of managed memory: {} ({} bytes), awaited for {} cycles",
                self.page_faults, self.page_fault_bytes, self.page_fault_cycles
            )
        })
    }
}
