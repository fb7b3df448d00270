//! Do kernels of a cubin compute what their source says, with no toolkit at hand?
//! The cubins and their texts are made from `kernels.cu` and `hopper.cu` in
//! `tests/data/trace_run`.

use gpumodel_core::isa::Launch;
use gpumodel_core::units::Dim3;
use gpumodel_trace::{ConvertRequest, Filter, Recorder, Store};

use crate::cubin::Module;
use crate::execute::{Counts, HostMemory, LaunchRequest, Memory, Residency, TensorMap, run};
use crate::sass::Code;

const CUBIN: &[u8] = include_bytes!("../../tests/data/trace_run/kernels.cubin");
const TEXT: &str = include_str!("../../tests/data/trace_run/kernels.sass");
const HOPPER: &[u8] = include_bytes!("../../tests/data/trace_run/hopper.cubin");
const HOPPER_TEXT: &str = include_str!("../../tests/data/trace_run/hopper.sass");
const BASE: u64 = 0x10_0000;

struct Place {
    module: Module,
    code: Code,
    memory: HostMemory,
    threads: u64,
}

impl Place {
    fn new() -> Self {
        Self::of(CUBIN, TEXT)
    }

    fn of(cubin: &[u8], text: &str) -> Self {
        let module = Module::read(cubin, BASE).unwrap();
        let code = Code::read(text, &module.functions).unwrap();
        Self { module, code, memory: HostMemory::new(BASE, 1 << 16), threads: 1 }
    }

    fn launch(
        &self,
        name: &str,
        [grid, block]: [u32; 2],
        parameters: &[u8],
        recorder: Option<&mut Recorder>,
    ) -> Result<Counts, crate::RunError> {
        let function = self.module.functions.iter().find(|one| one.name == name).unwrap();
        let launch = Launch {
            name: name.into(),
            id: 1,
            grid: Dim3::new(grid, 1, 1),
            block: Dim3::new(block, 1, 1),
            shared_bytes: function.shared_bytes,
            registers: function.registers,
            cluster: function.cluster.unwrap_or_default(),
            ..Launch::default()
        };
        let constants: Vec<u8> = [1_i32, -2, 3, 5].into_iter().flat_map(i32::to_le_bytes).collect();
        let request = LaunchRequest {
            launch: &launch,
            code: &self.code,
            function,
            parameters,
            constants: &constants,
            stack_bytes: 1024,
            cooperative: 0,
            cluster: function.cluster.unwrap_or(Dim3::new(1, 1, 1)),
            residency: Residency { sms: 1, ctas: 2, ..Residency::default() },
            textures: &[],
            threads: self.threads,
        };
        let Some(recorder) = recorder else { return run(&request, &self.memory, None) };
        let rows = self.code.rows();
        let mut kernel = recorder.launch(&launch, &self.code.opcodes, rows).unwrap().unwrap();
        let counts = run(&request, &self.memory, Some(&mut kernel));
        kernel.end().unwrap();
        counts
    }

    fn write(&self, offset: u64, words: impl IntoIterator<Item = u32>) {
        let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        self.memory.write(BASE + offset, &bytes).unwrap();
    }

