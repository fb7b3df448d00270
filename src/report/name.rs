//! Kernel names for readers: the plain name out of a mangled one.

/// The last plain name within a mangled C++ name (`_Z6KernelP4Node` gives
/// `Kernel`, `_ZN2at6native4fill…` gives `fill`); any other name as it is.
/// Names cut short by the tracer are read as far as they go.
#[must_use]
pub fn plain_name(name: &str) -> String {
    mangled(name).unwrap_or(name).to_string()
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
            ("void k<int>(float&)", "void k<int>(float&)"),
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
