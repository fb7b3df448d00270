//! What happens at the load/store unit of an SM and in its instruction fetch, and which warps and
//! CTAs go on with it.

use gpumodel_core::isa::{AsyncFields, BulkCopy, Effect};
use gpumodel_core::units::{Cycle, to_u32, to_usize};

use crate::gpu::feed::WarpStream;
use crate::gpu::shared_state::SharedState;
use crate::interval::SlotId;
use crate::memory::packet::{Operation, Packet, RequestKind, Target};
use crate::sm::Sm;
use crate::sm::barrier_objects::ObjectAccess;
use crate::sm::lsu::Served;
use crate::sm::lsu::access::{AccessKind, bulk_lines};
use crate::sm::lsu::queue::Freed;

impl Sm {
    /// Issues the memory instruction at the head of the warp's stream; the queue
    /// has room.
    pub(super) fn issue_access(
        &mut self,
        warp: u16,
        instruction: u32,
        slot: Option<SlotId>,
        shared_state: &mut SharedState,
    ) {
        let scheduler = self.warps.issue.scheduler_of(warp);
        let resident = self.warps.resident(warp);
        let kind = AccessKind::of(shared_state.profile(resident.kernel).decoded(instruction));
        if kind.is_asynchronous() {
            return self.issue_asynchronous(warp, kind.effect, shared_state);
        }
        let (ctas, cta) = (&self.ctas, resident.cta);
        let seat = || ctas.seat_of(cta);
        if let Some(access) = self.lsu.addresses.resolve(resident, kind, seat, shared_state) {
            self.lsu.issue((warp, resident, scheduler), (instruction, slot), &access, shared_state);
            self.hold_issue(shared_state);
        }
    }

    /// Issues a bulk copy or a step at a barrier object.
    fn issue_asynchronous(&mut self, warp: u16, effect: Effect, shared_state: &mut SharedState) {
        let Effect::Object(step) = effect else {
            return self.issue_bulk(warp, effect, shared_state);
        };
        let resident = self.warps.resident(warp);
        let fields = resident.stream.fields();
        let access = &mut self.lsu.addresses.access;
        resident.stream.access(access);
        let counts = &mut shared_state.counts[to_usize(resident.kernel)];
        counts.thread_instructions += u64::from(access.mask.count_ones());
        let access = ObjectAccess::new(step, access, fields.as_ref());
        self.ctas.step_at_object(warp, access, &mut self.warps, shared_state);
    }

    /// Issues the bulk copy at the head of the warp's stream; the queue has room.
    fn issue_bulk(&mut self, warp: u16, effect: Effect, shared_state: &mut SharedState) {
        let resident = self.warps.resident(warp);
        let (fields, kernel) = (resident.stream.fields(), resident.kernel);
        let lanes = resident.stream.skip(1);
        let counts = &mut shared_state.counts[to_usize(kernel)];
        counts.thread_instructions += lanes;
        if lanes == 0 {
            return;
        }
        let Some(AsyncFields::Copy(copy)) = fields else {
            counts.unknown_copies += 1;
            if effect == Effect::BulkLoad {
                let cta = usize::from(resident.cta);
                self.ctas.miss_bulk_load(cta, &mut self.warps, shared_state);
            }
            return;
        };
        counts.bulk_bytes += copy.bytes;
        let now = shared_state.queue.now();
        let target = self.bulk_target(warp, effect, &copy, now);
        self.warps.resident(warp).outstanding += 1;
        let kind = match effect {
            Effect::BulkStore => RequestKind::Write,
            Effect::BulkReduction => RequestKind::Reduction,
            _ => RequestKind::Read,
        };
        let tag = shared_state.windows(kernel).tag;
        let operation = (Operation::new(warp, target, now), kernel);
        self.lsu.move_lines(operation, kind, now, |lines| bulk_lines(&copy, tag, lines));
        self.lsu.schedule_service(now, shared_state);
        self.hold_issue(shared_state);
    }

