//! Bytes in any chunking to frames.  A framer knows neither JSON nor providers.

pub mod sse;

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
    },
    /// A line that belongs to no event.
    Stray {
        /// The line without its end.
        line: &'a [u8],
        /// Bytes from the start of the body to the line.
        offset: u64,
    },
    /// The event that is being received exceeds the limit.
    TooLong,
}
