//! Signature of a JSON object: a hash of its first member names and of its structure up to them.
//!
//! In: the JSON of a frame.  Out: the signature.
//!
//! Laws: objects that differ in nothing but strings and numbers have the same signature.  Nothing is validated: a signature
//! finds candidates, which are compared in full.

/// Number of names that count: enough to tell vendors apart, which order and choose members in their own way.
const NAMES: usize = 8;

/// Multiplier of the hash; odd, with bits spread evenly (2^64 divided by the golden ratio).
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Return the signature of the first object, which is never zero; `None` if the object is cut before it, or escapes a quote.
pub(super) fn signature(bytes: &[u8]) -> Option<u64> {
    let start = memchr::memchr(b'{', bytes)?;
    let mut rest = bytes.get(start..)?;
    let (mut hash, mut names, mut depth) = (SPREAD, 0_usize, 0_usize);
    while let [byte, behind @ ..] = rest {
        rest = behind;
        match byte {
            b'"' => {
                let end = memchr::memchr(b'"', rest)?;
                let (text, behind) = rest.split_at_checked(end)?;
                if text.last() == Some(&b'\\') {
                    return None;
                }
                rest = behind.get(1..)?;
                if rest.first() == Some(&b':') {
                    let first = text.first().copied().unwrap_or(0);
                    let last = text.last().copied().unwrap_or(0);
                    let name = (text.len() as u64) << 16 | u64::from(first) << 8 | u64::from(last);
                    hash = (hash ^ name).wrapping_mul(SPREAD).rotate_left(23);
                    names += 1;
                    if names == NAMES {
                        break;
                    }
                }
            }
            b'{' | b'[' => {
                depth += 1;
                hash = hash.rotate_left(5);
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                hash = hash.rotate_left(11);
                if depth == 0 {
                    break;
                }
            }
            _ => {}
        }
    }
    (names > 0).then_some(hash | 1)
}
