//! Shares of the machine that several schemes give.

use gpumodel_core::contract::{Facts, Share};
use gpumodel_core::units::AppId;

/// `apps` may fill every SM, all others wait.
pub(super) fn everything(facts: &Facts, apps: &[AppId]) -> Vec<Share> {
    on_each_sm(facts, apps, |_, _| facts.max_ctas_per_sm)
}

/// The SMs divided evenly between `apps`, in their order: neighbours belong
/// together, what cannot be divided goes to the first. All others wait, also those
/// behind the last SM.
pub(super) fn sm_sets(facts: &Facts, apps: &[AppId]) -> Vec<Share> {
    let apps = &apps[..apps.len().min(usize::from(facts.sms))];
    let owners = sm_owners(facts, apps.len());
    on_each_sm(facts, apps, |place, sm| if owners[sm] == place { facts.max_ctas_per_sm } else { 0 })
}

/// For every SM the place of its owner, when `parts` owners divide them evenly.
pub(super) fn sm_owners(facts: &Facts, parts: usize) -> Vec<usize> {
    let sms = usize::from(facts.sms);
    let (each, more) = (sms / parts, sms % parts);
    let sizes = (0..parts).map(|place| each + usize::from(place < more));
    sizes.enumerate().flat_map(|(place, size)| std::iter::repeat_n(place, size)).collect()
}

/// The quota that `ctas` says for each place of `apps` and SM; all others wait.
pub(super) fn on_each_sm(
    facts: &Facts,
    apps: &[AppId],
    ctas: impl Fn(usize, usize) -> u32,
) -> Vec<Share> {
    let mut shares = vec![Share::Waiting; facts.apps.len()];
    for (place, app) in apps.iter().enumerate() {
        let quota = (0..usize::from(facts.sms)).map(|sm| ctas(place, sm)).collect();
        shares[app.index()] = Share::Quota(quota);
    }
    shares
}
