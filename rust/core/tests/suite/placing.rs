//! Responses streams whose events name their items badly give the content of the stream that names them well.
//!
//! Also: ciphertext never becomes arguments, wherever the stream is cut.

use std::fmt::Write as _;

use crate::support::{decode, fold, thinking};
use deltafold::fold::{MessageAssembler, Part};
use serde_json::{Value, json};

const RESPONSES: &str = "openai-responses";

/// Change of a name in the events.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Naming {
    Kept,
    Absent,
    /// The same for every item.
    Same,
    /// Another one in each event.
    Rotating,
    /// Deltas count from 1, `added` and `done` count from 0.
    Shifted,
}

use Naming::{Absent, Kept, Rotating, Same, Shifted};

fn summary(texts: &[&str]) -> Value {
    texts.iter().map(|text| json!({"type": "summary_text", "text": text})).collect()
}

fn content(texts: &[&str]) -> Value {
    texts
        .iter()
        .map(|text| json!({"type": "output_text", "text": text, "annotations": []}))
        .collect()
}

/// The events of the items, one item after the other.
fn events() -> Vec<Value> {
    let mut events = vec![
        json!({"type": "response.created", "response": {"id": "resp_1", "model": "m", "output": []}}),
    ];
    let mut item = |index: usize,
                    kind: &str,
                    begun: Value,
                    deltas: &[(&str, usize, &str, bool)],
                    done: Value| {
        let id = format!("{kind}_{index}");
        let of_item = |name: &str, mut item: Value| {
            item["id"] = json!(id);
            json!({"type": format!("response.output_item.{name}"), "output_index": index, "item": item})
        };
        events.push(of_item("added", begun));
        for (name, position, text, whole) in deltas {
            let (end, member) = match (*whole, *name) {
                (false, _) => ("delta", "delta"),
                (true, "function_call_arguments") => ("done", "arguments"),
                (true, _) => ("done", "text"),
            };
            let mut event = json!({
                "type": format!("response.{name}.{end}"), "output_index": index, "item_id": id, member: text,
            });
            match *name {
                "output_text" => event["content_index"] = json!(position),
                "reasoning_summary_text" => event["summary_index"] = json!(position),
                _ => {}
            }
            events.push(event);
        }
        events.push(of_item("done", done));
    };
    let thought = "reasoning_summary_text";
    let said = "output_text";
    let args = "function_call_arguments";
    let call = |id: &str, name: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments});
    item(
        0,
        "rs",
        json!({"type": "reasoning", "summary": []}),
        &[
            (thought, 0, "Fir", false),
            (thought, 0, "st.", false),
            (thought, 0, "First.", true),
            (thought, 1, "Second.", false),
            (thought, 1, "Second.", true),
        ],
        json!({"type": "reasoning", "summary": summary(&["First.", "Second."])}),
    );
    item(
        1,
        "msg",
        json!({"type": "message", "content": []}),
        &[
            (said, 0, "He", false),
            (said, 0, "llo", false),
            (said, 0, "Hello", true),
            (said, 1, "World", false),
            (said, 1, "World", true),
        ],
        json!({"type": "message", "content": content(&["Hello", "World"])}),
    );
    item(
        2,
        "fc",
        call("call_1", "weather", ""),
        &[(args, 0, "{\"a\"", false), (args, 0, ":1}", false), (args, 0, "{\"a\":1}", true)],
        call("call_1", "weather", "{\"a\":1}"),
    );
    item(
        3,
        "fc",
        call("call_2", "weather", ""),
        &[(args, 0, "{}", true)],
        call("call_2", "weather", "{}"),
    );
    item(
        4,
        "msg",
        json!({"type": "message", "content": []}),
        &[(said, 0, "Bye", false), (said, 0, "Bye", true)],
        json!({"type": "message", "content": content(&["Bye"])}),
    );
    events.push(json!({"type": "response.completed", "response": {"id": "resp_1", "model": "m", "status": "completed", "output": []}}));
    events
}

fn rename(
    object: &mut Value,
    member: &str,
    naming: Naming,
    same: &Value,
    number: usize,
    shifted: bool,
) {
    if object.get(member).is_none() {
        return;
    }
    match naming {
        Absent => {
            object.as_object_mut().unwrap().remove(member);
        }
        Same => object[member] = same.clone(),
        Rotating => object[member] = json!(format!("id_{number}")),
        Shifted if shifted => object[member] = json!(object[member].as_u64().unwrap() + 1),
        Kept | Shifted => {}
    }
}

