//! Merging of JSON objects without a tree.
//!
//! In: the text of objects.  Out: the text of one object, without white space between members.

use std::borrow::Cow;
use std::collections::HashMap;

use super::reader::Reader;
use super::write::write_members;

/// Members up to this number are compared one by one.
const FEW_MEMBERS: usize = 32;

/// Members in the order of their first appearance.
///
/// Objects with many members use a hash map, so that a hostile object costs linear time.
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
        // An earlier reader accepted the text, so reading fails only if the text is not an object.
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

/// Return the members of an object by key, each value as its text; empty if the text is not an object.
pub fn members(object: &str) -> Vec<(Cow<'_, str>, &str)> {
    Members::from_object(object).list
}

/// Return `base` with the members of `patch` over its own; null members of `patch` change nothing.
pub fn merge_objects(base: &str, patch: &str) -> String {
    let mut merged = Members::from_object(base);
    merged.add(patch, |value| value != "null");
    write_object(&merged.list)
}

/// Return an object without white space, as merged objects are; `{}` if the text is not an object.
pub fn compact(object: &str) -> String {
    let bytes = object.as_bytes();
    let spaced =
        memchr::memchr3(b' ', b'\n', b'\t', bytes).or_else(|| memchr::memchr(b'\r', bytes));
    if spaced.is_none() && object.starts_with('{') {
        return object.to_owned();
    }
    merge_objects("{}", object)
}

/// Merge as [`merge_objects`] does, and merge objects under the same key in the same way.
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

/// Return an object of these members, whose values are JSON.
pub fn write_object<K: AsRef<str>>(members: &[(K, &str)]) -> String {
    let bytes = members.iter().map(|(key, value)| key.as_ref().len() + value.len() + 4);
    let mut out = String::with_capacity(2 + bytes.sum::<usize>());
    write_members(&mut out, |object| {
        for (key, value) in members {
            object.json_of(key.as_ref(), value);
        }
    });
    out
}
