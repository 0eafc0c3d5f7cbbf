//! Choices that are pieces of one answer, as GitHub Copilot writes them: joined if the caller says so, in any chunking.

use std::fmt::Write as _;

use deltafold::decoder::{Decoder, Options};
use deltafold::fold::{MessageAssembler, Part, Terminal};
use serde_json::{Value, json};

use crate::choices::{decode_all, texts};
use crate::support::{decode_with, fixtures, fold, options};

fn joined() -> Options {
    let mut options = options("openai-chat");
    options.stream.joined_choices = true;
    options
}

/// The message of a body, the same in pieces of every size.
fn message(body: &str) -> MessageAssembler {
    let decode = |size| {
        let decoder = Decoder::new(joined()).expect("a dialect");
        decode_with(decoder, body.as_bytes().chunks(size))
    };
    let whole = decode(body.len());
    for size in (1..=17).chain([64, 1_000]) {
        assert!(decode(size) == whole, "pieces of {size} bytes");
    }
    fold(&whole)
}

fn shape(message: &MessageAssembler) -> Vec<String> {
    let parts = message.parts().iter().map(|part| match part {
        Part::Text(part) => part.text.clone(),
        Part::Thinking(part) => format!("thinking({})", part.text),
        Part::ToolCall(call) if call.incomplete => format!("{}({})!", call.name, call.args),
        Part::ToolCall(call) => format!("{}({})", call.name, call.args),
        Part::Whole(json) => json.to_string(),
    });
    parts.collect()
}

fn reason(message: &MessageAssembler) -> &str {
    match message.terminal() {
        Some(Terminal::Done { finish_reason, .. }) => finish_reason.as_str(),
        terminal => panic!("{terminal:?}"),
    }
}

/// Write indexes into choices: the same one, rising ones, or none.
fn numbered(choices: &[Value], numbers: [Option<u64>; 3]) -> Vec<Value> {
    let one = |(choice, number): (&Value, Option<u64>)| {
        let mut choice = choice.clone();
        if let Some(number) = number {
            choice["index"] = json!(number);
        }
        choice
    };
    choices.iter().zip(numbers).map(one).collect()
}

const NUMBERS: [[Option<u64>; 3]; 3] =
    [[Some(0), Some(1), Some(2)], [Some(0); 3], [None, None, None]];

fn call(id: &str, name: &str, args: &str) -> Value {
    json!({"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": args}})
}

fn choices(member: &str, contents: [Value; 3]) -> Vec<Value> {
    contents.into_iter().map(|content| json!({member: content, "finish_reason": null})).collect()
}

fn contents() -> [Value; 3] {
    [
        json!({"role": "assistant", "content": "Let me look"}),
        json!({"role": "assistant", "content": null, "tool_calls": [call("c1", "f", "{}")]}),
        json!({"role": "assistant", "content": null, "tool_calls": [call("c2", "g", "{\"a\":1}")]}),
    ]
}

fn body(choices: &[Value]) -> String {
    json!({"id": "c", "object": "chat.completion", "model": "m", "choices": choices}).to_string()
}

#[test]
fn the_choices_of_a_whole_body_are_one_answer() {
    for numbers in NUMBERS {
        let mut list = numbered(&choices("message", contents()), numbers);
        for choice in &mut list {
            choice["finish_reason"] = json!("tool_calls");
        }
        let message = message(&body(&list));
        assert_eq!(shape(&message), ["Let me look", "f({})", "g({\"a\":1})"], "{numbers:?}");
        assert_eq!((reason(&message), message.warnings()), ("tool_calls", None), "{numbers:?}");
    }
}

#[test]
fn the_choices_of_a_stream_are_one_answer() {
    for numbers in NUMBERS {
        let mut text = String::new();
        for choice in numbered(&choices("delta", contents()), numbers) {
            let chunk = json!({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]});
            write!(text, "data: {chunk}\n\n").unwrap();
        }
        for piece in [numbers[0], numbers[2]] {
            let mut end = json!({"delta": {}, "finish_reason": "tool_calls"});
            if let Some(number) = piece {
                end["index"] = json!(number);
            }
            let chunk = json!({"id": "c", "model": "m", "choices": [end]});
            write!(text, "data: {chunk}\n\n").unwrap();
        }
        text += "data: [DONE]\n\n";
        let message = message(&text);
        assert_eq!(shape(&message), ["Let me look", "f({})", "g({\"a\":1})"], "{numbers:?}");
        assert_eq!((reason(&message), message.warnings()), ("tool_calls", None), "{numbers:?}");
    }
}

#[test]
fn texts_of_two_choices_are_two_parts_and_a_limit_outweighs_a_stop() {
    let cut = json!({"role": "assistant", "tool_calls": [call("c1", "f", "{\"a\":")]});
    let contents = [json!({"content": "One."}), json!({"content": "Two."}), cut];
    let mut list = numbered(&choices("message", contents), NUMBERS[0]);
    for (choice, reason) in list.iter_mut().zip(["length", "stop", "stop"]) {
        choice["finish_reason"] = json!(reason);
    }
    let message = message(&body(&list));
    assert_eq!(shape(&message), ["One.", "Two.", "f({\"a\":)!"]);
    assert_eq!(reason(&message), "length");
}

#[test]
fn all_answers_stay_apart_if_all_are_asked_for() {
    let contents = [json!({"content": "a"}), json!({"content": "b"}), json!({"content": "c"})];
    let list = numbered(&choices("message", contents), NUMBERS[0]);
    let streams = decode_all(joined(), [body(&list).as_bytes()]);
    let texts: Vec<_> = texts(&streams).into_values().collect();
    assert_eq!(texts, ["a", "b", "c"]);
}

#[test]
fn a_recording_of_one_choice_reads_the_same() {
    for fixture in fixtures().iter().filter(|fixture| fixture.dialect == "openai-chat") {
        let several = ["choices-without-index", "split-over-choices", "two-"];
        if several.iter().any(|name| fixture.name.contains(name)) {
            continue;
        }
        let decode = |options: Options| {
            decode_with(Decoder::new(options).expect("a dialect"), [&fixture.wire[..]])
        };
        assert!(
            decode(joined()) == decode(options("openai-chat")),
            "{} differs with joined choices",
            fixture.name
        );
    }
}
