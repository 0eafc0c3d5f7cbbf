//! The JSON reader and the JSON scanner against serde_json, on tables and on generated and damaged texts.

use std::fmt::Write as _;

use crate::support::oracles::reader::{agree, beyond_serde, read, skip, verdict};
use deltafold::json::scan::{JsonScan, Verdict};
use deltafold::json::{self, Carry, ErrorKind, Reader, Str};
use proptest::prelude::*;
use serde_json::Value;

#[test]
fn tables_agree_with_serde_json() {
    let texts = [
        "",
        " ",
        "null",
        "nul",
        "nulL",
        "true",
        "tru",
        "truely",
        "false",
        "fals",
        "0",
        "-0",
        "00",
        "01",
        "-",
        "--1",
        "1.",
        ".5",
        "1.5",
        "1.5.5",
        "1e",
        "1e+",
        "1e5",
        "1E-5",
        "1e5.5",
        "+1",
        "0x1",
        "1_0",
        "12345678901234567890",
        "123456789012345678901234567890",
        "-9223372036854775808",
        "NaN",
        "Infinity",
        "-Infinity",
        "\"\"",
        "\"a\"",
        "\"",
        "\"a",
        "'a'",
        "\"\\n\\t\\r\\b\\f\\/\\\\\\\"\"",
        "\"\\x\"",
        "\"\\u00e9\"",
        "\"\\u00E9\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\uD83D\\uDE00\"",
        "\"\u{2028}\u{2029}\u{85}\u{7f}\"",
        "\"\u{0}\"",
        "\"\u{1f}\"",
        "\"\n\"",
        "\"\t\"",
        "\"é😀\"",
        "[]",
        "[ ]",
        "[1]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1,2",
        "[1}",
        "]",
        "[[[]]]",
        "{}",
        "{ }",
        "{\"a\":1}",
        "{\"a\":1,}",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\" : 1 , \"b\" : [ ] }",
        "{a:1}",
        "{'a':1}",
        "{\"a\":1 \"b\":2}",
        "{1:2}",
        "{\"a\":1]",
        "{\"a\":1,\"a\":2}",
        "{\"\\u0061\":1,\"a\":2}",
        "{\"\":0}",
        "{} {}",
        "{}x",
        "[]]",
        "1 1",
        "null null",
        "\u{feff}{}",
        "// c\n1",
        "/* c */1",
        "\u{a0}1",
        "\u{b}1",
        "\u{c}1",
        "\t\r\n 1 \t\r\n",
    ];
    for text in texts {
        agree(text);
        for cut in 0..text.len() {
            if let Some(head) = text.get(..cut) {
                agree(head);
            }
        }
    }
}

#[test]
fn every_byte_in_every_state_agrees_with_serde_json() {
    let heads = [
        "",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "[",
        "[1",
        "[1,",
        "\"",
        "\"\\",
        "\"\\u",
        "\"\\u00",
        "-",
        "0",
        "1",
        "1.",
        "1.5",
        "t",
        "tr",
        "f",
        "nul",
        "[[",
        "{\"a\":{",
        "null",
        "\"a\"",
        "{}",
    ];
    let tails =
        ["", "}", "]", "\"", "0", "00\"", "e\"]", "l", "rue", "alse", ":1}", "\":1}", "\"a\":1}"];
    for head in heads {
        for byte in 0..=0x7F_u8 {
            for tail in tails {
                agree(&format!("{head}{}{tail}", char::from(byte)));
            }
        }
    }
}

#[test]
fn the_bytes_that_end_or_damage_a_string_are_found_at_every_place_of_a_long_one() {
    for byte in ["\"", "\\", "\u{0}", "\u{1f}", " ", "!", "#", "[", "]", "\u{7f}", "\u{80}", "é"] {
        for before in 0..140 {
            for after in [0, 1, 31, 32, 70] {
                agree(&format!("\"{}{byte}n{}\"", "a".repeat(before), "b".repeat(after)));
            }
        }
    }
}

