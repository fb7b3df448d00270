//! Do the opcode tables know all opcodes of traces?

use gpumodel::core::isa::{Effect, Listing, Space, Unit};
use gpumodel::sim::config::{IsaTable, Resolved};

/// SASS target and the table that serves it.
const TARGETS: &[(&str, &str)] = &[
    ("35", "kepler"),
    ("60", "pascal"),
    ("61", "pascal"),
    ("70", "volta"),
    ("75", "turing"),
    ("80", "ampere"),
    ("86", "ampere-geforce"),
    ("89", "ada"),
    ("90", "hopper"),
];

fn machine(name: &str) -> Resolved {
    gpumodel::models().machine(name, &[]).unwrap()
}

#[test]
fn every_opcode_of_the_traces_is_known() {
    let models = gpumodel::models();
    let v100 = machine("v100").machine;
    let accelsim = IsaTable::load(&models, "accelsim").unwrap();
    let rows = include_str!("../data/opcodes.csv");
    let mut count = 0;
    for row in rows.lines().filter(|row| row.starts_with(char::is_numeric)) {
        let (sm, opcode) = row.split_once(',').unwrap();
        let (_, table) = TARGETS.iter().find(|(target, _)| *target == sm).unwrap();
        let table = IsaTable::load(&models, table).unwrap();
        assert!(table.opcode(&v100, opcode).known(), "sm_{sm} {opcode}");
        assert!(accelsim.opcode(&machine("accelsim-qv100").machine, opcode).known(), "{opcode}");
        count += 1;
    }
    assert!(count > 300, "{count} rows");
}

#[test]
fn modifiers_tell_registers_and_the_way_to_memory() {
    let Resolved { machine, isa, .. } = machine("a100");
    let of = |text: &str| isa.opcode(&machine, text);
    for (text, registers) in [
        ("LDG.E.SYS", 1),
        ("LDG.E.64.CONSTANT.SYS", 2),
        ("LDG.E.128", 4),
        ("LDS.U.128", 4),
        ("LDSM.16.M88.4", 4),
        ("LDSM.16.M88.2", 2),
        ("IMAD.WIDE.U32", 2),
        ("IMAD.MOV.U32", 1),
        ("DFMA", 2),
        ("DSETP.MAX.AND", 1),
        ("F2F.F64.F32", 2),
        ("F2F.F32.F64", 1),
        ("F2I.S64.TRUNC", 2),
        ("HMMA.16816.F32", 4),
        ("HMMA.16816.F16", 2),
        ("CS2R", 2),
        ("CS2R.32", 1),
        ("FFMA.FTZ", 1),
    ] {
        assert_eq!(of(text).registers_per_destination, registers, "{text}");
    }
    for (text, bypasses) in [
        ("LDG.E.STRONG.GPU", true),
        ("LDG.E.STRONG.SYS", true),
        ("LDG.E.STRONG.SM", false),
        ("LDG.E", false),
        ("ATOMG.E.ADD", true),
        ("RED.E.ADD.STRONG.GPU", true),
        ("ATOMS.ADD", false),
    ] {
        assert_eq!(of(text).bypasses_l1, bypasses, "{text}");
    }
}

#[test]
fn effects_are_those_of_the_instructions() {
    let Resolved { machine, isa, .. } = machine("a100");
    for (text, effect) in [
        ("LDG.E.64", Effect::Load(Space::Global)),
        ("LD.E", Effect::Load(Space::Generic)),
        ("STS.64", Effect::Store(Space::Shared)),
        ("STL", Effect::Store(Space::Local)),
        ("LDC.U8", Effect::Load(Space::Constant)),
        ("ATOM.E.ADD", Effect::Atomic(Space::Generic)),
        ("RED.E.ADD", Effect::Reduction(Space::Generic)),
        ("LDGSTS.E.BYPASS.LTC128B.128", Effect::AsyncCopy),
        ("LDGDEPBAR", Effect::AsyncCommit),
        ("DEPBAR.LE", Effect::AsyncWait),
        ("BAR.SYNC.DEFER_BLOCKING", Effect::Barrier),
        ("BAR.ARV", Effect::Arrive),
        ("MEMBAR.SC.GPU", Effect::Fence),
        ("EXIT", Effect::Exit),
        ("BRA", Effect::Branch),
        ("TEX.SCR.LL", Effect::Load(Space::Texture)),
        ("IADD3.X", Effect::Compute),
    ] {
        assert_eq!(isa.opcode(&machine, text).effect, effect, "{text}");
    }
}

