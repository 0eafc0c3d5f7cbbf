//! Shapes that streams share change no delta, keep no text, and are bounded.

use std::sync::Arc;

use deltafold::contract::{DeltaBatch, Payload};
use deltafold::decoder::{Decoder, Options};
use deltafold::dialect::Shapes;

use crate::support::{Owned, decode_with, options};

/// A stream of Chat with these names in every member that differs between streams.
fn chat(name: &str, texts: &[&str]) -> Vec<u8> {
    let chunk = |delta: &str, reason: &str, usage: &str| {
        format!(
            "data: {{\"id\":\"id-{name}\",\"object\":\"chat.completion.chunk\",\"created\":{created},\"model\":\"model-{name}\",\
             \"system_fingerprint\":\"print-{name}\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{reason}}}],\
             \"usage\":{usage}}}\n\n",
            created = 1_000 + name.len(),
        )
    };
    let mut body = chunk(r#"{"role":"assistant","content":""}"#, "null", "null");
    for text in texts {
        body += &chunk(&format!(r#"{{"content":"{text}"}}"#), "null", "null");
    }
    body += &chunk("{}", "\"stop\"", "null");
    body += &chunk(
        "{}",
        "null",
        &format!(r#"{{"prompt_tokens":{},"completion_tokens":2}}"#, name.len()),
    );
    (body + "data: [DONE]\n\n").into_bytes()
}

/// A stream of Messages with these names in every member that differs between streams.
fn messages(name: &str, texts: &[&str]) -> Vec<u8> {
    let mut events = vec![
        format!(
            r#"{{"type":"message_start","message":{{"id":"id-{name}","type":"message","role":"assistant","model":"model-{name}","content":[],"stop_reason":null,"stop_sequence":null,"usage":{{"input_tokens":{},"output_tokens":1}}}}}}"#,
            name.len()
        ),
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#
            .into(),
        r#"{"type":"ping"}"#.into(),
    ];
    events.extend(texts.iter().map(|text| {
        format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#)
    }));
    events.extend([
        r#"{"type":"content_block_stop","index":0}"#.into(),
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":7}}"#.into(),
        r#"{"type":"message_stop"}"#.into(),
    ]);
    events.iter().flat_map(|event| format!("data: {event}\n\n").into_bytes()).collect()
}

fn decode(options: &Options, body: &[u8], size: usize) -> Vec<Owned> {
    let decoder = Decoder::new(options.clone()).expect("a dialect");
    decode_with(decoder, body.chunks(size))
}

/// Decode a body after others, with the shapes that they left, and without shapes.
fn agree(options: &Options, before: &[Vec<u8>], body: &[u8]) {
    let shapes: Arc<Shapes> = Arc::default();
    let sharing = Options { shapes: Some(Arc::clone(&shapes)), ..options.clone() };
    let usual = Options { shapes: Some(shapes), ..crate::support::options(options.stream.dialect) };
    for _ in 0..3 {
        for other in before {
            decode(&usual, other, other.len());
        }
    }
    let alone = decode(options, body, body.len());
    for size in [body.len(), 1, 7, 64] {
        assert_eq!(decode(&sharing, body, size), alone, "pieces of {size} bytes");
    }
}

const TEXTS: &[&str] = &["one", "two", "\\u00e9 \\\"three\\\"", "four"];

#[test]
fn a_stream_reads_the_same_after_others_of_its_shape() {
    for (dialect, make) in [
        ("openai-chat", chat as fn(&str, &[&str]) -> Vec<u8>),
        ("mistral", chat),
        ("anthropic-messages", messages),
    ] {
        let before = [make("a", TEXTS), make("bc", &["x"]), make("def", &[])];
        for texts in [&[][..], &["only"], TEXTS, &[""]] {
            agree(&options(dialect), &before, &make("ghij", texts));
        }
    }
}

/// Pad the frames of a stream as Anthropic does: with spaces before the last brace, by turns of these lengths.
fn padded(body: &[u8], lengths: &[usize]) -> Vec<u8> {
    let text = String::from_utf8(body.to_vec()).unwrap();
    let mut frames: Vec<String> = text.split_inclusive("\n\n").map(str::to_owned).collect();
    for (frame, length) in frames.iter_mut().zip(lengths.iter().cycle()) {
        let last = frame.rfind('}').unwrap();
        frame.insert_str(last, &" ".repeat(*length));
    }
    frames.concat().into_bytes()
}

#[test]
fn a_stream_with_padded_frames_reads_the_same_after_others() {
    let body = messages("ghij", TEXTS);
    let plain = [messages("a", TEXTS), messages("bc", &["x"])];
    let before = [plain[0].clone(), padded(&plain[1], &[3, 1])];
    for lengths in [&[0][..], &[0, 2], &[2, 0], &[5], &[1, 2, 3, 4, 5, 6, 7]] {
        let body = padded(&body, lengths);
        agree(&options("anthropic-messages"), &plain, &body);
        agree(&options("anthropic-messages"), &before, &body);
        agree(&options("anthropic-messages"), std::slice::from_ref(&body), &body);
    }
}

#[test]
fn a_template_that_streams_share_is_changed_by_none_of_them() {
    let shapes: Arc<Shapes> = Arc::default();
    let sharing = Options { shapes: Some(shapes), ..options("anthropic-messages") };
    let (usual, other) = (messages("a", TEXTS), messages("bc", &["one", "two", "three"]));
    for _ in 0..3 {
        decode(&sharing, &usual, usual.len());
    }
    // This stream has taken the template, and goes on with frames that do not fit it.
    let mut widening = Decoder::new(sharing.clone()).unwrap();
    let body = padded(&usual, &[0, 0, 0, 0, 9, 4]);
    let (first, rest) = body.split_at(body.len() / 2);
    let mut deltas = DeltaBatch::default();
    widening.feed(first, &mut deltas);
    for body in [&usual, &other, &padded(&other, &[1, 0])] {
        assert_eq!(
            decode(&sharing, body, body.len()),
            decode(&options("anthropic-messages"), body, body.len())
        );
    }
    widening.feed(rest, &mut deltas);
    let texts = deltas.iter().filter_map(|delta| match delta.payload {
        Payload::Text { text, .. } => Some(text.to_owned()),
        _ => None,
    });
    assert_eq!(texts.collect::<String>(), "onetwo\u{e9} \"three\"four");
}

#[test]
fn an_event_over_its_limit_is_refused_although_its_shape_is_known() {
    let usual = messages("a", TEXTS);
    let long = messages("b", &[&"x".repeat(300)]);
    let mut strict = options("anthropic-messages");
    strict.stream.limits.event_bytes = 280;
    let refused = decode(&strict, &long, long.len());
    assert!(matches!(refused.last().unwrap().payload, Payload::Error(_)), "{refused:?}");
    agree(&strict, &[usual.clone(), usual], &long);
}

#[test]
fn the_first_identifiers_of_a_stream_count_although_its_frames_are_known() {
    let usual = chat("usual", TEXTS);
    let bare = String::from_utf8(chat("later", TEXTS)).unwrap();
    // The first chunk has neither id nor model, as some servers send it.
    let (first, rest) = bare.split_once("\n\n").unwrap();
    let first = first.replace("\"id\":\"id-later\",", "").replace("\"model-later\"", "\"\"");
    let body = format!("{first}\n\n{rest}").into_bytes();
    agree(&options("openai-chat"), &[usual, body.clone()], &body);
    let shapes: Arc<Shapes> = Arc::default();
    let sharing = Options { shapes: Some(shapes), ..options("openai-chat") };
    for _ in 0..3 {
        let deltas = decode(&sharing, &body, body.len());
        assert!(format!("{:?}", deltas[0].payload).contains("id-later"), "{:?}", deltas[0]);
    }
}

#[test]
fn a_call_id_that_means_no_id_is_not_taken_from_a_hole() {
    let call = |id: &str| {
        let frame = format!(
            r#"{{"id":"c","model":"m","choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,"id":"{id}","function":{{"name":"f","arguments":"{{}}"}}}}]}},"finish_reason":null}}]}}"#
        );
        format!("data: {frame}\n\ndata: [DONE]\n\n").into_bytes()
    };
    for dialect in ["mistral", "openai-chat"] {
        agree(&options(dialect), &[call("call_1"), call("call_2")], &call("null"));
        agree(&options(dialect), &[call("null"), call("call_2")], &call("call_3"));
    }
}

#[test]
fn options_that_change_what_is_read_use_no_shapes() {
    let two = String::from_utf8(chat("two", TEXTS)).unwrap().replace("\"index\":0", "\"index\":1");
    let both = [chat("one", TEXTS), two.into_bytes()].concat();
    let before = [chat("a", TEXTS), chat("bc", TEXTS), both.clone()];
    let mut second = options("openai-chat");
    second.stream.choice = 1;
    agree(&second, &before, &both);
    let mut shallow = options("openai-chat");
    shallow.stream.limits.depth = 2;
    agree(&shallow, &before, &chat("def", TEXTS));
    let mut scored = options("openai-chat");
    scored.stream.logprobs = true;
    agree(&scored, &before, &chat("def", TEXTS));
}

#[test]
fn a_table_keeps_no_text_of_a_stream() {
    let shapes: Arc<Shapes> = Arc::default();
    for (dialect, make) in
        [("openai-chat", chat as fn(&str, &[&str]) -> Vec<u8>), ("anthropic-messages", messages)]
    {
        let sharing = Options { shapes: Some(Arc::clone(&shapes)), ..options(dialect) };
        // The last stream alone has a member with a text that streams never share.
        let odd = String::from_utf8(make("secret-odd", &["secret-odd"])).unwrap();
        let odd = odd.replace("\"index\":0", "\"index\":0,\"logprobs\":\"secret-odd\"");
        for body in [
            make("secret-a", &["secret-text", "secret-more"]),
            make("secret-b", &["secret-text", "secret-more"]),
            make("secret-a", &["secret-text", "secret-more"]),
            odd.into_bytes(),
        ] {
            decode(&sharing, &body, body.len());
        }
    }
    let kept = format!("{shapes:?}");
    assert!(kept.contains("choices") && kept.contains("content_block_delta"), "{kept}");
    assert!(!kept.contains("secret"), "{kept}");
}

#[test]
fn streams_with_members_of_their_own_do_not_grow_a_table() {
    let shapes: Arc<Shapes> = Arc::default();
    let sharing = Options { shapes: Some(Arc::clone(&shapes)), ..options("openai-chat") };
    let odd = |number: usize| {
        let body = String::from_utf8(chat("odd", TEXTS)).unwrap();
        body.replace("\"created\"", &format!("\"member_{number}\"")).into_bytes()
    };
    let shown = |rounds: std::ops::Range<usize>| {
        for number in rounds {
            // Twice, so that two streams have shown it.
            for _ in 0..2 {
                let body = odd(number);
                let deltas = decode(&sharing, &body, body.len());
                assert!(matches!(deltas.last().unwrap().payload, Payload::Done { .. }));
            }
        }
        format!("{shapes:?}").matches("skeleton: ").count()
    };
    let full = shown(0..120);
    assert!((100..1_000).contains(&full), "{full} shapes");
    assert_eq!(shown(120..128), full, "the table went on growing");
    let usual = chat("usual", TEXTS);
    assert_eq!(decode(&sharing, &usual, 16), decode(&options("openai-chat"), &usual, 16));
}

#[test]
fn threads_share_a_table() {
    let shapes: Arc<Shapes> = Arc::default();
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let sharing = Options { shapes: Some(Arc::clone(&shapes)), ..options("openai-chat") };
            scope.spawn(move || {
                for round in 0..200 {
                    let body = chat(&"n".repeat(1 + (thread + round) % 5), TEXTS);
                    let alone = decode(&options("openai-chat"), &body, 100);
                    assert_eq!(decode(&sharing, &body, 100), alone);
                }
            });
        }
    });
}

#[test]
fn lines_that_are_no_event_do_not_search_the_rest_of_the_feed() {
    // 10^13 bytes would be searched for each line, which would be noticed.
    const LINES: usize = 4_000_000;
    let shapes: Arc<Shapes> = Arc::default();
    let sharing = Options { shapes: Some(Arc::clone(&shapes)), ..options("openai-chat") };
    let usual = chat("usual", TEXTS);
    for _ in 0..3 {
        decode(&sharing, &usual, usual.len());
    }
    for line in [":\n", ":\r", "id:\n", "event: \n", "event: \r", "data\r\r"] {
        let body = [line.repeat(LINES).into_bytes(), usual.clone()].concat();
        let deltas = decode(&sharing, &body, body.len());
        assert_eq!(deltas, decode(&options("openai-chat"), &usual, usual.len()), "{line:?}");
    }
}

#[test]
fn events_whose_lines_end_with_carriage_returns_do_not_search_the_rest_of_the_feed() {
    const EVENTS: usize = 40_000;
    let shapes: Arc<Shapes> = Arc::default();
    let sharing = Options { shapes: Some(Arc::clone(&shapes)), ..options("openai-chat") };
    let usual = chat("usual", TEXTS);
    for _ in 0..3 {
        decode(&sharing, &usual, usual.len());
    }
    let text = String::from_utf8(chat("usual", &["x"])).unwrap();
    let mut events: Vec<&str> = text.split_inclusive("\n\n").collect();
    let repeated = events[1].repeat(EVENTS);
    events[1] = &repeated;
    let body = events.concat().replace('\n', "\r").into_bytes();
    let deltas = decode(&sharing, &body, body.len());
    assert_eq!(deltas, decode(&options("openai-chat"), &body, 4096));
}
