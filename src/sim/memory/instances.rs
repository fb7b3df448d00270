//! Applications whose data lie in separate channels (Multi-Instance GPU).

use std::sync::Arc;

use gpumodel_core::contract::MemoryInstance;

use crate::config::{AddressMap, Location};
use crate::mmu::address_space;

/// Where the data of applications lie that have memory slices to themselves.
#[derive(Debug, Default)]
pub(super) struct Instances(Vec<Option<Instance>>);

/// The channels that belong to one application.
#[derive(Debug)]
struct Instance {
    /// The mapping of a machine with as many channels.
    map: Arc<AddressMap>,
    /// The first channel.
    first: u32,
    /// They lie in one half of the L2.
    near: bool,
}

impl Instances {
    /// The instance of each application on a machine with the map `whole` that has
    /// `memory_slices`.
    pub(super) fn new(
        whole: &AddressMap,
        instances: &[MemoryInstance],
        memory_slices: u32,
    ) -> Self {
        let channels = whole.channels();
        let each = channels / memory_slices.max(1);
        let half = channels / 2;
        let instance = |one: &MemoryInstance| {
            let (first, owned) = (one.first * each, one.slices * each);
            let map = Arc::clone(whole.for_part(owned)?);
            let near = first + owned <= half || first >= half;
            Some(Instance { map, first, near })
        };
        Self(instances.iter().map(instance).collect())
    }

    /// Whether no application has one.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn of(&self, address: u64) -> Option<&Instance> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(address_space::app(address))?.as_ref()
    }

    /// Where an address lies on a machine with the map `whole`.
    #[inline]
    pub(super) fn locate(&self, whole: &AddressMap, address: u64) -> Location {
        match self.of(address) {
            Some(instance) => {
                let place = instance.map.locate(address);
                Location { channel: place.channel + instance.first, ..place }
            }
            None => whole.locate(address),
        }
    }

    /// Channel and slice of an address, as in [`Instances::locate`].
    #[inline]
    pub(super) fn slice_of(&self, whole: &AddressMap, address: u64) -> (u32, u32) {
        match self.of(address) {
            Some(instance) => {
                let (channel, slice) = instance.map.slice_of(address);
                (channel + instance.first, slice)
            }
            None => whole.slice_of(address),
        }
    }

    /// Whether an address lies in an instance that has slices in one half of the L2 alone.
    #[inline]
    pub(super) fn is_near(&self, address: u64) -> bool {
        self.of(address).is_some_and(|instance| instance.near)
    }
}
