//! The memory device of one channel: which rows are open and *when* a command is legal. It
//! knows no request, no queue and no policy.
//!
//! [`Device::earliest`] computes from which clock on a command is legal, [`Device::issue`]
//! sends it. A gap of the standard is kept at the level it belongs to, not copied to every
//! bank below.

use crate::config::{Command, Gap, Level, MemoryStandard};
use gpumodel_core::units::{to_u16, to_u32, to_usize};

/// The row of a closed bank.
pub const CLOSED: u32 = u32::MAX;

/// A pseudo channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct PseudoChannel {
    /// Its banks, one bit each.
    pub(super) banks: u64,
    part: u16,
}

/// The gates of one command at the bank groups.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupGates<'a> {
    device: &'a Device,
    /// The command's gate in a group.
    slot: usize,
}

impl GroupGates<'_> {
    /// [`Device::earliest`] as far as the group of `bank` goes.
    #[inline]
    pub(super) fn earliest(&self, bank: usize) -> u64 {
        let first = self.device.paths[bank][Level::BankGroup.index()];
        self.device.gates[usize::from(first) + self.slot]
    }
}

/// By level and command, the index of the command's gate in a part.
type Slots = [[u8; Command::COUNT]; Level::COUNT];

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
    /// The oldest command of each ring, which the next one replaces.
    oldest: Vec<usize>,
}

/// Timing and row state of one channel.
#[derive(Clone, Debug)]
pub struct Device {
    rows: Vec<u32>,
    slots: Slots,
    /// By command, whether a gap within bank groups ends with it.
    grouped: [bool; Command::COUNT],
    /// Earliest clock of each command at each part of the device.
    gates: Vec<u64>,
    /// The first gate of the parts that a bank lies in, by level.
    paths: Vec<[u16; Level::COUNT]>,
    /// The pseudo channel of each bank.
    pseudo_channels: Vec<PseudoChannel>,
    /// The banks of the bank group of each bank, one bit each.
    group_banks: Vec<u64>,
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
            [0, 1 + pseudo_channel, first_group + group, first_group + groups + bank]
                .map(first_gate)
        };
        let paths: Vec<[u16; Level::COUNT]> = (0..banks).map(path).collect();
        let parts = to_usize(first_group + groups + banks);
        let per_pseudo_channel = standard.bank_groups * standard.banks_per_group;
        let slots = slots(&standard.gaps);
        let mut rules: [Vec<Rule>; Command::COUNT] = Default::default();
        let mut windows = Vec::new();
        for gap in &standard.gaps {
            if gap.window == 1 {
                Rule::new(gap, &slots).add_to(&mut rules[gap.from.index()]);
            } else {
                windows.push(Window::new(gap, &slots, parts));
            }
        }
        Self {
            rows: vec![CLOSED; to_usize(banks)],
            gates: vec![0; parts * Command::COUNT],
            slots,
            grouped: grouped(&standard.gaps),
            pseudo_channels: (0..banks)
                .map(|bank| PseudoChannel::new(bank, per_pseudo_channel))
                .collect(),
            group_banks: (0..banks).map(|bank| group_of(bank, standard)).collect(),
            paths,
            rules,
            windows,
            banks_per_pseudo_channel: per_pseudo_channel,
        }
    }

    /// The open row of `bank`, or [`CLOSED`].
    #[must_use]
    #[inline]
    pub fn open_row(&self, bank: usize) -> u32 {
        self.rows[bank]
    }

    /// The first clock at which `command` is legal in `bank` (for commands to
    /// all banks: in the pseudo channel of `bank`). The row state does not matter.
    #[must_use]
    #[inline]
    pub fn earliest(&self, command: Command, bank: usize) -> u64 {
        let wide = self.earliest_outside(command, self.pseudo_channel(bank));
        if command.is_for_all_banks() {
            return wide;
        }
        wide.max(self.earliest_group(command, bank)).max(self.earliest_own(command, bank))
    }

    /// [`Device::earliest`] as far as the buses and the pseudo channel go.
    #[inline]
    pub(super) fn earliest_outside(&self, command: Command, pseudo_channel: PseudoChannel) -> u64 {
        let [channel, inner, ..] = &self.slots;
        self.gate(0, channel, command).max(self.gate(pseudo_channel.part, inner, command))
    }

    /// The banks of the bank group of `bank`, one bit each.
    pub(super) fn group_banks(&self, bank: usize) -> u64 {
        self.group_banks[bank]
    }

    /// [`Device::earliest`] as far as the group of the bank goes.
    #[inline]
    fn earliest_group(&self, command: Command, bank: usize) -> u64 {
        let level = Level::BankGroup.index();
        self.gate(self.paths[bank][level], &self.slots[level], command)
    }

    /// [`Device::earliest`] as far as the bank itself goes: only commands to
    /// this bank change it.
    #[inline]
    pub(super) fn earliest_own(&self, command: Command, bank: usize) -> u64 {
        let level = Level::Bank.index();
        self.gate(self.paths[bank][level], &self.slots[level], command)
    }

    /// The gates of a command at the bank groups; `None` where no gap within these ends with it.
    #[inline]
    pub(super) fn group_gates(&self, command: Command) -> Option<GroupGates<'_>> {
        let slot = usize::from(self.slots[Level::BankGroup.index()][command.index()]);
        self.grouped[command.index()].then_some(GroupGates { device: self, slot })
    }

    /// The pseudo channel of `bank`.
    #[inline]
    pub(super) fn pseudo_channel(&self, bank: usize) -> PseudoChannel {
        self.pseudo_channels[bank]
    }

    #[inline]
    fn gate(&self, part: u16, slots: &[u8; Command::COUNT], command: Command) -> u64 {
        self.gates[usize::from(part) + usize::from(slots[command.index()])]
    }

    /// Sends `command` at `clock`; ACT opens `row`.
    ///
    /// # Panics
    /// In a debug build when the command is not legal.
    pub fn issue(&mut self, command: Command, bank: usize, row: u32, clock: u64) {
        debug_assert!(clock >= self.earliest(command, bank), "{command:?} before its time");
        let path = self.paths[bank];
        for rule in &self.rules[command.index()] {
            let first = path[usize::from(rule.level) % Level::COUNT];
            let gate = &mut self.gates[usize::from(first) + usize::from(rule.to)];
            *gate = (*gate).max(clock + u64::from(rule.wait));
        }
        for window in &mut self.windows {
            if window.from == command {
                let first = usize::from(path[window.level]);
                let gate = &mut self.gates[first + window.to];
                *gate = (*gate).max(window.push(first / Command::COUNT, clock));
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
                let banks = self.pseudo_channel_banks(bank);
                self.rows[banks].fill(CLOSED);
            }
            Command::Read
            | Command::Write
            | Command::RefreshAll
            | Command::RefreshBank
            | Command::MigrateRead
            | Command::MigrateWrite
            | Command::MigrateThrough => {}
        }
    }

    /// All banks of the pseudo channel of `bank`.
    #[must_use]
    pub fn pseudo_channel_banks(&self, bank: usize) -> std::ops::Range<usize> {
        let count = to_usize(self.banks_per_pseudo_channel);
        let first = bank - bank % count;
        first..first + count
    }
}

