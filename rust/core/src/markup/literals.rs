//! The earliest of a family's literals in a text that goes on later.
//!
//! Laws: the longest literal at a place counts, and where a longer one may still come nothing is said, so that what a
//! place is does not depend on where the text was cut.  What is looked for in text begins with `<` or `[`.

/// What stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found<T> {
    /// A literal: where it begins, where it ends, what it stands for.
    At { start: usize, end: usize, role: T },
    /// From here to the end of the text it may be one.
    Partial(usize),
    /// None.
    Nothing,
}

/// Looks from `from` for the literals whose role counts at the place where they stand.
pub(super) fn find<T: Copy>(
    text: &str,
    from: usize,
    literals: &[(&'static str, T)],
    counts: impl Fn(T, usize) -> bool,
) -> Found<T> {
    let bytes = text.as_bytes();
    let mut at = from;
    while let Some(rest) = bytes.get(at..)
        && let Some(next) = memchr::memchr2(b'<', b'[', rest)
    {
        at += next;
        match here(text, at, literals, |role| counts(role, at)) {
            Found::Nothing => at += 1,
            found => return found,
        }
    }
    Found::Nothing
}

/// What stands at this place.
pub(super) fn here<T: Copy>(
    text: &str,
    at: usize,
    literals: &[(&'static str, T)],
    counts: impl Fn(T) -> bool,
) -> Found<T> {
    let rest = text.get(at..).unwrap_or("");
    let mut found = Found::Nothing;
    let mut longest = 0;
    for (literal, role) in literals {
        if literal.len() <= longest || !counts(*role) {
            continue;
        }
        if rest.starts_with(literal) {
            longest = literal.len();
            found = Found::At { start: at, end: at + longest, role: *role };
        } else if literal.starts_with(rest) {
            return Found::Partial(at);
        }
    }
    found
}

/// The length of the white space at the beginning.
pub(super) fn blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches(is_blank).len()
}

/// What markup calls white space.
pub(super) fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

/// The text from a position on.
pub(super) fn from(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or("")
}

/// The text up to a position.
pub(super) fn upto(text: &str, at: usize) -> &str {
    text.get(..at).unwrap_or("")
}
