//! Pure functions on the JSON of content blocks.

use std::borrow::Cow;

use crate::json;
use crate::json::scan::{JsonScan, Verdict};

/// Append to a string member of a block, which the start of the block may hold already.  Escaped text stays escaped.
pub(super) fn append_member(start: &str, set: &mut Vec<(String, String)>, name: &str, raw: &str) {
    if !set.iter().any(|(known, _)| known == name) {
        let begun = json::members(start).into_iter().find(|(known, _)| known == name);
        let begun = begun.map_or("\"\"", |(_, value)| value);
        set.push((name.to_owned(), if begun.starts_with('"') { begun } else { "\"\"" }.to_owned()));
    }
    if let Some((_, value)) = set.iter_mut().find(|(known, _)| known == name) {
        value.truncate(value.len().saturating_sub(1));
        value.push_str(raw);
        value.push('"');
    }
}

/// Return the block in the form of a whole body: its start merged with the deltas.  Input that is not JSON stays text.
pub(super) fn provider_block<'a>(
    start: &'a str,
    input: &str,
    set: &[(String, String)],
    depth: usize,
) -> Cow<'a, str> {
    let mut patch: Vec<(String, &str)> =
        set.iter().map(|(key, value)| (key.clone(), value.as_str())).collect();
    let mut scan = JsonScan::default();
    scan.feed(input.as_bytes());
    let mut text = String::new();
    match scan.verdict() {
        Verdict::Empty => {}
        Verdict::Complete if scan.deepest() < depth => patch.push(("input".to_owned(), input)),
        Verdict::Complete | Verdict::Open | Verdict::Wrong => {
            json::write_string(&mut text, input);
            patch.push(("partial_json".to_owned(), &text));
        }
    }
    if patch.is_empty() {
        return Cow::Borrowed(start);
    }
    Cow::Owned(json::merge_objects(start, &json::write_object(&patch)))
}

pub(super) fn is_empty_container(json: &str) -> bool {
    let inner = json.strip_prefix(['{', '[']).and_then(|rest| rest.strip_suffix(['}', ']']));
    inner.is_some_and(|inner| inner.trim().is_empty())
}
