//! `PartialJson`: a tokenizer for JSON text that arrives in chunks.
//!
//! In: bytes in any chunking, which may cut an escape, a surrogate pair, a number, a literal or a UTF-8 character.  Out:
//! [`Event`]s with unescaped strings, in a log that the caller empties.
//!
//! Laws:
//! - Each byte is read once.  The same bytes give the same state and the same events in any chunking.
//! - Events are final.  Text of a string is emitted as soon as it is certain; an unfinished escape or character and an
//!   unpaired high surrogate wait.  A number or a literal is emitted when it can no longer change.
//! - After an error the state does not change any more.
//!
//! Source: RFC 8259, in the grammar of [`JsonScan`].  Lone surrogates and invalid UTF-8 in strings become U+FFFD.

use crate::json::scan::{JsonScan, State, Verdict};
use crate::json::{Carry, Error, ErrorKind, special};

/// Maximum number of digits of an integer; the default bound of CPython.
const MAX_INTEGER_DIGITS: usize = 4_300;

/// Token or piece of a token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// An object began.
    Object,
    /// An array began.
    Array,
    /// The innermost object or array ended.
    End,
    /// Name of the member whose value follows.
    Key(&'a str),
    /// A string value began.
    String,
    /// More text of the string.
    Text(&'a str),
    /// The string ended.
    StringEnd,
    /// Integer as written, of at most 4,300 digits.
    Integer(&'a str),
    /// Finite number with a fraction or an exponent.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
}

/// Event in the log.  Its text lies in the arena and ends at the given offset.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LogRecord {
    Object,
    Array,
    End,
    Key(usize),
    String,
    Text(usize),
    StringEnd,
    Integer(usize),
    Float(f64),
    Bool(bool),
    Null,
}

/// Events in the order of the text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    arena: String,
    records: Vec<LogRecord>,
}

impl Log {
    /// Return true if the log holds no event.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Drop the events and keep the capacity of the log.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.records.clear();
    }

    /// Return the events, oldest first.  Adjacent pieces of one string are one event.
    pub fn events(&self) -> impl Iterator<Item = Event<'_>> {
        let mut from = 0;
        self.records.iter().map(move |record| {
            let mut text = |end: usize| {
                let text = self.arena.get(from..end).unwrap_or("");
                from = end;
                text
            };
            match *record {
                LogRecord::Object => Event::Object,
                LogRecord::Array => Event::Array,
                LogRecord::End => Event::End,
                LogRecord::Key(end) => Event::Key(text(end)),
                LogRecord::String => Event::String,
                LogRecord::Text(end) => Event::Text(text(end)),
                LogRecord::StringEnd => Event::StringEnd,
                LogRecord::Integer(end) => Event::Integer(text(end)),
                LogRecord::Float(number) => Event::Float(number),
                LogRecord::Bool(truth) => Event::Bool(truth),
                LogRecord::Null => Event::Null,
            }
        })
    }

    fn record(&mut self, record: LogRecord) {
        self.records.push(record);
    }

    /// Record the text between `from` and the end of the arena as more text of the string, if there is any.
    fn grown(&mut self, from: usize) {
        let end = self.arena.len();
        if end == from {
            return;
        }
        if let Some(LogRecord::Text(known)) = self.records.last_mut() {
            *known = end;
        } else {
            self.records.push(LogRecord::Text(end));
        }
    }
}

/// State of a string between two chunks: bytes that do not form text yet.
#[derive(Clone, Debug, Default, PartialEq)]
struct PendingText {
    /// First bytes of a UTF-8 character.
    character: Vec<u8>,
    /// Value of the hexadecimal digits of an escape that were read so far.
    unit: u16,
    /// High surrogate that waits for its low surrogate.
    carry: Carry,
}

