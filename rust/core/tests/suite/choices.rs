//! Every answer of a stream at once: each has the deltas that a decoder of it alone makes, in any chunking,
//! without the warning of the other answers.

use std::collections::BTreeMap;

use deltafold::contract::{ErrorCode, Failure, Laws, Payload};
use deltafold::decoder::{Choices, Decoder, Options};
use deltafold::dialect::VOCABULARY;
use deltafold::fold::MessageAssembler;
use deltafold::limits::Limits;
use deltafold::provider_error::Response;

use crate::support::binary;
use crate::support::{Owned, decode_with, events, fixtures, fold, options};

pub(crate) type Streams = BTreeMap<u64, Vec<Owned>>;

/// Adds the deltas that a decoder holds, and checks each by the laws.
fn take(decoder: &mut Choices, found: &mut Streams, laws: &mut BTreeMap<u64, Laws>) {
    for (number, batch) in decoder.take() {
        let laws = laws.entry(number).or_insert_with(Laws::of_decoder);
        assert!(!batch.is_empty(), "an empty batch of answer {number}");
        for delta in batch.iter() {
            laws.check(&delta).unwrap_or_else(|violation| panic!("answer {number}: {violation}"));
            found.entry(number).or_default().push(delta.to_owned());
        }
    }
}

/// The deltas of every answer.
pub(crate) fn decode_all<'a>(
    options: Options,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Streams {
    let mut decoder = Choices::new(options).expect("a dialect");
    let (mut found, mut laws) = (Streams::new(), BTreeMap::new());
    for piece in pieces {
        decoder.feed(piece);
        take(&mut decoder, &mut found, &mut laws);
    }
    decoder.close();
    take(&mut decoder, &mut found, &mut laws);
    assert!(decoder.finished(), "closing ends the stream");
    assert!(decoder.numbers().eq(found.keys().copied()), "numbers of answers without a delta");
    assert!(laws.values().all(Laws::ended), "an answer without a terminal");
    decoder.feed(b"data: {}\n\n");
    decoder.close();
    assert!(decoder.take().is_empty(), "deltas after the end");
    found
}

/// The deltas of one answer, from a decoder that follows it alone, without its warning of the other answers.
fn decode_one(mut options: Options, number: u64, body: &[u8]) -> Vec<Owned> {
    options.stream.choice = number;
    let mut deltas = decode_with(Decoder::new(options).expect("a dialect"), [body]);
    let warnings = match &mut deltas.last_mut().expect("a terminal").payload {
        Payload::Done { warnings, .. } | Payload::Error(Failure { warnings, .. }) => warnings,
        payload => panic!("{payload:?}"),
    };
    if let Some(list) = warnings.take() {
        let mut list: Vec<serde_json::Value> = serde_json::from_str(&list).unwrap();
        list.retain(|warning| {
            // A second choice of the same number is no other answer.
            let message = warning["message"].as_str().unwrap();
            warning["code"] != "other_choices" || message.starts_with("a second")
        });
        *warnings = (!list.is_empty()).then(|| serde_json::to_string(&list).unwrap().into());
    }
    deltas
}

/// The answers of a body, each compared with a decoder of it alone, in one feed and in pieces.
fn check(name: &str, options: &Options, body: &[u8]) -> Streams {
    let whole = decode_all(options.clone(), [body]);
    for (number, deltas) in &whole {
        let alone = decode_one(options.clone(), *number, body);
        assert!(
            *deltas == alone,
            "{name}: answer {number} differs from itself alone\n{deltas:#?}\n{alone:#?}"
        );
    }
    for size in (1..=17).chain([64, 1_000]) {
        let pieces = decode_all(options.clone(), body.chunks(size));
        assert!(pieces == whole, "{name}: pieces of {size} bytes");
    }
    whole
}

/// At every cut of every event, the deltas and the decoder after it are those of the event fed whole.
fn every_cut(name: &str, options: &Options, body: &[u8]) {
    let mut whole = Choices::new(options.clone()).expect("a dialect");
    for event in events(options.stream.dialect, body) {
        let before = whole.clone();
        whole.feed(event);
        let untaken = whole.clone();
        let expected = whole.take();
        let step = event.len() / 300 + 1;
        for cut in (1..event.len()).step_by(step) {
            let mut halved = before.clone();
            halved.feed(&event[..cut]);
            halved.feed(&event[cut..]);
            assert!(halved == untaken, "{name}: state differs at cut {cut}");
            assert!(halved.take() == expected, "{name}: deltas differ at cut {cut}");
        }
    }
}

