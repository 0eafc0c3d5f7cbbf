//! The checkers of the output of deltafold: good streams written by hand from docs/protocols/encoding.md, and for each target a table of
//! streams that differ from a good one in one place, with the words that name the defect.
//!
//! A stream is written as one line an event, which [`encode`] puts into the framing of its target.

mod ag_ui;
mod ai_sdk;
mod anthropic_messages;
mod bedrock_converse;
mod bodies;
mod framings;
mod gemini;
mod hostile;
mod langchain;
mod ollama;
mod openai_chat;
mod openai_responses;
mod runs;

use crate::support::{decode_with, fold, options, thinking};
use deltafold::contract::{FinishReason, Payload};
use deltafold::decoder::Decoder;
use deltafold::fold::Part;
use deltafold::framing::aws_event_stream::{write_frame, write_header};
use deltafold_grammar::{Checker, Violation};

/// One change of a good stream.  Each finds the first line that holds its first text.
#[derive(Clone, Copy, Debug)]
enum Edit<'a> {
    /// Replace the text in the line.
    Swap(&'a str, &'a str),
    /// Leave the line out.
    Drop(&'a str),
    /// Write the line twice.
    Repeat(&'a str),
    /// Write another line before it.
    Before(&'a str, &'a str),
    /// Exchange the line with the one after it.
    Flip(&'a str),
    /// Leave the line and all after it out.
    Cut(&'a str),
    /// Write another line at the end.
    Append(&'a str),
}

use Edit::{Append, Before, Cut, Drop, Flip, Repeat, Swap};

impl Edit<'_> {
    fn apply(self, stream: &str) -> String {
        let mut lines: Vec<String> =
            stream.trim().lines().map(|line| line.trim().to_owned()).collect();
        let part = match self {
            Swap(part, _)
            | Drop(part)
            | Repeat(part)
            | Before(part, _)
            | Flip(part)
            | Cut(part) => part,
            Append(_) => "",
        };
        let at = lines.iter().position(|line| line.contains(part));
        let at = at.unwrap_or_else(|| panic!("{part:?} is not in the stream"));
        match self {
            Swap(from, to) => lines[at] = lines[at].replacen(from, to, 1),
            Drop(_) => drop(lines.remove(at)),
            Repeat(_) => lines.insert(at, lines[at].clone()),
            Before(_, line) => lines.insert(at, line.to_owned()),
            Flip(_) => lines.swap(at, at + 1),
            Cut(_) => lines.truncate(at),
            Append(line) => lines.push(line.to_owned()),
        }
        lines.join("\n")
    }
}

/// Put the lines of a stream into the framing of its target.
fn encode(target: &str, stream: &str) -> Vec<u8> {
    let lines = stream.trim().lines().map(str::trim);
    match target {
        "gemini-array" => format!("[{}]", lines.collect::<Vec<_>>().join(",")).into_bytes(),
        "ollama" | "ollama-generate" | "langchain" => {
            lines.map(|line| format!("{line}\n")).collect::<String>().into_bytes()
        }
        "bedrock-converse" => lines.flat_map(frame).collect(),
        _ => {
            let mut count = 0;
            lines.map(|line| sse_event(target, line, &mut count)).collect::<String>().into_bytes()
        }
    }
}

/// `{…}`, `: comment`, `[DONE]`, or `@name {…}` for another name than the type.  `#` stands for the next sequence number.
fn sse_event(target: &str, line: &str, count: &mut u64) -> String {
    if line.starts_with(':') {
        return format!("{line}\n\n");
    }
    if let Some((name, data)) = line.strip_prefix('@').and_then(|line| line.split_once(' ')) {
        return format!("event: {name}\ndata: {data}\n\n");
    }
    let named =
        matches!(target, "anthropic-messages" | "openai-responses") && line.starts_with('{');
    if !named {
        return format!("data: {line}\n\n");
    }
    let kind =
        line.split(r#""type":""#).nth(1).and_then(|rest| rest.split('"').next()).unwrap_or("none");
    let data = line.replacen(r#""sequence_number":#"#, &format!(r#""sequence_number":{count}"#), 1);
    *count += 1;
    format!("event: {kind}\ndata: {data}\n\n")
}

/// `name {…}`, or `!name {…}` for an exception.
fn frame(line: &str) -> Vec<u8> {
    let (name, payload) = line.split_once(' ').unwrap_or((line, ""));
    let mut headers = Vec::new();
    let (kind, message_type) = match name.strip_prefix('!') {
        Some(_) => (":exception-type", "exception"),
        None => (":event-type", "event"),
    };
    write_header(&mut headers, kind, name.trim_start_matches('!')).unwrap();
    write_header(&mut headers, ":message-type", message_type).unwrap();
    write_header(&mut headers, ":content-type", "application/json").unwrap();
    let mut out = Vec::new();
    write_frame(&mut out, &headers, payload.as_bytes()).unwrap();
    out
}

/// The verdict on a body that is fed in pieces of one size, and the checker after it.
fn fed(target: &str, body: &[u8], size: usize) -> (Result<(), Violation>, Checker) {
    let checker = match target.strip_suffix(" (run)") {
        Some(target) => Checker::of_run(target),
        None => Checker::new(target),
    };
    let mut checker = checker.unwrap();
    for piece in body.chunks(size) {
        if let Err(violation) = checker.feed(piece) {
            assert_eq!(checker.feed(b"x"), Err(violation.clone()), "a violation must stay");
            assert_eq!(checker.close(), Err(violation.clone()), "a violation must stay");
            return (Err(violation), checker);
        }
    }
    (checker.close(), checker)
}

/// The verdict on a body, the same whole, byte by byte, and in other pieces.
fn verdict(target: &str, body: &[u8]) -> Result<(), Violation> {
    let (whole, checker) = fed(target, body, body.len().max(1));
    for size in [1, 2, 7, 64] {
        let (pieces, other) = fed(target, body, size);
        assert_eq!(pieces, whole, "{target}, pieces of {size}");
        if whole.is_ok() {
            assert_eq!(other, checker, "{target}, pieces of {size}");
        }
    }
    whole
}

/// Check that a stream is lawful.
fn accepts(target: &str, stream: &str) {
    if let Err(violation) = verdict(target, &encode(target, stream)) {
        panic!("{violation}\n{stream}");
    }
}

/// Check that a lawful stream becomes unlawful by each change, for the reason that the words name.
fn refuses(target: &str, good: &str, table: &[(Edit<'_>, &str)]) {
    accepts(target, good);
    for (edit, words) in table {
        let bad = edit.apply(good);
        match verdict(target, &encode(target, &bad)) {
            Ok(()) => panic!("{target}: {edit:?} was accepted, expected {words:?}"),
            Err(violation) => {
                assert!(
                    violation.rule.contains(words),
                    "{target}: {edit:?}\n{violation}\nlacks {words:?}"
                );
                assert_eq!(violation.target, target.trim_end_matches(" (run)"));
                assert!(violation.event > 0);
            }
        }
    }
}

/// Check that a lawful stream stays lawful by each change.
fn allows(target: &str, good: &str, edits: &[Edit<'_>]) {
    for edit in edits {
        let other = edit.apply(good);
        if let Err(violation) = verdict(target, &encode(target, &other)) {
            panic!("{target}: {edit:?}\n{violation}");
        }
    }
}

/// A lawful stream of each target.
fn good_streams() -> [(&'static str, String); 11] {
    [
        ("openai-chat", openai_chat::good()),
        ("openai-responses", openai_responses::good()),
        ("anthropic-messages", anthropic_messages::GOOD.to_owned()),
        ("gemini", gemini::good()),
        ("gemini-array", gemini::good()),
        ("ollama", ollama::GOOD.to_owned()),
        ("ollama-generate", ollama::GENERATE.to_owned()),
        ("bedrock-converse", bedrock_converse::GOOD.to_owned()),
        ("ag-ui", ag_ui::GOOD.to_owned()),
        ("ai-sdk", ai_sdk::GOOD.to_owned()),
        ("langchain", langchain::GOOD.to_owned()),
    ]
}

#[test]
fn an_unknown_target_has_no_checker() {
    assert!(Checker::new("cohere-chat").is_none());
    let names: Vec<_> = deltafold_grammar::targets().collect();
    assert_eq!(names, good_streams().map(|(target, _)| target));
    for name in names {
        assert!(Checker::new(name).is_some(), "{name}");
    }
}

#[test]
fn the_decoder_reads_every_lawful_stream_without_a_warning() {
    for (target, stream) in good_streams() {
        let dialect = match target {
            "gemini-array" => "gemini",
            "ollama-generate" => "ollama",
            // Protocols that are written only.
            "ag-ui" | "ai-sdk" | "langchain" => continue,
            dialect => dialect,
        };
        // The decoder notes unknown events, and a keep-alive of Bedrock is one.
        let stream = stream.replace("keepAlive {}\n", "");
        let mut options = options(dialect);
        options.stream.logprobs = true; // those of which a stream has some are read
        let body = encode(target, &stream);
        let deltas = decode_with(Decoder::new(options).unwrap(), [body.as_slice()]);
        match &deltas.last().unwrap().payload {
            // The stream of Responses has a refusal beside a call, which may not run for that reason.
            Payload::Done { finish_reason: FinishReason::Refusal, warnings, .. } => {
                let warnings = warnings.as_deref().unwrap_or_default();
                assert_eq!(warnings.matches("\"code\"").count(), 1, "{target} {warnings}");
                assert!(warnings.contains("calls_not_runnable"), "{target} {warnings}");
            }
            Payload::Done { warnings: None, .. } => {}
            Payload::Done { warnings: Some(warnings), .. } => {
                assert_eq!(warnings.matches("\"code\"").count(), 1, "{target} {warnings}");
                assert!(warnings.contains("incomplete_call"), "{target} {warnings}");
                let message = fold(&deltas);
                let calls = |part: &Part| matches!(part, Part::ToolCall(call) if call.incomplete);
                assert!(message.parts().iter().any(calls), "{target}");
            }
            other => panic!("{target}: {other:?}"),
        }
        let message = fold(&deltas);
        assert!(!thinking(&message).is_empty(), "{target}");
    }
}
