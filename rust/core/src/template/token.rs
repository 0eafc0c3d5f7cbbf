//! The tokens of a template's frame: their kinds, which may become holes, and the ends of tokens of each kind.

use std::ops::Range;

use crate::json::{Str, digit_count, number_end, string_end, value_end};

/// Maximum number of tokens of a frame that may become holes; a frame with more gets no template.
pub(super) const MAX_TOKENS: usize = 48;

/// Maximum nesting of an object that the protocol reads: the nesting of log probabilities.
const MAX_LEVELS: u8 = 6;

/// Maximum number of digits of a whole number that an event reads.
const MAX_DIGITS: usize = 16;

/// The number of a token span of a template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Token(pub(super) u8);

/// The tokens of a frame that an event borrows, as they are found.
#[derive(Debug)]
pub struct Tokens<'a> {
    pub(super) frame: &'a str,
    /// Number of the other spans.
    pub(super) ignored: usize,
    pub(super) spans: Vec<TokenSpan>,
    /// True while each token was found in the frame.
    pub(super) fit: bool,
}

impl Tokens<'_> {
    /// Register a text that changes in each event.  It is a hole from the first frame on.
    pub fn changing(&mut self, text: Str<'_>) -> Token {
        self.borrowed(text, true)
    }

    /// Register a text that rarely changes.  It becomes a hole once two frames differ in it.
    pub fn rarely_changing(&mut self, text: Str<'_>) -> Token {
        self.borrowed(text, false)
    }

    /// Register a whole number that changes in each event.  Templates accept it with few digits and without a sign.
    pub fn changing_count(&mut self, digits: &str) -> Token {
        let token = self.borrowed(Str::plain(digits), true);
        if let Some(span) = self.spans.last_mut() {
            span.kind = Kind::Count;
        }
        token
    }

    /// Register an object that [`EventHandler::read_object`](super::EventHandler::read_object) reads in each event.
    pub fn parsed_object(&mut self, object: &str) -> Token {
        self.object(object, true)
    }

    /// Register an object as [`Self::parsed_object`] does that rarely changes.
    ///
    /// It becomes a hole, whose text is empty, once two frames differ in it.  Until then its text is the object.
    pub fn rarely_changing_object(&mut self, object: &str) -> Token {
        self.object(object, false)
    }

    /// Register a JSON value that the event borrows as it is.  An object becomes a hole once two frames differ in it.
    pub fn raw(&mut self, json: &str) -> Token {
        let token = self.borrowed(Str::plain(json), false);
        if let (Some(span), Some(levels)) = (self.spans.last_mut(), levels_of(json))
            && json.starts_with('{')
        {
            span.kind = Kind::Object(levels);
        }
        token
    }

    /// Register a list that the event borrows as raw JSON and that changes in each event.
    pub fn changing_list(&mut self, list: &str) -> Token {
        let token = self.borrowed(Str::plain(list), true);
        match (self.spans.last_mut(), levels_of(list)) {
            (Some(span), Some(levels)) if list.starts_with('[') => span.kind = Kind::List(levels),
            _ => self.fit = false,
        }
        token
    }

    fn object(&mut self, object: &str, changes: bool) -> Token {
        let token = self.borrowed(Str::plain(object), changes);
        match (self.spans.last_mut(), levels_of(object)) {
            (Some(span), Some(levels)) => span.kind = Kind::Read(levels),
            _ => self.fit = false,
        }
        token
    }

    fn borrowed(&mut self, text: Str<'_>, changes: bool) -> Token {
        let span = TokenSpan::borrowed(self.frame, text);
        self.fit &= span.is_some();
        let changes = changes && !text.is_empty();
        // Numbered when the frame is cut.
        let hole = changes.then_some(0);
        if self.spans.is_empty() {
            // Most frames are of kinds that do not repeat, and borrow nothing.
            self.spans.reserve_exact(self.ignored + 4);
        }
        self.spans.extend(span.map(|span| TokenSpan { changes, hole, ..span }));
        Token(u8::try_from(self.spans.len().saturating_sub(1)).unwrap_or(u8::MAX))
    }
}

/// Return the nesting of an object or a list, at least one; `None` for deeper ones than a template takes.
fn levels_of(json: &str) -> Option<u8> {
    let fits = |levels: &u8| value_end(json.as_bytes(), 0, usize::from(*levels)).is_some();
    (1..=MAX_LEVELS).find(fits)
}

/// Return the number of digits of the whole number at the start of `text`.
#[inline]
pub(super) fn count_digits(text: &[u8]) -> Option<usize> {
    let digits = digit_count(text);
    let leading_zero = digits > 1 && text.first() == Some(&b'0');
    (digits > 0 && !leading_zero).then_some(digits)
}

