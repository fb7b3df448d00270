//! Does any configuration that GPGPU-Sim runs become a machine that passes its checks and runs?
//!
//! The texts are own ones in the simulator's grammar; those that people posted are tried
//! where they are present.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use gpumodel::app::{AnalyzeRequest, AppName, Unwatched, analyze, check_memory};
use gpumodel::sim::config::{ImportLabel, Machine, import_accelsim};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

use crate::sharing::store;

const HBM: &str = "00000000.00000000.00000000.00000000.0000RRRR.RRRRRRRR.RBBBCCCB.CCCSSSSS";
const GDDR: &str = "00000000.00000000.00000000.00000000.0000RRRR.RRRRRRRR.RBBBCCCC.BCCSSSSS";
const FERMI: &str = "00000000.00000000.00000000.00000000.0000RRRR.RRRRRRRR.BBBCCCCB.CCSSSSSS";

/// L1 descriptions, new and old, with and without sectors.
const L1: [&str; 10] = [
    "S:4:128:64,L:T:m:L:L,A:512:8,16:0,32",
    "S:1:128:256,L:L:s:N:L,A:256:8,16:0,32",
    "S:64:128:6,F:B:m:F:P,A:128:8,16:0,32",
    "N:32:128:4,L:L:m:N:H,S:64:8,8",
    "64:128:6,L:L:m:N:H,A:128:8,16",
    "N:64:128:6,L:E:m:L:X,A:32:8,8",
    "N:16:64:8,F:T:m:N:P,A:32:8,8:0,32",
    "64:128:8:L:T:f,A:16:4",
    "N:24:128:6,L:T:m:W:L,A:128:8,16",
    "none",
];

/// L2 descriptions, likewise.
const L2: [&str; 8] = [
    "S:32:128:24,L:B:m:L:P,A:192:4,32:0,32",
    "S:128:128:16,L:B:m:L:X,A:192:4,32:0,32",
    "N:64:128:16,L:B:m:W:L,A:1024:1024,4:0,32",
    "64:128:8,L:B:m:N,A:16:4,4",
    "N:16:256:8,L:B:m:F:X,A:64:4,8:0,32",
    "N:32:32:8,L:T:m:N:L,A:64:4,8",
    "N:64:128:8,L:E:m:N:H,A:64:4,8",
    "none",
];

/// DRAM timing, named and in the old order, with and without bank groups.
const TIMING: [&str; 4] = [
    "\"nbk=16:CCD=1:RRD=3:RCD=12:RAS=28:RP=12:RC=40:\n  CL=12:WL=2:CDLR=3:WR=10:nbkgrp=4:CCDL=2:RTPL=3\"",
    "nbk=16:CCD=4:RRD=12:RCD=24:RAS=55:RP=24:RC=78:CL=24:WL=8:CDLR=10:WR=24:nbkgrp=1:CCDL=0:RTPL=0",
    "16:2:8:12:21:13:34:9:4:5:13",
    "nbk=32:CCD=2:RRD=8:RCD=12:RAS=25:RP=10:RC=35:CL=10:WL=7:CDLR=6:WR=11:nbkgrp=2",
];

/// One configuration.
#[derive(Clone, Debug)]
struct Variant {
    channels: u32,
    slices: u32,
    indexing: u32,
    /// The mapping, or a mask.
    address: String,
    bank: (u32, u32),
    l1: &'static str,
    l2: &'static str,
    textures: bool,
    timing: &'static str,
    /// Bus, burst length, ratio and devices.
    bus: (u32, u32, u32, u32),
    adaptive: bool,
    network: u32,
    queue: u32,
}

impl Variant {
    /// Whether the simulator's index functions take these channels.
    fn indexes(&self) -> bool {
        let (channels, slices) = (self.channels, self.slices);
        match self.indexing {
            1 => channels.is_power_of_two(),
            2 => channels > 1 && [16, 32, 64].contains(&(channels.next_power_of_two() * slices)),
            3 => channels == 32,
            // Mask 100 has the channel at bit 1, below the blocks of four sub-partitions.
            4 => slices < 4 || !self.address.ends_with(" 100"),
            _ => true,
        }
    }

