//! Every stream is written as every target and says the same there.
//!
//! The oracle is the decoder: what an encoder writes is decoded again, and compared with the source's message.

use deltafold::contract::{Delta, FinishReason, InputFormat, Output, Payload, TextAttributes};
use deltafold::encode::{self, Encoder, Settings, TARGETS, Target};
use deltafold::fold::{MessageAssembler, Part, Terminal};

use crate::support::{self, Checked, Owned};

/// Encodes deltas one by one.
fn encode(target: &'static Target, deltas: &[Owned]) -> (Checked<Encoder>, Vec<u8>) {
    encode_with(target, Settings::default(), deltas)
}

fn encode_with(
    target: &'static Target,
    settings: Settings,
    deltas: &[Owned],
) -> (Checked<Encoder>, Vec<u8>) {
    let mut encoder = Checked::new(Encoder::new(target, settings, false));
    let mut bytes = Vec::new();
    for delta in deltas {
        encoder.delta(&delta.as_deref());
        assert_eq!(encoder.violation(), None);
        bytes.extend(encoder.take());
    }
    (encoder, bytes)
}

/// Content of a message: text, thinking, calls and the end.
#[derive(Debug, Default, PartialEq)]
struct Said {
    text: String,
    thinking: String,
    calls: Vec<(String, String, String)>,
    end: String,
}

/// Returns the content of a message; with a target, the part that the target has words for.
fn said(message: &MessageAssembler, target: Option<&Target>) -> Said {
    let thinking: Vec<&str> = message
        .parts()
        .iter()
        .filter_map(|part| match part {
            Part::Thinking(part) if !part.text.is_empty() => Some(part.text.as_str()),
            _ => None,
        })
        .collect();
    let calls = message
        .tool_calls()
        .filter(|(_, call)| !call.incomplete && !call.name.is_empty())
        .filter(|(_, call)| target.is_none_or(|target| takes(target, call)))
        .filter(|_| target.is_none_or(|target| target.name != "ollama" || lets_calls_run(message)))
        .map(|(_, call)| {
            let args = match (call.input_format, target) {
                (InputFormat::Text, Some(target)) if !has_free_text(target) => {
                    serde_json::json!({ "input": call.args }).to_string()
                }
                _ => call.args.clone(),
            };
            let object = deltafold::encode::argument_object(&args);
            let args = object.map_or(args, |object| {
                serde_json::from_str::<serde_json::Value>(&object).expect("JSON").to_string()
            });
            (call.id.to_string(), call.name.to_string(), args)
        })
        .collect();
    let end = match message.terminal() {
        Some(Terminal::Done { finish_reason: FinishReason::Other, .. })
            if target.is_some() && message.parts().is_empty() =>
        {
            "error"
        }
        Some(Terminal::Done { finish_reason: FinishReason::Error, .. } | Terminal::Error(_)) => {
            "error"
        }
        Some(Terminal::Done { .. }) => "done",
        None => "none",
    };
    Said {
        text: message.text(),
        thinking: thinking.concat().replace("\n\n", ""),
        calls,
        end: end.to_owned(),
    }
}

/// Returns whether whole calls may run after the end of a message.
fn lets_calls_run(message: &MessageAssembler) -> bool {
    match message.terminal() {
        Some(Terminal::Done { finish_reason, .. }) => finish_reason.forbids_calls().is_none(),
        Some(Terminal::Error(_)) => false,
        None => true,
    }
}

/// Returns whether a target has a form for a call.
fn takes(target: &Target, call: &deltafold::fold::ToolCall) -> bool {
    match target.name {
        "ollama-generate" => false,
        "gemini" | "gemini-array" | "ollama" => {
            call.input_format == InputFormat::Text
                || deltafold::encode::argument_object(&call.args).is_some()
        }
        _ => true,
    }
}

fn has_free_text(target: &Target) -> bool {
    matches!(target.name, "openai-chat" | "openai-responses")
}

/// Blocks and images as JSON, without white space between tokens.
fn whole_parts(message: &MessageAssembler) -> Vec<serde_json::Value> {
    let whole = message.parts().iter().filter_map(|part| match part {
        Part::Whole(json) => Some(serde_json::from_str(json).expect("JSON")),
        _ => None,
    });
    whole.collect()
}

