//! The tables of markup: `markup/<name>.txt`, and what a message is in their words.
//!
//! A case is a line `## what it shows`, options (`@ tools`, `@ thinking`, `@ finish: …`), the text, a line `=>`, the parts
//! that the message must have, one a line, and why it ended, with its warnings.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use deltafold::contract::Payload;
use deltafold::decoder::Decoder;
use deltafold::fold::Part;
use deltafold::markup::{Tools, Wanted, find};
use serde_json::{Value, json};

use crate::support::{Owned, decode_with, fold};

/// A case of a table.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) wanted: Wanted,
    pub(crate) finish: String,
    pub(crate) text: String,
    pub(crate) parts: String,
}

/// The tools that the tables offer with `@ tools`.
pub(crate) fn tools() -> Arc<Tools> {
    let mut tools = Tools::default();
    let schema = json!({"type": "object", "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "wind": {"type": "number"},
        "metric": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "where": {"type": "object"},
        "note": {"type": ["string", "null"]},
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "unit": {"enum": ["c", "f"]},
        "any": {},
    }});
    tools.add("weather", Some(&schema.to_string())).unwrap();
    tools.add("now", None).unwrap();
    Arc::new(tools)
}

pub(crate) fn cases(markup: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/markup/{markup}.txt"));
    let table = std::fs::read_to_string(path).expect("a table");
    let family = find(markup).expect("a family");
    let mut found = Vec::new();
    for block in table.split("\n## ").skip(1) {
        let (name, rest) = block.split_once('\n').expect("a text");
        let mut wanted = Wanted { family, tools: None, starts_in_thinking: false };
        let mut finish = "stop".to_owned();
        let mut rest = rest;
        while let Some(option) = rest.strip_prefix('@') {
            let (option, after) = option.split_once('\n').unwrap();
            match option.trim().split_once(": ") {
                Some(("finish", reason)) => reason.clone_into(&mut finish),
                _ if option.trim() == "tools" => wanted.tools = Some(tools()),
                _ if option.trim() == "thinking" => wanted.starts_in_thinking = true,
                _ => panic!("{name}: {option}"),
            }
            rest = after;
        }
        let (text, parts) = rest.split_once("\n=>\n").expect("parts");
        let parts = parts.trim_end().to_owned();
        // White space that an editor would drop.
        let text = text.replace("␠", " ").replace("␤", "\n");
        found.push(Case { name: format!("{markup}: {name}"), wanted, finish, text, parts });
    }
    found
}

/// A Chat stream that says these pieces.
pub(crate) fn body<'a>(pieces: impl IntoIterator<Item = &'a str>, finish: &str) -> Vec<u8> {
    let mut body = String::new();
    for piece in pieces {
        let chunk = json!({"choices": [{"delta": {"content": piece}}]});
        write!(body, "data: {chunk}\n\n").unwrap();
    }
    if finish != "none" {
        let chunk = json!({"choices": [{"delta": {}, "finish_reason": finish}]});
        write!(body, "data: {chunk}\n\ndata: [DONE]\n\n").unwrap();
    }
    body.into_bytes()
}

pub(crate) fn decoder(wanted: &Wanted) -> Decoder {
    Decoder::new(deltafold::decoder::Options {
        markup: Some(wanted.clone()),
        ..crate::support::options("openai-chat")
    })
    .unwrap()
}

pub(crate) fn decode<'a>(
    wanted: &Wanted,
    pieces: impl IntoIterator<Item = &'a str>,
    finish: &str,
) -> Vec<Owned> {
    decode_with(decoder(wanted), [body(pieces, finish).as_slice()])
}

/// The parts of a message and its end, one a line.
pub(crate) fn parts(deltas: &[Owned]) -> String {
    let message = fold(deltas);
    let mut out = String::new();
    for part in message.parts() {
        match part {
            Part::Text(part) => writeln!(out, "text {}", json!(part.text)).unwrap(),
            Part::Thinking(part) => writeln!(out, "thinking {}", json!(part.text)).unwrap(),
            Part::ToolCall(call) => {
                let id = if call.id.starts_with("call_") { "" } else { &format!(" #{}", call.id) };
                let open = if call.incomplete { " …" } else { "" };
                let code = if call.input_format.as_str() == "text" { " (text)" } else { "" };
                let text = call.args.clone();
                let args = if text.is_empty() { "-" } else { &text };
                writeln!(out, "call {}{id}{code} {args}{open}", call.name).unwrap();
            }
            Part::Whole(_) => panic!("a part that markup never makes"),
        }
    }
    match &deltas.last().unwrap().payload {
        Payload::Done { finish_reason, warnings, .. } => {
            write!(out, "{}", finish_reason.as_str()).unwrap();
            for warning in warnings.iter().flat_map(|list| {
                let list: Vec<Value> = serde_json::from_str(list).unwrap();
                list
            }) {
                let code = warning["code"].as_str().unwrap();
                if code == "incomplete_call" {
                    assert!(out.contains(" …\n"), "{out}"); // which says it
                } else {
                    write!(out, " !{code}").unwrap();
                }
            }
        }
        Payload::Error(failure) => write!(out, "error {}", failure.code.as_str()).unwrap(),
        other => panic!("{other:?}"),
    }
    out
}
