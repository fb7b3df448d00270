//! A plan takes effect: what each part of the machine does then, one after the other.

use gpumodel_core::contract::Plan;
use gpumodel_core::units::to_usize;

use crate::gpu::Gpu;
use crate::gpu::error::MachineError;
use crate::gpu::hardware::Hardware;
use crate::gpu::reallocation::refuse_unowned;

impl Gpu<'_> {
    /// Hands the machine a plan: it takes effect after its delay; until then the one
    /// in force continues.
    ///
    /// # Errors
    /// [`MachineError::Unsupported`] when the plan asks for what the machine lacks.
    pub fn follow(&mut self, plan: Plan) -> Result<(), MachineError> {
        refuse_unowned(&plan, &self.hardware)?;
        if self.plan_control.hand_in(plan, &mut self.hardware.shared_state.queue) {
            self.take_effect();
        }
        Ok(())
    }

    pub(super) fn take_effect(&mut self) {
        if !self.plan_control.put_in_force(self.apps.len(), &mut self.hardware) {
            return;
        }
        self.pass_turn();
        if let Some(plan) = self.plan_control.plan() {
            self.channels.follow(plan, &mut self.hardware);
        }
        self.vacate();
        let Hardware { dispatcher, shared_state, .. } = &mut self.hardware;
        for &kernel in self.apps.iter().flat_map(|app| &app.begun_launches) {
            let grid = &mut dispatcher.grids[to_usize(kernel)];
            grid.follow(&self.plan_control, &mut shared_state.queue);
        }
        (0..self.apps.len()).for_each(|app| self.next_commands(app));
        self.hardware.dispatcher.schedule(&mut self.hardware.shared_state);
    }

    /// Sends CTAs away that exceed their application's share; those that leave at once are gone
    /// then.
    fn vacate(&mut self) {
        self.plan_control.vacate(&mut self.apps, &mut self.hardware);
        self.collect_all_departed();
    }

    /// Gives the turn to an application that can use it, where the one that has it cannot.
    pub(super) fn pass_turn(&mut self) {
        if self.plan_control.pass_turn(&self.apps, &mut self.hardware) {
            self.follow_turn();
        }
    }

    /// A slice is over, or may begin.
    pub(super) fn on_slice_end(&mut self) {
        let ended = self.plan_control.on_slice_end(&self.apps, &mut self.hardware);
        let Some((wait, passes)) = ended else { return };
        if passes {
            self.follow_turn();
        }
        self.plan_control.schedule_slice(wait, &mut self.hardware.shared_state.queue);
    }

    /// Another application has the turn: CTAs leave and come.
    fn follow_turn(&mut self) {
        self.vacate();
        let now = self.now();
        self.hardware.dispatcher.ask_all(now, &mut self.hardware.shared_state);
    }
}
