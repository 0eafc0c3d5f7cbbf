//! Marks: texts that stand for the tokens of a sample.
//!
//! In: a prefix that occurs nowhere else, and the numbers of tokens.  Out: JSON of marks, and the marks in a translation.

use super::token::Kind;

/// Letter behind the number of a mark, so that no mark begins another one.
const END: char = 'z';

/// Numbers of the marks of a sample: those of one unit follow each other.
#[derive(Debug)]
pub(super) struct Marks<'a> {
    prefix: &'a str,
    next: usize,
}

impl<'a> Marks<'a> {
    pub(super) fn new(prefix: &'a str) -> Self {
        Self { prefix, next: 0 }
    }

    /// Return the number of the next mark.
    pub(super) fn next(&self) -> usize {
        self.next
    }

    pub(super) fn take(&mut self, tokens: usize) {
        self.next += tokens;
    }

    /// Return the JSON of a mark in the place of a token.
    pub(super) fn written(&self, number: usize, kind: Kind) -> String {
        let mark = format!("{}{number}{END}", self.prefix);
        match kind {
            Kind::ArgumentText => format!("\"{{\\\"{mark}\\\":0}}\""),
            Kind::ArgumentObject => format!("{{\"{mark}\":0}}"),
            _ => format!("\"{mark}\""),
        }
    }
}

/// A mark in a translated sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) number: usize,
    /// The mark without anything around it.
    start: usize,
    end: usize,
}

/// Return the marks in a text in order, `None` if something has changed one.
pub(super) fn marks_in(json: &str, prefix: &str) -> Option<Vec<Mark>> {
    json.match_indices(prefix)
        .map(|(start, _)| {
            let rest = json.get(start + prefix.len()..)?;
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let number = rest.get(..digits)?.parse().ok()?;
            let end = start + prefix.len() + digits + 1;
            rest.get(digits..)?.starts_with(END).then_some(Mark { number, start, end })
        })
        .collect()
}

/// Form of arguments in a translation, and that of any other token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    String,
    ArgumentText,
    ArgumentObject,
}

impl Mark {
    /// Return where the token of the mark begins and ends, and its form; `None` if there is more in it than the mark.
    pub(super) fn token(self, json: &str, kind: Kind) -> Option<(usize, usize, Form)> {
        let forms: &[(&str, &str, Form)] = match kind {
            Kind::ArgumentText | Kind::ArgumentObject => &[
                ("\"{\\\"", "\\\":0}\"", Form::ArgumentText),
                ("{\"", "\":0}", Form::ArgumentObject),
            ],
            _ => &[("\"", "\"", Form::String)],
        };
        forms.iter().find_map(|(before, after, form)| {
            let start = self.start.checked_sub(before.len())?;
            let end = self.end + after.len();
            let is_whole = json.get(start..self.start) == Some(before)
                && json.get(self.end..end) == Some(after);
            is_whole.then_some((start, end, *form))
        })
    }
}
