//! How long do the solvers take to split an SM, and to match a queue?
//!
//! `cargo bench --bench solve`; arguments are the kernels that share an SM, and the
//! applications that run together.

mod curves;

use curves::{Draw, LARGE, SMALL, Shape, demands};
use divan::{Bencher, black_box};
use gpumodel::policy::solve::{
    Amount, Demand, Engine, exact, matching, patterns, water_filling, with_idle,
};

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

/// 10 000 applications of four classes, M the most of them.
#[divan::bench(args = [2, 3, 4])]
fn matching_of_10_000_applications(bencher: Bencher<'_, '_>, places: u32) {
    let slowdown = [
        vec![2.1, 1.8, 1.6, 1.2],
        vec![2.05, 1.7, 1.55, 1.15],
        vec![1.76, 1.5, 1.5, 1.1],
        vec![1.51, 1.3, 1.2, 1.06],
    ];
    bencher.bench(|| {
        let demand = with_idle(black_box(&[5501, 1500, 1500, 1499]), places);
        matching(&patterns(&slowdown, &demand, places), &demand, Engine::default())
    });
}
