//! The decoder detects the framing of a body, and reports a broken framing.

use crate::support::binary::{chunk, event, exception, frame, headers};
use crate::support::{Each, Owned, decode, decode_with, decoder, fold, options};
use deltafold::contract::{Delta, Failure, Payload};
use deltafold::decoder::Decoder;
use deltafold::dialect::{REGISTRY, VOCABULARY};
use deltafold::fold::Terminal;
use deltafold::provider_error::Response;

const CONVERSE: &str = "bedrock-converse";
const INVOKE: &str = "bedrock-invoke";
const OLLAMA: &str = "ollama";

/// Decodes a body, the same at every cut and byte by byte.
fn everywhere(dialect: &str, body: &[u8]) -> Vec<Owned> {
    let whole = decode(dialect, body);
    for cut in 1..body.len() {
        let halves = decode_with(decoder(dialect), [&body[..cut], &body[cut..]]);
        assert!(halves == whole, "{dialect} cut {cut}: {halves:#?}\n{whole:#?}");
    }
    assert!(decode_with(decoder(dialect), body.chunks(1)) == whole, "{dialect} byte by byte");
    whole
}

fn failure(deltas: &[Owned]) -> &Failure<Box<str>> {
    match &deltas.last().expect("a delta").payload {
        Payload::Error(failure) => failure,
        other => panic!("{other:?}"),
    }
}

fn failed(deltas: &[Owned]) -> (&str, &str) {
    let failure = failure(deltas);
    (failure.code.as_str(), failure.message.as_deref().unwrap_or(""))
}

/// Events of a text "Hi." in each dialect, as JSON objects.
fn text_events(dialect: &str) -> Vec<String> {
    let events: &[&str] = match dialect {
        "anthropic-messages" | INVOKE => &[
            r#"{"type":"message_start","message":{"id":"i","model":"m","content":[]}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi."}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
            r#"{"type":"message_stop"}"#,
        ],
        "openai-chat" => &[
            r#"{"id":"i","model":"m","choices":[{"index":0,"delta":{"content":"Hi."}}]}"#,
            r#"{"id":"i","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        ],
        CONVERSE => &[
            r#"{"messageStart":{"role":"assistant"}}"#,
            r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"Hi."}}}"#,
            r#"{"contentBlockStop":{"contentBlockIndex":0}}"#,
            r#"{"messageStop":{"stopReason":"end_turn"}}"#,
        ],
        OLLAMA => &[
            r#"{"model":"m","message":{"content":"Hi."},"done":false}"#,
            r#"{"model":"m","message":{"content":""},"done":true,"done_reason":"stop"}"#,
        ],
        _ => &[],
    };
    events.iter().map(|event| (*event).to_owned()).collect()
}

fn says_hi(dialect: &str, body: &[u8]) {
    let message = fold(&everywhere(dialect, body));
    let body = String::from_utf8_lossy(body);
    assert_eq!(message.text(), "Hi.", "{dialect}: {body}");
    assert!(matches!(message.terminal(), Some(Terminal::Done { .. })), "{dialect}: {body}");
}

#[test]
fn every_framing_of_text_is_found_out_in_every_dialect() {
    for row in REGISTRY {
        let events = text_events(row.name);
        if events.is_empty() {
            continue;
        }
        for space in ["", "\n", " \r\n\t", "\u{feff}"] {
            let lines = events.join("\n");
            says_hi(row.name, format!("{space}{lines}\n").as_bytes());
            says_hi(row.name, format!("{space}{lines}").as_bytes());
            says_hi(row.name, format!("{space}{}", events.concat()).as_bytes());
            says_hi(row.name, format!("{space}[{}]", events.join(",")).as_bytes());
            says_hi(row.name, format!("{space}[\r\n{}\r\n]", events.join("\r\n,\r\n")).as_bytes());
            // An array that never closes; what follows it.
            says_hi(row.name, format!("{space}[{}", events.join(", ")).as_bytes());
            says_hi(row.name, format!("{space}[{}]\nbye", events.join(",")).as_bytes());
            let sse: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
            // A line that begins with white space is not a field.
            let space = space.trim_end_matches('\t');
            says_hi(row.name, format!("{space}{sse}").as_bytes());
            says_hi(row.name, format!("{space}: hello\n\nid: 1\n{sse}").as_bytes());
        }
    }
}

