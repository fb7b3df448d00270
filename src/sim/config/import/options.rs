//! The option files of GPGPU-Sim and Accel-Sim: `-key value …` lines, `#`
//! comments, and quoted values that may run over several lines.
//!
//! Options that the importer knows and the model has no counterpart for are listed here too.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use nom::branch::alt;
use nom::bytes::complete::{is_not, take_while, take_while1};
use nom::character::complete::{char, multispace1, space0};
use nom::combinator::{opt, recognize, value};
use nom::multi::many0;
use nom::sequence::{delimited, preceded};
use nom::{IResult, Parser};

use crate::config::error::SpecError;
use gpumodel_core::toml::Place;
use gpumodel_core::units::nearest;

/// One option as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// File, as it was typed, and line.
    pub(super) place: Place,
    /// The key with its dash.
    pub(super) key: String,
    /// The value with single spaces, without quotes and comments.
    pub(super) value: String,
}

impl Entry {
    /// The line as a source: `gpgpusim.config:78 -gpgpu_n_clusters 80`.
    pub(super) fn cite(&self) -> String {
        self.at(&self.line())
    }

    /// The same with the file as it was typed.
    pub(super) fn cited_as_typed(&self) -> String {
        self.at(&self.place)
    }

    /// The line without the folder of its file: what a machine file cites is the same
    /// wherever the configuration lies.
    pub(super) fn line(&self) -> Place {
        let file = self.place.file();
        let name = Path::new(file).file_name().and_then(OsStr::to_str).unwrap_or(file);
        Place::new(name, self.place.line())
    }

    fn at(&self, place: &Place) -> String {
        let mut cited = format!("{place} {} {}", self.key, self.value);
        if cited.chars().count() > CITED_LETTERS {
            cited = cited.chars().take(CITED_LETTERS).collect::<String>() + "…";
        }
        cited
    }
}

impl Entry {
    /// Part `index` of a value split at `,` and `:`, as a number.
    pub(super) fn part<T: FromStr>(&self, index: usize) -> Result<T, SpecError> {
        let part = self.value.split([',', ':']).nth(index).map(str::trim);
        part.and_then(|text| text.parse().ok())
            .ok_or_else(|| self.refuse(&format!("a number as part {} of the value", index + 1)))
    }

    /// The whole value as a number; as in the simulator, one that begins with 0x is
    /// hexadecimal, one that begins with 0 octal.
    pub(super) fn number<T: FromStr>(&self) -> Result<T, SpecError> {
        let (digits, radix) = match self.value.strip_prefix('0') {
            None | Some("") => (self.value.as_str(), 10),
            Some(rest) => rest.strip_prefix('x').map_or((rest, 8), |digits| (digits, 16)),
        };
        let plain = || self.value.parse().ok();
        let number = match u64::from_str_radix(digits, radix) {
            Ok(number) if radix != 10 => number.to_string().parse().ok(),
            _ => plain(),
        };
        number.ok_or_else(|| self.refuse("a number in range"))
    }

    /// The whole value as a number in `range`.
    pub(super) fn within(&self, range: RangeInclusive<u32>) -> Result<u32, SpecError> {
        self.number().ok().filter(|number| range.contains(number)).ok_or_else(|| {
            self.refuse(&format!("a number from {} to {}", range.start(), range.end()))
        })
    }

    /// Part `index` of a value split at `,` and `:`, as a number in `range`.
    pub(super) fn part_within(
        &self,
        index: usize,
        range: RangeInclusive<u32>,
    ) -> Result<u32, SpecError> {
        let part: u32 = self.part(index)?;
        if range.contains(&part) {
            return Ok(part);
        }
        let (low, high) = (range.start(), range.end());
        Err(self.refuse(&format!("a number from {low} to {high} as part {}", index + 1)))
    }

    /// The value as 0 or 1; as in the simulator, an option without a value is 1.
    pub(super) fn flag(&self) -> Result<bool, SpecError> {
        match self.value.as_str() {
            "0" => Ok(false),
            "1" | "" => Ok(true),
            _ => Err(self.refuse("0 or 1")),
        }
    }