impl PendingText {
    /// Write U+FFFD for a surrogate or character that will not be completed.
    fn flush(&mut self, out: &mut String) {
        self.carry.flush(out);
        if !self.character.is_empty() {
            self.character.clear();
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }

    /// Append bytes that hold no escape.  An unfinished character at their end is kept for the next call.
    fn push(&mut self, bytes: &[u8], out: &mut String) {
        if bytes.is_empty() {
            return;
        }
        self.carry.flush(out);
        let mut rest = bytes;
        while !self.character.is_empty() {
            let Some((byte, tail)) = rest.split_first() else {
                return;
            };
            self.character.push(*byte);
            if begins_character(&self.character) {
                rest = tail;
                continue;
            }
            if let Ok(text) = std::str::from_utf8(&self.character) {
                out.push_str(text);
                rest = tail;
            } else {
                // The byte begins a new character and is read again.
                out.push(char::REPLACEMENT_CHARACTER);
            }
            self.character.clear();
        }
        let mut chunks = rest.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            out.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if chunks.peek().is_none() && begins_character(invalid) {
                self.character.extend_from_slice(invalid);
            } else if !invalid.is_empty() {
                out.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }
}

/// Return true if `bytes` are the beginning of a UTF-8 character, but not all of it.
fn begins_character(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Tokenizer of one JSON text that arrives in chunks.
///
/// # Example
/// ```
/// use deltafold::fold::partial_json::{Event, PartialJson};
/// let mut json = PartialJson::new(128);
/// json.feed(br#"{"city":"Par"#);
/// let known: Vec<_> = json.log().events().collect();
/// assert_eq!(known, [Event::Object, Event::Key("city"), Event::String, Event::Text("Par")]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PartialJson {
    scan: JsonScan,
    max_depth: usize,
    /// Number of bytes that were fed.
    offset: usize,
    error: Option<Error>,
    held: PendingText,
    /// Text of the member name or number under construction.
    token: String,
    /// Length of the longest prefix of `token` that is a valid number.
    number: usize,
    log: Log,
}

impl PartialJson {
    /// Build a tokenizer that rejects nesting deeper than `max_depth`.
    pub fn new(max_depth: usize) -> Self {
        Self {
            scan: JsonScan::default(),
            max_depth,
            offset: 0,
            error: None,
            held: PendingText::default(),
            token: String::new(),
            number: 0,
            log: Log::default(),
        }
    }

    /// Read the next bytes.  The cost is linear in their number.  After an error they are only counted.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while self.error.is_none() && at < bytes.len() {
            if self.scan.state() == State::Text {
                let end = special(bytes, at);
                self.text(bytes.get(at..end).unwrap_or_default());
                at = end;
            }
            if let Some(byte) = bytes.get(at) {
                self.step(*byte, at);
                at += 1;
            }
        }
        self.offset += bytes.len();
    }

    /// Take the end of the text.  A number at the top level is complete now; an unfinished value is an error.
    pub fn close(&mut self) {
        if self.error.is_some() || self.scan.state() == State::Done {
            return;
        }
        if self.scan.verdict() == Verdict::Complete {
            // White space ends a number in the same way as the end of the text.
            self.step(b' ', 0);
        } else {
            self.fail(ErrorKind::UnexpectedEnd, self.offset);
        }
    }

    /// Return true after one whole value without an error.
    pub fn complete(&self) -> bool {
        self.error.is_none() && self.scan.state() == State::Done
    }

    /// Return the defect of the text, if it has one.
    pub fn error(&self) -> Option<Error> {
        self.error
    }

    /// Return the number of bytes that were fed.
    pub fn bytes(&self) -> usize {
        self.offset
    }

    /// Return true inside a string value, number or literal.
    pub fn in_scalar(&self) -> bool {
        in_number(self.scan.state())
            || matches!(self.scan.state(), State::Literal(..))
            || (in_string(self.scan.state()) && !self.scan.in_key())
    }

