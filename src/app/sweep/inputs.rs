//! The inputs of a plan's cells: stores, machines and cached results.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use gpumodel_core::units::to_u64;
use gpumodel_report::results::{Analysis, CellRecord};
use gpumodel_sim::config::{Models, Resolved};
use gpumodel_trace::{Filter, SharedProgress, Store};

use super::{Plan, key};
use crate::analyze::analyze_in;
use crate::app::AppStore;
use crate::cache::results::{BUILD, ResultCache, key_of};
use crate::cache::times::RunTimes;
use crate::memory::Memory;
use crate::scheme::parse_scheme;
use crate::{
    AnalyzeRequest, App, AppName, RunContext, RunError, SweepError, SweepWatch, Unwatched,
};

/// Everything that cells need; stores are opened per cell.
#[derive(Debug)]
pub(super) struct SweepInputs {
    pub(super) plan: Plan,
    /// By application of the plan; `None` if it is in no mix.
    apps: Vec<Option<PlanApp>>,
    /// By machine of the plan.
    pub(super) machines: Vec<ResolvedMachine>,
    results: ResultCache,
    /// Times of cells.
    pub(super) times: RunTimes,
    models: Option<PathBuf>,
    cache: PathBuf,
}

/// A machine with its memory.
#[derive(Debug)]
pub(super) struct ResolvedMachine {
    pub(super) resolved: Resolved,
    memory: Memory,
}

/// One cell, by indices of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) machine: usize,
    pub(super) mix: Vec<usize>,
    pub(super) scheme: String,
    seed: u64,
    /// Its key, and everything that the key is made of.
    pub(super) record: CellRecord,
}

impl SweepInputs {
    /// Converts the applications and resolves the machines.
    pub(super) fn new(
        plan: Plan,
        models: Option<&Path>,
        cache: &Path,
        watch: &dyn SweepWatch,
    ) -> Result<Self, SweepError> {
        let apps = stores(&plan, models, cache, watch)?;
        Self::of(plan, apps, models, cache)
    }

    /// The same without converting anything: see [`SweepInputs::unconverted`].
    pub(super) fn found(
        plan: Plan,
        models: Option<&Path>,
        cache: &Path,
    ) -> Result<Self, SweepError> {
        let find = |&app: &usize| {
            let (name, failed) = (&plan.apps[app], plan.app_error(app));
            let Some(path) = AppStore::find(name, models, cache).map_err(&failed)? else {
                return Ok(PlanApp::unconverted(&name.path));
            };
            PlanApp::new(AppStore { path, warnings: Vec::new() }).map_err(failed)
        };
        let used = plan.used_apps();
        let made = all(&plan, used.iter().map(find).collect())?;
        let mut apps = vec![None; plan.apps.len()];
        for (app, made) in used.into_iter().zip(made) {
            apps[app] = Some(made);
        }
        Self::of(plan, apps, models, cache)
    }

    fn of(
        plan: Plan,
        apps: Vec<Option<PlanApp>>,
        models: Option<&Path>,
        cache: &Path,
    ) -> Result<Self, SweepError> {
        let files = crate::models(models)?;
        let machines =
            (0..plan.machines.len()).map(|machine| resolved_machine(&plan, machine, &files));
        Ok(Self {
            apps,
            machines: machines.collect::<Result<_, _>>()?,
            results: ResultCache::new(cache),
            times: RunTimes::new(cache),
            models: models.map(Path::to_path_buf),
            cache: cache.to_path_buf(),
            plan,
        })
    }

    /// The cells of the plan, each once: by machine, mix, seed and scheme.
    pub(super) fn cells(&self) -> Result<Vec<Cell>, SweepError> {
        let plan = &self.plan;
        let mut cells = Vec::with_capacity(plan.cells());
        let mut known = BTreeSet::new();
        for machine in 0..plan.machines.len() {
            for mix in &plan.mixes {
                for &seed in &plan.seeds {
                    for scheme in &plan.schemes {
                        let cell = self.cell(machine, mix, scheme, seed)?;
                        if known.insert(cell.record.key.clone()) {
                            cells.push(cell);
                        }
                    }
                }
            }
        }
        Ok(cells)
    }

