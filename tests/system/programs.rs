//! Do CUDA programs compute on this computer what they compute on a GPU, and do their traces
//! run in the model? Needs nvcc; without it one line says that it is skipped.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::common::program::{compile, compile_with, compiled_for, gpumodel, toolkit, trace};

/// All programs.
fn sources() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let mut sources: Vec<PathBuf> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    sources.retain(|path| path.extension().is_some_and(|kind| kind == "cu"));
    sources.sort();
    assert!(sources.len() >= 40);
    sources
}

/// Other architectures than sm_80, and a machine of each.
const ARCHITECTURES: [(&str, &str); 4] =
    [("75", "rtx-2060"), ("86", "a40"), ("89", "rtx-4090"), ("90a", "h100")];
/// Programs with instructions that sm_75 lacks.
const SINCE_80: [&str; 3] = ["brain", "tensor", "warps"];
/// Programs whose launches of sm_90 run in the model.
const OF_90: [&str; 3] = ["bulk", "cluster", "wgmma"];

#[test]
fn every_program_passes_on_every_architecture() {
    let Some(nvcc) = toolkit() else { return };
    for (sm, device) in ARCHITECTURES {
        if compiled_for(sm) {
            sources().par_iter().for_each(|source| passes(&nvcc, (sm, device), source));
        }
    }
}

/// Compiles a program and runs it, and its launches in the model where that asks for sm_90.
fn passes(nvcc: &Path, (sm, device): (&str, &str), source: &Path) {
    let name = source.file_stem().unwrap().to_str().unwrap();
    if sm == "75" && SINCE_80.contains(&name) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let (program, store) = (scratch.path().join("program"), scratch.path().join("store.gpt"));
    assert!(compile(nvcc, sm, source, &program), "{name} for sm_{sm}");
    let said = trace(&nvcc.with_file_name("nvdisasm"), device, &program, &store);
    assert!(said.contains(&format!("{name}: PASS")), "{name} on {device}: {said}");
    if sm == "90a" && OF_90.contains(&name) {
        gpumodel(&["analyze", store.to_str().unwrap(), "--machine", device]).code(0);
    }
}

/// Calls after which an order that is not fixed would show in a trace.
const UNORDERED: [&str; 4] = ["atomic", "cudaStream", "cudaGraph", "Cooperative"];

#[test]
fn every_program_passes_and_its_trace_runs_the_same_twice_where_order_could_show() {
    let Some(nvcc) = toolkit() else { return };
    sources().par_iter().for_each(|source| runs_and_is_the_same(&nvcc, source));
}

fn runs_and_is_the_same(nvcc: &Path, source: &Path) {
    let scratch = tempfile::tempdir().unwrap();
    let disassembler = nvcc.with_file_name("nvdisasm");
    let name = source.file_stem().unwrap().to_str().unwrap();
    let program = scratch.path().join(name);
    assert!(compile(nvcc, "80", source, &program), "{name}");
    let traced = |run: &str| {
        let store = scratch.path().join(run).with_extension("gpt");
        let said = trace(&disassembler, "a100", &program, &store);
        assert!(said.contains(&format!("{name}: PASS")), "{name}: {said}");
        store
    };
    let store = traced("one");
    gpumodel(&["analyze", store.to_str().unwrap(), "--machine", "a100"]).code(0);
    let text = std::fs::read_to_string(source).unwrap();
    if UNORDERED.iter().any(|call| text.contains(call)) {
        let [one, two] = [store, traced("two")].map(|store| std::fs::read(store).unwrap());
        assert!(one == two, "{name}: two runs, two traces");
    }
}

/// Programs with calls, variables of all kinds and textures.
const DEBUGGED: [&str; 4] = ["constants", "recursion", "streams", "textures"];

#[test]
fn code_for_the_debugger_computes_the_same() {
    let Some(nvcc) = toolkit() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let (program, store) = (scratch.path().join("program"), scratch.path().join("store.gpt"));
    let disassembler = nvcc.with_file_name("nvdisasm");
    for (sm, device) in [("80", "a100"), ("90a", "h100")] {
        for name in DEBUGGED.into_iter().filter(|_| compiled_for(sm)) {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
            let source = folder.join(name).with_extension("cu");
            assert!(compile_with(&nvcc, (sm, &["-G"]), &source, &program), "{name} for sm_{sm}");
            let said = trace(&disassembler, device, &program, &store);
            assert!(said.contains(&format!("{name}: PASS")), "{name} on {device}: {said}");
        }
    }
}

#[test]
fn copies_from_pinned_memory_and_to_symbols_are_in_the_trace() {
    let Some(nvcc) = toolkit() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let (program, text) = (scratch.path().join("program"), scratch.path().join("text"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/managed.cu");
    assert!(compile(&nvcc, "80", &source, &program));
    let disassembler = nvcc.with_file_name("nvdisasm");
    let [output, tool, program] = [&text, &disassembler, &program].map(|p| p.to_str().unwrap());
    gpumodel(&["trace", "-o", output, "--to", "traceg", "--nvdisasm", tool, "--", program]).code(0);
    let list = std::fs::read_to_string(text.join("kernelslist.g")).unwrap();
    let bytes: Vec<&str> = list
        .lines()
        .filter_map(|line| line.strip_prefix("MemcpyHtoD,")?.split_once(','))
        .map(|(_, bytes)| bytes)
        .collect();
    // The constants, the variable, and the list from pinned memory.
    assert_eq!(bytes, ["32", "128", "2000"], "{list}");
}
