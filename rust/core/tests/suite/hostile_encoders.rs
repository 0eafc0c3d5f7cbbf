//! Hostile deltas to the encoders: waiting content is bounded, the end names the bound, memory stays bounded, work stays linear.

use deltafold::contract::{Delta, FinishReason, InputFormat, Output, Payload, TextAttributes};
use deltafold::encode::{Encoder, Settings, TARGETS, Target};

use crate::cost::{LIVE, PEAK, TOTAL};
use crate::hostile::limited;
use crate::support::Checked;

/// Cost of encoding: peak of allocated bytes and bytes asked of the allocator, without the output.
struct Cost {
    encoder: Checked<Encoder>,
    peak: i64,
    total: i64,
    written: usize,
    last: Vec<u8>,
}

fn start() -> Payload<&'static str> {
    Payload::Start { model_id: "m", request_id: "r" }
}

fn done() -> Payload<&'static str> {
    Payload::Done {
        finish_reason: FinishReason::Stop,
        raw_finish_reason: None,
        model_id: None,
        details: None,
        warnings: None,
    }
}

fn text(part: u32, text: &str) -> Payload<&str> {
    Payload::Text { text, part_index: Some(part), attributes: TextAttributes::default() }
}

fn thinking(part: u32, text: &str) -> Payload<&str> {
    Payload::Thinking { text, part_index: Some(part), attributes: TextAttributes::default() }
}

fn call(id: &str) -> Payload<&str> {
    Payload::ToolCallStart {
        id,
        name: "f",
        part_index: None,
        input_format: InputFormat::Json,
        provider_state: None,
    }
}

fn more_args<'a>(id: &'a str, text: &'a str) -> Payload<&'a str> {
    Payload::ToolCallArgs { id, text, part_index: None }
}

fn call_end(id: &str) -> Payload<&str> {
    Payload::ToolCallEnd { id, part_index: None, incomplete: false, provider_state: None }
}

/// Encodes what `say` says, and takes the bytes after each delta, as a server does.
fn cost(
    target: &'static Target,
    settings: Settings,
    say: impl FnOnce(&mut dyn FnMut(Payload<&str>)),
) -> Cost {
    let before = LIVE.get();
    PEAK.set(before);
    TOTAL.set(0);
    let mut encoder = Checked::new(Encoder::new(target, settings, false));
    let (mut seq, mut written, mut last) = (0, 0, Vec::new());
    say(&mut |payload| {
        seq += 1;
        encoder.delta(&Delta { seq, payload, provider_raw: None });
        let bytes = encoder.take();
        written += bytes.len();
        if !bytes.is_empty() {
            last = bytes;
        }
    });
    assert_eq!(encoder.violation(), None, "{}", target.name);
    let (peak, total) = (PEAK.get() - before, TOTAL.get());
    Cost { encoder, peak, total, written, last }
}

#[test]
fn what_waits_for_an_earlier_call_is_bounded_and_the_end_names_the_limit() {
    const BOUND: u16 = 60_000;
    let args = "x".repeat(1_000);
    for target in TARGETS {
        let settings = Settings {
            limits: limited(|limits| limits.event_bytes = usize::from(BOUND)),
            ..Settings::default()
        };
        let cost = cost(target, settings, |say| {
            say(start());
            say(text(0, "before"));
            say(call("a"));
            say(more_args("a", "{\"a\":"));
            say(call("b"));
            for _ in 0..2_000 {
                say(more_args("b", &args));
            }
        });
        let said = String::from_utf8_lossy(&cost.last);
        if cost.encoder.ended() {
            assert!(cost.encoder.failed(), "{}", target.name);
            assert!(said.contains("limit reached: more than event_bytes (60000)"), "{said}");
        } else {
            assert!(cost.written > 2_000_000, "{}: nothing waits", target.name);
        }
        // Debug builds keep a checker, whose memory is that of the text that it compares.
        let bound = if cost.encoder.ended() { 16 * i64::from(BOUND) } else { 8_000_000 };
        assert!(cost.peak < bound, "{}: {}", target.name, cost.peak);
    }
}

