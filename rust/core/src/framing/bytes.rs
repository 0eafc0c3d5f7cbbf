//! Bytes with cached UTF-8 validation.
//!
//! In: a feed.  Out: pieces of it as text.
//!
//! Laws:
//! - The bytes of a long feed are validated once, not once for each frame and again for each string.
//! - A short feed is not validated as a whole.  It is one frame or less, and only the strings that are read need to be text.

use std::ops::Range;

/// Minimum length of a feed that is validated as a whole.
const LONG: usize = 512;

/// Bytes, validated or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes<'a> {
    /// Valid UTF-8.
    Valid(&'a str),
    /// Bytes without validation.
    Unchecked(&'a [u8]),
}

impl<'a> Bytes<'a> {
    /// Return the bytes.
    #[inline]
    pub fn as_bytes(self) -> &'a [u8] {
        match self {
            Self::Valid(text) => text.as_bytes(),
            Self::Unchecked(bytes) => bytes,
        }
    }

    /// Return true without a byte.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.as_bytes().is_empty()
    }

    /// Return a range of the bytes as text, if it is valid UTF-8.
    #[inline]
    pub fn text(self, range: Range<usize>) -> Option<&'a str> {
        match self {
            Self::Valid(text) => text.get(range),
            Self::Unchecked(bytes) => std::str::from_utf8(bytes.get(range)?).ok(),
        }
    }

    /// Return all bytes as text, if they are valid UTF-8.
    #[inline]
    pub fn whole_text(self) -> Option<&'a str> {
        match self {
            Self::Valid(text) => Some(text),
            Self::Unchecked(bytes) => simdutf8::basic::from_utf8(bytes).ok(),
        }
    }

    /// Return the text from `start` on, if it is valid UTF-8.  It reaches at least to the end of the line.
    #[inline]
    pub fn line(self, start: usize) -> Option<&'a str> {
        match self {
            Self::Valid(text) => text.get(start..),
            Self::Unchecked(bytes) => {
                let rest = bytes.get(start..)?;
                let end = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
                std::str::from_utf8(rest.get(..end)?).ok()
            }
        }
    }

    /// Return the bytes from `start` on.
    #[inline]
    pub fn after(self, start: usize) -> Option<Self> {
        match self {
            Self::Valid(text) => text.get(start..).map(Self::Valid),
            Self::Unchecked(bytes) => bytes.get(start..).map(Self::Unchecked),
        }
    }
}

/// The bytes of a feed.
#[derive(Clone, Copy, Debug)]
pub struct Feed<'a> {
    bytes: &'a [u8],
    /// Cached valid UTF-8 prefix of the feed.  `None` before the first request.
    text: Option<&'a str>,
}

impl<'a> Feed<'a> {
    /// Build a feed without validation.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, text: None }
    }

    /// Return `bytes` as valid text if the cache shows that they are.  They may be a piece of the feed.
    #[inline]
    pub fn known<'b>(&mut self, bytes: &'b [u8]) -> Bytes<'b>
    where
        'a: 'b,
    {
        match self.beginning(bytes) {
            Bytes::Valid(text) if text.len() < bytes.len() => Bytes::Unchecked(bytes),
            known => known,
        }
    }

    /// Return the longest beginning of `bytes` that the cache shows to be valid, or all of them unchecked.
    #[inline]
    pub fn beginning<'b>(&mut self, bytes: &'b [u8]) -> Bytes<'b>
    where
        'a: 'b,
    {
        let known = if self.bytes.len() < LONG { None } else { self.text_at(bytes) };
        known.map_or(Bytes::Unchecked(bytes), Bytes::Valid)
    }

    #[inline]
    fn text_at(&mut self, bytes: &[u8]) -> Option<&'a str> {
        let start = (bytes.as_ptr() as usize).checked_sub(self.bytes.as_ptr() as usize)?;
        let end = start.checked_add(bytes.len()).filter(|end| *end <= self.bytes.len())?;
        let text = *self.text.get_or_insert_with(|| valid(self.bytes));
        text.get(start..end.min(text.len()))
    }
}

/// Return the valid UTF-8 prefix of a feed.  A character that is cut at the end is not part of it.
fn valid(feed: &[u8]) -> &str {
    let is_begun = |bytes: &&[u8]| match bytes.first() {
        Some(0xC0..=0xDF) => bytes.len() < 2,
        Some(0xE0..=0xEF) => bytes.len() < 3,
        Some(0xF0..) => bytes.len() < 4,
        _ => false,
    };
    let last = (1..=3).filter_map(|length| feed.get(feed.len().checked_sub(length)?..));
    let cut = last.filter(is_begun).map(<[u8]>::len).max().unwrap_or(0);
    let whole = feed.get(..feed.len() - cut).unwrap_or_default();
    simdutf8::compat::from_utf8(whole).unwrap_or_else(|error| {
        let valid = whole.get(..error.valid_up_to()).unwrap_or_default();
        std::str::from_utf8(valid).unwrap_or("")
    })
}