#[test]
fn an_unknown_opcode_goes_by_its_longest_prefix() {
    let Resolved { machine, isa, .. } = machine("v100");
    for (text, unit, effect) in [
        ("LDSX.64", Unit::Memory, Effect::Load(Space::Shared)),
        ("STX", Unit::Memory, Effect::Store(Space::Generic)),
        ("ATOMX", Unit::Memory, Effect::Atomic(Space::Generic)),
        ("REDX", Unit::Memory, Effect::Reduction(Space::Generic)),
        ("FNEW", Unit::Fp32, Effect::Compute),
        ("DNEW", Unit::Fp64, Effect::Compute),
        ("HNEW2", Unit::Half, Effect::Compute),
        ("INEW", Unit::Int, Effect::Compute),
        ("", Unit::Int, Effect::Compute),
    ] {
        let found = isa.opcode(&machine, text);
        assert_eq!((found.unit, found.effect, found.known()), (unit, effect, false), "{text}");
    }
}

/// Cycles of one scheduler's matrix unit: multiply-adds of the shape over the published rate
/// per scheduler and clock (whitepapers; A40: hmc-tech.com; L40: data sheet).
#[test]
fn a_matrix_multiply_takes_its_work_at_the_published_rate() {
    for (name, opcode, work, per_cycle) in [
        ("v100", "HMMA.884.F32.F32.STEP1", 256, 128),
        ("v100", "HMMA.884.F16.F16.STEP1", 512, 128),
        ("rtx-2060", "HMMA.1688.F16", 1024, 128),
        ("rtx-2060", "HMMA.1688.F32", 1024, 64),
        ("rtx-2060", "IMMA.8816.S8.S8", 1024, 256),
        ("rtx-2060", "IMMA.8832.U4.S4", 2048, 512),
        ("a100", "HMMA.16816.F16", 2048, 256),
        ("a100", "HMMA.16816.F32.BF16", 2048, 256),
        ("a100", "HMMA.SP.16832.F32", 2048, 256),
        ("a100", "HMMA.1688.F32.TF32", 1024, 128),
        ("a100", "HMMA.1684.F32.TF32", 512, 128),
        ("a100", "IMMA.16832.S8.S8", 4096, 512),
        ("a100", "IMMA.16864.S4.S4", 8192, 1024),
        ("a100", "BMMA.168256.AND.POPC", 32768, 4096),
        ("a100", "DMMA.884", 256, 16),
        ("rtx-3070", "HMMA.16816.F32", 2048, 64),
        ("rtx-3070", "HMMA.1688.F32.TF32", 1024, 32),
        ("a40", "HMMA.16816.F32", 2048, 128),
        ("rtx-4090", "QMMA.16832.F32.E4M3.E4M3", 4096, 128),
        ("l40", "IMMA.16832.S8.S8", 4096, 128),
        ("h100", "HGMMA.64x256x16.F32.BF16", 65536, 512),
        ("h100", "HGMMA.64x128x8.F32.TF32", 16384, 256),
        ("h100", "QGMMA.64x128x32.F32.E4M3.E4M3", 65536, 1024),
        ("h100", "IGMMA.64x128x32.S8.S8", 65536, 1024),
        ("h100", "DMMA.884", 256, 32),
    ] {
        let Resolved { machine, isa, .. } = machine(name);
        let found = isa.opcode(&machine, opcode);
        assert_eq!(found.initiation_cycles, work / per_cycle, "{name} {opcode}");
        assert_eq!(found.listing, Listing::Own, "{name} {opcode}");
    }
}

