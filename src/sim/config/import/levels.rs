//! The cache descriptions of a configuration: the line of each, and the two read together: what
//! the model makes of caches with and without sectors.

use nom::branch::alt;
use nom::bytes::complete::tag;
use nom::character::complete::{anychar, char, u32 as number};
use nom::combinator::{eof, opt};
use nom::sequence::{preceded, terminated};
use nom::{IResult, Parser};

use super::options::{Entry, Options};
use crate::config::error::SpecError;

/// The parts that the model uses of GPGPU-Sim's one-line cache description:
/// `kind:sets:line:ways,replacement:write:allocate:write-allocate:hash,mshr:entries:merge,queue:fifo,port`.
/// Older ones lack the kind (3.x: no cache had sectors), the hash or the write allocation, and
/// everything behind the MSHRs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CacheLine {
    /// `S` sectored, `N` not.
    pub(super) kind: char,
    /// Sets.
    pub(super) sets: u32,
    /// Bytes of a line.
    pub(super) line_bytes: u32,
    /// Ways.
    pub(super) ways: u32,
    /// `L` least recently used, `F` first in first out.
    pub(super) replacement: char,
    /// `R` read-only, `B` write-back, `T` write-through, `E` write-evict, `L`
    /// local write-back and global write-evict.
    pub(super) write: char,
    /// `m` on miss, `f` on fill, `s` streaming.
    pub(super) allocate: char,
    /// `N` no, `W` write, `F` fetch on write, `L` lazy fetch on read.
    pub(super) write_allocate: Option<char>,
    /// `L` linear, `X` xor, `P` polynomial, `H` Fermi's, `C` custom.
    pub(super) hash: Option<char>,
    /// `A` associative, `S` associative by sector, `F` and `T` a texture cache's.
    pub(super) mshr: char,
    /// Outstanding misses.
    pub(super) mshr_entries: u32,
    /// Requests on one of them.
    pub(super) mshr_merge: u32,
    /// Places of the queue of misses behind them; 0 where the line has none.
    pub(super) miss_queue: u32,
}

impl CacheLine {
    /// Reads the whole of `text`.
    pub(super) fn read(text: &str) -> Option<Self> {
        line(text).ok().map(|(_, line)| line)
    }
}

fn line(input: &str) -> IResult<&str, CacheLine> {
    let colon = |input| char(':').parse(input);
    let letter = |input| preceded(colon, anychar).parse(input);
    let (input, kind) = opt(terminated(alt((char('N'), char('S'))), colon)).parse(input)?;
    let (input, (sets, line_bytes, ways)) =
        (number, preceded(colon, number), preceded(colon, number)).parse(input)?;
    let (input, (replacement, write, allocate, write_allocate, hash)) =
        (preceded(alt((tag(","), tag(":"))), anychar), letter, letter, opt(letter), opt(letter))
            .parse(input)?;
    let (input, (mshr, mshr_entries, mshr_merge)) =
        (preceded(tag(","), anychar), preceded(colon, number), preceded(colon, number))
            .parse(input)?;
    let queue = terminated(preceded(tag(","), number), opt(preceded(colon, number)));
    let (input, (miss_queue, _)) = (opt(queue), opt(preceded(tag(","), number))).parse(input)?;
    let (input, _) = eof.parse(input)?;
    let found = CacheLine {
        kind: kind.unwrap_or('N'),
        sets,
        line_bytes,
        ways,
        replacement,
        write,
        allocate,
        write_allocate,
        hash,
        mshr,
        mshr_entries,
        mshr_merge,
        miss_queue: miss_queue.unwrap_or(0),
    };
    Ok((input, found))
}

/// Bytes of the lines that the model can fetch as a whole in both levels.
const LINE: u32 = 128;

/// Bytes of a sector.
pub(super) const SECTOR: u32 = 32;

