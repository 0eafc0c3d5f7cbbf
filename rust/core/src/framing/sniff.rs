//! Detection of the framing of a body from its first bytes after white space.
//!
//! In: the first bytes, and the usual framing of the protocol.  Out: a [`BodyKind`], once.
//!
//! Laws:
//! - A text protocol may arrive in every text framing, because proxies change it.
//! - A protocol of binary frames may arrive as text, because its errors and whole bodies are JSON.
//! - HTML pages and compressed bodies are reported as such.
//! - A JSON body, pretty-printed or not, needs no framing of its own: the line framers pass its lines on as strays.
//!
//! | first bytes | framing |
//! |---|---|
//! | `<` | an HTML or XML page |
//! | those of gzip or zstd | compressed |
//! | `[` and then `{` | JSON array |
//! | `:`, or the first letter of an SSE field | SSE |
//! | a zero byte | the binary frames of AWS, in which another protocol than the expected one may come |
//! | `{`, if the protocol has binary frames | SSE, which passes the lines on as strays |
//! | anything else | the usual one |

use crate::framing::Framing;

/// Number of bytes of a page that are kept as the detail of the error.
pub const PAGE_BYTES: usize = 512;

/// The detected kind of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// Events in this framing.
    Framed(Framing),
    /// An HTML or XML page.
    HtmlPage,
    /// Data in the content encoding of this name, which the transport did not undo.
    Compressed(&'static str),
}

/// The first bytes of a body whose kind is not decided yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BodySniffer {
    /// All bytes so far, which the chosen framer receives first.
    seen: Vec<u8>,
    /// `seen` holds an opening bracket.
    bracket: bool,
    /// The last byte was the first one of a zstd frame.
    zstd: bool,
}

impl BodySniffer {
    /// Inspect the next bytes of a body with the usual framing `usual`.  After `max_bytes` of white space, SSE is chosen.
    pub fn inspect(&mut self, bytes: &[u8], usual: Framing, max_bytes: usize) -> Option<BodyKind> {
        let room = max_bytes.saturating_sub(self.seen.len());
        for byte in bytes.iter().take(room) {
            if let Some(kind) = self.byte(*byte, usual) {
                return Some(kind);
            }
        }
        if bytes.len() > room {
            return Some(BodyKind::Framed(Framing::Sse));
        }
        self.seen.extend_from_slice(bytes);
        None
    }

    fn byte(&mut self, byte: u8, usual: Framing) -> Option<BodyKind> {
        let framing = match byte {
            0xB5 if self.zstd => return Some(BodyKind::Compressed("zstd")),
            _ if self.zstd => usual,
            b' ' | b'\t' | b'\n' | b'\r' => return None,
            b'{' if self.bracket => Framing::JsonArray,
            _ if self.bracket => Framing::Sse,
            // The bytes of a BOM are ignored too.
            0xEF | 0xBB | 0xBF => return None,
            // The first byte of the length of a frame of less than 16 MiB, the most that AWS allows.
            0 => Framing::AwsEventStream,
            b'<' => return Some(BodyKind::HtmlPage),
            0x1F => return Some(BodyKind::Compressed("gzip")),
            // Source: RFC 8878, 3.1.1, the magic number 28 B5 2F FD.
            0x28 => {
                self.zstd = true;
                return None;
            }
            b'[' => {
                self.bracket = true;
                return None;
            }
            b'{' if usual == Framing::AwsEventStream => Framing::Sse,
            // First bytes of SSE fields.  A binary frame begins like this only if it is longer than 970 MB.
            b':' | b'd' | b'e' | b'i' | b'r' => Framing::Sse,
            _ => usual,
        };
        Some(BodyKind::Framed(framing))
    }

    /// Return the bytes of the earlier feeds, which did not decide the kind.
    pub fn into_seen(self) -> Vec<u8> {
        self.seen
    }
}
