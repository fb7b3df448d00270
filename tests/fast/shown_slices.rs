//! Records of applications on slices of several sizes, alone and in pairs.

use gpumodel::report::results::{Analysis, CoRun, CoRunApp};

use crate::shown::small;
use crate::shown_study::name;

/// Instructions per cycle of application `app` on a slice: bound by its SMs, or by its
/// channels and then by its SMs.
fn ipc(app: u32, sms: u32, channels: u32) -> f64 {
    let compute = f64::from(sms) * 60.0;
    let memory = f64::from(channels) * f64::from(40 + 13 * (app % 7));
    if app.is_multiple_of(2) { compute } else { compute.min(memory) }
}

fn on(app: u32, long: bool, (sms, channels): (u32, u32)) -> CoRunApp {
    CoRunApp {
        app: name(app, long),
        cycles: 1_000_000,
        end_cycle: 1_000_000,
        ipc: ipc(app, sms, channels),
        sms: sms.into(),
        channels: channels.into(),
        ..CoRunApp::default()
    }
}

/// A run under `bp` whose first application has a slice of that size.
fn under(apps: Vec<CoRunApp>, (sms, channels): (u32, u32)) -> CoRun {
    let setting = |(key, value): (&str, u32)| (key.to_string(), value.to_string());
    CoRun {
        scheme: "bp".into(),
        parameters: [("sms", sms), ("channels", channels), ("high", 1)].map(setting).into(),
        until: "cycles=1000000".into(),
        cycles: 1_000_000,
        apps,
        ..CoRun::default()
    }
}

/// `apps` applications alone, a record each, with 40 SMs and some channels, and with 16
/// channels and some SMs.
pub(crate) fn sliced(apps: u32, long: bool) -> Vec<Analysis> {
    let record = |app| {
        let by_channels = [4, 8, 16, 24, 32].map(|channels| (40, channels));
        let by_sms = [20, 60, 80].map(|sms| (sms, 16));
        let all = by_channels.into_iter().chain(by_sms);
        let coruns = all.map(|size| under(vec![on(app, long, size)], size)).collect();
        Analysis { coruns, machine: small().machine, ..Analysis::default() }
    };
    (0..apps).map(record).collect()
}

/// A pair whose first application has every size of slice but one, the second the rest.
pub(crate) fn surface(apps: [u32; 2], long: bool) -> Analysis {
    let mut coruns = Vec::new();
    for sms in [20, 40, 60] {
        for channels in [8, 16, 24].into_iter().filter(|&channels| (sms, channels) != (60, 8)) {
            let (own, rest) = ((sms, channels), (80 - sms, 32 - channels));
            let mut run = under(vec![on(apps[0], long, own), on(apps[1], long, rest)], own);
            let share =
                |(app, size): (u32, (u32, u32))| ipc(app, size.0, size.1) / ipc(app, 80, 32);
            run.stp = share((apps[0], own)) + share((apps[1], rest));
            run.antt = 2.0 / run.stp;
            coruns.push(run);
        }
    }
    Analysis { coruns, machine: small().machine, ..Analysis::default() }
}

/// `pairs` such pairs, a record each.
pub(crate) fn surfaces(pairs: u32, long: bool) -> Vec<Analysis> {
    (0..pairs).map(|pair| surface([2 * pair + 1, 2 * pair], long)).collect()
}