    /// Its options, a line each.
    fn lines(&self) -> Vec<String> {
        let (bus, burst, ratio, devices) = self.bus;
        let mut lines = vec![
            "-gpgpu_n_clusters 4".to_owned(),
            "-gpgpu_n_cores_per_cluster 2".to_owned(),
            format!("-gpgpu_n_mem {}", self.channels),
            format!("-gpgpu_n_sub_partition_per_mchannel {}", self.slices),
            format!("-gpgpu_memory_partition_indexing {}", self.indexing),
            self.address.clone(),
            format!("-dram_bnk_indexing_policy {}", self.bank.0),
            format!("-dram_bnkgrp_indexing_policy {}", self.bank.1),
            "-gpgpu_clock_domains 1000.0:1000.0:1000.0:850.0".to_owned(),
            "-gpgpu_shader_core_pipeline 2048:32".to_owned(),
            "-gpgpu_shader_cta 32".to_owned(),
            "-gpgpu_shader_registers 65536".to_owned(),
            "-gpgpu_num_sched_per_core 4".to_owned(),
            "-gpgpu_scheduler lrr".to_owned(),
            "-gpgpu_shmem_size 32768".to_owned(),
            format!("-gpgpu_cache:dl1 {}", self.l1),
            format!("-gpgpu_cache:dl2 {}", self.l2),
            format!("-gpgpu_cache:dl2_texture_only {}", u32::from(self.textures)),
            format!("-gpgpu_adaptive_cache_config {}", u32::from(self.adaptive)),
            format!("-gpgpu_dram_timing_opt {}", self.timing),
            format!("-gpgpu_dram_buswidth {bus}"),
            format!("-gpgpu_dram_burst_length {burst}"),
            format!("-dram_data_command_freq_ratio {ratio}"),
            format!("-gpgpu_n_mem_per_ctrlr {devices}"),
            format!("-gpgpu_frfcfs_dram_sched_queue_size {}", self.queue),
            format!("-network_mode {}", self.network),
        ];
        if self.adaptive {
            lines.push("-gpgpu_shmem_option 0,8,16,32".to_owned());
            lines.push("-gpgpu_unified_l1d_size 128".to_owned());
        }
        lines
    }
}

prop_compose! {
    fn addresses()(
        bits in prop::sample::select(vec![HBM, GDDR, FERMI]),
        channel_bit in prop::sample::select(vec![5_u32, 6, 7, 8, 8, 8, 8, 9, 10, 12, 13]),
        mask in prop::sample::select(vec![0_u32, 1, 2, 3, 5, 6, 14, 15, 16, 100, 103, 106, 160]),
        masked in prop::bool::weighted(0.3),
    ) -> String {
        if masked {
            format!("-gpgpu_mem_address_mask {mask}")
        } else {
            format!("-gpgpu_mem_addr_mapping dramid@{channel_bit};{bits}")
        }
    }
}

prop_compose! {
    fn memories()(
        channels in prop::sample::select(vec![
            1_u32, 2, 6, 8, 11, 12, 16, 24, 32, 32, 40, 48, 144,
        ]),
        slices in prop::sample::select(vec![1_u32, 2, 2, 4]),
        indexing in 0_u32..5,
        address in addresses(),
        bank in (0_u32..3, 0_u32..2),
        timing in prop::sample::select(TIMING.to_vec()),
        bus in prop::sample::select(vec![
            (16, 2, 2, 1), (2, 16, 4, 1), (4, 8, 4, 2), (4, 8, 4, 1), (32, 8, 4, 2), (4, 4, 2, 1),
            (8, 2, 4, 1),
        ]),
        queue in prop::sample::select(vec![0_u32, 16, 64]),
    ) -> (u32, u32, u32, String, (u32, u32), &'static str, (u32, u32, u32, u32), u32) {
        (channels, slices, indexing, address, bank, timing, bus, queue)
    }
}

