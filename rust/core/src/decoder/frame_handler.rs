//! What takes the frames of a feed.

use std::ops::ControlFlow;

use super::Core;
use crate::contract::{ErrorCode, Failure, Output};
use crate::framing::{self, Bytes, Feed, Receiver};

/// What takes the frames of a feed.
pub(super) struct FrameHandler<'a, O> {
    core: &'a mut Core,
    out: &'a mut O,
    feed: Feed<'a>,
}

impl<'a, O> FrameHandler<'a, O> {
    /// For the frames of this feed.
    pub(super) fn new(core: &'a mut Core, out: &'a mut O, feed: &'a [u8]) -> Self {
        Self { core, out, feed: Feed::new(feed) }
    }

    #[inline]
    fn flow(&self) -> ControlFlow<()> {
        if self.core.emitter.ended() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl<O: Output> Receiver for FrameHandler<'_, O> {
    #[inline]
    fn frame(&mut self, frame: framing::Frame<'_>) -> ControlFlow<()> {
        use framing::Frame;
        match frame {
            Frame::Event { name, data, wire, .. }
                if self.core.apply_template(name, data, wire, self.out) => {}
            Frame::Event { name, data, offset, closed, wire } => {
                let [name, data, wire] = [name, data, wire].map(|bytes| self.feed.known(bytes));
                let event = Event { name, data, offset, closed, wire };
                self.core.event(event, self.out);
            }
            Frame::Stray { line, offset, record } => {
                self.core.stray_line(line, offset, record, self.out);
            }
            Frame::Failure { code, message, data } => {
                self.core.failure(code, message, data, self.out);
            }
            Frame::Corrupt { what, offset } => {
                let message = format!("the frame at byte {offset} is corrupt: {what}");
                self.core.error(self.out, Failure::new(ErrorCode::ProtocolError, message.into()));
            }
            Frame::TooLong => {
                let bound = self.core.options.limits.event_bytes;
                let message = format!("limit reached: event_bytes ({bound})");
                self.core.error(self.out, Failure::new(ErrorCode::ProtocolError, message.into()));
            }
        }
        self.flow()
    }

    #[inline]
    fn unframed(&mut self, bytes: &[u8]) -> ControlFlow<(), usize> {
        if self.core.options.provider_raw {
            return ControlFlow::Continue(0);
        }
        let bytes = self.feed.beginning(bytes);
        let taken = self
            .core
            .with_sink(self.out, |state, sink| state.apply_templates_unframed(bytes, sink));
        self.flow().map_continue(|()| taken)
    }
}

/// An event as it is framed.
#[derive(Clone, Copy)]
pub(super) struct Event<'a> {
    pub(super) name: Bytes<'a>,
    pub(super) data: Bytes<'a>,
    pub(super) offset: u64,
    pub(super) closed: bool,
    pub(super) wire: Bytes<'a>,
}

impl<'a> Event<'a> {
    /// One without a name, of data that stood elsewhere.
    pub(super) fn from_data(data: &'a [u8]) -> Self {
        let nothing = Bytes::Valid("");
        let data = Bytes::Unchecked(data);
        Self { name: nothing, data, offset: 0, closed: true, wire: nothing }
    }
}
