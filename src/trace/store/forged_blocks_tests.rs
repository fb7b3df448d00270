//! Tests: blocks whose checksums are right but whose bytes are not, as only a
//! forger makes them. Reading them must end, without a panic, in an error or in
//! some records.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;

use super::chunk::{Chunk, Frame};
use super::code::{self, Program};
use super::cursor::Cta;
use super::file::StoreFile;
use super::index::{self, Index};
use super::trailing_fields;
use crate::import::{ConvertRequest, Silent, convert};
use gpumodel_core::isa::Access;
use gpumodel_core::units::Dim3;

/// The blocks of the golden trace's store.
struct Blocks {
    chunk: Vec<u8>,
    tails: Vec<u8>,
    code: Vec<u8>,
    grid: Dim3,
}

fn blocks() -> Blocks {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.gpt");
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/golden/v1.traceg");
    let inputs: Vec<PathBuf> = vec![input];
    let request = ConvertRequest { inputs, output: output.clone(), ..ConvertRequest::default() };
    convert(&request, &Silent).unwrap();
    let file = StoreFile::open(&output).unwrap();
    let index = Index::open(&output, &file).unwrap();
    let kernel = &index.kernels()[0];
    let rows = index.chunks_of(kernel).1;
    Blocks {
        chunk: file.block(&rows[0].body).unwrap(),
        tails: file.block(&rows[0].tails).unwrap(),
        code: file.block(&index.codes()[0].body).unwrap(),
        grid: index::dim(kernel.grid),
    }
}

/// Reads at most some thousand segments of every warp.
fn read(chunk: Chunk, program: &Arc<Program>) {
    let chunk = Arc::new(chunk);
    let mut access = Access::default();
    for (index, position) in (0_u32..).zip(chunk.positions.clone()) {
        let cta = Cta { position, index, chunk: Arc::clone(&chunk), program: Arc::clone(program) };
        for warp in 0..cta.warp_count() {
            let mut cursor = cta.warp(warp);
            for _ in 0..2_000 {
                if cursor.next_segment().is_none() {
                    break;
                }
                let _ = cursor.mask();
                cursor.access(&mut access);
                cursor.skip(1);
                while cursor.left() > 0 {
                    cursor.access(&mut access);
                }
            }
        }
    }
}

fn damage(bytes: &mut Vec<u8>, edits: &[(prop::sample::Index, u8, u8)]) {
    for (at, value, kind) in edits {
        let at = at.index(bytes.len().max(1));
        match kind % 3 {
            0 => bytes.insert(at.min(bytes.len()), *value),
            1 if bytes.len() > 1 => {
                bytes.remove(at);
            }
            _ => bytes[at] = *value,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn forged_blocks_end_in_errors_or_records(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<u8>()), 1..5),
        target in 0..3,
    ) {
        thread_local!(static BLOCKS: Blocks = blocks());
        BLOCKS.with(|good| {
            let [mut chunk, mut tails, mut code] =
                [&good.chunk, &good.tails, &good.code].map(Clone::clone);
            damage([&mut chunk, &mut tails, &mut code][usize::try_from(target).unwrap()], &edits);
            let _ = trailing_fields::unpack(&tails, 2, 2);
            let Ok(code) = code::read(&code) else { return };
            let program = Arc::new(Program::new(Arc::new(code)));
            let frame = Frame { program: &program, grid: good.grid, warps_per_cta: 2, ctas: 2 };
            if let Ok(chunk) = Chunk::decode(chunk, frame) {
                read(chunk, &program);
            }
        });
    }
}