#[test]
fn binary_frames_hold_events_by_name_or_in_base64() {
    let events = text_events(CONVERSE);
    let named = events.iter().flat_map(|json| {
        let (name, body) = json[2..json.len() - 1].split_once("\":").unwrap();
        event(name, body)
    });
    says_hi(CONVERSE, &named.collect::<Vec<u8>>());
    let chunks: Vec<u8> = text_events(INVOKE).iter().flat_map(|json| chunk(json)).collect();
    says_hi(INVOKE, &chunks);
    // Events that carry their name twice.
    let wrapped: Vec<u8> = events.iter().flat_map(|json| event("", json)).collect();
    says_hi(CONVERSE, &wrapped);
}

#[test]
fn brackets_that_begin_no_array_of_objects_are_lines() {
    let chat = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    for (start, noise) in [("[keep-alive]\n", 1), ("[\n", 0), ("[]\n", 0), ("[ \n\n", 0)] {
        let deltas = everywhere("openai-chat", format!("{start}{chat}").as_bytes());
        let noisy =
            matches!(&deltas.last().unwrap().payload, Payload::Done { warnings: Some(_), .. });
        assert_eq!(noisy, noise == 1, "{start:?}: {:?}", deltas.last());
    }
    let deltas = everywhere("openai-chat", b"[DONE]");
    assert_eq!(failed(&deltas).0, "connection_lost");
    for body in ["[", " [ ", "[]", "\n"] {
        for row in REGISTRY {
            let deltas = everywhere(row.name, body.as_bytes());
            assert_eq!(failed(&deltas).0, "connection_lost", "{} {body:?}", row.name);
        }
    }
}

#[test]
fn white_space_without_end_is_bounded() {
    for row in REGISTRY {
        let mut options = crate::support::options(row.name);
        options.stream.limits.event_bytes = 20;
        let within = format!("{}[{}]", " ".repeat(15), "{}");
        let beyond = format!("{}[{}]", " ".repeat(21), "{}");
        for (body, code) in [(within, "connection_lost"), (beyond, "protocol_error")] {
            for size in 1..=body.len() {
                let decoder = Decoder::new(options.clone()).unwrap();
                let deltas = decode_with(decoder, body.as_bytes().chunks(size));
                assert_eq!(failed(&deltas).0, code, "{} in pieces of {size}", row.name);
            }
        }
    }
}

#[test]
fn pages_compressed_bodies_and_json_errors_come_in_every_dialect() {
    for row in REGISTRY {
        for (body, code, words) in [
            (
                &b"\n <!DOCTYPE html>gone"[..],
                "protocol_error",
                "the body is a page, no stream; it begins: <!DOCTYPE html>gone",
            ),
            (
                b"\x1f\x8b\x08\0",
                "protocol_error",
                "the body is compressed (gzip); the transport must undo the content encoding",
            ),
            (b"{\"error\":{\"message\":\"no\"}}", "server_error", "no"),
            (b"{\n  \"error\": {\n    \"message\": \"no\"\n  }\n}\n", "server_error", "no"),
            (b"[{\"error\":{\"message\":\"no\",\"code\":429}}]", "rate_limited", "no"),
        ] {
            assert_eq!(failed(&everywhere(row.name, body)), (code, words), "{}", row.name);
        }
    }
    for body in ["{\"message\":\"no\"}", "{\"Message\":\"no\"}"] {
        for dialect in [CONVERSE, INVOKE] {
            assert_eq!(failed(&everywhere(dialect, body.as_bytes())).1, "no");
        }
    }
}

#[test]
fn the_name_of_a_failed_response_may_stand_in_its_headers() {
    for (name, code) in [
        ("ThrottlingException", "rate_limited"),
        ("ValidationException:http://internal.amazon.com/coral/", "invalid_request"),
        ("ExpiredTokenException", "authentication"),
        ("InvalidSignatureException", "authentication"),
        ("ModelNotReadyException", "overloaded"),
        ("ServiceQuotaExceededException", "quota_exceeded"),
        ("ModelErrorException", "server_error"),
    ] {
        let mut options = crate::support::options(CONVERSE);
        let headers = [("X-Amzn-ErrorType", name), ("x-amzn-RequestId", "r-1")];
        options.stream.response =
            deltafold::provider_error::Response::new(VOCABULARY, 400, headers.into_iter(), None);
        let deltas = decode_with(Decoder::new(options).unwrap(), [&b"{\"message\":\"no\"}"[..]]);
        let failure = failure(&deltas);
        assert_eq!(failure.code.as_str(), code, "{name}");
        assert_eq!(failure.http_request_id.as_deref(), Some("r-1"));
        assert_eq!(failure.provider_code.as_deref(), name.split(':').next());
    }
}