    fn word(&self, address: u64) -> u32 {
        let mut bytes = [0; 4];
        self.memory.read(address, &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    }
}

fn parameters(words: &[u32], pointers: &[u64]) -> Vec<u8> {
    let words = words.iter().flat_map(|word| word.to_le_bytes());
    words.chain(pointers.iter().flat_map(|pointer| pointer.to_le_bytes())).collect()
}

#[test]
fn registers_are_those_that_the_compiler_reports() {
    let registers = |cubin: &[u8], name: &str| {
        let module = Module::read(cubin, BASE).unwrap();
        module.functions.iter().find(|one| one.name == name).unwrap().registers
    };
    assert_eq!((registers(CUBIN, "steps"), registers(CUBIN, "sum")), (10, 31));
    assert_eq!((registers(HOPPER, "exchange"), registers(HOPPER, "multiply")), (11, 30));
}

#[test]
fn a_sum_of_vectors_is_right_and_recorded() {
    let place = Place::new();
    let value = |i: u32| 0.25 * f64::from(i);
    #[allow(clippy::cast_possible_truncation, reason = "small numbers, exact in single precision")]
    let single = |v: f64| super::execute::low(u64::from((v as f32).to_bits()));
    place.write(4096, (0..100).map(|i| single(value(i))));
    place.write(8192, (0..100).map(|_| single(1.0)));
    let all = parameters(&[100, single(2.0)], &[BASE + 4096, BASE + 8192]);
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("saxpy.gpt");
    let mut recorder = Recorder::create(&path, "saxpy", Filter::default()).unwrap();
    let counts = place.launch("saxpy", [2, 64], &all, Some(&mut recorder)).unwrap();
    recorder.finish().unwrap();
    for i in 0..100 {
        let got = f32::from_bits(place.word(BASE + 8192 + 4 * u64::from(i)));
        assert_eq!(f64::from(got), 2.0 * value(i) + 1.0);
    }
    let store = Store::open(&path).unwrap();
    assert_eq!(store.kernel(0).cta_count(), 2);
    let cta = store.cta(0, 1).unwrap();
    let warps = (0..2).map(|cta| store.cta(0, cta).unwrap());
    let recorded: u64 =
        warps.map(|cta| (0..cta.warp_count()).map(|w| cta.warp_instructions(w)).sum::<u64>()).sum();
    assert_eq!((recorded, cta.warp_count()), (counts.instructions, 2));
}

#[test]
fn a_kernel_that_leaves_its_memory_fails_after_what_it_did() {
    let mut counts = Vec::new();
    for threads in [1, 4] {
        let place = Place { threads, ..Place::new() };
        // The second CTA reads past the end.
        let far = BASE + (1 << 16) - 4 * 64;
        let all = parameters(&[128, 0], &[far, BASE]);
        let ended = place.launch("saxpy", [2, 64], &all, None).unwrap();
        let failure = ended.failure.clone().unwrap();
        assert_eq!(failure.exception, crate::Exception::IllegalAddress);
        let said = "lane 0: 4 bytes are read at 0x110000, which is in no allocation; the nearest \
                    one has the bytes from 0x100000 to 0x110000\n";
        assert!(failure.text.contains("`saxpy`, PC 0x"), "{}", failure.text);
        assert!(failure.text.ends_with(said), "{}", failure.text);
        counts.push(ended.instructions);
    }
    let whole = Place::new().launch("saxpy", [1, 64], &parameters(&[64, 0], &[BASE; 2]), None);
    let whole = whole.unwrap().instructions;
    assert!(counts[0] > whole && counts[0] < 2 * whole && counts[0] == counts[1], "{counts:?}");
}

/// A launch of a kernel of `hopper.cu`: what it leaves, and its trace as text.
fn of_hopper(name: &str, shape: [u32; 2], place: &Place, parameters: &[&[u8]]) -> String {
    let function = place.module.functions.iter().find(|one| one.name == name).unwrap();
    let mut all = Vec::new();
    for (&(offset, _), bytes) in function.parameters.iter().zip(parameters) {
        all.resize(offset as usize, 0);
        all.extend_from_slice(bytes);
    }
    let scratch = tempfile::tempdir().unwrap();
    let [path, text] = ["made.gpt", "text"].map(|name| scratch.path().join(name));
    let mut recorder = Recorder::create(&path, name, Filter::default()).unwrap();
    place.launch(name, shape, &all, Some(&mut recorder)).unwrap();
    recorder.finish().unwrap();
    let (store, inputs, output) = (Store::open(&path).unwrap(), vec![path], text.clone());
    let request = ConvertRequest { inputs, output, ..ConvertRequest::default() };
    gpumodel_trace::export(&store, &request).unwrap();
    std::fs::read_to_string(text.join("kernel-1.traceg")).unwrap()
}

/// The fields of the first line of an opcode, from its sources on.
fn fields<'a>(trace: &'a str, opcode: &str) -> &'a str {
    let line = trace.lines().find(|line| line.contains(&format!(" {opcode} ")));
    line.unwrap_or_else(|| panic!("{opcode} in {trace}")).split_once(opcode).unwrap().1.trim()
}

