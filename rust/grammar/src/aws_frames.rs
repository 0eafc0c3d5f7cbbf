//! `AwsFrames`: a strict reader of the AWS event stream that deltafold writes.
//!
//! In: bytes in any chunking.  Out: events and exceptions, or a description of the broken rule.
//!
//! Laws: both checksums are verified.  All headers are strings, and no name repeats.  The payload is `application/json`.

use super::event::{Event, MAX_EVENT_BYTES, hold, utf8};
use super::tree::{Rule, quoted};

/// Length of the prelude: two lengths and their CRC.
const PRELUDE: usize = 12;
/// Length of a CRC.
const CRC: usize = 4;
/// The type of a header that holds a string.
const STRING: u8 = 7;
/// Maximum length of the header block in the specification.
const MAX_HEADER_BYTES: usize = 128 << 10;
/// Maximum number of headers.  Frames of Bedrock have three.
const MAX_HEADERS: usize = 16;

/// Reader of frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AwsFrames {
    held: Vec<u8>,
}

impl AwsFrames {
    /// Read the next bytes and pass each event to `sink`.
    pub(super) fn feed(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Event<'_>) -> Rule) -> Rule {
        let mut rest = bytes;
        loop {
            let wanted = match self.held.get(..PRELUDE) {
                Some(prelude) => lengths(prelude)?.0,
                None => PRELUDE,
            };
            let missing = wanted.saturating_sub(self.held.len());
            let Some((piece, after)) = rest.split_at_checked(missing) else {
                return hold(&mut self.held, rest, MAX_EVENT_BYTES);
            };
            hold(&mut self.held, piece, MAX_EVENT_BYTES)?;
            rest = after;
            if wanted > PRELUDE {
                read(&self.held, sink)?;
                self.held.clear();
            }
        }
    }

    /// Return true if a frame is unfinished.
    pub(super) fn is_inside(&self) -> bool {
        !self.held.is_empty()
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// Return the lengths of the frame and of its header block.
fn lengths(prelude: &[u8]) -> Rule<(usize, usize)> {
    let sum = prelude.get(..PRELUDE - CRC).map(crc32fast::hash);
    if number(prelude, PRELUDE - CRC) != sum {
        return Err("the CRC of the prelude is wrong".to_owned());
    }
    let length = |at| number(prelude, at).and_then(|length| usize::try_from(length).ok());
    let (total, headers) = (length(0).unwrap_or(usize::MAX), length(4).unwrap_or(usize::MAX));
    if total > MAX_EVENT_BYTES {
        return Err(format!("the frame is longer than {MAX_EVENT_BYTES} bytes"));
    }
    if headers > MAX_HEADER_BYTES {
        return Err(format!("the headers are longer than {MAX_HEADER_BYTES} bytes"));
    }
    if total < PRELUDE + CRC + headers {
        return Err(format!("the frame of {total} bytes has no room for {headers} of headers"));
    }
    Ok((total, headers))
}

fn read(frame: &[u8], sink: &mut dyn FnMut(Event<'_>) -> Rule) -> Rule {
    let (total, headers) = lengths(frame)?;
    let (content, _) = frame.split_at_checked(total - CRC).unwrap_or((frame, &[]));
    if number(frame, total - CRC) != Some(crc32fast::hash(content)) {
        return Err("the CRC of the frame is wrong".to_owned());
    }
    let (block, payload) = content
        .get(PRELUDE..)
        .and_then(|content| content.split_at_checked(headers))
        .ok_or_else(|| "the headers are cut off".to_owned())?;
    let headers = read_headers(block)?;
    let header = |name: &str| {
        let found = headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        found.ok_or_else(|| format!("the header `{name}` is missing"))
    };
    let content_type = header(":content-type")?;
    if content_type != "application/json" {
        let got = quoted(content_type);
        return Err(format!("`:content-type` must be \"application/json\" (got {got:?})"));
    }
    let data = utf8(payload)?;
    match header(":message-type")? {
        "event" => sink(Event::Data { name: Some(header(":event-type")?), data }),
        "exception" => sink(Event::Exception { name: header(":exception-type")?, data }),
        other => {
            let got = quoted(other);
            Err(format!("`:message-type` must be \"event\" or \"exception\" (got {got:?})"))
        }
    }
}

fn read_headers(block: &[u8]) -> Rule<Vec<(&str, &str)>> {
    let cut = || "a header is cut off".to_owned();
    let mut headers: Vec<(&str, &str)> = Vec::new();
    let mut rest = block;
    while let Some((&length, after)) = rest.split_first() {
        let (name, after) = after.split_at_checked(usize::from(length)).ok_or_else(cut)?;
        let name = utf8(name)?;
        let (&kind, after) = after.split_first().ok_or_else(cut)?;
        if name.is_empty() || kind != STRING {
            return Err(format!(
                "the header `{}` must be a string (got type {kind})",
                quoted(name)
            ));
        }
        let (length, after) = after.split_first_chunk().ok_or_else(cut)?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (value, after) = after.split_at_checked(length).ok_or_else(cut)?;
        if headers.iter().any(|(known, _)| *known == name) {
            return Err(format!("the header `{}` stands in the frame twice", quoted(name)));
        }
        if headers.len() >= MAX_HEADERS {
            return Err(format!("the frame has more than {MAX_HEADERS} headers"));
        }
        headers.push((name, utf8(value)?));
        rest = after;
    }
    Ok(headers)
}
