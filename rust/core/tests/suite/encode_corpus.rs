//! Every recorded stream, written as every target, says there what the recording must decode to.
//!
//! Content may be lost only if a note names the loss.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use deltafold::encode::{Encoder, Note, Settings, TARGETS, Target, argument_object};
use deltafold::fold::{MessageAssembler, Terminal};
use deltafold::provider_error::Response;
use serde_json::{Value, json};

use crate::support::{self, Checked, Recording};

/// The dialect that reads a target; `None` for the protocols of user interfaces.
fn reader(target: &Target) -> Option<&'static str> {
    match target.name {
        "ag-ui" | "ai-sdk" | "langchain" => None,
        "gemini-array" => Some("gemini"),
        "ollama-generate" => Some("ollama"),
        name => Some(name),
    }
}

/// Returns the word that a client of the target reads for a finish reason.
///
/// Source: docs/protocols/encoding.md#finish-reasons.
fn finish_reason<'a>(target: &str, reason: &'a str) -> &'a str {
    match (target, reason) {
        ("openai-chat" | "ollama" | "ollama-generate" | "bedrock-converse", "pause") => "length",
        ("openai-chat" | "openai-responses", "other" | "refusal")
        | ("anthropic-messages" | "bedrock-converse", "other")
        | ("ollama" | "ollama-generate", "other" | "content_filter" | "refusal") => "stop",
        ("anthropic-messages", "content_filter") => "refusal",
        ("gemini" | "gemini-array" | "bedrock-converse", "refusal") => "content_filter",
        ("gemini" | "gemini-array", "pause") => "other",
        (_, reason) => reason,
    }
}

fn encode(
    target: &'static Target,
    recording: &Recording,
    cuts: &[usize],
) -> (Checked<Encoder>, Vec<u8>) {
    let mut encoder = Checked::new(Encoder::new(target, Settings::default(), false));
    let mut decoder = support::decoder(&recording.dialect);
    let mut bytes = Vec::new();
    let mut start = 0;
    for &end in cuts.iter().chain([&recording.body.len()]) {
        decoder.feed(&recording.body[start..end], &mut *encoder);
        bytes.extend(encoder.take());
        start = end;
    }
    decoder.close(&mut *encoder);
    bytes.extend(encoder.take());
    assert_eq!(encoder.violation(), None, "{}", recording.id);
    (encoder, bytes)
}

fn read(dialect: &str, status: u16, body: &[u8]) -> MessageAssembler {
    let mut options = support::options(dialect);
    options.stream.response = Response::from_status(deltafold::dialect::VOCABULARY, status);
    let deltas = support::decode_with(deltafold::Decoder::new(options).expect("a dialect"), [body]);
    support::fold(&deltas)
}

fn calls(message: &MessageAssembler) -> Vec<(String, String, Value)> {
    let whole = message.tool_calls().filter(|(_, call)| !call.incomplete);
    whole
        .map(|(_, call)| {
            let args = argument_object(&call.args).unwrap_or_else(|| call.args.clone());
            let args = serde_json::from_str(&args).unwrap_or(Value::String(args));
            let args = if call.input_format == deltafold::contract::InputFormat::Text {
                json!({ "input": call.args })
            } else {
                args
            };
            (call.id.to_string(), call.name.to_string(), args)
        })
        .collect()
}

