//! Markup among the rest of a stream: parts of the protocol, attributes, native calls, limits, ids.

use std::fmt::Write as _;

use crate::support::{Owned, decode, decode_with, options};
use crate::tables::parts;
use deltafold::contract::Payload;
use deltafold::decoder::Decoder;
use serde_json::{Value, json};

fn sse(events: &[Value]) -> Vec<u8> {
    let mut body = String::new();
    for event in events {
        if let Some(name) = event["type"].as_str() {
            writeln!(body, "event: {name}").unwrap();
        }
        write!(body, "data: {event}\n\n").unwrap();
    }
    body.into_bytes()
}

fn chat(deltas: &[Value]) -> Vec<u8> {
    let chunks: Vec<Value> = deltas
        .iter()
        .map(|delta| json!({"choices": [{"delta": delta}]}))
        .chain([json!({"choices": [{"delta": {}, "finish_reason": "stop"}]})])
        .collect();
    [sse(&chunks), b"data: [DONE]\n\n".to_vec()].concat()
}

const CALL: &str = "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}</tool_call>";

#[test]
fn without_a_markup_tags_are_text() {
    let body = chat(&[json!({"content": CALL})]);
    assert_eq!(parts(&decode("openai-chat", &body)), format!("text {}\nstop", json!(CALL)));
}

#[test]
fn reasoning_and_calls_of_the_protocol_are_left_alone() {
    let body = chat(&[
        json!({"reasoning_content": "<think>"}),
        json!({"reasoning_content": CALL}),
        json!({"content": "ok <tool"}),
        json!({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "g", "arguments": "{\"b\": \"<tool_call>\"}"}}]}),
        json!({"content": "_call>"}),
    ]);
    let expected = format!(
        "thinking {}\ntext \"ok <tool\"\ncall g #x {{\"b\": \"<tool_call>\"}}\ntext \"_call>\"\ntool_calls",
        json!(format!("<think>{CALL}"))
    );
    assert_eq!(parts(&decode("openai-chat+hermes", &body)), expected);
}

#[test]
fn another_part_ends_the_markup_of_the_one_before() {
    let block = |index: usize, texts: &[&str]| {
        let mut events = vec![
            json!({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}),
        ];
        events.extend(texts.iter().map(|text| {
            json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}})
        }));
        events.push(json!({"type": "content_block_stop", "index": index}));
        events
    };
    let mut events =
        vec![json!({"type": "message_start", "message": {"id": "m", "model": "x", "content": []}})];
    events.extend(block(0, &["a ", "<tool_ca"]));
    events.extend(block(1, &["ll>b ", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\""]));
    events.extend(block(2, &[": 1}}", CALL, " end"]));
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}));
    events.push(json!({"type": "message_stop"}));
    let expected = "text \"a <tool_ca\"\ntext \"ll>b\"\ncall f {\"a\" …\ntext \": 1}}\"\ncall f {\"a\": 1}\ntext \"end\"\ntool_calls";
    assert_eq!(parts(&decode("anthropic-messages+hermes", &sse(&events))), expected);
}

#[test]
fn a_text_that_the_protocol_says_once_more_is_not_said_twice() {
    let item = json!({"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": format!("Hi {CALL}")}]});
    let events = [
        json!({"type": "response.created", "response": {"id": "r", "model": "x"}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m", "role": "assistant", "content": []}}),
        json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "m", "delta": "Hi <tool_"}),
        json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "m", "delta": &CALL[6..20]}),
        json!({"type": "response.output_text.done", "output_index": 0, "content_index": 0, "item_id": "m", "text": format!("Hi {CALL}")}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [item]}}),
    ];
    let expected = "text \"Hi\"\ncall f {\"a\": 1}\ntool_calls";
    assert_eq!(parts(&decode("openai-responses+hermes", &sse(&events))), expected);
}

#[test]
fn a_whole_body_says_what_a_stream_says() {
    let message = json!({"role": "assistant", "content": format!("<think>hm</think>Hi {CALL}")});
    let body = json!({"object": "chat.completion", "choices": [{"message": message, "finish_reason": "stop"}]});
    let expected = "thinking \"hm\"\ntext \"Hi\"\ncall f {\"a\": 1}\ntool_calls";
    assert_eq!(parts(&decode("openai-chat+hermes", body.to_string().as_bytes())), expected);
    let line = json!({"model": "q", "message": {"role": "assistant", "content": format!("<think>hm</think>Hi {CALL}")}, "done": true, "done_reason": "stop"});
    assert_eq!(parts(&decode("ollama+hermes", format!("{line}\n").as_bytes())), expected);
}