    fn cell(
        &self,
        machine: usize,
        mix: &[usize],
        scheme: &str,
        seed: u64,
    ) -> Result<Cell, SweepError> {
        let plan = &self.plan;
        let (resolved, set) = (&self.machines[machine].resolved, &plan.machines[machine].settings);
        let apps: Vec<AppName> = mix.iter().map(|&app| plan.apps[app].clone()).collect();
        let named = parse_scheme(scheme, &apps);
        let (named, _) = named.map_err(|source| {
            plan.part(&format!("schemes: {scheme}"), plan.line_of_scheme(scheme), source)
        })?;
        let names: Vec<String> = apps.into_iter().map(|app| app.name).collect();
        let mut record = CellRecord {
            key: String::new(),
            program: concat!("gpumodel ", env!("CARGO_PKG_VERSION")).to_owned(),
            build: BUILD.to_owned(),
            machine: resolved.machine.name.clone(),
            machine_hash: resolved.hash.clone(),
            overrides: set.iter().cloned().collect(),
            scheme: named.name,
            parameters: named.parameters,
            seed,
            until: plan.until.to_string(),
            window_cycles: plan.window,
            fast_forward: plan.fast_forward,
            arrival_cycles: plan.arrivals(mix).into_iter().collect(),
            apps: names,
        };
        record.key = self.key(&record, mix);
        Ok(Cell { machine, mix: mix.to_vec(), scheme: scheme.to_owned(), seed, record })
    }

    /// The key of a cell, by the build in `record`.
    fn key(&self, record: &CellRecord, mix: &[usize]) -> String {
        let mut words =
            vec![String::from("cell"), format!("{record:?}"), record.machine_hash.clone()];
        words.extend(mix.iter().map(|&app| self.stored(app).content.clone()));
        format!("{:032x}", key_of(&record.build, &words))
    }

    /// The record of `cell` with the key of the build that made `other`.
    pub(super) fn by_build_of(&self, cell: &Cell, other: &CellRecord) -> CellRecord {
        let (program, build) = (other.program.clone(), other.build.clone());
        let mut record = CellRecord { key: String::new(), program, build, ..cell.record.clone() };
        record.key = self.key(&record, &cell.mix);
        record
    }

    fn stored(&self, app: usize) -> &PlanApp {
        self.apps[app].as_ref().expect("applications of mixes are stored")
    }

    /// The names of the applications in `mix` that have no store yet.
    pub(super) fn unconverted(&self, mix: &[usize]) -> Vec<String> {
        let without = mix.iter().filter(|&&app| !self.stored(app).converted);
        without.map(|&app| self.plan.apps[app].name.clone()).collect()
    }

    /// Warp instructions of an application; 0 of one without a store.
    pub(super) fn warp_instructions(&self, app: usize) -> u64 {
        self.stored(app).warp_instructions
    }

    /// The name under which the time of a solo run is kept.
    pub(super) fn solo_name(&self, machine: usize, app: usize) -> String {
        let (resolved, stored) = (&self.machines[machine].resolved, self.stored(app));
        let words =
            [resolved.hash.clone(), stored.content.clone(), self.plan.apps[app].name.clone()];
        format!("alone-{:032x}", key(&words))
    }

    /// Opens an application if its store has not changed since the keys of cells were made.
    fn open(&self, app: usize) -> Result<App, RunError> {
        let (name, stored) = (self.plan.apps[app].name.clone(), self.stored(app));
        let store = Store::open(&stored.made.path)?;
        if content(&store) != stored.content {
            return Err(RunError::StoreChanged { app: name, path: stored.made.path.clone() });
        }
        Ok(App { name, store, warnings: stored.made.warnings.clone() })
    }

    /// The `analyze` request of a cell.
    pub(super) fn request(&self, cell: &Cell) -> AnalyzeRequest {
        let named = &self.plan.machines[cell.machine];
        let apps = cell.mix.iter().map(|&app| self.plan.apps[app].clone()).collect();
        AnalyzeRequest {
            overrides: named.settings.clone(),
            schemes: vec![cell.scheme.clone()],
            until: self.plan.until,
            window: self.plan.window,
            fast_forward: self.plan.fast_forward,
            arrivals: self.plan.arrivals(&cell.mix),
            models: self.models.clone(),
            seed: cell.seed,
            ..AnalyzeRequest::new(apps, &named.name, &self.cache)
        }
    }

    /// Runs a cell.
    pub(super) fn run(&self, cell: &Cell) -> Result<Analysis, RunError> {
        let request = self.request(cell);
        let (ctx, apps) = self.ctx(&request, cell.machine, &cell.mix)?;
        let mut analysis = analyze_in(&ctx, &request, &apps)?;
        analysis.cell = Some(cell.record.clone());
        Ok(analysis)
    }

    /// Runs an application alone, so that the result is cached for the cells.
    pub(super) fn run_solo(&self, cell: &Cell, app: usize) -> Result<(), RunError> {
        let request = self.request(cell);
        let (ctx, apps) = self.ctx(&request, cell.machine, &[app])?;
        ctx.solo(&apps[0]).map(drop)
    }

