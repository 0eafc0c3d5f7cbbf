//! The earliest of a family's literals in a text that goes on later.
//!
//! Laws: every literal begins with `<` or `[`; none begins another that is watched at the same time, so that what a
//! position is does not depend on where the text was cut; a beginning of a literal at the text's end is told apart.

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

/// Looks from `from` for the literals whose role counts.
pub(super) fn find<T: Copy>(
    text: &str,
    from: usize,
    literals: &[(&'static str, T)],
    counts: impl Fn(T) -> bool,
) -> Found<T> {
    let bytes = text.as_bytes();
    let mut at = from;
    while let Some(rest) = bytes.get(at..)
        && let Some(next) = memchr::memchr2(b'<', b'[', rest)
    {
        at += next;
        match here(text, at, literals, &counts) {
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
    let mut partial = false;
    for (literal, role) in literals {
        if counts(*role) {
            if rest.starts_with(literal) {
                return Found::At { start: at, end: at + literal.len(), role: *role };
            }
            partial |= literal.starts_with(rest);
        }
    }
    if partial { Found::Partial(at) } else { Found::Nothing }
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
