//! The reader of unfinished JSON: tables, every cut against serde_json, generated and damaged texts, counted work.

use std::fmt::Write as _;

use crate::support::oracles::partial_json::{DEPTH, agree_with_serde, read, told, value};
use deltafold::fold::partial_json::{Event, Log, PartialJson};
use deltafold::json::{Error, ErrorKind};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Returns whether some object writes a key twice, which replaces a value that was shown.
fn repeats_a_key(reader: &PartialJson) -> bool {
    let mut open: Vec<Vec<&str>> = Vec::new();
    reader.log().events().any(|event| {
        match event {
            Event::Object | Event::Array => open.push(Vec::new()),
            Event::End => drop(open.pop()),
            Event::Key(key) => {
                let keys = open.last_mut().expect("an object");
                keys.push(key);
                return keys[..keys.len() - 1].contains(&key);
            }
            _ => {}
        }
        false
    })
}

/// Returns whether `later` extends `earlier`.
fn grew(earlier: Option<&Value>, later: Option<&Value>) -> bool {
    match (earlier, later) {
        (None, _) => true,
        (Some(Value::String(a)), Some(Value::String(b))) => b.starts_with(a.as_str()),
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() <= b.len() && a.iter().zip(b).all(|(a, b)| grew(Some(a), Some(b)))
        }
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            a.iter().all(|(key, a)| grew(Some(a), b.get(key)))
        }
        (a, b) => a == b,
    }
}

/// Every prefix and every cut in two: equal states, growing values, and what serde_json reads of the whole.
fn assert_all_cuts(text: &[u8]) {
    let whole = read(&[text]);
    let mut last = None;
    let mut stepped = PartialJson::new(DEPTH);
    for cut in 0..=text.len() {
        let (head, tail) = text.split_at(cut);
        let mut reader = read(&[head]);
        assert_eq!(reader, stepped, "prefix of {cut}");
        let shown = value(&reader);
        assert!(
            repeats_a_key(&whole) || grew(last.as_ref(), shown.as_ref()),
            "{last:?} then {shown:?}"
        );
        last = shown;
        reader.feed(tail);
        assert_eq!(reader, whole, "cut at {cut}");
        if let Some(byte) = text.get(cut) {
            stepped.feed(&[*byte]);
        }
    }
    agree_with_serde(&whole, text);
}

const TEXTS: &[&str] = &[
    "",
    " \n\t\r",
    "null",
    " true ",
    "false",
    "0",
    "-0",
    "12.5e-3 ",
    "1E+2",
    "\"\"",
    "\"plain\"",
    r#""\"\\\/\b\f\n\r\t\u00e9\u20AC\ud83d\ude00""#,
    r#""\ud83d""#,
    r#""\ud83d\ud83d\ude00\ude00 x""#,
    r#""\ud83d\n\ude00""#,
    r#"{"\ud83d\ude00":1,"\ud83d":2}"#,
    "\"grüße ☃ 😀\"",
    "[]",
    "{}",
    "[ ]",
    "[1,2.5,-3,true,false,null,\"x\",[],{},[[]]]",
    r#"{"a":{"b":[{"c":"d"},{"e":null}]},"f":1}"#,
    r#" { "a" : 1 , "b" : [ 1 , 2 ] } "#,
    r#"{"a":1,"b":2,"a":{"c":3}}"#,
    r#"{"":""}"#,
    "[123456789012345678901234567890]",
];

#[test]
fn every_prefix_and_every_cut_of_every_text() {
    for text in TEXTS {
        assert_all_cuts(text.as_bytes());
    }
    for bytes in [
        b"\"\xE2\x82\"".as_slice(),
        b"\"\xF0\x9F\x98x\xE0\x80\xFF\"",
        b"\"\xE2\\n\xC3\\u00e9\"",
        b"{\"\xF0\x9F\":1}",
        b"\"\\ud83d\xE2\x82\xAC\"",
    ] {
        assert_all_cuts(bytes);
    }
}

#[test]
fn every_cut_of_the_frames_and_arguments_of_every_fixture() {
    let fixtures = crate::support::fixtures();
    assert!(!fixtures.is_empty());
    for fixture in fixtures {
        for line in fixture.wire.split(|byte| matches!(byte, b'\n' | b'\r')) {
            assert_all_cuts(line.strip_prefix(b"data:").unwrap_or(line));
        }
        let message =
            crate::support::fold(&crate::support::decode(&fixture.dialect, &fixture.wire));
        for (_, call) in message.tool_calls() {
            assert_all_cuts(call.args.as_bytes());
        }
    }
}

