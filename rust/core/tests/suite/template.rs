//! Template decoding makes the same deltas as reading every frame.

use crate::support::binary::{chunk, event};
use crate::support::oracles::streams::templates_agree;
use proptest::prelude::*;

#[test]
fn every_recording_decodes_the_same_without_templates() {
    for recording in crate::support::recordings() {
        templates_agree(&recording.id, &recording.dialect, &recording.body);
    }
}

#[test]
fn every_fixture_decodes_the_same_without_templates() {
    for fixture in crate::support::fixtures() {
        templates_agree(&fixture.name, &fixture.dialect, &fixture.wire);
    }
}

/// Frames that tempt a template: each once more than it takes to learn.
fn stream(frames: &[&str]) -> Vec<u8> {
    frames.iter().flat_map(|frame| format!("data: {frame}\n\n").into_bytes()).collect()
}

#[test]
fn frames_that_tempt_a_template_are_read_right() {
    let text = |text: &str| {
        format!(
            r#"{{"id":"c1","created":7,"model":"m","choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":null}}],"obfuscation":"ab"}}"#
        )
    };
    let learned = [text("one"), text("two"), text("three"), text("four")];
    let tempting = [
        (
            "the literal that follows, in the hole",
            text(r#"x\"},\"finish_reason\":null}],\"obfuscation\":\"ab\"}"#),
        ),
        ("an escape at the edge", text(r"\\")),
        ("an escape at both edges", text(r#"\"a\""#)),
        ("an empty hole", text("")),
        ("a cut escape", text(r"\u12")),
        ("a control character", text("a\u{1}b")),
        ("null for text", learned[0].replace("\"one\"", "null")),
        ("a number for text", learned[0].replace("\"one\"", "5")),
        ("a list for text", learned[0].replace("\"one\"", r#"[{"type":"text","text":"x"}]"#)),
        ("another key", learned[0].replace("\"content\"", "\"refusal\"")),
        ("a new key", learned[0].replace("\"index\":0,", "\"index\":0,\"logprobs\":null,")),
        (
            "a key twice",
            learned[0].replace("\"content\":\"one\"", "\"content\":\"one\",\"content\":\"two\""),
        ),
        ("another index", learned[0].replace("\"index\":0", "\"index\":1")),
        ("an index with a leading zero", learned[0].replace("\"index\":0", "\"index\":00")),
        ("a number that becomes text", learned[0].replace("\"created\":7", "\"created\":\"7\"")),
        ("a number that becomes null", learned[0].replace("\"created\":7", "\"created\":null")),
        ("a number with a leading zero", learned[0].replace("\"created\":7", "\"created\":07")),
        (
            "a finish reason",
            learned[0].replace("\"finish_reason\":null", "\"finish_reason\":\"stop\""),
        ),
        ("an error instead", r#"{"error":{"message":"no","code":500}}"#.to_owned()),
        (
            "an error beside",
            learned[0].replace("\"created\":7", "\"error\":{\"message\":\"no\"},\"created\":7"),
        ),
        ("bytes behind it", format!("{}x", learned[0])),
        ("the frame twice", format!("{}{}", learned[0], learned[0])),
        ("cut", learned[0][..learned[0].len() - 3].to_owned()),
        ("spaces before the brace", learned[0].replace("\"ab\"}", "\"ab\"   }")),
        (
            "usage",
            learned[0].replace(
                "\"created\":7",
                "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1},\"created\":7",
            ),
        ),
    ];
    for (name, frame) in &tempting {
        for repeats in 1..=3 {
            let mut frames: Vec<&str> = learned.iter().map(String::as_str).collect();
            frames.extend(std::iter::repeat_n(frame.as_str(), repeats));
            frames.extend(learned.iter().map(String::as_str));
            frames.push("[DONE]");
            templates_agree(name, "openai-chat", &stream(&frames));
        }
    }
}

#[test]
fn reasoning_details_that_tempt_a_template_are_read_right() {
    let chunk = |reasoning: &str, details: &str| {
        format!(
            r#"{{"id":"c","model":"m","choices":[{{"index":0,"delta":{{"role":"assistant","content":"","reasoning":{reasoning},"reasoning_details":{details}}},"finish_reason":null}}]}}"#
        )
    };
    let entry = |text: &str| {
        format!(r#"[{{"type":"reasoning.text","text":"{text}","format":"unknown","index":0}}]"#)
    };
    let both = |text: &str| chunk(&format!("\"{text}\""), &entry(text));
    let learned: Vec<String> = ["a", " b", "c", " d"].iter().map(|text| both(text)).collect();
    let signed = r#"[{"type":"reasoning.text","text":null,"signature":"s","index":0}]"#;
    let encrypted = r#"[{"type":"reasoning.encrypted","data":"abc","index":1}]"#;
    let tempting = [
        ("other texts", chunk("\"x\"", &entry("y"))),
        ("escapes", both(r#"\"}]\u00e9\\"#)),
        ("half a surrogate pair", both(r"\ud83d")),
        ("two entries", chunk("\"xy\"", r#"[{"type":"reasoning.text","text":"x"},{"text":"y"}]"#)),
        ("a signature alone", chunk("null", signed)),
        ("an encrypted entry", chunk("null", encrypted)),
        ("an entry alone that repeats", chunk("null", &entry("a bc d"))),
        ("an entry alone", chunk("null", &entry("x"))),
        ("an empty list", chunk("\"x\"", "[]")),
        ("null", chunk("\"x\"", "null")),
        ("an object", chunk("\"x\"", r#"{"type":"reasoning.text","text":"x"}"#)),
        ("a text", chunk("\"x\"", "\"x\"")),
        ("no details", learned[0].replace("reasoning_details", "other_details")),
        (
            "deeper entries",
            chunk("\"x\"", r#"[{"type":"reasoning.text","text":"x","more":[[[1]]]}]"#),
        ),
        ("a list that is cut", chunk("\"x\"", r#"[{"type":"reasoning.text""#)),
        ("a list that goes on", chunk("\"x\"", &(entry("x") + "]"))),
        ("white space before the list", chunk("\"x\"", &format!(" {}", entry("x")))),
        ("a line end inside", both("x").replace(",\"format", ",\ndata: \"format")),
        ("a cut line inside", both("x").replace(",\"format", ",\n\"format")),
        ("content beside", both("x").replace("\"content\":\"\"", "\"content\":\"said\"")),
        ("a refusal beside", both("x").replace("\"content\":\"\"", "\"refusal\":\"no\"")),
    ];
    for (what, tempting) in tempting {
        let mut frames: Vec<&str> = learned.iter().map(String::as_str).collect();
        frames.extend([tempting.as_str(), &learned[3], tempting.as_str(), &learned[0], "[DONE]"]);
        templates_agree(what, "openai-chat", &stream(&frames));
    }
}

#[test]
fn counts_that_tempt_a_template_are_read_right() {
    let chunk = |usage: &str| {
        format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"text":"a"}}]}},"index":0}}],"usageMetadata":{usage},"modelVersion":"m","responseId":"r"}}"#
        )
    };
    let counts = |count: &str| {
        chunk(&format!(
            r#"{{"promptTokenCount":12,"candidatesTokenCount":{count},"promptTokensDetails":[{{"modality":"TEXT","tokenCount":12}}]}}"#
        ))
    };
    let learned: Vec<String> = ["1", "2", "2", "13"].iter().map(|count| counts(count)).collect();
    let tempting = [
        ("a leading zero", counts("014")),
        ("a sign", counts("-1")),
        ("a fraction", counts("1.5")),
        ("an exponent", counts("1e2")),
        ("more than 64 bits", counts("99999999999999999999")),
        ("no digits", counts("")),
        ("null", counts("null")),
        ("text", counts("\"14\"")),
        ("a number of a list", learned[0].replace("\"tokenCount\":12", "\"tokenCount\":13")),
        ("another modality", learned[0].replace("TEXT", "AUDIO")),
        ("a member less", chunk(r#"{"promptTokenCount":12}"#)),
        ("a member more", counts("14,\"thoughtsTokenCount\":5")),
        ("a member twice", counts("14,\"candidatesTokenCount\":15")),
        ("an object that goes on", counts("14}")),
        ("no object", chunk("[]")),
        ("white space before the object", chunk(" {\"promptTokenCount\":12}")),
        (
            "a line end inside",
            counts("14").replace("12,\"promptTokensDetails", "12,\ndata: \"promptTokensDetails"),
        ),
        (
            "a cut line inside",
            counts("14").replace("12,\"promptTokensDetails", "12,\n\"promptTokensDetails"),
        ),
        ("a cut line in the same record", learned[0].replace("12,\"", "12,\n\"")),
    ];
    for (what, tempting) in tempting {
        let mut frames: Vec<&str> = learned.iter().map(String::as_str).collect();
        frames.extend([tempting.as_str(), &learned[3], tempting.as_str(), &learned[0]]);
        templates_agree(what, "gemini", &stream(&frames));
    }
}

#[test]
fn log_probabilities_that_tempt_a_template_are_read_right() {
    let usual = r#"{"content":[{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[]}],"refusal":null}"#;
    let chunk = |logprobs: &str, reason: &str| {
        format!(
            r#"{{"id":"c","model":"m","choices":[{{"index":0,"delta":{{"content":"a"}},"logprobs":{logprobs},"finish_reason":{reason}}}]}}"#
        )
    };
    let learned = chunk(usual, "null");
    let with = |from: &str, to: &str| chunk(&usual.replace(from, to), "null");
    let tempting = [
        ("another number", with("-0.5", "-0.25")),
        (
            "an alternative",
            with("top_logprobs\":[]", "top_logprobs\":[{\"token\":\"b\",\"logprob\":-1}]"),
        ),
        ("two tokens", with("]}],", "]},{\"token\":\"b\",\"logprob\":-1}],")),
        ("no token", with(usual, r#"{"content":[],"refusal":null}"#)),
        ("an empty object", with(usual, "{}")),
        ("null", with(usual, "null")),
        ("a list", with(usual, "[]")),
        ("text", with(usual, "\"a\"")),
        ("ids inside", with("\"refusal\"", "\"token_ids\":[7],\"refusal\"")),
        ("ids beside", with("\"refusal\":null}", "\"refusal\":null},\"token_ids\":[7]")),
        (
            "the older shape",
            with(usual, r#"{"tokens":["a"],"token_logprobs":[-1],"top_logprobs":[{"b":-2}]}"#),
        ),
        ("an object twice", chunk(&format!("{usual},\"logprobs\":{usual}"), "null")),
        ("deeper than before", with("-0.5,\"bytes\":[97]", "-0.75,\"bytes\":[[[[[[97]]]]]]")),
        ("wrong bytes", with("[97]", "[97")),
        ("a wrong number", with("-0.5", "-.5")),
        ("right, and the frame ends otherwise", chunk(usual, "\"stop\"")),
        ("right, and the frame is cut", learned[..learned.len() - 2].to_owned()),
        ("right, and bytes follow", format!("{learned}x")),
    ];
    for (what, tempting) in tempting {
        let mut frames = [learned.as_str(); 12];
        for at in [4, 6, 7, 11] {
            frames[at] = &tempting;
        }
        templates_agree(what, "openai-chat", &stream(&frames));
        let mut body = stream(&frames);
        let at = body.len() - 12;
        body[at] = 0xFF;
        templates_agree(what, "openai-chat", &body);
    }
}

fn chat_frame() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        "[a-z ]{0,6}",
        Just(r#"\"}"#.to_owned()),
        Just(r"\u00e9".to_owned()),
        Just(r"\ud83d".to_owned()),
        Just(r"\ude00".to_owned()),
        Just("é😀".to_owned()),
        Just(r"\\".to_owned()),
    ];
    let number = prop_oneof![
        Just("7"),
        Just("-0.5e3"),
        Just("\"x\""),
        Just("null"),
        Just("07"),
        Just("true")
    ];
    let member = prop_oneof![
        Just("content"),
        Just("reasoning"),
        Just("reasoning_content"),
        Just("refusal"),
        Just("other")
    ];
    (text.clone(), number, member, text, 0..3_u8, 0..3_usize).prop_map(|(content, created, member, padding, index, spaces)| {
        let gap = " ".repeat(spaces);
        format!(r#"{{"id":"c","created":{created},"model":"m","choices":[{{"index":{},"delta":{{"{member}":"{content}"}}}}],"obfuscation":"{padding}"{gap}}}"#, index / 2)
    })
}

fn details_frame() -> impl Strategy<Value = String> {
    let text = prop_oneof!["[a-z ]{0,9}", Just(r#"\"}]"#.to_owned()), Just(r"\ud83d".to_owned())];
    let reasoning = prop_oneof![4 => Just("\"@\""), 1 => Just("null"), 1 => Just("\"other\"")];
    let details = prop_oneof![
        6 => Just(r#"[{"type":"reasoning.text","text":"@","index":#}]"#),
        1 => Just(r#"[{"type":"reasoning.summary","summary":"@","index":#},{"text":"@"}]"#),
        1 => Just(r#"[{"type":"reasoning.encrypted","data":"@","more":[[#]]}]"#),
        1 => Just(r#"[{"type":"reasoning.text","signature":"@","index":0}]"#),
        1 => Just("[]"),
        1 => Just("null"),
        1 => Just(r#"[{"type":"reasoning.text"}"#),
    ];
    let content = prop_oneof![4 => Just("\"\""), 1 => Just("\"@\""), 1 => Just("null")];
    (text, reasoning, details, content, 0..3_u8).prop_map(|(text, reasoning, details, content, digit)| {
        let frame = format!(r#"{{"id":"c","model":"m","choices":[{{"index":0,"delta":{{"content":{content},"reasoning":{reasoning},"reasoning_details":{details}}}}}]}}"#);
        frame.replace('@', &text).replace('#', &digit.to_string())
    })
}

fn logprobs_frame() -> impl Strategy<Value = String> {
    let entry = prop_oneof![
        4 => Just(r#"{"token":"@","logprob":-#.5,"bytes":[1#,97],"top_logprobs":[]}"#),
        4 => Just(r#"{"token":"@","logprob":-#.5,"bytes":null,"top_logprobs":[{"token":"@","logprob":-#,"bytes":[#]}]}"#),
        2 => Just(r#"{"id":1#,"token":"@","logprob":-#e-7}"#),
        1 => Just(r#"{"token":"token_id:1#","logprob":-1.#}"#),
        1 => Just(r#"{"token":"@","logprob":null,"bytes":[[[[#]]]]}"#),
        1 => Just("#"),
    ];
    let shape = prop_oneof![
        6 => Just(r#"{"content":[@],"refusal":null}"#),
        1 => Just(r#"{"content":[@,@]}"#),
        1 => Just(r#"{"content":[],"refusal":[@]}"#),
        1 => Just(r#"{"tokens":["a"],"token_logprobs":[-1]}"#),
        1 => Just("null"),
        1 => Just("{}"),
        1 => Just(r#"{"content":[@]},"logprobs":{"content":[]}"#),
        1 => Just(r#"{"content":[@]},"token_ids":[7]"#),
        1 => Just(r#"{"content":[@}"#),
    ];
    let text = prop_oneof!["[a-z ]{0,9}", Just(r#"\"}]"#.to_owned()), Just(r"\ud83d".to_owned())];
    (text, entry, shape, 0..9_u8).prop_map(|(text, entry, shape, digit)| {
        let entry = entry.replace('@', &text).replace('#', &digit.to_string());
        let logprobs = shape.replace('@', &entry);
        format!(r#"{{"id":"c","model":"m","choices":[{{"index":0,"delta":{{"content":"{text}"}},"logprobs":{logprobs}}}]}}"#)
    })
}

fn anthropic_frame() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        "[a-z ]{0,6}",
        Just(r#"\"}}"#.to_owned()),
        Just(r"\ud83d".to_owned()),
        Just(r"\ude00".to_owned())
    ];
    let kind = prop_oneof![
        Just(("text_delta", "text")),
        Just(("input_json_delta", "partial_json")),
        Just(("thinking_delta", "thinking")),
        Just(("signature_delta", "signature")),
        Just(("text_delta", "partial_json")),
    ];
    (text, kind, 0..3_u8, 0..3_usize, prop::bool::ANY).prop_map(|(content, (kind, member), index, spaces, stop)| {
        let gap = " ".repeat(spaces);
        if stop && content.is_empty() {
            format!(r#"{{"type":"content_block_stop","index":{index}{gap}}}"#)
        } else {
            format!(r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"{kind}","{member}":"{content}"}}{gap}}}"#)
        }
    })
}

fn bedrock_frame() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        "[a-z ]{0,6}",
        Just(r#"\"}}"#.to_owned()),
        Just(r"\ud83d".to_owned()),
        Just(r"\ude00".to_owned()),
        Just("é".to_owned()),
    ];
    let shape = prop_oneof![
        Just(r#""text":"@""#),
        Just(r#""toolUse":{"input":"@"}"#),
        Just(r#""reasoningContent":{"text":"@"}"#),
        Just(r#""reasoningContent":{"signature":"@"}"#),
        Just(r#""text":null,"other":"@""#),
    ];
    (text, shape, 0..3_u8, 0..12_usize).prop_map(|(text, shape, index, padding)| {
        let delta = shape.replace('@', &text);
        let padding = "p".repeat(padding);
        format!(r#"{{"contentBlockIndex":{index},"delta":{{{delta}}},"p":"{padding}"}}"#)
    })
}

fn ollama_line() -> impl Strategy<Value = String> {
    let text = prop_oneof!["[a-z ]{0,6}", Just(r#"\"}"#.to_owned()), Just(r"\ud83d".to_owned())];
    let shape = prop_oneof![
        Just(r#""message":{"role":"assistant","content":"@"}"#),
        Just(r#""message":{"role":"assistant","content":"","thinking":"@"}"#),
        Just(r#""message":{"content":"@","thinking":"@"}"#),
        Just(r#""response":"@""#),
        Just(r#""response":"@","logprobs":[{"token":"@","logprob":-1}]"#),
    ];
    (text, shape, 0..9_u8).prop_map(|(text, shape, second)| {
        let said = shape.replace('@', &text);
        format!(r#"{{"model":"m","created_at":"2026-01-01T00:00:0{second}Z",{said},"done":false}}"#)
    })
}

fn gemini_chunk() -> impl Strategy<Value = String> {
    let text = prop_oneof!["[a-z ]{0,6}", Just(r#"\"}]}"#.to_owned()), Just(r"\ud83d".to_owned())];
    let part = prop_oneof![
        Just(r#"{"text":"@"}"#),
        Just(r#"{"text":"@","thought":true}"#),
        Just(r#"{"text":"@","thought":false}"#),
        Just(r#"{"thought":true,"text":"@"}"#),
        Just(r#"{"text":"@","thoughtSignature":"c2ln"}"#),
        Just(r#"{"text":"@"},{"text":"more"}"#),
        Just(r#"{"text":"@","videoMetadata":{"fps":1}}"#),
        Just(r#"{"functionCall":{"name":"@"}}"#),
    ];
    let beside = prop_oneof![
        Just(""),
        Just(r#","usageMetadata":{"promptTokenCount":4}"#),
        Just(r#","usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":#}"#),
        Just(
            r#","usageMetadata":{"promptTokenCount":4,"promptTokensDetails":[{"modality":"AUDIO","tokenCount":#}]}"#
        ),
        Just(r#","usageMetadata":{"promptTokenCount":4,"a":{"b":[[{"c":#}]]}}"#),
        Just(r#","usageMetadata":{"promptTokenCount":0#}"#),
        Just(r#","usageMetadata":{"promptTokenCount":#,}"#),
        Just(r#","usageMetadata":{}"#),
        Just(r#","usageMetadata":null"#),
        Just(r#","error":null"#),
        Just(r#","promptFeedback":{"safetyRatings":[]}"#),
    ];
    (text, part, beside, 0..2_u8, 0..9_u8, 0..2_usize).prop_map(
        |(text, part, beside, index, second, spaces)| {
            let part = part.replace('@', &text);
            let beside = beside.replace('#', &second.to_string());
            let gap = " ".repeat(spaces);
            format!(
                r#"{{"candidates":[{{"content":{{"parts":[{part}],"role":"model"}},"index":{index}}}],"createTime":"0{second}","modelVersion":"m","responseId":"r"{beside}{gap}}}"#
            )
        },
    )
}

fn interactions_event() -> impl Strategy<Value = String> {
    let text = prop_oneof!["[a-z ]{0,6}", Just(r#"\"}"#.to_owned()), Just(r"\ud83d".to_owned())];
    let delta = prop_oneof![
        Just(r#"{"text":"@","type":"text"}"#),
        Just(r#"{"type":"text","text":"@"}"#),
        Just(r#"{"type":"text","text":"@","annotations":[{"url":"u"}]}"#),
        Just(r#"{"content":{"type":"text","text":"@"},"type":"thought_summary"}"#),
        Just(r#"{"arguments":"@","type":"arguments_delta"}"#),
        Just(r#"{"arguments":{"x":"@"},"type":"arguments_delta"}"#),
        Just(r#"{"signature":"@","type":"thought_signature"}"#),
    ];
    let metadata = prop_oneof![
        4 => Just(""),
        1 => Just(r#","metadata":{"total_usage":{"total_input_tokens":3}}"#),
    ];
    (text, delta, metadata, 0..3_u8, 0..9_u8).prop_map(|(text, delta, metadata, index, id)| {
        let delta = delta.replace('@', &text);
        format!(
            r#"{{"index":{index},"delta":{delta},"event_type":"step.delta","event_id":"e{id}"{metadata}}}"#
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn generated_log_probabilities_decode_the_same_without_templates(frames in prop::collection::vec(logprobs_frame(), 1..40)) {
        let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
        templates_agree("generated", "openai-chat", &stream(&frames));
    }

    #[test]
    fn generated_reasoning_details_decode_the_same_without_templates(frames in prop::collection::vec(details_frame(), 1..40)) {
        let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
        templates_agree("generated", "openai-chat", &stream(&frames));
    }

    #[test]
    fn generated_chunks_decode_the_same_without_templates(frames in prop::collection::vec(chat_frame(), 1..40)) {
        let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
        templates_agree("generated", "openai-chat", &stream(&frames));
    }

    #[test]
    fn generated_events_decode_the_same_without_templates(frames in prop::collection::vec(anthropic_frame(), 1..40)) {
        let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
        templates_agree("generated", "anthropic-messages", &stream(&frames));
    }

    #[test]
    fn generated_gemini_chunks_decode_the_same_without_templates(frames in prop::collection::vec(gemini_chunk(), 1..40)) {
        let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
        templates_agree("generated", "gemini", &stream(&frames));
    }

    #[test]
    fn generated_steps_decode_the_same_without_templates(frames in prop::collection::vec(interactions_event(), 1..40)) {
        let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
        templates_agree("generated", "gemini-interactions", &stream(&frames));
    }

    #[test]
    fn generated_frames_decode_the_same_without_templates(frames in prop::collection::vec(bedrock_frame(), 1..40)) {
        let body: Vec<u8> = frames.iter().flat_map(|json| event("contentBlockDelta", json)).collect();
        templates_agree("generated", "bedrock-converse", &body);
        let wrapped = |json: &String| chunk(&format!("{{\"contentBlockDelta\":{json}}}"));
        templates_agree("generated", "bedrock-invoke", &frames.iter().flat_map(wrapped).collect::<Vec<u8>>());
    }

    #[test]
    fn generated_lines_decode_the_same_without_templates(lines in prop::collection::vec(ollama_line(), 1..40)) {
        templates_agree("generated", "ollama", lines.join("\n").as_bytes());
    }
}
