//! A kernel's code compiled to segments and jumps, which [`WarpStream`](super::WarpStream)
//! follows.

use std::borrow::Cow;
use std::sync::Arc;

use gpumodel_core::expression::Expression;
use gpumodel_core::isa::{Code, Effect, Instruction, Launch, Register, RegisterFile, Segment};
use gpumodel_core::toml::Place;
use gpumodel_core::units::{Dim3, to_u32, to_u64};

use super::WorkloadError;
use super::asynchronous::{CopyBox, Fields, wrong_box};
use super::code::{AddressSpace, Bulk, Line, RegisterName, Step, StepKind};
use super::lane_expression::{LaneExpression, Reach};
use super::names::{Names, Resolved};

/// Which of the active lanes execute an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    /// All.
    Active,
    /// Those in which the expression is not 0.
    Holds(LaneExpression),
    /// Those in which it is 0: a branch around a body.
    Fails(LaneExpression),
    /// Those in which a count is not above 0: a branch around a loop.
    NoTrips(LaneExpression),
    /// Those that run the innermost loop again: a branch back.
    Again,
    /// The first of them.
    First,
}

/// Where an address may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bounds {
    /// In the buffer at this base, which alone is named; in any where none or several are.
    Buffers(Option<u64>),
    /// In the CTA's shared memory.
    Shared,
    /// In the thread's local memory.
    Local,
}

/// What a static instruction does beyond what [`Code`] says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Action {
    /// The lanes that execute it.
    pub(super) guard: Guard,
    /// Byte address of a lane, for memory instructions, and where it may lie.
    pub(super) address: Option<(Bounds, LaneExpression)>,
    /// What it carries beyond registers and lane addresses.
    pub(super) fields: Option<Fields>,
    /// Ends its lanes.
    pub(super) exits: bool,
    /// Where the instruction stands in the workload file.
    pub(super) place: Place,
}

/// One move of a warp. Targets are indices into [`Program::moves`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// Run a segment with the active lanes, if there are any.
    Segment(u32),
    /// Keep the lanes, go on with those in which the condition holds; with
    /// none of them go to `otherwise`.
    Enter {
        /// Not 0 where the lane goes in.
        condition: LaneExpression,
        /// The [`Move::Otherwise`] or [`Move::Leave`] of this branch.
        otherwise: usize,
    },
    /// Go on with the kept lanes in which the condition fails; with none of
    /// them go to `end`.
    Otherwise {
        /// The branch's condition.
        condition: LaneExpression,
        /// The [`Move::Leave`] of this branch.
        end: usize,
    },
    /// Take the kept lanes back.
    Leave,
    /// Keep the lanes and start a loop with those that run it at all; with none
    /// of them go to `end`.
    Start {
        /// Times, per lane.
        count: LaneExpression,
        /// The [`Move::Leave`] of this loop.
        end: usize,
    },
    /// Run the loop's body from `body` again with the lanes that have trips left.
    Back {
        /// The first move of the body.
        body: usize,
    },
}

/// A compiled kernel, the same for all warps of all CTAs.
#[derive(Debug)]
pub(super) struct Program {
    /// Instructions and segments.
    pub(super) code: Arc<Code>,
    /// One per instruction of the code.
    pub(super) actions: Vec<Action>,
    /// What a warp does, from the first on.
    pub(super) moves: Vec<Move>,
    /// Grid.
    pub(super) grid: Dim3,
    /// CTA.
    pub(super) block: Dim3,
}

/// Most times that a lane runs a loop; counts above are cut to this.
pub(super) const TRIPS: i64 = 1 << 24;

/// Most registers of a thread.
const MOST_REGISTERS: u32 = 255;

/// Deepest nesting of loops.
pub(super) const LOOPS: usize = 8;

/// What the kernels of a workload may still use, so that no short file fills the memory.
#[derive(Debug)]
pub(super) struct Budget {
    instructions: usize,
    parts: usize,
}

impl Budget {
    /// Static instructions of a workload.
    const INSTRUCTIONS: usize = 1 << 18;
    /// Parts of its expressions.
    const PARTS: usize = 1 << 21;

