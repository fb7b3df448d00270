//! Kernel names for readers: the plain name out of a mangled one.

/// The last plain name within a C++ name, mangled or not: `_Z6KernelP4Node`
/// gives `Kernel`, `_ZN2at6native4fill…` and `void at::native::fill<float>(int)`
/// give `fill`. Names cut short by the tracer are read as far as they go; what is
/// no such name stays as it is.
#[must_use]
pub fn plain_name(name: &str) -> String {
    mangled(name).or_else(|| written(name)).unwrap_or(name).to_string()
}

/// The name before template and call arguments, without return type and scopes.
fn written(name: &str) -> Option<&str> {
    let scoped = name.rsplit_once("(anonymous namespace)::").map_or(name, |(_, inner)| inner);
    let head = scoped.split(['<', '(']).next()?;
    let plain = head.rsplit("::").next()?.split_whitespace().next_back()?;
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | '-' | '~');
    plain.chars().all(word).then_some(plain)
}

fn mangled(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("_Z")?;
    let Some(mut nested) = rest.strip_prefix('N') else {
        return source_name(rest).map(|(word, _)| word);
    };
    nested = nested.trim_start_matches(['K', 'V', 'r']);
    nested = nested.strip_prefix("St").unwrap_or(nested);
    let mut last = None;
    while let Some((word, rest)) = source_name(nested) {
        last = Some(word);
        nested = rest;
    }
    last
}

/// A length and that many characters; what is left where the text ends early.
fn source_name(text: &str) -> Option<(&str, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let length: usize = text[..digits].parse().ok()?;
    let rest = &text[digits..];
    if length == 0 || rest.is_empty() {
        return None;
    }
    let cut = rest.char_indices().map(|(i, _)| i).find(|&i| i >= length).unwrap_or(rest.len());
    Some(rest.split_at(cut))
}

/// `name`, cut in the middle to `most` characters.
pub(crate) fn brief(name: &str, most: usize) -> String {
    let letters: Vec<char> = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    if letters.len() <= most {
        return letters.into_iter().collect();
    }
    let tail = most / 3;
    let head: String = letters[..most - tail - 1].iter().collect();
    let end: String = letters[letters.len() - tail..].iter().collect();
    format!("{head}…{end}")
}

#[cfg(test)]
mod tests {
    use super::plain_name;

    #[test]
    fn plain_names_come_out_of_mangled_ones() {
        let cases = [
            ("_Z6KernelP4NodePiPbS2_S2_S1_i", "Kernel"),
            ("_Z14gemvNSP_kernelIffffLi1ELi32E", "gemvNSP_kernel"),
            (
                "_ZN10flashinfer30SinglePrefillWithKVCacheKernelILNS_8MaskMod",
                "SinglePrefillWithKVCacheKernel",
            ),
            ("_ZN2at6native40_GLOBAL__N__4db7300b_8_Shape_cu_49f7391c26Cat", "Cat"),
            ("void at::native::k<int, a::b>(float&)", "k"),
            ("void (anonymous namespace)::k(int)", "k"),
            ("volta_sgemm_128x64_nn", "volta_sgemm_128x64_nn"),
            ("<lambda>", "<lambda>"),
            ("operator&&(int)", "operator&&(int)"),
            ("_Z", "_Z"),
            ("_Z9", "_Z9"),
            ("_Z99999999999999999999999x", "_Z99999999999999999999999x"),
            ("_ZN3äöüE", "äö"),
            ("", ""),
        ];
        for (mangled, plain) in cases {
            assert_eq!(plain_name(mangled), plain);
        }
    }
}
