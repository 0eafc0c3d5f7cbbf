//! Stencils: what a stencil writes is what the rules would have written, and hostile requests panic nowhere.
//!
//! The rules of these tests translate a toy protocol: they swap the names of members, which no stencil knows.

use deltafold::stencil::{KnownForms, Outline, Rows, Stencil};
use proptest::prelude::*;

const ROWS: &str = r#"{
    "history": "turns",
    "most": {"mark": 2},
    "beside": {"system": "$text"},
    "rows": [
        {"speaker": "user", "item": {"who": "user", "says": {"$or": ["$text", ["$text"]]}}},
        {"speaker": "user", "item": {"answers": "$result", "says": {"$or": ["$text", ""]}, "mark?": 1}},
        {"speaker": "assistant", "item": {
            "who": "model",
            "says?": "$text",
            "thinks?": "$optional",
            "calls?": [{"id": "$call", "tool": "$name", "with": {"$or": ["$arguments", "$input"]}}]
        }}
    ]
}"#;

const MARK: &str = "dfmark0x";

fn rows() -> Rows {
    Rows::from_json(ROWS).unwrap()
}

/// Translate as full rules do: every turn, whatever is in it.
fn rules(json: &str) -> String {
    json.replace("\"turns\":", "\"messages\":")
        .replace("\"who\":", "\"role\":")
        .replace("\"thinks\":\"dfmark0x", "\"dropped\":\"dfmark0x")
}

fn translated(json: &str) -> Option<String> {
    let outline = Outline::read(json, &rows())?;
    let sample = outline.sample(json, None, MARK)?;
    let stencil = Stencil::learn(&outline, None, &rules(&sample.body), MARK)?;
    assert!(outline.is_covered(&stencil));
    stencil.fill(&outline, json).map(|(json, _)| json)
}

fn request(turns: &[&str]) -> String {
    format!("{{\"model\":\"m\",\"system\":\"Be brief.\",\"turns\":[{}],\"n\":1}}", turns.join(","))
}

const ASKED: &str = r#"{"who":"user","says":"Hello \u00e9"}"#;
const SAID: &str = r#"{"who":"model","says":"I look."}"#;
const CALLED: &str =
    r#"{"who":"model","says":"I look.","calls":[{"id":"a1","tool":"read","with":{"path":"x"}}]}"#;
const ANSWERED: &str = r#"{"answers":"a1","says":"the file"}"#;

#[test]
fn a_request_is_written_as_the_rules_write_it() {
    let other = CALLED.replace("a1", "b2").replace("I look", "Once more");
    let answer = ANSWERED.replace("a1", "b2").replace("the file", "\\\"quoted\\\"");
    let json = request(&[ASKED, CALLED, ANSWERED, &other, &answer, SAID, ASKED]);
    assert_eq!(translated(&json).unwrap(), rules(&json));
    let outline = Outline::read(&json, &rows()).unwrap();
    assert!(outline.is_whole());
    assert_eq!(outline.sizes().0, 7);
    assert_eq!(outline.written(), 7);
    assert_eq!(outline.identifiers(&json), (vec!["a1", "b2"], vec!["read"]));
    let sample = outline.sample(&json, None, MARK).unwrap();
    assert_eq!(sample.messages.len(), 5, "one round of the two alike: {}", sample.body);
    assert!(!sample.body.contains("Be brief") && !sample.body.contains("the file"));
}

#[test]
fn requests_that_differ_in_texts_have_one_key() {
    let key = |json: &str| Outline::read(json, &rows()).unwrap().key().to_vec();
    let one = request(&[ASKED, CALLED, ANSWERED]);
    assert_eq!(key(&one), key(&one.replace("the file", "another file").replace("a1", "z9")));
    assert_eq!(key(&one), key(&one.replace("Be brief", "Be long")));
    assert_ne!(key(&one), key(&one.replace("\"n\":1", "\"n\":2")));
    assert_ne!(key(&one), key(&one.replace("\"says\":\"the file\"", "\"says\":\"\"")));
}

