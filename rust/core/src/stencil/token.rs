//! Tokens that rules of other protocols cannot tell from any other token of their kind.
//!
//! In: the JSON of a request and the offset of a value.  Out: the end of the value, if it is such a token.
//!
//! Laws: a text shows something, so that no rule drops it as blank.  No string has a lone surrogate.  An id is written without
//! escapes.  Arguments are one object that means the same to every reader: no key twice, no number that a reader could round
//! or write in another form.

use super::object::{Numbers, exact_end};
use super::string::{string_at, text_at};

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text of a message or a result.
    Text,
    /// Id of a call.
    Call,
    /// Id of the call that a result answers.
    Result,
    /// Name of a tool.
    Name,
    /// Arguments as the JSON text of an object.
    ArgumentText,
    /// Arguments as an object.
    ArgumentObject,
    /// A string that rules may leave out: reasoning, a signature, the id of an item.
    Optional,
}

/// A token in the JSON of a request, quotes included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Token {
    pub(super) fn of(self, json: &str) -> &str {
        json.get(self.start..self.end).unwrap_or("")
    }

    /// Return the JSON between the quotes.
    pub(super) fn inside(self, json: &str) -> &str {
        json.get(self.start + 1..self.end.saturating_sub(1)).unwrap_or("")
    }
}

/// Return the token of a kind that begins at `at`.
pub(super) fn token_at(json: &str, at: usize, kind: Kind) -> Option<Token> {
    let end = match kind {
        Kind::ArgumentObject => exact_end(json.get(at..)?, Numbers::Canonical)? + at,
        Kind::ArgumentText => {
            let (text, end) = text_at(json, at)?;
            let object = text.unescaped();
            (exact_end(&object, Numbers::Finite)? == object.len()).then_some(end)?
        }
        Kind::Text => {
            let (text, end) = text_at(json, at)?;
            is_shown(text.raw).then_some(end)?
        }
        Kind::Optional => {
            let (text, end) = text_at(json, at)?;
            (is_shown(text.raw) && !text.raw.starts_with(ENVELOPE)).then_some(end)?
        }
        Kind::Call | Kind::Result | Kind::Name => {
            let (text, end) = string_at(json, at)?;
            (!text.escaped && !text.raw.is_empty()).then_some(end)?
        }
    };
    Some(Token { kind, start: at, end })
}

/// Beginning of an opaque string that holds state of another protocol, which rules open.
const ENVELOPE: &str = "eyJkZWx0YWZvbGQi";

/// Return whether a text begins with something that is not white space, and that is written without an escape.
///
/// Rules look for white space at the ends of a text, and for words of their own at its beginning; ids that are made for calls
/// without one begin with `call_`, and avoid texts that do.
fn is_shown(raw: &str) -> bool {
    let visible = |c: char| !c.is_whitespace() && !c.is_control() && c != '\\';
    !raw.starts_with("call_")
        && raw.chars().take(LOOK_AHEAD).any(visible_outside_of_escapes(visible))
}

/// Characters of a text that are searched for one that is shown.
const LOOK_AHEAD: usize = 256;

fn visible_outside_of_escapes(visible: impl Fn(char) -> bool) -> impl FnMut(char) -> bool {
    let mut in_escape = 0;
    move |c| {
        if in_escape > 0 {
            // The letter of an escape, or of `\u` with the four digits after it.
            in_escape = if in_escape == 5 && c == 'u' {
                4
            } else if in_escape == 5 {
                0
            } else {
                in_escape - 1
            };
            return false;
        }
        if c == '\\' {
            in_escape = 5;
            return false;
        }
        visible(c)
    }
}