    /// What waits for a bulk copy.
    fn bulk_target(&mut self, warp: u16, effect: Effect, copy: &BulkCopy, now: Cycle) -> Target {
        let resident = self.warps.resident(warp);
        if effect != Effect::BulkLoad {
            return Target::Group(resident.join_group(now));
        }
        let cta = self.ctas.get_mut(usize::from(resident.cta));
        cta.map_or(Target::Nothing, |cta| {
            let place = cta.objects.begin_copy(copy.barrier);
            Target::Object { place, bytes: to_u32(copy.bytes), multicast: copy.multicast }
        })
    }

    /// Holds the schedulers of which memory instructions have all operand collectors.
    #[inline]
    fn hold_issue(&mut self, shared_state: &mut SharedState) {
        let Some(most) = self.params.collectors else { return };
        for index in 0..self.warps.issue.schedulers.len() {
            let held = self.lsu.queue.of_scheduler(index) >= most;
            self.warps.issue.hold(index, held, shared_state);
        }
    }

    /// The load/store unit may continue.
    pub(crate) fn on_load_store(&mut self, shared_state: &mut SharedState) {
        self.retry_held(false, shared_state);
        if !self.lsu.begin_service(shared_state) {
            return;
        }
        let fetch = self.fetch.as_mut();
        let served = self.lsu.serve_head(fetch, &mut self.counts, shared_state);
        self.lsu.inform(&mut self.warps.issue);
        match served {
            Served::Nothing => return self.lsu.poll(shared_state),
            Served::Part => {}
            Served::Aside => {
                self.admit_blocked(shared_state);
                self.hold_issue(shared_state);
            }
            Served::Whole(number) => {
                if let Some(operation) = self.lsu.end_if_done(number) {
                    self.end_operation(&operation, shared_state);
                } else if self.params.posted_stores
                    && let Some(warp) = self.lsu.post(number)
                {
                    self.warps.resident(warp).posted += 1;
                    self.warps.wake_if_met(warp, shared_state);
                }
                self.admit_blocked(shared_state);
                self.hold_issue(shared_state);
            }
        }
        self.lsu.go_on_serving(shared_state);
        self.lsu.poll(shared_state);
    }

    /// Lets warps issue that waited for a place in the queue, behind the lines of CTAs that move.
    fn admit_blocked(&mut self, shared_state: &mut SharedState) {
        while self.lsu.queue.has_room() {
            if self.transfers.push_next(&mut self.lsu, &mut self.warps) {
                continue;
            }
            let issue = &self.warps.issue;
            let admitted = self.lsu.queue.admit(|warp| issue.scheduler_of(warp));
            let Some(warp) = admitted else { return };
            self.leave_queue(warp, shared_state);
        }
    }

    /// Lets the sectors try again that wait at the ends of the L1's pipelines.
    fn retry_held(&mut self, filled: bool, shared_state: &mut SharedState) {
        let mut place = self.lsu.data.begin_retry(filled, shared_state.queue.now());
        loop {
            let answer = self.lsu.data.retry_held(&mut place, shared_state);
            self.lsu.inform(&mut self.warps.issue);
            let Some((operation, at)) = answer else { return };
            self.answered(operation, 1, at, shared_state);
        }
    }

    /// Sectors of an operation have come at `done`.
    fn answered(&mut self, number: u32, sectors: u32, done: Cycle, shared: &mut SharedState) {
        if let Some(operation) = self.lsu.answered(number, sectors, done) {
            self.end_operation(&operation, shared);
        }
    }

    /// An operation has ended: its warp may go on, or the CTA that waited for it.
    fn end_operation(&mut self, operation: &Operation, shared_state: &mut SharedState) {
        let &Operation { warp, target, latest, posted, .. } = operation;
        if let Target::Launch(kernel) = target {
            return self.ctas.end_store(kernel, shared_state);
        }
        let resident = self.warps.resident(warp);
        resident.posted -= u32::from(posted);
        resident.end_operation(target, latest);
        if let Target::Object { place, bytes, multicast } = target {
            let done = latest + self.params.bulk_copy;
            resident.last_done = resident.last_done.max(done);
            let (cta, copy) = (usize::from(resident.cta), (place, bytes, multicast));
            self.ctas.end_bulk_load(cta, copy, done, &mut self.warps, shared_state);
        }
        if let Some(cta) = self.warps.wake_if_met(warp, shared_state) {
            self.leave_if_quiet(cta, shared_state);
        }
    }