#[test]
fn a_string_is_told_as_far_as_it_is_known() {
    for (head, known) in [
        (r#""ab"#, "ab"),
        (r#""ab\"#, "ab"),
        (r#""ab\u00e"#, "ab"),
        (r#""ab\u00e9"#, "abé"),
        (r#""ab\ud83d"#, "ab"),
        (r#""ab\ud83d\"#, "ab"),
        (r#""ab\ud83d\ude0"#, "ab"),
        (r#""ab\ud83d\ude00"#, "ab😀"),
        (r#""ab\ud83dx"#, "ab\u{FFFD}x"),
        (r#""ab\ude00"#, "ab\u{FFFD}"),
    ] {
        assert_eq!(value(&read(&[head.as_bytes()])), Some(json!(known)), "{head}");
    }
    assert_eq!(value(&read(&[b"\"\xE2\x82"])), Some(json!("")));
}

#[test]
fn numbers_literals_and_members_wait_until_they_cannot_change() {
    for (head, known) in [
        ("[1", json!([])),
        ("[1.5e", json!([])),
        ("[1,", json!([1])),
        ("[tru", json!([])),
        ("[true", json!([true])),
        (r#"{"a"#, json!({})),
        (r#"{"a":"#, json!({})),
        (r#"{"a":""#, json!({"a": ""})),
        (r#"{"a":["#, json!({"a": []})),
        (r#"{"a":1,"a":""#, json!({"a": ""})),
    ] {
        assert_eq!(value(&read(&[head.as_bytes()])), Some(known), "{head}");
    }
    assert_eq!(value(&read(&[b"12"])), None);
}

#[test]
fn an_open_number_is_its_longest_part_that_is_one() {
    for (head, shown) in [
        ("-", None),
        ("-1", Some(Event::Integer("-1"))),
        ("12.", Some(Event::Integer("12"))),
        ("12.5", Some(Event::Float(12.5))),
        ("12.5e", Some(Event::Float(12.5))),
        ("12.5e-", Some(Event::Float(12.5))),
        ("12.5e1", Some(Event::Float(125.0))),
        ("1.5e999", Some(Event::Float(1.5))),
        ("\"1", None),
        ("[1,", None),
    ] {
        assert_eq!(read(&[head.as_bytes()]).open_number(), shown, "{head}");
    }
    let long = "1".repeat(5_000);
    assert_eq!(
        read(&[long.as_bytes()]).open_number(),
        Some(Event::Integer(&long[..4_300])),
        "shown as far as an integer goes"
    );
    let vast = format!("{}.5", "9".repeat(400));
    assert_eq!(read(&[vast.as_bytes()]).open_number(), Some(Event::Integer(&vast[..400])));
}

#[test]
fn in_scalar_tells_whether_a_scalar_value_is_being_written() {
    for (head, inside) in [
        ("", false),
        ("{\"a", false),
        ("{\"a\":", false),
        ("{\"a\":\"", true),
        ("{\"a\":\"\\u1", true),
        ("{\"a\":1", true),
        ("{\"a\":t", true),
        ("{\"a\":true", false),
        ("{\"a\":\"\"", false),
        ("[1,", false),
    ] {
        assert_eq!(read(&[head.as_bytes()]).in_scalar(), inside, "{head}");
    }
}

#[test]
fn every_defect_has_its_kind_and_its_byte() {
    use ErrorKind::{
        ControlCharacter, InvalidEscape, InvalidNumber, NumberTooLarge, TooDeep, TrailingBytes,
        UnexpectedByte, UnexpectedEnd,
    };
    let deep = "[".repeat(DEPTH + 1);
    let digits = format!("[{}]", "1".repeat(4_301));
    for (text, kind, offset) in [
        ("", UnexpectedEnd, 0),
        ("  ", UnexpectedEnd, 2),
        ("[1", UnexpectedEnd, 2),
        ("\"", UnexpectedEnd, 1),
        ("-", UnexpectedEnd, 1),
        ("tru", UnexpectedEnd, 3),
        ("NaN", UnexpectedByte, 0),
        ("Infinity", UnexpectedByte, 0),
        ("-Infinity", InvalidNumber, 1),
        ("\u{FEFF}1", UnexpectedByte, 0),
        ("nul1", UnexpectedByte, 3),
        ("01", InvalidNumber, 1),
        ("-01", InvalidNumber, 2),
        ("1.x", InvalidNumber, 2),
        ("1ex", InvalidNumber, 2),
        ("1e+x", InvalidNumber, 3),
        ("1e999 ", NumberTooLarge, 0),
        (" [1,1e999]", NumberTooLarge, 4),
        ("1e999", NumberTooLarge, 0),
        (digits.as_str(), NumberTooLarge, 1),
        ("1x", TrailingBytes, 1),
        ("{} {", TrailingBytes, 3),
        ("null,", TrailingBytes, 4),
        ("[1x", UnexpectedByte, 2),
        ("[1 2", UnexpectedByte, 3),
        ("[,", UnexpectedByte, 1),
        ("[1,]", UnexpectedByte, 3),
        ("{,", UnexpectedByte, 1),
        ("{1", UnexpectedByte, 1),
        ("{\"a\",", UnexpectedByte, 4),
        ("{\"a\":1,}", UnexpectedByte, 7),
        ("[1}", UnexpectedByte, 2),
        ("{\"a\":1]", UnexpectedByte, 6),
        ("]", UnexpectedByte, 0),
        ("\"a\nb\"", ControlCharacter, 2),
        ("\"\u{0}\"", ControlCharacter, 1),
        ("\"\\x\"", InvalidEscape, 2),
        ("\"\\u12g4\"", InvalidEscape, 5),
        (r#""C:\users""#, InvalidEscape, 5),
        (deep.as_str(), TooDeep, DEPTH),
    ] {
        let mut whole = read(&[text.as_bytes()]);
        whole.close();
        assert_eq!(whole.error(), Some(Error { kind, offset }), "{text:?}");
        assert!(!whole.complete());
        for cut in 0..=text.len() {
            let mut cut = read(&[&text.as_bytes()[..cut], &text.as_bytes()[cut..]]);
            cut.close();
            assert_eq!(cut, whole, "{text:?}");
        }
    }
}

#[test]
fn nothing_changes_after_an_error() {
    let mut reader = read(&[br#"{"a":"kept","b":[1,2,x"#]);
    assert_eq!(value(&reader), Some(json!({"a": "kept", "b": [1, 2]})));
    let error = reader.error();
    assert!(error.is_some());
    reader.feed(b"3]}");
    reader.close();
    assert_eq!(reader.error(), error);
    assert_eq!(value(&reader), Some(json!({"a": "kept", "b": [1, 2]})));
}

#[test]
fn the_depth_limit_is_the_number_of_open_containers() {
    let deep = format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    assert!(read(&[deep.as_bytes()]).complete());
    // Side by side is not deep.
    let wide = format!("[{}[]]", "[],".repeat(10 * DEPTH));
    assert!(read(&[wide.as_bytes()]).complete());
}

#[test]
fn a_log_that_is_taken_begins_anew() {
    let mut reader = read(&[br#"{"a":"on"#]);
    let log = reader.take_log(Log::default());
    assert_eq!(told(log.events()), Some(json!({"a": "on"})));
    assert!(reader.log().is_empty());
    reader.feed(br#"e","b":"#);
    let events: Vec<_> = reader.log().events().collect();
    assert_eq!(events, [Event::Text("e"), Event::StringEnd, Event::Key("b")]);
    let mut log = reader.take_log(log);
    assert!(!log.is_empty());
    log.clear();
    assert!(log.is_empty());
    assert_eq!(reader.bytes(), 15);
}

#[test]
fn work_is_linear_in_the_bytes_and_in_the_feeds() {
    // A long string gives at most one event a feed, and no text is repeated: the texts of the events join to the sent text.
    let text = "x\\n".repeat(100_000);
    let mut reader = PartialJson::new(DEPTH);
    reader.feed(b"\"");
    reader.take_log(Log::default());
    let (mut events, mut told, mut spare) = (0, 0, Log::default());
    for piece in text.as_bytes().chunks(12) {
        reader.feed(piece);
        let mut log = reader.take_log(spare);
        events += log.events().count();
        told += log
            .events()
            .map(|event| if let Event::Text(text) = event { text.len() } else { 0 })
            .sum::<usize>();
        log.clear();
        spare = log;
    }
    assert_eq!(told, 200_000);
    assert!(events <= text.len().div_ceil(12), "{events}");
    // Structure: so many events as tokens, however it is cut.
    let list = format!("[{}0]", "{\"a\":1},".repeat(10_000));
    let whole = read(&[list.as_bytes()]).log().events().count();
    assert_eq!(whole, 10_000 * 4 + 3);
    let bytes: Vec<&[u8]> = list.as_bytes().chunks(1).collect();
    assert_eq!(read(&bytes).log().events().count(), whole);
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|number| json!(number)),
        (-1e9..1e9).prop_map(|number| json!(number)),
        any::<String>().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::btree_map(any::<String>(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The text with all non-ASCII characters escaped, as surrogate pairs above U+FFFF.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        if character.is_ascii() {
            out.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}").unwrap();
            }
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn generated_values_come_back_from_every_cut(wanted in json_value()) {
        let text = wanted.to_string();
        assert_all_cuts(text.as_bytes());
        let ascii = escaped(&text);
        assert_all_cuts(ascii.as_bytes());
        let mut reader = read(&[ascii.as_bytes()]);
        reader.close();
        // serde_json writes the shortest digits of a double, which read back as the same double.
        prop_assert_eq!(value(&reader), Some(wanted));
    }

    #[test]
    fn damaged_texts_are_read_the_same_in_every_cut(
        wanted in json_value(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = wanted.to_string().into_bytes();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        assert_all_cuts(&bytes);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(
        bytes in prop::collection::vec(prop::sample::select(b"{}[]\",:\\u09d8eE+-.tfn \xE2\x82\xF0\n".to_vec()), 0..64),
    ) {
        assert_all_cuts(&bytes);
    }
}
