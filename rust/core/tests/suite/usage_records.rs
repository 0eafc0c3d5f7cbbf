//! Usage records are merged in one pass: the result is that of merging and reading them one after the other.

use proptest::prelude::*;

use crate::support::{Owned, decode};
use deltafold::contract::Payload;
use deltafold::dialect::openai_chat::facts::FACTS;
use deltafold::emit::Counts;
use deltafold::json;

/// Input, output and cached tokens, and the record.
type Counted = (Option<u64>, Option<u64>, Option<u64>, String);

/// Decode a stream of these records, and return its last usage delta: input, output, cached and raw record.
fn decoded(records: &[String]) -> Option<Counted> {
    let mut body: String = records
        .iter()
        .map(|record| {
            format!("data: {{\"id\":\"c\",\"model\":\"m\",\"choices\":[],\"usage\":{record}}}\n\n")
        })
        .collect();
    body.push_str("data: [DONE]\n\n");
    let deltas: Vec<Owned> = decode("openai-chat", body.as_bytes());
    deltas.into_iter().rev().find_map(|delta| match delta.payload {
        Payload::Usage(usage) => {
            let details = usage.details.map(|details| details.to_string()).unwrap_or_default();
            let members = json::members(&details);
            let raw = members.iter().find(|(name, _)| name == "raw").map(|(_, raw)| *raw);
            let raw = raw.unwrap_or("").to_owned();
            Some((usage.input, usage.output, usage.cache_read, raw))
        }
        _ => None,
    })
}

/// Merge the records one after the other, and read each result anew.
fn merged(records: &[String]) -> Option<Counted> {
    let mut known: Option<String> = None;
    let mut last = None;
    for record in records {
        let merged = match &known {
            Some(known) => json::merge_deep(known, record),
            None => json::compact(record),
        };
        let counts = Counts::read(&FACTS.usage, &merged).unwrap();
        if counts != Counts::default() {
            last = Some((counts.input, counts.output, counts.cache_read, merged.clone()));
        }
        known = Some(merged);
    }
    last
}

fn record() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        8 => (0..99_u32).prop_map(|count| count.to_string()),
        1 => Just("null".to_owned()),
        1 => Just("1.5".to_owned()),
        1 => Just("\"7\"".to_owned()),
        1 => Just("[1]".to_owned()),
        1 => Just("{}".to_owned()),
    ];
    let inner = prop::collection::vec(
        (prop_oneof![Just("cached_tokens"), Just("audio_tokens"), Just("x")], value.clone()),
        0..3,
    )
    .prop_map(|members| {
        let members: Vec<String> =
            members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", members.join(","))
    });
    let name = prop_oneof![
        Just("prompt_tokens"),
        Just("input_tokens"),
        Just("completion_tokens"),
        Just("cached_tokens"),
        Just("prompt_tokens_details"),
        Just("cost"),
        Just("other"),
        Just(r"oth\u0065r"),
    ];
    let member = (name, prop_oneof![3 => value, 1 => inner]);
    (prop::collection::vec(member, 0..5), prop_oneof![4 => Just(","), 1 => Just(", ")]).prop_map(
        |(members, comma)| {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
            format!("{{{}}}", members.join(comma))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn merging_in_one_pass_is_merging_and_reading(records in prop::collection::vec(record(), 1..5)) {
        prop_assert_eq!(decoded(&records), merged(&records));
    }
}

#[test]
fn a_patch_is_merged_as_an_object_or_not_at_all() {
    for (base, patch) in [
        (r#"{"a":1}"#, r#"{"b":2}"#),
        ("{}", r#"{"a":null}"#),
        (r#"{"a":1,"b":2}"#, r#"{"b":null,"a":3}"#),
        (r#"{"d":{"x":1,"y":2}}"#, r#"{"d":{"y":3,"z":4}}"#),
        (r#"{"d":{"x":{"y":1}}}"#, r#"{"d":{"x":{"z":1}}}"#),
        (r#"{"d":{"x": 1}}"#, r#"{"d":{"x":2}}"#),
        (r#"{"a":1,"a":2}"#, r#"{"b":1}"#),
    ] {
        let mut members = json::Patch::default();
        for (name, value) in json::members(patch) {
            if let std::borrow::Cow::Borrowed(name) = name {
                members.add(json::Str::plain(name), value);
            }
        }
        if let Some(merged) = json::merge_patch(base, &members) {
            assert_eq!(merged, json::merge_deep(base, patch), "{base} + {patch}");
        } else {
            assert!(base.contains("\"a\":2") || base.contains(' '), "{base} + {patch}");
        }
    }
}
