//! How long do the solvers take to split an SM?
//!
//! `cargo bench --bench solve`; arguments are the kernels that share it.

mod curves;

use curves::{Draw, LARGE, SMALL, Shape, demands};
use divan::{Bencher, black_box};
use gpumodel::scheme::solve::{Amount, Demand, exact, water_filling};

fn main() {
    divan::main();
}

const KERNELS: [usize; 3] = [2, 3, 4];

fn drawn(sm: Amount, kernels: usize) -> Vec<Demand> {
    demands(&mut Draw(1), sm, kernels, Shape::Saturating)
}

#[divan::bench(args = KERNELS)]
fn water_filling_of_8_ctas(bencher: Bencher<'_, '_>, kernels: usize) {
    let demands = drawn(SMALL, kernels);
    bencher.bench(|| water_filling(SMALL, black_box(&demands)));
}

#[divan::bench(args = KERNELS)]
fn water_filling_of_32_ctas(bencher: Bencher<'_, '_>, kernels: usize) {
    let demands = drawn(LARGE, kernels);
    bencher.bench(|| water_filling(LARGE, black_box(&demands)));
}

#[divan::bench(args = KERNELS)]
fn exact_of_8_ctas(bencher: Bencher<'_, '_>, kernels: usize) {
    let demands = drawn(SMALL, kernels);
    bencher.bench(|| exact(SMALL, black_box(&demands)));
}

#[divan::bench(args = KERNELS)]
fn exact_of_32_ctas(bencher: Bencher<'_, '_>, kernels: usize) {
    let demands = drawn(LARGE, kernels);
    bencher.bench(|| exact(LARGE, black_box(&demands)));
}