prop_compose! {
    fn variants()(
        (channels, slices, indexing, address, bank, timing, bus, queue) in memories(),
        l1 in prop::sample::select(L1.to_vec()),
        l2 in prop::sample::select(L2.to_vec()),
        textures in prop::bool::weighted(0.1),
        adaptive in any::<bool>(),
        network in 1_u32..3,
    ) -> Variant {
        let adaptive = adaptive && l1.starts_with("S:");
        Variant {
            channels, slices, indexing, address, bank, l1, l2, textures, timing, bus, adaptive,
            network, queue,
        }
    }
}

/// The options of a TITAN V, nearly.
fn usual() -> Variant {
    Variant {
        channels: 24,
        slices: 2,
        indexing: 2,
        address: format!("-gpgpu_mem_addr_mapping dramid@8;{HBM}"),
        bank: (0, 1),
        l1: L1[0],
        l2: L2[0],
        textures: false,
        timing: TIMING[1],
        bus: (16, 2, 2, 1),
        adaptive: true,
        network: 2,
        queue: 64,
    }
}

fn label() -> ImportLabel {
    ImportLabel { name: "variant".to_owned(), description: "made for the tests".to_owned() }
}

/// Imports `text` and checks what comes out as `machine check` does.
fn imported(folder: &Path, text: &str) -> Result<(PathBuf, Machine), String> {
    let (config, file) = (folder.join("gpgpusim.config"), folder.join("variant.toml"));
    fs::write(&config, text).unwrap();
    let import = import_accelsim(&[config], &label()).map_err(|error| error.to_string())?;
    fs::write(&file, &import.text).unwrap();
    let models = gpumodel::models();
    let (resolved, problems) = models.examine(file.to_str().unwrap(), &[]).unwrap();
    if let Some(problem) = problems.first() {
        return Err(format!("written, but {problem}"));
    }
    check_memory(&resolved.machine, &models).map_err(|error| format!("written, but {error}"))?;
    Ok((file, resolved.machine))
}

/// Runs the small kernel of `store` on a machine: cycles and DRAM sectors.
fn run(store: &Path, machine: &Path) -> (u64, u64) {
    let app = AppName { name: "copy".to_owned(), path: store.to_path_buf() };
    let request = AnalyzeRequest::new(vec![app], machine, Path::new("/no/such/folder"));
    let analysis = analyze(&request, &Unwatched)
        .unwrap_or_else(|error| panic!("{error:?}\n{}", fs::read_to_string(machine).unwrap()));
    let solo = &analysis.solo[0];
    (solo.cycles, solo.dram.read_sectors + solo.dram.write_sectors)
}

/// Draws until `count` variants that `holds` takes have been tried.
fn for_each(count: usize, holds: impl Fn(&Variant) -> bool, mut check: impl FnMut(&Variant)) {
    let mut runner = TestRunner::deterministic();
    let drawn = std::iter::from_fn(|| Some(variants().new_tree(&mut runner).unwrap().current()));
    drawn.filter(holds).take(count).for_each(|variant| check(&variant));
}

#[test]
fn every_variant_is_imported_checked_and_run() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = store(folder.path(), "copy");
    for_each(60, Variant::indexes, |variant| {
        let text = variant.lines().join("\n");
        let (file, machine) =
            imported(folder.path(), &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(
            (machine.dram.channels, machine.l2.slices),
            (variant.channels, variant.channels * variant.slices)
        );
        let (cycles, sectors) = run(&kernel, &file);
        assert!(cycles > 1000 && sectors > 0, "{cycles} cycles, {sectors} sectors\n{text}");
    });
}