/// Everything that rides on text or thinking, with the number of its part.
fn attributes(deltas: &[Owned]) -> Vec<String> {
    let mut found = Vec::new();
    for delta in deltas {
        if let Payload::Text { part_index, attributes, .. }
        | Payload::Thinking { part_index, attributes, .. } = &delta.payload
        {
            let at = part_index.unwrap();
            found.extend(attributes.annotations.as_ref().map(|json| format!("{at} {json}")));
            found.extend(attributes.logprobs.as_ref().map(|list| format!("{at} {}", list.len())));
        }
    }
    found
}

#[test]
fn citations_stay_with_the_text_and_log_probabilities_with_the_latest_part() {
    let logprob = json!({"content": [{"token": "x", "logprob": -0.5, "top_logprobs": []}]});
    let chunk =
        |text: &str| json!({"choices": [{"delta": {"content": text}, "logprobs": logprob}]});
    let cited = json!({"choices": [{"delta": {"content": "", "annotations": [{"n": 1}]}}]});
    let events = [
        chunk("<think>"),
        chunk("hm"),
        chunk("</think>"),
        chunk("Hi"),
        cited.clone(),
        chunk(CALL),
        cited,
        json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
    ];
    let body = [sse(&events), b"data: [DONE]\n\n".to_vec()].concat();
    let mut wanted = options("openai-chat+hermes");
    wanted.stream.logprobs = true;
    let deltas = decode_with(Decoder::new(wanted).unwrap(), [body.as_slice()]);
    // Before any text the message has no part, so the first part has an empty text.
    let expected = ["0 1", "1 1", "1 1", "2 1", "2 [{\"n\":1}]", "2 1", "2 [{\"n\":1}]"];
    assert_eq!(attributes(&deltas), expected);
}

#[test]
fn half_a_surrogate_before_a_tag_becomes_a_replacement() {
    let body = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\\ud83d\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\\ude00<think\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let expected = "text \"a😀<think\u{fffd}\"\nstop !lone_surrogate";
    assert_eq!(parts(&decode("openai-chat+hermes", body)), expected);
}

#[test]
fn an_error_lets_out_what_is_held() {
    let body = b"data: {\"choices\":[{\"delta\":{\"content\":\"a <tool_\"}}]}\n\ndata: {\"error\":{\"message\":\"no\",\"code\":500}}\n\n";
    assert_eq!(parts(&decode("openai-chat+hermes", body)), "text \"a <tool_\"\nerror server_error");
    let mut decoder = crate::support::decoder("openai-chat+qwen-xml");
    let mut deltas: Vec<Owned> = Vec::new();
    let mut take = |delta: &deltafold::Delta<&str>| deltas.push(delta.to_owned());
    let mut out = crate::support::Each(&mut take);
    decoder.feed(
        &chat(&[json!({"content": "<tool_call><function=f><parameter=a>x"})])[..90],
        &mut out,
    );
    let failure =
        deltafold::contract::Failure::new(deltafold::ErrorCode::Cancelled, "enough".into());
    decoder.fail(failure, &mut out);
    assert_eq!(parts(&deltas), "call f {\"a\":\"x …\nerror cancelled");
}

#[test]
fn made_up_ids_depend_on_the_order_of_calls_alone() {
    let ids = |pieces: &[&str]| {
        let deltas: Vec<Value> = pieces.iter().map(|piece| json!({"content": piece})).collect();
        let deltas = decode("openai-chat+hermes", &chat(&deltas));
        let starts = deltas.iter().filter_map(|delta| match &delta.payload {
            Payload::ToolCallStart { id, .. } => Some(id.to_string()),
            _ => None,
        });
        starts.collect::<Vec<_>>()
    };
    let whole = ids(&[&format!("{CALL}{CALL}")]);
    assert_eq!(whole.len(), 2);
    assert_ne!(whole[0], whole[1]);
    assert_eq!(ids(&[&CALL[..9], &CALL[9..], CALL]), whole);
}

#[test]
fn too_many_calls_reach_the_limit() {
    let mut wanted = options("openai-chat+hermes");
    wanted.stream.limits.tool_calls = 3;
    let body = chat(&[json!({"content": CALL.repeat(5)})]);
    let deltas = decode_with(Decoder::new(wanted).unwrap(), [body.as_slice()]);
    let Payload::Error(failure) = &deltas.last().unwrap().payload else { panic!("no error") };
    assert_eq!(failure.message.as_deref(), Some("limit reached: tool_calls (3)"));
}
