//! How a memory controller behaves: plain data, the `[controller]` section of a
//! memory file and the `--set` keys of `gpumodel dram`.

use crate::config::error::SpecError;
use gpumodel_core::toml::Place;

/// Policies and sizes of one channel's controller.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerOptions {
    /// Which request goes next.
    pub scheduler: Order,
    /// A row that older requests still hit is not closed for a younger one.
    pub row_hit_first: bool,
    /// Younger hits keep a row open against an older conflicting request until
    /// this many accesses were served from it; 0: they never do.
    pub hit_cap: u32,
    /// Reads that may wait (all requests with `unified_queue`).
    pub read_queue: u32,
    /// Writes that may wait.
    pub write_queue: u32,
    /// Reads and writes wait in one queue and are served mixed.
    pub unified_queue: bool,
    /// A request leaves its queue when it has opened its row, not when it is served.
    pub opened_leaves_queue: bool,
    /// Places of a bank's own queue, reads and writes mixed, which is all that the
    /// scheduler sees; the queues above then hold those behind, and writes move on
    /// when their queue is full or no read is left. 0: it sees the whole queue.
    pub bank_queue: u32,
    /// A bank that is free takes a request out of the queue, its oldest row hit or else its
    /// oldest, and serves no other before it. Only with `bank_queue = 0`.
    pub bank_holds: bool,
    /// Writes are drained once more than this share of `write_queue` is filled.
    pub write_high: f64,
    /// Draining ends below this share, when reads wait.
    pub write_low: f64,
    /// Fewer writes than `write_high` are drained as well once no read has waited for so many
    /// clocks; 0: as soon as none waits.
    pub write_idle: u32,
    /// A write is done one clock after it was accepted.
    pub posted_writes: bool,
    /// A read of a waiting write's address is answered from the queue.
    pub forward: bool,
    /// A request to the address of a waiting one of its kind is served with it.
    pub merge: bool,
    /// Which refresh commands are sent.
    pub refresh: Refresh,
    /// When a row is closed that nothing asks for.
    pub page_policy: PagePolicy,
    /// Clocks without an access until [`PagePolicy::Timeout`] closes a row.
    pub page_timeout: u32,
}

/// Which request goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// First ready, then first come.
    FrFcfs,
    /// First come, first served.
    Fcfs,
    /// Ready commands of the bank after the last one served, then first come.
    RoundRobin,
}

/// Which refresh commands are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// None.
    None,
    /// All banks of a pseudo channel at once.
    AllBank,
    /// One bank after the other.
    PerBank,
}

/// When a row is closed that nothing asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagePolicy {
    /// Never.
    Open,
    /// With its last waiting access.
    Closed,
    /// After some clocks without an access.
    Timeout,
}

impl Default for ControllerOptions {
    /// FR-FCFS, 64 reads and 64 writes, watermarks at 0.8 and 0.2, open page, no refresh.
    fn default() -> Self {
        Self {
            scheduler: Order::FrFcfs,
            row_hit_first: true,
            hit_cap: 0,
            read_queue: 64,
            write_queue: 64,
            unified_queue: false,
            opened_leaves_queue: false,
            bank_queue: 0,
            bank_holds: false,
            write_high: 0.8,
            write_low: 0.2,
            write_idle: 0,
            posted_writes: false,
            forward: true,
            merge: false,
            refresh: Refresh::None,
            page_policy: PagePolicy::Open,
            page_timeout: 200,
        }
    }
}

/// Every key of [`ControllerOptions::set`].
const KEYS: [&str; 18] = [
    "scheduler",
    "row_hit_first",
    "hit_cap",
    "read_queue",
    "write_queue",
    "unified_queue",
    "opened_leaves_queue",
    "bank_queue",
    "bank_holds",
    "write_high",
    "write_low",
    "write_idle",
    "posted_writes",
    "forward",
    "merge",
    "refresh",
    "page_policy",
    "page_timeout",
];

/// Most requests that one queue may hold.
const LARGEST_QUEUE: u32 = 4096;

impl ControllerOptions {
    /// True when [`ControllerOptions::set`] knows `key`.
    #[must_use]
    pub fn knows(key: &str) -> bool {
        KEYS.contains(&key)
    }

