//! Shared parts of the tests: a decoder with fixed names, owned deltas, the folded message, the fixtures and the corpus.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::allow_attributes,
    reason = "each test crate uses its own part"
)]

pub mod binary;
mod checked;
pub mod oracles;

pub use checked::Checked;

use std::path::PathBuf;

use deltafold::contract::{Delta, Output, Payload, TextAttributes, Usage};
use deltafold::decoder::{Decoder, Options};
use deltafold::dialect::VOCABULARY;
use deltafold::emit::StreamOptions;
use deltafold::fold::{MessageAssembler, Part};
use deltafold::framing::Framing;
use deltafold::markup::Wanted;
use deltafold::provider_error::Response;
use serde_json::{Value, json};

/// A delta that owns its text.
pub type Owned = Delta<Box<str>>;

/// A closure that takes each delta, behind one type: every other type of output makes the compiler build all dialects once
/// more.
pub struct Each<'a>(pub &'a mut dyn FnMut(&Delta<&str>));

impl Output for Each<'_> {
    fn delta(&mut self, delta: &Delta<&str>) {
        (self.0)(delta);
    }
}

/// The row of a specification's dialect.
pub fn row(specification: &str) -> &'static deltafold::dialect::Dialect {
    let (dialect, _) = deltafold::markup::specification(specification);
    deltafold::dialect::find(dialect).expect("a dialect")
}

/// Options of a stream named "run", of a dialect or of one with markup.
pub fn options(specification: &str) -> Options {
    let markup = deltafold::markup::specification(specification).1.map(|name| Wanted {
        family: deltafold::markup::find(name).expect("a markup"),
        tools: None,
        starts_in_thinking: false,
    });
    let response = Response::from_status(VOCABULARY, 200);
    let stream = StreamOptions::new(row(specification).name, "run", response);
    Options { stream, markup, shapes: None }
}

/// A decoder of a stream named "run".
pub fn decoder(dialect: &str) -> Decoder {
    Decoder::new(options(dialect)).expect("a dialect")
}

/// The rule of a target's grammar that an answer breaks.
pub fn violation(target: &str, status: u16, body: &[u8]) -> Option<String> {
    let verdict = if status == 200 {
        let mut checker = deltafold_grammar::Checker::new(target).expect("a target");
        checker.feed(body).and_then(|()| checker.close())
    } else {
        deltafold_grammar::check_body(target, status, body)
    };
    verdict.err().map(|violation| violation.to_string())
}

/// Feeds the pieces and closes.
pub fn decode_with<'a>(
    mut decoder: Decoder,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<Owned> {
    let mut deltas = Vec::new();
    let mut take = |delta: &Delta<&str>| deltas.push(delta.to_owned());
    let mut out = Each(&mut take);
    for piece in pieces {
        decoder.feed(piece, &mut out);
    }
    decoder.close(&mut out);
    assert!(decoder.finished(), "closing ends the stream");
    deltas
}

/// Decodes a whole body.
pub fn decode(dialect: &str, body: &[u8]) -> Vec<Owned> {
    decode_with(decoder(dialect), [body])
}

/// Folds deltas; each must be lawful.
pub fn fold(deltas: &[Owned]) -> MessageAssembler {
    let mut assembler = MessageAssembler::default();
    for delta in deltas {
        assembler.consume(&delta.as_deref()).expect("a lawful delta");
    }
    assembler
}

/// The thinking of a message, all parts joined.
pub fn thinking(message: &MessageAssembler) -> String {
    let texts = message.parts().iter().map(|part| match part {
        Part::Thinking(part) => part.text.as_str(),
        _ => "",
    });
    texts.collect()
}

/// The recorded streams, or `None` (said aloud) where they are not there.
pub fn corpus() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let path =
        std::env::var_os("DELTAFOLD_CORPUS").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    if path.join("manifest.jsonl").is_file() {
        Some(path)
    } else {
        eprintln!("skipped: no recorded streams at {} (set DELTAFOLD_CORPUS)", path.display());
        None
    }
}

