//! Instances that share nothing.

use gpumodel_core::contract::{
    DispatchOrder, Facts, LawBroken, MemoryInstance, MigFacts, MigProfile, Plan, PlanDraft, Probe,
    ProbeResult, View,
};
use gpumodel_core::units::{AppId, counted, to_u16, to_u64};

use super::parameter::Text;
use super::{Parameter, Scheme, Settings, shares};

/// The default of `profiles`.
const EQUAL: &str = "equal";

/// What a user may set.
pub(super) const PARAMETERS: &[Parameter] = &[Parameter::list("profiles", EQUAL).does(
    "the instance of each application, as 3g+4g or 3g.20gb+1g.10gb (+me, +gfx: the same SMs and \
     memory); equal: the largest of which \
     there are enough (assumed)",
)];

/// Multi-Instance GPU: each application has the SMs, the memory channels and the part of the L2 of
/// its instance, from its arrival to its end; what no instance has stays idle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mig {
    profiles: Text,
}

/// An instance in its place.
struct Instance<'f> {
    profile: &'f MigProfile,
    first_sm: u16,
    start: u32,
}

impl Mig {
    pub(super) fn make(settings: &Settings) -> Box<dyn Scheme> {
        Box::new(Self { profiles: settings.list("profiles") })
    }

    /// The profile of each application.
    fn profiles<'f>(
        &self,
        facts: &Facts,
        mig: &'f MigFacts,
    ) -> Result<Vec<&'f MigProfile>, LawBroken> {
        let apps = facts.apps.len();
        let text = self.profiles.as_str();
        if text == EQUAL {
            let enough = |one: &&MigProfile| one.instances as usize >= apps;
            let largest = mig.profiles.iter().filter(enough);
            let found = largest.max_by_key(|one| (one.sms, one.memory_slices));
            let lack = || {
                LawBroken::Setting(format!(
                    "mig: no profile has {apps} instances, as many as applications"
                ))
            };
            return Ok(vec![found.ok_or_else(lack)?; apps]);
        }
        let names: Vec<&str> = text.split('+').filter(|part| !adds_engines(part)).collect();
        if names.len() != apps {
            let instances = counted(to_u64(names.len()), "instance");
            return Err(LawBroken::Setting(format!(
                "mig: profiles={text} has {instances} for {apps} applications: expected one each"
            )));
        }
        names.into_iter().map(|name| find(mig, name)).collect()
    }

    fn instances<'f>(&self, facts: &'f Facts) -> Result<Vec<Instance<'f>>, LawBroken> {
        let mig = facts.mig.as_ref().ok_or(LawBroken::NoInstances)?;
        let profiles = self.profiles(facts, mig)?;
        let mut starts = Vec::new();
        if !place(&profiles, &mut starts) {
            let names: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
            return Err(LawBroken::Setting(format!(
                "mig: {} cannot be created together: their memory slices overlap wherever they \
                 may begin (`nvidia-smi mig -lgipp`: {})",
                names.join(" and "),
                placements(mig)
            )));
        }
        let mut next = 0;
        let placed = profiles.iter().zip(starts).map(|(profile, start)| {
            let first_sm = next;
            next += profile.sms;
            Instance { profile, first_sm, start }
        });
        let placed: Vec<Instance<'f>> = placed.collect();
        if next > facts.sms {
            let message = format!("mig: the instances have {next} SMs, the machine {}", facts.sms);
            return Err(LawBroken::Setting(message));
        }
        Ok(placed)
    }
}

/// What follows the name of a profile with further media engines (`1g.10gb+me`), which the model
/// does not have: its SMs and memory are those of the profile without.
fn adds_engines(part: &str) -> bool {
    ["me", "me.all", "gfx"].contains(&part.to_ascii_lowercase().as_str())
}

/// The profile of that name, whole (`3g.20gb`) or up to the point, in any case.
fn find<'f>(mig: &'f MigFacts, name: &str) -> Result<&'f MigProfile, LawBroken> {
    let same = |known: &str| known.eq_ignore_ascii_case(name);
    let stem = |profile: &&MigProfile| profile.name.split('.').next().is_some_and(same);
    let exact = mig.profiles.iter().find(|profile| same(&profile.name));
    exact.or_else(|| mig.profiles.iter().find(stem)).ok_or_else(|| {
        let known: Vec<&str> = mig.profiles.iter().map(|one| one.name.as_str()).collect();
        LawBroken::Setting(format!("mig: no profile {name}; known are: {}", known.join(", ")))
    })
}