#[test]
fn a_stencil_learns_the_forms_that_it_lacks() {
    let first = request(&[ASKED, CALLED, ANSWERED, SAID, ASKED]);
    let outline = Outline::read(&first, &rows()).unwrap();
    let sample = outline.sample(&first, None, MARK).unwrap();
    let stencil = Stencil::learn(&outline, None, &rules(&sample.body), MARK).unwrap();
    let second = request(&[ASKED, SAID, ASKED, CALLED, ANSWERED, SAID, ASKED]);
    let more = Outline::read(&second, &rows()).unwrap();
    assert_eq!(outline.key(), more.key());
    assert!(!more.is_covered(&stencil));
    assert!(stencil.fill(&more, &second).is_none());
    let known: Option<&dyn KnownForms> = Some(&stencil);
    let sample = more.sample(&second, known, MARK).unwrap();
    let both = Stencil::learn(&more, Some(&stencil), &rules(&sample.body), MARK).unwrap();
    for (outline, json) in [(&outline, &first), (&more, &second)] {
        assert_eq!(both.fill(outline, json).unwrap().0, rules(json));
    }
}

#[test]
fn messages_that_are_not_plain_stay_as_they_are_between_rounds() {
    let odd = r#"{"who":"user","says":"Look","image":"data"}"#;
    let mut turns = vec![ASKED.to_owned()];
    for number in 0..14 {
        turns.push(CALLED.replace("a1", &format!("c{number}")));
        turns.push(ANSWERED.replace("a1", &format!("c{number}")));
        if number == 4 {
            turns.push(odd.to_owned());
        }
    }
    let turns: Vec<&str> = turns.iter().map(String::as_str).collect();
    let json = request(&turns);
    let outline = Outline::read(&json, &rows()).unwrap();
    assert!(!outline.is_whole());
    assert!(outline.written() >= 20, "{}", outline.written());
    assert_eq!(translated(&json).unwrap(), rules(&json));
}