#[test]
fn blocks_and_images_come_back_in_their_own_protocol() {
    // An input without its call; a call whose arguments are not an object; signatures that are not base64.
    let lost = [
        "bedrock-converse/blocks-astray",
        "gemini/parts-odd",
        "gemini/code-execution",
        "gemini/image",
        "gemini/server-tools",
    ];
    let mut count = 0;
    for fixture in support::fixtures() {
        let Some(target) = encode::find(&fixture.dialect) else { continue };
        let deltas = support::decode(&fixture.dialect, &fixture.wire);
        let source = support::fold(&deltas);
        if lost.contains(&fixture.name.as_str()) || whole_parts(&source).is_empty() {
            continue;
        }
        count += 1;
        let (encoder, stream) = encode(target, &deltas);
        if encoder.failed() {
            continue;
        }
        let body = encode::whole_body(target, Settings::default(), 0, &source);
        let body = body.expect("a dialect has whole bodies").json;
        // Only a stream of Responses has audio.
        let has_body = fixture.name != "openai-responses/audio";
        for bytes in [stream.as_slice()].into_iter().chain(has_body.then_some(body.as_bytes())) {
            let back = support::fold(&support::decode(&fixture.dialect, bytes));
            assert_eq!(whole_parts(&back), whole_parts(&source), "{}", fixture.name);
        }
    }
    assert!(count > 15, "{count}");
}

/// The dialect that reads a target again.
fn reader(target: &Target) -> Option<&'static str> {
    let name = match target.name {
        "gemini-array" => "gemini",
        "ollama-generate" => "ollama",
        name => name,
    };
    deltafold::dialect::find(name).map(|row| row.name)
}

#[test]
fn every_fixture_says_the_same_in_every_target() {
    let mut failures = Vec::new();
    let mut count = 0;
    for fixture in support::fixtures() {
        let deltas = support::decode(&fixture.dialect, &fixture.wire);
        let source = support::fold(&deltas);
        for target in TARGETS {
            let Some(reader) = reader(target) else { continue };
            let (encoder, bytes) = encode(target, &deltas);
            let mut source = said(&source, Some(target));
            count += 1;
            assert!(encoder.ended(), "{} to {}", fixture.name, target.name);
            if target.name.starts_with("gemini") && source.end != "none" {
                // A call without an object ends Gemini's answer, and it has no word for other failures of the model.
                let malformed = encoder.notes().iter().any(|note| note.code == "arguments");
                if malformed {
                    "error".clone_into(&mut source.end);
                } else if fixture.dialect != "gemini" && ends_in_error_reason(&deltas) {
                    "done".clone_into(&mut source.end);
                }
            }
            let status = encoder.status().expect("a status");
            let back = support::fold(&decode_answer(reader, status, &bytes));
            let back = said(&back, None);
            if back != source {
                failures.push(format!(
                    "{} to {} ({status}):\n  want {source:?}\n  have {back:?}\n  notes {:?}\n{}",
                    fixture.name,
                    target.name,
                    encoder.notes(),
                    String::from_utf8_lossy(&bytes)
                ));
            }
        }
    }
    assert!(count > 0);
    let shown = failures.iter().take(12).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(failures.is_empty(), "{} of {count} differ:\n{shown}", failures.len());
}

#[test]
fn every_whole_body_says_what_its_stream_says() {
    let mut failures = Vec::new();
    let mut count = 0;
    for fixture in support::fixtures() {
        let deltas = support::decode(&fixture.dialect, &fixture.wire);
        let source = support::fold(&deltas);
        for target in TARGETS {
            let Some(reader) = reader(target) else { continue };
            let Some(whole) = encode::whole_body(target, Settings::default(), 0, &source) else {
                continue;
            };
            let (encoder, bytes) = encode(target, &deltas);
            let status = encoder.status().expect("a status");
            let mut streamed = said(&support::fold(&decode_answer(reader, status, &bytes)), None);
            let body = whole.json.as_bytes();
            let mut answer = said(&support::fold(&decode_answer(reader, whole.status, body)), None);
            count += 1;
            if streamed.end == "error" && whole.status != 200 {
                // An HTTP error has no place for content before it.
                streamed = Said { end: streamed.end, ..Said::default() };
            }
            if whole.notes.list().iter().any(|note| note.what.contains("took over")) {
                // A stream has written the thinking of the model that declined before the other one took over.
                streamed.thinking.clone_from(&answer.thinking);
            }
            if matches!(target.name, "anthropic-messages" | "bedrock-converse" | "openai-responses")
            {
                // A stream carries any text of arguments, a whole body of the first two only objects. The reader of the third
                // takes some text that is no JSON, and that no delta brought, for encrypted arguments.
                for said in [&mut streamed, &mut answer] {
                    said.calls
                        .retain(|(_, _, args)| deltafold::encode::argument_object(args).is_some());
                }
            }
            if answer != streamed {
                failures.push(format!(
                    "{} to {} ({}):\n  stream {streamed:?}\n  whole {answer:?}\n{}",
                    fixture.name, target.name, whole.status, whole.json
                ));
            }
        }
    }
    assert!(count > 0);
    let shown = failures.iter().take(12).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(failures.is_empty(), "{} of {count} differ:\n{shown}", failures.len());
}