impl PseudoChannel {
    /// The pseudo channel of `bank` when each has so many banks.
    fn new(bank: u32, banks: u32) -> Self {
        let number = bank / banks;
        let bits = (u64::MAX >> (64 - banks)) << (number * banks);
        Self { banks: bits, part: first_gate(1 + number) }
    }
}

impl Rule {
    fn new(gap: &Gap, slots: &Slots) -> Self {
        let level = u8::try_from(gap.level.index()).expect("four levels");
        Self { level, to: slots[gap.level.index()][gap.to.index()], wait: gap.wait }
    }

    /// Adds the rule to those of its command; of two for the same command the longer wait
    /// counts.
    fn add_to(self, rules: &mut Vec<Self>) {
        match rules.iter_mut().find(|rule| (rule.level, rule.to) == (self.level, self.to)) {
            Some(rule) => rule.wait = rule.wait.max(self.wait),
            None => rules.push(self),
        }
    }
}

impl Window {
    fn new(gap: &Gap, slots: &Slots, parts: usize) -> Self {
        Self {
            level: gap.level.index(),
            from: gap.from,
            to: usize::from(slots[gap.level.index()][gap.to.index()]),
            wait: u64::from(gap.wait),
            length: to_usize(gap.window),
            ends: vec![0; parts * to_usize(gap.window)],
            oldest: vec![0; parts],
        }
    }

    /// Records a command at `clock` and returns when the next may come.
    fn push(&mut self, part: usize, clock: u64) -> u64 {
        let ring = &mut self.ends[part * self.length..][..self.length];
        let oldest = &mut self.oldest[part];
        ring[*oldest] = clock + self.wait;
        *oldest = (*oldest + 1) % self.length;
        ring[*oldest]
    }
}

/// The banks of the bank group of `bank`, one bit each.
fn group_of(bank: u32, standard: &MemoryStandard) -> u64 {
    let each = standard.banks_per_group;
    (u64::MAX >> (64 - each)) << (bank / each * each)
}

/// The first gate of a part.
fn first_gate(part: u32) -> u16 {
    to_u16(part * to_u32(Command::COUNT))
}

/// Whether a gap within bank groups ends with a command.
fn grouped(gaps: &[Gap]) -> [bool; Command::COUNT] {
    let inside = |to| gaps.iter().any(|gap| gap.level == Level::BankGroup && gap.to == to);
    Command::ALL.map(inside)
}

/// Commands that wait for the same gaps at a level share a gate there, such as accesses with
/// and without auto-precharge.
fn slots(gaps: &[Gap]) -> Slots {
    let waits = |level: Level, to: Command| {
        let gaps = gaps.iter().filter(move |gap| gap.level == level && gap.to == to);
        let mut waits: Vec<_> = gaps.map(|gap| (gap.from, gap.window, gap.wait)).collect();
        waits.sort_unstable();
        waits
    };
    Level::ALL.map(|level| {
        Command::ALL.map(|command| {
            let alike = |other: &Command| waits(level, *other) == waits(level, command);
            let first = Command::ALL.into_iter().find(alike).unwrap_or(command);
            u8::try_from(first.index()).expect("a dozen commands")
        })
    })
}

/// The bank of a pseudo channel, group and bank in a device of `standard`.
#[must_use]
pub fn bank_index(standard: &MemoryStandard, pseudo_channel: u32, group: u32, bank: u32) -> u32 {
    to_u32((pseudo_channel * standard.bank_groups + group) * standard.banks_per_group + bank)
}
