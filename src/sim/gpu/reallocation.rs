//! Memory channels change hands (UGPU, section 4.4).
//!
//! When a plan gives applications with pages other channels, all L1 TLBs forget
//! their pages at once. SMs with CTAs of such an application ask for nothing more
//! until what they have in flight is answered; then their L1s and the L2 slices of
//! the channels concerned are flushed, and when what was dirty in them is in memory
//! the SMs continue. Pages follow when they are touched, from then on: no page leaves its
//! frame before everything written to it is in memory.

use gpumodel_core::contract::Plan;
use gpumodel_core::units::{AppId, Cycle, to_u16, to_u32, to_usize};

use crate::gpu::Gpu;
use crate::gpu::app::AppMoved;
use crate::gpu::error::MachineError;

/// Which application owns each memory channel, and the change of owners under way.
#[derive(Debug, Default)]
pub(crate) struct ChannelControl {
    /// Owners under the plan in force; empty before the first.
    owners: Vec<Option<AppId>>,
    change: Option<Reallocation>,
}

impl ChannelControl {
    /// True while SMs come to rest before channels change hands.
    pub(crate) fn is_changing(&self) -> bool {
        self.change.is_some()
    }
}

/// A change of owners for which SMs come to rest.
#[derive(Debug, Default)]
struct Reallocation {
    /// Applications whose channels change, and since when each of them rests.
    apps: Vec<(usize, Cycle)>,
    /// SMs that are to rest, and whether each does.
    sms: Vec<(usize, bool)>,
    /// Channels whose slices are flushed, and their previous owners, or the new ones where
    /// there were none: their lines are written on that application's account.
    channels: Vec<(u32, usize)>,
    /// When they were flushed; dirty lines are being written to memory.
    flushed: Option<Cycle>,
}

/// Cycles after which flushed lines are waited for no longer. A channel writes all that its
/// slices can hold in a sixth of that; only an application that comes meanwhile and reads
/// without pause can hold up the last of them.
const MAX_FLUSH_CYCLES: Cycle = 1 << 16;

