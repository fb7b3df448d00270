//! Do kernels of a cubin compute what their source says, with no toolkit at hand?
//! The cubin and its text are made from `tests/data/trace_run/kernels.cu`.

use gpumodel_core::isa::Launch;
use gpumodel_core::units::Dim3;
use gpumodel_trace::{Filter, Recorder, Store};

use crate::cubin::Module;
use crate::execute::{Counts, HostMemory, LaunchRequest, Memory, run};
use crate::sass::Code;

const CUBIN: &[u8] = include_bytes!("../../tests/data/trace_run/kernels.cubin");
const TEXT: &str = include_str!("../../tests/data/trace_run/kernels.sass");
const BASE: u64 = 0x10_0000;

struct Place {
    module: Module,
    code: Code,
    memory: HostMemory,
    threads: u64,
}

impl Place {
    fn new() -> Self {
        let module = Module::read(CUBIN, BASE).unwrap();
        let code = Code::read(TEXT, &module.functions).unwrap();
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
            cluster: Dim3::new(1, 1, 1),
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
fn an_access_outside_names_kernel_place_lane_and_address() {
    let place = Place::new();
    let error = place.launch("steps", [1, 32], &parameters(&[], &[64]), None).unwrap_err();
    let said = error.to_string();
    assert!(said.starts_with("kernel `steps`, PC 0x"), "{said}");
    assert!(said.contains("lane 0: 4 bytes are written at 0x40, which is not allocated"), "{said}");
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