#[test]
fn what_could_mean_something_else_is_not_plain() {
    for turns in [
        vec![CALLED, ANSWERED],                          // the model speaks first
        vec![ASKED, CALLED],                             // a call without its result
        vec![ASKED, CALLED, ANSWERED, ANSWERED],         // two results of one call
        vec![ASKED, CALLED, ANSWERED, CALLED, ANSWERED], // two calls with one id
        vec![ASKED, SAID],                               // the model speaks last
        vec![ASKED, ANSWERED],                           // a result without its call
    ] {
        assert!(Outline::read(&request(&turns), &rows()).is_none(), "{turns:?}");
    }
    let good = request(&[ASKED, CALLED, ANSWERED]);
    assert!(Outline::read(&good, &rows()).is_some());
    for (from, to) in [
        ("the file", " \\n\\t"),
        ("the file", "\u{a0}"),
        ("the file", "\\ud800"),
        ("the file", "\\udc00\\ud800"),
        ("the file", "call_1"),
        (r#"{"path":"x"}"#, r#"{"path":"x","path":"y"}"#),
        (r#"{"path":"x"}"#, r#"{"p\u0061th":"x"}"#),
        (r#"{"path":"x"}"#, r#"{"path":1.50}"#),
        (r#"{"path":"x"}"#, r#"{"path":1e5}"#),
        (r#"{"path":"x"}"#, r#"{"path":-0}"#),
        (r#"{"path":"x"}"#, r#""{\"path\":1e999}""#),
        (r#"{"path":"x"}"#, r#""[1]""#),
        (r#"{"path":"x"}"#, r#""{\"a\":1} 2""#),
        ("\"a1\",\"tool\"", "\"a\\u0031\",\"tool\""),
        ("\"n\":1", "\"n\":1,\"n\":2"),
        ("\"n\":1}", "\"n\":1,}"),
        ("\"n\":1}", "\"n\":1} 2"),
        ("\"who\":\"user\"", "\"who\":\"user\",\"who\":\"user\""),
    ] {
        assert!(Outline::read(&good.replace(from, to), &rows()).is_none(), "{from} {to}");
    }
    let marked = good.replace("the file\"", "mark \\\"mark\\\" \\\"mark\\\" \"");
    assert!(Outline::read(&marked, &rows()).is_some(), "an escaped quote is no member");
    let marks = good.replace("\"n\":1", r#""n":{"a":[{"mark":1},{"mark":1},{"mark":1}]}"#);
    assert!(Outline::read(&marks, &rows()).is_none());
}

#[test]
fn a_translation_that_moves_a_mark_gives_no_stencil() {
    let json = request(&[ASKED, CALLED, ANSWERED, SAID, ASKED, SAID, ASKED]);
    let outline = Outline::read(&json, &rows()).unwrap();
    let sample = outline.sample(&json, None, MARK).unwrap().body;
    let learn = |made: &str| Stencil::learn(&outline, None, made, MARK);
    assert!(learn(&rules(&sample)).is_some());
    let mark = |number: usize| format!("{MARK}{number}z");
    for changed in [
        sample.replacen(&mark(2), &format!("{} and more", mark(2)), 1), // joined to other text
        sample.replacen(&mark(2), "gone", 1),
        sample.replacen(&mark(2), &format!("{}\",\"{}", mark(2), mark(2)), 1), // twice
        sample.replacen(&mark(2), &mark(999), 1),
        sample.replacen(&mark(2), MARK, 1),
        sample.replacen(&mark(2), &mark(6), 1), // of another round
        sample.replace("\"turns\":[", "\"turns\":[["),
        String::new(),
        "{".to_owned(),
    ] {
        assert!(learn(&changed).is_none(), "{changed}");
    }
}

#[test]
fn a_request_of_the_wrong_size_is_read_in_linear_time() {
    let many = |one: &str, count: usize| vec![one; count].join(",");
    for json in [
        format!("{{{}}}", (0..50_000).map(|n| format!("\"k{n}\":1")).collect::<Vec<_>>().join(",")),
        request(&[
            ASKED,
            &format!(r#"{{"who":"model","calls":[{}]}}"#, many(r#"{"id":"a"}"#, 50_000)),
        ]),
        request(&[ASKED, &format!(r#"{{"who":"user","says":[{}]}}"#, many("\"x\"", 200_000))]),
        format!("{{\"turns\":{}", "[".repeat(500_000)),
        format!("{{\"turns\":{}", "{\"says\":".repeat(100_000)),
        request(&vec![ASKED; 50_000]),
    ] {
        let _ = translated(&json);
    }
}

proptest! {
    #[test]
    fn broken_requests_panic_nowhere(
        at in 0_usize..2_000,
        cut in 0_usize..40,
        with in prop_oneof![Just(String::new()), "[\\PC]{0,6}", Just("\\".to_owned()), Just("\"".to_owned())],
    ) {
        let good = request(&[ASKED, CALLED, ANSWERED, SAID, ASKED, SAID, ASKED]);
        let start = (0..=at.min(good.len())).rev().find(|at| good.is_char_boundary(*at)).unwrap();
        let end = (start + cut).min(good.len());
        let end = (start..=end).rev().find(|at| good.is_char_boundary(*at)).unwrap();
        let broken = format!("{}{with}{}", &good[..start], &good[end..]);
        if let Some(made) = translated(&broken) {
            prop_assert_eq!(made, rules(&broken));
        }
    }
}

#[test]
fn opaque_state_differs_in_ids_and_long_strings_alone() {
    let rows = Rows::from_json(
        r#"{"history":"turns","rows":[
            {"speaker":"user","item":{"who":"user","says":"$text"}},
            {"speaker":"assistant","item":{"who":"$same","says":"$text","state":"$state"}}]}"#,
    )
    .unwrap();
    let state = r#"{"id":"a","kind":"x","data":["0123456789012345678901234567890123456789",1]}"#;
    let forms = |who: &str, state: &str| {
        let said = format!("{{\"who\":\"{who}\",\"says\":\"I look.\",\"state\":{state}}}");
        let json = request(&[ASKED, &said, ASKED, &said, ASKED]);
        let outline = Outline::read(&json, &rows).unwrap();
        outline.forms().concat().concat()
    };
    let known = forms("model", state);
    assert_eq!(
        known,
        forms("model", &state.replace("\"a\"", "\"another\"").replace("0123", "3210"))
    );
    for (word, other) in [("\"x\"", "\"y\""), (",1", ",2"), ("\"data\"", "\"date\"")] {
        assert_ne!(known, forms("model", &state.replace(word, other)), "{word}");
    }
    assert_ne!(known, forms("other", state));
}