#[test]
fn many_more_variants_are_imported_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    for_each(
        600,
        |_| true,
        |variant| {
            let text = variant.lines().join("\n");
            let found = imported(folder.path(), &text);
            assert_eq!(found.is_ok(), variant.indexes(), "{:?}\n{text}", found.err());
            if let Err(error) = found {
                let option = "gpgpusim.config:5: `-gpgpu_memory_partition_indexing`: expected";
                assert!(error.contains(option), "{error}");
            }
        },
    );
}

#[test]
fn options_may_be_missing() {
    let folder = tempfile::tempdir().unwrap();
    let mut runner =
        TestRunner::new_with_rng(Config::default(), TestRunner::deterministic().new_rng());
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..300 {
        let variant = variants().new_tree(&mut runner).unwrap().current();
        let lines = variant.lines();
        let kept = prop::sample::subsequence(lines.clone(), 1..lines.len());
        let text = kept.new_tree(&mut runner).unwrap().current().join("\n");
        match imported(folder.path(), &text) {
            Ok(_) => taken += 1,
            Err(error) => {
                // What remains does not go together: the error names an option and its line, or
                // the default that does not fit.
                let named = error.contains("gpgpusim.config:") || error.contains("default");
                assert!(named && error.contains("`-") && error.contains("expected"), "{error}");
                refused += 1;
            }
        }
    }
    assert!(taken > 2 * refused, "{taken} taken, {refused} refused");
}

/// Options that `Variant::lines` leaves out.
const MORE: [&str; 24] = [
    "-gpgpu_kernel_launch_latency 5000",
    "-gpgpu_TB_launch_latency 0",
    "-gpgpu_max_insn_issue_per_warp 1",
    "-gpgpu_num_sp_units 4",
    "-gpgpu_num_dp_units 2",
    "-gpgpu_num_int_units 4",
    "-gpgpu_num_sfu_units 4",
    "-gpgpu_num_reg_banks 16",
    "-gpgpu_reg_file_port_throughput 2",
    "-gpgpu_shmem_num_banks 32",
    "-gpgpu_smem_latency 20",
    "-gpgpu_l1_latency 20",
    "-gpgpu_l1_banks 4",
    "-gpgpu_l1_banks_byte_interleaving 32",
    "-gpgpu_l1_cache_write_ratio 25",
    "-gpgpu_pipeline_widths 4,4,4,4,4,4,4,4,4,4,8,4,4",
    "-gpgpu_operand_collector_num_units_gen 8",
    "-gpgpu_l2_rop_latency 160",
    "-gpgpu_dram_partition_queues 64:64:64:64",
    "-dram_latency 100",
    "-icnt_in_buffer_limit 512",
    "-icnt_out_buffer_limit 512",
    "-trace_opcode_latency_initiation_sp 2,2",
    "-specialized_unit_3 1,4,8,4,4,TENSOR",
];

/// `line` with its numbers, one after the other, replaced by `number`.
fn with_numbers(line: &str, number: &str) -> Vec<String> {
    let value = line.find(' ').unwrap_or(0);
    let is_digit = |at: usize| line.as_bytes()[at].is_ascii_digit();
    let starts = (value..line.len()).filter(|&at| is_digit(at) && !is_digit(at - 1));
    let replaced = |start: usize| {
        let end = (start..line.len()).find(|&at| !is_digit(at)).unwrap_or(line.len());
        format!("{}{number}{}", &line[..start], &line[end..])
    };
    starts.map(replaced).collect()
}

