//! The seeded request lists on which the peers were measured: the same numbers
//! as Python's `random.Random` gives for the same seed.

use std::fmt::Write;

/// Mersenne Twister MT19937 (Matsumoto and Nishimura, 1998), seeded by one word
/// as an array of length one.
struct Twister {
    state: Vec<u32>,
    at: usize,
}

impl Twister {
    fn new(seed: u32) -> Self {
        let mut state = vec![19_650_218u32];
        for at in 1..624u32 {
            let last = state[state.len() - 1];
            state.push((last ^ (last >> 30)).wrapping_mul(1_812_433_253).wrapping_add(at));
        }
        let mix = |state: &[u32], at: usize| state[at - 1] ^ (state[at - 1] >> 30);
        let mut at = 1;
        for _ in 0..624 {
            state[at] = (state[at] ^ mix(&state, at).wrapping_mul(1_664_525)).wrapping_add(seed);
            at += 1;
            if at == 624 {
                state[0] = state[623];
                at = 1;
            }
        }
        for _ in 0..623 {
            state[at] = (state[at] ^ mix(&state, at).wrapping_mul(1_566_083_941))
                .wrapping_sub(u32::try_from(at).unwrap());
            at += 1;
            if at == 624 {
                state[0] = state[623];
                at = 1;
            }
        }
        state[0] = 1 << 31;
        Self { state, at: 624 }
    }

    fn word(&mut self) -> u32 {
        if self.at == 624 {
            for at in 0..624 {
                let top = 1 << 31;
                let joined = (self.state[at] & top) | (self.state[(at + 1) % 624] & !top);
                let twist = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[at] = self.state[(at + 397) % 624] ^ (joined >> 1) ^ twist;
            }
            self.at = 0;
        }
        let mut word = self.state[self.at];
        self.at += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    /// Uniform in [0, 1) with 53 bits.
    fn unit(&mut self) -> f64 {
        let (high, low) = (self.word() >> 5, self.word() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }

    fn below(&mut self, count: u32) -> u32 {
        let bits = 32 - count.leading_zeros();
        loop {
            let value = self.word() >> (32 - bits);
            if value < count {
                return value;
            }
        }
    }
}

/// Shape of the request lists of one organisation.
struct Shape {
    pseudo_channels: u32,
    accesses: u32,
    slots: u32,
    requests_per_clock: f64,
}

const ROWS: u32 = 16384;

impl Shape {
    fn new(organisation: &str, bytes: u32) -> Self {
        let (pseudo_channels, access, columns, peak) = match organisation {
            "L64" => (1, 64, 32, 0.5),
            "PC32" => (2, 32, 32, 1.0),
            _ => (1, 32, 64, 1.0),
        };
        let accesses = bytes / access;
        let requests_per_clock = peak / f64::from(accesses);
        Self { pseudo_channels, accesses, slots: columns / accesses, requests_per_clock }
    }

    /// Pseudo channel, group, bank, row and slot of stream position `at`.
    fn stream(&self, at: u32, groups_first: bool) -> [u32; 5] {
        let mut rest = at;
        let mut take = |count: u32| {
            let part = rest % count;
            rest /= count;
            part
        };
        let pc = take(self.pseudo_channels);
        let (group, slot) = if groups_first {
            let group = take(4);
            (group, take(self.slots))
        } else {
            let slot = take(self.slots);
            (take(4), slot)
        };
        let bank = take(4);
        [pc, group, bank, take(ROWS), slot]
    }

    fn place(&self, pattern: &str, at: u32, random: &mut Twister) -> [u32; 5] {
        match pattern {
            "seq" => self.stream(at, false),
            "bgilv" => self.stream(at, true),
            "rowcyc" => {
                let (pc, turn) = (at % self.pseudo_channels, at / self.pseudo_channels);
                [pc, turn % 4, turn / 4 % 4, turn / 16 % ROWS, random.below(self.slots)]
            }
            "two_seq" => {
                let mut place = self.stream(at / 2, false);
                place[3] = (place[3] + at % 2 * 4096) % ROWS;
                place
            }
            _ => [self.pseudo_channels, 4, 4, ROWS, self.slots].map(|count| random.below(count)),
        }
    }
}

/// The request list of that name, one access per line.
pub(super) fn requests(organisation: &str, bytes: u32, pattern: &str, rate: &str) -> String {
    let mut seed = flate2::Crc::new();
    seed.update(format!("{organisation}_{bytes}B_{pattern}_{rate}").as_bytes());
    let mut random = Twister::new(seed.sum());
    let shape = Shape::new(organisation, bytes);
    let load = match rate {
        "low" => Some(0.10 * shape.requests_per_clock),
        "med" => Some(0.50 * shape.requests_per_clock),
        _ => None,
    };
    let (mut time, mut text) = (0.0, String::new());
    for id in 0..20_000 {
        let [pc, group, bank, row, slot] = shape.place(pattern, id, &mut random);
        let kind = if pattern.starts_with("rw70") && random.unit() < 0.30 { 'W' } else { 'R' };
        if let Some(load) = load {
            time += -(1.0 - random.unit()).ln() / load;
        }
        for access in 0..shape.accesses {
            let column = slot * shape.accesses + access;
            writeln!(text, "{id} {} {kind} {pc} {group} {bank} {row} {column}", time.floor())
                .unwrap();
        }
    }
    text
}

#[test]
fn the_generator_gives_the_measured_lists() {
    for (organisation, bytes, pattern, rate, first, last) in [
        ("L64", 64, "rand", "low", "1 40 R 0 1 0 11088 4", "19999 401089 R 0 1 0 12752 21"),
        ("B32", 32, "rw70_rand", "med", "1 0 R 0 0 2 2364 28", "19999 39919 R 0 2 1 2470 50"),
    ] {
        let text = requests(organisation, bytes, pattern, rate);
        assert_eq!(text.lines().nth(1), Some(first));
        assert_eq!(text.lines().last(), Some(last));
    }
}
