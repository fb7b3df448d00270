//! The memory device of one channel: which rows are open and *when* a command
//! is legal. Knows no request, no queue and no policy.
//!
//! The three questions are [`Device::needs`] (which command comes first for an
//! access), [`Device::earliest`] (from which clock on it is legal) and
//! [`Device::issue`] (it is sent now). A sentence of the standard is kept at the
//! level it belongs to, never copied to every bank below.

use crate::spec::{Command, Gap, Level, MemoryStandard};
use crate::units::{to_u16, to_u32, to_usize};

/// The row of a closed bank.
pub const CLOSED: u32 = u32::MAX;

/// Earliest clock of each command at one part of the device.
type Gates = [u64; Command::COUNT];

/// One gap after its `from` command.
#[derive(Clone, Copy, Debug)]
struct Rule {
    level: u8,
    to: u8,
    wait: u32,
}

/// One gap over a window of several commands.
#[derive(Clone, Debug)]
struct Window {
    level: usize,
    from: Command,
    to: usize,
    wait: u64,
    /// Commands in one window.
    length: usize,
    /// When the wait after each of the last commands ends, one ring per part.
    ends: Vec<u64>,
    /// Next slot of each ring: the oldest command.
    oldest: Vec<usize>,
}

/// Timing and row state of one channel.
#[derive(Clone, Debug)]
pub struct Device {
    rows: Vec<u32>,
    gates: Vec<Gates>,
    /// The parts that a bank lies in, by level.
    paths: Vec<[u16; Level::COUNT]>,
    rules: [Vec<Rule>; Command::COUNT],
    windows: Vec<Window>,
    banks_per_pseudo_channel: u32,
}

impl Device {
    /// A device with every row closed and every command legal from clock 0 on.
    #[must_use]
    pub fn new(standard: &MemoryStandard) -> Self {
        let banks = standard.banks();
        let groups = standard.pseudo_channels * standard.bank_groups;
        let first_group = 1 + standard.pseudo_channels;
        let path = |bank: u32| {
            let group = bank / standard.banks_per_group;
            let pseudo_channel = group / standard.bank_groups;
            [0, 1 + pseudo_channel, first_group + group, first_group + groups + bank].map(to_u16)
        };
        let paths: Vec<[u16; Level::COUNT]> = (0..banks).map(path).collect();
        let parts = to_usize(first_group + groups + banks);
        let mut rules: [Vec<Rule>; Command::COUNT] = Default::default();
        let mut windows = Vec::new();
        for gap in &standard.gaps {
            if gap.window == 1 {
                rules[gap.from.index()].push(Rule::new(gap));
            } else {
                windows.push(Window::new(gap, parts));
            }
        }
        Self {
            rows: vec![CLOSED; to_usize(banks)],
            gates: vec![[0; Command::COUNT]; parts],
            paths,
            rules,
            windows,
            banks_per_pseudo_channel: standard.bank_groups * standard.banks_per_group,
        }
    }

    /// The open row of `bank`, or [`CLOSED`].
    #[must_use]
    #[inline]
    pub fn open_row(&self, bank: usize) -> u32 {
        self.rows[bank]
    }

    /// The next command for an access to `row` of `bank` by `access` (RD or WR).
    #[must_use]
    pub fn needs(&self, access: Command, bank: usize, row: u32) -> Command {
        match self.rows[bank] {
            CLOSED => Command::Activate,
            open if open == row => access,
            _ => Command::Precharge,
        }
    }

    /// The first clock at which `command` is legal in `bank` (for commands to
    /// all banks: in the pseudo channel of `bank`). The row state is not asked.
    #[must_use]
    #[inline]
    pub fn earliest(&self, command: Command, bank: usize) -> u64 {
        let wide = self.earliest_outside(command, bank);
        if command.is_for_all_banks() {
            return wide;
        }
        let [_, _, group, own] = self.paths[bank];
        wide.max(self.gate(group, command)).max(self.gate(own, command))
    }

    /// [`Device::earliest`] as far as the buses and the pseudo channel go: a
    /// bound that is the same for all banks beside `bank`.
    #[must_use]
    #[inline]
    pub fn earliest_outside(&self, command: Command, bank: usize) -> u64 {
        let [channel, pseudo_channel, ..] = self.paths[bank];
        self.gate(channel, command).max(self.gate(pseudo_channel, command))
    }

    #[inline]
    fn gate(&self, part: u16, command: Command) -> u64 {
        self.gates[usize::from(part)][command.index()]
    }

    /// Sends `command` at `clock`; ACT opens `row`.
    ///
    /// # Panics
    /// In a debug build when the command is not legal: the caller asked first.
    pub fn issue(&mut self, command: Command, bank: usize, row: u32, clock: u64) {
        debug_assert!(clock >= self.earliest(command, bank), "{command:?} before its time");
        let path = self.paths[bank];
        for rule in &self.rules[command.index()] {
            let part = usize::from(path[usize::from(rule.level)]);
            let gate = &mut self.gates[part][usize::from(rule.to)];
            *gate = (*gate).max(clock + u64::from(rule.wait));
        }
        for window in &mut self.windows {
            if window.from == command {
                let part = usize::from(path[window.level]);
                let gate = &mut self.gates[part][window.to];
                *gate = (*gate).max(window.push(part, clock));
            }
        }
        self.change_rows(command, bank, row);
    }

    fn change_rows(&mut self, command: Command, bank: usize, row: u32) {
        match command {
            Command::Activate => {
                debug_assert_eq!(self.rows[bank], CLOSED, "ACT to an open bank");
                self.rows[bank] = row;
            }
            Command::Precharge | Command::ReadClose | Command::WriteClose => {
                self.rows[bank] = CLOSED;
            }
            Command::PrechargeAll => {
                let banks = self.banks_beside(bank);
                self.rows[banks].fill(CLOSED);
            }
            Command::Read
            | Command::Write
            | Command::RefreshAll
            | Command::RefreshBank
            | Command::Migrate => {}
        }
    }

    /// All banks of the pseudo channel of `bank`.
    #[must_use]
    pub fn banks_beside(&self, bank: usize) -> std::ops::Range<usize> {
        let count = to_usize(self.banks_per_pseudo_channel);
        let first = bank - bank % count;
        first..first + count
    }
}

impl Rule {
    fn new(gap: &Gap) -> Self {
        let byte = |index: usize| u8::try_from(index).expect("ten commands and four levels");
        Self { level: byte(gap.level.index()), to: byte(gap.to.index()), wait: gap.wait }
    }
}

impl Window {
    fn new(gap: &Gap, parts: usize) -> Self {
        Self {
            level: gap.level.index(),
            from: gap.from,
            to: gap.to.index(),
            wait: u64::from(gap.wait),
            length: to_usize(gap.window),
            ends: vec![0; parts * to_usize(gap.window)],
            oldest: vec![0; parts],
        }
    }

    /// Notes a command at `clock` and answers when the next may come.
    fn push(&mut self, part: usize, clock: u64) -> u64 {
        let ring = &mut self.ends[part * self.length..][..self.length];
        let oldest = &mut self.oldest[part];
        ring[*oldest] = clock + self.wait;
        *oldest = (*oldest + 1) % self.length;
        ring[*oldest]
    }
}

/// The bank of a pseudo channel, group and bank in a device of `standard`.
#[must_use]
pub fn bank_index(standard: &MemoryStandard, pseudo_channel: u32, group: u32, bank: u32) -> u32 {
    to_u32((pseudo_channel * standard.bank_groups + group) * standard.banks_per_group + bank)
}