#[test]
fn any_number_is_written_as_it_passes_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<String> = usual().lines().into_iter().chain(MORE.map(str::to_owned)).collect();
    let (mut taken, mut refused, mut wrong) = (0, 0, Vec::new());
    for at in 0..lines.len() {
        for number in
            ["0", "1", "3", "64", "255", "4096", "100000", "16777216", "4294967295", "99999999999"]
        {
            for line in with_numbers(&lines[at], number) {
                let mut changed = lines.clone();
                changed[at].clone_from(&line);
                match imported(folder.path(), &changed.join("\n")) {
                    Ok(_) => taken += 1,
                    Err(error) if error.contains("gpgpusim.config:") => refused += 1,
                    Err(error) => wrong.push(format!("{line}: {error}")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(taken > 300 && refused > 300, "{taken} taken, {refused} refused");
}

#[test]
fn missing_options_have_the_defaults_of_the_simulator() {
    let folder = tempfile::tempdir().unwrap();
    let (_, m) = imported(folder.path(), "-gpgpu_occupancy_sm_number 70\n").unwrap();
    assert_eq!((m.dispatch.sms, m.interconnect.sms_per_port), (30, 3));
    assert_eq!((m.sm.max_warps, m.sm.max_ctas, m.sm.registers), (32, 32, 8192));
    assert_eq!((m.clocks.core_mhz, m.clocks.dram_mhz), (500.0, Some(2000.0)));
    assert_eq!((m.dram.channels, m.l2.slices, m.shared.bytes), (8, 8, 16384));
    let layout = m.dram.layout.unwrap();
    assert_eq!(layout.channel_bit, Some(10), "mask 0");
    assert!(layout.bits.ends_with("RCCC00BBCCCCCCCC") || layout.bits.ends_with("CCCBBCCCCCCCC"));
    assert!(!m.l1.caches_global, "no L1");
    assert_eq!((m.l2.cache.sets, m.l2.cache.ways), (1, 1), "the L2 is for textures");
    assert_eq!((m.dram.timing["nbk"], m.dram.timing["CCDL"]), (4.0, 0.0));
}

/// Option, a value that cannot work, what the error expects instead.
const REFUSED: &[(&str, &str, &str)] = &[
    ("-gpgpu_memory_partition_indexing", "1", "a power of two of channels for xor"),
    ("-gpgpu_memory_partition_indexing", "3", "32 channels for PAE"),
    ("-gpgpu_memory_partition_indexing", "5", "custom"),
    ("-gpgpu_memory_partition_indexing", "6", "0 linear, 1 xor"),
    ("-gpgpu_n_sub_partition_per_mchannel", "3", "a power of two of sub-partitions"),
    ("-gpgpu_n_sub_partition_per_mchannel", "0", "at least one sub-partition"),
    ("-gpgpu_n_mem", "0", "a number from 1 to 1024"),
    ("-gpgpu_mem_addr_mapping", "dramid@8;RRBB", "64 letters R, B, C, S, D or 0, found 4"),
    ("-gpgpu_mem_addr_mapping", "chip@8;RRBB", "an address layout dramid@BIT;LETTERS"),
    ("-gpgpu_cache:dl1", "S:4:128:64,L:T:m:L:C,A:512:8", "what a custom one (C) does"),
    ("-gpgpu_cache:dl1", "S:4:128:64,L:T:m:L:P,A:512:8", "16, 32 or 64 sets"),
    ("-gpgpu_cache:dl1", "S:4:128:64,L:T:m:L:H,A:512:8", "32 or 64 sets"),
    ("-gpgpu_cache:dl1", "S:4:64:64,L:T:m:L:L,A:512:8", "lines of 128 bytes"),
    ("-gpgpu_cache:dl1", "S:4:128:64,L:R:m:L:L,A:512:8", "a write policy T, B, E or L"),
    ("-gpgpu_cache:dl1", "S:4:128:64,L:T:m:L:L,T:512:8", "MSHRs of a data cache"),
    ("-gpgpu_cache:dl1", "S:4:128:0,L:T:m:L:L,A:512:8", "sets, ways, MSHRs and merges"),
    ("-gpgpu_cache:dl2", "S:32:128:24,L:B:f:N:P,A:192:4", "allocation on a miss (m)"),
    ("-gpgpu_cache:dl2", "S:32:128:24,L:T:s:L:P,A:192:4", "allocation on a miss (m)"),
    ("-gpgpu_cache:dl2", "N:24:128:24,L:B:m:L:X,A:192:4", "a power of two of sets"),
    ("-gpgpu_cache:dl2", "S:32:128", "S or N:sets:line:ways"),
    ("-gpgpu_dram_timing_opt", "nbk=8:CCD=1", "RRD=CLOCKS among them"),
    ("-gpgpu_dram_timing_opt", "nbk=8:XYZ=1", "instead of XYZ"),
    ("-gpgpu_dram_timing_opt", "8:2:8:12:21:13:34:9:4:5:13", "at least the 16 banks"),
    ("-gpgpu_dram_timing_opt", "0:2:8:12:21:13:34:9:4:5:13", "nbk from 1 to 64"),
    ("-gpgpu_dram_timing_opt", "16:2:8:12:21:13:34:9:4:5:13:3", "nbkgrp"),
    ("-dram_bnk_indexing_policy", "3", "0 linear, 1 xor or 2 IPoly"),
    ("-dram_bnkgrp_indexing_policy", "2", "0 higher bits or 1 lower bits"),
    ("-gpgpu_dram_burst_length", "0", "a number from 1 to 1024"),
    ("-gpgpu_unified_l1d_size", "16", "KB that hold"),
    ("-gpgpu_shmem_option", "0,8", "a size of at least the 32768 bytes"),
    ("-network_mode", "3", "a number from 1 to 2"),
    ("-gpgpu_num_sched_per_core", "5", "schedulers that divide the 64 warps"),
    ("-gpgpu_scheduler", "warp_limiting:2:8", "lrr, gto"),
    ("-gpgpu_clock_domains", "1000:0:1000:850", "four clocks in MHz"),
];

#[test]
fn what_cannot_work_is_refused_at_its_option() {
    let folder = tempfile::tempdir().unwrap();
    let lines = usual().lines();
    imported(folder.path(), &lines.join("\n")).unwrap();
    for (option, value, expected) in REFUSED {
        let at = lines.iter().position(|line| line.starts_with(&format!("{option} "))).unwrap();
        let mut changed = lines.clone();
        changed[at] = format!("{option} {value}");
        let error = imported(folder.path(), &changed.join("\n")).unwrap_err();
        // A value in quotes takes two lines.
        let place = format!("gpgpusim.config:{}: `{option}`: expected", at + 1);
        assert!(error.contains(&place), "{option} {value}: {error}");
        assert!(error.contains(expected), "{option} {value}: {error}");
        let shown = value.replace('"', "");
        assert!(error.contains(&format!("found \"{shown}\"")), "{option} {value}: {error}");
    }
    let other = imported(folder.path(), "-frobnicate 1\n").unwrap_err();
    assert!(other.contains("is this a gpgpusim.config?"), "{other}");
}

#[test]
fn posted_configurations_are_imported_checked_and_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/reference/cyclesim");
    let mut texts: Vec<PathBuf> = Vec::new();
    for folder in ["configs-posted", "configs"] {
        let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
        texts.extend(entries.map(|entry| match entry.path() {
            path if path.is_dir() => path.join("gpgpusim.config"),
            path => path,
        }));
    }
    if texts.is_empty() {
        crate::skip::skipped("posted configurations not present");
        return;
    }
    texts.sort();
    let folder = tempfile::tempdir().unwrap();
    let kernel = store(folder.path(), "copy");
    let mut table = String::new();
    for path in texts {
        let text = fs::read_to_string(&path).unwrap();
        let (file, machine) = imported(folder.path(), &text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (cycles, _) = run(&kernel, &file);
        writeln!(table, "{}: {} channels, {cycles} cycles", path.display(), machine.dram.channels)
            .unwrap();
        assert!(cycles > 1000, "{table}");
    }
}
