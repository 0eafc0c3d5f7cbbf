//! What is this body?  Told from its first bytes that are no white space.
//!
//! In: the first bytes, and how the protocol's bodies are framed.  Out: a [`BodyKind`], once.  A protocol of text may come in
//! every framing of text (a proxy changes it), one of binary frames as text (errors and whole bodies are JSON).  An HTML
//! page and a compressed body are named for what they are.  A JSON body, pretty-printed or not, needs no framing of its
//! own: a framer of lines hands it over as stray lines.
//!
//! | first bytes | framing |
//! |---|---|
//! | `<` | a page |
//! | gzip's | compressed |
//! | `[` and then `{` | JSON array |
//! | `:`, or a letter that a field of SSE begins with | SSE |
//! | `{`, where the protocol has binary frames | SSE, whose stray lines it is |
//! | anything else | as the protocol has it |

use crate::framing::Framing;

/// Bytes of a page that are kept as the error's detail.
pub const PAGE_BYTES: usize = 512;

/// What the body turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// Events in this framing.
    Framed(Framing),
    /// An HTML or XML page.
    Page,
    /// gzip: nobody undid the content encoding.
    Compressed,
}

/// The first bytes, as long as they decide nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BodySniffer {
    /// All bytes so far: the framing that is chosen gets them too.
    seen: Vec<u8>,
    /// An opening bracket is among them.
    bracket: bool,
}

impl BodySniffer {
    /// Looks at the next bytes of a body whose protocol is framed as `usual`; `max_bytes` of white space are nothing.
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
            b' ' | b'\t' | b'\n' | b'\r' => return None,
            b'{' if self.bracket => Framing::JsonArray,
            _ if self.bracket => Framing::Sse,
            // The bytes of a BOM decide nothing either.
            0xEF | 0xBB | 0xBF => return None,
            b'<' => return Some(BodyKind::Page),
            0x1F => return Some(BodyKind::Compressed),
            b'[' => {
                self.bracket = true;
                return None;
            }
            b'{' if usual == Framing::AwsEventStream => Framing::Sse,
            // The fields of server-sent events begin so; the length of a frame does so from 970 MB up.
            b':' | b'd' | b'e' | b'i' | b'r' => Framing::Sse,
            _ => usual,
        };
        Some(BodyKind::Framed(framing))
    }

    /// The bytes that were looked at before those that decided.
    pub fn into_seen(self) -> Vec<u8> {
        self.seen
    }
}
