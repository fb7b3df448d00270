//! What a card's profiler counts, counted in a store.

use std::collections::BTreeMap;

use gpumodel_core::isa::{self, Access, Code, Launch};
use gpumodel_core::units::to_usize;
use gpumodel_report::results::{CountedLaunch, Counter};
use gpumodel_sim::config::SharedSpec;
use gpumodel_sim::{access_sectors, bank_conflicts};
use gpumodel_trace::{Cta, Store, TraceError};

/// The counts of every launch of `store`; bank conflicts are those of `shared`.
///
/// # Errors
/// When a block of the store is damaged.
pub(crate) fn count(store: &Store, shared: &SharedSpec) -> Result<Vec<CountedLaunch>, TraceError> {
    (0..store.kernel_count()).map(|kernel| launch(store, kernel, shared)).collect()
}

fn launch(store: &Store, kernel: usize, shared: &SharedSpec) -> Result<CountedLaunch, TraceError> {
    let code = store.code(kernel)?;
    let summary = store.kernel(kernel);
    let launch = summary.launch();
    let mut counts: BTreeMap<Counter, u64> = Counter::ALL.iter().map(|one| (*one, 0)).collect();
    counts.insert(Counter::WarpInstructions, summary.warp_instructions());
    counts.insert(Counter::ThreadInstructions, summary.thread_instructions());
    let mut counting = Counting { code: &code, launch: &launch, shared, counts };
    for ordinal in 0..summary.cta_count() {
        counting.cta(&store.cta(kernel, ordinal)?);
    }
    let counts = counting.counts;
    Ok(CountedLaunch { name: launch.name, grid: launch.grid, block: launch.block, counts })
}

/// Which memory an access goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Space {
    Global,
    Local,
    Shared,
}

struct Counting<'a> {
    code: &'a Code,
    launch: &'a Launch,
    shared: &'a SharedSpec,
    counts: BTreeMap<Counter, u64>,
}

impl Counting<'_> {
    fn cta(&mut self, cta: &Cta) {
        let mut access = Access::default();
        for warp in 0..cta.warp_count() {
            let mut cursor = cta.warp(warp);
            while cursor.next_segment().is_some() {
                while let Some(number) = cursor.instruction() {
                    let instruction = &self.code.instructions[to_usize(number)];
                    if instruction.width == 0 {
                        cursor.skip(1);
                        continue;
                    }
                    cursor.access(&mut access);
                    if access.mask != 0 {
                        let opcode = &self.code.opcodes[to_usize(instruction.opcode)];
                        self.access(opcode, &access, instruction.width.into());
                    }
                }
            }
        }
    }

    /// Counts an access with an active lane.
    fn access(&mut self, opcode: &str, access: &Access, width: u64) {
        let name = opcode.split('.').next().unwrap_or(opcode);
        let space = match name {
            "LDG" | "STG" | "ATOMG" | "RED" | "REDG" => Space::Global,
            "LDL" | "STL" => Space::Local,
            "LDS" | "STS" | "LDSM" | "STSM" | "ATOMS" => Space::Shared,
            "LD" | "ST" | "ATOM" => self.generic(access),
            // Asynchronous copies have metrics of their own.
            _ => return,
        };
        match name {
            "ATOMG" | "ATOMS" | "ATOM" | "RED" | "REDG" => self.atomic(name, space),
            "ST" | "STG" | "STL" | "STS" | "STSM" => self.store(space, access, width),
            _ => self.load(space, access, width),
        }
    }

    /// Where the first active lane's address leads.
    fn generic(&self, access: &Access) -> Space {
        let address = access.active().next().map_or(0, |(_, address)| address);
        match self.launch.windows().space_of(address) {
            isa::Space::Shared => Space::Shared,
            isa::Space::Local => Space::Local,
            isa::Space::Global
            | isa::Space::Constant
            | isa::Space::Texture
            | isa::Space::Generic => Space::Global,
        }
    }

    fn add(&mut self, counter: Counter, count: u32) {
        *self.counts.entry(counter).or_default() += u64::from(count);
    }

    fn atomic(&mut self, name: &str, space: Space) {
        let counter = match (space, name) {
            (Space::Shared, _) => Counter::SharedAtomics,
            (_, "RED" | "REDG") => Counter::GlobalReductions,
            (Space::Global | Space::Local, _) => Counter::GlobalAtomics,
        };
        self.add(counter, 1);
    }

    fn load(&mut self, space: Space, access: &Access, width: u64) {
        match space {
            Space::Global => {
                self.add(Counter::GlobalLoads, 1);
                self.add(Counter::GlobalLoadSectors, access_sectors(access, width, false));
            }
            Space::Local => {
                self.add(Counter::LocalLoads, 1);
                self.add(Counter::LocalLoadSectors, access_sectors(access, width, true));
            }
            Space::Shared => {
                self.add(Counter::SharedLoads, 1);
                self.add(Counter::SharedAccesses, 1);
                let conflicts = bank_conflicts(access, width, self.shared);
                self.add(Counter::SharedLoadConflicts, conflicts);
            }
        }
    }

    fn store(&mut self, space: Space, access: &Access, width: u64) {
        match space {
            Space::Global => {
                self.add(Counter::GlobalStores, 1);
                self.add(Counter::GlobalStoreSectors, access_sectors(access, width, false));
            }
            Space::Local => {
                self.add(Counter::LocalStores, 1);
                self.add(Counter::LocalStoreSectors, access_sectors(access, width, true));
            }
            Space::Shared => {
                self.add(Counter::SharedStores, 1);
                self.add(Counter::SharedAccesses, 1);
                let conflicts = bank_conflicts(access, width, self.shared);
                self.add(Counter::SharedStoreConflicts, conflicts);
            }
        }
    }
}
