//! Several answers of one response, written as one stream: each says the same under its number.
//!
//! The oracle is the decoder of all answers. The checker of the grammar reads all output.

use std::collections::BTreeMap;

use deltafold::contract::{ErrorCode, Failure, Output, Payload};
use deltafold::decoder::Choices;
use deltafold::encode::{
    AnswersEncoder, Encoder, Settings, TARGETS, Target, find, whole_body, whole_body_of_answers,
};
use deltafold::fold::MessageAssembler;
use deltafold::limits::Limits;

use crate::choices::{
    Streams, chat, chat_stream, decode_all, ends, finished, gemini_stream, said, texts,
    titan_stream,
};
use crate::support::{Checked, fold, options};

const WITH_ANSWERS: [&str; 3] = ["gemini", "gemini-array", "openai-chat"];

fn targets() -> impl Iterator<Item = &'static Target> {
    WITH_ANSWERS.iter().filter_map(|name| find(name))
}

fn reader(target: &Target) -> &'static str {
    if target.name == "openai-chat" { "openai-chat" } else { "gemini" }
}

/// Bytes of several answers, decoded and encoded in pieces of this size.
fn transcoded(
    target: &'static Target,
    source: &str,
    body: &[u8],
    size: usize,
) -> (Checked<AnswersEncoder>, Vec<u8>) {
    let mut decoder = Choices::new(options(source)).unwrap();
    let mut encoder =
        Checked::new(AnswersEncoder::new(target, Settings::default(), false).unwrap());
    let mut bytes = Vec::new();
    let mut take = |decoder: &mut Choices, encoder: &mut Checked<AnswersEncoder>| {
        for (number, batch) in decoder.take() {
            batch.replay(&mut encoder.answer(number).unwrap());
            assert_eq!(encoder.violation(), None);
        }
        bytes.extend(encoder.take());
    };
    for piece in body.chunks(size) {
        decoder.feed(piece);
        take(&mut decoder, &mut encoder);
    }
    decoder.close();
    take(&mut decoder, &mut encoder);
    encoder.close();
    bytes.extend(encoder.take());
    assert!(encoder.ended());
    (encoder, bytes)
}

fn messages(streams: &Streams) -> BTreeMap<u64, MessageAssembler> {
    streams.iter().map(|(number, deltas)| (*number, fold(deltas))).collect()
}

fn sources() -> [(&'static str, Vec<u8>); 3] {
    [
        ("openai-chat", chat_stream(5).into_bytes()),
        ("gemini", gemini_stream(4).into_bytes()),
        ("bedrock-invoke", titan_stream(3)),
    ]
}

#[test]
fn every_answer_says_the_same_under_its_number() {
    for (source, body) in sources() {
        let expected = decode_all(options(source), [body.as_slice()]);
        for target in targets() {
            let (encoder, bytes) = transcoded(target, source, &body, usize::MAX);
            assert!(!encoder.failed() && encoder.status() == Some(200), "{source} {}", target.name);
            let found = decode_all(options(reader(target)), [bytes.as_slice()]);
            let name = format!("{source} to {}", target.name);
            assert_eq!(texts(&found), texts(&expected), "{name}");
            if target.name == "openai-chat" {
                assert_eq!(ends(&found), ends(&expected), "{name}");
            }
            let (found, expected) = (messages(&found), messages(&expected));
            for (number, message) in &expected {
                let back = &found[number];
                let calls = |message: &MessageAssembler| {
                    message.tool_calls().map(|(_, call)| call.args.clone()).collect::<Vec<_>>()
                };
                assert_eq!(calls(back), calls(message), "{name}");
            }
            let counts = |messages: &BTreeMap<u64, MessageAssembler>| {
                messages.values().last().and_then(MessageAssembler::usage).map(|usage| usage.input)
            };
            assert_eq!(counts(&found), counts(&expected), "{name}");
        }
    }
}

#[test]
fn every_answer_is_written_as_alone_in_every_chunking() {
    for (source, body) in sources() {
        for target in targets() {
            let (_, whole) = transcoded(target, source, &body, usize::MAX);
            let whole = decode_all(options(reader(target)), [whole.as_slice()]);
            for size in [1, 7, 100] {
                let (_, bytes) = transcoded(target, source, &body, size);
                let found = decode_all(options(reader(target)), [bytes.as_slice()]);
                assert_eq!(texts(&found), texts(&whole), "{source} to {}: {size}", target.name);
                assert_eq!(ends(&found), ends(&whole));
            }
        }
    }
}

#[test]
fn counts_and_the_end_come_once_behind_all_answers() {
    let (_, bytes) =
        transcoded(find("openai-chat").unwrap(), "openai-chat", chat_stream(3).as_bytes(), 100);
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(text.matches("\"usage\":{").count(), 1);
    assert_eq!(text.matches("\"role\":\"assistant\"").count(), 3);
    let last = text.rfind("\"finish_reason\":\"").unwrap();
    assert!(text.rfind("\"usage\":{").unwrap() > last);
    assert!(text.ends_with("data: [DONE]\n\n") && text.matches("[DONE]").count() == 1);
}

#[test]
fn a_failure_of_one_answer_comes_last_and_leaves_the_others() {
    let body = chat(&said(0, "a"), "")
        + &chat(&said(1, "b"), "")
        + &chat(&finished(1, "stop"), "")
        + &chat(&said(0, "c"), "");
    for target in targets() {
        let (encoder, bytes) = transcoded(target, "openai-chat", body.as_bytes(), 50);
        assert!(encoder.failed() && encoder.status() == Some(200));
        let found = decode_all(options(reader(target)), [bytes.as_slice()]);
        assert_eq!(texts(&found), [(0, "ac".to_owned()), (1, "b".to_owned())].into());
        assert!(matches!(found[&0].last().unwrap().payload, Payload::Error(_)), "{}", target.name);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("\"error\":{") && !text.contains("[DONE]"));
    }
}