    /// A machine with open applications.
    pub(super) fn ctx<'a>(
        &'a self,
        request: &'a AnalyzeRequest,
        machine: usize,
        apps: &[usize],
    ) -> Result<(RunContext<'a>, Vec<App>), RunError> {
        let ResolvedMachine { resolved, memory } = &self.machines[machine];
        let ctx = RunContext::new(request, (resolved, memory), &Unwatched, Some(&self.results));
        let open = |&app: &usize| {
            let mut app = self.open(app)?;
            app.narrow(&Filter::default())?;
            Ok(app)
        };
        Ok((ctx, apps.iter().map(open).collect::<Result<_, RunError>>()?))
    }
}

impl Plan {
    /// The applications that are in a mix.
    fn used_apps(&self) -> BTreeSet<usize> {
        self.mixes.iter().flatten().copied().collect()
    }

    /// Makes errors of an application name its place in the plan.
    fn app_error(&self, app: usize) -> impl Fn(RunError) -> SweepError {
        let name = &self.apps[app].name;
        let (key, line) = (format!("apps.{name}"), self.line_of_app(name));
        move |source| self.part(&key, line, source)
    }

    /// An error about `key` of the plan.
    pub(super) fn part(
        &self,
        key: &str,
        line: Option<u32>,
        source: impl Into<RunError>,
    ) -> SweepError {
        let source = Box::new(source.into());
        SweepError::Part { path: self.path.clone(), line, key: key.to_owned(), source }
    }
}

fn resolved_machine(
    plan: &Plan,
    machine: usize,
    files: &Models,
) -> Result<ResolvedMachine, SweepError> {
    let named = &plan.machines[machine];
    let (key, line) = (format!("machines: {}", named.name), plan.line_of_machine(machine));
    let resolved = files.machine_set_by_file(&named.name, &named.settings);
    let resolved = resolved.map_err(|source| plan.part(&key, line, source))?;
    let memory = Memory::load(&resolved.machine, files);
    let memory = memory.map_err(|source| plan.part(&key, line, source))?;
    Ok(ResolvedMachine { resolved, memory })
}

/// The store of an application.
#[derive(Clone, Debug)]
pub(super) struct PlanApp {
    pub(super) made: AppStore,
    /// Identifies its content.
    pub(super) content: String,
    pub(super) warp_instructions: u64,
    /// The store exists.
    converted: bool,
}

impl PlanApp {
    fn new(made: AppStore) -> Result<Self, RunError> {
        let store = Store::open(&made.path)?;
        let kernels = 0..store.kernel_count();
        let warp_instructions =
            kernels.map(|kernel| store.kernel(kernel).warp_instructions()).sum();
        Ok(Self { made, content: content(&store), warp_instructions, converted: true })
    }

    /// An application without a store, by its source.
    fn unconverted(source: &Path) -> Self {
        let made = AppStore { path: source.to_path_buf(), warnings: Vec::new() };
        let content = format!("of {}", source.display());
        Self { made, content, warp_instructions: 0, converted: false }
    }
}

/// The stores of the applications of a plan; `None` if the application is in no mix. Each source
/// is converted once, also if several names share it. At an interrupt, started conversions end.
pub(super) fn stores(
    plan: &Plan,
    models: Option<&Path>,
    cache: &Path,
    watch: &dyn SweepWatch,
) -> Result<Vec<Option<PlanApp>>, SweepError> {
    let used = plan.used_apps();
    // By source: its index among the stores.
    let mut sources: BTreeMap<&Path, usize> = BTreeMap::new();
    let mut firsts = Vec::new();
    for &app in &used {
        sources.entry(&plan.apps[app].path).or_insert_with(|| {
            firsts.push(app);
            firsts.len() - 1
        });
    }
    let make = |&app: &usize| {
        if watch.stopped() {
            return Err(SweepError::Stopped { meanwhile: String::from("traces were converted") });
        }
        stored(plan, app, models, cache, watch)
    };
    let made = all(plan, firsts.par_iter().with_max_len(1).map(make).collect())?;
    let of = |app: usize| made[sources[plan.apps[app].path.as_path()]].clone();
    Ok((0..plan.apps.len()).map(|app| used.contains(&app).then(|| of(app))).collect())
}

/// All stores, or all errors; an interrupt takes precedence.
fn all(plan: &Plan, made: Vec<Result<PlanApp, SweepError>>) -> Result<Vec<PlanApp>, SweepError> {
    let (mut stores, mut invalid) = (Vec::new(), Vec::new());
    for one in made {
        match one {
            Ok(store) => stores.push(store),
            Err(stopped @ SweepError::Stopped { .. }) => return Err(stopped),
            Err(error) => invalid.push(error),
        }
    }
    match invalid.len() {
        0 => Ok(stores),
        1 => Err(invalid.remove(0)),
        _ => Err(SweepError::Apps { path: plan.path.clone(), invalid }),
    }
}

/// Identifies the content of a store.
pub(super) fn content(store: &Store) -> String {
    format!("{} {}", store.content_hash(), to_u64(store.kernel_count()))
}

