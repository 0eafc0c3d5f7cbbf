//! A source that fails at any event is a failure in every target, and no call runs that was not whole.

use deltafold::Decoder;
use deltafold::contract::{ErrorCode, Failure, Output};
use deltafold::encode::{self, Encoder, Settings, TARGETS};
use deltafold::fold::{FoldingOutput, MessageAssembler, Terminal};

use crate::support::{self, Checked, Recording};

/// Recordings that are longer are cut at evenly spread events only, unless `DELTAFOLD_ALL_FAULTS` is set.
const CUTS: usize = 10;

/// Targets whose calls are decoded again.
const READ_BACK: [&str; 4] =
    ["anthropic-messages", "openai-chat", "openai-responses", "bedrock-converse"];

/// Events between two faults.
fn step(events: usize) -> usize {
    let all = std::env::var_os("DELTAFOLD_ALL_FAULTS").is_some();
    if all { 1 } else { events.div_ceil(CUTS).max(1) }
}

/// Fault at an event.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The body ends.
    Cut,
    /// The connection is reset.
    Reset,
    /// The provider sends an error.
    Error,
    /// Bytes that belong to no protocol.
    Garbage,
    /// Nothing comes until the caller gives up.
    Silence,
}

const FAULTS: [Fault; 5] = [Fault::Cut, Fault::Reset, Fault::Error, Fault::Garbage, Fault::Silence];

fn error_event(dialect: &str) -> Vec<u8> {
    match dialect {
        "ollama" => b"{\"error\":\"boom\"}\n".to_vec(),
        "bedrock-converse" | "bedrock-invoke" => {
            support::binary::exception("internalServerException", "{\"message\":\"boom\"}")
        }
        _ => b"event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":\"boom\",\"code\":500}}\n\n"
            .to_vec(),
    }
}

fn apply(fault: Fault, dialect: &str, decoder: &mut Decoder, out: &mut impl Output) {
    match fault {
        Fault::Cut => {}
        Fault::Reset => {
            let failure = Failure::new(ErrorCode::ConnectionLost, "reset".into());
            return decoder.fail(failure, out);
        }
        Fault::Silence => {
            let failure = Failure::new(ErrorCode::Timeout, "nothing came".into());
            return decoder.fail(failure, out);
        }
        Fault::Error => decoder.feed(&error_event(dialect), out),
        Fault::Garbage => decoder.feed(b"data: {\"a\": ]}\n\n\0\0\0\0\xFF\n", out),
    }
    decoder.close(out);
}

/// A decoder and the message decoded so far.
#[derive(Clone)]
struct Folded {
    decoder: Decoder,
    message: MessageAssembler,
}

impl Folded {
    fn new(dialect: &str) -> Self {
        Self { decoder: support::decoder(dialect), message: MessageAssembler::default() }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.decoder.feed(bytes, &mut FoldingOutput::new(&mut self.message));
    }

    /// End of the source at this fault: the oracle for the end of a target.
    fn end(&self, fault: Fault, dialect: &str) -> MessageAssembler {
        let Self { mut decoder, mut message } = self.clone();
        apply(fault, dialect, &mut decoder, &mut FoldingOutput::new(&mut message));
        message
    }
}

/// The ids of the calls that may run.
fn whole_calls(message: &MessageAssembler) -> Vec<String> {
    let whole = message.tool_calls().filter(|(_, call)| call.ended && !call.incomplete);
    whole.map(|(_, call)| call.id.to_string()).collect()
}

