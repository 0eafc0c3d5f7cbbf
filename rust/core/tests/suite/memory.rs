//! Memory, counted by an allocator: the memory of a half-finished stream, and allocation that grows with
//! the received bytes.

use deltafold::decoder::Decoder;
use deltafold::fold::{FoldingOutput, MessageAssembler};
use deltafold::json::write_string;

use crate::cost::{LIVE, TOTAL};

const DIALECTS: [&str; 2] = ["anthropic-messages", "openai-chat"];

#[derive(Clone, Copy, Debug)]
enum Kind {
    Text,
    Arguments,
}

/// The beginning of a stream, and its deltas one by one; no end.
fn stream(dialect: &str, kind: Kind, deltas: &[&str]) -> Vec<String> {
    let quoted = |text: &str| {
        let mut out = String::new();
        write_string(&mut out, text);
        out
    };
    let mut events: Vec<String> = match (dialect, kind) {
        ("openai-chat", Kind::Text) => vec![],
        ("openai-chat", Kind::Arguments) => vec![chat(
            r#"{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"write","arguments":""}}]}"#,
        )],
        (_, kind) => {
            let block = match kind {
                Kind::Text => r#"{"type":"text","text":""}"#,
                Kind::Arguments => {
                    r#"{"type":"tool_use","id":"toolu_1","name":"write","input":{}}"#
                }
            };
            vec![
                r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_01QyV2n8hHkVYzJ4sEwZ3bTx","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"output_tokens":1}}}

"#
                .to_owned(),
                format!("event: content_block_start\ndata: {{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{block}}}\n\n"),
            ]
        }
    };
    events.extend(deltas.iter().map(|delta| {
        let delta = quoted(delta);
        match (dialect, kind) {
            ("openai-chat", Kind::Text) => chat(&format!("{{\"content\":{delta}}}")),
            ("openai-chat", Kind::Arguments) => chat(&format!(
                "{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":{delta}}}}}]}}"
            )),
            (_, Kind::Text) => anthropic("text_delta", "text", &delta),
            (_, Kind::Arguments) => anthropic("input_json_delta", "partial_json", &delta),
        }
    }));
    events
}

fn chat(delta: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-C5vyvpkVGXKzJvbjMV6HzCEmnmNYE\",\"object\":\"chat.completion.chunk\",\"created\":1795000000,\
         \"model\":\"gpt-5-mini-2025-08-07\",\"service_tier\":\"default\",\"system_fingerprint\":null,\
         \"choices\":[{{\"index\":0,\"delta\":{delta},\"logprobs\":null,\"finish_reason\":null}}],\"usage\":null,\
         \"obfuscation\":\"xJ3kQ9aWcZ\"}}\n\n"
    )
}

fn anthropic(kind: &str, member: &str, text: &str) -> String {
    format!(
        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"{kind}\",\"{member}\":{text}}}}}\n\n"
    )
}

/// Bytes held by decoder and assembler, their own size included, and bytes asked for on the way.
fn fold(dialect: &str, events: &[String]) -> (usize, usize) {
    let (held, asked) = (LIVE.get(), TOTAL.get());
    let mut decoder = Box::new(crate::support::decoder(dialect));
    let mut assembler = Box::<MessageAssembler>::default();
    for event in events {
        decoder.feed(event.as_bytes(), &mut FoldingOutput::new(&mut assembler));
    }
    let bytes = |counted: i64| usize::try_from(counted).unwrap();
    let cost = (bytes(LIVE.get() - held), bytes(TOTAL.get() - asked));
    assert!(!decoder.finished());
    cost
}

#[test]
fn a_half_finished_stream_holds_twice_its_text_and_6_kib() {
    let words = [" the", " stream", " of", " words", " \"flows\"\n"];
    let deltas: Vec<&str> = words.into_iter().cycle().take(250).collect();
    let text: usize = deltas.iter().map(|delta| delta.len()).sum();
    for dialect in DIALECTS {
        for kind in [Kind::Text, Kind::Arguments] {
            let (held, _) = fold(dialect, &stream(dialect, kind, &deltas));
            eprintln!("{dialect} {kind:?}: {held} bytes held for {text} bytes of text");
            assert!(held <= 2 * text + (6 << 10), "{dialect} {kind:?}: {held} bytes for {text}");
        }
    }
}

#[test]
fn the_decoder_alone_holds_no_text() {
    let deltas = vec!["0123456789"; 10_000];
    for dialect in DIALECTS {
        let mut decoder = crate::support::decoder(dialect);
        let mut assembler = MessageAssembler::default();
        let before = LIVE.get();
        for event in stream(dialect, Kind::Text, &deltas) {
            decoder.feed(event.as_bytes(), &mut FoldingOutput::new(&mut assembler));
        }
        drop(assembler);
        let held = LIVE.get() - before;
        assert!(held <= 6 << 10, "{dialect}: the decoder alone holds {held} bytes");
    }
}

/// Bytes asked of the allocator, doubling buffers included, per received byte.
#[test]
fn what_is_allocated_grows_with_what_comes() {
    for dialect in DIALECTS {
        for delta_bytes in [1, 12] {
            let mut per_byte: Vec<f64> = Vec::new();
            for bytes in [1_000, 10_000, 100_000, 1_000_000] {
                if bytes / delta_bytes > 100_000 {
                    continue; // a million events say no more than a hundred thousand
                }
                let text = r#"{"text":"a \"line\"\n""#.repeat(bytes / 20);
                let deltas: Vec<&str> = (0..text.len() / delta_bytes)
                    .map(|at| &text[at * delta_bytes..(at + 1) * delta_bytes])
                    .collect();
                let (_, asked) = fold(dialect, &stream(dialect, Kind::Arguments, &deltas));
                #[expect(clippy::cast_precision_loss, reason = "a ratio")]
                per_byte.push(asked as f64 / text.len() as f64);
            }
            // Buffers double, so that the last one makes up to a factor of two.
            let (small, large) = (per_byte[1], per_byte[per_byte.len() - 1]);
            assert!(large <= 8.0 && large <= 2.0 * small, "{dialect}, {delta_bytes}: {per_byte:?}");
        }
    }
}

/// An event that is larger than any feed is gathered in one doubling buffer.
#[test]
fn a_long_event_in_small_feeds_is_gathered_in_linear_memory() {
    for dialect in DIALECTS {
        let text = "x".repeat(1_000_000);
        let events = stream(dialect, Kind::Text, &[text.as_str()]);
        let body = events.concat();
        let mut decoder: Decoder = crate::support::decoder(dialect);
        let mut assembler = MessageAssembler::default();
        let asked = TOTAL.get();
        for piece in body.as_bytes().chunks(16) {
            decoder.feed(piece, &mut FoldingOutput::new(&mut assembler));
        }
        let asked = usize::try_from(TOTAL.get() - asked).unwrap();
        assert_eq!(assembler.text(), text);
        assert!(asked <= 12 * text.len(), "{dialect}: {asked} bytes asked for");
    }
}
