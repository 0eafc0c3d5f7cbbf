//! A JSON text that arrives in pieces becomes events: what is known of its value so far, and nothing that could change.
//!
//! In: bytes in any chunking, also cut inside an escape, a surrogate pair, a number, a literal or a UTF-8 character.
//! Out: [`Event`]s, strings already unescaped, from a log that the caller empties when it looks.
//!
//! Laws: each byte is looked at once, and the same bytes leave the same state and the same events in any chunking; a string
//! is told as far as it is known (an unfinished escape or character and a high surrogate that is alone wait), a number or
//! literal only when it can no longer change; after an error nothing changes any more.  The grammar is that of [`JsonScan`],
//! which is the one of RFC 8259; lone surrogates and invalid UTF-8 in strings become U+FFFD.

use crate::error::{Error, ErrorKind};
use crate::json::scan::{JsonScan, State, Verdict};
use crate::json::{Carry, special};

/// Digits that an integer may have: CPython's own bound for reading one.
const MAX_INTEGER_DIGITS: usize = 4_300;

/// What became known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// An object began.
    Object,
    /// An array began.
    Array,
    /// The innermost object or array ended.
    End,
    /// The name of the member whose value comes next.
    Key(&'a str),
    /// A string value began.
    String,
    /// The string goes on.
    Text(&'a str),
    /// The string ended.
    StringEnd,
    /// An integer as it is written, of at most 4,300 digits.
    Integer(&'a str),
    /// A finite number written with a fraction or an exponent.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
}

/// An event whose text lies in the log's arena and ends there at the number given.
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

/// Events in the order in which they became known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    arena: String,
    records: Vec<LogRecord>,
}

impl Log {
    /// Whether nothing became known.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Forgets the events and keeps the room they took.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.records.clear();
    }

    /// The events, oldest first.  Neighbouring pieces of one string are one event.
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

    /// Notes that the string grew to the arena's end, if it did grow.
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

/// The text of the string that is being read, as far as it is no text yet.
#[derive(Clone, Debug, Default, PartialEq)]
struct PendingText {
    /// The first bytes of a UTF-8 character.
    character: Vec<u8>,
    /// The value of the hexadecimal digits read of an escape.
    unit: u16,
    /// A high surrogate.
    carry: Carry,
}

impl PendingText {
    /// What was held and will not be completed becomes U+FFFD.
    fn flush(&mut self, out: &mut String) {
        self.carry.flush(out);
        if !self.character.is_empty() {
            self.character.clear();
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }

    /// Appends bytes that need no unescaping; the beginning of a character at their end waits.
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
                // The byte begins something new and is looked at again.
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

/// Whether a character may begin with these bytes, and is none yet.
fn begins_character(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// The tokenizer.
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
    /// Bytes read.
    offset: usize,
    error: Option<Error>,
    held: PendingText,
    /// The member's name or the number that is being read.
    token: String,
    /// How much of the token is a number by itself.
    number: usize,
    log: Log,
}

impl PartialJson {
    /// A reader that refuses to nest deeper than `max_depth` objects and arrays.
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

    /// Reads on.  Cost is linear in the bytes; after an error they are only passed over.
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

    /// Takes the end of the text: a number that stands alone is complete now, an open value is an error.
    pub fn close(&mut self) {
        if self.error.is_some() || self.scan.state() == State::Done {
            return;
        }
        if self.scan.verdict() == Verdict::Complete {
            // White space ends a number just as the end of the text does.
            self.step(b' ', 0);
        } else {
            self.fail(ErrorKind::UnexpectedEnd, self.offset);
        }
    }

    /// Whether one whole value was read, and nothing wrong after it.
    pub fn complete(&self) -> bool {
        self.error.is_none() && self.scan.state() == State::Done
    }

    /// What is wrong with the text.
    pub fn error(&self) -> Option<Error> {
        self.error
    }

    /// Bytes that were fed.
    pub fn bytes(&self) -> usize {
        self.offset
    }

    /// Whether a string, number or literal has begun and not ended.
    pub fn in_scalar(&self) -> bool {
        in_number(self.scan.state())
            || matches!(self.scan.state(), State::Literal(..))
            || (in_string(self.scan.state()) && !self.scan.in_key())
    }

    /// The number that is being read, as far as it is a number by itself: more digits may change it.
    pub fn open_number(&self) -> Option<Event<'_>> {
        let text = self.token.get(..self.number)?;
        // Where an exponent or a fraction makes it too large for a double, what stands before is shown.
        let before = |record: &[char]| text.split(record).next().unwrap_or(text);
        number(text).or_else(|| number(before(&['e', 'E']))).or_else(|| number(before(&['.'])))
    }

    /// The events since the log was emptied.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Takes the log and leaves `empty` in its place.
    pub fn take_log(&mut self, empty: Log) -> Log {
        std::mem::replace(&mut self.log, empty)
    }

    /// Reads bytes of a string that are no escape and end no string.
    fn text(&mut self, bytes: &[u8]) {
        if self.scan.in_key() {
            self.held.push(bytes, &mut self.token);
        } else {
            let from = self.log.arena.len();
            self.held.push(bytes, &mut self.log.arena);
            self.log.grown(from);
        }
    }

    /// Reads one byte that may change the state.
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
        // A number that grows without end is shown as far as an integer may go.
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

    /// Reads a byte of an escape, or the quote that ends a string.
    fn in_string(&mut self, before: State, byte: u8, in_key: bool) {
        let from = self.log.arena.len();
        let out = if in_key { &mut self.token } else { &mut self.log.arena };
        let held = &mut self.held;
        match (before, byte) {
            (State::Text, b'"') => held.flush(out),
            // Whatever is escaped, the character before it is over.
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

    /// Moves the number that was read into the log; nothing for one that is too large.
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

/// Whether what was read of a number is a number.
fn can_end(state: State) -> bool {
    matches!(state, State::Zero | State::Digits | State::Fraction | State::ExponentDigits)
}

/// The number of this text; nothing for one that is too large.
fn number(text: &str) -> Option<Event<'_>> {
    if text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        return text.parse().ok().filter(|value: &f64| value.is_finite()).map(Event::Float);
    }
    let digits = text.strip_prefix('-').unwrap_or(text).len();
    (1..=MAX_INTEGER_DIGITS).contains(&digits).then_some(Event::Integer(text))
}

/// What is wrong with a byte that the scanner refused.
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
