//! `Logprobs`: log probabilities of tokens as flat arrays, because an answer may have tens of thousands of them.
//!
//! In: tokens from a dialect, or the wire form `{tokens, logprobs, tokenIds?, bytes?, top?}` of the contract.  Out: arrays,
//! or the same wire form.
//!
//! Laws: all arrays are parallel, and no token has an allocation of its own.  Missing values are "" (a token), NaN (a log
//! probability, `null` on the wire) or [`NO_ID`] (`null` on the wire).  JSON has no infinity: a number beyond the range of a
//! float is treated as missing.

mod wire;

pub use wire::{LogprobsError, read_bytes, write_bytes};

use crate::json::{Carry, Str};

/// Placeholder of a missing id among known ids.
pub const NO_ID: i64 = -1;

/// Column of texts in one arena, each with a number.
#[derive(Clone, Debug, Default)]
pub struct Column {
    text: String,
    ends: Vec<usize>,
    values: Vec<f64>,
    /// The bytes of texts that are not their UTF-8, by row: a token may end inside a character.
    odd: Vec<(usize, Box<[u8]>)>,
}

impl Column {
    /// Return the number of rows.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Return true if the column has no row.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Return the numbers in order.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Return the texts in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let text = self.text.get(start..*end).unwrap_or("");
            start = *end;
            text
        })
    }

    /// Return the texts, numbers and bytes in order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let mut odd = self.odd.iter().peekable();
        self.texts().zip(&self.values).enumerate().map(move |(row, (text, value))| {
            let bytes = odd.next_if(|(known, _)| *known == row).map(|(_, bytes)| &**bytes);
            Row { text, value: *value, odd: bytes }
        })
    }

    /// Return true if the bytes of some text are not its UTF-8.
    pub fn has_odd(&self) -> bool {
        !self.odd.is_empty()
    }

    /// Set the bytes of the last row; none are unknown ones.
    pub fn set_bytes(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let Some(row) = self.len().checked_sub(1) else { return };
        if self.odd.last().is_some_and(|(known, _)| *known == row) {
            self.odd.pop();
        }
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        if self.text.as_bytes().get(start.unwrap_or(0)..) != Some(bytes) {
            self.odd.push((row, bytes.into()));
        }
    }

    fn open(&mut self) {
        self.push(Str::plain(""), f64::NAN);
    }

    /// Append a row.
    #[inline]
    pub fn push(&mut self, text: Str<'_>, value: f64) {
        self.push_text(text);
        self.ends.push(self.text.len());
        self.values.push(value);
    }

    #[inline]
    fn push_text(&mut self, text: Str<'_>) {
        if text.escaped {
            let mut carry = Carry::default();
            text.decode_into(&mut self.text, &mut carry);
            carry.flush(&mut self.text);
        } else {
            self.text.push_str(text.raw);
        }
    }

    /// Set the text of the last row.
    fn set_text(&mut self, text: Str<'_>) {
        let start = self.ends.len().checked_sub(2).and_then(|at| self.ends.get(at));
        self.text.truncate(start.copied().unwrap_or(0));
        self.push_text(text);
        if let Some(end) = self.ends.last_mut() {
            *end = self.text.len();
        }
    }

    /// Set the number of the last row.
    fn set_value(&mut self, value: f64) {
        if let Some(last) = self.values.last_mut() {
            *last = value;
        }
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.values.clear();
        self.odd.clear();
    }

    fn truncate(&mut self, rows: usize) {
        self.ends.truncate(rows);
        self.values.truncate(rows);
        while self.odd.last().is_some_and(|(row, _)| *row >= rows) {
            self.odd.pop();
        }
        self.text.truncate(self.ends.last().copied().unwrap_or(0));
    }

    fn append(&mut self, other: &Self) {
        let (before, rows) = (self.text.len(), self.len());
        self.odd.extend(other.odd.iter().map(|(row, bytes)| (rows + row, bytes.clone())));
        self.text.push_str(&other.text);
        self.ends.extend(other.ends.iter().map(|end| before + end));
        self.values.extend_from_slice(&other.values);
    }

    fn bytes(&self) -> usize {
        let odd = self.odd.iter().map(|(_, bytes)| size_of::<(usize, Box<[u8]>)>() + bytes.len());
        self.text.len() + self.len() * (size_of::<usize>() + size_of::<f64>()) + odd.sum::<usize>()
    }
}

/// Row of a column.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Text of the token.
    pub text: &'a str,
    /// Its number.
    pub value: f64,
    odd: Option<&'a [u8]>,
}

impl<'a> Row<'a> {
    /// Return the bytes of the token.
    pub fn bytes(&self) -> &'a [u8] {
        self.odd.unwrap_or(self.text.as_bytes())
    }
}

/// Compares numbers by value, and treats two missing numbers as equal.
impl PartialEq for Column {
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
        self.text == other.text
            && self.ends == other.ends
            && self.odd == other.odd
            && self.values.iter().zip(&other.values).all(same)
    }
}

/// Log probabilities of a run of tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Logprobs {
    tokens: Column,
    /// Token ids; empty if no id is known.
    ids: Vec<i64>,
    alternatives: Column,
    /// Start offsets of the alternatives of each token, and the end offset of the last; empty without alternatives.
    offsets: Vec<i64>,
}