fn ends_in_error_reason(deltas: &[Owned]) -> bool {
    let last = deltas.last().map(|delta| &delta.payload);
    matches!(last, Some(Payload::Done { finish_reason: FinishReason::Error, .. }))
}

/// Decodes an answer as a client does, which knows the status.
fn decode_answer(dialect: &str, status: u16, body: &[u8]) -> Vec<Owned> {
    let mut options = support::options(dialect);
    options.stream.response =
        deltafold::provider_error::Response::from_status(deltafold::dialect::VOCABULARY, status);
    support::decode_with(deltafold::Decoder::new(options).expect("a dialect"), [body])
}

#[test]
fn bytes_one_by_one_give_the_same_bytes() {
    for fixture in support::fixtures() {
        let deltas = support::decode(&fixture.dialect, &fixture.wire);
        for target in TARGETS {
            let (_, wanted) = encode(target, &deltas);
            let mut encoder = Checked::new(Encoder::new(target, Settings::default(), false));
            let mut decoder = support::decoder(&fixture.dialect);
            for byte in fixture.wire.chunks(1) {
                decoder.feed(byte, &mut *encoder);
            }
            decoder.close(&mut *encoder);
            assert_eq!(encoder.violation(), None);
            let bytes = encoder.take();
            assert_eq!(
                String::from_utf8_lossy(&bytes),
                String::from_utf8_lossy(&wanted),
                "{} to {}",
                fixture.name,
                target.name
            );
        }
    }
}

#[test]
fn a_name_finds_its_target() {
    for row in TARGETS {
        assert_eq!(encode::find(row.name).map(|found| found.name), Some(row.name));
    }
    assert!(encode::find("openai").is_none());
}

#[test]
fn every_cut_of_one_fixture_in_ten_gives_the_same_bytes() {
    every_cut_of_fixtures(10);
}

#[test]
#[ignore = "slow"]
fn every_cut_of_a_fixture_gives_the_same_bytes() {
    every_cut_of_fixtures(1);
}

fn every_cut_of_fixtures(every: usize) {
    for (place, fixture) in support::fixtures().iter().enumerate().step_by(every) {
        let target = &TARGETS[place % TARGETS.len()];
        let whole = two_pieces(target, fixture, 0);
        for cut in 1..fixture.wire.len().min(4_096) {
            let bytes = two_pieces(target, fixture, cut);
            assert!(bytes == whole, "{} to {}, cut at {cut}", fixture.name, target.name);
        }
    }
}

fn two_pieces(target: &'static Target, fixture: &support::Fixture, cut: usize) -> Vec<u8> {
    let mut encoder = Checked::new(Encoder::new(target, Settings::default(), false));
    let mut decoder = support::decoder(&fixture.dialect);
    let (first, second) = fixture.wire.split_at(cut);
    decoder.feed(first, &mut *encoder);
    decoder.feed(second, &mut *encoder);
    decoder.close(&mut *encoder);
    encoder.take()
}