#[test]
fn exceptions_are_one_error_by_their_name() {
    let start = event("messageStart", "{}");
    let text = event("contentBlockDelta", "{\"contentBlockIndex\":0,\"delta\":{\"text\":\"Hi.\"}}");
    let too_long = "{\"message\":\"input length and `max_tokens` exceed context limit: 9 > 8\"}";
    for (name, json, code, retryable) in [
        ("internalServerException", "{\"message\":\"m\"}", "server_error", true),
        ("modelStreamErrorException", "{\"message\":\"m\"}", "server_error", true),
        (
            "modelStreamErrorException",
            "{\"originalStatusCode\":400,\"message\":\"m\"}",
            "invalid_request",
            false,
        ),
        ("validationException", "{\"message\":\"m\"}", "invalid_request", false),
        ("validationException", too_long, "context_length_exceeded", false),
        (
            "validationException",
            "{\"message\":\"too many total text bytes: 2 > 1\"}",
            "context_length_exceeded",
            false,
        ),
        ("throttlingException", "{\"message\":\"m\"}", "rate_limited", true),
        ("serviceUnavailableException", "{\"message\":\"m\"}", "overloaded", true),
        ("modelTimeoutException", "{\"message\":\"m\"}", "timeout", true),
        ("neverHeardOfException", "not even JSON", "server_error", true),
        ("", "", "server_error", true),
    ] {
        let body = [start.clone(), text.clone(), exception(name, json), text.clone()].concat();
        let deltas = everywhere(CONVERSE, &body);
        let failure = failure(&deltas);
        assert_eq!(failure.code.as_str(), code, "{name} {json}");
        assert_eq!(failure.retryable, Some(retryable), "{name} {json}");
        assert_eq!(fold(&deltas).text(), "Hi.", "what came before stays");
    }
    let bare = [start, exception("throttlingException", "slow down, please")].concat();
    assert_eq!(failed(&everywhere(CONVERSE, &bare)), ("rate_limited", "slow down, please"));
}

#[test]
fn a_flipped_bit_never_changes_what_was_said() {
    let body = [
        event("messageStart", "{}"),
        event("contentBlockDelta", "{\"contentBlockIndex\":0,\"delta\":{\"text\":\"Hi.\"}}"),
        event("messageStop", "{\"stopReason\":\"end_turn\"}"),
    ]
    .concat();
    for bit in 0..body.len() * 8 {
        let mut flipped = body.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let deltas = decode(CONVERSE, &flipped);
        let (code, words) = failed(&deltas);
        // A first byte that is a letter of SSE is taken for one: there is nothing to read then either.
        assert!(
            code == "protocol_error" && words.contains("corrupt") || bit < 8,
            "bit {bit}: {words}"
        );
        assert!(matches!(fold(&deltas).text().as_str(), "" | "Hi."));
    }
}

#[test]
fn broken_frames_are_one_clear_error() {
    let start = event("messageStart", "{}");
    let at = start.len();
    for (broken, words) in [
        (frame(&headers(&[(":event-type", "x")]), b"{}"), "it has no :message-type"),
        (frame(&[3, b'a'], b"{}"), "a header is cut off"),
    ] {
        let body = [start.clone(), broken].concat();
        let wanted = format!("the frame at byte {at} is corrupt: {words}");
        assert_eq!(failed(&everywhere(CONVERSE, &body)), ("protocol_error", wanted.as_str()));
    }
    let mut options = crate::support::options(CONVERSE);
    options.stream.limits.event_bytes = 200;
    let long = event("x", &format!("\"{}\"", "x".repeat(200)));
    let body = [start, long].concat();
    for size in [1, 7, body.len()] {
        let decoder = Decoder::new(options.clone()).unwrap();
        let deltas = decode_with(decoder, body.chunks(size));
        assert_eq!(failed(&deltas), ("protocol_error", "limit reached: event_bytes (200)"));
    }
}

