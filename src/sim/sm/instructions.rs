//! Warps that wait for instructions, and code on its way to the SM.

use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u32};

use super::Sm;
use super::warp::Blocked;
use crate::gpu::event_queue::Event;
use crate::gpu::shared_state::SharedState;
use crate::memory::packet::{Origin, Packet, RequestKind};

/// First address of code: above all user memory, below what stands for local
/// memory.
const CODE_BASE: u64 = 0xf << 44;

impl Sm {
    /// A warp waits for a line of code.
    pub(super) fn await_code(&mut self, warp: u16, line: u32, shared_state: &mut SharedState) {
        let now = shared_state.queue.now();
        let index = self.scheduler_of(warp);
        let resident = self.warp(warp);
        resident.delivered = Some(line);
        let kernel = resident.kernel;
        let (profile, counts) = shared_state.profile_and_counts(kernel);
        let end = profile.lines().end();
        let fetch = self.fetch.as_mut().expect("lines are missing where caches are");
        let counted = counts.fetch;
        let ready = fetch.window(index, kernel, now).miss(line, end, &mut counts.fetch);
        self.counts.fetch.grow(&counted, &counts.fetch);
        fetch.sleep(warp, line, ready);
        self.block(warp, Blocked::Fetch);
        if let Some(cycle) = ready {
            self.set_alarm(cycle, shared_state);
        }
        self.send_code(shared_state);
    }

    /// Sends the requests for code that the network takes.
    pub(super) fn send_code(&mut self, shared_state: &mut SharedState) {
        let Some(fetch) = self.fetch.as_mut() else { return };
        let now = shared_state.queue.now();
        while let Some(sector) = fetch.next_sector() {
            if let Err(at) = shared_state.memory_system.port_room(self.id, now) {
                if let Some(at) = at {
                    self.set_alarm(at, shared_state);
                }
                return;
            }
            fetch.sent();
            let place = u64::from(sector.line) * u64::from(fetch.sectors());
            let code = CODE_BASE + (place + u64::from(sector.sector)) * SECTOR_BYTES;
            let constants = self.constants.as_ref();
            let constant =
                constants.and_then(|c| c.outer_address(sector.line, shared_state.code_end()));
            let (ask, asked) = match constant {
                Some(first) => {
                    (RequestKind::Constant, first + u64::from(sector.sector) * SECTOR_BYTES)
                }
                None => (RequestKind::Code, code),
            };
            let address = constant.map_or(code, |_| shared_state.physical(asked));
            let slice = shared_state.memory_system.slice_of(address);
            shared_state.send(Packet {
                address,
                asked,
                ready: sector.ready.max(now),
                operation: u32::MAX,
                kernel: sector.kernel,
                bytes: 0,
                sectors: 1,
                sm: self.id,
                slice,
                ask,
                fills_l1: false,
                origin: Origin::Sm,
            });
        }
    }

    /// Schedules an event of instruction fetch, once per cycle.
    fn set_alarm(&mut self, cycle: Cycle, shared_state: &mut SharedState) {
        if self.fetch.as_mut().is_some_and(|fetch| fetch.set_alarm(cycle)) {
            shared_state.queue.schedule(cycle, Event::Fetch { sm: self.id });
        }
    }

    /// Wakes the warps whose lines are there, all at once; requests leave where
    /// the port was full.
    pub(crate) fn on_fetch(&mut self, shared_state: &mut SharedState) {
        let Some(fetch) = self.fetch.as_mut() else { return };
        let now = shared_state.queue.now();
        let mut woken = std::mem::take(&mut self.woken);
        fetch.wake(now, &mut woken);
        for &warp in &woken {
            let index = self.scheduler_of(warp);
            self.schedulers[index].advance(now, &mut shared_state.counts);
            self.unblock(warp, Blocked::Fetch);
            self.begin_interval(warp, 0.0, shared_state);
        }
        for index in 0..self.schedulers.len() {
            if woken.iter().any(|&warp| self.scheduler_of(warp) == index) {
                self.settle(index, shared_state);
            }
        }
        woken.clear();
        self.woken = woken;
        self.send_code(shared_state);
    }

    /// A sector of code has come.
    pub(super) fn on_code(&mut self, packet: &Packet, done: Cycle, shared_state: &mut SharedState) {
        let Some(fetch) = self.fetch.as_mut() else { return };
        let sector = (packet.address - CODE_BASE) / SECTOR_BYTES;
        let line = to_u32(sector / u64::from(fetch.sectors()));
        if fetch.arrived(line, done) {
            self.set_alarm(done, shared_state);
        }
    }
}
