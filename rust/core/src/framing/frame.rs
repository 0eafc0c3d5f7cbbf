//! `Frame` and `Receiver`: the units of a framing, and their destination.

use std::ops::ControlFlow;

/// One unit of a framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A framed event.
    Event {
        /// The event's name; empty without one.
        name: &'a [u8],
        /// Its data, the lines joined by LF.
        data: &'a [u8],
        /// Byte offset of its first data line in the body.
        offset: u64,
        /// True if the framing closed the event; false for an unfinished event at the end of the body.
        closed: bool,
        /// All bytes of the event, if it was whole in one feed and its data is one piece of them; else empty.
        wire: &'a [u8],
    },
    /// A line that belongs to no event.
    Stray {
        /// The line without its end.
        line: &'a [u8],
        /// Byte offset of the line in the body.
        offset: u64,
        /// The framing has one record per line, so that a line of broken JSON is an error.
        record: bool,
    },
    /// A failure that the framing reports.
    Failure {
        /// The sender's name for the failure.
        code: &'a [u8],
        /// The message; empty if the data has it.
        message: &'a [u8],
        /// Details: JSON, or nothing.
        data: &'a [u8],
    },
    /// Malformed bytes.  No frame follows.
    Corrupt {
        /// The defect.
        what: &'static str,
        /// Byte offset of the frame in the body.
        offset: u64,
    },
    /// An event that exceeds the limit.
    TooLong,
}

/// Destination of frames.
pub trait Receiver {
    /// Take a frame.  Break to stop the framer.
    fn frame(&mut self, frame: Frame<'_>) -> ControlFlow<()>;

    /// Take known events from the start of unframed bytes and return their length.  An event begins at the first byte.  Break
    /// with the length to stop the framer.
    ///
    /// A framer offers the bytes before it reads them.  A receiver without a fast path takes none.
    fn unframed(&mut self, _bytes: &[u8]) -> ControlFlow<usize, usize> {
        ControlFlow::Continue(0)
    }
}

impl<F: FnMut(Frame<'_>) -> ControlFlow<()>> Receiver for F {
    fn frame(&mut self, frame: Frame<'_>) -> ControlFlow<()> {
        self(frame)
    }
}
