//! Decoder: composition of the stages, and its policy for unknown, corrupt and stray input.
//!
//! | input | effect |
//! |---|---|
//! | data that begins like JSON and is JSON | the dialect reads it |
//! | … and is not JSON | each `data:` line alone; if one fails too, `error{protocol_error}` with its offset |
//! | … but the body ends inside its event | each whole line alone; a line that is cut is dropped |
//! | `[DONE]` | the end marker |
//! | empty or blank data | ignored |
//! | data of an event named `error` that is not JSON | an error with this message |
//! | only fields like `Data` | `error{protocol_error}` |
//! | other data, lines that are neither field nor JSON | skipped and counted in one warning |
//! | bare JSON outside of events (a JSON body) | collected until it is whole, then read like an event's data |
//! | … that breaks the grammar | `error{protocol_error}` if each line is a record, else noise |
//! | a JSON array | each object in it is read |
//! | a frame that reports a failure | an error with its code and message |
//! | bytes that do not form a frame | `error{protocol_error}` |
//! | a frame, element or line that the body's end cuts off | dropped: the stream ends as if cut there |
//! | invalid UTF-8 | U+FFFD, one warning; outside of strings it is not JSON |
//! | an HTML page, a compressed body, an empty body | `error{protocol_error}` |
//! | nothing but objects of another protocol | `error{protocol_error}`, which names that protocol |
//! | the body of an HTTP status of 300 and above | collected (256 KiB); one error, see `provider_error` |
//! | anything after the terminal | ignored |

mod answers;
mod body;
mod choices;
mod core;
mod frame_handler;
mod opening;
mod options;

pub use body::{Decoder, UNDECIDED};
pub use choices::Choices;
pub use options::Options;