fn plain(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Returns the fields in which the source's message and the one that a client of the target reads differ.
fn differences(
    target: &Target,
    source: &MessageAssembler,
    back: &MessageAssembler,
    notes: &[Note],
) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |field: &str, want: Value, have: Value| {
        if want != have {
            found.push(format!("{field}: want {want}, have {have}"));
        }
    };
    let is_noted = |code: &str| notes.iter().any(|note| note.code == code);
    let generates = target.name == "ollama-generate";
    compare("text", json!(source.text()), json!(back.text()));
    compare(
        "thinking",
        json!(plain(&support::thinking(source))),
        json!(plain(&support::thinking(back))),
    );
    let mut wanted = calls(source);
    if is_noted("arguments") {
        wanted.retain(|(_, _, args)| args.is_object());
    }
    if generates {
        wanted.clear();
    }
    compare("calls", json!(wanted), json!(calls(back)));
    match (source.terminal(), back.terminal()) {
        (
            Some(Terminal::Done { finish_reason: reason, .. }),
            Some(Terminal::Done { finish_reason: have, .. }),
        ) => {
            let mut want = finish_reason(target.name, reason.as_str());
            if want == "tool_calls" && wanted.is_empty() && !has_provider_call(source) {
                want = "stop";
            }
            let kept = reason.as_str() == "refusal" && have.as_str() == "refusal";
            if want != reason.as_str() && reason.as_str() != "tool_calls" && !kept {
                compare("a note of the reason", json!(true), json!(is_noted("finish_reason")));
            }
            if kept {
                want = "refusal";
            }
            let given = have.as_str();
            // If the calls of the answer wait for the client, a plain stop stands for `tool_calls`.
            let implied = want == "stop" && given == "tool_calls" && !wanted.is_empty();
            let lost = want == "tool_calls" && given == "stop" && wanted.is_empty();
            if !implied && !lost {
                compare("finish_reason", json!(want), json!(given));
            }
        }
        (Some(Terminal::Error(want)), Some(Terminal::Error(have))) => {
            compare("message", json!(want.message.is_some()), json!(have.message.is_some()));
        }
        (Some(Terminal::Error(want)), Some(Terminal::Done { finish_reason, .. }))
            if target.name.starts_with("gemini")
                && want.code.as_str() == "content_blocked"
                && finish_reason.as_str() == "content_filter" => {}
        (Some(Terminal::Done { finish_reason, .. }), Some(Terminal::Error(_)))
            if matches!(finish_reason.as_str(), "error" | "other") => {}
        (want, have) => compare("terminal", json!(format!("{want:?}")), json!(format!("{have:?}"))),
    }
    if matches!(source.terminal(), Some(Terminal::Done { .. }))
        && matches!(back.terminal(), Some(Terminal::Done { .. }))
    {
        let want = source.usage().unwrap_or_default();
        let have = back.usage().unwrap_or_default();
        for (name, want, have) in
            [("input", want.input, have.input), ("output", want.output, have.output)]
        {
            // Unknown counts may be written as 0, or a record with one count left out, with a note.
            if want != have && !is_noted("usage") {
                compare(name, json!(want), json!(have));
            }
        }
        if want.input.is_some() && want.output.is_some() {
            compare("tokens", json!([want.input, want.output]), json!([have.input, have.output]));
        }
    }
    found
}

/// Returns whether a provider part waits for the caller, which makes the reason `tool_calls` without a call.
fn has_provider_call(message: &MessageAssembler) -> bool {
    message.tool_calls().count() == 0
        && message.parts().iter().any(|part| matches!(part, deltafold::fold::Part::Whole(_)))
}

#[test]
fn every_recording_says_the_same_in_every_target() {
    let mut failures: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut count, mut failed) = (0, 0);
    for recording in support::recordings() {
        let deltas = support::decode(&recording.dialect, &recording.body);
        let source = support::fold(&deltas);
        for target in TARGETS {
            let (encoder, bytes) = encode(target, &recording, &[]);
            count += 1;
            let status = encoder.status().expect("a status");
            assert!(encoder.ended(), "{} to {}", recording.id, target.name);
            let mut found: Vec<String> =
                support::violation(target.name, status, &bytes).into_iter().collect();
            if let Some(reader) = reader(target) {
                let back = read(reader, status, &bytes);
                found.extend(differences(target, &source, &back, encoder.notes()));
            }
            if !found.is_empty() {
                failed += 1;
                failures
                    .entry(format!("{} to {}", recording.dialect, target.name))
                    .or_default()
                    .push(format!(
                        "{}: {}; notes {:?}",
                        recording.id,
                        found.join("; "),
                        encoder.notes()
                    ));
            }
        }
    }
    let mut shown = String::new();
    for (pair, list) in &failures {
        let _ = writeln!(shown, "{pair}: {} differ, for example\n  {}", list.len(), list[0]);
    }
    assert!(failed == 0, "{failed} of {count}\n{shown}");
}

/// Places of 50 cuts, the same in every run.
fn cuts(length: usize, seed: u64) -> Vec<usize> {
    let mut state = seed | 1;
    let mut places: Vec<usize> = (0..50)
        .map(|_| {
            // Source: George Marsaglia, "Xorshift RNGs".
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % (length as u64 + 1)).expect("a place")
        })
        .collect();
    places.sort_unstable();
    places
}

#[test]
fn cuts_of_a_recording_change_no_byte() {
    for (seed, recording) in (0x9E37_79B9..).zip(support::recordings()) {
        for target in TARGETS {
            let (_, whole) = encode(target, &recording, &[]);
            let (_, cut) = encode(target, &recording, &cuts(recording.body.len(), seed));
            assert!(whole == cut, "{} to {}", recording.id, target.name);
        }
    }
}