/// Small whole numbers in half precision.
fn half(number: i32) -> u16 {
    let size = number.unsigned_abs();
    let exponent = size.checked_ilog2().unwrap_or(0);
    let bits =
        if size == 0 { 0 } else { (15 + exponent) << 10 | (size << (10 - exponent)) & 0x3ff };
    u16::try_from(bits | u32::from(number < 0) << 15).unwrap()
}

/// A map of 64 halves in each of `rows` rows, swizzled by 128 bytes.
fn halves_map(address: u64, rows: u16) -> Vec<u8> {
    let map = TensorMap {
        kind: 6,
        rank: 2,
        swizzle: 3,
        address,
        size: [64, rows.into(), 1, 1, 1],
        strides: [128, 0, 0, 0],
        extent: [64, rows, 1, 1, 1],
        steps: [1; 5],
    };
    map.encoded().unwrap().to_vec()
}

#[test]
fn a_warp_group_multiplies_what_bulk_copies_bring() {
    let place = Place::of(HOPPER, HOPPER_TEXT);
    let (a, b, out) = (BASE + 4096, BASE + 12288, BASE + 16384);
    let value = |row: i32, k: i32| (7 * row + 3 * k) % 13 - 6;
    let other = |column: i32, k: i32| (5 * column + k) % 9 - 4;
    let row = |number: &dyn Fn(i32) -> i32| -> Vec<u8> {
        (0..64).flat_map(|k| half(number(k)).to_le_bytes()).collect()
    };
    let left: Vec<u8> = (0..64).flat_map(|m| row(&|k| value(m, k))).collect();
    let right: Vec<u8> = (0..8).flat_map(|n| row(&|k| other(n, k))).collect();
    place.memory.write(a, &left).unwrap();
    place.memory.write(b, &right).unwrap();
    let maps = [halves_map(a, 64), halves_map(b, 8)];
    let trace = of_hopper("multiply", [1, 128], &place, &[&maps[0], &maps[1], &out.to_le_bytes()]);
    for (thread, index) in (0..128).flat_map(|thread| (0..4).map(move |index| (thread, index))) {
        let row = thread / 32 * 16 + thread % 32 / 4 + 8 * (index / 2);
        let column = thread % 4 * 2 + index % 2;
        let sum: i32 = (0..64).map(|k| value(row, k) * other(column, k)).sum();
        let at = out + u64::try_from(4 * (128 * index + thread)).unwrap();
        assert_eq!(f64::from(f32::from_bits(place.word(at))), f64::from(sum), "{row} {column}");
    }
    let copied = fields(&trace, "UTMALDG.2D");
    assert!(copied.contains(" 0 8192 0 4 0x101000 64 128 128 "), "{copied}");
    let of_group = |line: &&str| line.contains("HGMMA.64x8x16.F32");
    let groups: Vec<&str> = trace.lines().filter(of_group).take(4).collect();
    let ends = groups.iter().map(|line| line.trim().ends_with(" 1 0 0")).collect::<Vec<_>>();
    assert_eq!(ends, [false, false, false, true], "{groups:?}");
    let waits = fields(&trace, "SYNCS.PHASECHK.TRANS64.TRYWAIT");
    assert!(waits.ends_with("1 0x0"), "it waits for the first phase: {waits}");
}

