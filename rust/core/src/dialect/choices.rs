//! Numbers of the answers of a stream with several.
//!
//! In: the `index` of an answer, as the wire has it or leaves it out.  Out: its number, if the caller follows it.
//!
//! Law: the number depends on the list of the frame alone.

use crate::json::Str;
use crate::template::{Token, Tokens, is_short_count};

/// The number of no answer.  What all answers have in common is decoded under it.
pub const NO_CHOICE: u64 = u64::MAX;

/// The answers of a stream that are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// The answer with this number.
    One(u64),
    /// Every answer, up to this number of answers.
    All(usize),
    /// Every answer, as a piece of the one with this number.
    Joined(u64),
}

impl Followed {
    /// Return true if the answer with this number is followed.
    pub(super) fn holds(self, number: u64) -> bool {
        match self {
            Self::One(followed) => followed == number,
            Self::All(_) | Self::Joined(_) => true,
        }
    }
}

/// The number of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Number<'a> {
    /// Its value.
    pub(super) value: u64,
    /// Its digits in the frame, if a template may read another number in their place; else empty.
    digits: &'a str,
}

/// Numbers of the answers in one list.
#[derive(Debug, Default)]
pub(super) struct ChoiceNumbers {
    position: u64,
    last: u64,
    zero_is_taken: bool,
    highest: Option<u64>,
    /// Count of the numbers that were higher than all before them.
    rises: usize,
}

impl ChoiceNumbers {
    /// Return the number of the last answer, followed or not.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Return the number of the next answer; `None` if it is not followed.  `given` is its `index`, and `raw` the JSON of
    /// that.
    ///
    /// Servers may leave number 0 out.  If another answer of the list has it, an answer without a number has its position.
    ///
    /// Of a list that holds more answers than may be followed, only the first ones above that bound are returned: they end
    /// the stream, so that the others would only take memory.
    pub(super) fn next<'a>(
        &mut self,
        given: Option<u64>,
        raw: &'a str,
        followed: Followed,
    ) -> Option<Number<'a>> {
        let implied = if self.zero_is_taken { self.position } else { 0 };
        let value = given.unwrap_or(implied).min(NO_CHOICE - 1);
        self.last = value;
        self.zero_is_taken |= value == 0;
        self.position = self.position.saturating_add(1);
        let most = match followed {
            Followed::One(_) => {
                return followed.holds(value).then_some(Number { value, digits: "" });
            }
            Followed::Joined(value) => return Some(Number { value, digits: "" }),
            Followed::All(most) => most,
        };
        if self.highest.is_none_or(|highest| value > highest) {
            self.highest = Some(value);
            self.rises = self.rises.saturating_add(1);
        }
        let digits = if is_short_count(raw) { raw } else { "" };
        (self.rises <= most.saturating_add(1)).then_some(Number { value, digits })
    }
}

/// The number of the answer in a template: the same in each event, or read from the event.  A template has no room for a
/// larger one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TemplateNumber {
    Same(u32),
    Read(Token),
}

impl TemplateNumber {
    pub(super) fn new(number: Number<'_>, tokens: &mut Tokens<'_>) -> Option<Self> {
        if number.digits.is_empty() {
            u32::try_from(number.value).ok().map(Self::Same)
        } else {
            Some(Self::Read(tokens.changing_count(number.digits)))
        }
    }

    #[inline]
    pub(super) fn fill<'a>(self, text: impl Fn(Token) -> Str<'a>) -> Number<'a> {
        match self {
            Self::Same(value) => Number { value: value.into(), digits: "" },
            Self::Read(token) => {
                let digits = text(token).raw;
                Number { value: digits.parse().unwrap_or(NO_CHOICE), digits }
            }
        }
    }
}