pub(crate) fn texts(streams: &Streams) -> BTreeMap<u64, String> {
    streams.iter().map(|(number, deltas)| (*number, fold(deltas).text())).collect()
}

/// The terminal of every answer: its finish reason or its error code.
pub(crate) fn ends(streams: &Streams) -> Vec<&'static str> {
    let end = |deltas: &Vec<Owned>| match &deltas.last().expect("a terminal").payload {
        Payload::Done { finish_reason, .. } => finish_reason.as_str(),
        Payload::Error(failure) => failure.code.as_str(),
        payload => panic!("{payload:?}"),
    };
    streams.values().map(end).collect()
}

/// Numbers below `count` in an order without a pattern.
fn shuffled(count: u64, rounds: u64) -> impl Iterator<Item = u64> {
    let mut state = 7_u64;
    (0..count * rounds).map(move |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % count
    })
}

pub(crate) fn chat(choices: &str, rest: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\
         \"model\":\"m\",\"choices\":[{choices}]{rest}}}\n\n"
    )
}

pub(crate) fn said(number: u64, text: &str) -> String {
    format!("{{\"index\":{number},\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":null}}")
}

pub(crate) fn finished(number: u64, reason: &str) -> String {
    format!("{{\"index\":{number},\"delta\":{{}},\"finish_reason\":\"{reason}\"}}")
}

const USAGE: &str = ",\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":40,\"total_tokens\":49}";