    /// The product of `factors`, which this option and its neighbours state.
    pub(super) fn product(&self, factors: &[u32]) -> Result<u32, SpecError> {
        let product = factors.iter().try_fold(1_u32, |all, factor| all.checked_mul(*factor));
        product.ok_or_else(|| self.refuse("a number whose product is below 4294967296"))
    }

    /// The sum of `parts`, which this option and its neighbours state.
    pub(super) fn sum(&self, parts: &[u32]) -> Result<u32, SpecError> {
        let sum = parts.iter().try_fold(0_u32, |all, part| all.checked_add(*part));
        sum.ok_or_else(|| self.refuse("a number whose sum is below 4294967296"))
    }

    /// The error for a value that is not what the option takes.
    pub(super) fn refuse(&self, expected: &str) -> SpecError {
        SpecError::value(&self.place, &self.key, expected, format!("\"{}\"", self.value))
    }
}

/// Options and their names before GPGPU-Sim 4.1.
const RENAMED: [(&str, &str); 8] = [
    ("-gpgpu_adaptive_cache_config", "-adaptive_cache_config"),
    ("-gpgpu_flush_l1_cache", "-flush_l1_cache"),
    ("-gpgpu_gmem_skip_L1D", "-gmem_skip_L1D"),
    ("-gpgpu_l1_banks", "-l1_banks"),
    ("-gpgpu_l1_latency", "-l1_latency"),
    ("-gpgpu_l2_rop_latency", "-rop_latency"),
    ("-gpgpu_mem_addr_mapping", "-mem_addr_mapping"),
    ("-gpgpu_smem_latency", "-smem_latency"),
];

/// Longest citation of an option, in letters.
const CITED_LETTERS: usize = 140;

/// The options of all files; of an option given twice the last one counts, as
/// in the simulator.
#[derive(Debug)]
pub(super) struct Options {
    /// The files as they were typed.
    files: String,
    entries: BTreeMap<String, Entry>,
    used: BTreeSet<String>,
    /// All that were asked for, given or not.
    asked: BTreeSet<String>,
}

impl Options {
    /// Reads `files` as (name, text) in order.
    pub(super) fn read(files: &[(String, String)]) -> Result<Self, SpecError> {
        let mut entries = BTreeMap::new();
        for (name, text) in files {
            for entry in entries_of(name, text)? {
                entries.insert(entry.key.clone(), entry);
            }
        }
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        let (used, asked) = (BTreeSet::new(), BTreeSet::new());
        Ok(Self { files: names.join(", "), entries, used, asked })
    }

    /// The option `key`, or what it was called earlier; it is thereby used.
    pub(super) fn find(&mut self, key: &str) -> Option<Entry> {
        self.asked.insert(key.to_owned());
        let earlier = RENAMED.iter().find(|(new, _)| *new == key).map(|(_, old)| *old);
        let found = self.entries.get(key).or_else(|| self.entries.get(earlier?))?;
        self.used.insert(found.key.clone());
        Some(found.clone())
    }

    /// Refuses files that configure something else: nothing was used, or, as in a
    /// `trace.config`, only the timing of units.
    pub(super) fn check_used(&self) -> Result<(), SpecError> {
        let timing = |key: &String| ["-trace_", "-specialized_"].iter().any(|p| key.starts_with(p));
        if !self.used.iter().all(timing) {
            return Ok(());
        }
        let (key, meaning) = ("-gpgpu_n_clusters".to_owned(), "SM clusters");
        Err(SpecError::MissingOption { files: self.files.clone(), key, meaning })
    }

    /// The option `key`, or the simulator's `default` for it.
    pub(super) fn or(&mut self, key: &str, default: &str) -> Entry {
        self.find(key).unwrap_or_else(|| Entry {
            place: Place::new(Arc::from("GPGPU-Sim's default"), 0),
            key: key.to_owned(),
            value: default.to_owned(),
        })
    }

