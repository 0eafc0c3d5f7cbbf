//! `JsonScan`: a scanner that classifies JSON text while it arrives.
//!
//! In: bytes in any chunking.  Out: a [`Verdict`] on the text so far, and the end of its value.
//!
//! Laws: each byte is read once, and a nesting level costs one byte of memory.  The emitter uses the verdict to find
//! arguments of tool calls that were cut off.  The decoder uses it to find the end of a JSON body.

/// Classification of the text read so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No text, or white space only.
    Empty,
    /// The text ends inside an object, array, string, literal or number.
    Open,
    /// One whole value, and at most white space after it.
    Complete,
    /// The text is not valid JSON.
    Wrong,
}

/// State of the scanner, named after the input that it expects or is inside of.
///
/// `PartialJson` derives its tokens from the transitions between two states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Value,
    FirstItem,
    FirstKey,
    Key,
    Colon,
    Comma,
    Done,
    Text,
    Escape,
    Hex(u8),
    Literal(&'static str, usize),
    Minus,
    Zero,
    Digits,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
    Wrong,
}

/// Scanner of one JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonScan {
    state: State,
    in_key: bool,
    seen: bool,
    /// Open brackets: `true` for an object, `false` for an array.
    open: Vec<bool>,
    deepest: usize,
}

impl Default for JsonScan {
    fn default() -> Self {
        Self { state: State::Value, in_key: false, seen: false, open: Vec::new(), deepest: 0 }
    }
}

impl JsonScan {
    /// Read the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.feed_until(bytes, false);
    }

    /// Read the next bytes up to the end of the value, and return the number of bytes that belong to it.
    pub fn feed_value(&mut self, bytes: &[u8]) -> usize {
        self.feed_until(bytes, true)
    }

    #[inline]
    fn feed_until(&mut self, bytes: &[u8], done: bool) -> usize {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match self.state {
                State::Done if done => return at,
                State::Wrong => return bytes.len(),
                State::Text => loop {
                    at = crate::json::special(bytes, at);
                    self.state = match bytes.get(at) {
                        None => return at,
                        Some(b'"') => {
                            let key = std::mem::take(&mut self.in_key);
                            if key { State::Colon } else { self.after_value() }
                        }
                        Some(b'\\') => match bytes.get(at + 1) {
                            // An escape of two bytes that is complete here does not change the state.
                            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                                at += 2;
                                continue;
                            }
                            _ => State::Escape,
                        },
                        Some(_) => State::Wrong,
                    };
                    break;
                },
                State::Digits | State::Fraction | State::ExponentDigits
                    if byte.is_ascii_digit() => {}
                _ => self.step(byte),
            }
            at += 1;
        }
        bytes.len()
    }

    /// Return the classification of the text read so far.
    #[inline]
    pub fn verdict(&self) -> Verdict {
        match self.state {
            State::Wrong => Verdict::Wrong,
            State::Done => Verdict::Complete,
            State::Zero | State::Digits | State::Fraction | State::ExponentDigits
                if self.open.is_empty() =>
            {
                Verdict::Complete
            }
            State::Value if !self.seen => Verdict::Empty,
            _ => Verdict::Open,
        }
    }

    /// Return the state of the scanner.
    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Return true inside the name of a member.
    pub(crate) fn in_key(&self) -> bool {
        self.in_key
    }

    /// Return the number of open objects and arrays.
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Return the greatest nesting depth so far.
    pub fn deepest(&self) -> usize {
        self.deepest
    }

    fn nest(&mut self, object: bool) {
        self.open.push(object);
        self.deepest = self.deepest.max(self.open.len());
    }

    fn after_value(&self) -> State {
        if self.open.is_empty() { State::Done } else { State::Comma }
    }

    fn close(&mut self, object: bool) -> State {
        if self.open.pop() == Some(object) { self.after_value() } else { State::Wrong }
    }

    fn value(&mut self, byte: u8) -> State {
        self.seen = true;
        match byte {
            b'{' => {
                self.nest(true);
                State::FirstKey
            }
            b'[' => {
                self.nest(false);
                State::FirstItem
            }
            b'"' => State::Text,
            b'-' => State::Minus,
            b'0' => State::Zero,
            b'1'..=b'9' => State::Digits,
            b't' => State::Literal("true", 1),
            b'f' => State::Literal("false", 1),
            b'n' => State::Literal("null", 1),
            _ => State::Wrong,
        }
    }

    fn key(&mut self, byte: u8) -> State {
        if byte == b'"' {
            self.in_key = true;
            State::Text
        } else {
            State::Wrong
        }
    }

    /// Return the state after a byte that follows a number.
    fn after_number(&mut self, byte: u8) -> State {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => self.after_value(),
            b',' | b']' | b'}' if !self.open.is_empty() => self.comma(byte),
            _ => State::Wrong,
        }
    }

    fn comma(&mut self, byte: u8) -> State {
        match (byte, self.open.last()) {
            (b',', Some(true)) => State::Key,
            (b',', Some(false)) => State::Value,
            (b'}', _) => self.close(true),
            (b']', _) => self.close(false),
            _ => State::Wrong,
        }
    }

    fn step(&mut self, byte: u8) {
        let blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.state = match self.state {
            State::Value
            | State::FirstItem
            | State::FirstKey
            | State::Key
            | State::Colon
            | State::Comma
            | State::Done
                if blank =>
            {
                return;
            }
            State::FirstItem if byte == b']' => self.close(false),
            State::Value | State::FirstItem => self.value(byte),
            State::FirstKey if byte == b'}' => self.close(true),
            State::FirstKey | State::Key => self.key(byte),
            State::Colon if byte == b':' => State::Value,
            State::Comma => self.comma(byte),
            State::Escape => match byte {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => State::Text,
                b'u' => State::Hex(0),
                _ => State::Wrong,
            },
            State::Hex(seen) if byte.is_ascii_hexdigit() => {
                if seen == 3 {
                    State::Text
                } else {
                    State::Hex(seen + 1)
                }
            }
            State::Literal(word, seen) if word.as_bytes().get(seen) == Some(&byte) => {
                if seen + 1 == word.len() {
                    self.after_value()
                } else {
                    State::Literal(word, seen + 1)
                }
            }
            State::Minus if byte == b'0' => State::Zero,
            State::Minus | State::Digits if byte.is_ascii_digit() => State::Digits,
            State::Zero | State::Digits if byte == b'.' => State::Point,
            State::Point | State::Fraction if byte.is_ascii_digit() => State::Fraction,
            State::Zero | State::Digits | State::Fraction if matches!(byte, b'e' | b'E') => {
                State::Exponent
            }
            State::Exponent if matches!(byte, b'+' | b'-') => State::ExponentSign,
            State::Exponent | State::ExponentSign | State::ExponentDigits
                if byte.is_ascii_digit() =>
            {
                State::ExponentDigits
            }
            State::Zero | State::Digits | State::Fraction | State::ExponentDigits => {
                self.after_number(byte)
            }
            _ => State::Wrong,
        };
    }
}
