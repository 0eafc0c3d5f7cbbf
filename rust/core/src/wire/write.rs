//! Writing JSON text, and putting objects together member by member without a tree.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Reader, special};

/// Writes `text` as a JSON string, quotes included.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
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
    out.push('"');
}

/// Members up to this number are compared one by one.
const FEW_MEMBERS: usize = 32;

/// Members in the order of their first appearance; beyond a few they are found by hash, so that a hostile object costs
/// linear time.
#[derive(Default)]
struct Members<'a> {
    list: Vec<(String, &'a str)>,
    places: HashMap<String, usize>,
}

impl<'a> Members<'a> {
    fn find(&mut self, key: &str) -> Option<&mut (String, &'a str)> {
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

    fn add(&mut self, object: &'a str, mut replace: impl FnMut(&str) -> bool) {
        // A text that an earlier reader accepted fails only by being no object.
        let _ = Reader::trusted(object).object(|reader, key| {
            let value = reader.raw()?;
            match self.find(key) {
                Some(entry) if replace(value) => entry.1 = value,
                Some(_) => {}
                None => self.list.push((key.to_owned(), value)),
            }
            Ok(())
        });
    }
}

/// The members of an object by key, each value as its text.  Empty for a text that is no object.
pub fn members(object: &str) -> Vec<(String, &str)> {
    let mut found = Members::default();
    found.add(object, |_| true);
    found.list
}

/// The object `base` with the members of `patch` put over it; null members of `patch` change nothing.
pub fn merge_objects(base: &str, patch: &str) -> String {
    let mut merged = Members::default();
    merged.add(base, |_| true);
    merged.add(patch, |value| value != "null");
    write_object(&merged.list)
}

/// As [`merge_objects`], and objects under one key are merged in the same way.
pub fn merge_deep(base: &str, patch: &str) -> String {
    let mut known = Members::default();
    known.add(base, |_| true);
    let inner: Vec<(String, Cow<'_, str>)> = members(patch)
        .into_iter()
        .map(|(key, value)| {
            let both = known
                .find(&key)
                .filter(|(_, known)| [*known, value].iter().all(|text| text.starts_with('{')));
            let value = both
                .map_or(Cow::Borrowed(value), |(_, known)| Cow::Owned(merge_deep(known, value)));
            (key, value)
        })
        .collect();
    let patch: Vec<(String, &str)> =
        inner.iter().map(|(key, value)| (key.clone(), value.as_ref())).collect();
    merge_objects(base, &write_object(&patch))
}

/// An object of these members.
pub fn write_object(members: &[(String, &str)]) -> String {
    let mut out = String::from("{");
    for (position, (key, value)) in members.iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        write_string(&mut out, key);
        out.push(':');
        out.push_str(value);
    }
    out.push('}');
    out
}
