//! The tokens of a template's frame: what may become a hole, and where a token of its kind ends.

use std::ops::Range;

use crate::json::{Str, number_end, string_end, value_end};

/// Nesting of an object in a frame that may become a template: that of log probabilities.
const MAX_LEVELS: u8 = 6;

/// The number of a token span of a template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Token(pub(super) u8);

/// The tokens of a frame that an event borrows, as they are found.
#[derive(Debug)]
pub struct Tokens<'a> {
    pub(super) frame: &'a str,
    /// How many more spans there are.
    pub(super) ignored: usize,
    pub(super) spans: Vec<TokenSpan>,
    /// Whether all of them were found.
    pub(super) fit: bool,
}

impl Tokens<'_> {
    /// The place of what is new in each event: nobody waits until two of them differ.
    pub fn changing(&mut self, text: Str<'_>) -> Token {
        // Numbered when the frame is cut.
        self.borrowed(text, Some(0))
    }

    /// The place of what mostly stays as it is.
    pub fn rarely_changing(&mut self, text: Str<'_>) -> Token {
        self.borrowed(text, None)
    }

    /// The place of an object that [`Protocol::read_object`](crate::dialect::protocol::Protocol::read_object) reads: it never stands
    /// for another.
    pub fn parsed_object(&mut self, object: &str) {
        self.borrowed(Str::plain(object), Some(0));
        match self.spans.last_mut() {
            Some(span) if let Kind::Object(levels) = span.kind => span.kind = Kind::Read(levels),
            _ => self.fit = false,
        }
    }

    fn borrowed(&mut self, text: Str<'_>, hole: Option<u8>) -> Token {
        let span = TokenSpan::borrowed(self.frame, text);
        self.fit &= span.is_some();
        let hole = hole.filter(|_| !text.is_empty());
        if self.spans.is_empty() {
            // Most frames are of no kind that comes again, and borrow nothing.
            self.spans.reserve_exact(self.ignored + 4);
        }
        self.spans.extend(span.map(|span| TokenSpan { hole, ..span }));
        Token(u8::try_from(self.spans.len().saturating_sub(1)).unwrap_or(u8::MAX))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text of a string that the event borrows: never empty.
    Borrowed,
    /// Text of a string that nobody looks at.
    Ignored,
    /// A number that nobody looks at.
    Number,
    /// An object that the event borrows as it stands, nested so deep at the most.
    Object(u8),
    /// An object that the protocol reads, nested so deep at the most.
    Read(u8),
    /// White space before the last brace.
    Space,
    /// What is no hole under any circumstances.
    Fixed,
}

/// A token of the template's frame.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TokenSpan {
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
    pub(super) escaped: bool,
    /// The number of the hole that it has become.
    pub(super) hole: Option<u8>,
}

impl TokenSpan {
    pub(super) fn ignored(frame: &str, token: &Range<usize>) -> Self {
        let text = frame.get(token.clone()).unwrap_or("");
        let (range, kind) = match text.as_bytes().first() {
            Some(b'"') => (token.start + 1..token.end - 1, Kind::Ignored),
            Some(b'-' | b'0'..=b'9') => (token.clone(), Kind::Number),
            _ => (token.clone(), Kind::Fixed),
        };
        Self { range, kind, escaped: false, hole: None }
    }

    /// A token of the event: a string's text may become a hole, of raw JSON only an object.
    fn borrowed(frame: &str, text: Str<'_>) -> Option<Self> {
        let start = (text.raw.as_ptr() as usize).checked_sub(frame.as_ptr() as usize)?;
        let range = start..start.checked_add(text.raw.len())?;
        if frame.get(range.clone())? != text.raw {
            return None;
        }
        let quoted = start > 0
            && frame.as_bytes().get(start - 1) == Some(&b'"')
            && frame.as_bytes().get(range.end) == Some(&b'"');
        let levels =
            |levels: &u8| value_end(text.raw.as_bytes(), 0, usize::from(*levels)).is_some();
        let kind = match text.raw.as_bytes().first() {
            _ if quoted => Kind::Borrowed,
            Some(b'{') => Kind::Object((1..=MAX_LEVELS).find(levels)?),
            _ => Kind::Fixed,
        };
        Some(Self { range, kind, escaped: text.escaped, hole: None })
    }
}

/// Framing would have found no end in it.
#[inline]
pub(super) fn is_one_line(text: &[u8]) -> bool {
    memchr::memchr2(b'\n', b'\r', text).is_none()
}

impl Kind {
    /// Where a token of this kind ends that begins at `at`, and whether it holds escapes.
    #[expect(clippy::inline_always, reason = "the loop around it is the hottest there is")]
    #[inline(always)]
    pub(super) fn end(self, frame: &[u8], at: usize) -> Option<(usize, bool)> {
        match self {
            Self::Borrowed => string_end(frame, at).ok().filter(|(end, _)| *end > at),
            Self::Ignored => string_end(frame, at).ok(),
            Self::Number => number_end(frame, at).ok().map(|end| (end, false)),
            Self::Object(levels) | Self::Read(levels) if frame.get(at) == Some(&b'{') => {
                let end = value_end(frame, at, usize::from(levels))?;
                is_one_line(frame.get(at..end)?).then_some((end, false))
            }
            Self::Space => {
                let spaces = frame.iter().skip(at).take_while(|byte| matches!(byte, b' ' | b'\t'));
                Some((at + spaces.count(), false))
            }
            Self::Object(_) | Self::Read(_) | Self::Fixed => None,
        }
    }
}
