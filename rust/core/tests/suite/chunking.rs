//! The same bytes give the same deltas and the same state, however they are cut.

use crate::support::{Each, Owned, decode, decode_with, decoder};
use deltafold::contract::Delta;
use deltafold::decoder::Decoder;

/// Cuts of one event that are tried; longer events are cut at evenly spread places.
const MAX_CUTS: usize = 4_096;

fn feed(decoder: &mut Decoder, bytes: &[u8]) -> Vec<Owned> {
    let mut deltas = Vec::new();
    decoder.feed(bytes, &mut Each(&mut |delta: &Delta<&str>| deltas.push(delta.to_owned())));
    deltas
}

/// At every cut of every event: deltas and state after it equal those of the event fed whole.
fn every_cut(name: &str, dialect: &str, body: &[u8]) {
    let mut whole = decoder(dialect);
    let mut deltas = Vec::new();
    for event in crate::support::events(dialect, body) {
        let before = whole.clone();
        let expected = feed(&mut whole, event);
        let step = event.len() / MAX_CUTS + 1;
        for cut in (1..event.len()).step_by(step) {
            let mut halved = before.clone();
            let mut found = feed(&mut halved, &event[..cut]);
            found.extend(feed(&mut halved, &event[cut..]));
            assert!(found == expected, "{name}: deltas differ, cut {cut} of {:?}", lossy(event));
            assert!(halved == whole, "{name}: state differs, cut {cut} of {:?}", lossy(event));
        }
        deltas.extend(expected);
    }
    whole.close(&mut Each(&mut |delta: &Delta<&str>| deltas.push(delta.to_owned())));
    assert!(deltas == decode(dialect, body), "{name}: by events differs from at once");
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned()
}

fn every_cut_of_recordings(dialect: &str) {
    for recording in crate::support::recordings() {
        if recording.dialect == dialect {
            every_cut(&recording.id, dialect, &recording.body);
        }
    }
}

#[test]
fn one_recording_in_ten_decodes_the_same_at_every_cut() {
    for recording in crate::support::recordings().iter().step_by(10) {
        every_cut(&recording.id, &recording.dialect, &recording.body);
    }
}

#[test]
#[ignore = "slow"]
fn every_recording_of_anthropic_messages_decodes_the_same_at_every_cut() {
    every_cut_of_recordings("anthropic-messages");
}

#[test]
#[ignore = "slow"]
fn every_recording_of_openai_chat_decodes_the_same_at_every_cut() {
    every_cut_of_recordings("openai-chat");
}

#[test]
#[ignore = "slow"]
fn every_recording_of_openai_responses_decodes_the_same_at_every_cut() {
    every_cut_of_recordings("openai-responses");
}

#[test]
#[ignore = "slow"]
fn every_recording_of_gemini_decodes_the_same_at_every_cut() {
    every_cut_of_recordings("gemini");
}

#[test]
#[ignore = "slow"]
fn every_recording_of_gemini_interactions_decodes_the_same_at_every_cut() {
    every_cut_of_recordings("gemini-interactions");
}

#[test]
#[ignore = "slow"]
fn every_recording_of_cohere_chat_decodes_the_same_at_every_cut() {
    every_cut_of_recordings("cohere-chat");
}

#[test]
#[ignore = "slow"]
fn every_recording_of_mistral_decodes_the_same_at_every_cut() {
    every_cut_of_recordings("mistral");
}

#[test]
#[ignore = "slow"]
fn every_recording_of_bedrock_converse_decodes_the_same_at_every_cut() {
    every_cut_of_recordings("bedrock-converse");
}

#[test]
#[ignore = "slow"]
fn every_recording_of_bedrock_invoke_decodes_the_same_at_every_cut() {
    every_cut_of_recordings("bedrock-invoke");
}

#[test]
#[ignore = "slow"]
fn every_recording_of_ollama_decodes_the_same_at_every_cut() {
    every_cut_of_recordings("ollama");
}

#[test]
fn every_fixture_decodes_the_same_at_every_cut() {
    for fixture in crate::support::fixtures() {
        every_cut(&fixture.name, &fixture.dialect, &fixture.wire);
    }
}

#[test]
fn every_fixture_decodes_the_same_in_pieces_of_1_to_17_bytes() {
    for fixture in crate::support::fixtures() {
        let whole = decode(&fixture.dialect, &fixture.wire);
        for size in 1..=17 {
            let pieces = decode_with(decoder(&fixture.dialect), fixture.wire.chunks(size));
            assert!(pieces == whole, "{}: pieces of {size} bytes", fixture.name);
        }
    }
}

#[test]
fn framing_by_hand_decodes_the_same_at_every_pair_of_cuts() {
    let chunk = |text: &str| format!("{{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}");
    let bodies = [
        format!("\u{feff}data: {}\r\n\r\ndata:[DONE]\r\n\r\n", chunk("a")),
        format!("data: {}\r\rdata: [DONE]\r\r", chunk("lone cr")),
        format!(": comment\r\n\r\nid: 1\nevent: x\ndata: {}\n\ndata: [DONE]", chunk("é\u{2028}😀")),
        format!("data: {{\"choices\":[{{\"delta\":\ndata: {{\"content\":\"two lines\"}}}}]}}\n\n{}", ""),
        "{\n  \"error\": {\n    \"message\": \"bad key\",\n    \"code\": 401\n  }\n}".to_owned(),
        format!("{}\n{}\n", chunk("bare"), chunk("lines")),
        "  \n<html><body>login</body></html>".to_owned(),
        "error: {\"error\":{\"message\":\"old server\"}}\n\n".to_owned(),
        "data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\\ude00\"}}]}\n\n".to_owned(),
    ];
    for body in bodies {
        let bytes = body.as_bytes();
        let whole = decode("openai-chat", bytes);
        for first in 0..bytes.len() {
            for second in first..bytes.len() {
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                let deltas = decode_with(decoder("openai-chat"), pieces);
                assert_eq!(deltas, whole, "cuts {first} and {second} of {body:?}");
            }
        }
    }
}
