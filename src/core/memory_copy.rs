//! Copies of memory between host and device, as programs ask for them.

/// Which way a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CopyDirection {
    /// From the host to the device.
    HostToDevice,
    /// From the device to the host.
    DeviceToHost,
    /// Within the device.
    DeviceToDevice,
}

impl CopyDirection {
    /// All directions.
    pub const ALL: [Self; 3] = [Self::HostToDevice, Self::DeviceToHost, Self::DeviceToDevice];

    /// The word of command lists.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::HostToDevice => "MemcpyHtoD",
            Self::DeviceToHost => "MemcpyDtoH",
            Self::DeviceToDevice => "MemcpyDtoD",
        }
    }
}

/// One copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryCopy {
    /// Which way it goes.
    pub direction: CopyDirection,
    /// Its first byte in device memory: where it goes, or on its way to the host where it comes
    /// from.
    pub address: u64,
    /// Length.
    pub bytes: u64,
    /// The CUDA stream of an asynchronous copy; `None`: the host waits for it.
    pub stream: Option<u64>,
}

impl MemoryCopy {
    /// A copy to the device for which the host waits.
    #[must_use]
    pub fn to_device(address: u64, bytes: u64) -> Self {
        Self { direction: CopyDirection::HostToDevice, address, bytes, stream: None }
    }
}
