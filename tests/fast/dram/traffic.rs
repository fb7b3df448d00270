//! Random requests for a channel, and two ways to run them.

use std::collections::VecDeque;

use gpumodel::core::toml::Place;
use gpumodel::sim::config::MemoryStandard;
use gpumodel::sim::dram::{Block, Channel, ControllerOptions, Done, Issued, Request};
use proptest::prelude::*;

/// A request list and the controller's settings.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    /// Index into the standards' names.
    pub(super) standard: usize,
    /// Option words.
    pub(super) options: Vec<(&'static str, &'static str)>,
    /// Clocks since the request before, writes, and coordinates before scaling.
    pub(super) requests: Vec<(u8, bool, [u16; 5])>,
}

/// The outcome of a run.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub(super) commands: Vec<Issued>,
    pub(super) done: Vec<Done>,
}

/// Option words for a controller.
pub(super) fn option_words() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let one = |key, words: Vec<&'static str>| {
        proptest::sample::select(words).prop_map(move |word| (key, word))
    };
    let flags = vec!["0", "1"];
    (
        one("scheduler", vec!["fr-fcfs", "fr-fcfs", "fcfs", "round-robin"]),
        one("row_hit_first", flags.clone()),
        one("hit_cap", vec!["0", "4", "1000"]),
        one("read_queue", vec!["2", "16", "64"]),
        one("unified_queue", flags.clone()),
        one("opened_leaves_queue", flags.clone()),
        bank_words(),
        one("merge", flags.clone()),
        one("posted_writes", flags),
        one("refresh", vec!["none", "all-bank", "per-bank"]),
        one("page_policy", vec!["open", "closed", "timeout"]),
        one("page_timeout", vec!["10", "100"]),
    )
        .prop_map(|(a, b, c, d, e, f, bank, h, i, j, k, l)| {
            [vec![a, b, c, d, e, f], bank, vec![h, i, j, k, l]].concat()
        })
}

/// What a bank keeps: nothing, a queue or one request, which exclude each other.
fn bank_words() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    proptest::sample::select(vec![("0", "0"), ("3", "0"), ("0", "1")]).prop_map(|(queue, holds)| {
        vec![("bank_holds", "0"), ("bank_queue", queue), ("bank_holds", holds)]
    })
}

/// Traffic for any standard: bursts and pauses over few rows, so that hits,
/// conflicts and empty queues all occur.
pub(super) fn traffic() -> impl Strategy<Value = Traffic> {
    let gap = prop_oneof![8 => Just(0u8), 4 => 1u8..4, 1 => 100u8..250];
    let request = (gap, proptest::bool::weighted(0.3), any::<[u16; 5]>());
    let standards = MemoryStandard::names(&gpumodel::models()).count();
    (0..standards, option_words(), proptest::collection::vec(request, 1..400))
        .prop_map(|(standard, options, requests)| Traffic { standard, options, requests })
}

/// Offers the accesses of a block; returns those that were not accepted.
fn one_by_one(channel: &mut Channel, clock: u64, block: Block) -> u8 {
    let Block { request, columns } = block;
    let asked = (0..8).filter(|column| columns >> column & 1 == 1);
    asked
        .map(|column| (column, Request { column: request.column + column, ..request }))
        .skip_while(|(_, request)| channel.push(clock, *request))
        .fold(0, |left, (column, _)| left | 1 << column)
}

impl Traffic {
    /// The standard and the options.
    pub(super) fn machine(&self) -> (MemoryStandard, ControllerOptions) {
        let models = gpumodel::models();
        let name = MemoryStandard::names(&models).nth(self.standard).unwrap();
        let standard =
            MemoryStandard::load(name, &gpumodel::models(), &Default::default()).unwrap();
        let mut options = standard.controller.clone();
        for (key, word) in &self.options {
            options.set(&Place::new("test", 0), key, word).unwrap();
        }
        (standard, options)
    }

    /// Arrival clocks and requests; tokens count from 0.
    fn requests(&self, standard: &MemoryStandard) -> Vec<(u64, Request)> {
        let mut clock = 0;
        let mut list = Vec::new();
        for (at, &(gap, write, [pc, bg, ba, row, column])) in self.requests.iter().enumerate() {
            clock += u64::from(gap) * u64::from(gap / 4 + 1);
            let request = Request {
                token: u32::try_from(at).unwrap(),
                write,
                pseudo_channel: u32::from(pc) % standard.pseudo_channels,
                bank_group: u32::from(bg) % standard.bank_groups,
                bank: u32::from(ba) % standard.banks_per_group,
                row: u32::from(row) % 4,
                column: u32::from(column) % standard.columns,
            };
            list.push((clock, request));
        }
        list
    }

    /// Runs blocks of accesses to up to four columns, offered together or one by one.
    pub(super) fn run_blocks(&self, together: bool) -> Outcome {
        let (standard, options) = self.machine();
        let mut channel = Channel::new(&standard, &options);
        channel.keep_log();
        let mut outcome = Outcome::default();
        let mut blocks: VecDeque<(u64, Block)> = self
            .requests(&standard)
            .into_iter()
            .map(|(at, request)| {
                let columns = u8::try_from(request.column % 15 + 1).unwrap();
                (
                    at,
                    Block {
                        request: Request { column: request.column / 4 * 4, ..request },
                        columns,
                    },
                )
            })
            .collect();
        let mut clock = 0;
        while !channel.is_idle() || !blocks.is_empty() {
            assert!(clock < 10_000_000, "no progress");
            channel.advance(clock, &mut outcome.done);
            while let Some((_, block)) = blocks.front_mut().filter(|(at, _)| *at <= clock) {
                block.columns = match together {
                    true => channel.push_block(clock, *block),
                    false => one_by_one(&mut channel, clock, *block),
                };
                if block.columns != 0 {
                    break;
                }
                blocks.pop_front();
            }
            let arrival = blocks.front().map(|(at, _)| *at).filter(|at| *at > clock);
            clock = channel.next_event().into_iter().chain(arrival).min().unwrap_or(clock + 1);
        }
        outcome.commands = channel.take_log().collect();
        outcome
    }

    /// Runs the requests; `asleep` trusts the channel's sleep, else every clock is visited.
    pub(super) fn run(&self, asleep: bool) -> Outcome {
        let (standard, options) = self.machine();
        let requests = self.requests(&standard);
        let mut channel = Channel::new(&standard, &options);
        channel.keep_log();
        let (mut outcome, mut waiting) = (Outcome::default(), requests.as_slice());
        let mut clock = 0;
        // A few refresh intervals beyond the last request.
        let end = requests.last().unwrap().0 + 4 * u64::from(standard.refresh_interval);
        while clock < end || !channel.is_idle() || !waiting.is_empty() {
            assert!(clock < 10_000_000, "no progress");
            if asleep {
                channel.advance(clock, &mut outcome.done);
            } else {
                channel.tick(clock, &mut outcome.done);
            }
            while let Some(((_, request), rest)) =
                waiting.split_first().filter(|(r, _)| r.0 <= clock)
            {
                if !channel.push(clock, *request) {
                    break;
                }
                waiting = rest;
            }
            let arrival = waiting.first().map(|r| r.0).filter(|arrival| *arrival > clock);
            let next = channel.next_event().into_iter().chain(arrival).min();
            let next = next.unwrap_or(end.max(clock + 1));
            assert!(next > clock, "asleep at {clock} with work: {self:?}");
            clock = if asleep { next } else { clock + 1 };
        }
        outcome.commands = channel.take_log().filter(|issued| issued.clock < end).collect();
        outcome
    }
}