/// A cache with the line that describes it; `None`: the configuration has none, or only
/// textures use it.
pub(super) struct Level {
    pub(super) entry: Entry,
    pub(super) line: Option<CacheLine>,
}

/// L1 and L2 of a configuration.
pub(super) struct Levels {
    pub(super) l1: Level,
    pub(super) l2: Level,
    /// Bytes that are valid as one in both of them: 32, or 128 where the L1 fetches whole lines.
    pub(super) sector_bytes: u32,
    /// Bytes that a miss of the L2 fetches.
    pub(super) fetch_bytes: u32,
}

impl Levels {
    /// Reads both.
    pub(super) fn read(options: &mut Options) -> Result<Self, SpecError> {
        let l1 = Level::new(options.or("-gpgpu_cache:dl1", "none"))?;
        let mut l2 = Level::new(options.or("-gpgpu_cache:dl2", "64:128:8,L:B:m:N,A:16:4,4"))?;
        let textures = options.or("-gpgpu_cache:dl2_texture_only", "1");
        if textures.flag()? {
            l2 = Level { entry: textures, line: None };
        }
        let whole_l1 = l1.line.is_some_and(|line| line.whole(LINE));
        let l2_lines = l2.line.is_none_or(|line| line.line_bytes == LINE);
        let sector_bytes = if whole_l1 && l2_lines { LINE } else { SECTOR };
        let fetch_bytes = match l2.line {
            Some(line) if line.kind == 'N' => line.line_bytes,
            // Without an L2 the memory gets the requests of the L1 as they are.
            None => sector_bytes,
            Some(_) => SECTOR,
        };
        Ok(Self { l1, l2, sector_bytes, fetch_bytes })
    }

    /// How the model stands for lines and sectors that differ from its own.
    pub(super) fn sectors_source(&self) -> (bool, String) {
        let kinds = [&self.l1, &self.l2].map(|level| level.line.map(|line| line.kind));
        let cites = format!("{}; {}", self.l1.entry.cite(), self.l2.entry.cite());
        let exact = match (self.sector_bytes == LINE, kinds) {
            (true, [_, l2]) => l2 != Some('S'),
            (false, [l1, _]) => l1 != Some('N'),
        };
        let why = match (exact, self.sector_bytes == LINE) {
            (true, true) => "whole lines",
            (true, false) => "sectors; a miss of whole lines in the L2 fetches all of them",
            (false, true) => {
                "the L1 asks for whole lines, so that the sectors of one come together"
            }
            (false, false) => "whole lines of this size are fetched by sector",
        };
        (exact, format!("{cites}: {why}"))
    }
}

impl CacheLine {
    /// Whether it has whole lines of `bytes`.
    fn whole(&self, bytes: u32) -> bool {
        self.kind == 'N' && self.line_bytes == bytes
    }
}

impl Level {
    fn new(entry: Entry) -> Result<Self, SpecError> {
        if entry.value == "none" {
            return Ok(Self { entry, line: None });
        }
        let line = CacheLine::read(&entry.value).ok_or_else(|| {
            entry.refuse(
                "S or N:sets:line:ways,rep:write:alloc:write-alloc:hash,mshr:entries:merge,\
                 queue:fifo,port",
            )
        })?;
        check(&entry, &line)?;
        Ok(Self { entry, line: Some(line) })
    }
}

/// Refuses what the simulator stops at, and sizes that no cache of the model has.
fn check(entry: &Entry, line: &CacheLine) -> Result<(), SpecError> {
    let sizes = [line.sets, line.ways, line.mshr_entries, line.mshr_merge];
    if sizes.iter().any(|size| !(1..=1 << 20).contains(size)) {
        return Err(entry.refuse("sets, ways, MSHRs and merges from 1 to 1048576"));
    }
    if line.kind == 'S' && line.line_bytes != LINE {
        return Err(entry.refuse("lines of 128 bytes in a sectored cache (S)"));
    }
    if !line.line_bytes.is_power_of_two() || !(SECTOR..=256).contains(&line.line_bytes) {
        return Err(entry.refuse("lines of 32, 64, 128 or 256 bytes"));
    }
    if !matches!(line.mshr, 'A' | 'S') {
        return Err(entry.refuse("MSHRs of a data cache, A or S"));
    }
    policies(entry, line)
}