/// The store of an application of the plan.
fn stored(
    plan: &Plan,
    app: usize,
    models: Option<&Path>,
    cache: &Path,
    watch: &dyn SweepWatch,
) -> Result<PlanApp, SweepError> {
    let progress = SharedProgress(watch.converting());
    let made = AppStore::find_or_create(&plan.apps[app], models, cache, &progress);
    made.and_then(PlanApp::new).map_err(plan.app_error(app))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use gpumodel_core::units::with_causes;
    use gpumodel_trace::{Progress, Silent};

    use super::{AppName, AppStore, Plan, RunError, SweepError, SweepInputs, SweepWatch};
    use crate::{Phase, SweepProgress, Unwatched, Watch};

    /// The store of a workload model as `a.gpt` of a folder.
    fn store(folder: &Path, model: &str) {
        let name = AppName::parse(format!("synth:{model}"));
        let made = AppStore::find_or_create(&name, None, folder, &Silent).unwrap();
        std::fs::rename(made.path, folder.join("a.gpt")).unwrap();
    }

    #[test]
    fn a_changed_store_is_the_error_of_its_cell() {
        let folder = tempfile::tempdir().unwrap();
        let (root, path) = (folder.path(), folder.path().join("plan.toml"));
        store(root, "saxpy");
        let text = "machines = ['warped-slicer']\nschemes = ['even']\n[apps]\na = 'a.gpt'\n\
                    [mixes]\nlists = [['a']]\n";
        std::fs::write(&path, text).unwrap();
        let plan = Plan::read(&path).unwrap();
        let inputs = SweepInputs::new(plan, None, root, &Unwatched).unwrap();
        let cell = inputs.cells().unwrap().remove(0);
        assert!(inputs.run(&cell).is_ok());
        store(root, "compute");
        assert!(matches!(inputs.run(&cell), Err(RunError::StoreChanged { app, .. }) if app == "a"));
    }

    /// Interrupts after so many sources.
    struct Impatient(AtomicUsize);

    impl Watch for Impatient {
        fn phase(&self, _: Phase<'_>) {}

        fn converting(&self) -> &dyn Progress {
            &Silent
        }

        fn running(&self) -> &dyn Progress {
            &Silent
        }
    }

    impl SweepWatch for Impatient {
        fn part(&self, _: usize, _: usize, _: &str) {}

        fn begin(&self, _: SweepProgress) {}

        fn ended(&self, _: bool) {}

        fn stopped(&self) -> bool {
            let left =
                self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            left.is_err()
        }

        fn say(&self, _: &str) {}
    }

    /// The error of [`SweepInputs::new`] for a plan with these applications, all in one mix.
    fn refused(root: &Path, apps: &[&str], watch: &dyn SweepWatch) -> SweepError {
        let path = root.join("plan.toml");
        let names: Vec<String> = (0..apps.len()).map(|n| format!("'a{n}'")).collect();
        let rows: String =
            apps.iter().enumerate().map(|(n, app)| format!("a{n} = '{app}'\n")).collect();
        let text = format!(
            "machines = ['warped-slicer']\nschemes = ['even']\n[mixes]\nlists = [[{}]]\n[apps]\n{rows}",
            names.join(", ")
        );
        std::fs::write(&path, text).unwrap();
        let plan = Plan::read(&path).unwrap();
        SweepInputs::new(plan, None, root, watch).unwrap_err()
    }

    #[test]
    fn every_application_that_cannot_be_used_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let one = refused(folder.path(), &["synth:saxpy", "none"], &Unwatched);
        assert!(matches!(one, SweepError::Part { .. }), "{one}");
        let apps = ["none", "synth:saxpy", "nil.gpt", "synth:no-such"];
        let all = with_causes(&refused(folder.path(), &apps, &Unwatched)).join("\n");
        assert!(all.contains("plan.toml: 3 applications cannot be used"), "{all}");
        for words in ["plan.toml:6: apps.a0: there is no file", ":8: apps.a2: ", ":9: apps.a3: "] {
            assert!(all.contains(words), "{words}: {all}");
        }
    }

    #[test]
    fn an_interrupt_stops_between_sources() {
        let folder = tempfile::tempdir().unwrap();
        let apps = ["synth:saxpy", "synth:compute", "synth:stream", "none"];
        let watch = Impatient(AtomicUsize::new(1));
        let error = refused(folder.path(), &apps, &watch);
        assert!(matches!(error, SweepError::Stopped { .. }), "{error}");
        let stores = std::fs::read_dir(folder.path().join("stores"));
        let names = stores.into_iter().flatten().map(|one| one.unwrap().path());
        let stores = names.filter(|path| path.extension().is_some_and(|e| e == "gpt")).count();
        assert!(stores <= 1, "{stores}");
    }
}