    /// The whole budget.
    pub(super) fn new() -> Self {
        Self { instructions: Self::INSTRUCTIONS, parts: Self::PARTS }
    }

    fn take_instruction(&mut self) -> Result<(), String> {
        let left = self.instructions.checked_sub(1).ok_or_else(|| {
            format!("a workload has more than {} static instructions", Self::INSTRUCTIONS)
        })?;
        self.instructions = left;
        Ok(())
    }

    fn take_parts(&mut self, parts: usize) -> Result<(), String> {
        let left = self.parts.checked_sub(parts).ok_or_else(|| {
            format!("the expressions of a workload have more than {} parts", Self::PARTS)
        })?;
        self.parts = left;
        Ok(())
    }
}

impl Program {
    /// Compiles a kernel's body, which is not empty.
    pub(super) fn compile(
        steps: &[Step],
        names: Names,
        launch: &Launch,
        budget: &mut Budget,
    ) -> Result<Self, WorkloadError> {
        let mut compiler = Compiler {
            names,
            budget,
            launch,
            registers: launch.registers,
            place: steps[0].place.clone(),
            code: Code::default(),
            actions: Vec::new(),
            moves: Vec::new(),
            open: 0,
            reach: Reach::Cta,
        };
        compiler.steps(steps)?;
        compiler.close();
        let ends = steps.last().is_some_and(|step| match &step.kind {
            StepKind::Line(line) => line.effect() == Effect::Exit && line.guard.is_none(),
            _ => false,
        });
        if !ends {
            let place = &steps.last().expect("a body is not empty").place;
            let what = "a kernel's code must end with an unguarded `EXIT`";
            return Err(WorkloadError::invalid(place, what));
        }
        let Compiler { code, actions, moves, .. } = compiler;
        Ok(Self { code: Arc::new(code), actions, moves, grid: launch.grid, block: launch.block })
    }
}

struct Compiler<'a> {
    names: Names,
    budget: &'a mut Budget,
    launch: &'a Launch,
    /// Registers of a thread: the launch's, or as many as there are once `USETMAXREG` moves them
    /// between warp groups.
    registers: u32,
    /// Where the step that is compiled stands.
    place: Place,
    code: Code,
    actions: Vec<Action>,
    moves: Vec<Move>,
    /// First instruction of the segment that is being filled.
    open: usize,
    /// How far the lanes may have diverged here.
    reach: Reach,
}

