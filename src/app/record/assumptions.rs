//! The assumptions of a launch: instructions for which the trace lacks information that the
//! machine needs, counted from the code and the paths of its warps.

use gpumodel_core::isa::{
    Effect, Instruction, Listing, Opcode, RegisterFile, Segment, Space, Unit,
};
use gpumodel_core::units::{to_u64, to_usize};
use gpumodel_feed::StoreFeed;
use gpumodel_report::results::{AssumptionRecord, KernelRecord};
use gpumodel_sim::config::Machine;
use gpumodel_sim::{KernelCounts, Program};
use gpumodel_trace::TraceError;

/// A static instruction with its context.
struct Line<'a> {
    instruction: &'a Instruction,
    opcode: &'a Opcode,
    text: &'a str,
    program: &'a Program,
    machine: &'a Machine,
}

/// One kind of assumption.
struct Row {
    what: &'static str,
    effect: &'static str,
    applies: fn(&Line<'_>) -> bool,
}

const TABLE: &[Row] = &[
    Row {
        what: "opcode in no table of this machine",
        effect: "classed by its prefix: unit and latency are a guess",
        applies: |line| !line.opcode.known(),
    },
    Row {
        what: "instruction of another architecture",
        effect: "does what it does there, in the time of its work on the units of this machine",
        applies: |line| line.opcode.listing == Listing::OtherArchitecture,
    },
    Row {
        what: "generic address",
        effect: "classified by the shared and local windows in the trace",
        applies: |line| line.is_generic() && line.has_windows(),
    },
    Row {
        what: "generic address without windows in the trace",
        effect: "taken as global memory",
        applies: |line| line.is_generic() && !line.has_windows(),
    },
    Row {
        what: "constant load without an address",
        effect: "takes a fixed time and accesses no cache",
        applies: |line| {
            line.opcode.effect == Effect::Load(Space::Constant) && !line.has_addresses()
        },
    },
    Row {
        what: "texture instruction that touches no memory",
        effect: "takes the time of its unit: no address in the trace, or the machine asks for it",
        applies: |line| line.is_bare_texture(),
    },
    Row {
        what: "load, store or atomic without an address",
        effect: "computes only",
        applies: |line| {
            let space = line.opcode.effect.space();
            let other = !matches!(space, None | Some(Space::Constant | Space::Texture));
            other && !line.has_addresses() && !line.instruction.is_open()
        },
    },
    Row {
        what: "wait for asynchronous copies or multiplies without its count",
        effect: "waits for all of them",
        applies: |line| {
            let waits = matches!(line.opcode.effect, Effect::AsyncWait | Effect::MatrixWait);
            waits && line.has_no_immediate()
        },
    },
    Row {
        what: "barrier without its number and count",
        effect: "taken as the barrier of all warps of the CTA",
        applies: |line| line.opcode.effect == Effect::Barrier && line.has_no_immediate(),
    },
    Row {
        what: "result in predicates or uniform registers that the trace does not list",
        effect: "a branch waits for the last comparison on hardware machines; nothing else waits",
        applies: |line| line.hides_its_result(),
    },
    Row {
        what: "atomic on global memory",
        effect: "changes its sector in the L2; the cost of atomics to one address is assumed",
        applies: |line| {
            matches!(
                line.opcode.effect,
                Effect::Atomic(Space::Global | Space::Generic)
                    | Effect::Reduction(Space::Global | Space::Generic)
            )
        },
    },
];

impl Line<'_> {
    fn has_addresses(&self) -> bool {
        self.instruction.width > 0
    }

    fn has_no_immediate(&self) -> bool {
        self.instruction.immediates.is_empty()
    }

    fn is_generic(&self) -> bool {
        self.has_addresses() && self.opcode.effect.space() == Some(Space::Generic)
    }

    fn has_windows(&self) -> bool {
        let launch = &self.program.launch;
        launch.shared_window != 0 && launch.local_window != 0
    }

    fn is_bare_texture(&self) -> bool {
        let texture =
            self.opcode.unit == Unit::Texture || self.opcode.effect.space() == Some(Space::Texture);
        texture && (!self.has_addresses() || self.machine.quirks.textures_are_latency)
    }

    /// Opcodes that set predicates (`ISETP`, `FSETP`, …) or write uniform registers,
    /// without such a register among their destinations.
    fn hides_its_result(&self) -> bool {
        let root = self.text.split('.').next().unwrap_or(self.text);
        let listed = |files: &[RegisterFile]| {
            self.instruction.destinations.iter().any(|register| files.contains(&register.file()))
        };
        let predicate = root.ends_with("SETP")
            && !listed(&[RegisterFile::Predicate, RegisterFile::UniformPredicate]);
        let uniform = self.opcode.unit == Unit::Uniform
            && !listed(&[RegisterFile::Uniform, RegisterFile::UniformPredicate]);
        predicate || uniform
    }
}