fn check(recording: &Recording) -> usize {
    let events = support::events(&recording.dialect, &recording.body);
    let step = step(events.len());
    let mut count = 0;
    let mut states: Vec<(Decoder, Checked<Encoder>)> = TARGETS
        .iter()
        .map(|target| {
            let encoder = Checked::new(Encoder::new(target, Settings::default(), false));
            (support::decoder(&recording.dialect), encoder)
        })
        .collect();
    let mut source = Folded::new(&recording.dialect);
    for (at, event) in events.iter().enumerate() {
        if at % step == 0 {
            for fault in FAULTS {
                let source = source.end(fault, &recording.dialect);
                for (target, (decoder, encoder)) in TARGETS.iter().zip(&states) {
                    let (mut decoder, mut encoder) = (decoder.clone(), encoder.clone());
                    if matches!(fault, Fault::Silence) {
                        encoder.keep_alive();
                    }
                    apply(fault, &recording.dialect, &mut decoder, &mut *encoder);
                    let bytes = encoder.take();
                    let place = format!("{} to {}, {fault:?} at {at}", recording.id, target.name);
                    assert!(encoder.ended(), "{place}: no terminal");
                    assert_eq!(encoder.violation(), None, "{place}");
                    judge(&place, target.name, &source, &encoder, &bytes);
                    count += 1;
                }
            }
        }
        source.feed(event);
        for (decoder, encoder) in &mut states {
            decoder.feed(event, &mut **encoder);
            encoder.take();
        }
    }
    count
}

/// A failed source leaves the target's own error as the last words, or an HTTP error.
fn judge(place: &str, target: &str, source: &MessageAssembler, encoder: &Encoder, bytes: &[u8]) {
    let Some(Terminal::Error(failure)) = source.terminal() else { return };
    if encoder.status() != Some(200) {
        return;
    }
    let tail =
        String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(256 << 10)..]).into_owned();
    let blocked = failure.code == ErrorCode::ContentBlocked;
    let said = match target {
        "openai-chat" => tail.contains("\"error\":{"),
        "anthropic-messages" => tail.contains("event: error\n"),
        "openai-responses" => tail.contains("event: response.failed\n"),
        "gemini" | "gemini-array" => tail.contains("\"error\":{\"code\"") || blocked,
        "ollama" | "ollama-generate" => tail.contains("{\"error\":\""),
        "bedrock-converse" => tail.contains(":exception-type"),
        "ag-ui" => tail.contains("\"RUN_ERROR\"") || failure.code == ErrorCode::Cancelled,
        "ai-sdk" => tail.contains("\"type\":\"error\"") || tail.contains("\"type\":\"abort\""),
        _ => tail.contains("\"event\":\"error\""),
    };
    assert!(said, "{place}: {failure:?} is not told: {tail}");
}

#[test]
fn no_failure_of_a_recording_is_told_as_a_success() {
    let mut count = 0;
    for recording in support::recordings() {
        count += check(&recording);
    }
    if count > 0 {
        assert!(count > 100_000, "{count} faults");
    }
}

#[test]
fn no_call_runs_that_was_not_whole() {
    for recording in support::recordings() {
        let events = support::events(&recording.dialect, &recording.body);
        let step = step(events.len());
        let mut source = Folded::new(&recording.dialect);
        let mut states: Vec<(Decoder, Checked<Encoder>, Folded)> = READ_BACK
            .iter()
            .map(|name| {
                let target = encode::find(name).unwrap();
                let encoder = Checked::new(Encoder::new(target, Settings::default(), false));
                (support::decoder(&recording.dialect), encoder, Folded::new(name))
            })
            .collect();
        for (at, event) in events.iter().enumerate() {
            if at % step == 0 {
                let allowed = source.end(Fault::Cut, &recording.dialect);
                let place = format!("{}, cut at {at}", recording.id);
                check_calls(&place, &whole_calls(&allowed), &states);
            }
            source.feed(event);
            for (decoder, encoder, back) in &mut states {
                decoder.feed(event, &mut **encoder);
                back.feed(&encoder.take());
            }
        }
    }
}

/// Cuts every target here: the calls that its reader would run are among the allowed ones.
fn check_calls(place: &str, allowed: &[String], states: &[(Decoder, Checked<Encoder>, Folded)]) {
    for (decoder, encoder, back) in states {
        let (mut decoder, mut encoder, mut back) = (decoder.clone(), encoder.clone(), back.clone());
        decoder.close(&mut *encoder);
        if encoder.status() != Some(200) {
            continue;
        }
        back.feed(&encoder.take());
        let ran = whole_calls(&back.end(Fault::Cut, encoder.target()));
        let unknown = ran.iter().any(|id| !allowed.contains(id));
        assert!(!unknown, "{place}, to {}: {ran:?}, {allowed:?}", encoder.target());
    }
}