#[test]
fn nesting_is_bounded_and_the_bound_is_named() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested = |depth: usize| {
            let inner = if open == "[" { "" } else { "0" };
            format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
        };
        let text = nested(16);
        assert!(Reader::new(&text, 16).skip().is_ok());
        assert_eq!(Reader::new(&text, 15).skip().unwrap_err().kind, ErrorKind::TooDeep);
        // A bomb of a million brackets costs no stack.
        let bomb = open.repeat(1_000_000);
        assert_eq!(Reader::new(&bomb, 128).skip().unwrap_err().kind, ErrorKind::TooDeep);
        let mut scan = JsonScan::default();
        scan.feed(bomb.as_bytes());
        assert_eq!((scan.verdict(), scan.deepest()), (Verdict::Open, 1_000_000));
    }
    // Depth is given back: brothers do not add up.
    let brothers = format!("[{}[]]", "[],".repeat(1_000));
    assert!(Reader::new(&brothers, 2).skip().is_ok());
}

#[test]
fn typed_reads_take_what_is_of_their_kind_and_skip_the_rest() {
    let count = |text: &str| Reader::new(text, 8).count().unwrap();
    for (text, expected) in [
        ("0", Some(0)),
        (" 12 ", Some(12)),
        ("9999999999999999", Some(9_999_999_999_999_999)),
        ("99999999999999999", Some(99_999_999_999_999_999)),
        ("12.0", Some(12)),
        ("0e3", Some(0)),
        ("1e3", Some(1_000)),
        ("12.5", None),
        ("-1", None),
        ("18446744073709551615", Some(u64::MAX)),
        ("18446744073709551616", None),
        ("1e400", None),
        ("\"12\"", None),
        ("null", None),
        ("[1]", None),
        ("{\"a\":1}", None),
    ] {
        assert_eq!(count(text), expected, "{text}");
    }
    for wrong in ["01", "00", "1.", "1e", "1.e1", "+1", ""] {
        let mut reader = Reader::new(wrong, 8);
        assert!(reader.count().is_err() || reader.end().is_err(), "{wrong}");
    }
    let index = |text: &str| Reader::new(text, 8).integer().unwrap();
    assert_eq!(
        [index("7"), index("-7"), index("7.0"), index("7e0")],
        [Some(7), Some(-7), None, None]
    );
    let float = |text: &str| Reader::new(text, 8).float().unwrap();
    assert_eq!(float("0.5"), Some(0.5));
    for text in [
        "0",
        "-0.0",
        "0.0e-27",
        "1e-27",
        "1e-28",
        "5e-324",
        "4.9e-324",
        "2.2250738585072014e-308",
        "1.7976931348623157e308",
        "9007199254740992",
        "9007199254740993",
        "9007199254740993.0",
        "4503599627370497.5",
        "562949953421312.0625",
        "9223372036854775807",
        "9223372036854775809",
        "18446744073709551615",
        "18446744073709551616",
        "9999999999999999999",
        "0.9999999999999999999",
        "0.30000000000000004",
        "0.50000000000000000",
        "-0.012345678901234567",
        "0.1000000000000000055",
    ] {
        assert_eq!(float(text).map(f64::to_bits), text.parse().ok().map(f64::to_bits), "{text}");
    }
    assert_eq!(float("1e999"), None);
    assert_eq!(float("true"), None);
    let integer = |text: &str| Reader::new(text, 8).integer().unwrap();
    assert_eq!(integer("-9223372036854775808"), Some(i64::MIN));
    assert_eq!(integer("9223372036854775808"), None);
    assert_eq!(integer("1.0"), None);
    let scalar = |text: &str| Reader::new(text, 8).scalar().unwrap().map(|found| found.text());
    assert_eq!(scalar("\"a\\n\"").as_deref(), Some("a\n"));
    assert_eq!(scalar("17").as_deref(), Some("17"));
    assert_eq!(scalar("true"), None);
    let filled = |text: &str| Reader::new(text, 8).filled_string().unwrap().is_some();
    assert_eq!(
        [filled("\"a\""), filled("\"\""), filled("null"), filled("{}")],
        [true, false, false, false]
    );
    let raw = |text: &'static str| Reader::new(text, 8).opt_raw().unwrap();
    assert_eq!(raw(" {\"a\": [1]} x"), Some("{\"a\": [1]}"));
    assert_eq!(raw("null"), None);
    assert_eq!(Reader::new("false", 8).boolean().unwrap(), Some(false));
    assert_eq!(Reader::new("\"false\"", 8).boolean().unwrap(), None);
}

