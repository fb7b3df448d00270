//! How fast is one thread of `gpumodel trace`? Warp instructions per second of kernels of
//! `tests/data/trace_run`: one of arithmetic in loops, one of loads and stores; executed only, and
//! recorded too.
#![allow(clippy::unwrap_used, missing_docs)]

use divan::Bencher;
use divan::counter::ItemsCount;
use gpumodel::core::isa::Launch;
use gpumodel::core::units::Dim3;
use gpumodel::trace::{Filter, Recorder};
use gpumodel::trace_run::cubin::Module;
use gpumodel::trace_run::execute::{HostMemory, LaunchRequest, Residency, run};
use gpumodel::trace_run::sass::Code;

const CUBIN: &[u8] = include_bytes!("../data/trace_run/kernels.cubin");
const TEXT: &str = include_str!("../data/trace_run/kernels.sass");
const BASE: u64 = 0x10_0000;
const CTAS: u32 = 256;
const THREADS: u32 = 256;

fn main() {
    divan::main();
}

/// A kernel, and the parameters of a launch.
struct Kernel {
    name: &'static str,
    parameters: Vec<u8>,
}

fn kernel(name: &'static str) -> Kernel {
    let (x, y) = (BASE + 4096, BASE + 4096 + 4 * u64::from(CTAS * THREADS));
    let parameters = match name {
        "saxpy" => {
            let head = [CTAS * THREADS, 2.0_f32.to_bits()].map(u32::to_le_bytes).concat();
            [head, [x, y].map(u64::to_le_bytes).concat()].concat()
        }
        _ => x.to_le_bytes().to_vec(),
    };
    Kernel { name, parameters }
}

#[divan::bench(args = ["steps", "saxpy"], max_time = 2)]
fn executed(bencher: Bencher<'_, '_>, name: &'static str) {
    measure(bencher, &kernel(name), false);
}

#[divan::bench(args = ["steps", "saxpy"], max_time = 2)]
fn recorded(bencher: Bencher<'_, '_>, name: &'static str) {
    measure(bencher, &kernel(name), true);
}

fn launch(name: &str, shared_bytes: u32, registers: u32) -> Launch {
    Launch {
        name: name.into(),
        id: 1,
        grid: Dim3::new(CTAS, 1, 1),
        block: Dim3::new(THREADS, 1, 1),
        shared_bytes,
        registers,
        ..Launch::default()
    }
}

fn measure(bencher: Bencher<'_, '_>, kernel: &Kernel, records: bool) {
    let module = Module::read(CUBIN, BASE).unwrap();
    let code = Code::read(TEXT, &module.functions).unwrap();
    let memory = HostMemory::new(BASE, 4096 + 8 * (CTAS * THREADS) as usize);
    let function = module.functions.iter().find(|one| one.name == kernel.name).unwrap();
    let launch = launch(kernel.name, function.shared_bytes, function.registers);
    let request = LaunchRequest {
        launch: &launch,
        code: &code,
        function,
        parameters: &kernel.parameters,
        constants: &[0; 16],
        stack_bytes: 1024,
        cooperative: 0,
        cluster: Dim3::new(1, 1, 1),
        textures: &[],
        threads: 1,
        residency: Residency { ctas: CTAS.into(), ..Residency::default() },
    };
    let counts = run(&request, &memory, None).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bench.gpt");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    bencher.counter(ItemsCount::new(counts.instructions)).bench(|| {
        if !records {
            return run(&request, &memory, None).unwrap();
        }
        pool.install(|| {
            let mut recorder = Recorder::create(&path, "bench", Filter::default()).unwrap();
            let mut kernel = recorder.launch(&launch, &code.opcodes, code.rows()).unwrap().unwrap();
            let counts = run(&request, &memory, Some(&mut kernel)).unwrap();
            kernel.end().unwrap();
            recorder.finish().unwrap();
            counts
        })
    });
}
