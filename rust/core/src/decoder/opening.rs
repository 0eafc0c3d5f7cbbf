//! `Opening`: the first objects of a body in which nothing was said so far, which tell a body of another protocol.
//!
//! In: the objects that were read before the first content, each with the name of its event.  Out: the failure of a body
//! whose objects are of another protocol, or of none.
//!
//! Laws:
//! - Nothing is looked at before the end of a body that said nothing.  The bytes that are kept are bounded.
//! - One object of the decoder's own protocol makes the body one that was cut.

use crate::contract::{ErrorCode, Failure};
use crate::dialect::members;

/// The objects before the first content of a body.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Opening {
    /// No object.
    #[default]
    Nothing,
    /// Objects that said nothing.
    Unread(FirstObjects),
    /// Something was said: the body is read.
    Read,
}

/// The first objects of a body.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FirstObjects {
    first: FirstObject,
    /// The objects after the first.  A gateway may write one of its own before those of the protocol.
    others: Vec<FirstObject>,
    /// No other object followed so far.
    is_alone: bool,
}

/// The beginning of an object.
#[derive(Clone, Debug, PartialEq)]
struct FirstObject {
    /// The name of its event, and then its JSON.
    text: Box<str>,
    /// The length of the name.
    name: usize,
}

/// Maximum bytes that are kept of an object, and of the name of its event.
const FIRST_BYTES: usize = 256;

/// Maximum number of objects that are kept after the first.
const OTHERS: usize = 3;

/// Maximum characters of the first object in an error.
const SHOWN_CHARACTERS: usize = 200;

impl FirstObject {
    fn new(name: &[u8], json: &[u8]) -> Self {
        let (name, json) = (String::from_utf8_lossy(name), String::from_utf8_lossy(json));
        let (name, json) = (beginning(&name), beginning(&json));
        Self { text: [name, json].concat().into(), name: name.len() }
    }

    /// Return the name of the event, and the JSON.
    fn parts(&self) -> (&str, &str) {
        self.text.split_at_checked(self.name).unwrap_or_default()
    }

    fn dialects(&self) -> Vec<&'static str> {
        let (name, json) = self.parts();
        members::by_frame(name)
            .map_or_else(|| members::dialects_of(name, json), |dialect| vec![dialect])
    }
}

impl Opening {
    /// Keep an object that said nothing.
    #[cold]
    pub(super) fn keep(&mut self, name: &[u8], json: &[u8], is_alone: bool) {
        if let Self::Unread(objects) = self {
            objects.is_alone = false;
            if objects.others.len() < OTHERS {
                objects.others.push(FirstObject::new(name, json));
            }
        } else if !members::is_sign_of_life(name, json) {
            let first = FirstObject::new(name, json);
            *self = Self::Unread(FirstObjects { first, others: Vec::new(), is_alone });
        }
    }

    /// Keep the first of the events that templates took without framing: each has its JSON on one line.
    #[cold]
    pub(super) fn keep_unframed(&mut self, taken: &[u8]) {
        let begin = memchr::memchr(b'{', taken).unwrap_or(0);
        let (head, json) = taken.split_at(begin);
        let end = memchr::memchr2(b'\n', b'\r', json).unwrap_or(json.len());
        let (json, rest) = json.split_at(end);
        let lines = head.split(|byte| matches!(byte, b'\n' | b'\r'));
        let name = lines.filter_map(|line| line.strip_prefix(b"event:")).next_back();
        let name = name.unwrap_or_default().trim_ascii();
        self.keep(name, json.trim_ascii_end(), rest.trim_ascii().is_empty());
    }

    /// Return the failure of a body whose first objects are of another protocol than `own`, or of none.
    #[cold]
    pub(super) fn failure(&self, own: &str, is_whole: bool) -> Option<Failure<Box<str>>> {
        let Self::Unread(FirstObjects { first, others, is_alone }) = self else { return None };
        let all: Vec<_> = std::iter::once(first)
            .chain(others)
            .map(|object| (object, object.dialects()))
            .collect();
        if all.iter().any(|(_, found)| members::reads(own, found)) {
            return None;
        }
        let known = all.iter().find(|(object, found)| {
            !found.is_empty() || members::foreign_form(object.parts().1).is_some()
        });
        let (object, found) = match known {
            Some((object, found)) => (*object, found.as_slice()),
            None => (first, Default::default()),
        };
        let json = object.parts().1;
        let seen = match (members::foreign_form(json), found) {
            (Some(form), _) => form.to_owned(),
            // One event of an unknown form may be that of a gateway, before the connection was lost.
            (None, []) if *is_alone && !is_whole => return None,
            (None, []) => "no protocol that deltafold reads".to_owned(),
            (None, found) => found.join(" or "),
        };
        let shown: String = json.chars().take(SHOWN_CHARACTERS).collect();
        let message =
            format!("no event of {own} was recognised; this is {seen}; the first event is {shown}");
        Some(Failure::new(ErrorCode::ProtocolError, message.into()))
    }
}

/// Return the bytes of a text that are kept.
fn beginning(text: &str) -> &str {
    let mut end = text.len().min(FIRST_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