#[test]
fn errors_say_what_and_where() {
    for (text, kind, offset) in [
        ("{\"a\":", ErrorKind::UnexpectedEnd, 5),
        ("{\"a\" 1}", ErrorKind::UnexpectedByte, 5),
        ("[1,]", ErrorKind::UnexpectedByte, 3),
        ("\"a\u{1}\"", ErrorKind::ControlCharacter, 2),
        ("\"a\\x\"", ErrorKind::InvalidEscape, 3),
        ("\"\\u12x4\"", ErrorKind::InvalidEscape, 5),
        ("-x", ErrorKind::InvalidNumber, 1),
        ("{} x", ErrorKind::TrailingBytes, 3),
        ("\"abc", ErrorKind::UnexpectedEnd, 4),
    ] {
        let error = skip(text).unwrap_err();
        assert_eq!((error.kind, error.offset), (kind, offset), "{text:?}");
        let words = error.to_string();
        assert!(words.ends_with(&format!("at byte {offset}")), "{words}");
    }
}

/// Decodes pieces of one text with one carry.
fn decode(pieces: &[&str]) -> (String, u32) {
    let (mut out, mut carry) = (String::new(), Carry::default());
    for raw in pieces {
        Str { raw, escaped: raw.contains('\\') }.decode_into(&mut out, &mut carry);
    }
    carry.flush(&mut out);
    (out, carry.lone)
}

#[test]
fn surrogates_find_each_other_across_pieces_and_nothing_else() {
    let rows: &[(&[&str], &str, u32)] = &[
        (&["\\ud83d", "\\ude00"], "😀", 0),
        (&["a\\uD83D", "\\uDE00b"], "a😀b", 0),
        (&["\\ud83d", "", "\\ude00"], "😀", 0),
        (&["\\ud83d", "x"], "\u{fffd}x", 1),
        (&["\\ud83d", "\\n"], "\u{fffd}\n", 1),
        (&["\\ud83d", "\\u0041"], "\u{fffd}A", 1),
        (&["\\ud83d", "\\ud83d", "\\ude00"], "\u{fffd}😀", 1),
        (&["\\ude00"], "\u{fffd}", 1),
        (&["\\ude00\\ud83d"], "\u{fffd}\u{fffd}", 2),
        (&["\\ud83d"], "\u{fffd}", 1),
        (&["\\u0000\\uffff\\ufffd"], "\u{0}\u{ffff}\u{fffd}", 0),
        (&["\\\\ud83d", "\\\\ude00"], "\\ud83d\\ude00", 0),
        (&["é\u{2028}", "\\/\\b\\f"], "é\u{2028}/\u{8}\u{c}", 0),
    ];
    for (pieces, text, lone) in rows {
        assert_eq!(decode(pieces), ((*text).to_owned(), *lone), "{pieces:?}");
    }
    // One piece without carry says the same.
    assert_eq!(Str { raw: "\\ud83d\\ude00\\ud83d", escaped: true }.text(), "😀\u{fffd}");
    assert!(Str { raw: "\\u0061", escaped: true }.is("a"));
    assert!(Str::plain("a").is("a") && !Str::plain("a").is("b"));
}

