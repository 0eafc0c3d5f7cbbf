//! Is this a stream at all?  Told from the first byte that is no white space.
//!
//! An HTML page and a compressed body are named for what they are; everything else goes to the framer, which hands bare
//! JSON over as stray lines (so that a JSON error body, pretty-printed or not, needs no mode of its own).

/// Bytes of a page that are kept as the error's detail.
pub const PAGE_BYTES: usize = 512;

/// What the body turned out to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sniff {
    /// Only white space so far.
    #[default]
    Undecided,
    /// Events or JSON: the framer's work.
    Stream,
    /// An HTML or XML page, its first bytes kept.
    Page(Vec<u8>),
    /// gzip: nobody undid the content encoding.
    Compressed,
}

impl Sniff {
    /// Looks at the next bytes.
    pub fn look(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if *self == Self::Undecided {
            let at = bytes.iter().position(|byte| {
                // The bytes of a BOM decide nothing either.
                !byte.is_ascii_whitespace() && !matches!(byte, 0xEF | 0xBB | 0xBF)
            });
            rest = at.and_then(|at| bytes.get(at..)).unwrap_or(&[]);
            match rest.first() {
                None => {}
                Some(b'<') => *self = Self::Page(Vec::new()),
                Some(0x1F) => *self = Self::Compressed,
                Some(_) => *self = Self::Stream,
            }
        }
        if let Self::Page(kept) = self {
            let room = PAGE_BYTES.saturating_sub(kept.len());
            kept.extend(rest.iter().take(room));
        }
    }
}
