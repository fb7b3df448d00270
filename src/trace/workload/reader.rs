//! A place in a line of text: what is ahead, and taking it.

/// Reads one line of text from left to right; blanks separate and are skipped.
pub(super) struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of `text`.
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text[self.at..].trim_start()
    }

    /// The place, to come back to with [`Reader::back_to`].
    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// Goes back to a place.
    pub(super) fn back_to(&mut self, place: usize) {
        self.at = place;
    }

    /// True when `symbol` comes next.
    pub(super) fn ahead(&self, symbol: &str) -> bool {
        self.rest().starts_with(symbol)
    }

    /// True when a character comes next that `test` accepts.
    pub(super) fn next_is(&self, test: impl Fn(char) -> bool) -> bool {
        self.rest().chars().next().is_some_and(test)
    }

    /// Takes `symbol` if it comes next.
    pub(super) fn take(&mut self, symbol: &str) -> bool {
        let found = self.ahead(symbol);
        if found {
            self.at = self.text.len() - self.rest().len() + symbol.len();
        }
        found
    }

    /// Takes `symbol`, which must come next.
    pub(super) fn expect(&mut self, symbol: &str) -> Result<(), String> {
        if self.take(symbol) { Ok(()) } else { Err(self.surprise(&format!("`{symbol}`"))) }
    }

    /// Checks that nothing is left.
    pub(super) fn end(&self) -> Result<(), String> {
        if self.rest().is_empty() { Ok(()) } else { Err(self.surprise("the end")) }
    }

    /// Takes the characters that `test` accepts; none is an empty text.
    pub(super) fn word(&mut self, test: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !test(c)).unwrap_or(rest.len());
        self.at = self.text.len() - rest.len() + length;
        &rest[..length]
    }

    /// Takes a name: a letter or `_`, then letters, digits and `_`.
    pub(super) fn name(&mut self) -> Result<String, String> {
        if !self.next_is(|c| c.is_ascii_alphabetic() || c == '_') {
            return Err(self.surprise("a name or a number"));
        }
        Ok(self.word(|c| c.is_ascii_alphanumeric() || c == '_').to_owned())
    }

    /// Takes a decimal or `0x` number; `_` may group its digits.
    pub(super) fn number(&mut self) -> Result<i64, String> {
        let word = self.word(|c| c.is_ascii_alphanumeric() || c == '_');
        let digits = word.replace('_', "");
        let value = match digits.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        value.map_err(|e| format!("`{word}` is no number: {e}"))
    }

    /// The message for something else than `expected`.
    pub(super) fn surprise(&self, expected: &str) -> String {
        match self.rest() {
            "" => format!("the text ends where {expected} was expected"),
            rest => format!("`{rest}` where {expected} was expected"),
        }
    }
}