fn renamed(index: Naming, id: Naming, position: Naming) -> Vec<Value> {
    let mut events = events();
    for (number, event) in events.iter_mut().enumerate() {
        let is_delta = event.get("item").is_none();
        rename(event, "output_index", index, &json!(0), number, is_delta);
        rename(event, "item_id", id, &json!("item"), number, false);
        if let Some(item) = event.get_mut("item") {
            rename(item, "id", id, &json!("item"), number, false);
        }
        for member in ["content_index", "summary_index"] {
            rename(event, member, position, &json!(0), number, false);
        }
    }
    events
}

fn body(events: &[Value]) -> String {
    events.iter().fold(String::new(), |mut body, event| {
        write!(body, "data: {event}\n\n").unwrap();
        body
    })
}

fn parts(message: &MessageAssembler) -> Vec<String> {
    let parts = message.parts().iter();
    parts
        .map(|part| match part {
            Part::Text(part) => format!("text {}", part.text),
            Part::Thinking(part) => format!("thinking {}", part.text),
            Part::ToolCall(call) => format!("call {} {} {}", call.id, call.name, call.args),
            Part::Whole(json) => json.to_string(),
        })
        .collect()
}

#[test]
fn items_that_follow_each_other_need_no_names() {
    let wanted = parts(&fold(&decode(RESPONSES, body(&events()).as_bytes())));
    assert_eq!(wanted.len(), 6, "{wanted:?}");
    for index in [Kept, Absent, Same, Shifted] {
        for id in [Kept, Absent, Same, Rotating] {
            for position in [Kept, Absent, Same] {
                let events = renamed(index, id, position);
                let message = fold(&decode(RESPONSES, body(&events).as_bytes()));
                let which = format!("output_index {index:?}, ids {id:?}, positions {position:?}");
                assert_eq!(parts(&message), wanted, "{which}");
            }
        }
    }
}

#[test]
fn items_that_only_end_need_no_names() {
    for index in [Kept, Absent, Same] {
        for id in [Kept, Absent] {
            let mut events = renamed(index, id, Kept);
            let wanted = parts(&fold(&decode(RESPONSES, body(&events).as_bytes())));
            events.retain(|event| {
                event.get("response").is_some() || event["type"] == "response.output_item.done"
            });
            let message = fold(&decode(RESPONSES, body(&events).as_bytes()));
            assert_eq!(parts(&message), wanted, "output_index {index:?}, ids {id:?}");
        }
    }
}

#[test]
fn ciphertext_never_becomes_arguments() {
    let plain = "{\"city\":\"Paris\"}";
    for cipher in ["gAAAAABoc2VjcmV0IHRleHQ=", "12345678gAAA", "null4gAAA", "true+/==", "-Aa_", "4"]
    {
        for size in [1, 3, 100] {
            let added = json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "function_call", "id": "a", "call_id": "call_1", "name": "weather", "arguments": ""}});
            let mut events = vec![added];
            for piece in cipher.as_bytes().chunks(size) {
                let text = std::str::from_utf8(piece).unwrap();
                events.push(json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "b", "delta": text}));
            }
            events.push(json!({"type": "response.function_call_arguments.done", "output_index": 0, "item_id": "c", "arguments": plain}));
            events.push(json!({"type": "response.completed", "response": {"id": "r", "model": "m", "status": "completed", "output": []}}));
            let body = body(&events);
            for cut in 0..=body.len() {
                let message = fold(&decode(RESPONSES, &body.as_bytes()[..cut]));
                for (_, call) in message.tool_calls() {
                    assert!(plain.starts_with(&call.args), "{cipher} cut at {cut}: {}", call.args);
                    assert!(call.incomplete || call.args == plain, "{cipher} cut at {cut}");
                }
                assert!(thinking(&message).is_empty() && message.text().is_empty());
            }
            let message = fold(&decode(RESPONSES, body.as_bytes()));
            assert_eq!(parts(&message), [format!("call call_1 weather {plain}")], "{cipher}");
        }
    }
}

#[test]
fn white_space_before_arguments_is_not_held() {
    let added = json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "function_call", "id": "a", "call_id": "call_1", "name": "weather", "arguments": ""}});
    let mut events = vec![added];
    for text in ["\n", " \t", "{}"] {
        events.push(json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "a", "delta": text}));
        let message = fold(&decode(RESPONSES, body(&events).as_bytes()));
        let (_, call) = message.tool_calls().next().expect("the call has begun");
        assert!(call.args.ends_with(text), "{text:?} is held: {:?}", call.args);
    }
}
