//! The first bytes of a body identify its dialect.

use deltafold::detect::detect;

const NOTHING: [&str; 0] = [];

/// Number of bytes that a caller usually has at the first question.
const FIRST: usize = 1 << 10;

#[test]
fn every_recording_is_told_from_its_first_bytes() {
    let mut wrong = Vec::new();
    for recording in crate::support::recordings() {
        let body = &recording.body;
        let found = detect(&body[..body.len().min(FIRST)], None);
        let expected = recording.expected["dialect"].as_str().unwrap_or("");
        let reader = recording.expected["reader"].as_str().unwrap_or("");
        // One recording contains nothing that belongs to any protocol.
        let open = recording.id.ends_with("streaming-failure-invalid-json") && found.is_empty();
        if found != [expected] && found != [reader] && !found.contains(&reader) && !open {
            wrong.push(format!("{}: {found:?}", recording.id));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_fixture_is_told_or_left_open() {
    for fixture in crate::support::fixtures() {
        let found = detect(&fixture.wire, None);
        // Detection never returns markup.
        let (dialect, _) = deltafold::markup::specification(&fixture.dialect);
        let right = found.contains(&dialect)
            // The body of this fixture is valid in Mistral and in Chat.
            || (["mistral", "openai-chat"].contains(&fixture.dialect.as_str())
                && found.iter().any(|name| ["mistral", "openai-chat"].contains(name)))
            // Outside its frames an answer is the inner protocol's own.
            || (fixture.dialect == "bedrock-invoke" && fixture.name.contains("whole-body"));
        let open = found.len() != 1;
        assert!(right || open, "{}: {found:?}", fixture.name);
    }
}

#[test]
fn bodies_at_a_glance() {
    let cases: &[(&str, &[&str])] = &[
        ("data: {\"choices\":[", &["openai-chat"]),
        ("data: {\"model\":\"mistral-small-latest\",\"choices\":[", &["mistral"]),
        ("event: message_start\ndata: {\"mess", &["anthropic-messages"]),
        ("event: response.created\ndata: {", &["openai-responses"]),
        ("{\"type\":\"message\",\"role\":\"assistant\"", &["anthropic-messages"]),
        ("{\n  \"candidates\": [\n", &["gemini"]),
        ("[{\n  \"candidates\": [\n", &["gemini"]),
        ("{\"model\":\"m\",\"created_at\":\"t\",\"message\":{}", &["ollama"]),
        ("{\"output\":{},\"stopReason\":\"end_turn\"", &["bedrock-converse"]),
        ("data: {\"event_type\":\"step.start\"", &["gemini-interactions"]),
        ("{\"event_type\":\"stream-start\"", &["cohere-chat"]),
        (
            "{\"error\":{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\"}}",
            &["gemini", "openai-chat"],
        ),
        (
            "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}",
            &["anthropic-messages", "openai-responses"],
        ),
        ("{\"error\":{\"message\":\"no\",\"type\":\"x\"}}", &["openai-chat", "openai-responses"]),
        ("{\"error\":\"model not found\"}", &["ollama", "openai-chat"]),
        ("{\"message\":\"too many\"}", &["cohere-chat", "bedrock-converse"]),
        (": keep-alive\n\ndata: {\"choices\":[]}\n\n", &["openai-chat"]),
        ("", &NOTHING),
        ("<html>", &NOTHING),
        ("data: [DONE]\n\n", &NOTHING),
        ("{\"x\":1}", &NOTHING),
        ("{", &NOTHING),
        // The text of a model does not affect the detection.
        ("data: {\"text\":\"{\\\"choices\\\":[]}\"}\n\n", &NOTHING),
    ];
    for (body, expected) in cases {
        assert_eq!(&detect(body.as_bytes(), None), expected, "{body}");
    }
}

#[test]
fn frames_are_told_by_their_content_type_too() {
    let both = ["bedrock-converse", "bedrock-invoke"];
    assert_eq!(detect(b"", Some("application/vnd.amazon.eventstream")), both);
    assert_eq!(detect(b"\0\0\0", None), both);
}

#[test]
fn any_beginning_of_any_fixture_is_looked_at_without_harm() {
    for fixture in crate::support::fixtures() {
        for end in 0..fixture.wire.len().min(300) {
            assert!(detect(&fixture.wire[..end], None).len() <= 2, "{}", fixture.name);
        }
    }
}
