//! Events are framed as WHATWG HTML says, however the body is cut.

#![allow(
    clippy::allow_attributes,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "an oracle fails loudly, and where it stands"
)]

use std::ops::ControlFlow;

use deltafold::framing::Frame;
use deltafold::framing::sse::Sse;

use super::pieces;

/// A frame that owns its bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Owned {
    Event { name: Vec<u8>, data: Vec<u8>, offset: u64, closed: bool },
    Stray { line: Vec<u8>, offset: u64 },
    TooLong,
}

impl Owned {
    /// A copy of the borrowed frame.
    pub fn from_frame(frame: Frame<'_>) -> Self {
        match frame {
            Frame::Event { name, data, offset, closed, .. } => {
                Self::Event { name: name.to_vec(), data: data.to_vec(), offset, closed }
            }
            Frame::Stray { line, offset, .. } => Self::Stray { line: line.to_vec(), offset },
            Frame::Failure { .. } | Frame::Corrupt { .. } => panic!("no frame of lines"),
            Frame::TooLong => Self::TooLong,
        }
    }
}

/// Frames of a body fed in these pieces; nothing is fed after the first [`Frame::TooLong`], as the decoder does.
pub fn frames_within<'a>(max: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Owned> {
    let mut framer = Sse::new(max);
    let mut found = Vec::new();
    let mut fed = 0;
    let mut sink = |frame: Frame<'_>| {
        found.push(Owned::from_frame(frame));
        if frame == Frame::TooLong { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut flow = ControlFlow::Continue(());
    for piece in pieces {
        fed += piece.len() as u64;
        flow = framer.feed(piece, &mut sink);
        assert_eq!(framer.fed(), fed);
        if flow.is_break() {
            break;
        }
    }
    if flow.is_continue() {
        let _ = framer.close(&mut sink);
    }
    found
}

/// The frames of a body fed at once.
pub fn frames(body: &[u8]) -> Vec<Owned> {
    frames_within(1 << 20, [body])
}

/// The algorithm of the specification in its plainest form, on a whole body: the oracle.
fn plain(text: &str) -> Vec<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let text = text.replace('\r', "\n");
    let mut found = Vec::new();
    let (mut data, mut name) = (String::new(), String::new());
    let mut lines: Vec<&str> = text.split('\n').collect();
    lines.pop();
    for line in lines {
        if line.is_empty() {
            if !data.is_empty() {
                data.pop();
                found.push(format!("{name}|{data}"));
            }
            data.clear();
            name.clear();
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                data.push_str(value);
                data.push('\n');
            }
            "event" => value.clone_into(&mut name),
            // Not the specification: old llama.cpp servers write an error in this form, and others as an event named `error`.
            "error" => {
                "error".clone_into(&mut name);
                data.push_str(value);
                data.push('\n');
            }
            _ => {}
        }
    }
    found
}

/// In one feed and in these pieces the frames are the same, and the closed events those of the specification.
pub fn agree_with_the_specification(body: &str, cuts: &[usize]) {
    let whole = frames(body.as_bytes());
    assert_eq!(frames_within(1 << 20, pieces(body.as_bytes(), cuts)), whole);
    let events: Vec<String> = whole
        .iter()
        .filter_map(|frame| match frame {
            Owned::Event { name, data, closed: true, .. } => {
                Some(format!("{}|{}", String::from_utf8_lossy(name), String::from_utf8_lossy(data)))
            }
            _ => None,
        })
        .collect();
    assert_eq!(events, plain(body));
}
