//! `Digest`: length and 64-bit FNV-1a hash of a text.
//!
//! In: chunks of a text.  Out: a digest that recognises a repetition or a prefix of the text, in constant memory.

/// Digest of a text that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digest {
    length: usize,
    hash: u64,
}

impl Default for Digest {
    fn default() -> Self {
        Self { length: 0, hash: 0xCBF2_9CE4_8422_2325 }
    }
}

impl Digest {
    pub(crate) fn from_text(text: &str) -> Self {
        let mut digest = Self::default();
        digest.take(text);
        digest
    }

    pub(crate) fn take(&mut self, text: &str) {
        self.length = self.length.saturating_add(text.len());
        for byte in text.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }

    /// Return the hash of the text.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Return the suffix of `whole` after this text; `None` if `whole` does not begin with this text.
    pub(crate) fn rest_of<'a>(&self, whole: &'a str) -> Option<&'a str> {
        let (begun, rest) = whole.split_at_checked(self.length)?;
        (Self::from_text(begun) == *self).then_some(rest)
    }
}