    /// The known option that is most like `key`, where one is.
    pub(super) fn nearest(&self, key: &str) -> Option<String> {
        let mut known: Vec<&str> = ignored_keys().collect();
        known.extend(self.asked.iter().map(String::as_str));
        nearest(key, known)
    }

    /// The options that nothing used, in key order.
    pub(super) fn unused(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values().filter(|entry| !self.used.contains(&entry.key))
    }
}

fn entries_of(name: &str, text: &str) -> Result<Vec<Entry>, SpecError> {
    let file: Arc<str> = Arc::from(name);
    let mut rest = text;
    let mut entries = Vec::new();
    loop {
        rest = blanks(rest).map_or(rest, |(after, ())| after);
        if rest.is_empty() {
            return Ok(entries);
        }
        let line = 1 + text[..text.len() - rest.len()].matches('\n').count();
        let place = Place::new(file.clone(), u32::try_from(line).unwrap_or(u32::MAX));
        let Ok((after, (key, words))) = option(rest) else {
            let found = rest.lines().next().unwrap_or_default();
            let found: String = found.chars().take(60).collect();
            let message = format!("expected `-key value` or `# comment`, found `{found}`");
            return Err(SpecError::Option { place, message });
        };
        let value = words.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        entries.push(Entry { place, key: key.to_owned(), value });
        rest = after;
    }
}

/// White space and comments.
fn blanks(input: &str) -> IResult<&str, ()> {
    let comment = preceded(char('#'), take_while(|c| c != '\n'));
    value((), many0(alt((comment, multispace1)))).parse(input)
}

/// `-key` and its values up to the end of the line.
fn option(input: &str) -> IResult<&str, (&str, Vec<&str>)> {
    let key = recognize(preceded(char('-'), take_while1(|c: char| !c.is_whitespace())));
    let quoted = delimited(char('"'), take_while(|c| c != '"'), char('"'));
    let bare = is_not(" \t\r\n#\"");
    let word = preceded(space0, alt((quoted, bare)));
    let end = (space0, opt(preceded(char('#'), take_while(|c| c != '\n'))));
    let (rest, (key, words, _)) = (key, many0(word), end).parse(input)?;
    // A value ends with its line: anything else here is no option line.
    let (rest, ()) =
        alt((value((), take_while1(|c| c == '\r' || c == '\n')), value((), nom::combinator::eof)))
            .parse(rest)?;
    Ok((rest, (key, words)))
}

