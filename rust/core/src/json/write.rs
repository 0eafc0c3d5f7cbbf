//! Writing JSON text, and putting objects together member by member without a tree.

use std::borrow::Cow;
use std::collections::HashMap;

use super::reader::Reader;
use super::text::Str;
use super::tokens::special;

/// Writes `text` as a JSON string, quotes included.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    write_text(out, text);
    out.push('"');
}

/// Writes `text` as a piece of a JSON string, without quotes.
pub fn write_text(out: &mut String, text: &str) {
    let mut rest = text;
    loop {
        let at = special(rest.as_bytes(), 0);
        let (plain, tail) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(plain);
        let mut characters = tail.chars();
        match characters.next() {
            None => break,
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            Some(other) => {
                use std::fmt::Write as _;
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(other));
            }
        }
        rest = characters.as_str();
    }
}

/// Members up to this number are compared one by one.
const FEW_MEMBERS: usize = 32;

/// Members in the order of their first appearance; beyond a few they are found by hash, so that a hostile object costs
/// linear time.
#[derive(Default)]
struct Members<'a> {
    list: Vec<Member<'a>>,
    places: HashMap<Cow<'a, str>, usize>,
}

type Member<'a> = (Cow<'a, str>, &'a str);

impl<'a> Members<'a> {
    fn from_object(object: &'a str) -> Self {
        let mut found = Self::default();
        found.add(object, |_| true);
        found
    }

    fn find(&mut self, key: &str) -> Option<&mut Member<'a>> {
        let place = if self.list.len() <= FEW_MEMBERS {
            self.list.iter().position(|(known, _)| known == key)
        } else {
            for (place, (known, _)) in self.list.iter().enumerate().skip(self.places.len()) {
                self.places.insert(known.clone(), place);
            }
            self.places.get(key).copied()
        };
        self.list.get_mut(place?)
    }

    fn put(&mut self, key: Cow<'a, str>, value: &'a str) {
        match self.find(&key) {
            Some(entry) => entry.1 = value,
            None => self.list.push((key, value)),
        }
    }

    fn add(&mut self, object: &'a str, mut wanted: impl FnMut(&str) -> bool) {
        // A text that an earlier reader accepted fails only by being no object.
        let _ = Reader::trusted(object).entries(|reader, key| {
            let key = if key.escaped { Cow::Owned(key.text()) } else { Cow::Borrowed(key.raw) };
            let value = reader.raw()?;
            if wanted(value) || self.find(&key).is_none() {
                self.put(key, value);
            }
            Ok(())
        });
    }
}

/// The members of an object by key, each value as its text.  Empty for a text that is no object.
pub fn members(object: &str) -> Vec<(Cow<'_, str>, &str)> {
    Members::from_object(object).list
}

/// A string of the wire as a JSON value again, its escapes as they were.
pub fn quoted(text: Str<'_>) -> String {
    format!("\"{}\"", text.raw)
}

/// The object `base` with the members of `patch` put over it; null members of `patch` change nothing.
pub fn merge_objects(base: &str, patch: &str) -> String {
    let mut merged = Members::from_object(base);
    merged.add(patch, |value| value != "null");
    write_object(&merged.list)
}

/// An object written as a merged one is, so that white space alone is no change; `{}` for a text that is no object.
pub fn compact(object: &str) -> String {
    let bytes = object.as_bytes();
    let spaced =
        memchr::memchr3(b' ', b'\n', b'\t', bytes).or_else(|| memchr::memchr(b'\r', bytes));
    if spaced.is_none() && object.starts_with('{') {
        return object.to_owned();
    }
    merge_objects("{}", object)
}

/// As [`merge_objects`], and objects under one key are merged in the same way.
pub fn merge_deep(base: &str, patch: &str) -> String {
    if !patch.get(1..).is_some_and(|members| members.contains('{')) {
        return merge_objects(base, patch);
    }
    let mut merged = Members::from_object(base);
    let patch = members(patch);
    let inner: Vec<Option<String>> = patch
        .iter()
        .map(|(key, value)| {
            let (_, known) = merged.find(key)?;
            let both = known.starts_with('{') && value.starts_with('{');
            both.then(|| merge_deep(known, value))
        })
        .collect();
    for ((key, value), inner) in patch.iter().zip(&inner) {
        if *value != "null" || merged.find(key).is_none() {
            merged.put(key.clone(), inner.as_deref().unwrap_or(value));
        }
    }
    write_object(&merged.list)
}

/// An object of these members.
pub fn write_object<K: AsRef<str>>(members: &[(K, &str)]) -> String {
    let bytes = members.iter().map(|(key, value)| key.as_ref().len() + value.len() + 4);
    let mut out = String::with_capacity(2 + bytes.sum::<usize>());
    out.push('{');
    for (position, (key, value)) in members.iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        write_string(&mut out, key.as_ref());
        out.push(':');
        out.push_str(value);
    }
    out.push('}');
    out
}
