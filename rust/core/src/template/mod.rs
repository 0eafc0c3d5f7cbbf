//! The fast path for repeated events: frames that differ from an earlier one only in the texts of known tokens.
//!
//! In: the bytes of a frame, or bytes that no framer has read yet.  Out: the [`Template::Event`] that `read` would return
//! for them, or a miss.
//!
//! A template is a frame that `read` accepted, cut at the borders of its tokens.  A token becomes a hole if
//! - the event's type declares that it changes in each event; this holds from the first frame on;
//! - it is a scalar that `read` borrowed or ignored, and two frames with the same skeleton differed in it;
//! - it is an object that the protocol reads in place (log probabilities, token counts);
//! - it is a whole number that `read` returns as such;
//! - it is the white space before the last brace.
//!
//! Literals between holes must be equal byte for byte.  A hole takes a valid token of the same kind; an object may nest no
//! deeper than the first one.  `read` uses no other property of these tokens, hence it would return the same event.  The one
//! exception is that `read` treats empty strings specially, so an empty string is a miss.  Any doubt is a miss, and then
//! `read` decides.
//!
//! A template also keeps the bytes that framed its frame.  No hole takes a line end.  If all literals match, framing would
//! therefore find the same event, and the event is taken before it is framed.
//!
//! Templates are learned for each stream, at most three at a time.  A stream that shares [`Shapes`] with others takes its first
//! templates from them.  Property tests and a fuzz target compare both with `read`.
//!
//! The rest of the core uses this module in four places.  Its removal would change these and no delta:
//! - `dialect/protocol.rs`: `ProtocolDriver` would only call `read` and `apply`, and `Protocol` would name its event type
//!   itself and lose `read_object`;
//! - `dialect/*/read.rs`: each protocol implements [`Template`] for its repeated events;
//! - `decoder`: the frame handler would not override `framing::Receiver::unframed`, and its options would have no shapes;
//! - `json::Reader`: the trace of ignored scalars would go.

mod compiled;
mod cut_frame;
mod event;
mod framed_json;
mod shapes;
mod signature;
mod templates;
mod token;

pub use cut_frame::is_same;
pub use event::{EventHandler, StudiedFrame, Template};
pub use shapes::Shapes;
pub use templates::Templates;
pub use token::{Token, Tokens, is_one_line, is_short_count};