impl Logprobs {
    /// Return the number of tokens.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Return true without tokens.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Return the tokens and their log probabilities.
    pub fn tokens(&self) -> &Column {
        &self.tokens
    }

    /// Return the token ids, if any is known.
    pub fn ids(&self) -> Option<&[i64]> {
        Some(self.ids.as_slice()).filter(|ids| !ids.is_empty())
    }

    /// Return the alternatives of all tokens in order, if there are any.
    pub fn alternatives(&self) -> Option<&Column> {
        Some(&self.alternatives).filter(|_| !self.offsets.is_empty())
    }

    /// Return the start offsets of the alternatives of each token, and the end offset of the last.
    pub fn offsets(&self) -> &[i64] {
        &self.offsets
    }

    /// Return the size of the arrays in bytes.
    pub fn bytes(&self) -> usize {
        let numbers = (self.ids.len() + self.offsets.len()) * size_of::<i64>();
        self.tokens.bytes() + self.alternatives.bytes() + numbers
    }

    /// Remove all tokens and keep the capacity.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.ids.clear();
        self.alternatives.clear();
        self.offsets.clear();
    }

    /// Remove the tokens after the first `rows`.
    pub fn truncate(&mut self, rows: usize) {
        self.tokens.truncate(rows);
        self.ids.truncate(rows);
        let alternatives = self.offsets.get(rows).copied().unwrap_or(0);
        self.alternatives.truncate(usize::try_from(alternatives).unwrap_or(0));
        self.offsets.truncate(rows + 1);
    }

    /// Begin a token without known values.
    pub fn open(&mut self) {
        self.begin().open();
    }

    /// Begin a token, and return the column that takes its row.
    #[inline]
    pub fn begin(&mut self) -> &mut Column {
        if !self.ids.is_empty() {
            self.ids.push(NO_ID);
        }
        if let Some(end) = self.offsets.last() {
            self.offsets.push(*end);
        }
        &mut self.tokens
    }

    /// Set the text of the last token.
    pub fn set_token(&mut self, token: Str<'_>) {
        self.tokens.set_text(token);
    }

    /// Set the bytes of the last token.
    pub fn set_bytes(&mut self, bytes: &[u8]) {
        self.tokens.set_bytes(bytes);
    }

    /// Set the log probability of the last token.
    pub fn set_logprob(&mut self, logprob: f64) {
        self.tokens.set_value(logprob);
    }

    /// Set the id of the last token.
    pub fn set_id(&mut self, id: i64) {
        self.ids.resize(self.tokens.len(), NO_ID);
        if let Some(last) = self.ids.last_mut() {
            *last = id;
        }
    }

    /// Set the ids of all tokens.  A list of another length is cut or padded.
    pub fn set_ids(&mut self, ids: &[i64]) {
        self.ids.clear();
        self.ids.extend_from_slice(ids);
        self.ids.resize(self.tokens.len(), NO_ID);
    }

    /// Remove the alternatives of the last token.
    pub fn clear_alternatives(&mut self) {
        if let [.., start, end] = self.offsets.as_mut_slice() {
            *end = *start;
            let rows = usize::try_from(*start).unwrap_or(0);
            self.alternatives.truncate(rows);
        }
    }

    /// Begin an alternative to the last token.
    pub fn open_alternative(&mut self) {
        self.begin_alternatives().open();
        self.end_alternatives();
    }

    /// Begin the alternatives to the last token, and return the column that takes their rows.
    ///
    /// The caller must call [`Self::end_alternatives`] after the last row.
    #[inline]
    pub fn begin_alternatives(&mut self) -> &mut Column {
        if self.offsets.is_empty() {
            self.offsets.resize(self.tokens.len() + 1, 0);
        }
        &mut self.alternatives
    }

    /// End the alternatives to the last token.
    #[inline]
    pub fn end_alternatives(&mut self) {
        if let Some(end) = self.offsets.last_mut() {
            *end = i64::try_from(self.alternatives.len()).unwrap_or(i64::MAX);
        }
    }

    /// Set the text of the last alternative.
    pub fn set_alternative_token(&mut self, token: Str<'_>) {
        self.alternatives.set_text(token);
    }

    /// Set the bytes of the last alternative.
    pub fn set_alternative_bytes(&mut self, bytes: &[u8]) {
        self.alternatives.set_bytes(bytes);
    }

    /// Set the log probability of the last alternative.
    pub fn set_alternative_logprob(&mut self, logprob: f64) {
        self.alternatives.set_value(logprob);
    }

    /// Append the tokens of `other`.
    pub fn append(&mut self, other: &Self) {
        let before = self.len();
        self.tokens.append(&other.tokens);
        if !(self.ids.is_empty() && other.ids.is_empty()) {
            self.ids.resize(before, NO_ID);
            self.ids.extend_from_slice(&other.ids);
            self.ids.resize(self.len(), NO_ID);
        }
        if !(self.offsets.is_empty() && other.offsets.is_empty()) {
            if self.offsets.is_empty() {
                self.offsets.resize(before + 1, 0);
            }
            let end = self.offsets.last().copied().unwrap_or(0);
            self.offsets.extend(other.offsets.iter().skip(1).map(|offset| end + offset));
            let end = self.offsets.last().copied().unwrap_or(0);
            self.offsets.resize(self.tokens.len() + 1, end);
            self.alternatives.append(&other.alternatives);
        }
    }
}
