//! Warps that wait for instructions, and code on its way to the SM.

use gpumodel_core::units::{Cycle, SECTOR_BYTES, to_u32};

use super::super::chip::Chip;
use super::super::event::Event;
use super::super::packet::{Ask, Origin, Packet};
use super::Sm;
use super::warp::Blocked;

/// First address of code: above all user memory, below what stands for local
/// memory.
const CODE_BASE: u64 = 0xf << 44;

impl Sm {
    /// A warp waits for a line of code.
    pub(super) fn await_code(&mut self, warp: u16, line: u32, chip: &mut Chip) {
        let now = chip.queue.now();
        let index = self.scheduler_of(warp);
        let resident = self.warp(warp);
        resident.delivered = Some(line);
        let kernel = resident.kernel;
        let (profile, counts) = chip.profile_and_counts(kernel);
        let end = profile.lines().end();
        let fetch = self.fetch.as_mut().expect("lines are missing where caches are");
        let counted = counts.fetch;
        let ready = fetch.window(index, kernel, now).miss(line, end, &mut counts.fetch);
        self.counts.fetch.grow(&counted, &counts.fetch);
        fetch.sleep(warp, line, ready);
        self.block(warp, Blocked::Fetch);
        if let Some(cycle) = ready {
            self.set_alarm(cycle, chip);
        }
        self.send_code(chip);
    }

    /// Sends the requests for code that the network takes.
    pub(super) fn send_code(&mut self, chip: &mut Chip) {
        let Some(fetch) = self.fetch.as_mut() else { return };
        let now = chip.queue.now();
        while let Some(sector) = fetch.next_sector() {
            if let Err(at) = chip.fabric.port_room(self.id, now) {
                if let Some(at) = at {
                    self.set_alarm(at, chip);
                }
                return;
            }
            fetch.sent();
            let place = u64::from(sector.line) * u64::from(fetch.sectors());
            let code = CODE_BASE + (place + u64::from(sector.sector)) * SECTOR_BYTES;
            let constants = self.constants.as_ref();
            let constant = constants.and_then(|c| c.outer_address(sector.line, chip.code_end()));
            let (ask, asked) = match constant {
                Some(first) => (Ask::Constant, first + u64::from(sector.sector) * SECTOR_BYTES),
                None => (Ask::Code, code),
            };
            let address = constant.map_or(code, |_| chip.physical(asked));
            let slice = chip.fabric.slice_of(address);
            chip.send(Packet {
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
    fn set_alarm(&mut self, cycle: Cycle, chip: &mut Chip) {
        if self.fetch.as_mut().is_some_and(|fetch| fetch.set_alarm(cycle)) {
            chip.queue.schedule(cycle, Event::Fetch { sm: self.id });
        }
    }

    /// Wakes the warps whose lines are there, all at once; requests leave where
    /// the port was full.
    pub(in super::super) fn on_fetch(&mut self, chip: &mut Chip) {
        let Some(fetch) = self.fetch.as_mut() else { return };
        let now = chip.queue.now();
        let mut woken = std::mem::take(&mut self.woken);
        fetch.wake(now, &mut woken);
        for &warp in &woken {
            let index = self.scheduler_of(warp);
            self.schedulers[index].advance(now, &mut chip.counts);
            self.unblock(warp, Blocked::Fetch);
            self.begin_burst(warp, 0.0, chip);
        }
        for index in 0..self.schedulers.len() {
            if woken.iter().any(|&warp| self.scheduler_of(warp) == index) {
                self.settle(index, chip);
            }
        }
        woken.clear();
        self.woken = woken;
        self.send_code(chip);
    }

    /// A sector of code has come.
    pub(super) fn on_code(&mut self, packet: &Packet, done: Cycle, chip: &mut Chip) {
        let Some(fetch) = self.fetch.as_mut() else { return };
        let sector = (packet.address - CODE_BASE) / SECTOR_BYTES;
        let line = to_u32(sector / u64::from(fetch.sectors()));
        if fetch.arrived(line, done) {
            self.set_alarm(done, chip);
        }
    }
}