#[test]
fn a_failure_before_all_content_is_an_http_error() {
    for target in targets() {
        let (encoder, bytes) = transcoded(target, "openai-chat", b"", 1);
        assert!(encoder.failed());
        assert!(encoder.status().unwrap() >= 500 && encoder.headers().is_some());
        assert!(String::from_utf8(bytes).unwrap().starts_with("{\"error\":{"), "{}", target.name);

        let mut encoder =
            Checked::new(AnswersEncoder::new(target, Settings::default(), false).unwrap());
        let mut decoder = Choices::new(options("openai-chat")).unwrap();
        decoder.fail(&Failure::new(ErrorCode::RateLimited, "slow down".into()));
        for (number, batch) in decoder.take() {
            batch.replay(&mut encoder.answer(number).unwrap());
        }
        assert_eq!(encoder.status(), None);
        encoder.close();
        assert_eq!(encoder.status(), Some(429));
        assert!(encoder.answer(0).is_none(), "nothing follows the end");
    }
}

#[test]
fn a_keep_alive_comes_before_any_answer_and_between() {
    for target in targets() {
        let mut encoder =
            Checked::new(AnswersEncoder::new(target, Settings::default(), false).unwrap());
        encoder.keep_alive();
        assert_eq!(encoder.status(), Some(200));
        let mut bytes = encoder.take();
        let mut decoder = Choices::new(options("openai-chat")).unwrap();
        decoder.feed(chat_stream(2).as_bytes());
        decoder.close();
        for (number, batch) in decoder.take() {
            batch.replay(&mut encoder.answer(number).unwrap());
            encoder.keep_alive();
        }
        encoder.close();
        bytes.extend(encoder.take());
        let found = decode_all(options(reader(target)), [bytes.as_slice()]);
        assert_eq!(ends(&found), ["stop", "length"], "{}", target.name);
    }
}

#[test]
fn a_target_with_one_answer_takes_no_others() {
    for target in TARGETS {
        let made = AnswersEncoder::new(target, Settings::default(), false);
        assert_eq!(made.is_some(), WITH_ANSWERS.contains(&target.name), "{}", target.name);
    }
}

#[test]
fn the_number_of_answers_is_bounded() {
    let limits = Limits { choices: 2, ..Limits::default() };
    let settings = Settings { limits, ..Settings::default() };
    let mut encoder =
        Checked::new(AnswersEncoder::new(find("gemini").unwrap(), settings, false).unwrap());
    assert!(encoder.answer(7).is_some() && encoder.answer(3).is_some());
    assert!(encoder.answer(4).is_none() && encoder.answer(7).is_some());
}

#[test]
fn whole_bodies_hold_all_answers() {
    let streams = decode_all(options("openai-chat"), [chat_stream(3).as_bytes()]);
    let messages = messages(&streams);
    let answers: Vec<(u64, &MessageAssembler)> =
        messages.iter().map(|(number, message)| (*number, message)).collect();
    for target in targets() {
        let body = whole_body_of_answers(target, Settings::default(), 0, &answers).unwrap();
        assert_eq!(body.status, 200);
        deltafold_grammar::check_body(target.name, 200, body.json.as_bytes()).unwrap();
        let found = decode_all(options(reader(target)), [body.json.as_bytes()]);
        assert_eq!(texts(&found), texts(&streams), "{}", target.name);
        let one = whole_body_of_answers(target, Settings::default(), 0, &answers[..1]).unwrap();
        let alone = whole_body(target, Settings::default(), 0, answers[0].1).unwrap();
        assert_eq!(one.json, alone.json);
    }
    let cut = chat_stream(3).replace("data: [DONE]\n\n", "");
    let cut = &cut[..cut.len() / 2];
    let messages = self::messages(&decode_all(options("openai-chat"), [cut.as_bytes()]));
    let answers: Vec<_> = messages.iter().map(|(number, message)| (*number, message)).collect();
    let chat = find("openai-chat").unwrap();
    let refused = whole_body_of_answers(chat, Settings::default(), 0, &answers).unwrap();
    assert!(refused.status >= 500);
    assert!(whole_body_of_answers(chat, Settings::default(), 0, &[]).is_none());
    let ollama = find("ollama").unwrap();
    assert!(whole_body_of_answers(ollama, Settings::default(), 0, &answers).is_none());
}

#[test]
fn one_answer_is_written_as_the_encoder_of_one_writes_it() {
    let body = chat_stream(1);
    for target in targets() {
        let (_, several) = transcoded(target, "openai-chat", body.as_bytes(), 64);
        let mut encoder = Checked::new(Encoder::new(target, Settings::default(), false));
        for delta in &decode_all(options("openai-chat"), [body.as_bytes()])[&0] {
            encoder.delta(&delta.as_deref());
        }
        let one = String::from_utf8(encoder.take()).unwrap();
        assert_eq!(String::from_utf8(several).unwrap(), one, "{}", target.name);
    }
}