#[test]
fn the_old_function_call_ends_in_tool_calls_as_it_is_written() {
    let body = concat!(
        r#"data: {"choices":[{"index":0,"delta":{"function_call":{"name":"f","arguments":"{}"}}}]}"#,
        "\n\n",
        r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"function_call"}]}"#,
        "\n\ndata: [DONE]\n\n",
    );
    let deltas = support::decode("openai-chat", body.as_bytes());
    let (_, bytes) = encode(encode::find("openai-chat").expect("a target"), &deltas);
    let text = String::from_utf8(bytes).expect("text");
    assert!(text.contains(r#""tool_calls":[{"index":0"#), "{text}");
    assert!(text.contains(r#""finish_reason":"tool_calls""#), "{text}");
    assert!(!text.contains("function_call\""), "{text}");
}

/// Encodes one whole part, and returns the text.
fn written_part(target: &str, part: &str) -> String {
    let target = encode::find(target).unwrap();
    let mut encoder = Checked::new(Encoder::new(target, Settings::default(), false));
    let payloads = [
        Payload::Start { model_id: "m", request_id: "r" },
        Payload::Part { part_index: None, part },
    ];
    for (seq, payload) in (1..).zip(payloads) {
        encoder.delta(&Delta { seq, payload, provider_raw: None });
        assert_eq!(encoder.violation(), None);
    }
    String::from_utf8(encoder.take()).unwrap()
}

#[test]
fn an_image_with_an_empty_address_is_no_file_of_a_user_interface() {
    let part = "{\"kind\":\"image\",\"payload\":{\"mimeType\":\"image/*\",\"url\":\"\"}}";
    let text = written_part("ai-sdk", part);
    assert!(text.contains("data-deltafold-part") && !text.contains("\"type\":\"file\""), "{text}");
    let text = written_part("ai-sdk", &part.replace("\"url\":\"\"", "\"url\":\"https://a.b\""));
    assert!(text.contains("\"type\":\"file\",\"url\":\"https://a.b\""), "{text}");
}

#[test]
fn an_unfinished_call_of_a_provider_has_no_empty_delta() {
    let part = "{\"kind\":\"provider\",\"payload\":{\"dialect\":\"openai-responses\",\"block\":{\"type\":\"custom_tool_call\",\"id\":\"ctc_1\",\"call_id\":\"c\",\"name\":\"x_search\",\"input\":\"\",\"status\":\"in_progress\"}}}";
    let text = written_part("openai-responses", part);
    assert!(
        text.contains("response.custom_tool_call_input.done") && !text.contains("_input.delta")
    );
}

#[test]
fn the_state_of_a_message_is_no_item_of_reasoning() {
    let state = "{\"dialect\":\"openai-responses\",\"modelId\":\"m\",\"data\":{\"id\":\"msg_1\",\"type\":\"message\"}}";
    let attributes = TextAttributes { provider_state: Some(state), ..TextAttributes::default() };
    let mut encoder = Checked::new(Encoder::new(
        encode::find("openai-responses").unwrap(),
        Settings::default(),
        false,
    ));
    let payloads = [
        Payload::Start { model_id: "m", request_id: "r" },
        Payload::Thinking { text: "", part_index: Some(0), attributes },
        Payload::PartEnd { part_index: 0 },
    ];
    for (seq, payload) in (1..).zip(payloads) {
        encoder.delta(&Delta { seq, payload, provider_raw: None });
        assert_eq!(encoder.violation(), None);
    }
    let text = String::from_utf8(encoder.take()).unwrap();
    assert!(!text.contains("output_item"), "{text}");
    assert!(encoder.notes().iter().any(|note| note.code == "provider_state"));
}

/// Returns a stream of one whole call that ends with a finish reason.
fn call_that_ends_with(finish_reason: FinishReason) -> Vec<Owned> {
    let payloads = [
        Payload::Start { model_id: "m", request_id: "r" },
        Payload::ToolCallStart {
            id: "c",
            name: "f",
            part_index: Some(0),
            input_format: InputFormat::Json,
            provider_state: None,
        },
        Payload::ToolCallArgs { id: "c", text: "{\"x\":1}", part_index: None },
        Payload::ToolCallEnd { id: "c", part_index: None, incomplete: false, provider_state: None },
        Payload::Done {
            finish_reason,
            raw_finish_reason: None,
            model_id: None,
            details: None,
            warnings: None,
        },
    ];
    let numbered = payloads.into_iter().zip(1..);
    let deltas =
        numbered.map(|(payload, seq)| Delta { seq, payload, provider_raw: None }.to_owned());
    deltas.collect()
}

#[test]
fn no_target_gives_an_answer_whose_calls_may_not_run_the_word_of_a_good_end() {
    for reason in FinishReason::ALL.iter().copied() {
        let deltas = call_that_ends_with(reason);
        let source = support::fold(&deltas);
        for target in TARGETS {
            let Some(reader) = reader(target).filter(|_| target.name != "ollama-generate") else {
                continue;
            };
            let (encoder, stream) = encode(target, &deltas);
            let status = encoder.status().expect("a status");
            let whole = encode::whole_body(target, Settings::default(), 0, &source);
            let whole = whole.expect("a dialect has whole bodies");
            for (form, status, bytes) in
                [("stream", status, &stream[..]), ("whole", whole.status, whole.json.as_bytes())]
            {
                let back = support::fold(&decode_answer(reader, status, bytes));
                let calls = back.tool_calls().filter(|(_, call)| !call.incomplete).count();
                let runs = lets_calls_run(&back) && calls > 0;
                let allowed = reason.forbids_calls().is_none();
                assert_eq!(
                    runs,
                    allowed,
                    "{} {form} {reason:?}: {}",
                    target.name,
                    String::from_utf8_lossy(bytes)
                );
            }
        }
    }
}
