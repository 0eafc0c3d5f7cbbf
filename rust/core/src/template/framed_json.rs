//! The JSON of a template's frame with the bytes of its framing.

/// A frame inside its framing.  If the framing is unknown, `wire` holds only the frame.
#[derive(Clone, Debug)]
pub(super) struct FramedJson {
    pub(super) wire: Box<str>,
    /// The span of the frame in `wire`.
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Only the frames are compared.  The framing is unknown for events that were cut, and it does not change an event.
impl PartialEq for FramedJson {
    fn eq(&self, other: &Self) -> bool {
        self.frame() == other.frame()
    }
}

impl FramedJson {
    pub(super) fn new(frame: &str, wire: &str) -> Self {
        let found = place(frame.as_bytes(), wire);
        let (wire, start) = found.map_or((frame, 0), |start| (wire, start));
        Self { wire: wire.into(), start, end: start + frame.len() }
    }

    #[inline]
    pub(super) fn frame(&self) -> &str {
        self.wire.get(self.start..self.end).unwrap_or("")
    }

    /// Return true if the framing is known.
    #[inline]
    pub(super) fn is_framed(&self) -> bool {
        self.end - self.start < self.wire.len()
    }

    /// Take over the framing of another frame: `wire`, of which `frame` is a piece.
    #[cold]
    pub(super) fn know(&mut self, wire: &str, frame: &[u8]) {
        let Some(start) = place(frame, wire).filter(|_| !self.is_framed()) else { return };
        let around = wire.get(..start).zip(wire.get(start + frame.len()..));
        if let Some((before, after)) = around {
            self.wire = [before, self.frame(), after].concat().into();
            self.end += start;
            self.start = start;
        }
    }

    /// Return true if `wire` is the same framing around a frame of `frame` bytes.
    pub(super) fn is_framed_as(&self, wire: &[u8], frame: usize) -> bool {
        let around = self.wire.get(..self.start).zip(self.wire.get(self.end..));
        around.is_some_and(|(before, after)| {
            wire.len() == before.len() + frame + after.len()
                && wire.starts_with(before.as_bytes())
                && wire.ends_with(after.as_bytes())
        })
    }
}

/// Return the offset of `frame` in `wire`, if it was borrowed from there.
fn place(frame: &[u8], wire: &str) -> Option<usize> {
    let start = (frame.as_ptr() as usize).checked_sub(wire.as_ptr() as usize)?;
    wire.as_bytes().get(start..)?.starts_with(frame).then_some(start)
}