/// A Chat stream of `count` answers that interleave without a pattern.
pub(crate) fn chat_stream(count: u64) -> String {
    let mut body = chat("", ",\"prompt_filter_results\":[{\"prompt_index\":0}]");
    for (at, number) in shuffled(count, 12).enumerate() {
        body += &chat(&said(number, &format!(" {number}w{at}")), "");
    }
    for number in (0..count).rev() {
        body += &match number % 3 {
            1 => chat(&finished(number, "length"), ""),
            2 => {
                let call = format!(
                    "{{\"index\":{number},\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":\
                     {{\"name\":\"f\",\"arguments\":\"{{\\\"n\\\":{number}}}\"}}}}]}}}}"
                );
                chat(&call, "") + &chat(&finished(number, "tool_calls"), "")
            }
            _ => chat(&finished(number, "stop"), ""),
        };
    }
    body + &chat("", USAGE) + "data: [DONE]\n\n"
}

fn gemini(candidates: &str, rest: &str) -> String {
    format!(
        "data: {{\"candidates\":[{candidates}],\"modelVersion\":\"g\",\"responseId\":\"r\"{rest}}}\r\n\r\n"
    )
}

fn candidate(number: u64, text: &str, rest: &str) -> String {
    format!(
        "{{\"content\":{{\"parts\":[{{\"text\":\"{text}\"}}],\"role\":\"model\"}},\"index\":{number}{rest}}}"
    )
}

/// A Gemini stream of `count` candidates, some chunks with one of them and some with several.
pub(crate) fn gemini_stream(count: u64) -> String {
    let mut body = String::new();
    for (at, number) in shuffled(count, 12).enumerate() {
        let usage =
            format!(",\"usageMetadata\":{{\"promptTokenCount\":4,\"candidatesTokenCount\":{at}}}");
        let mut list = candidate(number, &format!(" {number}w{at}"), "");
        if at % 5 == 0 {
            list += ",";
            list += &candidate((number + 1) % count, &format!(" +{at}"), "");
        }
        body += &gemini(&list, &usage);
    }
    for number in 0..count {
        let reason = if number % 2 == 0 { "STOP" } else { "MAX_TOKENS" };
        let rest = format!(",\"finishReason\":\"{reason}\"");
        body += &gemini(&candidate(number, ".", &rest), "");
    }
    body
}

/// Titan's events of `count` answers, in frames of Bedrock.
pub(crate) fn titan_stream(count: u64) -> Vec<u8> {
    let event = |number: u64, text: &str, reason: &str, rest: &str| {
        binary::chunk(&format!(
            "{{\"outputText\":\"{text}\",\"index\":{number},\"totalOutputTextTokenCount\":null,\
             \"completionReason\":{reason},\"inputTextTokenCount\":null{rest}}}"
        ))
    };
    let mut body = Vec::new();
    for (at, number) in shuffled(count, 12).enumerate() {
        body.extend(event(number, &format!(" {number}w{at}"), "null", ""));
    }
    for number in 0..count {
        let reason = if number % 2 == 0 { "\"FINISH\"" } else { "\"LENGTH\"" };
        let metrics = if number + 1 == count {
            ",\"amazon-bedrock-invocationMetrics\":{\"inputTokenCount\":4,\"outputTokenCount\":9}"
        } else {
            ""
        };
        body.extend(event(number, ".", reason, metrics));
    }
    body
}

#[test]
fn every_answer_of_every_fixture_is_that_of_a_decoder_of_it_alone() {
    let several = [
        "bedrock-invoke/cohere-two-generations",
        "bedrock-invoke/deepseek",
        "bedrock-invoke/titan-two-answers",
        "bedrock-invoke/whole-body-generations",
        "bedrock-invoke/whole-body-results",
        "gemini/candidates-sometimes-without-index",
        "gemini/candidates-without-index",
        "gemini/two-candidates",
        "openai-chat/choices-without-index",
        "openai-chat/split-over-choices",
        "openai-chat/two-choices",
        "openai-chat/whole-body-two-choices",
    ];
    for fixture in fixtures() {
        let streams = check(&fixture.name, &options(&fixture.dialect), &fixture.wire);
        let numbers: Vec<_> = streams.keys().copied().collect();
        let expected: &[u64] =
            if several.contains(&fixture.name.as_str()) { &[0, 1] } else { &[0] };
        assert_eq!(numbers, expected, "{}", fixture.name);
    }
}

#[test]
fn every_fixture_gives_the_same_answers_at_every_cut() {
    for fixture in fixtures().iter().filter(|fixture| fixture.wire.len() < 4 << 10) {
        every_cut(&fixture.name, &options(&fixture.dialect), &fixture.wire);
    }
}

#[test]
fn answers_interleave_in_any_order() {
    for count in [2, 8] {
        for (dialect, body) in [
            ("openai-chat", chat_stream(count).into_bytes()),
            ("mistral", chat_stream(count).into_bytes()),
            ("gemini", gemini_stream(count).into_bytes()),
            ("bedrock-invoke", titan_stream(count)),
        ] {
            let name = format!("{count} answers of {dialect}");
            let streams = check(&name, &options(dialect), &body);
            assert!(streams.keys().copied().eq(0..count), "{name}");
            every_cut(&name, &options(dialect), &body);
            for (number, text) in texts(&streams) {
                assert!(
                    text.starts_with(&format!(" {number}w")) || text.starts_with(" +"),
                    "{text}"
                );
            }
            for deltas in streams.values() {
                assert!(
                    fold(deltas).usage().is_some(),
                    "{name}: the usage belongs to every answer"
                );
            }
        }
    }
}

#[test]
fn every_option_gives_the_answers_of_decoders_of_them_alone() {
    let entry = "{\"token\":\"a\",\"logprob\":-0.5,\"bytes\":[97],\"top_logprobs\":[]}";
    let mut body = String::new();
    for (at, number) in shuffled(4, 20).enumerate() {
        let choice = format!(
            "{{\"index\":{number},\"delta\":{{\"content\":\"<think>{at}</think> a{at}\"}},\
             \"logprobs\":{{\"content\":[{entry}]}}}}"
        );
        body += &chat(&choice, "");
    }
    body += "data: [DONE]\n\n";
    for (logprobs, provider_raw) in [(true, false), (false, true), (true, true)] {
        for specification in ["openai-chat", "openai-chat+qwen-xml"] {
            let mut options = options(specification);
            options.stream.logprobs = logprobs;
            options.stream.provider_raw = provider_raw;
            options.stream.model_id = Some("asked".into());
            options.stream.request_id = Some("request".into());
            let streams = check(specification, &options, body.as_bytes());
            assert_eq!(streams.len(), 4);
            let has_logprobs = |deltas: &Vec<Owned>| fold(deltas).logprobs().is_some();
            assert_eq!(streams.values().all(has_logprobs), logprobs);
        }
    }
}

#[test]
fn an_answer_that_comes_late_has_what_came_before_it() {
    let body = [
        chat("", ",\"service_tier\":\"default\""),
        chat(&said(0, "a"), ""),
        chat(&said(0, "b"), ",\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}"),
        chat(&finished(0, "stop"), ""),
        chat(&said(5, "late"), ""),
        chat(&finished(5, "length"), ""),
        chat("", USAGE),
        "data: [DONE]\n\n".to_owned(),
    ];
    let streams = check("late", &options("openai-chat"), body.concat().as_bytes());
    assert_eq!(texts(&streams), BTreeMap::from([(0, "ab".into()), (5, "late".into())]));
    assert_eq!(ends(&streams), ["stop", "length"]);
    // Start, two records of usage, text, its end, and the terminal.
    assert_eq!(streams[&5].len(), 6);

    // The deltas of the late answer come at once, when it appears.
    let mut decoder = Choices::new(options("openai-chat")).unwrap();
    decoder.feed(body[0].as_bytes());
    assert!(decoder.take().is_empty() && decoder.numbers().next().is_none());
    decoder.feed(body[1..4].concat().as_bytes());
    assert_eq!(decoder.take().into_keys().collect::<Vec<_>>(), [0]);
    decoder.feed(body[4].as_bytes());
    let late = decoder.take();
    assert_eq!(
        late.iter().map(|(number, batch)| (*number, batch.len())).collect::<Vec<_>>(),
        [(5, 3)]
    );
}

#[test]
fn answers_of_one_frame_come_out_of_it_together() {
    let both = |text: &str| chat(&format!("{},{}", said(1, text), said(0, text)), "");
    let twice = chat(&format!("{},{}", said(1, "c"), said(1, "d")), "");
    let body = both("a") + &both("b") + &twice + "data: [DONE]\n\n";
    let streams = check("one frame", &options("openai-chat"), body.as_bytes());
    assert_eq!(texts(&streams), BTreeMap::from([(0, "ab".into()), (1, "abcd".into())]));
    let bodies = [
        (
            "openai-chat",
            r#"{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"},{"index":1,"message":{"content":"b","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"},{"index":2,"message":{"content":"c"},"finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":6,"total_tokens":7}}"#,
        ),
        (
            "gemini",
            r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP","index":0},{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP","index":1},{"content":{"parts":[{"text":"c"}]},"finishReason":"MAX_TOKENS","index":2}],"usageMetadata":{"promptTokenCount":1}}"#,
        ),
        (
            "bedrock-invoke",
            r#"{"inputTextTokenCount":5,"results":[{"tokenCount":1,"outputText":"a","completionReason":"FINISH"},{"tokenCount":1,"outputText":"b","completionReason":"FINISH"},{"tokenCount":1,"outputText":"c","completionReason":"LENGTH"}]}"#,
        ),
    ];
    for (dialect, body) in bodies {
        let streams = check(dialect, &options(dialect), body.as_bytes());
        let expected = [(0, "a".into()), (1, "b".into()), (2, "c".into())];
        assert_eq!(texts(&streams), BTreeMap::from(expected), "{dialect}");
        assert_eq!(ends(&streams).last(), Some(&"length"), "{dialect}");
    }
}