/// Fills the assumptions of all launches of `feed`, and whether only their accesses are known.
///
/// # Errors
/// [`TraceError::Store`] when a block is damaged.
pub(crate) fn fill(
    rows: &mut [KernelRecord],
    feed: &StoreFeed<'_>,
    machine: &Machine,
) -> Result<(), TraceError> {
    for (index, row) in rows.iter_mut().enumerate() {
        let (program, executed) = (&feed.programs()[index], feed.executed(index)?);
        let counts = counts(program, &executed, machine);
        let mut found: Vec<AssumptionRecord> = TABLE
            .iter()
            .zip(counts)
            .filter(|&(_, count)| count > 0)
            .map(|(open, count)| record(open.what, open.effect, count, row.warp_instructions))
            .collect();
        row.memory_only = feed.memory_only(index);
        found.append(&mut row.assumptions);
        let words = inferred_words(feed, index, &executed, row.warp_instructions);
        found.extend(words.into_iter().chain(left_out(row)).chain(of_log(row)));
        found.sort_by_key(|open| std::cmp::Reverse(open.instructions));
        row.assumptions = found;
    }
    Ok(())
}

/// Constant loads whose words are inferred.
fn inferred_words(
    feed: &StoreFeed<'_>,
    place: usize,
    executed: &[u64],
    all: u64,
) -> Option<AssumptionRecord> {
    let inferred = |segment: &Segment| {
        let numbers = segment.first..segment.first + segment.length;
        to_u64(numbers.filter(|&number| feed.infers_words(place, number)).count())
    };
    let segments = feed.programs()[place].code.segments.iter().zip(executed);
    let instructions = segments.map(|(segment, &times)| times * inferred(segment)).sum();
    let what = "constant load without an address, whose index differs by lane";
    let effect = "reads as many words as other addresses of the warp show indices";
    (instructions > 0).then(|| record(what, effect, instructions, all))
}

/// Warp instructions by row of [`TABLE`].
fn counts(program: &Program, executed: &[u64], machine: &Machine) -> Vec<u64> {
    let mut counts = vec![0; TABLE.len()];
    for (segment, &times) in program.code.segments.iter().zip(executed) {
        for instruction in &program.code.instructions[segment.range()] {
            let number = to_usize(instruction.opcode);
            let (opcode, text) = (&program.opcodes[number], program.code.opcodes[number].as_str());
            let line = Line { instruction, opcode, text, program, machine };
            for (count, open) in counts.iter_mut().zip(TABLE) {
                *count += if (open.applies)(&line) { times } else { 0 };
            }
        }
    }
    counts
}

/// What the machine has counted.
pub(super) fn counted(counts: &KernelCounts, machine: &Machine) -> Vec<AssumptionRecord> {
    null(counts, machine).into_iter().chain(asynchronous(counts)).collect()
}

/// Active lanes at address 0 of global memory.
fn null(counts: &KernelCounts, machine: &Machine) -> Option<AssumptionRecord> {
    let (instructions, all) = (counts.null_accesses, counts.warp_instructions);
    let effect = null_effect(machine);
    (instructions > 0).then(|| record("active lane at address 0", effect, instructions, all))
}

/// What the trace lacks of bulk copies and barrier objects.
fn asynchronous(counts: &KernelCounts) -> Vec<AssumptionRecord> {
    let of = |what, effect, instructions| {
        (instructions > 0).then(|| record(what, effect, instructions, counts.warp_instructions))
    };
    let copies = of(
        "bulk copy without its addresses",
        "moves nothing: its bytes are not in the trace",
        counts.unknown_copies,
    );
    let waits = of(
        "wait at a barrier object without its counts",
        "takes as long as bulk copies to it are in flight",
        counts.assumed_object_waits,
    );
    copies.into_iter().chain(waits).collect()
}

/// What active lanes at address 0 do on a machine.
pub(crate) fn null_effect(machine: &Machine) -> &'static str {
    if machine.quirks.accesses_null {
        "a fault of the tracer: these lanes access it, as in the simulator"
    } else {
        "a fault of the tracer: these lanes access nothing"
    }
}

/// The CTAs that a sample did not run.
fn left_out(row: &KernelRecord) -> Option<AssumptionRecord> {
    let sample = row.sample.as_ref().filter(|sample| sample.ctas_run < sample.ctas)?;
    let left = sample.ctas - sample.ctas_run;
    let instructions = row.warp_instructions / sample.ctas.max(1) * left;
    let effect = "extrapolated from CTAs with the same paths";
    Some(record("CTA that no sample took", effect, instructions, row.warp_instructions))
}