    /// An answer has come.
    pub(crate) fn on_reply(
        &mut self,
        packet: &Packet,
        done: Cycle,
        shared_state: &mut SharedState,
    ) {
        let freed = if packet.kind == RequestKind::Code {
            if let Some(fetch) = &mut self.fetch {
                fetch.on_code(packet, done, shared_state);
            }
            Freed::Code
        } else if packet.kind == RequestKind::Constant {
            self.on_constant(packet, done, shared_state);
            Freed::Code
        } else if packet.fills_l1 {
            self.fill_l1(packet, done, shared_state);
            Freed::Fill
        } else {
            if let Some(operation) = self.lsu.on_answer(packet, done) {
                self.end_operation(&operation, shared_state);
            }
            Freed::Nothing
        };
        if self.lsu.data.l1.has_leaving() {
            self.lsu.schedule_service(shared_state.queue.now(), shared_state);
        }
        self.retry(freed, shared_state);
        self.lsu.poll(shared_state);
    }

    /// A sector of constants has come.
    fn on_constant(&mut self, packet: &Packet, done: Cycle, shared_state: &mut SharedState) {
        let constants = self.lsu.constants.as_mut().expect("what it asked for comes to it");
        let (fetch, code_end) = (self.fetch.as_mut(), shared_state.code_end());
        let mut released = std::mem::take(&mut self.released_words);
        let ready = constants.on_sector(packet, done, fetch, code_end, &mut released);
        for operation in released.drain(..) {
            self.answered(operation, 1, ready, shared_state);
        }
        self.released_words = released;
    }

    /// Sectors have come for the L1 and what waits for them.
    fn fill_l1(&mut self, packet: &Packet, done: Cycle, shared_state: &mut SharedState) {
        let mut released = std::mem::take(&mut self.released);
        self.lsu.data.fill(packet, &mut released);
        self.retry_held(true, shared_state);
        for (operation, sectors) in released.drain(..) {
            let sectors = sectors.count_ones();
            let done = self.lsu.returned(done, sectors);
            self.answered(operation, sectors, done, shared_state);
        }
        self.released = released;
    }

    /// Lets instruction fetch try again, and the load/store unit where it is stalled and may
    /// have waited for what is `freed`.
    pub(crate) fn retry(&mut self, freed: Freed, shared_state: &mut SharedState) {
        self.send_code(shared_state);
        self.lsu.retry(freed, shared_state);
    }

    /// A page that this SM has asked for has come.
    pub(crate) fn on_page(&mut self, page: u64, shared_state: &mut SharedState) {
        self.lsu.on_page(page);
        self.retry(Freed::Page, shared_state);
        self.lsu.go_on_serving(shared_state);
    }

    /// Wakes the warps whose lines of code are present, all at once; requests leave where the port
    /// was full.
    pub(crate) fn on_fetch(&mut self, shared_state: &mut SharedState) {
        let Some(fetch) = self.fetch.as_mut() else { return };
        let mut woken = std::mem::take(&mut self.woken);
        fetch.wake(shared_state.queue.now(), &mut woken);
        for &warp in &woken {
            let index = self.warps.issue.scheduler_of(warp);
            self.warps.issue.advance(index, shared_state);
            self.warps.unblock(warp, shared_state);
            self.begin_interval(warp, 0.0, shared_state);
        }
        for index in 0..self.warps.issue.schedulers.len() {
            if woken.iter().any(|&warp| self.warps.issue.scheduler_of(warp) == index) {
                self.warps.issue.settle(index, shared_state);
            }
        }
        woken.clear();
        self.woken = woken;
        self.send_code(shared_state);
    }

    /// Sends the requests for code that the network takes.
    fn send_code(&mut self, shared_state: &mut SharedState) {
        if let Some(fetch) = &mut self.fetch {
            fetch.send(self.lsu.constants.as_deref(), shared_state);
        }
    }
}
