//! Kernels of a record as CSV: one line per launch, units in the names.

use super::{Analysis, AppRecord, KernelRecord, SampleRecord};

const COLUMNS: [&str; 28] = [
    "machine",
    "app",
    "launch",
    "id",
    "stream",
    "name",
    "grid",
    "block",
    "start_cycle",
    "end_cycle",
    "cycles",
    "launch_cycles",
    "warp_instructions",
    "thread_instructions",
    "ctas_per_sm",
    "occupancy",
    "l1_accesses",
    "l1_hits",
    "l2_accesses",
    "l2_hits",
    "dram_read_sectors",
    "dram_write_sectors",
    "dram_row_hits",
    "dram_row_misses",
    "sample_ctas_run",
    "sample_cycles_low",
    "sample_cycles_high",
    "memory_only",
];

impl Analysis {
    /// The launches of every solo run as CSV, in record order; the columns are
    /// the keys of the JSON record; those of the sample are empty where every CTA ran.
    ///
    /// # Panics
    /// Never: the text is written to memory, and every line has every column.
    #[must_use]
    pub fn kernels_csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let rows = self.solo.iter().flat_map(|app| app.kernels.iter().map(move |k| (app, k)));
        writer.write_record(COLUMNS).expect("memory takes every write");
        for (app, kernel) in rows {
            writer.write_record(self.cells(app, kernel)).expect("memory takes every write");
        }
        let bytes = writer.into_inner().expect("memory takes every write");
        String::from_utf8(bytes).expect("every cell is text")
    }

    fn cells(&self, app: &AppRecord, kernel: &KernelRecord) -> [String; COLUMNS.len()] {
        let sample = kernel.sample.as_ref().filter(|_| kernel.is_sampled());
        let sampled = |of: fn(&SampleRecord) -> u64| {
            sample.map_or_else(String::new, |sample| of(sample).to_string())
        };
        let extent = |d: gpumodel_core::units::Dim3| format!("{}x{}x{}", d.x, d.y, d.z);
        [
            self.machine.name.clone(),
            app.app.clone(),
            kernel.launch.to_string(),
            kernel.id.to_string(),
            kernel.stream.to_string(),
            kernel.name.clone(),
            extent(kernel.grid),
            extent(kernel.block),
            kernel.start_cycle.to_string(),
            kernel.end_cycle.to_string(),
            kernel.cycles.to_string(),
            kernel.launch_cycles.to_string(),
            kernel.warp_instructions.to_string(),
            kernel.thread_instructions.to_string(),
            kernel.ctas_per_sm.to_string(),
            format!("{:.6}", kernel.occupancy),
            kernel.l1.accesses.to_string(),
            kernel.l1.hits.to_string(),
            kernel.l2.accesses.to_string(),
            kernel.l2.hits.to_string(),
            kernel.dram.read_sectors.to_string(),
            kernel.dram.write_sectors.to_string(),
            kernel.dram.row_hits.to_string(),
            kernel.dram.row_misses.to_string(),
            sampled(|s| s.ctas_run),
            sampled(|s| s.cycles_low),
            sampled(|s| s.cycles_high),
            kernel.memory_only.to_string(),
        ]
    }
}