#[test]
fn instructions_of_other_architectures_take_the_time_of_their_work() {
    for (name, opcode, unit, effect, cycles) in [
        ("v100", "HMMA.16816.F32", Unit::Tensor, Effect::Compute, 2048 / 128),
        ("v100", "HGMMA.64x128x16.F32", Unit::Tensor, Effect::MatrixGroup, 32768 / 128),
        ("v100", "DMMA.884", Unit::Fp64, Effect::Compute, 256 / 8),
        ("v100", "LDGSTS.E.BYPASS.128", Unit::Memory, Effect::AsyncCopy, 4),
        ("v100", "REDUX.SUM", Unit::Sfu, Effect::Compute, 8),
        ("a100", "HGMMA.64x128x16.F32", Unit::Tensor, Effect::MatrixGroup, 32768 / 256),
        ("a100", "WARPGROUP.DEPBAR.LE", Unit::Control, Effect::MatrixWait, 1),
        ("a100", "PREEXIT", Unit::Int, Effect::Compute, 2),
        ("a100", "ACQBULK", Unit::Int, Effect::Compute, 2),
        ("a100", "ENDCOLLECTIVE", Unit::Branch, Effect::Compute, 2),
        ("gtx-1080", "HMMA.16816.F32", Unit::Fp32, Effect::Compute, 2048 / 32),
    ] {
        let Resolved { machine, isa, .. } = machine(name);
        let found = isa.opcode(&machine, opcode);
        assert_eq!((found.unit, found.effect), (unit, effect), "{name} {opcode}");
        assert_eq!(found.initiation_cycles, cycles, "{name} {opcode}");
        assert_eq!(found.listing, Listing::OtherArchitecture, "{name} {opcode}");
    }
    let Resolved { machine, isa, .. } = machine("v100");
    assert!(isa.opcode(&machine, "LDGSTS.E.BYPASS.128").bypasses_l1);
    assert_eq!(isa.opcode(&machine, "FROB").listing, Listing::Prefix);
}

#[test]
fn timing_is_the_tables_or_else_the_units() {
    let v100 = machine("v100");
    let timing = |text: &str| {
        let opcode = v100.isa.opcode(&v100.machine, text);
        (opcode.latency_cycles, opcode.initiation_cycles)
    };
    assert_eq!(timing("FFMA"), (4, 2), "Jia et al. 2018: 4 cycles");
    assert_eq!(timing("IMAD.MOV.U32"), (4, 2), "stall counts of ptxas 11.8");
    assert_eq!(timing("DFMA"), (8, 4), "Jia et al. 2018: 8 cycles");
    assert_eq!(timing("MUFU.RCP"), (14, 8), "Jia et al. 2018: 14 cycles");
    assert_eq!(timing("POPC"), (10, 8), "Jia et al. 2018: 10 cycles");
    let qv100 = machine("accelsim-qv100");
    let imported = |text: &str| {
        let opcode = qv100.isa.opcode(&qv100.machine, text);
        (opcode.unit, opcode.latency_cycles, opcode.initiation_cycles)
    };
    assert_eq!(imported("IMAD"), (Unit::Int, 2, 2), "trace.config");
    assert_eq!(imported("HFMA2.MMA"), (Unit::Half, 2, 1), "half the initiation interval");
    assert_eq!(imported("SHFL.DOWN"), (Unit::Int, 2, 2), "shuffles are ALU_OP");
    assert_eq!(imported("LDC"), (Unit::Int, 2, 2), "constant loads are ALU_OP");
    assert_eq!(imported("BRA"), (Unit::Branch, 4, 4), "specialised unit 1");
}
