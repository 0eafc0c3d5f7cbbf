//! `FrameHandler`: passes the frames of a feed to the stages after framing.

use std::ops::ControlFlow;

use super::answers::Outputs;
use super::core::{Core, Event};
use crate::contract::{ErrorCode, Failure};
use crate::framing::{self, Feed, Receiver};

/// Receiver of the frames of one feed.
pub(super) struct FrameHandler<'a, O> {
    core: &'a mut Core,
    out: &'a mut O,
    feed: Feed<'a>,
}

impl<'a, O> FrameHandler<'a, O> {
    /// Build the receiver for the frames of a feed.
    pub(super) fn new(core: &'a mut Core, out: &'a mut O, feed: &'a [u8]) -> Self {
        Self { core, out, feed: Feed::new(feed) }
    }

    #[inline]
    fn flow(&self) -> ControlFlow<()> {
        if self.core.has_ended() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl<O: Outputs> Receiver for FrameHandler<'_, O> {
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
                self.core.error(self.out, &Failure::new(ErrorCode::ProtocolError, message.into()));
            }
            Frame::TooLong => {
                let bound = self.core.options().limits.event_bytes;
                let message = format!("limit reached: event_bytes ({bound})");
                self.core.error(self.out, &Failure::new(ErrorCode::ProtocolError, message.into()));
            }
        }
        self.flow()
    }

    #[inline]
    fn unframed(&mut self, bytes: &[u8]) -> ControlFlow<usize, usize> {
        if self.core.options().provider_raw {
            return ControlFlow::Continue(0);
        }
        let bytes = self.feed.beginning(bytes);
        let taken = self.core.apply_templates_unframed(bytes, self.out);
        self.flow().map_continue(|()| taken).map_break(|()| taken)
    }
}
