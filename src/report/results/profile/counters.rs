//! Counts of instructions and accesses: those of a run against those of a card.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gpumodel_core::units::Dim3;

use super::metrics::Measured;
use super::pairing::{Launch, in_order};
use super::sheet::{Sheet, Wrong, decode};
use super::{Profiled, Quantity, RecordError, missing, ncu, refuse_report};
use crate::format::plain_name;

macro_rules! counters {
    ($($variant:ident $name:literal: $($metric:literal)*;)*) => {
        /// What a run without a GPU and a card both count, per launch.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Counter {
            $(#[doc = $name] $variant,)*
        }

        impl Counter {
            /// Every counter.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Its name in tables.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The metrics of Nsight Compute that are this counter.
            const fn metrics(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &[$($metric),*],)* }
            }
        }
    };
}

counters! {
    WarpInstructions "warp instructions": ;
    ThreadInstructions "thread instructions": ;
    GlobalLoads "global loads":
        "smsp__inst_executed_op_global_ld.sum" "sm__inst_executed_op_global_ld.sum"
        "smsp__sass_inst_executed_op_global_ld.sum" "sass__inst_executed_global_loads";
    GlobalStores "global stores":
        "smsp__inst_executed_op_global_st.sum" "sm__inst_executed_op_global_st.sum"
        "smsp__sass_inst_executed_op_global_st.sum" "sass__inst_executed_global_stores";
    LocalLoads "local loads":
        "smsp__inst_executed_op_local_ld.sum" "sm__inst_executed_op_local_ld.sum"
        "smsp__sass_inst_executed_op_local_ld.sum" "sass__inst_executed_local_loads";
    LocalStores "local stores":
        "smsp__inst_executed_op_local_st.sum" "sm__inst_executed_op_local_st.sum"
        "smsp__sass_inst_executed_op_local_st.sum" "sass__inst_executed_local_stores";
    SharedLoads "shared loads":
        "smsp__inst_executed_op_shared_ld.sum" "sm__inst_executed_op_shared_ld.sum"
        "smsp__sass_inst_executed_op_shared_ld.sum" "sass__inst_executed_shared_loads";
    SharedStores "shared stores":
        "smsp__inst_executed_op_shared_st.sum" "sm__inst_executed_op_shared_st.sum"
        "smsp__sass_inst_executed_op_shared_st.sum" "sass__inst_executed_shared_stores";
    SharedAccesses "shared loads and stores":
        "smsp__inst_executed_op_shared.sum" "sm__inst_executed_op_shared.sum"
        "smsp__sass_inst_executed_op_shared.sum";
    GlobalAtomics "global atomics":
        "smsp__inst_executed_op_global_atom.sum" "sm__inst_executed_op_global_atom.sum"
        "smsp__sass_inst_executed_op_global_atom.sum";
    GlobalReductions "global reductions":
        "smsp__inst_executed_op_global_red.sum" "sm__inst_executed_op_global_red.sum"
        "smsp__sass_inst_executed_op_global_red.sum";
    SharedAtomics "shared atomics":
        "smsp__inst_executed_op_shared_atom.sum" "sm__inst_executed_op_shared_atom.sum"
        "smsp__sass_inst_executed_op_shared_atom.sum";
    GlobalLoadSectors "global load sectors":
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum";
    GlobalStoreSectors "global store sectors":
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum";
    LocalLoadSectors "local load sectors":
        "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum";
    LocalStoreSectors "local store sectors":
        "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum";
    SharedLoadConflicts "shared load bank conflicts":
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
        "sm__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum";
    SharedStoreConflicts "shared store bank conflicts":
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"
        "sm__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum";
}

/// The counter that the metric `name` is, and its rank among names of the same.
pub(super) fn find(name: &str) -> Option<(Counter, usize)> {
    let place = |counter: &Counter| {
        let rank = counter.metrics().iter().position(|metric| *metric == name)?;
        Some((*counter, rank))
    };
    Counter::ALL.iter().find_map(place)
}

/// A launch of a run and its counts.
#[derive(Clone, Debug)]
pub struct CountedLaunch {
    /// The kernel's name.
    pub name: String,
    /// CTAs.
    pub grid: Dim3,
    /// Threads of a CTA.
    pub block: Dim3,
    /// What was counted.
    pub counts: BTreeMap<Counter, u64>,
}

/// A counter of one launch, of the run and of the card.
#[derive(Clone, Debug)]
pub struct CounterRow {
    /// The launch, from 1 on; 0: a mean over all launches of the kernel.
    pub launch: usize,
    /// The kernel's name without arguments.
    pub kernel: String,
    /// What is counted.
    pub counter: Counter,
    /// Of the run.
    pub run: f64,
    /// Of the card.
    pub card: f64,
}

impl CounterRow {
    /// The run's count over the card's, less 1; infinite where the card counted none.
    #[must_use]
    pub fn error(&self) -> f64 {
        match (self.run - self.card, self.card) {
            (0.0, _) => 0.0,
            (distance, 0.0) => distance.signum() * f64::INFINITY,
            (distance, card) => distance / card,
        }
    }
}