    /// Sets the option `key` (a field's name) from its text: numbers, `true`,
    /// `false`, `1`, `0`, and for `scheduler` `fr-fcfs`, `fcfs` or `round-robin`, for `refresh`
    /// `none`, `all-bank` or `per-bank`, for `page_policy` `open`, `closed` or
    /// `timeout`. `place` (a file and line, or `--set`) goes into the error.
    ///
    /// # Errors
    /// [`SpecError::Toml`], with what is expected.
    pub fn set(&mut self, place: &Place, key: &str, text: &str) -> Result<(), SpecError> {
        let word = Word { place, key, text };
        match key {
            "scheduler" => {
                self.scheduler = word.one_of(&[
                    ("fr-fcfs", Order::FrFcfs),
                    ("fcfs", Order::Fcfs),
                    ("round-robin", Order::RoundRobin),
                ])?;
            }
            "row_hit_first" => self.row_hit_first = word.flag()?,
            "hit_cap" => self.hit_cap = word.count(0, u32::MAX)?,
            "read_queue" => self.read_queue = word.count(1, LARGEST_QUEUE)?,
            "write_queue" => self.write_queue = word.count(1, LARGEST_QUEUE)?,
            "unified_queue" => self.unified_queue = word.flag()?,
            "opened_leaves_queue" => self.opened_leaves_queue = word.flag()?,
            "bank_queue" => self.bank_queue = word.count(0, LARGEST_QUEUE)?,
            "bank_holds" => self.bank_holds = word.flag()?,
            "write_high" => self.write_high = word.share()?,
            "write_low" => self.write_low = word.share()?,
            "write_idle" => self.write_idle = word.count(0, u32::MAX)?,
            "posted_writes" => self.posted_writes = word.flag()?,
            "forward" => self.forward = word.flag()?,
            "merge" => self.merge = word.flag()?,
            "page_timeout" => self.page_timeout = word.count(1, u32::MAX)?,
            _ => return self.set_policy(&word),
        }
        if self.bank_holds && self.bank_queue > 0 {
            return Err(word.refuse("bank_queue = 0 wherever bank_holds is true"));
        }
        Ok(())
    }

    fn set_policy(&mut self, word: &Word<'_>) -> Result<(), SpecError> {
        match word.key {
            "refresh" => {
                self.refresh = word.one_of(&[
                    ("none", Refresh::None),
                    ("all-bank", Refresh::AllBank),
                    ("per-bank", Refresh::PerBank),
                    ("0", Refresh::None),
                    ("1", Refresh::AllBank),
                ])?;
            }
            "page_policy" => {
                self.page_policy = word.one_of(&[
                    ("open", PagePolicy::Open),
                    ("closed", PagePolicy::Closed),
                    ("timeout", PagePolicy::Timeout),
                ])?;
            }
            key => return Err(SpecError::unknown(word.place, key, KEYS)),
        }
        Ok(())
    }
}

/// One key with its text and where it stands.
struct Word<'a> {
    place: &'a Place,
    key: &'a str,
    text: &'a str,
}

impl Word<'_> {
    fn refuse(&self, expected: &str) -> SpecError {
        SpecError::value(self.place, self.key, expected, format!("`{}`", self.text.escape_debug()))
    }

    fn flag(&self) -> Result<bool, SpecError> {
        match self.text {
            "true" | "1" | "on" | "yes" => Ok(true),
            "false" | "0" | "off" | "no" => Ok(false),
            _ => Err(self.refuse("true or false")),
        }
    }

    fn count(&self, low: u32, high: u32) -> Result<u32, SpecError> {
        let value = self.text.parse::<u32>().ok().filter(|value| (low..=high).contains(value));
        value.ok_or_else(|| self.refuse(&format!("a whole number from {low} to {high}")))
    }

    fn share(&self) -> Result<f64, SpecError> {
        let value = self.text.parse::<f64>().ok().filter(|value| (0.0..=1.0).contains(value));
        value.ok_or_else(|| self.refuse("a share from 0 to 1"))
    }

    fn one_of<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, SpecError> {
        let found = choices.iter().find(|(name, _)| *name == self.text);
        found.map(|&(_, choice)| choice).ok_or_else(|| {
            let names: Vec<&str> =
                choices.iter().map(|&(name, _)| name).filter(|name| name.len() > 1).collect();
            self.refuse(&format!("one of {}", names.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{ControllerOptions, KEYS, Place};

    #[test]
    fn every_key_is_known_and_guards_its_range() {
        for key in KEYS {
            let error =
                ControllerOptions::default().set(&Place::new("--set", 0), key, "?").unwrap_err();
            assert!(error.to_string().contains("expected"), "{error}");
        }
        let error =
            ControllerOptions::default().set(&Place::new("--set", 0), "hit_cop", "1").unwrap_err();
        assert!(error.to_string().contains("did you mean `hit_cap`"), "{error}");
    }

    #[test]
    fn a_bank_that_holds_its_request_has_no_queue() {
        for [first, then] in [["bank_holds", "bank_queue"], ["bank_queue", "bank_holds"]] {
            let mut options = ControllerOptions::default();
            options.set(&Place::new("--set", 0), first, "1").unwrap();
            let error = options.set(&Place::new("--set", 0), then, "1").unwrap_err().to_string();
            assert!(error.contains("bank_queue = 0 wherever bank_holds"), "{error}");
        }
    }
}