/// A line of a JSON lines file, by `id`.
pub fn json_lines(path: &std::path::Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).expect("a readable file");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// A recorded stream and its expected content.
pub struct Recording {
    pub id: String,
    pub dialect: String,
    pub body: Vec<u8>,
    pub expected: serde_json::Value,
}

/// The recorded streams that these dialects read.
pub fn recordings() -> Vec<Recording> {
    let Some(root) = corpus() else {
        return Vec::new();
    };
    let manifest = json_lines(&root.join("manifest.jsonl"));
    let expected = json_lines(&root.join("expected.jsonl"));
    let files: std::collections::HashMap<&str, &str> = manifest
        .iter()
        .map(|line| (line["id"].as_str().unwrap(), line["file"].as_str().unwrap()))
        .collect();
    let known = |name: &Value| {
        let name = name.as_str()?;
        deltafold::dialect::find(name).map(|row| row.name.to_owned())
    };
    expected
        .into_iter()
        .filter(|line| line["terminal"] != "unsupported")
        .filter_map(|line| {
            // The reader is another's where frames of the dialect hold its events, or the dialect is none.
            let dialect = known(&line["dialect"]).or_else(|| known(&line["reader"]))?;
            let id = line["id"].as_str().unwrap().to_owned();
            let body = std::fs::read(root.join(files[id.as_str()])).expect("a recording");
            Some(Recording { dialect, body, id, expected: line })
        })
        .collect()
}

/// Pieces of a body that end behind each event, as its framing has it.
pub fn events<'a>(dialect: &str, body: &'a [u8]) -> Vec<&'a [u8]> {
    let framing = row(dialect).framing;
    let binary = framing == Framing::AwsEventStream && body.first() == Some(&0);
    let mut pieces = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let end = if binary {
            rest.first_chunk().map(|total| u32::from_be_bytes(*total) as usize)
        } else if framing == Framing::Ndjson {
            rest.iter().position(|byte| *byte == b'\n').map(|at| at + 1)
        } else {
            let ends =
                |at: &usize| rest[..*at].ends_with(b"\n\n") || rest[..*at].ends_with(b"\r\n\r\n");
            (1..=rest.len()).find(ends)
        };
        // A length that does not fit the body gives one piece.
        let end = end.filter(|end| (1..=rest.len()).contains(end)).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// A fixture of the project: a folder `<dialect>/<case>` with `wire.sse`, `wire.ndjson`, `wire.json` or `wire.bin`.
#[derive(Debug)]
pub struct Fixture {
    pub name: String,
    pub dialect: String,
    pub wire: Vec<u8>,
    pub folder: PathBuf,
}

/// All fixtures, sorted by name.
pub fn fixtures() -> Vec<Fixture> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/streams"));
    let mut found = Vec::new();
    for dialect in folders(&root) {
        for folder in folders(&dialect) {
            let name =
                |path: &std::path::Path| path.file_name().unwrap().to_string_lossy().into_owned();
            found.push(Fixture {
                name: format!("{}/{}", name(&dialect), name(&folder)),
                dialect: name(&dialect),
                wire: wire_of(&folder),
                folder,
            });
        }
    }
    assert!(!found.is_empty(), "no fixtures in {}", root.display());
    found
}

/// The one file of a fixture that is named `wire`, whatever its framing.
fn wire_of(folder: &std::path::Path) -> Vec<u8> {
    let names = ["wire.sse", "wire.ndjson", "wire.json", "wire.bin"];
    let mut found = names.iter().filter_map(|name| std::fs::read(folder.join(name)).ok());
    let wire = found.next().expect("a file named wire");
    assert!(found.next().is_none(), "two wires in {}", folder.display());
    wire
}

fn folders(path: &std::path::Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).expect("a folder");
    let mut found: Vec<_> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