/// The counters of a run against those of a profile.
#[derive(Clone, Debug, Default)]
pub struct CounterCheck {
    /// By launch and counter.
    pub rows: Vec<CounterRow>,
    /// Launches of the profile that the run has not, each with its line.
    pub missing: Vec<String>,
}

impl CounterCheck {
    /// Compares `launches` with the `ncu --csv` in the file at `path`.
    ///
    /// # Errors
    /// [`RecordError`] with the line of what is wrong, or when nothing can be compared.
    pub fn read(path: &Path, launches: &[CountedLaunch]) -> Result<Self, RecordError> {
        let bytes = fs::read(path)
            .map_err(|error| RecordError::table(path, 0, format!("it cannot be read: {error}")))?;
        let wrong = |Wrong { line, message }: Wrong| RecordError::table(path, line, message);
        refuse_report(path, &bytes).map_err(wrong)?;
        let text = decode(&bytes);
        let sheet = Sheet::find(&text, ncu::is_header).ok_or_else(|| {
            let what =
                "expected the CSV of `ncu --csv --page raw`, found no header with `Kernel Name`";
            RecordError::table(path, 1, what)
        })?;
        let profiled = sheet.and_then(|sheet| ncu::read(&sheet)).map_err(wrong)?;
        let check = Self::of(&profiled, launches);
        if check.rows.is_empty() {
            let what = match check.missing.first() {
                Some(first) => format!("expected launches of the program, found none ({first})"),
                None => "expected counters as smsp__inst_executed.sum, found none".to_owned(),
            };
            return Err(RecordError::table(path, 1, what));
        }
        Ok(check)
    }

    fn of(profiled: &[Profiled], launches: &[CountedLaunch]) -> Self {
        let theirs: Vec<Launch> = launches.iter().map(Launch::counted).collect();
        let (means, single): (Vec<_>, Vec<_>) =
            profiled.iter().partition(|one| one.launches.is_some());
        let ours: Vec<Launch> = single.iter().map(|one| Launch::profiled(one)).collect();
        let mut check = Self::default();
        for (one, found) in single.into_iter().zip(in_order(&ours, &theirs)) {
            match found {
                Some(at) => check.compare(one, at + 1, &[&launches[at]]),
                None => check.missing.push(missing(one, false)),
            }
        }
        for one in means {
            let key = Launch::profiled(one);
            let same = launches.iter().zip(&theirs).filter(|(_, other)| key.is_kernel(other));
            match same.map(|(launch, _)| launch).collect::<Vec<_>>()[..] {
                [] => check.missing.push(missing(one, false)),
                ref all => check.compare(one, 0, all),
            }
        }
        check
    }

    /// Adds what both know; of several launches of the run their mean.
    #[allow(clippy::cast_precision_loss, reason = "counts of a program")]
    fn compare(&mut self, one: &Profiled, launch: usize, run: &[&CountedLaunch]) {
        for (counter, card) in one.counters() {
            let counts = run.iter().map(|launch| launch.counts.get(&counter).copied());
            let Some(sum) = counts.sum::<Option<u64>>() else { continue };
            let kernel = plain_name(&one.kernel);
            let run = sum as f64 / run.len() as f64;
            self.rows.push(CounterRow { launch, kernel, counter, run, card });
        }
    }
}

impl Profiled {
    fn counters(&self) -> Vec<(Counter, f64)> {
        let of = |counter: Counter| match counter {
            Counter::WarpInstructions => Measured::Is(Quantity::WarpInstructions),
            Counter::ThreadInstructions => Measured::Is(Quantity::ThreadInstructions),
            other => Measured::Counts(other),
        };
        let all = Counter::ALL.iter();
        all.filter_map(|&counter| Some((counter, self.values.get(of(counter))?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{CountedLaunch, Counter, CounterCheck};
    use gpumodel_core::units::Dim3;

    #[test]
    fn counters_are_compared_launch_by_launch() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("card.csv");
        let text = "\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"smsp__inst_executed.sum\",\
             \"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum\"\n\
             \"\",\"\",\"\",\"\",\"inst\",\"sector\"\n\
             \"0\",\"scale(float *)\",\"(64, 1, 1)\",\"(2, 1, 1)\",\"40\",\"1,000\"\n\
             \"1\",\"other(int)\",\"(64, 1, 1)\",\"(2, 1, 1)\",\"8\",\"0\"\n";
        std::fs::write(&path, text).unwrap();
        let launch = |instructions, sectors| CountedLaunch {
            name: "_Z5scalePf".into(),
            grid: Dim3::new(2, 1, 1),
            block: Dim3::new(64, 1, 1),
            counts: [
                (Counter::WarpInstructions, instructions),
                (Counter::GlobalLoadSectors, sectors),
                (Counter::SharedLoads, 3),
            ]
            .into(),
        };
        let check = CounterCheck::read(&path, &[launch(40, 1010), launch(41, 0)]).unwrap();
        let rows: Vec<_> =
            check.rows.iter().map(|row| (row.launch, row.counter, row.error())).collect();
        let expected = [(1, Counter::WarpInstructions, 0.0), (1, Counter::GlobalLoadSectors, 0.01)];
        assert_eq!(rows, expected);
        assert_eq!(check.missing, ["line 4: `other`"]);
    }
}