impl Gpu<'_> {
    /// Refuses plans that give channels away on a machine where none can be owned.
    pub(crate) fn refuse_unowned(&self, plan: &Plan) -> Result<(), MachineError> {
        let owns =
            self.hardware.shared_state.mmu.as_ref().is_some_and(crate::mmu::Mmu::owns_channels);
        if !plan.instances().is_empty()
            && (self.hardware.machine.mig.is_none() || self.hardware.shared_state.mmu.is_some())
        {
            return Err(MachineError::Unsupported("memory slices for one application alone"));
        }
        let ideal = self.hardware.machine.translation.as_ref().is_some_and(|spec| spec.ideal);
        match plan.channels().is_empty() {
            true => Ok(()),
            false if !owns => {
                Err(MachineError::Unsupported("memory channels for one application alone"))
            }
            false if ideal && !plan.migration().stays() => Err(MachineError::Unsupported(
                "pages that follow their channels without TLBs that tell",
            )),
            false => Ok(()),
        }
    }

    /// Lets applications have the memory slices and channels of the plan in force.
    pub(crate) fn follow_channels(&mut self) {
        if let (Some(plan), Some(mig)) = (self.plan_control.plan(), &self.hardware.machine.mig) {
            self.hardware.shared_state.memory_system.divide(plan.instances(), mig.memory_slices);
        }
        let (Some(plan), Some(mmu)) =
            (self.plan_control.plan(), &mut self.hardware.shared_state.mmu)
        else {
            return;
        };
        let (mut apps, mut channels) = (Vec::new(), Vec::new());
        for app in 0..self.apps.len() {
            let own: &[u32] = plan.channels().get(app).map_or(&[], Vec::as_slice);
            if own.is_empty() && !plan.channels().is_empty() {
                continue;
            }
            if let Some(before) = mmu.own(app, own, plan.migration()) {
                apps.push(app);
                channels.extend(before.iter().chain(own).map(|&channel| (channel, app)));
            }
        }
        let moves = !plan.migration().stays();
        let owners = self.channel_owners();
        let owners = std::mem::replace(&mut self.channels.owners, owners);
        if apps.is_empty() || !moves {
            return;
        }
        for (channel, app) in &mut channels {
            // Without an owner before: what is dirty there counts as the new owner's.
            let before = owners.get(to_usize(*channel)).copied().flatten();
            *app = before.map_or(*app, AppId::index);
        }
        channels.sort_by_key(|&(channel, _)| channel);
        channels.dedup_by_key(|(channel, _)| *channel);
        self.come_to_rest(apps, channels);
    }

    fn come_to_rest(&mut self, apps: Vec<usize>, channels: Vec<(u32, usize)>) {
        self.hardware.sms.iter_mut().for_each(crate::sm::Sm::forget_pages);
        self.hardware.shared_state.mmu.iter_mut().for_each(crate::mmu::Mmu::hold_moves);
        let mut rest = self.channels.change.take().unwrap_or_default();
        let now = self.now();
        for app in apps {
            if !rest.apps.iter().any(|&(other, _)| other == app) {
                rest.apps.push((app, now));
            }
        }
        rest.channels.extend(channels);
        rest.flushed = None;
        for sm in 0..self.hardware.sms.len() {
            let held = |&app: &usize| self.hardware.dispatcher.held[app][sm].ctas > 0;
            let known = rest.sms.iter().any(|&(other, _)| other == sm);
            if !known && rest.apps.iter().map(|(app, _)| app).any(held) {
                rest.sms.push((sm, self.hardware.sms[sm].rest()));
            }
        }
        self.channels.change = Some(rest);
        self.go_on_at_rest();
    }

    /// An SM may have come to rest.
    pub(crate) fn note_quiet(&mut self, sm: usize) {
        let Some(rest) = &mut self.channels.change else { return };
        let quiet = self.hardware.sms[sm].is_quiet();
        let Some(place) = rest.sms.iter_mut().find(|(other, _)| *other == sm) else { return };
        place.1 |= quiet;
        self.go_on_at_rest();
    }

    /// Channels have written something.
    pub(crate) fn note_written(&mut self) {
        #[cfg(test)]
        self.hardware.shared_state.check_written();
        if self.channels.change.as_ref().is_some_and(|rest| rest.flushed.is_some()) {
            self.go_on_at_rest();
        }
    }

    /// When all SMs concerned rest, caches are flushed; when that is written, the SMs go
    /// on.
    fn go_on_at_rest(&mut self) {
        let all = |rest: &Reallocation| rest.sms.iter().all(|&(_, quiet)| quiet);
        let Some(mut rest) = self.channels.change.take_if(|rest| all(rest)) else { return };
        let now = self.now();
        if rest.flushed.is_none() {
            let first = |app| {
                to_u32(self.hardware.dispatcher.kernels_of(app).first().copied().unwrap_or(0))
            };
            let of = |&(channel, app): &(u32, usize)| (channel, first(app));
            let channels: Vec<(u32, u32)> = rest.channels.iter().map(of).collect();
            self.hardware
                .shared_state
                .memory_system
                .flush(&channels, &mut self.hardware.shared_state.queue);
        }
        let since = *rest.flushed.get_or_insert(now);
        let flushing = |&(channel, _): &(u32, usize)| {
            self.hardware.shared_state.memory_system.is_flushing(channel)
        };
        if rest.channels.iter().any(flushing) && now - since < MAX_FLUSH_CYCLES {
            self.channels.change = Some(rest);
            return;
        }
        if let Some(mmu) = &mut self.hardware.shared_state.mmu {
            mmu.resume_moves(&mut self.hardware.shared_state.queue);
        }
        for &(sm, _) in &rest.sms {
            self.hardware.sms[sm].ask_again(&mut self.hardware.shared_state);
        }
        for &(app, since) in &rest.apps {
            self.apps[app].rested_cycles += now - since;
        }
    }

    /// Cycles so far during which the SMs of an application asked for nothing, as
    /// channels changed hands.
    pub(crate) fn resting_cycles(&self, app: usize) -> Cycle {
        let mut open = self.channels.change.iter().flat_map(|rest| &rest.apps);
        let since = open.find(|&&(other, _)| other == app);
        let now = self.now();
        self.apps[app].rested_cycles + since.map_or(0, |&(_, since)| now - since)
    }

    /// What an application's changes have cost so far.
    pub(crate) fn moved(&self, app: usize) -> AppMoved {
        let memory = self.hardware.shared_state.memory_of(app);
        AppMoved {
            pages: memory.pages_moved,
            moving_cycles: memory.moving_cycles,
            vacating_cycles: self.apps[app].vacating_cycles(self.now()),
        }
    }

    /// Owner of each memory channel under the plan in force.
    pub(crate) fn channel_owners(&self) -> Vec<Option<AppId>> {
        let mut owners = vec![None; to_usize(self.hardware.machine.dram.channels)];
        let lists = self.plan_control.plan().map_or(&[][..], Plan::channels);
        for (app, list) in lists.iter().enumerate() {
            for &channel in list {
                owners[to_usize(channel)] = Some(AppId(to_u16(app)));
            }
        }
        owners
    }
}