/// A launch from a log of accesses.
fn of_log(row: &KernelRecord) -> Option<AssumptionRecord> {
    let all = row.warp_instructions;
    let effect = "issued in warp order; nothing waits for it: IPC is not modelled";
    (row.memory_only && all > 0)
        .then(|| record("access of a log without its code", effect, all, all))
}

fn record(what: &str, effect: &str, instructions: u64, all: u64) -> AssumptionRecord {
    let share = instructions as f64 / all.max(1) as f64;
    AssumptionRecord { what: what.to_owned(), instructions, share, effect: effect.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gpumodel_core::isa::{Code, Instruction, Launch, Opcode, Register, RegisterFile, Segment};
    use gpumodel_sim::Program;

    use super::{TABLE, counts};

    /// One instruction: text, width, immediates, and whether it lists a predicate.
    type Typed = (&'static str, u8, &'static [i64], bool);

    /// The assumptions of a launch of these instructions, executed three times.
    fn assumed(lines: &[Typed], windows: u64) -> Vec<(&'static str, u64)> {
        let resolved = crate::models(None).unwrap().machine("rtx-2060", &[]).unwrap();
        let predicate = Register::new(RegisterFile::Predicate, 0).unwrap();
        let instruction = |(number, line): (usize, &Typed)| Instruction {
            pc: 16 * number as u64,
            opcode: u32::try_from(number).unwrap(),
            destinations: if line.3 { Box::new([predicate]) } else { Box::default() },
            sources: Box::default(),
            width: line.1,
            immediates: line.2.into(),
            line: None,
            control: None,
        };
        let instructions: Vec<Instruction> = lines.iter().enumerate().map(instruction).collect();
        let opcodes: Vec<Opcode> =
            lines.iter().map(|l| resolved.isa.opcode(&resolved.machine, l.0)).collect();
        let length = u32::try_from(lines.len()).unwrap();
        let code = Code {
            opcodes: lines.iter().map(|line| line.0.to_owned()).collect(),
            instructions,
            segments: vec![Segment { first: 0, length }],
        };
        let launch =
            Launch { shared_window: windows, local_window: windows << 1, ..Launch::default() };
        let program = Program { launch, code: Arc::new(code), opcodes: opcodes.into(), ctas: 1 };
        let counted = counts(&program, &[3], &resolved.machine);
        let named = TABLE.iter().zip(counted).filter(|(_, count)| *count > 0);
        named.map(|(open, count)| (open.what, count)).collect()
    }

    /// Per row: an instruction that the trace says too little of, and one of the same
    /// kind of which it says enough.
    const CASES: &[(&str, Typed, Typed)] = &[
        ("opcode in no table", ("FROB.X", 0, &[], false), ("FADD", 0, &[], false)),
        ("generic address without windows", ("LD.E", 4, &[], false), ("LDG.E", 4, &[], false)),
        ("instruction of another", ("HMMA.16816.F32", 0, &[], false), ("FADD", 0, &[], false)),
        ("constant load", ("LDC", 0, &[], false), ("LDC", 4, &[], false)),
        ("texture instruction", ("TEX", 0, &[], false), ("TEX", 4, &[], false)),
        ("load, store or atomic without", ("LDG.E", 0, &[], false), ("LDG.E", 4, &[], false)),
        ("barrier without", ("BAR.SYNC", 0, &[], false), ("BAR.SYNC", 0, &[0], false)),
        ("result in predicates", ("ISETP.GE.AND", 0, &[], false), ("ISETP.GE.AND", 0, &[], true)),
        ("atomic on global", ("RED.E.ADD", 4, &[], false), ("ATOMS.ADD", 4, &[], false)),
    ];

    #[test]
    fn each_assumption_is_counted_where_it_applies_and_nowhere_else() {
        for &(what, open, said) in CASES {
            let found = assumed(&[open, ("FADD", 0, &[], false)], 0);
            let row = found.iter().find(|(name, _)| name.starts_with(what));
            assert_eq!(row.map(|row| row.1), Some(3), "{what}: {found:?}");
            let found = assumed(&[said], 0);
            assert!(!found.iter().any(|(name, _)| name.starts_with(what)), "{what}: {found:?}");
        }
    }

    #[test]
    fn generic_addresses_use_windows_and_waits_count_their_copies() {
        assert_eq!(assumed(&[("LD.E", 4, &[], false)], 1 << 24), [("generic address", 3)]);
        let waits = |list: &'static [i64]| assumed(&[("DEPBAR", 0, list, false)], 0);
        assert_eq!(waits(&[]).len(), 1, "{:?}", waits(&[]));
        assert!(waits(&[1]).is_empty());
    }
}
