//! GPGPU-Sim's one-line cache description:
//! `kind:sets:line:ways,replacement:write:allocate:write-allocate:hash,mshr:entries:merge,queue:fifo,port`.
//! Older ones lack the kind (3.x: no cache had sectors), the hash or the write allocation, and
//! everything behind the MSHRs.

use nom::branch::alt;
use nom::bytes::complete::tag;
use nom::character::complete::{anychar, char, u32 as number};
use nom::combinator::{eof, opt};
use nom::sequence::{preceded, terminated};
use nom::{IResult, Parser};

/// The parts that the model uses.
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
    // The miss queue: here the network's own queue holds misses in flight.
    let queue = (preceded(tag(","), number), opt(preceded(colon, number)));
    let (input, _) = (opt(queue), opt(preceded(tag(","), number))).parse(input)?;
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
    };
    Ok((input, found))
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
        assert_eq!(read("N:32:128:4,L:L:m:N:H,S:64:8,8").mshr, 'S');
    }
}
