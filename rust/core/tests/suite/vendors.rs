//! Additional members of vendors: nothing is lost, doubled or misplaced.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::support::{decode_with, fold, options};
use deltafold::decoder::Decoder;
use deltafold::fold::{MessageAssembler, Part, Terminal};
use serde_json::{Value, json};

const ANTHROPIC: &str = "anthropic-messages";
const CHAT: &str = "openai-chat";

fn message(dialect: &str, events: &[Value]) -> MessageAssembler {
    let mut options = options(dialect);
    options.stream.logprobs = true;
    let mut body = String::new();
    for event in events {
        write!(body, "data: {event}\n\n").unwrap();
    }
    if dialect == CHAT {
        body.push_str("data: [DONE]\n\n");
    }
    fold(&decode_with(Decoder::new(options).unwrap(), [body.as_bytes()]))
}

/// A Chat stream of these deltas, then `stop`.
fn chat(deltas: &[Value]) -> MessageAssembler {
    let mut events: Vec<Value> = deltas
        .iter()
        .map(|delta| json!({"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta}]}))
        .collect();
    events.push(json!({"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
    message(CHAT, &events)
}

fn state(part: &Part) -> Value {
    let json = match part {
        Part::Text(part) | Part::Thinking(part) => part.provider_state.as_deref(),
        Part::ToolCall(call) => call.provider_state.as_deref(),
        Part::Whole(_) => None,
    };
    json.map_or(Value::Null, |json| {
        serde_json::from_str::<Value>(json).expect("JSON")["data"].clone()
    })
}

/// `kind(text)` of each part.
fn shape(message: &MessageAssembler) -> Vec<String> {
    let one = |part: &Part| match part {
        Part::Text(part) if part.refusal => format!("refusal({})", part.text),
        Part::Text(part) => format!("text({})", part.text),
        Part::Thinking(part) if part.redacted => "redacted".to_owned(),
        Part::Thinking(part) => format!("thinking({})", part.text),
        Part::ToolCall(call) => {
            format!("{}({}){}", call.name, call.args, if call.incomplete { "!" } else { "" })
        }
        Part::Whole(json) => {
            let part: Value = serde_json::from_str(json).expect("JSON");
            format!(
                "{}[{}]",
                part["kind"].as_str().unwrap(),
                part["payload"]["block"]["type"].as_str().unwrap_or("")
            )
        }
    };
    message.parts().iter().map(one).collect()
}

fn reason(message: &MessageAssembler) -> &str {
    match message.terminal() {
        Some(Terminal::Done { finish_reason, .. }) => finish_reason.as_str(),
        Some(Terminal::Error(failure)) => failure.code.as_str(),
        None => "none",
    }
}

#[test]
fn reasoning_details_stay_with_the_thinking_they_came_with() {
    let detail =
        |text: &str, index: u64| json!({"type": "reasoning.text", "text": text, "index": index});
    let message = chat(&[
        json!({"reasoning": "a", "reasoning_details": [detail("a", 0)]}),
        json!({"content": "x"}),
        json!({"reasoning": "b", "reasoning_details": [detail("b", 1)]}),
        json!({"content": "y"}),
    ]);
    assert_eq!(shape(&message), ["thinking(a)", "text(x)", "thinking(b)", "text(y)"]);
    assert_eq!(state(&message.parts()[0]), json!({"reasoning_details": [detail("a", 0)]}));
    assert_eq!(state(&message.parts()[2]), json!({"reasoning_details": [detail("b", 1)]}));
}

#[test]
fn encrypted_reasoning_without_text_is_a_redacted_part_before_what_it_precedes() {
    let detail = json!({"type": "reasoning.encrypted", "data": "e==", "index": 0});
    let message = chat(&[json!({"reasoning_details": [detail]}), json!({"content": "x"})]);
    assert_eq!(shape(&message), ["redacted", "text(x)"]);
    assert_eq!(state(&message.parts()[0]), json!({"reasoning_details": [detail]}));
}

/// A LiteLLM proxy sends Anthropic's thinking in fragments, the signature with the last.
#[test]
fn thinking_blocks_are_joined_into_whole_blocks() {
    let block = |text: &str, signature: &str| json!([{"type": "thinking", "thinking": text, "signature": signature}]);
    let message = chat(&[
        json!({"reasoning_content": "a", "thinking_blocks": block("a", "")}),
        json!({"reasoning_content": "b", "thinking_blocks": block("b", "")}),
        json!({"reasoning_content": "", "thinking_blocks": block("", "sig")}),
        json!({"content": "x"}),
    ]);
    assert_eq!(shape(&message), ["thinking(ab)", "text(x)"]);
    assert_eq!(state(&message.parts()[0]), json!({"thinking_blocks": block("ab", "sig")}));
}

#[test]
fn logprobs_of_reasoning_do_not_break_the_thinking_apart() {
    let events: Vec<Value> = ["a", "b", "c"]
        .iter()
        .map(|text| {
            let logprobs =
                json!({"content": [{"token": text, "logprob": -0.5, "top_logprobs": []}]});
            json!({"choices": [{"index": 0, "delta": {"reasoning": text}, "logprobs": logprobs}]})
        })
        .collect();
    let message = message(CHAT, &events);
    assert_eq!(shape(&message), ["thinking(abc)"]);
    assert_eq!(message.logprobs().map(|logprobs| logprobs.len()), Some(3));
}

#[test]
fn a_full_message_after_its_deltas_repeats_them() {
    let events = [
        json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hello"}}]}),
        json!({"object": "chat.completion.done", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello"}}]}),
    ];
    assert_eq!(shape(&message(CHAT, &events)), ["text(Hello)"]);
    // Alone it is all there is.
    assert_eq!(shape(&message(CHAT, &events[1..])), ["text(Hello)"]);
}

/// Some servers name every chunk `chat.completion`; a choice without delta and message ends nothing.
#[test]
fn a_chunk_that_is_named_like_a_whole_body_is_none() {
    let message = message(
        CHAT,
        &[
            json!({"object": "chat.completion", "choices": [{"index": 0, "content_filter_results": {}}]}),
            json!({"object": "chat.completion", "choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]}),
        ],
    );
    assert_eq!((shape(&message), reason(&message)), (vec!["text(x)".to_owned()], "stop"));
}

#[test]
fn calls_that_share_an_id_are_two_calls() {
    let call = |index: u64, args: &str| json!({"index": index, "id": "f", "type": "function", "function": {"name": "f", "arguments": args}});
    let message = chat(&[json!({"tool_calls": [call(0, "{\"a\":1}"), call(1, "{\"a\":2}")]})]);
    assert_eq!(shape(&message), ["f({\"a\":1})", "f({\"a\":2})"]);
    let ids: Vec<&str> = message.tool_calls().map(|(_, call)| &*call.id).collect();
    assert_eq!(ids, ["f", "f_2"]);
    // Fragments that repeat id and name are one call.
    let message = chat(&[
        json!({"tool_calls": [call(0, "{\"a\"")]}),
        json!({"tool_calls": [call(0, ":1}")]}),
    ]);
    assert_eq!(shape(&message), ["f({\"a\":1})"]);
}

#[test]
fn empty_arguments_that_come_before_the_name_give_way_too() {
    let message = chat(&[
        json!({"tool_calls": [{"index": 0, "id": "c", "function": {"arguments": "{}"}}]}),
        json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"a\":1}"}}]}),
        json!({"tool_calls": [{"index": 0, "function": {"name": "f"}}]}),
    ]);
    assert_eq!(shape(&message), ["f({\"a\":1})"]);
}

#[test]
fn a_content_list_may_hold_plain_strings() {
    let message = chat(&[json!({"content": ["a", {"type": "text", "text": "b"}, null]})]);
    assert_eq!(shape(&message), ["text(ab)"]);
}

#[test]
fn annotations_are_always_a_list() {
    let annotation = json!({"type": "url_citation"});
    for sent in [json!([annotation]), annotation.clone()] {
        let message = chat(&[json!({"content": "x", "annotations": sent})]);
        let Part::Text(part) = &message.parts()[0] else { panic!("text") };
        let found: Vec<Value> =
            part.annotations.iter().map(|json| serde_json::from_str(json).unwrap()).collect();
        assert_eq!(found, [json!([annotation])]);
    }
}

#[test]
fn null_inside_a_later_usage_record_erases_nothing() {
    let usage = |usage: Value| json!({"choices": [], "usage": usage});
    let message = message(
        CHAT,
        &[
            usage(
                json!({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 5}, "completion_tokens_details": {"reasoning_tokens": 2}}),
            ),
            usage(
                json!({"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": null, "audio_tokens": 1}, "completion_tokens_details": {}}),
            ),
        ],
    );
    let usage = message.usage().unwrap();
    assert_eq!((usage.cache_read, usage.reasoning, usage.output), (Some(5), Some(2), Some(4)));
    let message = self::message(
        ANTHROPIC,
        &[
            json!({"type": "message_start", "message": {"id": "i", "usage": {"input_tokens": 1, "output_tokens_details": {"thinking_tokens": 3}}}}),
            json!({"type": "message_delta", "usage": {"output_tokens": 8, "output_tokens_details": {"thinking_tokens": null}}}),
        ],
    );
    assert_eq!(message.usage().unwrap().reasoning, Some(3));
}

/// The caller of the tool must be sent back with the call.
#[test]
fn the_caller_of_a_tool_stays_with_its_call() {
    let caller = json!({"type": "code_execution_20260120", "tool_id": "srvtoolu_1"});
    let block =
        json!({"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}, "caller": caller});
    let streamed = message(
        ANTHROPIC,
        &[
            json!({"type": "content_block_start", "index": 0, "content_block": block}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_stop"}),
        ],
    );
    let whole = message(
        ANTHROPIC,
        &[json!({"type": "message", "id": "i", "model": "m", "content": [block]})],
    );
    for message in [streamed, whole] {
        assert_eq!(shape(&message), ["f({\"a\":1})"]);
        assert_eq!(state(&message.parts()[0]), json!({"caller": caller}));
    }
}

#[test]
fn fields_in_upper_case_alone_are_a_protocol_error() {
    let body = b"Data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\nData: [DONE]\n\n";
    let message = fold(&decode_with(crate::support::decoder(CHAT), [&body[..]]));
    assert_eq!(reason(&message), "protocol_error");
}

#[test]
fn an_error_member_that_says_nothing_is_no_error() {
    for nothing in [json!(null), json!(""), json!(false)] {
        let message = message(
            CHAT,
            &[
                json!({"error": nothing, "choices": [{"index": 0, "delta": {"content": "x"}}]}),
                json!({"error": nothing, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
            ],
        );
        assert_eq!(
            (shape(&message), reason(&message)),
            (vec!["text(x)".to_owned()], "stop"),
            "{nothing}"
        );
    }
}

#[test]
fn a_delta_without_a_type_is_told_by_its_member() {
    let message = message(
        ANTHROPIC,
        &[
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"text": "x"}}),
        ],
    );
    assert_eq!(shape(&message), ["text(x)"]);
}

#[test]
fn a_summary_of_whole_arguments_is_no_second_copy() {
    let call = |arguments: &str| json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}]});
    for summary in [r#"{"a":"é\n"}"#, r#""{\"a\":\"é\\n\"}""#] {
        let message = chat(&[call("{\"a\":"), call(r#""é\n"}"#), call(summary)]);
        assert_eq!(shape(&message), [r#"f({"a":"é\n"})"#], "{summary}");
        assert!(message.warnings().unwrap().contains("repeated_arguments"));
    }
    // Anything else after a whole value is the provider's text, and no JSON any more.
    let message = chat(&[call("{}"), call("{\"a\":1}"), call("{\"a\":2}")]);
    assert_eq!(shape(&message), ["f({\"a\":1}{\"a\":2})"]);
}

#[test]
fn an_answer_that_comes_as_two_choices_of_one_number_is_one_answer() {
    let event = json!({"id": "c", "model": "m", "choices": [
        {"index": 0, "delta": {"content": "hi"}},
        {"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{}"}}]}, "finish_reason": "tool_calls"},
    ]});
    let message = message(CHAT, &[event]);
    assert_eq!(shape(&message), ["text(hi)", "f({})"]);
    assert_eq!((reason(&message), message.warnings()), ("tool_calls", None));
}

#[test]
fn a_custom_tool_of_xai_is_no_call_whatever_its_id() {
    let item = |number: u64, name: &str| json!({"type": "response.output_item.done", "output_index": number, "item": {"type": "custom_tool_call", "id": format!("ctc_{number}"), "call_id": format!("call_{number}"), "name": name, "input": "x"}});
    let answer = |tools: Value| {
        let response = |status: &str| json!({"id": "r", "model": "m", "status": status, "output": [], "tools": tools});
        let events = [
            json!({"type": "response.created", "response": response("in_progress")}),
            item(0, "x_keyword_search"),
            item(1, "apply"),
            json!({"type": "response.completed", "response": response("completed")}),
        ];
        message("openai-responses", &events)
            .tool_calls()
            .map(|(_, call)| call.name.to_string())
            .collect::<Vec<_>>()
    };
    let apply = json!({"type": "custom", "name": "apply"});
    assert_eq!(answer(json!([{"type": "x_search"}, apply])), ["apply"]);
    // Other requests may declare tools in their input, which no response repeats.
    assert_eq!(answer(json!([{"type": "web_search"}, apply])), ["x_keyword_search", "apply"]);
    assert_eq!(answer(json!([])), ["x_keyword_search", "apply"]);
    assert_eq!(answer(json!("odd")), ["x_keyword_search", "apply"]);
}

#[test]
fn one_tool_call_without_its_list_is_a_call() {
    let message = chat(&[
        json!({"tool_calls": {"id": "c1", "function": {"name": "f", "arguments": "{\"a\":1}"}}}),
    ]);
    assert_eq!(shape(&message), ["f({\"a\":1})"]);
}

#[test]
fn citations_survive_without_visible_text() {
    let message = message(
        CHAT,
        &[
            json!({"id": "c", "model": "m", "citations": ["u"], "choices": [{"index": 0, "delta": {"reasoning": "r"}, "finish_reason": "stop"}]}),
        ],
    );
    assert_eq!(shape(&message), ["thinking(r)", "text()"]);
    let Part::Text(part) = &message.parts()[1] else { panic!("text") };
    assert!(part.annotations[0].contains("citations"));
}

#[test]
fn a_model_that_the_body_names_late_is_news_beside_the_callers() {
    let mut options = options(CHAT);
    options.stream.model_id = Some("asked".into());
    let body = br#"data: {"choices":[{"delta":{"content":"a"}}]}

data: {"model":"answered","choices":[{"delta":{},"finish_reason":"stop"}]}

data: [DONE]

"#;
    let deltas = decode_with(Decoder::new(options).unwrap(), [body.as_slice()]);
    assert_eq!(fold(&deltas).model_id(), "answered");
}

#[test]
fn a_spliced_message_starts_over() {
    let start = |id: &str, model: &str| json!({"type": "message_start", "message": {"id": id, "model": model, "content": []}});
    let message = message(
        ANTHROPIC,
        &[
            start("m1", "one"),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
            start("m2", "two"),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "half"}}),
        ],
    );
    assert_eq!((reason(&message), message.model_id()), ("connection_lost", "one"));
    assert_eq!(shape(&message), ["text(half)"]);
}