#[test]
fn made_up_ids_of_calls_differ_between_answers() {
    let call = |number: u64| {
        format!(
            "{{\"index\":{number},\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":\
             {{\"name\":\"f\",\"arguments\":\"{{}} \"}}}}]}}}}"
        )
    };
    let body: String = (0..8).map(|number| chat(&call(number), "")).collect();
    let streams = check("ids", &options("openai-chat"), body.as_bytes());
    let ids: std::collections::BTreeSet<String> = streams
        .values()
        .flat_map(|deltas| {
            let message = fold(deltas);
            let ids: Vec<_> = message.tool_calls().map(|(_, call)| call.id.to_string()).collect();
            ids
        })
        .collect();
    assert_eq!(ids.len(), 8);
    // Known from versions that followed one answer: this one keeps its id.
    assert!(ids.contains("call_14af742e03a0b08e"), "{ids:?}");
}

#[test]
fn what_ends_a_stream_ends_every_answer() {
    let begun: String = shuffled(3, 6).map(|number| chat(&said(number, "x"), "")).collect();
    let error = "data: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n";
    let after = chat(&said(0, "never"), "");
    let streams =
        check("error", &options("openai-chat"), (begun.clone() + error + &after).as_bytes());
    assert_eq!(ends(&streams), ["overloaded"; 3]);
    let streams =
        check("broken", &options("openai-chat"), (begun.clone() + "data: {]\n\n").as_bytes());
    assert_eq!(ends(&streams), ["protocol_error"; 3]);

    // Cut at any byte: an answer with a finish reason is whole, any other is lost.
    let body = begun.clone() + &chat(&finished(1, "stop"), "") + &chat(&finished(2, "length"), "");
    let streams = check("cut", &options("openai-chat"), body.as_bytes());
    assert_eq!(ends(&streams), ["connection_lost", "stop", "length"]);
    for cut in 0..body.len() {
        let body = &body.as_bytes()[..cut];
        for (number, deltas) in decode_all(options("openai-chat"), [body]) {
            assert_eq!(deltas, decode_one(options("openai-chat"), number, body), "cut {cut}");
        }
    }

    let mut decoder = Choices::new(options("openai-chat")).unwrap();
    decoder.feed(body.as_bytes());
    decoder.take();
    assert!(!decoder.finished());
    decoder.fail(&Failure::new(ErrorCode::Cancelled, "stopped".into()));
    assert!(decoder.finished());
    let taken = decoder.take();
    let last = |number: u64| taken[&number].iter().last().unwrap().payload.kind().as_str();
    assert_eq!([last(0), last(1), last(2)], ["error", "done", "done"]);
}

#[test]
fn a_body_without_an_answer_has_answer_0_alone() {
    let page = "<html><body>login</body></html>";
    let bodies = [
        ("openai-chat", ""),
        ("openai-chat", page),
        ("openai-chat", "data: {\"error\":{\"message\":\"no\"}}\n\n"),
        ("openai-chat", "data: [DONE]\n\n"),
        ("openai-chat", ": waiting\n\n"),
        ("openai-chat", "Data: {}\n\n"),
        ("openai-chat", "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n"),
        ("gemini", "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n"),
        ("bedrock-invoke", "{\"message\":\"no\"}"),
        ("anthropic-messages", "nothing at all\n"),
    ];
    for (dialect, body) in bodies {
        let streams = check(body, &options(dialect), body.as_bytes());
        assert!(streams.keys().eq([&0]), "{dialect} {body}");
    }
    let mut refused = Choices::new(options("openai-chat")).unwrap();
    assert!(refused.set_response(Response::from_status(VOCABULARY, 429)));
    refused.feed(b"{\"error\":{\"message\":\"slow down\"}}");
    assert!(!refused.set_response(Response::from_status(VOCABULARY, 200)));
    refused.close();
    let taken = refused.take();
    let Payload::Error(failure) = taken[&0].iter().last().unwrap().payload else { panic!() };
    assert_eq!((taken.len(), failure.code), (1, ErrorCode::RateLimited));
}

#[test]
fn one_answer_too_many_ends_all_of_them() {
    let limits = Limits { choices: 3, ..Limits::default() };
    let mut options = options("openai-chat");
    options.stream.limits = limits;
    let begun: String = (0..3).map(|number| chat(&said(number, "kept"), "")).collect();
    let all: Vec<_> = (0..4_000).map(|number| said(number, "x")).collect();
    for last in [chat(&said(7, "x"), ""), chat(&all.join(","), "")] {
        let body = begun.clone() + &last + &chat(&said(0, "never"), "");
        let whole = decode_all(options.clone(), [body.as_bytes()]);
        assert_eq!(whole, decode_all(options.clone(), body.as_bytes().chunks(7)));
        assert!(whole.keys().copied().eq(0..3));
        for deltas in whole.values() {
            let message = fold(deltas);
            assert!(message.text().starts_with("kept") && !message.text().contains("never"));
            let Payload::Error(failure) = &deltas.last().unwrap().payload else { panic!() };
            assert_eq!(failure.message.as_deref(), Some("limit reached: choices (3)"));
            assert_eq!(failure.code, ErrorCode::ProtocolError);
        }
    }
}

#[test]
fn what_answers_have_in_common_takes_no_more_memory_than_a_message() {
    let usage = |count: usize| {
        let note = "x".repeat(8_000);
        let counts =
            format!("\"prompt_tokens\":{count},\"completion_tokens\":1,\"note\":\"{note}\"");
        chat("", &format!(",\"usage\":{{{counts}}}"))
    };
    let records: String = (0..200).map(usage).collect();
    let mut options = options("openai-chat");
    options.stream.limits.message_bytes = 4_096;
    // Without an answer, the stream itself ends.
    let streams = decode_all(options.clone(), [records.as_bytes()]);
    let message = |deltas: &[Owned]| match &deltas.last().unwrap().payload {
        Payload::Error(failure) => failure.message.as_deref().unwrap_or("").to_owned(),
        payload => panic!("{payload:?}"),
    };
    assert_eq!(message(&streams[&0]), "limit reached: message_bytes (4096)");
    // With one, it goes on, and only a further answer is refused.
    let body = chat(&said(0, "a"), "") + &records + &chat(&said(0, "b"), "");
    let streams = decode_all(options.clone(), body.as_bytes().chunks(10_000));
    assert_eq!(streams[&0], decode_one(options.clone(), 0, body.as_bytes()));
    assert_eq!(texts(&streams)[&0], "ab");
    let body = body + &chat(&said(1, "late"), "");
    let streams = decode_all(options.clone(), [body.as_bytes()]);
    assert!(streams.keys().eq([&0]));
    assert_eq!(message(&streams[&0]), "limit reached: message_bytes (4096)");
}

#[test]
fn a_limit_of_one_answer_ends_that_answer_alone() {
    let mut options = options("openai-chat");
    options.stream.limits.message_bytes = 6;
    let long = "x".repeat(7);
    let body = chat(&said(0, "a"), "") + &chat(&said(1, &long), "") + &chat(&said(0, "b"), "");
    let body = body + &chat(&finished(0, "stop"), "") + "data: [DONE]\n\n";
    let streams = decode_all(options.clone(), [body.as_bytes()]);
    for (number, deltas) in &streams {
        assert_eq!(*deltas, decode_one(options.clone(), *number, body.as_bytes()));
    }
    assert_eq!(ends(&streams), ["stop", "protocol_error"]);
}

#[test]
fn numbers_of_any_form_are_those_of_a_decoder_of_one_answer() {
    for index in ["0", "3", "00", "-1", "1.0", "1e0", "null", "\"1\"", "9999999999999999"] {
        let number = |at: usize| {
            chat(&format!("{{\"index\": {index} ,\"delta\":{{\"content\":\"{at}\"}}}}"), "")
        };
        let plain = |number: u64| {
            chat(&format!("{{\"index\": {number} ,\"delta\":{{\"content\":\"p\"}}}}"), "")
        };
        let body: String = (0..6).map(|at| plain(at as u64 % 3) + &number(at)).collect();
        check(index, &options("openai-chat"), body.as_bytes());
    }
    let huge = format!("{}", u64::MAX);
    let body = chat(&format!("{{\"index\":{huge},\"delta\":{{\"content\":\"x\"}}}}"), "");
    assert_eq!(decode_all(options("openai-chat"), [body.as_bytes()]).len(), 1);
}

/// The message of an answer is the one that a fold of its batches makes.
#[test]
fn batches_fold_into_the_messages() {
    let body = chat_stream(3);
    let mut decoder = Choices::new(options("openai-chat")).unwrap();
    let mut messages: BTreeMap<u64, MessageAssembler> = BTreeMap::new();
    for piece in body.as_bytes().chunks(100).chain([&b""[..]]) {
        decoder.feed(piece);
        if piece.is_empty() {
            decoder.close();
        }
        for (number, batch) in decoder.take() {
            let message = messages.entry(number).or_default();
            for delta in batch.iter() {
                message.consume(&delta).unwrap();
            }
        }
    }
    let streams = decode_all(options("openai-chat"), [body.as_bytes()]);
    for (number, message) in &messages {
        assert_eq!(message.text(), fold(&streams[number]).text());
    }
    assert_eq!(messages.len(), 3);
}