/// Where instances may begin, in words.
fn placements(mig: &MigFacts) -> String {
    let words = mig.profiles.iter().map(|one| {
        let starts: Vec<String> = one.starts.iter().map(u32::to_string).collect();
        format!("{} at {}", one.name, starts.join(" or "))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Finds a start for each profile behind those that have one: the first that works.
fn place(profiles: &[&MigProfile], starts: &mut Vec<u32>) -> bool {
    let Some(next) = profiles.get(starts.len()) else { return true };
    let same = profiles.iter().filter(|one| one.name == next.name).count();
    if same > next.instances as usize {
        return false;
    }
    for &start in &next.starts {
        let meets = |(other, &begin): (&&MigProfile, &u32)| {
            start < begin + other.memory_slices && begin < start + next.memory_slices
        };
        if profiles.iter().zip(starts.iter()).any(meets) {
            continue;
        }
        starts.push(start);
        if place(profiles, starts) {
            return true;
        }
        starts.pop();
    }
    false
}

impl Scheme for Mig {
    fn probes(&self, facts: &Facts) -> Result<Vec<Probe>, LawBroken> {
        self.instances(facts).map(|_| Vec::new())
    }

    fn start(&mut self, facts: &Facts, _probes: &[ProbeResult]) -> Result<Plan, LawBroken> {
        let instances = self.instances(facts)?;
        let apps: Vec<AppId> = (0..facts.apps.len()).map(|app| AppId(to_u16(app))).collect();
        let owns = |place: usize, sm: usize| {
            let one = &instances[place];
            (one.first_sm..one.first_sm + one.profile.sms).contains(&to_u16(sm))
        };
        let words = instances.iter().zip(&facts.apps).map(|(one, app)| {
            let profile = one.profile;
            format!(
                "{} has a {} ({} SMs, {} of {} memory slices from {})",
                app.name,
                profile.name,
                profile.sms,
                profile.memory_slices,
                facts.mig.as_ref().map_or(0, |mig| mig.memory_slices),
                one.start
            )
        });
        let draft = PlanDraft {
            shares: shares::on_own_sms(facts, &apps, owns),
            order: DispatchOrder::RoundRobin,
            reason: words.collect::<Vec<_>>().join(", "),
            instances: instances
                .iter()
                .map(|one| MemoryInstance { first: one.start, slices: one.profile.memory_slices })
                .collect(),
            ..PlanDraft::default()
        };
        Plan::new(facts, draft)
    }

    fn decide(&mut self, facts: &Facts, _view: &View) -> Result<Plan, LawBroken> {
        self.start(facts, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::super::Choice;
    use super::super::fixture::facts;
    use gpumodel_core::contract::{Facts, MigFacts, MigProfile, Plan};
    use gpumodel_core::units::{AppId, to_u16};

    /// The profiles of an A100 on a machine of 108 SMs.
    fn a100(apps: &[&str]) -> Facts {
        let profile = |name: &str, sms, memory_slices, instances, starts: &[u32]| MigProfile {
            name: name.into(),
            sms,
            memory_slices,
            instances,
            copy_engines: 1,
            starts: starts.into(),
        };
        let profiles = vec![
            profile("1g.5gb", 14, 1, 7, &[0, 1, 2, 3, 4, 5, 6]),
            profile("1g.10gb", 14, 2, 4, &[0, 2, 4, 6]),
            profile("2g.10gb", 28, 2, 3, &[0, 2, 4]),
            profile("3g.20gb", 42, 4, 2, &[0, 4]),
            profile("4g.20gb", 56, 4, 1, &[0]),
            profile("7g.40gb", 98, 8, 1, &[0]),
        ];
        let mig = Some(MigFacts { memory_slices: 8, profiles });
        Facts { sms: 108, mig, channels: 40, ..facts(apps) }
    }

    fn plan(apps: usize, scheme: &str) -> Result<Plan, String> {
        let facts = a100(&["IMG"; 7][..apps]);
        let mut scheme = Choice::parse(scheme).unwrap().make();
        scheme.start(&facts, &[]).map_err(|error| error.to_string())
    }

    fn parts(plan: &Plan) -> Vec<(usize, u32, u32)> {
        let sms =
            |app: usize| (0..108).filter(|&sm| plan.quota(AppId(to_u16(app)), sm) > 0).count();
        let instances = plan.instances().iter().enumerate();
        instances.map(|(app, one)| (sms(app), one.first, one.slices)).collect()
    }

    #[test]
    fn instances_have_the_sizes_and_places_of_the_guide() {
        assert_eq!(parts(&plan(2, "mig:profiles=3g+4g").unwrap()), [(42, 4, 4), (56, 0, 4)]);
        assert_eq!(parts(&plan(1, "mig:profiles=7g").unwrap()), [(98, 0, 8)]);
        let three = plan(3, "mig:profiles=2g+3g+2g").unwrap();
        assert_eq!(parts(&three), [(28, 0, 2), (42, 4, 4), (28, 2, 2)]);
        assert_eq!(parts(&plan(7, "mig").unwrap()), [0, 1, 2, 3, 4, 5, 6].map(|at| (14, at, 1)));
        assert_eq!(parts(&plan(1, "mig:profiles=1g.10gb").unwrap()), [(14, 0, 2)]);
        let media = plan(2, "mig:profiles=1g.10gb+me+3g.20GB").unwrap();
        assert_eq!(parts(&media), [(14, 0, 2), (42, 4, 4)], "media engines are not modelled");
        assert_eq!(parts(&plan(2, "mig").unwrap())[0].0, 42, "the largest of which there are two");
    }

    #[test]
    fn what_the_card_refuses_is_refused() {
        let refused = |apps, scheme| plan(apps, scheme).unwrap_err();
        assert!(refused(2, "mig:profiles=4g+4g").contains("cannot be created together"));
        assert!(refused(2, "mig:profiles=7g+1g").contains("overlap"));
        assert!(refused(4, "mig:profiles=2g+2g+2g+2g").contains("2g.10gb at 0 or 2 or 4"));
        assert!(refused(2, "mig:profiles=5g+1g").contains("no profile 5g; known are: 1g.5gb"));
        assert!(refused(2, "mig:profiles=3g").contains("1 instance for 2 applications"));
        let mut scheme = Choice::parse("mig").unwrap().make();
        let bare = facts(&["IMG"]);
        assert!(scheme.start(&bare, &[]).unwrap_err().to_string().contains("[mig]"));
        assert!(Choice::parse("mig:profiles=3g,4g").is_err(), "parts have + between them");
    }
}
