//! Search for the literals of a family in text that may continue.
//!
//! In: the text so far, and literals with their roles.  Out: the first literal, with its offsets and role.
//!
//! Laws: the longest literal at an offset wins.  If a longer one may still be completed, the result is [`Found::Partial`].
//! Therefore the result does not depend on how the text was cut.  Literals of [`find`] begin with `<` or `[`.

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found<T> {
    /// A literal with its start offset, end offset and role.
    At { start: usize, end: usize, role: T },
    /// The text from this offset to its end may be the beginning of a literal.
    Partial(usize),
    /// No literal.
    Nothing,
}

/// Find the first literal at or after `from`.  `counts` selects the roles that are allowed at an offset.
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

/// Find the literal that begins at `at`.
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

/// Return the length of the leading white space.
pub(super) fn blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches(is_blank).len()
}

/// Return true for the white space characters of markup.
pub(super) fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

/// Return the text from an offset on.
pub(super) fn from(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or("")
}

/// Return the text up to an offset.
pub(super) fn upto(text: &str, at: usize) -> &str {
    text.get(..at).unwrap_or("")
}
