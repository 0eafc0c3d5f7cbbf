//! Base64 with the standard alphabet, read padded or not.
//!
//! Source: RFC 4648, section 4.

/// Marker of a byte outside the alphabet.
const NONE: u8 = 0xFF;

const VALUES: [u8; 256] = values();

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, which refuses what is out of bounds"
)]
const fn values() -> [u8; 256] {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut values = [NONE; 256];
    let mut value = 0;
    while value < 64 {
        values[alphabet[value as usize] as usize] = value;
        value += 1;
    }
    values
}

fn value(byte: u8) -> u8 {
    VALUES.get(usize::from(byte)).copied().unwrap_or(NONE)
}

/// Append the bytes that `text` encodes.
///
/// Returns `None` for text that is not base64.  In that case `out` may hold some of its bytes, which the caller must drop.
pub fn decode_into(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let text = match text {
        [rest @ .., b'=', b'='] | [rest @ .., b'='] if text.len().is_multiple_of(4) => rest,
        _ => text,
    };
    let mut groups = text.chunks_exact(4);
    for group in &mut groups {
        let &[a, b, c, d] = group else { return None };
        let (a, b, c, d) = (value(a), value(b), value(c), value(d));
        if (a | b | c | d) & 0xC0 != 0 {
            return None;
        }
        out.extend_from_slice(&[(a << 2) | (b >> 4), (b << 4) | (c >> 2), (c << 6) | d]);
    }
    match *groups.remainder() {
        [] => {}
        [a, b] => {
            let (a, b) = (value(a), value(b));
            if (a | b) & 0xC0 != 0 {
                return None;
            }
            out.push((a << 2) | (b >> 4));
        }
        [a, b, c] => {
            let (a, b, c) = (value(a), value(b), value(c));
            if (a | b | c) & 0xC0 != 0 {
                return None;
            }
            out.extend_from_slice(&[(a << 2) | (b >> 4), (b << 4) | (c >> 2)]);
        }
        _ => return None,
    }
    Some(())
}

/// Append the padded base64 of `bytes`.
pub fn encode_into(bytes: &[u8], out: &mut String) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for place in 0..4 {
            let letter = ALPHABET.get(((bits >> (18 - 6 * place)) & 0x3F) as usize);
            let letter = letter.filter(|_| place <= group.len()).copied().unwrap_or(b'=');
            out.push(char::from(letter));
        }
    }
}
