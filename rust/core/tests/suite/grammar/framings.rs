//! The strictness of the framings and of the JSON in them.

use super::{Checker, verdict};

const HEAD: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;

fn refused(target: &str, body: &str, words: &str) {
    let violation = verdict(target, body.as_bytes()).unwrap_err();
    assert!(violation.rule.contains(words), "{target}: {body:?}\n{violation}\nlacks {words:?}");
}

#[test]
fn server_sent_events_have_one_form() {
    let event = format!("data: {HEAD}\n\n");
    for (body, words) in [
        (format!("data:{HEAD}\n\n"), "has no place in an event"),
        (format!("data:  {HEAD}\n\n"), "exactly one space"),
        (format!("data: {HEAD}\r\n\r\n"), "the line holds a CR"),
        (format!("data: {HEAD}\ndata: {HEAD}\n\n"), "a blank line must follow the `data:` line"),
        (format!("{event}\n"), "a blank line without an event"),
        (format!("\n{event}"), "a blank line without an event"),
        (format!("id: 1\n{event}"), "has no place in an event"),
        (format!("retry: 1\n{event}"), "has no place in an event"),
        (format!("{event}: ping\n\n"), "has no place in an event"),
        (format!("{event}:keep-alive\n\n"), "has no place in an event"),
        (format!("{event}: keep-alive\n{event}"), "a blank line must follow the comment"),
        (format!("event: a\nevent: b\n{event}"), "two `event:` lines"),
        ("event: a\n\n".to_owned(), "a blank line without an event"),
        (format!("\u{feff}{event}"), "has no place in an event"),
        (format!("data: {HEAD}\n"), "the body ends inside an event"),
        (format!("data: {HEAD}"), "the body ends inside an event"),
        (format!("{event}: keep-alive\n"), "the body ends inside an event"),
        (String::new(), "ends without `RUN_FINISHED`"),
    ] {
        refused("ag-ui", &body, words);
    }
    let violation = verdict("ag-ui", b"data: \xFF\n\n").unwrap_err();
    assert_eq!(violation.rule, "the event is not UTF-8");
}

#[test]
fn the_json_of_an_event_is_compact_and_safe_for_every_line_reader() {
    for (data, words) in [
        (r#"{"type": "x"}"#, "white space"),
        ("{\"type\":\"x\"\t}", "white space"),
        (r#"{"type":"x"} "#, "white space"),
        ("{\"type\":\"a\u{2028}b\"}", "must be escaped"),
        ("{\"type\":\"a\u{2029}b\"}", "must be escaped"),
        ("{\"type\":\"a\u{85}b\"}", "must be escaped"),
        (r#"{"type":"x","type":"x"}"#, "the key `type` stands in its object twice"),
        (r#"{"a":{"b":1,"c":2,"\u0062":1}}"#, "the key `b` stands in its object twice"),
        (r#"{"type":"x""#, "not JSON"),
        (r#"{"type":NaN}"#, "not JSON"),
        (r#"{"type":"x"}}"#, "not JSON"),
        ("[]", "`the event` must be an object"),
    ] {
        refused("ag-ui", &format!("data: {data}\n\n"), words);
    }
    // White space inside of a string is text.
    refused("ag-ui", "data: {\"type\":\"a \\\" b\\\\\"}\n\n", "must come first");
}

#[test]
fn an_array_has_one_form() {
    let error = r#"{"error":{"code":503,"message":"]}\"{[","status":"UNAVAILABLE"}}"#;
    verdict("gemini-array", format!("[{error}]").as_bytes()).unwrap();
    for (body, words) in [
        (error.to_owned(), "the array must begin with `[`"),
        (format!("[ {error}]"), "an element of the array must be an object"),
        (format!("[{error} ]"), "`,` or `]` must follow"),
        (format!("[{error},]"), "an element of the array must be an object"),
        (format!("[{error}]\n"), "nothing may follow the end of the array"),
        (format!("[{error}"), "the body ends inside an event"),
        ("[]".to_owned(), "ends without a finish reason"),
        ("[1]".to_owned(), "an element of the array must be an object"),
        (String::new(), "the body ends inside an event"),
    ] {
        refused("gemini-array", &body, words);
    }
}

#[test]
fn a_line_has_one_form() {
    let line = r#"{"error":"m"}"#;
    for (body, words) in [
        (format!("{line}\r\n"), "the line holds a CR"),
        (format!("\n{line}\n"), "the line is blank"),
        (line.to_owned(), "the body ends inside an event"),
        (format!("[{line}]\n"), "must be an object"),
    ] {
        refused("ollama", &body, words);
    }
}

#[test]
fn nothing_may_come_after_the_end_of_the_body() {
    let mut checker = Checker::new("ollama").unwrap();
    checker.feed(b"{\"error\":\"m\"}\n").unwrap();
    checker.close().unwrap();
    checker.close().unwrap();
    checker.feed(b"").unwrap();
    let violation = checker.feed(b"{").unwrap_err();
    assert_eq!(violation.to_string(), "ollama, event 2: bytes after the end of the body");
    assert_eq!(checker.close(), Err(violation));
}
