//! Grouped text as a `.tracez`: the other side of the reader in `src`, written only
//! from the documented layout.

use zstd::bulk::Compressor;
use zstd::dict::from_samples;

use gpumodel::core::units::Dim3;

use crate::rendering::{Lines, grouped, raw};

/// The packing of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packing {
    /// Instructions per sub-chunk.
    pub(crate) chunk: usize,
    /// Most bytes of the dictionary; 0 for none.
    pub(crate) dictionary: usize,
    pub(crate) level: i32,
}

impl Default for Packing {
    fn default() -> Self {
        Self { chunk: 256, dictionary: 16 << 10, level: 3 }
    }
}

/// The header of a trace: its lines up to the first that is none.
fn header(text: &str) -> String {
    let lines = text.lines().take_while(|line| *line != "#BEGIN_TB" && !is_raw(line));
    lines.filter(|line| !line.trim().is_empty()).map(|line| format!("{line}\n")).collect()
}

fn is_raw(line: &str) -> bool {
    line.starts_with(|first: char| first.is_ascii_digit())
}

/// Warps of a block, as the header says.
fn warps(header: &str) -> usize {
    let block = header.lines().find_map(|line| line.strip_prefix("-block dim = ("));
    let parts = block.unwrap().trim_end_matches(')').split(',');
    let threads: usize = parts.map(|part| part.parse::<usize>().unwrap()).product();
    threads.div_ceil(32)
}

fn numbers(value: &str) -> Vec<u32> {
    value.split(',').map(|part| part.trim().parse().unwrap()).collect()
}

fn dim(value: Dim3) -> [u32; 3] {
    [value.x, value.y, value.z]
}

/// The seven numbers of a block's cluster.
fn cluster(notes: &[&str]) -> Vec<u32> {
    let of = |key: &str| notes.iter().find_map(|note| note.strip_prefix(key));
    let zero = |count| vec![0; count];
    let [id, cta] = ["cluster id = ", "cluster cta = "].map(|key| of(key).map_or(zero(3), numbers));
    let rank = of("cluster rank = ").map_or(zero(1), numbers);
    [id, cta, rank].concat()
}

/// The dictionary of a file's sub-chunks: trained where there are enough of them,
/// else the start of their text, which zstd takes as well.
fn dictionary(chunks: &[String], most: usize) -> Vec<u8> {
    if most == 0 {
        return Vec::new();
    }
    let all = chunks.concat();
    from_samples(chunks, most).unwrap_or_else(|_| all.bytes().take(most).collect())
}

fn put(out: &mut Vec<u8>, numbers: impl IntoIterator<Item = u32>) {
    numbers.into_iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
}

fn short(number: usize) -> u32 {
    number.try_into().unwrap()
}

/// One warp's lines as sub-chunks, with the space that tracers end lines with.
fn chunks(lines: &[&str], size: usize) -> Vec<String> {
    let text = |lines: &[&str]| lines.iter().map(|line| format!("{line} \n")).collect();
    lines.chunks(size).map(text).collect()
}

/// Packs a trace's text.
pub(crate) fn packed(text: &str, packing: Packing) -> Vec<u8> {
    let header = header(text);
    let blocks: Vec<Lines<'_>> = if text.contains("#BEGIN_TB") { grouped(text) } else { raw(text) };
    let warps = warps(&header);
    let lines = |block: &Lines<'_>, warp: usize| {
        block.warps.get(&short(warp)).map(|lines| chunks(lines, packing.chunk)).unwrap_or_default()
    };
    let texts: Vec<Vec<Vec<String>>> =
        blocks.iter().map(|block| (0..warps).map(|warp| lines(block, warp)).collect()).collect();
    let every: Vec<String> = texts.iter().flatten().flatten().take(4096).cloned().collect();
    let dictionary = dictionary(&every, packing.dictionary);
    let mut compressor = Compressor::with_dictionary(packing.level, &dictionary).unwrap();
    let mut out = header.into_bytes();
    out.push(0);
    put(&mut out, [short(dictionary.len()), short(packing.chunk)]);
    out.extend_from_slice(&dictionary);
    let mut index = Vec::new();
    put(&mut index, [short(blocks.len())]);
    for (block, warps) in blocks.iter().zip(&texts) {
        put(&mut index, dim(block.position));
        put(&mut index, cluster(&block.notes));
        put(&mut index, [short(warps.len())]);
        for chunks in warps {
            let counts: Vec<u32> = chunks.iter().map(|c| short(c.lines().count())).collect();
            let head = [counts.iter().sum(), short(chunks.len())];
            put(&mut index, head);
            index.extend_from_slice(&u64::try_from(out.len()).unwrap().to_le_bytes());
            put(&mut index, counts);
            put(&mut out, head);
            for chunk in chunks {
                let frame = compressor.compress(chunk.as_bytes()).unwrap();
                put(&mut out, [short(frame.len())]);
                out.extend_from_slice(&frame);
            }
        }
    }
    let place = u64::try_from(out.len()).unwrap();
    out.extend_from_slice(&index);
    out.extend_from_slice(&place.to_le_bytes());
    out
}
