//! Every recorded stream decodes to the expected content.

use std::collections::BTreeMap;

use deltafold::fold::{MessageAssembler, Part, Terminal};
use serde_json::{Value, json};

/// Recordings whose expectation the bytes prove wrong: id, field, why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

fn usage(message: &MessageAssembler) -> Value {
    let usage = message.usage().unwrap_or_default();
    json!({
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "total_tokens": usage.total,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "reasoning_tokens": usage.reasoning,
    })
}

fn provider_parts(dialect: &str, message: &MessageAssembler) -> Value {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for part in message.parts() {
        let kind = match part {
            Part::Whole(json) => {
                let part: Value = serde_json::from_str(json).expect("JSON");
                match part["kind"].as_str() {
                    Some("provider") => block_type(&part["payload"]["block"]),
                    // Name that Gemini gives to the part of an image.
                    Some("image") if dialect == "gemini" => "inlineData".to_owned(),
                    other => other.unwrap_or("?").to_owned(),
                }
            }
            Part::Thinking(part) if part.redacted => {
                let state: Value =
                    serde_json::from_str(part.provider_state.as_deref().unwrap_or("{}"))
                        .expect("JSON");
                // Reasoning that is withheld is a block of its own in some protocols; Chat has no blocks.
                let Some(kind) = state["data"]["type"].as_str() else {
                    continue;
                };
                kind.to_owned()
            }
            _ => continue,
        };
        *counts.entry(kind).or_default() += 1;
    }
    json!(counts)
}

/// The type of a block: in a union (Bedrock Converse, Gemini) the name of its one member, unless that tells who runs the
/// tool.
fn block_type(block: &Value) -> String {
    if let Some(kind) = block["type"].as_str() {
        return kind.to_owned();
    }
    let beside = |name: &str| matches!(name, "thought" | "thoughtSignature");
    let mut members = block.as_object().expect("an object").iter();
    let (name, inner) = members.find(|(name, _)| !beside(name)).expect("a union");
    match inner["type"].as_str() {
        Some(kind) if name == "toolUse" => kind.to_owned(),
        _ => name.clone(),
    }
}

fn differences(
    dialect: &str,
    expected: &Value,
    message: &MessageAssembler,
) -> Vec<(&'static str, Value, Value)> {
    let mut found = Vec::new();
    let mut compare = |field, want: &Value, have: Value| {
        if *want != have {
            found.push((field, want.clone(), have));
        }
    };
    let (terminal, finish, raw, code, words) = match message.terminal() {
        Some(Terminal::Done { finish_reason, raw_finish_reason }) => {
            ("done", Some(finish_reason.as_str()), raw_finish_reason.clone(), None, None)
        }
        Some(Terminal::Error(failure)) => {
            ("error", None, None, Some(failure.code.as_str()), failure.message.clone())
        }
        None => ("none", None, None, None, None),
    };
    let wanted =
        if expected["terminal"] == "truncated" { &json!("error") } else { &expected["terminal"] };
    compare("terminal", wanted, json!(terminal));
    if terminal == "done" {
        compare("finish_reason", &expected["finish_reason"], json!(finish));
        compare("raw_finish_reason", &expected["raw_finish_reason"], json!(raw));
    }
    if expected["terminal"] == "error" || expected["terminal"] == "truncated" {
        compare("error.code", &expected["error"]["code"], json!(code));
        if !expected["error"]["message"].is_null() && expected["terminal"] == "error" {
            compare("error.message", &expected["error"]["message"], json!(words));
        }
    }
    for (field, have) in [("model_id", message.model_id()), ("request_id", message.request_id())] {
        if !expected[field].is_null() {
            compare(field, &expected[field], json!(have));
        }
    }
    compare("text", &expected["text"], json!(message.text()));
    compare("thinking", &expected["thinking"], json!(crate::support::thinking(message)));
    compare("provider_parts", &expected["provider_parts"], provider_parts(dialect, message));
    compare("usage", &expected["usage"], usage(message));
    let refusal: String = message
        .parts()
        .iter()
        .filter_map(|part| match part {
            Part::Text(part) if part.refusal => Some(part.text.as_str()),
            _ => None,
        })
        .collect();
    compare("refusal", &json!(expected["refusal"].as_str().unwrap_or("")), json!(refusal));
    let calls: Vec<_> = message.tool_calls().map(|(_, call)| call).collect();
    let wanted = expected["tool_calls"].as_array().expect("a list");
    compare("calls", &json!(wanted.len()), json!(calls.len()));
    for (want, have) in wanted.iter().zip(calls) {
        if !want["id"].is_null() {
            compare("call.id", &want["id"], json!(&*have.id));
        }
        compare("call.name", &want["name"], json!(have.name));
        if !want["raw_args_text"].is_null() {
            compare("call.raw_args_text", &want["raw_args_text"], json!(have.args));
        }
        if !want["arguments"].is_null() {
            let text = if have.args.is_empty() { "{}" } else { &have.args };
            let parsed: Value = serde_json::from_str(text).unwrap_or_default();
            compare("call.arguments", &want["arguments"], parsed);
        } else if have.input_format.as_str() == "json" {
            let parsed = serde_json::from_str::<Value>(&have.args);
            assert!(
                have.incomplete || parsed.is_err(),
                "{}: arguments that are no JSON",
                expected["id"]
            );
        }
    }
    found
}

#[test]
fn every_recording_decodes_to_its_expectation() {
    let mut failures = 0;
    for recording in crate::support::recordings() {
        let deltas = crate::support::decode(&recording.dialect, &recording.body);
        let message = crate::support::fold(&deltas);
        for (field, want, have) in differences(&recording.dialect, &recording.expected, &message) {
            let excepted = EXCEPTIONS.iter().any(|(id, f, _)| *id == recording.id && *f == field);
            if !excepted {
                failures += 1;
                let cut = |value: &Value| value.to_string().chars().take(300).collect::<String>();
                eprintln!("{} {field}\n  want {}\n  have {}", recording.id, cut(&want), cut(&have));
            }
        }
    }
    assert_eq!(failures, 0);
}

#[test]
fn every_dialect_has_its_recordings() {
    let recordings = crate::support::recordings();
    for row in deltafold::dialect::REGISTRY.iter().filter(|_| !recordings.is_empty()) {
        let count = recordings.iter().filter(|recording| recording.dialect == row.name).count();
        assert!(count >= 3, "{}: {count} recordings", row.name);
        eprintln!("{}: {count}", row.name);
    }
}
