//! Is any request file of `gpumodel dram` served in full and in bounded memory, or
//! refused with its line?

#![no_main]

use std::io::Write;
use std::sync::OnceLock;

use gpumodel::app::{DramError, DramJob, RequestFormat};
use gpumodel_fuzz::{Bounded, named, split};

const SPECS: [(&str, &[&str]); 6] = [
    ("ugpu-hbm", &[]),
    ("gddr6", &["page_policy=closed"]),
    ("hbm3", &["refresh=none", "forward=true", "merge=true"]),
    ("gddr5", &["unified_queue=true", "read_queue=2", "posted_writes=true"]),
    ("hbm2-pc", &["page_policy=timeout", "write_queue=4", "write_high=0.8", "write_low=0.1"]),
    ("accelsim-hbm", &[]),
];

/// Most bytes that the requests of one input may ask for.
const MOST: u64 = 1 << 16;

fn jobs() -> &'static [DramJob] {
    static JOBS: OnceLock<Vec<DramJob>> = OnceLock::new();
    JOBS.get_or_init(|| {
        let job = |(spec, changes): (&str, &[&str])| {
            let changes: Vec<String> = changes.iter().map(|&word| word.to_owned()).collect();
            DramJob::new(spec, &gpumodel::models(), &changes).expect("a carried standard")
        };
        SPECS.map(job).into()
    })
}

/// The sum of the fourth words of all lines: one line may request much.
fn asked(bytes: &[u8]) -> u64 {
    let number = |word: &[u8]| {
        let word = std::str::from_utf8(word).ok()?;
        word.strip_prefix("0x")
            .map_or_else(|| word.parse().ok(), |w| u64::from_str_radix(w, 16).ok())
    };
    let word = |line: &[u8]| line.split(u8::is_ascii_whitespace).filter_map(number).nth(2);
    bytes.split(|byte| *byte == b'\n').filter_map(word).fold(0, u64::saturating_add)
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = split(bytes) else { return };
    let job = &jobs()[usize::from(kind & 31) % SPECS.len()];
    let address = kind & 32 == 0;
    let listed = kind & 64 != 0;
    if address && asked(rest) > MOST {
        return;
    }
    let format = if address { RequestFormat::Address } else { RequestFormat::Coordinates };
    let mut commands = Bounded(1 << 22);
    let commands = listed.then_some(&mut commands as &mut dyn Write);
    match job.run("r.txt", rest, format, commands) {
        Ok(record) => {
            assert!(record.requests <= record.accesses);
            assert!(record.last_read_done_cycle <= record.cycles);
            assert!((0.0..=1.0).contains(&record.bandwidth_utilization), "{record:?}");
            assert!(record.mean_read_latency_cycles.is_finite());
        }
        Err(error @ DramError::Requests(_)) => named(&error, "r.txt:"),
        // A long wait with a list makes a long list: this one is truncated.
        Err(DramError::Commands(_)) => assert!(listed),
        Err(error) => panic!("{error}"),
    }
});