/// Prefix of the key, the only value for which leaving it out is right (where
/// that matters), and why it is left out. The longest prefix counts.
const IGNORED: [(&str, Option<&str>, &str); 57] = [
    ("-dram_seperate_write_queue_enable", Some("0"), "one queue for reads and writes"),
    ("-enable_ptx_file_line_stats", None, "statistics"),
    ("-gpgpu_cache:dl1Pref", None, "cache preference calls are not in traces"),
    ("-gpgpu_cache:il1", None, "instruction cache: perfect in trace mode"),
    ("-gpgpu_clock_gated_lanes", None, "power"),
    ("-gpgpu_coalesce_arch", None, "32-byte sectors from compute capability 4.0 on"),
    ("-gpgpu_compute_capability", None, "the opcode table holds all architectures"),
    ("-gpgpu_const_cache", None, "constant loads are arithmetic in trace mode"),
    ("-gpgpu_dram_return_queue_size", None, "answers leave the channel when the L2 takes them"),
    ("-gpgpu_dram_scheduler", Some("1"), "FR-FCFS"),
    ("-gpgpu_dual_issue_diff_exec_units", None, "dual issue goes to different units"),
    (
        "-gpgpu_enable_specialized_operand_collector",
        None,
        "operand collectors are not modelled one by one",
    ),
    ("-gpgpu_flush_l2_cache", Some("0"), "the L2 keeps its content between kernels"),
    ("-gpgpu_heap_size_limit", None, "functional simulation"),
    ("-gpgpu_ignore_resources_limitation", None, "CTAs need their resources"),
    (
        "-gpgpu_inst_fetch_throughput",
        None,
        "a pass fetches for more instructions than the schedulers issue",
    ),
    ("-gpgpu_l1_banks_hashing_function", Some("0"), "banks of the L1 are interleaved"),
    ("-gpgpu_max_concurrent_kernel", None, "kernels run together as the scheme says"),
    ("-gpgpu_max_cta", Some("0"), "no limit"),
    ("-gpgpu_max_cycle", Some("0"), "no limit"),
    ("-gpgpu_max_insn", Some("0"), "no limit"),
    ("-gpgpu_mem_addr_test", None, "a test of the simulator's own"),
    ("-gpgpu_mem_address_mask", None, "part of the address mapping"),
    ("-gpgpu_memlatency_stat", None, "statistics"),
    ("-gpgpu_n_cluster_ejection_buffer_size", None, "the crossbar's output queue stands for it"),
    ("-gpgpu_n_mem_per_ctrlr", Some("1"), "one device per controller"),
    ("-gpgpu_num_tensor_core_units", None, "HMMA runs on specialised unit 3 in trace mode"),
    ("-gpgpu_operand_collector", None, "operand collectors are not modelled one by one"),
    ("-gpgpu_num_cta_barriers", None, "barriers of traces fit"),
    ("-gpgpu_perfect_inst_const_cache", Some("1"), "instruction and constant caches are perfect"),
    ("-gpgpu_perfect_mem", Some("0"), "caches and memory are modelled"),
    ("-gpgpu_ptx", None, "functional simulation"),
    ("-gpgpu_registers_per_block", None, "launches in traces fit"),
    ("-gpgpu_runtime", None, "statistics and device runtime"),
    ("-gpgpu_shmem_limited_broadcast", Some("0"), "every word is broadcast"),
    ("-gpgpu_shmem_per_block", None, "launches in traces fit"),
    ("-gpgpu_shmem_sizeDefault", None, "cache preference calls are not in traces"),
    ("-gpgpu_shmem_size_Pref", None, "cache preference calls are not in traces"),
    ("-gpgpu_shmem_warp_parts", Some("1"), "a warp is served as a whole"),
    ("-gpgpu_simd_model", None, "the trace's masks are used"),
    ("-gpgpu_stack_size_limit", None, "functional simulation"),
    ("-gpgpu_tensor_core_avail", None, "HMMA runs on specialised unit 3 in trace mode"),
    ("-gpgpu_tex_cache", None, "texture instructions take a fixed time"),
    ("-icnt_flit_size", None, "the built-in crossbar moves whole packets"),
    ("-icnt_subnets", None, "one crossbar per direction"),
    ("-inter_config_file", None, "network details of the external simulator"),
    ("-accelwattch", None, "power"),
    ("-aggregate_power_stats", None, "power"),
    ("-dvfs_enabled", None, "power"),
    ("-gpuwattch_xml_file", None, "power"),
    ("-hw_perf", None, "power"),
    ("-power_", None, "power"),
    ("-steady_", None, "power"),
    ("-ptx_opcode", None, "PTX mode; trace mode has its own figures"),
    ("-specialized_unit", None, "units are counted from their timing lines"),
    (
        "-trace_opcode_latency_initiation_tensor",
        None,
        "HMMA runs on specialised unit 3 in trace mode",
    ),
    ("-visualizer_enabled", None, "statistics"),
];

/// Why the model leaves out the option `key` with this `value`; `None` for an
/// option or a value that it does not know.
pub(super) fn reason(key: &str, value: &str) -> Option<&'static str> {
    let (_, only, reason) = row(key)?;
    only.is_none_or(|only| only == value).then_some(*reason)
}

/// The value of the option `key` that the model stands for, and why, where another one is not
/// modelled; `None` for an option that it does not know.
pub(super) fn modelled(key: &str) -> Option<(&'static str, &'static str)> {
    let (_, only, reason) = row(key)?;
    Some((only.as_ref()?, reason))
}

/// The options that are left out.
fn ignored_keys() -> impl Iterator<Item = &'static str> {
    IGNORED.iter().map(|row| row.0)
}

