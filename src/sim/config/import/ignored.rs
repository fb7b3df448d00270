//! Options that the importer knows and the model has no counterpart for.

/// Prefix of the key, the only value for which leaving it out is right (where
/// that matters), and why it is left out. The longest prefix counts.
const IGNORED: [(&str, Option<&str>, &str); 57] = [
    ("-dram_seperate_write_queue_enable", Some("0"), "one queue for reads and writes"),
    ("-enable_ptx_file_line_stats", None, "statistics"),
    ("-gpgpu_cache:dl1Pref", None, "cache preference calls are not in traces"),
    ("-gpgpu_cache:il1", None, "instruction cache: perfect in trace mode"),
    ("-gpgpu_clock_gated_lanes", None, "power"),
    ("-gpgpu_coalesce_arch", None, "32-byte sectors from compute capability 4.0 on"),
    ("-gpgpu_compute_capability", None, "the opcode table holds all architectures"),
    ("-gpgpu_const_cache", None, "constant loads are arithmetic in trace mode"),
    ("-gpgpu_dram_return_queue_size", None, "answers leave the channel when the L2 takes them"),
    ("-gpgpu_dram_scheduler", Some("1"), "FR-FCFS"),
    ("-gpgpu_dual_issue_diff_exec_units", None, "dual issue goes to different units"),
    (
        "-gpgpu_enable_specialized_operand_collector",
        None,
        "operand collectors are not modelled one by one",
    ),
    ("-gpgpu_flush_l2_cache", Some("0"), "the L2 keeps its content between kernels"),
    ("-gpgpu_heap_size_limit", None, "functional simulation"),
    ("-gpgpu_ignore_resources_limitation", None, "CTAs need their resources"),
    (
        "-gpgpu_inst_fetch_throughput",
        None,
        "a pass fetches for more instructions than the schedulers issue",
    ),
    ("-gpgpu_l1_banks_hashing_function", Some("0"), "banks of the L1 are interleaved"),
    ("-gpgpu_max_concurrent_kernel", None, "kernels run together as the scheme says"),
    ("-gpgpu_max_cta", Some("0"), "no limit"),
    ("-gpgpu_max_cycle", Some("0"), "no limit"),
    ("-gpgpu_max_insn", Some("0"), "no limit"),
    ("-gpgpu_mem_addr_test", None, "a test of the simulator's own"),
    ("-gpgpu_mem_address_mask", None, "part of the address mapping"),
    ("-gpgpu_memlatency_stat", None, "statistics"),
    ("-gpgpu_n_cluster_ejection_buffer_size", None, "the crossbar's output queue stands for it"),
    ("-gpgpu_n_mem_per_ctrlr", Some("1"), "one device per controller"),
    ("-gpgpu_num_tensor_core_units", None, "HMMA runs on specialised unit 3 in trace mode"),
    ("-gpgpu_operand_collector", None, "operand collectors are not modelled one by one"),
    ("-gpgpu_num_cta_barriers", None, "barriers of traces fit"),
    ("-gpgpu_perfect_inst_const_cache", Some("1"), "instruction and constant caches are perfect"),
    ("-gpgpu_perfect_mem", Some("0"), "caches and memory are modelled"),
    ("-gpgpu_ptx", None, "functional simulation"),
    ("-gpgpu_registers_per_block", None, "launches in traces fit"),
    ("-gpgpu_runtime", None, "statistics and device runtime"),
    ("-gpgpu_shmem_limited_broadcast", Some("0"), "every word is broadcast"),
    ("-gpgpu_shmem_per_block", None, "launches in traces fit"),
    ("-gpgpu_shmem_sizeDefault", None, "cache preference calls are not in traces"),
    ("-gpgpu_shmem_size_Pref", None, "cache preference calls are not in traces"),
    ("-gpgpu_shmem_warp_parts", Some("1"), "a warp is served as a whole"),
    ("-gpgpu_simd_model", None, "the trace's masks are used"),
    ("-gpgpu_stack_size_limit", None, "functional simulation"),
    ("-gpgpu_tensor_core_avail", None, "HMMA runs on specialised unit 3 in trace mode"),
    ("-gpgpu_tex_cache", None, "texture instructions take a fixed time"),
    ("-icnt_flit_size", None, "the built-in crossbar moves whole packets"),
    ("-icnt_subnets", None, "one crossbar per direction"),
    ("-inter_config_file", None, "network details of the external simulator"),
    ("-accelwattch", None, "power"),
    ("-aggregate_power_stats", None, "power"),
    ("-dvfs_enabled", None, "power"),
    ("-gpuwattch_xml_file", None, "power"),
    ("-hw_perf", None, "power"),
    ("-power_", None, "power"),
    ("-steady_", None, "power"),
    ("-ptx_opcode", None, "PTX mode; trace mode has its own figures"),
    ("-specialized_unit", None, "units are counted from their timing lines"),
    (
        "-trace_opcode_latency_initiation_tensor",
        None,
        "HMMA runs on specialised unit 3 in trace mode",
    ),
    ("-visualizer_enabled", None, "statistics"),
];

/// Why the model leaves out the option `key` with this `value`; `None` for an
/// option or a value that it does not know.
pub(super) fn reason(key: &str, value: &str) -> Option<&'static str> {
    let (_, only, reason) = row(key)?;
    only.is_none_or(|only| only == value).then_some(*reason)
}

/// The value of the option `key` that the model stands for, and why, where another one is not
/// modelled; `None` for an option that it does not know.
pub(super) fn modelled(key: &str) -> Option<(&'static str, &'static str)> {
    let (_, only, reason) = row(key)?;
    Some((only.as_ref()?, reason))
}

/// The options that are left out.
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    IGNORED.iter().map(|row| row.0)
}

fn row(key: &str) -> Option<&'static (&'static str, Option<&'static str>, &'static str)> {
    let matching = IGNORED.iter().filter(|row| key.starts_with(row.0));
    matching.max_by_key(|row| row.0.len())
}

#[cfg(test)]
mod tests {
    use super::{modelled, reason};

    #[test]
    fn an_option_is_left_out_only_at_the_value_that_the_model_stands_for() {
        assert_eq!(reason("-gpgpu_dram_scheduler", "1"), Some("FR-FCFS"));
        assert_eq!(reason("-gpgpu_dram_scheduler", "0"), None);
        assert_eq!(modelled("-gpgpu_dram_scheduler"), Some(("1", "FR-FCFS")));
        assert_eq!(modelled("-gpgpu_runtime_stat"), None);
        assert_eq!(reason("-gpgpu_runtime_stat", "500"), Some("statistics and device runtime"));
        assert_eq!(reason("-no_such_option", "1"), None);
    }
}
