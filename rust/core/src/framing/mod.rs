//! Bytes in any chunking to frames.  A framer knows neither JSON's meaning nor providers.

pub mod aws_event_stream;
mod bytes;
pub mod json_array;
pub mod ndjson;
pub mod sniff;
pub mod sse;

use std::ops::ControlFlow;

use aws_event_stream::AwsEventStream;
pub use bytes::{Bytes, Feed};
use json_array::JsonArray;
use ndjson::Ndjson;
use sse::Sse;

/// One unit of a framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A framed event.
    Event {
        /// The event's name, empty when it has none.
        name: &'a [u8],
        /// Its data, the lines joined by LF.
        data: &'a [u8],
        /// Bytes from the start of the body to its first data line.
        offset: u64,
        /// Whether the framing closed it; false for what stands unfinished at the end of the body.
        closed: bool,
        /// All of its bytes, when it stood whole in one feed and its data is one piece of them; else empty.
        wire: &'a [u8],
    },
    /// A line that belongs to no event.
    Stray {
        /// The line without its end.
        line: &'a [u8],
        /// Bytes from the start of the body to the line.
        offset: u64,
        /// Whether the framing takes each such line for a record: one that begins like JSON and breaks is an error then.
        record: bool,
    },
    /// The framing says that the stream failed.
    Failure {
        /// The sender's name for the failure.
        code: &'a [u8],
        /// What happened; empty when the data says it.
        message: &'a [u8],
        /// More about it: JSON, or nothing.
        data: &'a [u8],
    },
    /// Bytes that cannot be framed.  Nothing follows.
    Corrupt {
        /// What is wrong with them.
        what: &'static str,
        /// Bytes from the start of the body to the frame.
        offset: u64,
    },
    /// The event that is being received exceeds the limit.
    TooLong,
}

/// Where frames go.
pub trait Receiver {
    /// Takes a frame; breaks when it wants no more.
    fn frame(&mut self, frame: Frame<'_>) -> ControlFlow<()>;

    /// Takes events that it knows at the start of bytes that nobody has framed yet; how many bytes they are.  An event
    /// begins there.
    fn unframed(&mut self, _bytes: &[u8]) -> ControlFlow<(), usize> {
        ControlFlow::Continue(0)
    }
}

impl<F: FnMut(Frame<'_>) -> ControlFlow<()>> Receiver for F {
    fn frame(&mut self, frame: Frame<'_>) -> ControlFlow<()> {
        self(frame)
    }
}

/// How a protocol's bodies are framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    Sse,
    /// A JSON value a line.
    Ndjson,
    /// One JSON array whose elements arrive over time.
    JsonArray,
    /// Binary frames of `application/vnd.amazon.eventstream`.
    AwsEventStream,
}

/// A framer of any framing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framer {
    /// Server-sent events.
    Sse(Sse),
    /// A JSON value a line.
    Ndjson(Ndjson),
    /// One JSON array.
    JsonArray(JsonArray),
    /// Binary frames.
    AwsEventStream(AwsEventStream),
}

impl Framer {
    /// A framer that refuses events over `max_bytes`.
    pub fn new(framing: Framing, max_bytes: usize) -> Self {
        match framing {
            Framing::Sse => Self::Sse(Sse::new(max_bytes)),
            Framing::Ndjson => Self::Ndjson(Ndjson::new(max_bytes)),
            Framing::JsonArray => Self::JsonArray(JsonArray::new(max_bytes)),
            Framing::AwsEventStream => Self::AwsEventStream(AwsEventStream::new(max_bytes)),
        }
    }

    /// Takes the next bytes and hands every finished frame to `sink`, which breaks when it wants no more.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8], mut sink: impl Receiver) -> ControlFlow<()> {
        match self {
            Self::Sse(framer) => framer.feed(bytes, sink),
            Self::Ndjson(framer) => framer.feed(bytes, |frame: Frame<'_>| sink.frame(frame)),
            Self::JsonArray(framer) => framer.feed(bytes, |frame: Frame<'_>| sink.frame(frame)),
            Self::AwsEventStream(framer) => {
                framer.feed(bytes, |frame: Frame<'_>| sink.frame(frame))
            }
        }
    }

    /// Takes the end of the body.
    pub fn close(&mut self, mut sink: impl Receiver) -> ControlFlow<()> {
        match self {
            Self::Sse(framer) => framer.close(|frame: Frame<'_>| sink.frame(frame)),
            Self::Ndjson(framer) => framer.close(|frame: Frame<'_>| sink.frame(frame)),
            // What these two hold is a frame that was cut, and says nothing.
            Self::JsonArray(_) | Self::AwsEventStream(_) => ControlFlow::Continue(()),
        }
    }
}