#[test]
fn a_broken_line_is_an_error_where_lines_are_records_and_noise_elsewhere() {
    let hi = "{\"model\":\"m\",\"message\":{\"content\":\"Hi.\"},\"done\":false}\n";
    let end = "{\"model\":\"m\",\"done\":true,\"done_reason\":\"stop\"}\n";
    for (broken, code) in [
        ("{\"a\":}\n", "protocol_error"),
        ("{\"a\":1\n", "protocol_error"),
        ("{\"a\":1]\n", "protocol_error"),
        ("{\"a\":\"x\ny\"}\n", "protocol_error"),
        ("{\"a\":tru}\n", "protocol_error"),
        ("[1,\n", "connection_lost"),
        ("{\"a\":1}}\n", "done"),
        ("keep-alive\n", "done"),
        ("ping: 1\n", "done"),
        ("{\"a\":\n1}\n", "done"),
        ("\n \n", "done"),
    ] {
        let deltas = everywhere(OLLAMA, format!("{hi}{broken}{end}").as_bytes());
        match &deltas.last().unwrap().payload {
            Payload::Done { .. } => assert_eq!(code, "done", "{broken:?}"),
            Payload::Error(failure) => assert_eq!(code, failure.code.as_str(), "{broken:?}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(fold(&deltas).text(), "Hi.", "{broken:?}");
    }
    let chat = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi.\"},\"finish_reason\":\"stop\"}]}\n\n{\"a\":}\ndata: [DONE]\n\n";
    assert_eq!(fold(&everywhere("openai-chat", chat.as_bytes())).text(), "Hi.");
    assert!(matches!(
        decode("openai-chat", chat.as_bytes()).last().unwrap().payload,
        Payload::Done { .. }
    ));
}

#[test]
fn a_chunk_that_cannot_be_read_is_one_clear_error() {
    let start = chunk(&text_events(INVOKE)[0]);
    for (broken, words) in [
        (event("chunk", "{\"bytes\":\"e30*\"}"), "the bytes of a chunk are no base64"),
        (event("chunk", "{\"bytes\":\"e30=e30=\"}"), "the bytes of a chunk are no base64"),
        (event("chunk", "{\"bytes\":\"e\"}"), "the bytes of a chunk are no base64"),
        (
            chunk("{\"type\":\"ping\""),
            "the JSON text ends inside a value at byte 14 of the event of a chunk",
        ),
        (
            chunk("{\"type\":\"ping\"}x"),
            "bytes after the JSON value at byte 15 of the event of a chunk",
        ),
        (
            chunk(&format!("{{\"type\":{}1{}}}", "[".repeat(200), "]".repeat(200))),
            "limit reached: depth (128) in the event of a chunk",
        ),
        (
            chunk("{\"amazon-bedrock-x\":}"),
            "unexpected byte in JSON at byte 20 of the event of a chunk",
        ),
    ] {
        let body = [start.clone(), broken].concat();
        assert_eq!(failed(&everywhere(INVOKE, &body)), ("protocol_error", words));
    }
    // A chunk without an event does not give an error.
    for odd in [
        "{\"bytes\":\"\"}",
        "{\"bytes\":null}",
        "{\"bytes\":7}",
        "{}",
        "{\"bytes\":\"e30\\u003d\"}",
    ] {
        let rest = text_events(INVOKE).into_iter().skip(1).flat_map(|json| chunk(&json));
        let body: Vec<u8> =
            [start.clone(), event("chunk", odd)].concat().into_iter().chain(rest).collect();
        says_hi(INVOKE, &body);
    }
}

/// Decodes a body by `feed_whole`.
fn decode_whole(mut decoder: Decoder, body: &[u8]) -> Vec<Owned> {
    let mut deltas = Vec::new();
    let mut take = |delta: &Delta<&str>| deltas.push(delta.to_owned());
    let mut out = Each(&mut take);
    decoder.feed_whole(body, &mut out);
    decoder.close(&mut out);
    // Nothing follows the terminal.
    decoder.feed_whole(body, &mut out);
    deltas
}

#[test]
fn a_body_that_is_known_to_be_whole_reads_the_same() {
    let answer = r#"{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    let refused = Response::new(VOCABULARY, 429, std::iter::empty(), None);
    let bodies = [
        answer.to_owned(),
        format!("{answer} \t"),
        format!("{answer}{answer}"),
        format!("{answer} data: {{}}"),
        format!("{answer}\n"),
        format!(" {answer}"),
        format!("\u{feff}{answer}"),
        format!("data: {answer}"),
        format!("[{answer}]"),
        answer[..answer.len() / 2].to_owned(),
        r#"{"error":{"message":"no","type":"overloaded_error"}}"#.to_owned(),
        "{}".to_owned(),
        "{".to_owned(),
        String::new(),
    ];
    for row in REGISTRY {
        for body in &bodies {
            let mut small = options(row.name);
            small.stream.limits.event_bytes = answer.len() - 1;
            let mut refusal = options(row.name);
            refusal.stream.response = refused.clone();
            for options in [options(row.name), small, refusal] {
                let fresh = || Decoder::new(options.clone()).expect("a dialect");
                let expected = decode_with(fresh(), [body.as_bytes()]);
                assert_eq!(
                    decode_whole(fresh(), body.as_bytes()),
                    expected,
                    "{}: {body}",
                    row.name
                );
            }
        }
    }
}