/// Refuses policies that the simulator asserts to be impossible (`gpu-cache.h`,
/// `cache_config::init`).
fn policies(entry: &Entry, line: &CacheLine) -> Result<(), SpecError> {
    let on_fill = line.allocate != 'm';
    if !matches!(line.allocate, 'm' | 'f' | 's') {
        return Err(entry.refuse("an allocation m, f or s"));
    }
    if !matches!(line.write_allocate, None | Some('N' | 'W' | 'F' | 'L')) {
        return Err(entry.refuse("a write allocation N, W, F or L"));
    }
    if on_fill && line.write == 'B' {
        return Err(entry.refuse("allocation on a miss (m) in a write-back cache (B)"));
    }
    if on_fill && matches!(line.write_allocate, Some('F' | 'L')) {
        return Err(entry.refuse("allocation on a miss (m) with write allocation F or L"));
    }
    let sets = line.sets;
    match line.hash {
        None | Some('L') => Ok(()),
        Some('X') if sets.is_power_of_two() => Ok(()),
        Some('X') => Err(entry.refuse("a power of two of sets with set index X")),
        Some('P') if matches!(sets, 16 | 32 | 64) => Ok(()),
        Some('P') => Err(entry.refuse("16, 32 or 64 sets with set index P; or X, or L")),
        Some('H') if matches!(sets, 32 | 64) => Ok(()),
        Some('H') => Err(entry.refuse("32 or 64 sets with set index H; or X, or L")),
        Some('C') => {
            let text = "a set index function L, X, P or H: what a custom one (C) does is not in \
                        the configuration";
            Err(entry.refuse(text))
        }
        Some(_) => Err(entry.refuse("a set index function L, X, P or H")),
    }
}

#[cfg(test)]
mod tests {
    use super::CacheLine;

    #[test]
    fn the_parts_are_in_their_places() {
        let line = CacheLine::read("S:4:128:64,L:T:m:L:X,A:512:8,16:0,32").unwrap();
        assert_eq!((line.kind, line.sets, line.line_bytes, line.ways), ('S', 4, 128, 64));
        assert_eq!(
            (line.write, line.allocate, line.write_allocate, line.hash),
            ('T', 'm', Some('L'), Some('X'))
        );
        assert_eq!((line.replacement, line.mshr_entries, line.mshr_merge), ('L', 512, 8));
        assert_eq!(line.miss_queue, 16);
        assert!(CacheLine::read("N:64:128:16,L:R:f:N:L,S:2:48,4").is_some());
        for bad in
            ["", "none", "S:4:128", "S:4:128:64,L:T:m:L:X,A:512:8,16:0,32 x", "S:99999999999:1:1"]
        {
            assert_eq!(CacheLine::read(bad), None, "{bad}");
        }
    }

    #[test]
    fn older_lines_lack_kind_hash_write_allocation_or_queue() {
        let read = |text| CacheLine::read(text).unwrap_or_else(|| panic!("{text}"));
        let old = read("64:128:6,L:L:m:N:H,A:128:8,16");
        assert_eq!((old.kind, old.sets, old.ways, old.hash), ('N', 64, 6, Some('H')));
        let default = read("64:128:8,L:B:m:N,A:16:4,4");
        assert_eq!((default.write_allocate, default.hash), (Some('N'), None));
        let older = read("64:128:8:L:R:m,A:16:4");
        assert_eq!((older.write, older.write_allocate, older.mshr_merge), ('R', None, 4));
        assert_eq!(older.miss_queue, 0);
        assert_eq!(read("N:32:128:4,L:L:m:N:H,S:64:8,8").mshr, 'S');
    }
}