fn row(key: &str) -> Option<&'static (&'static str, Option<&'static str>, &'static str)> {
    let matching = IGNORED.iter().filter(|row| key.starts_with(row.0));
    matching.max_by_key(|row| row.0.len())
}

#[cfg(test)]
mod tests {
    use super::{Options, modelled, reason};

    fn read(text: &str) -> Options {
        Options::read(&[("a.config".to_owned(), text.to_owned())]).unwrap()
    }

    #[test]
    fn values_may_be_quoted_over_lines_and_commented() {
        let text = "# c\n-a 1 # one\n\n-b \"x=1:\n   y=2\"\n-c  S:4, L \r\n-flag\n-a 2";
        let mut options = read(text);
        assert_eq!(options.find("-a").unwrap().cite(), "a.config:8 -a 2");
        assert_eq!(options.find("-b").unwrap().cite(), "a.config:4 -b x=1: y=2");
        assert_eq!(options.find("-c").unwrap().value, "S:4, L");
        assert_eq!(options.unused().map(|e| e.key.as_str()).collect::<Vec<_>>(), ["-flag"]);
    }

    #[test]
    fn machine_files_cite_the_name_and_messages_the_path() {
        let files = [("w/a.config".to_owned(), "-a 1\n".to_owned())];
        let mut options = Options::read(&files).unwrap();
        let entry = options.find("-a").unwrap();
        assert_eq!(entry.cite(), "a.config:1 -a 1");
        assert_eq!(entry.cited_as_typed(), "w/a.config:1 -a 1");
        let mut old = read("-smem_latency 24\n-rop_latency 1\n-gpgpu_l2_rop_latency 2");
        assert_eq!(old.or("-gpgpu_smem_latency", "3").value, "24", "an earlier name");
        assert_eq!(old.or("-gpgpu_l2_rop_latency", "85").value, "2", "the present one first");
        assert!(entry.refuse("2").to_string().starts_with("w/a.config:1: `-a`"));
        assert_eq!(options.or("-b", "3").cite(), "GPGPU-Sim's default -b 3");
        let other = Options::read(&files).unwrap().check_used().unwrap_err().to_string();
        assert!(other.starts_with("w/a.config: no `-gpgpu_n_clusters`"), "{other}");
    }

    #[test]
    fn numbers_are_read_as_the_simulator_does() {
        let mut options = read("-a 0x10\n-b 010\n-c 0\n-d 12\n-e 08\n-f\n-g 1.5");
        let mut number = |key: &str| options.find(key).unwrap().number::<u32>().ok();
        let found = ["-a", "-b", "-c", "-d", "-e", "-g"].map(&mut number);
        assert_eq!(found, [Some(16), Some(8), Some(0), Some(12), Some(8), None]);
        assert!(options.find("-f").unwrap().flag().unwrap());
        let error = options.find("-d").unwrap().within(1..=8).unwrap_err().to_string();
        assert!(error.contains("expected a number from 1 to 8"), "{error}");
    }

    #[test]
    fn a_line_that_is_no_option_is_named() {
        let files = [("x".to_owned(), "-a 1\nfoo bar\n".to_owned())];
        let error = Options::read(&files).unwrap_err().to_string();
        assert!(error.starts_with("x:2:") && error.contains("`foo bar`"), "{error}");
    }

    #[test]
    fn an_option_is_left_out_only_at_the_value_that_the_model_stands_for() {
        assert_eq!(reason("-gpgpu_dram_scheduler", "1"), Some("FR-FCFS"));
        assert_eq!(reason("-gpgpu_dram_scheduler", "0"), None);
        assert_eq!(modelled("-gpgpu_dram_scheduler"), Some(("1", "FR-FCFS")));
        assert_eq!(modelled("-gpgpu_runtime_stat"), None);
        assert_eq!(reason("-gpgpu_runtime_stat", "500"), Some("statistics and device runtime"));
        assert_eq!(reason("-no_such_option", "1"), None);
    }
}