/// Places where the raw text of a JSON string may be cut: not inside an escape.
fn token_borders(raw: &str) -> Vec<usize> {
    let mut borders = Vec::new();
    let mut at = 0;
    while at < raw.len() {
        let rest = &raw[at..];
        at += if rest.starts_with("\\u") {
            6
        } else if rest.starts_with('\\') {
            2
        } else {
            rest.chars().next().unwrap().len_utf8()
        };
        borders.push(at);
    }
    borders
}

#[test]
fn a_compact_object_is_written_as_a_merged_one() {
    for (object, written) in [
        (r#"{"a":1,"b":{"c":null}}"#, r#"{"a":1,"b":{"c":null}}"#),
        ("{ \"a\" : 1 }", r#"{"a":1}"#),
        ("{\"a\":1,\r\"b\":2}", r#"{"a":1,"b":2}"#),
        ("{\t}", "{}"),
        ("{}", "{}"),
        ("5", "{}"),
        ("[1]", "{}"),
    ] {
        assert_eq!(json::compact(object), written, "{object}");
        assert_eq!(json::merge_objects("{}", object), written, "{object}");
    }
}

#[test]
fn merging_keeps_what_a_patch_does_not_say() {
    for (base, patch, merged) in [
        ("{}", "{}", "{}"),
        (r#"{"a":1}"#, r#"{"b":2}"#, r#"{"a":1,"b":2}"#),
        (r#"{"a":1,"b":2}"#, r#"{"a":3}"#, r#"{"a":3,"b":2}"#),
        (r#"{"a":1}"#, r#"{"a":null}"#, r#"{"a":1}"#),
        (r#"{"a":null}"#, r#"{"a":1}"#, r#"{"a":1}"#),
        ("{}", r#"{"a":null}"#, r#"{"a":null}"#),
        (r#"{"a":1}"#, r#"{"\u0061":2}"#, r#"{"a":2}"#),
        (r#"{"a":1,"a":2}"#, "{}", r#"{"a":2}"#),
        (r#"{"\"":{"x": [1, 2]}}"#, r#"{"b":"c"}"#, r#"{"\"":{"x": [1, 2]},"b":"c"}"#),
        (r#"{"a":1}"#, "[1]", r#"{"a":1}"#),
        ("null", r#"{"a":1}"#, r#"{"a":1}"#),
    ] {
        assert_eq!(json::merge_objects(base, patch), merged, "{base} + {patch}");
    }
}

#[test]
fn members_of_a_large_object_are_found_in_linear_time() {
    // Quadratic work would be 2 * 10^10 comparisons: it would be noticed.
    let object = |from: usize| {
        let members: Vec<String> =
            (from..from + 200_000).map(|n| format!("\"k{n}\":{n}")).collect();
        format!("{{{}}}", members.join(","))
    };
    let merged = json::merge_objects(&object(0), &object(100_000));
    assert_eq!(json::members(&merged).len(), 300_000);
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        // Eighths: serde_json reads other floats only almost exactly.
        any::<i32>().prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        "[a-c\"\\\\\n\u{0}\u{7f}é\u{2028}😀]{0,12}".prop_map(Value::from),
        "\\PC{0,24}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map("[a-c\"\\\\é]{0,3}", inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A JSON text in one of the forms that say the same: plain, pretty, everything escaped.
fn text_of(value: &Value, form: u8) -> String {
    match form % 3 {
        0 => value.to_string(),
        1 => serde_json::to_string_pretty(value).unwrap(),
        _ => {
            let plain = value.to_string();
            let mut out = String::new();
            for character in plain.chars() {
                if character.is_ascii() {
                    out.push(character);
                } else {
                    let mut units = [0; 2];
                    for unit in character.encode_utf16(&mut units) {
                        write!(out, "\\u{unit:04X}").unwrap();
                    }
                }
            }
            out
        }
    }
}

/// One change of a text.
fn mutate(text: &str, at: prop::sample::Index, how: u8, with: char) -> String {
    let borders: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let place = borders[at.index(borders.len())];
    let (head, tail) = text.split_at(place);
    let rest = tail.chars().next().map_or("", |first| &tail[first.len_utf8()..]);
    match how % 4 {
        0 => head.to_owned(),
        1 => format!("{head}{rest}"),
        2 => format!("{head}{with}{tail}"),
        _ => format!("{head}{with}{rest}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn generated_texts_are_read_as_serde_json_reads_them(value in json(), form in any::<u8>()) {
        let text = text_of(&value, form);
        prop_assert_eq!(read(&text).unwrap(), serde_json::from_str::<Value>(&text).unwrap());
        agree(&text);
    }

    #[test]
    fn a_number_is_the_one_that_the_standard_library_reads(
        value in any::<f64>(),
        single in any::<f32>(),
        short in -40..40_i32,
        digits in "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,24})?([eE][-+]?[0-9]{1,3})?",
    ) {
        let close = value.signum() * 10_f64.powi(short) * (value.abs().log10().fract() + 1.5);
        for text in [digits, format!("{value:?}"), format!("{close:?}"), format!("{single:e}")] {
            let expected = text.parse::<f64>().ok().filter(|value| value.is_finite() && text != "NaN");
            let mut reader = Reader::new(&text, 1);
            if let Ok(found) = reader.float() {
                prop_assert_eq!(found.map(f64::to_bits), expected.map(f64::to_bits), "{}", &text);
                prop_assert!(reader.end().is_ok());
            } else {
                prop_assert_eq!(expected, None, "{}", &text);
            }
        }
    }

    #[test]
    fn a_number_in_the_middle_between_two_floats_is_rounded_to_the_even_one(
        odd in (1_u64 << 53..1 << 54).prop_map(|odd| odd | 1),
        halved in 0..5_u32,
        beside in -1..2_i64,
        exponent in 0..30_u32,
    ) {
        // An integer of 54 bits, halved some times, in its decimal digits; and its neighbours.
        let digits = (odd * 5_u64.pow(halved)).saturating_add_signed(beside).to_string();
        let (whole, fraction) = digits.split_at(digits.len() - halved as usize);
        let point = if halved > 0 { "." } else { "" };
        for text in [format!("{whole}{point}{fraction}"), format!("-{whole}{point}{fraction}e-{exponent}")] {
            let found = Reader::new(&text, 1).float().unwrap();
            prop_assert_eq!(found.map(f64::to_bits), text.parse().ok().map(f64::to_bits), "{}", &text);
        }
    }

    #[test]
    fn damaged_texts_are_refused_where_serde_json_refuses_them(
        value in json(),
        form in any::<u8>(),
        changes in proptest::collection::vec(
            (any::<prop::sample::Index>(), any::<u8>(), prop::sample::select("{}[]\",:\\0 1-.ent\u{1}\né".chars().collect::<Vec<_>>())),
            1..4,
        ),
    ) {
        let mut text = text_of(&value, form);
        for (at, how, with) in &changes {
            text = mutate(&text, *at, *how, *with);
        }
        agree(&text);
    }

    /// At each prefix the scanner says whether something may still follow; serde_json's category EOF is the judge.
    #[test]
    fn the_scanner_judges_every_prefix(
        value in json(),
        form in any::<u8>(),
        change in proptest::option::of((any::<prop::sample::Index>(), any::<u8>(), prop::sample::select("{}[]\",:\\0 1-.et\u{1}".chars().collect::<Vec<_>>()))),
    ) {
        let mut text = text_of(&value, form);
        if let Some((at, how, with)) = &change {
            text = mutate(&text, *at, *how, *with);
        }
        let mut scan = JsonScan::default();
        for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let head = &text[..cut];
            let at_once = verdict(head.as_bytes());
            let expected = match serde_json::from_str::<Value>(head) {
                Ok(_) => Verdict::Complete,
                Err(_) if head.trim_matches([' ', '\t', '\r', '\n']).is_empty() => Verdict::Empty,
                // serde_json looks at the digits of `\u` only when all four are there.
                Err(_) if beyond_serde(head) || half_escape(head) => at_once,
                Err(error) if error.is_eof() => Verdict::Open,
                Err(_) => Verdict::Wrong,
            };
            prop_assert_eq!(at_once, expected, "{:?}", head);
        }
        for byte in text.as_bytes() {
            scan.feed(&[*byte]);
        }
        prop_assert_eq!(scan.verdict(), verdict(text.as_bytes()), "byte by byte {:?}", text);
    }

    #[test]
    fn a_string_written_is_the_string_read(text in any::<String>(), odd in "[\u{0}-\u{1f}\"\\\\\u{7f}\u{2028}😀]{0,40}") {
        for text in [text, odd] {
            let mut out = String::from("[");
            json::write_string(&mut out, &text);
            out.push(']');
            prop_assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), serde_json::json!([&text]));
            prop_assert_eq!(read(&out).unwrap(), serde_json::json!([&text]));
        }
    }

    #[test]
    fn a_text_cut_between_tokens_decodes_to_the_same(
        tokens in proptest::collection::vec(
            prop_oneof!["\\\\ud[89a-f][0-9a-f]{2}", "\\\\u[0-9a-c][0-9a-f]{3}", "\\\\[nrtbf/\\\\\"]", "[a-zé😀]{1,3}", "[a-zé]{8,24}"],
            0..16,
        ),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let raw: String = tokens.concat();
        let mut places: Vec<usize> = token_borders(&raw);
        if !places.is_empty() {
            places = cuts.iter().map(|cut| places[cut.index(places.len())]).collect();
        }
        places.sort_unstable();
        let mut pieces = Vec::new();
        let mut start = 0;
        for place in places.into_iter().chain([raw.len()]) {
            pieces.push(&raw[start..place]);
            start = place;
        }
        let (text, lone) = decode(&pieces);
        prop_assert_eq!(&text, &Str { raw: &raw, escaped: raw.contains('\\') }.text());
        // UTF-16's own decoder is the oracle.  The units come from the tokens, because an escaped backslash before the letters
        // of an escape looks like one.
        let mut units: Vec<u16> = Vec::new();
        for token in &tokens {
            if let Some(hex) = token.strip_prefix("\\u") {
                units.push(u16::from_str_radix(hex, 16).unwrap());
            } else if token.starts_with('\\') {
                let text: String = serde_json::from_str(&format!("\"{token}\"")).unwrap();
                units.extend(text.encode_utf16());
            } else {
                units.extend(token.encode_utf16());
            }
        }
        let mut alone = 0;
        let expected: String = char::decode_utf16(units)
            .map(|unit| unit.unwrap_or_else(|_| { alone += 1; char::REPLACEMENT_CHARACTER }))
            .collect();
        prop_assert_eq!(text, expected);
        prop_assert_eq!(lone, alone);
    }

    #[test]
    fn merging_is_what_maps_do(base in proptest::collection::btree_map("[a-c]{0,2}", json(), 0..8), patch in proptest::collection::btree_map("[a-c]{0,2}", json(), 0..8)) {
        let text = |map: &std::collections::BTreeMap<String, Value>| serde_json::to_string(map).unwrap();
        let mut expected = base.clone();
        for (key, value) in &patch {
            if !value.is_null() || !expected.contains_key(key) {
                expected.insert(key.clone(), value.clone());
            }
        }
        let merged = json::merge_objects(&text(&base), &text(&patch));
        prop_assert_eq!(serde_json::from_str::<Value>(&merged).unwrap(), serde_json::json!(expected));
    }
}

/// Returns whether the text ends or is invalid inside the four digits of an escape.
fn half_escape(text: &str) -> bool {
    text.rfind("\\u").is_some_and(|at| text.len() < at + 6)
}