#[test]
fn ctas_of_a_cluster_copy_to_each_other_and_count_the_bytes() {
    let place = Place::of(HOPPER, HOPPER_TEXT);
    let (from, out) = (BASE + 4096, BASE + 8192);
    place.write(4096, (0..32).map(|t| 7 * t));
    place.write(8192, (0..96).map(|_| 0));
    let trace = of_hopper("exchange", [2, 32], &place, &[&from.to_le_bytes(), &out.to_le_bytes()]);
    for (rank, t) in (0..2).flat_map(|rank| (0..32).map(move |t| (rank, t))) {
        // What the other one stored here, and what was stored there and came back.
        let (stored, copied) = (100 * (1 - rank) + t, 100 * rank + t);
        let got = place.word(out + u64::from(4 * (32 * rank + t)));
        assert_eq!(got, 7 * t + stored + 10_000 * copied, "rank {rank}, thread {t}");
    }
    for t in 0..32 {
        assert_eq!(place.word(out + u64::from(4 * (64 + t))), 2 * 7 * t);
    }
    let both = fields(&trace, "UBLKCP.S.G.MULTICAST");
    assert!(both.ends_with(" 1 0x3 128 0 4 0x101000 1"), "{both}");
    let stored = fields(&trace, "STAS");
    assert!(stored.contains("4 1 0x7e0001"), "to the CTA of rank 1: {stored}");
    let reduced = fields(&trace, "UBLKRED.G.S.ADD");
    assert!(reduced.ends_with("16 0x0 0 128 0 4 0x102100 1"), "{reduced}");
    assert!(fields(&trace, "UBLKCP.S.S").contains("0 128 128 4 0x0 0"), "no global memory");
}

#[test]
fn ctas_that_run_together_give_what_they_give_one_after_the_other() {
    let scratch = tempfile::tempdir().unwrap();
    let run = |threads| {
        let place = Place { threads, ..Place::new() };
        place.write(4096, 0..1000);
        let path = scratch.path().join(format!("{threads}.gpt"));
        let mut recorder = Recorder::create(&path, "many", Filter::default()).unwrap();
        let list = parameters(&[], &[BASE + 4096]);
        let sum = [list.clone(), 1000_u32.to_le_bytes().to_vec()].concat();
        place.launch("sum", [9, 128], &sum, Some(&mut recorder)).unwrap();
        // Of these, CTAs depend on each other through a sum; of those, they do not.
        place.launch("steps", [40, 32], &list, Some(&mut recorder)).unwrap();
        recorder.finish().unwrap();
        let mut memory = vec![0; 1 << 16];
        place.memory.read(BASE, &mut memory).unwrap();
        (std::fs::read(&path).unwrap(), memory)
    };
    let alone = run(1);
    for threads in [2, 3, 8] {
        assert!(run(threads) == alone, "{threads} threads");
    }
}

#[test]
fn shuffles_shared_memory_constants_and_variables_are_served() {
    let place = Place::new();
    place.write(4096, 0..300);
    let all = parameters(&[], &[BASE + 4096]);
    let all = [all, 300_u32.to_le_bytes().to_vec()].concat();
    place.launch("sum", [1, 128], &all, None).unwrap();
    let total = place.module.variables.iter().find(|one| one.name == "total").unwrap();
    let weights = [1_i32, -2, 3, 5];
    let expected: i32 = (0..300).zip(weights.iter().cycle()).map(|(x, w)| x * w).sum();
    assert_eq!(place.word(BASE + total.offset).cast_signed(), expected);
}

#[test]
fn loops_of_different_lengths_meet_again() {
    let place = Place::new();
    place.launch("steps", [1, 96], &parameters(&[], &[BASE + 4096]), None).unwrap();
    for thread in 0..96_u64 {
        let (mut n, mut steps) = (thread + 1, 0);
        while n != 1 {
            n = if n % 2 == 1 { 3 * n + 1 } else { n / 2 };
            steps += 1;
        }
        assert_eq!(place.word(BASE + 4096 + 4 * thread), steps, "thread {thread}");
    }
}

#[test]
fn damaged_cubins_are_refused_or_read_and_never_panic() {
    for end in (0..CUBIN.len()).step_by(37) {
        let _ = Module::read(&CUBIN[..end], BASE);
    }
    for at in (0..CUBIN.len()).step_by(11) {
        let mut bytes = CUBIN.to_vec();
        bytes[at] ^= 0xff;
        let _ = Module::read(&bytes, BASE);
    }
}
