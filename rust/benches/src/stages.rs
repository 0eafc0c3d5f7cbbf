//! Work of each stage over the feeds of one body, from the minimal scan to the whole message.
//!
//! In: the feeds of a body.  Out: a count that the caller can check, or the message.

use std::ops::ControlFlow;
use std::sync::Arc;

use deltafold::contract::Delta;
use deltafold::decoder::{Decoder, Options};
use deltafold::dialect::choices::Followed;
use deltafold::dialect::protocol::{Frame, Protocol, Wanted};
use deltafold::dialect::{VOCABULARY, anthropic_messages, gemini, openai_chat, openai_responses};
use deltafold::emit::StreamOptions;
use deltafold::encode::{self, Encoder, Settings};
use deltafold::fold::{FoldingOutput, MessageAssembler, Part};
use deltafold::framing;
use deltafold::framing::sse::Sse;
use deltafold::json::Reader;
use deltafold::limits::Limits;
use deltafold::provider_error::Response;
use deltafold::{DeltaBatch, Output};

/// Visit the line ends (LF and CR) and validate the UTF-8 of each feed, as a lower bound.  Returns the number of line ends.
pub fn scan(feeds: &[Vec<u8>]) -> usize {
    let mut ends = 0;
    for feed in feeds {
        ends += memchr::memchr2_iter(b'\n', b'\r', feed).count();
        ends += usize::from(std::str::from_utf8(feed).is_err());
    }
    ends
}

/// Frame the feeds and return the number of frames.
pub fn frame(feeds: &[Vec<u8>]) -> usize {
    let mut sse = Sse::new(Limits::default().event_bytes);
    let mut frames = 0;
    for feed in feeds {
        let _ = sse.feed(feed, |frame: framing::Frame<'_>| {
            frames += usize::from(matches!(frame, framing::Frame::Event { .. }));
            ControlFlow::Continue(())
        });
    }
    frames
}

/// Return the JSON texts of the frames of a body.
pub fn frames(feeds: &[Vec<u8>]) -> Vec<String> {
    let mut sse = Sse::new(Limits::default().event_bytes);
    let mut found = Vec::new();
    for feed in feeds {
        let _ = sse.feed(feed, |frame: framing::Frame<'_>| {
            if let framing::Frame::Event { data, .. } = frame
                && data.starts_with(b"{")
            {
                found.push(String::from_utf8_lossy(data).into_owned());
            }
            ControlFlow::Continue(())
        });
    }
    found
}

/// Read every frame without a template, and return the number of frames that were read.
pub fn read(dialect: &str, frames: &[String]) -> usize {
    let is_read = match dialect {
        "gemini" => is_read::<gemini::State>,
        "openai-chat" => is_read::<openai_chat::State>,
        "openai-responses" => is_read::<openai_responses::State>,
        _ => is_read::<anthropic_messages::State>,
    };
    frames.iter().filter(|json| is_read(json)).count()
}

fn is_read<P: Protocol>(json: &str) -> bool {
    let max_depth = Limits::default().depth;
    let frame = Frame { name: "", json, wire: "", max_depth };
    let wanted = Wanted { followed: Followed::One(0), logprobs: false };
    P::read(frame, &mut Reader::new(json, max_depth), wanted).is_ok()
}

/// Return the options of a stream; `None` if the dialect is unknown.
pub fn options(dialect: &str) -> Option<Options> {
    let name = deltafold::dialect::find(dialect)?.name;
    let stream = StreamOptions::new(name, "run", Response::from_status(VOCABULARY, 200));
    Some(Options { stream, markup: None, shapes: Some(Arc::default()) })
}

/// Output that counts deltas and stores none.
struct Count(usize);

impl Output for Count {
    fn delta(&mut self, _: &Delta<&str>) {
        self.0 += 1;
    }
}

/// Decode the feeds without storing deltas, and return the number of deltas.
pub fn decode(options: Options, feeds: &[Vec<u8>]) -> usize {
    let Some(mut decoder) = Decoder::new(options) else { return 0 };
    let mut count = Count(0);
    for feed in feeds {
        decoder.feed(feed, &mut count);
    }
    decoder.close(&mut count);
    count.0
}

/// Decode each feed into a batch, and return the number of deltas.
pub fn batches(options: Options, feeds: &[Vec<u8>]) -> usize {
    let Some(mut decoder) = Decoder::new(options) else { return 0 };
    let mut deltas = 0;
    for feed in feeds {
        let mut batch = DeltaBatch::default();
        decoder.feed(feed, &mut batch);
        deltas += batch.len();
    }
    let mut batch = DeltaBatch::default();
    decoder.close(&mut batch);
    deltas + batch.len()
}

/// Fold the feeds into a message.
pub fn fold(options: Options, feeds: &[Vec<u8>]) -> MessageAssembler {
    let mut assembler = MessageAssembler::default();
    if let Some(mut decoder) = Decoder::new(options) {
        for feed in feeds {
            decoder.feed(feed, &mut FoldingOutput::new(&mut assembler));
        }
        decoder.close(&mut FoldingOutput::new(&mut assembler));
    }
    assembler
}

/// Fold the feeds as a stream does, which asks after each of them for the first text, and return the feeds before it.
pub fn feeds_before_text(options: Options, feeds: &[Vec<u8>]) -> usize {
    let mut assembler = MessageAssembler::default();
    let Some(mut decoder) = Decoder::new(options) else { return 0 };
    let mut before = 0;
    for feed in feeds {
        decoder.feed(feed, &mut FoldingOutput::new(&mut assembler));
        before += usize::from(!assembler.has_text());
    }
    before
}

/// Write the feeds in another protocol, and return the number of bytes; 0 if a name is unknown.
pub fn transcode(options: Options, target: &str, feeds: &[Vec<u8>]) -> usize {
    let (Some(mut decoder), Some(target)) = (Decoder::new(options), encode::find(target)) else {
        return 0;
    };
    let mut encoder = Encoder::new(target, Settings::default(), false);
    let mut bytes = 0;
    for feed in feeds {
        decoder.feed(feed, &mut encoder);
        bytes += encoder.out().drain(<[u8]>::len);
    }
    decoder.close(&mut encoder);
    bytes + encoder.take().len()
}

/// Return the number of bytes of text, thinking and arguments in a message.
pub fn text_bytes(message: &MessageAssembler) -> usize {
    let bytes = message.parts().iter().map(|part| match part {
        Part::Text(part) | Part::Thinking(part) => part.text.len(),
        Part::ToolCall(call) => call.args.len(),
        Part::Whole(_) => 0,
    });
    bytes.sum()
}
