//! `Framing`: strict readers of the framings that deltafold writes.
//!
//! In: bytes in any chunking.  Out: events, or a description of the broken rule.
//!
//! Laws: only the form that docs/protocols/encoding.md#e13 prescribes is accepted, although a reader would accept more.  An
//! unfinished event is buffered up to [`MAX_EVENT_BYTES`], and each byte is read a constant number of times.  The readers
//! share no code with the framings of the decoder, so that a mistake of one does not hide in the other.

use super::aws_frames::AwsFrames;
use super::event::{Event, MAX_EVENT_BYTES, hold, utf8};
use super::tree::{Rule, quoted};

/// Reader of one framing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events.
    Sse(Sse),
    /// One JSON text a line.
    Lines(Lines),
    /// One JSON array of objects.
    Array(Array),
    /// AWS event stream.
    Aws(AwsFrames),
}

impl Framing {
    /// Read the next bytes and pass each event to `sink`.
    pub(super) fn feed(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Event<'_>) -> Rule) -> Rule {
        match self {
            Self::Sse(sse) => sse.feed(bytes, sink),
            Self::Lines(lines) => lines.feed(bytes, sink),
            Self::Array(array) => array.feed(bytes, sink),
            Self::Aws(frames) => frames.feed(bytes, sink),
        }
    }

    /// Check that the body does not end inside an event.
    pub(super) fn close(&self) -> Rule {
        let open = match self {
            Self::Sse(sse) => !sse.held.is_empty() || sse.block != Block::default(),
            Self::Lines(lines) => !lines.held.is_empty(),
            Self::Array(array) => array.state != ArrayState::End,
            Self::Aws(frames) => frames.is_inside(),
        };
        if open { Err("the body ends inside an event".to_owned()) } else { Ok(()) }
    }
}

/// Split bytes at LF, and keep the unfinished line in `held`.
fn split_lines(
    held: &mut Vec<u8>,
    max: usize,
    mut bytes: &[u8],
    mut line: impl FnMut(&str) -> Rule,
) -> Rule {
    while let Some(end) = memchr::memchr(b'\n', bytes) {
        let (begin, rest) = bytes.split_at_checked(end).unwrap_or((bytes, &[]));
        hold(held, begin, max)?;
        if memchr::memchr(b'\r', held).is_some() {
            return Err("the line holds a CR: lines end in LF only".to_owned());
        }
        line(utf8(held)?)?;
        held.clear();
        bytes = rest.get(1..).unwrap_or(&[]);
    }
    hold(held, bytes, max)
}

/// Reader of server-sent events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sse {
    held: Vec<u8>,
    block: Block,
}

/// Lines of the current event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Block {
    comment: bool,
    name: Option<String>,
    data: Option<String>,
}

impl Sse {
    fn feed(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Event<'_>) -> Rule) -> Rule {
        let Self { held, block } = self;
        split_lines(held, MAX_EVENT_BYTES, bytes, |line| block.read(line, sink))
    }
}

impl Block {
    fn read(&mut self, line: &str, sink: &mut dyn FnMut(Event<'_>) -> Rule) -> Rule {
        if line.is_empty() {
            return self.end(sink);
        }
        if self.comment {
            return Err("a blank line must follow the comment".to_owned());
        }
        if self.data.is_some() {
            return Err("a blank line must follow the `data:` line".to_owned());
        }
        if let Some(data) = line.strip_prefix("data: ") {
            if data.starts_with(' ') {
                return Err("`data:` must be followed by exactly one space".to_owned());
            }
            self.data = Some(data.to_owned());
        } else if let Some(name) = line.strip_prefix("event: ") {
            if self.name.is_some() {
                return Err("the event has two `event:` lines".to_owned());
            }
            self.name = Some(name.to_owned());
        } else if line == ": keep-alive" && self.name.is_none() {
            self.comment = true;
        } else {
            return Err(format!("the line {:?} has no place in an event", quoted(line)));
        }
        Ok(())
    }

    fn end(&mut self, sink: &mut dyn FnMut(Event<'_>) -> Rule) -> Rule {
        let block = std::mem::take(self);
        match (block.comment, block.data) {
            (true, _) => sink(Event::Comment),
            (false, Some(data)) => sink(Event::Data { name: block.name.as_deref(), data: &data }),
            (false, None) => Err("a blank line without an event before it".to_owned()),
        }
    }
}

/// Reader of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lines {
    held: Vec<u8>,
    max_bytes: usize,
}

impl Lines {
    /// Build a reader that refuses lines of more than `max_bytes`.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { held: Vec::new(), max_bytes }
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Event<'_>) -> Rule) -> Rule {
        split_lines(&mut self.held, self.max_bytes, bytes, |line| {
            if line.is_empty() {
                return Err("the line is blank".to_owned());
            }
            sink(Event::Data { name: None, data: line })
        })
    }
}

/// Reader of a JSON array of objects: `[`, the objects joined by `,`, `]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Array {
    held: Vec<u8>,
    state: ArrayState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ArrayState {
    /// Before `[`.
    #[default]
    Begin,
    /// Before an object; the first one may be missing.
    Object { first: bool },
    /// Inside an object.
    Inside { depth: usize, in_string: bool, escaped: bool },
    /// After an object.
    After,
    /// After `]`.
    End,
}

impl Array {
    fn feed(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Event<'_>) -> Rule) -> Rule {
        for &byte in bytes {
            self.state = match (self.state, byte) {
                (ArrayState::Begin, b'[') => ArrayState::Object { first: true },
                (ArrayState::Object { .. }, b'{') => {
                    hold(&mut self.held, &[byte], MAX_EVENT_BYTES)?;
                    ArrayState::Inside { depth: 1, in_string: false, escaped: false }
                }
                (ArrayState::Inside { depth, in_string, escaped }, _) => {
                    hold(&mut self.held, &[byte], MAX_EVENT_BYTES)?;
                    let state = inside(depth, in_string, escaped, byte);
                    if state == ArrayState::After {
                        sink(Event::Data { name: None, data: utf8(&self.held)? })?;
                        self.held.clear();
                    }
                    state
                }
                (ArrayState::After, b',') => ArrayState::Object { first: false },
                (ArrayState::After | ArrayState::Object { first: true }, b']') => ArrayState::End,
                (state, _) => {
                    let place = match state {
                        ArrayState::Begin => "the array must begin with `[`",
                        ArrayState::Object { .. } => "an element of the array must be an object",
                        ArrayState::Inside { .. } | ArrayState::After => {
                            "`,` or `]` must follow an element of the array"
                        }
                        ArrayState::End => "nothing may follow the end of the array",
                    };
                    return Err(format!("{place} (got byte {byte:#04x})"));
                }
            };
        }
        Ok(())
    }
}

/// Return the state after one more byte of an object.
fn inside(depth: usize, in_string: bool, escaped: bool, byte: u8) -> ArrayState {
    let (depth, in_string, escaped) = match byte {
        _ if escaped => (depth, in_string, false),
        b'\\' => (depth, in_string, in_string),
        b'"' => (depth, !in_string, false),
        b'{' | b'[' if !in_string => (depth.saturating_add(1), false, false),
        b'}' | b']' if !in_string => (depth.saturating_sub(1), false, false),
        _ => (depth, in_string, false),
    };
    if depth == 0 { ArrayState::After } else { ArrayState::Inside { depth, in_string, escaped } }
}