#[inline]
fn short_count_digits(text: &[u8]) -> Option<usize> {
    count_digits(text).filter(|digits| *digits <= MAX_DIGITS)
}

/// Return true if `text` is a whole number that [`Tokens::changing_count`] takes.
pub fn is_short_count(text: &str) -> bool {
    short_count_digits(text.as_bytes()) == Some(text.len())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text of a string that the event borrows: never empty.
    Borrowed,
    /// Text of a string that the event ignores.
    Ignored,
    /// A number that the event ignores.
    Number,
    /// A whole number with few digits and without a sign.
    Count,
    /// An object that the event borrows as raw JSON, with the maximum of its nesting.
    Object(u8),
    /// A list that the event borrows as raw JSON, with the maximum of its nesting.
    List(u8),
    /// An object that the protocol reads, with the maximum of its nesting.
    Read(u8),
    /// White space before the last brace.
    Space,
    /// A token that never becomes a hole.
    Fixed,
}

/// A token of the template's frame.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TokenSpan {
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
    pub(super) escaped: bool,
    /// True for a token that is a hole from the first frame on.
    pub(super) changes: bool,
    /// The number of its hole.
    pub(super) hole: Option<u8>,
}

impl TokenSpan {
    /// Return true if the token becomes a hole of a frame that streams share.
    pub(super) fn opens(&self) -> bool {
        match self.kind {
            Kind::Fixed => false,
            // An empty string is read in another way.
            Kind::Borrowed => !self.range.is_empty(),
            _ => true,
        }
    }

    pub(super) fn ignored(frame: &str, token: &Range<usize>) -> Self {
        let text = frame.get(token.clone()).unwrap_or("");
        let (range, kind) = match text.as_bytes().first() {
            Some(b'"') => (token.start + 1..token.end - 1, Kind::Ignored),
            Some(b'-' | b'0'..=b'9') => (token.clone(), Kind::Number),
            _ => (token.clone(), Kind::Fixed),
        };
        Self { range, kind, escaped: false, changes: false, hole: None }
    }

    /// Build the span of a token that the event borrows.  Strings may become holes, other JSON may not.
    fn borrowed(frame: &str, text: Str<'_>) -> Option<Self> {
        let start = (text.raw.as_ptr() as usize).checked_sub(frame.as_ptr() as usize)?;
        let range = start..start.checked_add(text.raw.len())?;
        if frame.get(range.clone())? != text.raw {
            return None;
        }
        let quoted = start > 0
            && frame.as_bytes().get(start - 1) == Some(&b'"')
            && frame.as_bytes().get(range.end) == Some(&b'"');
        let kind = if quoted { Kind::Borrowed } else { Kind::Fixed };
        Some(Self { range, kind, escaped: text.escaped, changes: false, hole: None })
    }
}

/// Return true if a framer would find no line end in `text`.
#[inline]
pub fn is_one_line(text: &[u8]) -> bool {
    memchr::memchr2(b'\n', b'\r', text).is_none()
}

/// Return the end of an object or a list on one line; it has no escapes of its own.
///
/// No byte behind the line is read, so that a value without an end costs no more than its line.
fn container_end(frame: &[u8], at: usize, levels: u8) -> Option<(usize, bool)> {
    let value = frame.get(at..)?;
    let line = value.get(..memchr::memchr2(b'\n', b'\r', value).unwrap_or(value.len()))?;
    Some((at + value_end(line, 0, usize::from(levels))?, false))
}

impl Kind {
    /// Return the end of a token of this kind at `at`, and whether it has escapes.
    #[expect(clippy::inline_always, reason = "the hottest loop calls this")]
    #[inline(always)]
    pub(super) fn end(self, frame: &[u8], at: usize) -> Option<(usize, bool)> {
        match self {
            Self::Borrowed => string_end(frame, at).ok().filter(|(end, _)| *end > at),
            Self::Ignored => string_end(frame, at).ok(),
            Self::Number => number_end(frame, at).ok().map(|end| (end, false)),
            Self::Count => Some((at + short_count_digits(frame.get(at..)?)?, false)),
            Self::Object(levels) | Self::Read(levels) if frame.get(at) == Some(&b'{') => {
                container_end(frame, at, levels)
            }
            Self::List(levels) if frame.get(at) == Some(&b'[') => container_end(frame, at, levels),
            Self::Space => {
                let spaces = frame.iter().skip(at).take_while(|byte| matches!(byte, b' ' | b'\t'));
                Some((at + spaces.count(), false))
            }
            Self::Object(_) | Self::List(_) | Self::Read(_) | Self::Fixed => None,
        }
    }
}
