//! Log probabilities as arrays: joined in any order, written and read without loss.

use crate::support::{decode_with, fold, options};
use deltafold::contract::{Logprobs, NO_ID};
use deltafold::decoder::Decoder;
use proptest::prelude::*;
use serde_json::{Value, json};

fn read(wire: &Value) -> Logprobs {
    Logprobs::from_json(&wire.to_string(), 16).unwrap()
}

fn open(logprobs: &Logprobs) -> Value {
    serde_json::from_str(&logprobs.to_json()).unwrap()
}

#[test]
fn what_a_record_lacks_is_filled_up_when_others_have_it() {
    let mut all = read(&json!({"tokens": ["a"]}));
    all.append(&read(&json!({"tokens": ["b"], "logprobs": [-1.5], "tokenIds": [7]})));
    all.append(&read(&json!({"logprobs": [-2.0], "top": [[{"token": "d", "logprob": null}]]})));
    all.append(&Logprobs::default());
    all.append(&read(&json!({"tokens": ["e"], "tokenIds": [null]})));
    assert_eq!(all.ids(), Some([NO_ID, 7, NO_ID, NO_ID].as_slice()));
    assert_eq!(all.offsets(), [0, 0, 0, 1, 1]);
    assert_eq!(
        open(&all),
        json!({
            "tokens": ["a", "b", "", "e"],
            "logprobs": [null, -1.5, -2.0, null],
            "tokenIds": [null, 7, null, null],
            "top": [[], [], [{"token": "d", "logprob": null}], []],
        })
    );
    assert!(all.bytes() >= 4 * 16);
}

