//! Merging of JSON objects without a tree.
//!
//! In: the text of objects.  Out: the text of one object, without white space between members.

use std::borrow::Cow;
use std::collections::HashMap;

use super::reader::Reader;
use super::text::Str;
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
    if !has_space(object) && object.starts_with('{') {
        return object.to_owned();
    }
    merge_objects("{}", object)
}

fn has_space(json: &str) -> bool {
    let bytes = json.as_bytes();
    memchr::memchr3(b' ', b'\n', b'\t', bytes).is_some() || memchr::memchr(b'\r', bytes).is_some()
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

/// Maximum number of members of a [`Patch`].
const MAX_PATCH: usize = 16;

/// Members of a small object, for [`merge_patch`].
#[derive(Debug, Default)]
pub struct Patch<'a> {
    members: [(&'a str, &'a str); MAX_PATCH],
    count: usize,
    /// A member did not fit: it repeats a name, its name has escapes, or there are too many.
    unfit: bool,
}

impl<'a> Patch<'a> {
    /// Add a member; `value` is JSON.
    #[inline]
    pub fn add(&mut self, key: Str<'a>, value: &'a str) {
        let known = self.members.iter().take(self.count).any(|(known, _)| *known == key.raw);
        match self.members.get_mut(self.count) {
            Some(place) if !known && !key.escaped => {
                *place = (key.raw, value);
                self.count += 1;
            }
            _ => self.unfit = true,
        }
    }
}

/// Merge as [`merge_deep`] does, with one copy of `base`; `None` if a name occurs twice, has escapes, or there are many.
///
/// `base` has no white space between its members.
pub fn merge_patch(base: &str, patch: &Patch<'_>) -> Option<String> {
    let members = patch.members.get(..patch.count).filter(|_| !patch.unfit)?;
    let bytes = members.iter().map(|(key, value)| key.len() + value.len() + 4);
    let mut out = String::with_capacity(base.len() + bytes.sum::<usize>());
    let mut in_base = Patch::default();
    let (mut found, mut copied) = (0_u32, 0);
    let read = Reader::trusted(base).entries(|reader, key| {
        let start = reader.position();
        let value = reader.raw()?;
        in_base.add(key, "");
        let is_here = |(_, (name, _)): &(usize, &(&str, &str))| *name == key.raw;
        if let Some((at, (_, new))) = members.iter().enumerate().find(is_here) {
            found |= 1 << at;
            if *new != "null" {
                out.push_str(base.get(copied..start).unwrap_or(""));
                if value.starts_with('{') && new.starts_with('{') {
                    match merge_inner(value, new) {
                        Some(inner) => out.push_str(&inner),
                        None => in_base.unfit = true,
                    }
                } else {
                    out.push_str(new);
                }
                copied = reader.position();
            }
        }
        Ok(())
    });
    read.ok().filter(|()| !in_base.unfit)?;
    out.push_str(base.get(copied..base.len().checked_sub(1)?)?);
    for (at, (key, value)) in members.iter().enumerate() {
        if found & (1 << at) == 0 {
            out.push_str(if out.len() > 1 { ",\"" } else { "\"" });
            out.push_str(key);
            out.push_str("\":");
            out.push_str(value);
        }
    }
    out.push('}');
    Some(out)
}

/// Merge objects inside objects as [`merge_patch`] does.
fn merge_inner(base: &str, patch: &str) -> Option<String> {
    let mut members = Patch::default();
    let read = Reader::trusted(patch).entries(|reader, key| {
        members.add(key, reader.raw()?);
        Ok(())
    });
    read.ok().filter(|()| !has_space(base))?;
    merge_patch(base, &members)
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
