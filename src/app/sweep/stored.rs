//! The stores of a plan's applications.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rayon::prelude::*;

use gpumodel_core::units::to_u64;
use gpumodel_trace::{SharedProgress, Store};

use super::super::app::Made;
use super::super::error::RunError;
use super::SweepWatch;
use super::error::SweepError;
use super::plan::Plan;

/// The store of an application.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) made: Made,
    /// What tells it from others.
    pub(super) content: String,
    pub(super) warp_instructions: u64,
}

/// The stores of the applications of a plan; `None`: it is in no mix. Names of one source
/// share what is made of it once. An interrupt lets those end that are being made.
pub(super) fn stores(
    plan: &Plan,
    models: Option<&Path>,
    cache: &Path,
    watch: &dyn SweepWatch,
) -> Result<Vec<Option<Stored>>, SweepError> {
    let used: BTreeSet<usize> = plan.mixes.iter().flatten().copied().collect();
    // By source: its place among those that are made.
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

/// All that was made, or everything that is wrong with the rest; an interrupt goes before.
fn all(plan: &Plan, made: Vec<Result<Stored, SweepError>>) -> Result<Vec<Stored>, SweepError> {
    let (mut stores, mut wrong) = (Vec::new(), Vec::new());
    for one in made {
        match one {
            Ok(store) => stores.push(store),
            Err(stopped @ SweepError::Stopped { .. }) => return Err(stopped),
            Err(error) => wrong.push(error),
        }
    }
    match wrong.len() {
        0 => Ok(stores),
        1 => Err(wrong.remove(0)),
        _ => Err(SweepError::Several { path: plan.path.clone(), wrong }),
    }
}

/// What tells a store from others.
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
) -> Result<Stored, SweepError> {
    let name = &plan.apps[app];
    let failed = |source: RunError| {
        plan.part(&format!("apps.{}", name.name), plan.line_of_app(&name.name), source)
    };
    let made =
        Made::of(name, models, cache, &SharedProgress(watch.converting())).map_err(failed)?;
    let store = Store::open(&made.path).map_err(|source| failed(source.into()))?;
    let kernels = 0..store.kernel_count();
    let warp_instructions = kernels.map(|kernel| store.kernel(kernel).warp_instructions()).sum();
    Ok(Stored { made, content: content(&store), warp_instructions })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::super::watch::{Unwatched, Watch};
    use super::super::SweepEnd;
    use super::super::stock::Stock;
    use super::{Plan, SweepError, SweepWatch};
    use gpumodel_core::units::with_causes;
    use gpumodel_trace::{Progress, Silent};

    /// Somebody who wants no more after so many sources were begun.
    struct Impatient(AtomicUsize);

    impl Watch for Impatient {
        fn converting(&self) -> &dyn Progress {
            &Silent
        }

        fn running(&self) -> &dyn Progress {
            &Silent
        }
    }

    impl SweepWatch for Impatient {
        fn begin(&self, _: SweepEnd) {}

        fn ended(&self, _: bool) {}

        fn stopped(&self) -> bool {
            let left =
                self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            left.is_err()
        }

        fn say(&self, _: &str) {}
    }

    /// What [`Stock::new`] says to a plan with these applications, all in one mix.
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
        Stock::new(plan, None, root, watch).unwrap_err()
    }

    #[test]
    fn every_application_that_cannot_be_used_is_told() {
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
    fn an_interrupt_is_heard_between_sources() {
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