#[test]
fn a_call_that_is_written_whole_is_bounded() {
    let args = "x".repeat(1_000);
    for name in ["gemini", "gemini-array", "ollama", "ollama-generate"] {
        let target = TARGETS.iter().find(|target| target.name == name).unwrap();
        let settings = Settings {
            limits: limited(|limits| limits.event_bytes = 9_000),
            ..Settings::default()
        };
        let cost = cost(target, settings, |say| {
            say(start());
            say(text(0, "before"));
            say(call("a"));
            for _ in 0..100 {
                say(more_args("a", &args));
            }
        });
        assert!(cost.encoder.ended() && cost.encoder.failed(), "{name}");
        assert!(String::from_utf8_lossy(&cost.last).contains("event_bytes (9000)"), "{name}");
    }
}

/// Deltas that make an encoder keep something, `count` times.
type Saying = fn(usize, &mut dyn FnMut(Payload<&str>));

const GROWING: [(&str, Saying); 6] = [
    ("parts by turns", |count, say| {
        for part in 0..u32::try_from(count).unwrap() {
            say(if part % 2 == 0 { text(part, "a") } else { thinking(part, "b") });
        }
    }),
    ("calls that all stay open", |count, say| {
        let ids: Vec<String> = (0..count).map(|number| format!("call_{number}")).collect();
        for id in &ids {
            say(call(id));
        }
        for id in &ids {
            say(more_args(id, "{}"));
        }
        for id in &ids {
            say(call_end(id));
        }
    }),
    ("calls that end backwards", |count, say| {
        let ids: Vec<String> = (0..count).map(|number| format!("call_{number}")).collect();
        for id in &ids {
            say(call(id));
        }
        for id in ids.iter().rev() {
            say(call_end(id));
        }
    }),
    ("text that must be escaped", |count, say| {
        for _ in 0..count {
            say(text(0, "\u{1}\u{2028}\""));
        }
    }),
    ("citations of one text", |count, say| {
        let list = "[{\"type\":\"url_citation\",\"url\":\"https://a.b\",\"title\":\"t\",\"start_index\":0,\"end_index\":1}]";
        let attributes = TextAttributes { annotations: Some(list), ..TextAttributes::default() };
        for _ in 0..count {
            say(Payload::Text { text: "a", part_index: Some(0), attributes });
        }
    }),
    ("parts of another provider", |count, say| {
        let part = "{\"kind\":\"provider\",\"payload\":{\"dialect\":\"mistral\",\"block\":{\"type\":\"x\"}}}";
        for _ in 0..count {
            say(Payload::Part { part_index: None, part });
        }
    }),
];

#[test]
fn work_is_linear_in_the_deltas() {
    for (what, saying) in GROWING {
        for target in TARGETS {
            let [small, large] = [300, 3_000].map(|count| {
                cost(target, Settings::default(), |say| {
                    say(start());
                    saying(count, say);
                    say(done());
                })
            });
            assert!(large.encoder.ended() && !large.encoder.failed(), "{what}: {}", target.name);
            let (large, small) = (large.total, small.total);
            assert!(large < 14 * small, "{what}: {}: {large} after {small}", target.name);
        }
    }
}

#[test]
fn notes_are_bounded_in_number_and_length() {
    let target = TARGETS.iter().find(|target| target.name == "ollama").unwrap();
    let cost = cost(target, Settings::default(), |say| {
        say(start());
        for number in 0..3_000 {
            let name = format!("{number}{}", "x".repeat(2_000));
            let part = format!(
                "{{\"kind\":\"provider\",\"payload\":{{\"dialect\":\"{name}\",\"block\":{{\"type\":\"{name}\"}}}}}}"
            );
            say(Payload::Part { part_index: None, part: &part });
        }
        say(done());
    });
    let notes = cost.encoder.notes();
    assert!(!notes.is_empty() && notes.len() <= 1_000, "{}", notes.len());
    assert!(notes.iter().all(|note| note.what.chars().count() <= 256));
}
