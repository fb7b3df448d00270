//! Do kernels slow down and speed up with CTAs per SM as Warped-Slicer's Fig. 3a
//! shows: four shapes?
//!
//! The kernels are in `tests/data/shapes`.

use std::path::Path;

use gpumodel::app::{AnalyzeRequest, AppName, Unwatched, analyze};
use gpumodel::report::results::AppRecord;
use gpumodel::trace::workload::{Compression, Workload, write_folder};
use gpumodel::trace::{ConvertRequest, Silent, convert};

const KERNELS: [&str; 4] = ["steady", "saturating", "stream", "cached"];

/// Keys of a machine and their values.
type Keys = &'static [(&'static str, &'static str)];

/// Machine, what of it is set, and the CTAs per SM to try.
const MACHINES: [(&str, Keys, [u32; 5]); 2] = [
    ("warped-slicer", &[], [1, 2, 4, 6, 8]),
    // The grids fill 16 SMs.
    ("rtx-2060", &[("dispatch.sms", "16")], [1, 2, 4, 8, 12]),
];

/// The kernel as a store in `folder`.
fn store(folder: &Path, name: &str) -> AppName {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/shapes");
    let file = data.join(format!("{name}.toml"));
    let workload = Workload::load(file.to_str().unwrap(), &gpumodel::models()).unwrap();
    let (text, path) = (folder.join(name), folder.join(format!("{name}.gpt")));
    write_folder(&workload, &text, Compression::None, &mut |_| {}).unwrap();
    let inputs = vec![text];
    let request = ConvertRequest { inputs, output: path.clone(), ..ConvertRequest::default() };
    convert(&request, &Silent).unwrap();
    AppName { name: name.to_owned(), path }
}

/// Thread instructions per cycle of every kernel, on a machine of that many CTAs per SM.
fn speeds(machine: &str, set: Keys, ctas: u32, apps: &[AppName]) -> Vec<f64> {
    let mut overrides: Vec<_> = set.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
    overrides.push((String::from("sm.max_ctas"), ctas.to_string()));
    let request = AnalyzeRequest {
        overrides,
        ..AnalyzeRequest::new(apps.to_vec(), machine, Path::new("/no/such/folder"))
    };
    #[allow(clippy::cast_precision_loss)] // small kernels
    let speed =
        |app: &AppRecord| app.thread_instructions as f64 / (app.cycles - app.launch_cycles) as f64;
    analyze(&request, &Unwatched).unwrap().solo.iter().map(speed).collect()
}

/// The largest of `speeds`, and its place.
fn best(speeds: &[f64]) -> (usize, f64) {
    speeds.iter().copied().enumerate().fold((0, 0.0), |b, one| if one.1 > b.1 { one } else { b })
}

#[test]
fn the_four_shapes_of_warped_slicer_show() {
    let folder = tempfile::tempdir().unwrap();
    let apps = KERNELS.map(|name| store(folder.path(), name));
    for (machine, set, ladder) in MACHINES {
        let rows = ladder.map(|ctas| speeds(machine, set, ctas, &apps));
        let [steady, saturating, stream, cached] =
            [0, 1, 2, 3].map(|kernel| rows.iter().map(|row| row[kernel]).collect::<Vec<_>>());
        let shown = format!("{machine} {ladder:?} {steady:?} {saturating:?} {stream:?} {cached:?}");
        // Compute, not saturating: up to eight CTAs every one adds its speed.
        for (speed, ctas) in steady.windows(2).zip(ladder.windows(2)).filter(|(_, c)| c[1] <= 8) {
            let more = f64::from(ctas[1]) / f64::from(ctas[0]);
            assert!(speed[1] > 0.85 * more * speed[0], "{shown}");
        }
        // Compute, saturating: four CTAs come close to the best (two, were their launch free), more
        // do no harm.
        let (_, most) = best(&saturating);
        assert!(saturating[0] < 0.95 * most && saturating[2] > 0.9 * most, "{shown}");
        assert!(saturating[4] > 0.97 * most, "{shown}");
        // Memory: as fast as memory is, far below the units, and more do little harm.
        let (_, streaming) = best(&stream);
        assert!(stream[0] < 0.85 * streaming && stream[2] > 0.87 * streaming, "{shown}");
        // A cycle of 700 MHz has twice the bytes of one of 1400.
        let share = if machine == "warped-slicer" { 0.35 } else { 0.25 };
        assert!(stream[4] > 0.8 * streaming && streaming < share * most, "{shown}");
        // L1: the best number of CTAs is neither the smallest nor the largest.
        let (place, peak) = best(&cached);
        assert!(place > 0 && place < 4, "{shown}");
        assert!(cached[0] < 0.7 * peak && cached[4] < 0.8 * peak, "{shown}");
    }
}