#[test]
fn what_is_wrong_is_named() {
    for (wire, fault) in [
        ("[]", "the record must be an object"),
        ("{", "the text the JSON text ends inside a value at byte 1"),
        (r#"{"tokens":[true]}"#, "tokens[0] must be a string or null"),
        (r#"{"top":[[{"logprob":"x"}]]}"#, "top[0][0].logprob must be a finite number or null"),
        (r#"{"tokens":["a"],"top":[]}"#, "top must be as long as tokens (1), not 0"),
    ] {
        let found = Logprobs::from_json(wire, 16).unwrap_err();
        assert_eq!(found.to_string(), fault);
    }
}

#[test]
fn a_repeated_member_counts_as_the_last_of_its_name() {
    let entry = r#"{"token":"x","top_logprobs":[{"token":"y","logprob":-1}],"token":"a","logprob":-1,"logprob":-2,"top_logprobs":[{"token":"b","logprob":-3,"token":"c"}]}"#;
    let body = format!(
        "data: {{\"id\":\"c\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"a\"}},\"logprobs\":{{\"content\":[{entry}]}}}}]}}\n\n"
    );
    let mut options = options("openai-chat");
    options.stream.logprobs = true;
    let message = fold(&decode_with(Decoder::new(options).unwrap(), [body.as_bytes()]));
    assert_eq!(
        open(message.logprobs().unwrap()),
        json!({"tokens": ["a"], "logprobs": [-2.0], "top": [[{"token": "c", "logprob": -3.0}]]})
    );
}

/// Logprobs of a whole body with these entries.
fn said(entries: &str) -> Option<Logprobs> {
    let body = format!(
        r#"{{"object":"chat.completion","choices":[{{"message":{{"content":"a"}},"logprobs":{{"content":[{entries}]}}}}]}}"#
    );
    let mut options = options("openai-chat");
    options.stream.logprobs = true;
    let message = fold(&decode_with(Decoder::new(options).unwrap(), [body.as_bytes()]));
    message.logprobs().map(|logprobs| logprobs.as_ref().clone())
}

#[test]
fn an_entry_reads_the_same_in_any_form() {
    let top =
        r#"{"token":"b","logprob":-2,"bytes":[98]},{"token":"c","logprob":-3.5,"bytes":null}"#;
    let usual =
        format!(r#"{{"token":"a\"","logprob":-0.1e-2,"bytes":[97,34],"top_logprobs":[{top}]}}"#);
    let expected = json!({
        "tokens": ["a\""],
        "logprobs": [-0.001],
        "top": [[{"token": "b", "logprob": -2.0}, {"token": "c", "logprob": -3.5}]],
    });
    for (what, entry) in [
        ("usual", usual.clone()),
        ("white space", usual.replace(':', ": ")),
        ("white space in the bytes", usual.replace("97,", "97, ")),
        ("bytes that are numbers of another kind", usual.replace("97,", "-9.7e1,")),
        ("no byte", usual.replace("[97,34]", "[]")),
        ("bytes that are none", usual.replace("[97,34]", "{}")),
        ("deep bytes", usual.replace("[97,34]", "[[[[[97]]]]]")),
        ("no bytes", usual.replace(r#""bytes":[97,34],"#, "")),
        ("another member", usual.replace(r#","top_"#, r#","x":[],"top_"#)),
        ("another member in an alternative", usual.replace("[98]", r#"[98],"x":1"#)),
        ("another member at the end", usual.replace("]}", r#"],"x":0}"#)),
    ] {
        assert_eq!(open(&said(&entry).unwrap()), expected, "{what}");
    }
    // The text has an escape, so that its bytes count.
    for (bytes, list) in [
        ([97, 0, 34].to_vec(), usual.replace("97,", "97,0,")),
        ([0, 97, 34].to_vec(), usual.replace("97,", "0,97,")),
        ([97, 34].to_vec().repeat(9), usual.replace("97,34", &["97,34"; 9].join(","))),
    ] {
        let mut expected = expected.clone();
        expected["bytes"] = json!([bytes]);
        assert_eq!(open(&said(&list).unwrap()), expected, "{bytes:?}");
        assert_eq!(
            open(&said(&list.replace(':', ": ")).unwrap()),
            expected,
            "{bytes:?}, read slowly"
        );
    }
    let order =
        r#"{"top_logprobs":[@],"bytes":[],"logprob":-0.001,"token":"a\""}"#.replace('@', top);
    assert_eq!(open(&said(&order).unwrap()), expected);
}

#[test]
fn entries_of_different_forms_stand_side_by_side() {
    let top =
        r#""top_logprobs":[{"token":"b","logprob":-2,"bytes":[98]},{"token":"c","logprob":-3}]"#;
    let usual = [
        r#"{"token":"a","logprob":-0.5,"bytes":[97]}"#.to_owned(),
        format!(r#"{{"token":"a","logprob":-1,"bytes":[97],{top}}}"#),
        r#"{"token":"token_id:7","logprob":-1.5,"bytes":null,"top_logprobs":[]}"#.to_owned(),
    ];
    // One difference each: in the last alternative, in the bytes, in the last member.
    let unusual = |entry: &String| {
        entry.replace("-3}", "-3 }").replace("[97]}", "[ 97]}").replace("[]}", "[ ]}")
    };
    let slow = |entry: &str| entry.replace("{\"token\":", "{ \"token\":");
    for forms in 0..8_u8 {
        for between in [",", ", ", " ,"] {
            let entries: Vec<String> = usual
                .iter()
                .enumerate()
                .map(
                    |(at, entry)| if forms >> at & 1 == 1 { unusual(entry) } else { entry.clone() },
                )
                .collect();
            let mixed = entries.join(between);
            let expected = said(&slow(&mixed));
            assert_eq!(expected.as_ref().map(Logprobs::len), Some(3), "{mixed}");
            assert_eq!(said(&mixed), expected, "{mixed}");
            assert_eq!(said(&format!("{mixed},")), None, "{mixed},");
            assert_eq!(said(&format!("{mixed},,{mixed}")), None, "{mixed},,");
        }
    }
}

#[test]
fn a_token_that_is_written_as_its_id_has_it_in_any_form() {
    for (token, id) in [
        ("token_id:17", Some(17)),
        ("token_id:9223372036854775807", Some(i64::MAX)),
        ("token_id:9223372036854775808", None),
        ("token_id:-1", None),
        ("token_id:", None),
        ("token_id:1 ", None),
        (r"token_id:\u0031", None),
        (" token_id:1", None),
    ] {
        let entry = format!(r#"{{"token":"{token}","logprob":-1,"bytes":null,"top_logprobs":[]}}"#);
        let usual = said(&format!("{entry},{entry}")).unwrap();
        assert_eq!(
            usual.ids(),
            id.map(|id| [id, id]).as_ref().map(<[i64; 2]>::as_slice),
            "{token}"
        );
        assert_eq!(usual.len(), 2);
        assert_eq!(
            said(&format!("{entry},{entry}").replace(':', ": ").replace("id: ", "id:")),
            Some(usual)
        );
    }
}

#[test]
fn an_entry_nests_as_deep_in_any_form() {
    let said_within = |entry: &str, depth: usize| {
        let body = format!(
            r#"{{"object":"chat.completion","choices":[{{"message":{{"content":"a"}},"logprobs":{{"content":[{entry}]}}}}]}}"#
        );
        let mut options = options("openai-chat");
        options.stream.logprobs = true;
        options.stream.limits.depth = depth;
        let message = fold(&decode_with(Decoder::new(options).unwrap(), [body.as_bytes()]));
        message.logprobs().is_some()
    };
    let token = |bytes: &str| format!(r#"{{"token":"a","logprob":-1,"bytes":{bytes}"#);
    for (entry, needed) in [
        (token("null") + "}", 6),
        (token("[97]") + "}", 7),
        (token("[97]") + r#","top_logprobs":[]}"#, 7),
        (token("null") + r#","top_logprobs":["# + &token("null") + "}]}", 8),
        (token("[97]") + r#","top_logprobs":["# + &token("[97]") + "}]}", 9),
    ] {
        for depth in 5..11 {
            let spaced = entry.replace(':', ": ");
            assert_eq!(said_within(&entry, depth), depth >= needed, "{depth}: {entry}");
            assert_eq!(said_within(&spaced, depth), depth >= needed, "{depth}: {spaced}");
        }
    }
}

#[test]
fn a_wrong_entry_is_wrong_in_the_usual_form_too() {
    let usual = r#"{"token":"a","logprob":-1,"bytes":[97],"top_logprobs":[{"token":"b","logprob":-2,"bytes":[98]}]}"#;
    assert!(said(usual).is_some());
    for (from, to) in [
        ("[97]", "[097]"),
        ("[97]", "[97,]"),
        ("[97]", "[,97]"),
        ("[97]", "[97"),
        ("[97]", "[9-7]"),
        ("[97]", "[97,,97]"),
        ("[97]", "[00]"),
        ("[97]", "[1,2,3,4,05]"),
        ("[97]", "[1,2,3,4,]"),
        ("[97]", "[1,2,3,4,5,6,7,8,9"),
        ("[97]", "[97}"),
        ("[97]", "[97é]"),
        ("-1,", "-01,"),
        ("-1,", "-,"),
        ("-1,", "-1.,"),
        ("-1,", "-1e-,"),
        ("\"a\"", "\"a"),
        ("\"a\"", r#""\x""#),
        ("}]}", "}]"),
        ("}]}", "},]}"),
        ("}]}", "]}"),
    ] {
        let wrong = usual.replacen(from, to, 1);
        assert!(said(&wrong).is_none(), "{wrong}");
    }
}

/// Token, log probability, id, alternatives.
type Row = (Option<String>, Option<f64>, Option<i64>, Vec<String>);

fn records() -> impl Strategy<Value = Vec<Row>> {
    let token = prop::option::of(".{0,3}");
    let number = prop::option::of(any::<f64>().prop_filter("JSON", |number| number.is_finite()));
    let id = prop::option::of(0..i64::MAX);
    prop::collection::vec((token, number, id, prop::collection::vec(".{0,2}", 0..3)), 0..6)
}

fn wire(rows: &[Row]) -> Value {
    let top = |texts: &Vec<String>| -> Vec<Value> {
        texts.iter().map(|text| json!({"token": text, "logprob": -0.25})).collect()
    };
    json!({
        "tokens": rows.iter().map(|row| row.0.clone()).collect::<Vec<_>>(),
        "logprobs": rows.iter().map(|row| row.1).collect::<Vec<_>>(),
        "tokenIds": rows.iter().map(|row| row.2).collect::<Vec<_>>(),
        "top": rows.iter().map(|row| top(&row.3)).collect::<Vec<_>>(),
    })
}

proptest! {
    #[test]
    fn joining_pieces_is_reading_the_whole(rows in records(), cut in any::<prop::sample::Index>()) {
        let whole = read(&wire(&rows));
        let (head, tail) = rows.split_at(cut.index(rows.len() + 1));
        let mut joined = read(&wire(head));
        joined.append(&read(&wire(tail)));
        prop_assert_eq!(&joined, &whole);
        prop_assert_eq!(Logprobs::from_json(&whole.to_json(), 16).unwrap(), whole);
    }
}