/// A delta of a stream named "run" in its wire form.
pub fn wire(delta: &Owned) -> Value {
    json!({
        "runId": "run",
        "seq": delta.seq,
        "kind": delta.payload.kind().as_str(),
        "payload": payload(&delta.payload),
        "timestamp": "2026-01-01T00:00:00.000Z",
    })
}

fn open(json: &str) -> Value {
    serde_json::from_str(json).expect("JSON inside a delta")
}

fn text_payload(
    text: &str,
    part_index: Option<u32>,
    attributes: &TextAttributes<Box<str>>,
) -> Value {
    let mut out = json!({ "textDelta": text, "partIndex": part_index });
    for (name, value) in
        [("annotations", &attributes.annotations), ("providerState", &attributes.provider_state)]
    {
        if let Some(value) = value {
            out[name] = open(value);
        }
    }
    if let Some(logprobs) = &attributes.logprobs {
        out["logprobs"] = open(&logprobs.to_json());
    }
    for (name, flag) in [("refusal", attributes.refusal), ("redacted", attributes.redacted)] {
        if flag {
            out[name] = json!(true);
        }
    }
    out
}

fn payload(payload: &Payload<Box<str>>) -> Value {
    let mut out = match payload {
        Payload::Start { model_id, request_id } => {
            json!({ "modelId": model_id, "requestId": request_id })
        }
        Payload::Text { text, part_index, attributes }
        | Payload::Thinking { text, part_index, attributes } => {
            text_payload(text, *part_index, attributes)
        }
        Payload::ToolCallStart { id, name, part_index, input_format, provider_state } => {
            let format = Some(input_format.as_str()).filter(|format| *format != "json");
            json!({
                "toolCallId": id,
                "toolName": name,
                "partIndex": part_index,
                "inputFormat": format,
                "providerState": provider_state.as_deref().map(open),
            })
        }
        Payload::ToolCallArgs { id, text, part_index } => {
            json!({ "toolCallId": id, "argsTextDelta": text, "partIndex": part_index })
        }
        Payload::ToolCallEnd { id, part_index, incomplete, provider_state } => json!({
            "toolCallId": id,
            "partIndex": part_index,
            "incomplete": Some(*incomplete).filter(|flag| *flag),
            "providerState": provider_state.as_deref().map(open),
        }),
        Payload::Usage(usage) => return usage_payload(usage),
        Payload::Done { finish_reason, raw_finish_reason, model_id, details, warnings } => json!({
            "finishReason": finish_reason.as_str(),
            "rawFinishReason": raw_finish_reason,
            "modelId": model_id,
            "details": details.as_deref().map(open),
            "warnings": warnings.as_deref().map(open),
        }),
        Payload::Error(failure) => json!({
            "errorCode": failure.code.as_str(),
            "message": failure.message,
            "retryable": failure.retryable,
            "retryAfter": failure.retry_after,
            "status": failure.status,
            "providerCode": failure.provider_code,
            "httpRequestId": failure.http_request_id,
            "details": failure.details.as_deref().map(open),
            "warnings": failure.warnings.as_deref().map(open),
        }),
        Payload::Part { part_index, part } => {
            json!({ "partIndex": part_index, "part": open(part) })
        }
        Payload::PartEnd { part_index } => json!({ "partIndex": part_index }),
        Payload::Audio { data } => json!({ "audioDelta": data }),
    };
    drop_nulls(&mut out);
    out
}

/// The three counts are null when they are unknown, everything else is left out.
fn usage_payload(usage: &Usage<Box<str>>) -> Value {
    let mut rest = json!({
        "cost": usage.cost,
        "cacheReadTokens": usage.cache_read,
        "cacheWriteTokens": usage.cache_write,
        "reasoningTokens": usage.reasoning,
        "details": usage.details.as_deref().map(open),
    });
    drop_nulls(&mut rest);
    rest["inputTokens"] = json!(usage.input);
    rest["outputTokens"] = json!(usage.output);
    rest["totalTokens"] = json!(usage.total);
    rest
}

fn drop_nulls(object: &mut Value) {
    object.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
}
