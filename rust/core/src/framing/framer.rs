//! `Framer`: one type for the framers of all framings.

use std::ops::ControlFlow;

use super::aws_event_stream::AwsEventStream;
use super::frame::{Frame, Receiver};
use super::json_array::JsonArray;
use super::ndjson::Ndjson;
use super::sse::Sse;

/// The framing of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    Sse,
    /// One JSON value per line.
    Ndjson,
    /// One JSON array whose elements arrive over time.
    JsonArray,
    /// Binary frames of `application/vnd.amazon.eventstream`.
    AwsEventStream,
}

impl Framing {
    /// Return the content type of a body.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Sse => "text/event-stream",
            Self::Ndjson => "application/x-ndjson",
            Self::JsonArray => "application/json",
            Self::AwsEventStream => "application/vnd.amazon.eventstream",
        }
    }
}

/// A framer of any framing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framer {
    /// Server-sent events.
    Sse(Sse),
    /// One JSON value per line.
    Ndjson(Ndjson),
    /// One JSON array.
    JsonArray(JsonArray),
    /// Binary frames.
    AwsEventStream(AwsEventStream),
}

impl Framer {
    /// Build a framer that refuses events over `max_bytes`.
    pub fn new(framing: Framing, max_bytes: usize) -> Self {
        match framing {
            Framing::Sse => Self::Sse(Sse::new(max_bytes)),
            Framing::Ndjson => Self::Ndjson(Ndjson::new(max_bytes)),
            Framing::JsonArray => Self::JsonArray(JsonArray::new(max_bytes)),
            Framing::AwsEventStream => Self::AwsEventStream(AwsEventStream::new(max_bytes)),
        }
    }

    /// Read the next bytes and pass each finished frame to `sink`, until `sink` breaks.
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

    /// Return the number of bytes up to the end of the event at which the sink broke (server-sent events).
    pub fn stopped_at(&self) -> Option<u64> {
        match self {
            Self::Sse(framer) => framer.stopped_at(),
            Self::Ndjson(_) | Self::JsonArray(_) | Self::AwsEventStream(_) => None,
        }
    }

    /// Take the end of the body.
    pub fn close(&mut self, mut sink: impl Receiver) -> ControlFlow<()> {
        match self {
            Self::Sse(framer) => framer.close(|frame: Frame<'_>| sink.frame(frame)),
            Self::Ndjson(framer) => framer.close(|frame: Frame<'_>| sink.frame(frame)),
            // These two hold only a frame that was cut, which is dropped.
            Self::JsonArray(_) | Self::AwsEventStream(_) => ControlFlow::Continue(()),
        }
    }
}