#[test]
fn arguments_without_a_call_are_kept_and_nobody_can_run_them() {
    let delta = |kind: &str, member: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": kind, member: "{\"a\":1}"}});
    let message = message(
        ANTHROPIC,
        &[delta("input_json_delta", "partial_json"), json!({"type": "message_stop"})],
    );
    assert_eq!(
        (shape(&message), message.tool_calls().count()),
        (vec!["provider[tool_use]".to_owned()], 0)
    );
    let Part::Whole(part) = &message.parts()[0] else { panic!("whole") };
    assert!(part.contains(r#""input":{"a":1}"#), "{part}");
}

#[test]
fn text_of_an_unknown_block_stays_in_it() {
    let message = message(
        ANTHROPIC,
        &[
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "novel", "text": "a"}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "\"b\""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "c"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_stop"}),
        ],
    );
    assert_eq!(shape(&message), ["provider[novel]"]);
    let Part::Whole(part) = &message.parts()[0] else { panic!("whole") };
    assert!(part.contains(r#""text":"a\"b\"c""#), "{part}");
}

#[test]
fn a_tool_that_was_renamed_for_the_provider_is_called_by_the_callers_name() {
    let names = [("a_b", "a b"), ("c_d", "c d")].map(|(other, own)| (other.into(), own.into()));
    let mut renamed = options("openai-chat");
    renamed.stream.tool_names = Some(Arc::new(names.into()));
    let call = |index: u8, name: &str| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"id\":\"t{index}\",\
             \"function\":{{\"name\":\"{name}\",\"arguments\":\"{{}}\"}}}}]}}}}]}}\n\n"
        )
    };
    // The second call repeats its name, as some servers do on every delta.
    let body =
        call(0, "a_b") + &call(1, "c_d") + &call(1, "c_d") + &call(2, "e") + "data: [DONE]\n\n";
    let decoder = Decoder::new(renamed).expect("a dialect");
    let message = fold(&decode_with(decoder, [body.as_bytes()]));
    let called: Vec<_> = message.tool_calls().map(|(_, call)| &*call.name).collect();
    assert_eq!(called, ["a b", "c d", "e"]);
}
