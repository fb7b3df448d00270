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

use crate::config::Machine;
use crate::gpu::error::MachineError;
use crate::gpu::hardware::Hardware;
use crate::mmu::Mmu;
use crate::sm::Sm;

/// Which application owns each memory channel, and the change of owners under way.
#[derive(Debug)]
pub(crate) struct ChannelControl {
    /// Owners under the plan in force.
    owners: Vec<Option<AppId>>,
    change: Option<Reallocation>,
    /// By application: cycles during which its SMs rested, up to when they last went on.
    rested: Vec<Cycle>,
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

/// Refuses plans that give channels away on a machine where none can be owned.
pub(crate) fn refuse_unowned(plan: &Plan, hardware: &Hardware<'_>) -> Result<(), MachineError> {
    let Hardware { machine, shared_state, .. } = hardware;
    let owns = shared_state.mmu.as_ref().is_some_and(Mmu::owns_channels);
    if !plan.instances().is_empty() && (machine.mig.is_none() || shared_state.mmu.is_some()) {
        return Err(MachineError::Unsupported("memory slices for one application alone"));
    }
    let ideal = machine.translation.as_ref().is_some_and(|spec| spec.ideal);
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

impl ChannelControl {
    /// No channel of `machine` is owned by any of `apps` applications.
    pub(crate) fn new(machine: &Machine, apps: usize) -> Self {
        let owners = vec![None; to_usize(machine.dram.channels)];
        Self { owners, change: None, rested: vec![0; apps] }
    }

    /// Owner of each memory channel under the plan in force.
    pub(crate) fn owners(&self) -> &[Option<AppId>] {
        &self.owners
    }

    /// True while SMs come to rest before channels change hands.
    pub(crate) fn is_changing(&self) -> bool {
        self.change.is_some()
    }

    /// True while flushed lines are being written before channels change hands.
    pub(crate) fn is_flushing(&self) -> bool {
        self.change.as_ref().is_some_and(|rest| rest.flushed.is_some())
    }

    /// Lets applications have the memory slices and channels of a plan that comes into force.
    pub(crate) fn follow(&mut self, plan: &Plan, hardware: &mut Hardware<'_>) {
        let Hardware { machine, shared_state, .. } = hardware;
        if let Some(mig) = &machine.mig {
            shared_state.memory_system.divide(plan.instances(), mig.memory_slices);
        }
        let Some(mmu) = &mut shared_state.mmu else { return };
        let (mut apps, mut channels) = (Vec::new(), Vec::new());
        for app in 0..self.rested.len() {
            let own: &[u32] = plan.channels().get(app).map_or(&[], Vec::as_slice);
            if own.is_empty() && !plan.channels().is_empty() {
                continue;
            }
            if let Some(before) = mmu.own(app, own, plan.migration()) {
                apps.push(app);
                channels.extend(before.iter().chain(own).map(|&channel| (channel, app)));
            }
        }
        let before = self.change_owners(plan);
        if apps.is_empty() || plan.migration().stays() {
            return;
        }
        for (channel, app) in &mut channels {
            // Without an owner before: what is dirty there counts as the new owner's.
            *app = before[to_usize(*channel)].map_or(*app, AppId::index);
        }
        channels.sort_by_key(|&(channel, _)| channel);
        channels.dedup_by_key(|(channel, _)| *channel);
        self.come_to_rest(apps, channels, hardware);
    }

    /// Notes the owners under a plan; returns those before.
    fn change_owners(&mut self, plan: &Plan) -> Vec<Option<AppId>> {
        let mut owners = vec![None; self.owners.len()];
        for (app, list) in plan.channels().iter().enumerate() {
            for &channel in list {
                owners[to_usize(channel)] = Some(AppId(to_u16(app)));
            }
        }
        std::mem::replace(&mut self.owners, owners)
    }

    fn come_to_rest(
        &mut self,
        apps: Vec<usize>,
        channels: Vec<(u32, usize)>,
        hardware: &mut Hardware<'_>,
    ) {
        let now = hardware.now();
        let Hardware { sms, shared_state, dispatcher, .. } = hardware;
        sms.iter_mut().for_each(Sm::forget_pages);
        shared_state.mmu.iter_mut().for_each(Mmu::hold_moves);
        let mut rest = self.change.take().unwrap_or_default();
        for app in apps {
            if !rest.apps.iter().any(|&(other, _)| other == app) {
                rest.apps.push((app, now));
            }
        }
        rest.channels.extend(channels);
        rest.flushed = None;
        for (sm, state) in sms.iter_mut().enumerate() {
            let held = |&app: &usize| dispatcher.held[app][sm].ctas > 0;
            let known = rest.sms.iter().any(|&(other, _)| other == sm);
            if !known && rest.apps.iter().map(|(app, _)| app).any(held) {
                rest.sms.push((sm, state.rest()));
            }
        }
        self.change = Some(rest);
        self.go_on_at_rest(hardware);
    }

    /// An SM may have come to rest.
    pub(crate) fn note_quiet(&mut self, sm: usize, hardware: &mut Hardware<'_>) {
        let Some(rest) = &mut self.change else { return };
        let quiet = hardware.sms[sm].is_quiet();
        let Some(place) = rest.sms.iter_mut().find(|(other, _)| *other == sm) else { return };
        place.1 |= quiet;
        self.go_on_at_rest(hardware);
    }

    /// When all SMs concerned rest, caches are flushed; when that is written, the SMs go
    /// on.
    pub(crate) fn go_on_at_rest(&mut self, hardware: &mut Hardware<'_>) {
        let all = |rest: &Reallocation| rest.sms.iter().all(|&(_, quiet)| quiet);
        let Some(mut rest) = self.change.take_if(|rest| all(rest)) else { return };
        let now = hardware.now();
        let Hardware { sms, shared_state, dispatcher, .. } = hardware;
        if rest.flushed.is_none() {
            let first = |app| to_u32(dispatcher.kernels_of(app).first().copied().unwrap_or(0));
            let of = |&(channel, app): &(u32, usize)| (channel, first(app));
            let channels: Vec<(u32, u32)> = rest.channels.iter().map(of).collect();
            shared_state.memory_system.flush(&channels, &mut shared_state.queue);
        }
        let since = *rest.flushed.get_or_insert(now);
        let flushing =
            |&(channel, _): &(u32, usize)| shared_state.memory_system.is_flushing(channel);
        if rest.channels.iter().any(flushing) && now - since < MAX_FLUSH_CYCLES {
            self.change = Some(rest);
            return;
        }
        if let Some(mmu) = &mut shared_state.mmu {
            mmu.resume_moves(&mut shared_state.queue);
        }
        for &(sm, _) in &rest.sms {
            sms[sm].ask_again(shared_state);
        }
        for &(app, since) in &rest.apps {
            self.rested[app] += now - since;
        }
    }

    /// Cycles up to `now` during which the SMs of an application asked for nothing, as
    /// channels changed hands.
    pub(crate) fn resting_cycles(&self, app: usize, now: Cycle) -> Cycle {
        let mut open = self.change.iter().flat_map(|rest| &rest.apps);
        let since = open.find(|&&(other, _)| other == app);
        self.rested[app] + since.map_or(0, |&(_, since)| now - since)
    }
}