impl Compiler<'_> {
    fn steps(&mut self, steps: &[Step]) -> Result<(), WorkloadError> {
        for step in steps {
            let outer = std::mem::replace(&mut self.place, step.place.clone());
            match &step.kind {
                StepKind::Line(line) => self.line(line),
                StepKind::Loop { index, count, counter, body } => {
                    self.repeat(index, count, counter.as_ref(), body)
                }
                StepKind::Copies { index, count, body } => self.copies(index, count, body),
                StepKind::Bulk(bulk) => self.bulk(bulk),
                StepKind::When { condition, body, otherwise } => {
                    self.when(condition, body, otherwise)
                }
            }?;
            self.place = outer;
        }
        Ok(())
    }

    /// The error of the step that is compiled.
    fn invalid(&self, what: impl Into<String>) -> WorkloadError {
        WorkloadError::invalid(&self.place, what)
    }

    fn line(&mut self, line: &Line) -> Result<(), WorkloadError> {
        let guard = match &line.guard {
            None => Guard::Active,
            Some(guard) => Guard::Holds(self.resolve(guard)?),
        };
        let effect = line.effect();
        if effect == Effect::Barrier && self.reach != Reach::Cta {
            let what = "a barrier in a loop or branch that not all warps of a CTA run alike \
                        would never be passed: move it out";
            return Err(self.invalid(what));
        }
        self.emit(line, guard)?;
        if effect == Effect::Exit {
            self.close();
        }
        Ok(())
    }

    fn copies(
        &mut self,
        index: &str,
        count: &Expression,
        body: &[Step],
    ) -> Result<(), WorkloadError> {
        let count = self.names.constant(count).map_err(WorkloadError::at(&self.place))?;
        if !(0..=4096).contains(&count) {
            return Err(self.invalid(format!("`count` is {count}, expected 0 to 4096 copies")));
        }
        for copy in 0..count {
            self.names.enter_copy(index, copy).map_err(WorkloadError::at(&self.place))?;
            self.steps(body)?;
            self.names.leave_copy();
        }
        Ok(())
    }

    fn when(
        &mut self,
        condition: &Expression,
        body: &[Step],
        otherwise: &[Step],
    ) -> Result<(), WorkloadError> {
        let condition = self.resolve(condition)?;
        let diverges = condition.reach() == Reach::Lane;
        if diverges {
            self.emit(&Line::bare("BSSY"), Guard::Active)?;
        }
        self.emit(&Line::bare("BRA"), Guard::Fails(condition.clone()))?;
        let enter = self.jump(Move::Enter { condition: condition.clone(), otherwise: 0 });
        let outer = self.diverge(&condition);
        self.steps(body)?;
        if !otherwise.is_empty() {
            self.emit(&Line::bare("BRA"), Guard::Active)?;
            let middle = self.jump(Move::Otherwise { condition, end: 0 });
            self.aim(enter, middle);
            self.steps(otherwise)?;
            let end = self.jump(Move::Leave);
            self.aim(middle, end);
        } else {
            let end = self.jump(Move::Leave);
            self.aim(enter, end);
        }
        self.reach = outer;
        if diverges { self.emit(&Line::bare("BSYNC"), Guard::Active) } else { Ok(()) }
    }

    fn repeat(
        &mut self,
        index: &str,
        count: &Expression,
        counter: Option<&RegisterName>,
        body: &[Step],
    ) -> Result<(), WorkloadError> {
        let count = self.resolve(count)?;
        if let Some(found) = count.constant().filter(|count| !(1..=TRIPS).contains(count)) {
            return Err(self.invalid(format!("`count` is {found}, expected 1 to {TRIPS}")));
        }
        let diverges = count.reach() == Reach::Lane;
        if diverges {
            self.emit(&Line::bare("BSSY"), Guard::Active)?;
        }
        if count.constant().is_none() {
            self.emit(&Line::bare("BRA"), Guard::NoTrips(count.clone()))?;
        }
        let outer = self.diverge(&count);
        let start = self.jump(Move::Start { count, end: 0 });
        self.names.enter_loop(index, LOOPS).map_err(WorkloadError::at(&self.place))?;
        self.steps(body)?;
        self.names.leave_loop();
        if let Some(register) = counter {
            self.count(register)?;
        }
        self.emit(&Line::bare("BRA"), Guard::Again)?;
        self.jump(Move::Back { body: start + 1 });
        let end = self.jump(Move::Leave);
        self.aim(start, end);
        self.reach = outer;
        if diverges { self.emit(&Line::bare("BSYNC"), Guard::Active) } else { Ok(()) }
    }

    /// The update and the test of a loop's counter.
    fn count(&mut self, register: &RegisterName) -> Result<(), WorkloadError> {
        let zero = RegisterName::Fixed(Register::ZERO.number());
        let operands = vec![register.clone(), zero];
        let update = Line {
            destination: Some(register.clone()),
            sources: operands.clone(),
            ..Line::bare("IADD3")
        };
        self.emit(&update, Guard::Active)?;
        let test = Line { sources: operands, ..Line::bare("ISETP.NE.AND") };
        self.emit(&test, Guard::Active)
    }

    /// Notes that lanes diverge by `condition`; returns what was noted before.
    fn diverge(&mut self, condition: &LaneExpression) -> Reach {
        let further = self.reach.max(condition.reach());
        std::mem::replace(&mut self.reach, further)
    }

    fn address(
        &mut self,
        space: AddressSpace,
        written: &Expression,
    ) -> Result<(Bounds, LaneExpression), WorkloadError> {
        let Resolved { expression, base, .. } = self.resolved(written)?;
        let bounds = match space {
            AddressSpace::Buffers => Bounds::Buffers(base.map(i64::cast_unsigned)),
            AddressSpace::Shared => Bounds::Shared,
            AddressSpace::Local => Bounds::Local,
        };
        Ok((bounds, expression))
    }

    fn resolve(&mut self, written: &Expression) -> Result<LaneExpression, WorkloadError> {
        Ok(self.resolved(written)?.expression)
    }

    fn resolved(&mut self, written: &Expression) -> Result<Resolved, WorkloadError> {
        let resolved = self.names.resolve(written).map_err(WorkloadError::at(&self.place))?;
        self.budget.take_parts(resolved.parts).map_err(WorkloadError::at(&self.place))?;
        Ok(resolved)
    }

    /// Ends the open segment, if it holds an instruction.
    fn close(&mut self) {
        let length = self.code.instructions.len() - self.open;
        if length == 0 {
            return;
        }
        self.moves.push(Move::Segment(to_u32(self.code.segments.len())));
        self.code.segments.push(Segment { first: to_u32(self.open), length: to_u32(length) });
        self.open += length;
    }

    /// Ends the open segment and adds a move; returns the move's place.
    fn jump(&mut self, next: Move) -> usize {
        self.close();
        self.moves.push(next);
        self.moves.len() - 1
    }

    /// Sets the target of the move at `place`.
    fn aim(&mut self, place: usize, target: usize) {
        match &mut self.moves[place] {
            Move::Enter { otherwise: end, .. }
            | Move::Otherwise { end, .. }
            | Move::Start { end, .. } => *end = target,
            Move::Segment(_) | Move::Leave | Move::Back { .. } => {
                unreachable!("only branches forward have a target")
            }
        }
    }

    fn emit(&mut self, line: &Line, guard: Guard) -> Result<(), WorkloadError> {
        self.budget.take_instruction().map_err(WorkloadError::at(&self.place))?;
        let number = self.code.instructions.len();
        let opcode = self.opcode_text(&line.opcode)?;
        if opcode.starts_with("USETMAXREG") {
            self.registers = MOST_REGISTERS;
        }
        let opcode = self.opcode(&opcode);
        let destinations =
            line.destination.iter().map(|d| self.register(d)).collect::<Result<_, _>>()?;
        let sources = line.sources.iter().map(|s| self.register(s)).collect::<Result<_, _>>()?;
        let address = match (&line.address, AddressSpace::of(&line.opcode)) {
            (Some(written), Some(space)) => Some(self.address(space, written)?),
            _ => None,
        };
        let fields = self.fields(line)?;
        let own = line.immediate;
        self.code.instructions.push(Instruction {
            pc: program_counter(number, self.launch.binary_version),
            opcode,
            destinations,
            sources,
            width: line.width(),
            immediates: fields.as_ref().map_or([own].into(), |fields| fields.immediates(own)),
            line: None,
            control: None,
        });
        let (exits, place) = (line.effect() == Effect::Exit, self.place.clone());
        self.actions.push(Action { guard, address, fields, exits, place });
        Ok(())
    }

    /// What a line carries beyond registers and lane addresses.
    fn fields(&mut self, line: &Line) -> Result<Option<Fields>, WorkloadError> {
        if line.is_group_multiply() {
            return Ok(Some(Fields::Group(line.immediate)));
        }
        let Some(value) = &line.value else { return Ok(None) };
        let value = self.resolve(value)?;
        let makes = line.makes_object();
        Ok(Some(if makes { Fields::Arrivals(value) } else { Fields::Value(value) }))
    }

    /// Rows, bytes of a row and bytes between rows of a bulk copy.
    fn box_sizes(&self, bulk: &Bulk) -> Result<[i64; 3], WorkloadError> {
        let constant =
            |written| self.names.constant(written).map_err(WorkloadError::at(&self.place));
        let (rows, row_bytes) = (constant(&bulk.rows)?, constant(&bulk.row_bytes)?);
        let pitch = constant(&bulk.pitch)?;
        match wrong_box(rows, row_bytes, pitch) {
            Some(what) => Err(self.invalid(what)),
            None => Ok([rows, row_bytes, pitch]),
        }
    }

    /// The mask of the CTAs that get a bulk copy.
    fn multicast(&self, bulk: &Bulk) -> Result<i64, WorkloadError> {
        let mask = self.names.constant(&bulk.multicast).map_err(WorkloadError::at(&self.place))?;
        if (0..1 << 16).contains(&mask) && (mask == 0 || bulk.object.is_some()) {
            return Ok(mask);
        }
        let what = format!("`multicast` is {mask}, expected 16 bits, of a copy with an `object`");
        Err(self.invalid(what))
    }

    /// A bulk copy, which the first lane issues.
    fn bulk(&mut self, bulk: &Bulk) -> Result<(), WorkloadError> {
        let [rows, row_bytes, pitch] = self.box_sizes(bulk)?;
        let Resolved { expression: address, base, .. } = self.resolved(&bulk.address)?;
        let object = bulk.object.as_ref().map(|object| self.resolve(object)).transpose()?;
        let multicast = self.multicast(bulk)?;
        let size = |number: i64| u32::try_from(number).expect("a box is small");
        let copy = CopyBox {
            address,
            buffer: base.map(i64::cast_unsigned),
            object: object.unwrap_or(LaneExpression::Constant(0)),
            rows: size(rows),
            row_bytes: size(row_bytes),
            pitch,
            multicast,
        };
        self.emit(&Line::bare(&bulk.opcode), Guard::First)?;
        let fields = Fields::Copy(copy);
        let instruction = self.code.instructions.last_mut().expect("it was just added");
        instruction.immediates = fields.immediates(0);
        self.actions.last_mut().expect("it was just added").fields = Some(fields);
        Ok(())
    }

    /// An opcode with its computed parts written out.
    fn opcode_text<'t>(&self, written: &'t str) -> Result<Cow<'t, str>, WorkloadError> {
        let mut text = Cow::Borrowed(written);
        while let Some((before, rest)) = text.split_once('{') {
            let (inside, after) = rest.split_once('}').unwrap_or((rest, ""));
            let expression =
                Expression::parse(inside).map_err(|error| self.invalid(error.to_string()))?;
            let value = self.names.constant(&expression);
            let value = value.map_err(WorkloadError::at(&self.place))?;
            text = Cow::Owned(format!("{before}{value}{after}"));
        }
        Ok(text)
    }

    fn opcode(&mut self, name: &str) -> u32 {
        let known = self.code.opcodes.iter().position(|opcode| opcode == name);
        to_u32(known.unwrap_or_else(|| {
            self.code.opcodes.push(name.to_owned());
            self.code.opcodes.len() - 1
        }))
    }

    fn register(&self, name: &RegisterName) -> Result<Register, WorkloadError> {
        let number = match name {
            RegisterName::Fixed(number) => i64::from(*number),
            RegisterName::Indexed(written) => {
                self.names.constant(written).map_err(WorkloadError::at(&self.place))?
            }
        };
        let zero = i64::from(Register::ZERO.number());
        if number != zero && !(0..i64::from(self.registers)).contains(&number) {
            let most = self.registers;
            let what = format!("register R{number}, but the kernel has `registers = {most}`");
            return Err(self.invalid(what));
        }
        let number = u16::try_from(number).expect("checked against the register count");
        Ok(Register::new(RegisterFile::General, number).expect("at most 255"))
    }
}

/// Byte offset of the instruction `number`: 16-byte instructions from Volta on;
/// before, a control word leads every three 8-byte instructions (Maxwell, Pascal)
/// or every seven (Kepler).
fn program_counter(number: usize, binary_version: u32) -> u64 {
    let number = to_u64(number);
    let led = |group| (number / group * (group + 1) + number % group + 1) * 8;
    match binary_version {
        70.. => number * 0x10,
        50.. => led(3),
        _ => led(7),
    }
}

#[cfg(test)]
mod tests {
    use super::program_counter;

    #[test]
    fn program_counters_step_as_the_generation_does() {
        let first: Vec<u64> = (0..5).map(|n| program_counter(n, 61)).collect();
        assert_eq!(first, [0x08, 0x10, 0x18, 0x28, 0x30]);
        assert_eq!(program_counter(3, 70), 0x30);
        let kepler: Vec<u64> = (5..9).map(|n| program_counter(n, 35)).collect();
        assert_eq!(kepler, [0x30, 0x38, 0x48, 0x50]);
    }
}