    /// Return the number under construction, as far as it is a valid number.  More digits may change it.
    pub fn open_number(&self) -> Option<Event<'_>> {
        let text = self.token.get(..self.number)?;
        // If an exponent or a fraction exceeds the range of a double, the part of the number before it is returned.
        let before = |record: &[char]| text.split(record).next().unwrap_or(text);
        number(text).or_else(|| number(before(&['e', 'E']))).or_else(|| number(before(&['.'])))
    }

    /// Return the events since the log was last emptied.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Return the log and put `empty` in its place.
    pub fn take_log(&mut self, empty: Log) -> Log {
        std::mem::replace(&mut self.log, empty)
    }

    /// Read bytes of a string before the next escape or quote.
    fn text(&mut self, bytes: &[u8]) {
        if self.scan.in_key() {
            self.held.push(bytes, &mut self.token);
        } else {
            let from = self.log.arena.len();
            self.held.push(bytes, &mut self.log.arena);
            self.log.grown(from);
        }
    }

    /// Read one byte that may change the state of the scanner.
    fn step(&mut self, byte: u8, at: usize) {
        let (before, depth, in_key) = (self.scan.state(), self.scan.depth(), self.scan.in_key());
        self.scan.feed(&[byte]);
        let after = self.scan.state();
        if after == State::Wrong {
            return self.fail(defect(before, byte, depth), self.offset + at);
        }
        if self.scan.depth() > self.max_depth {
            return self.fail(ErrorKind::TooDeep, self.offset + at);
        }
        match before {
            State::Text | State::Escape | State::Hex(_) => self.in_string(before, byte, in_key),
            State::Literal(word, _) if !matches!(after, State::Literal(..)) => {
                self.log.record(if word == "null" {
                    LogRecord::Null
                } else {
                    LogRecord::Bool(word == "true")
                });
            }
            _ if in_number(after) => self.token.push(char::from(byte)),
            _ if in_number(before) => {
                let Some(record) = self.number_mark() else {
                    return self
                        .fail(ErrorKind::NumberTooLarge, self.offset + at - self.token.len());
                };
                self.log.record(record);
                self.token.clear();
                self.number = 0;
            }
            _ => {}
        }
        // A number without end is shown only up to the maximum length of an integer.
        if can_end(after) && self.token.len() <= MAX_INTEGER_DIGITS {
            self.number = self.token.len();
        }
        match after {
            State::FirstKey if byte == b'{' => self.log.record(LogRecord::Object),
            State::FirstItem if byte == b'[' => self.log.record(LogRecord::Array),
            State::Text if !in_string(before) && !self.scan.in_key() => {
                self.log.record(LogRecord::String);
            }
            _ if self.scan.depth() < depth => self.log.record(LogRecord::End),
            _ => {}
        }
    }

    /// Read a byte of an escape, or the closing quote.
    fn in_string(&mut self, before: State, byte: u8, in_key: bool) {
        let from = self.log.arena.len();
        let out = if in_key { &mut self.token } else { &mut self.log.arena };
        let held = &mut self.held;
        match (before, byte) {
            (State::Text, b'"') => held.flush(out),
            // A backslash ends an unfinished UTF-8 character.  A pending surrogate stays, because the escape may complete
            // the pair.
            (State::Text, _) if held.character.is_empty() => {}
            (State::Text, _) => held.flush(out),
            (State::Hex(seen), digit) => {
                let digit =
                    char::from(digit).to_digit(16).and_then(|digit| u16::try_from(digit).ok());
                held.unit = (held.unit << 4) | digit.unwrap_or(0);
                if seen == 3 {
                    held.carry.unit(std::mem::take(&mut held.unit), out);
                }
            }
            (_, b'u') => {}
            (_, letter) => {
                held.flush(out);
                out.push(match letter {
                    b'n' => '\n',
                    b't' => '\t',
                    b'r' => '\r',
                    b'b' => '\u{8}',
                    b'f' => '\u{c}',
                    other => char::from(other),
                });
            }
        }
        if in_key {
            if (before, byte) == (State::Text, b'"') {
                self.log.arena.push_str(&self.token);
                self.token.clear();
                self.log.record(LogRecord::Key(self.log.arena.len()));
            }
            return;
        }
        self.log.grown(from);
        if (before, byte) == (State::Text, b'"') {
            self.log.record(LogRecord::StringEnd);
        }
    }

    /// Build the log record of the number that was read; `None` if the number is too large.
    fn number_mark(&mut self) -> Option<LogRecord> {
        if let Event::Float(value) = number(&self.token)? {
            return Some(LogRecord::Float(value));
        }
        self.log.arena.push_str(&self.token);
        Some(LogRecord::Integer(self.log.arena.len()))
    }

    #[cold]
    fn fail(&mut self, kind: ErrorKind, offset: usize) {
        self.error = Some(Error { kind, offset });
    }
}

fn in_string(state: State) -> bool {
    matches!(state, State::Text | State::Escape | State::Hex(_))
}

fn in_number(state: State) -> bool {
    can_end(state)
        || matches!(state, State::Minus | State::Point | State::Exponent | State::ExponentSign)
}

/// Return true if a number may end in this state.
fn can_end(state: State) -> bool {
    matches!(state, State::Zero | State::Digits | State::Fraction | State::ExponentDigits)
}

/// Return the event of a number; `None` if the number is too large.
fn number(text: &str) -> Option<Event<'_>> {
    if text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        return text.parse().ok().filter(|value: &f64| value.is_finite()).map(Event::Float);
    }
    let digits = text.strip_prefix('-').unwrap_or(text).len();
    (1..=MAX_INTEGER_DIGITS).contains(&digits).then_some(Event::Integer(text))
}

/// Return the kind of the defect that made the scanner reject `byte`.
fn defect(before: State, byte: u8, depth: usize) -> ErrorKind {
    match before {
        State::Text => ErrorKind::ControlCharacter,
        State::Escape | State::Hex(_) => ErrorKind::InvalidEscape,
        State::Minus | State::Point | State::Exponent | State::ExponentSign => {
            ErrorKind::InvalidNumber
        }
        State::Zero if byte.is_ascii_digit() => ErrorKind::InvalidNumber,
        State::Done => ErrorKind::TrailingBytes,
        _ if can_end(before) && depth == 0 => ErrorKind::TrailingBytes,
        _ => ErrorKind::UnexpectedByte,
    }
}
