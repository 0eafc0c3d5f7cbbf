//! Fast parsing of short decimal numbers with exact rounding; each byte is read once.
//!
//! In: JSON bytes that begin with a number.  Out: its value and length, or `None`.
//!
//! Laws: a returned value equals that of the standard library.  Long, large and malformed numbers give `None`; the caller
//! parses them with the standard library.

use super::tokens::{above_nine, first_word, joined};

/// Number of digits at which a count is rejected, because it may exceed 64 bits.
const MAX_COUNT_DIGITS: usize = 19;

/// Number of decimal digits that always fit into 64 bits.
const MAX_DIGITS: usize = 19;

const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Reciprocal of a power of five: its highest 64 bits, truncated.
#[derive(Clone, Copy)]
struct Reciprocal {
    bits: u64,
    /// Biased exponent of the float that scales the product.  The product was shifted right by two bits before.
    exponent: u64,
}

/// Reciprocals of the powers of five below 2^64.
///
/// The entry of 5^0 is truncated as well, so that the error bound is the same for all entries.
const RECIPROCALS: [Reciprocal; 28] = {
    let mut reciprocals = [Reciprocal { bits: u64::MAX, exponent: 1_023 + 2 }; 28];
    let [_, rest @ ..] = &mut reciprocals;
    let mut rest = rest.as_mut_slice();
    let (mut five, mut scale) = (5_u64, 1);
    while let [first, others @ ..] = rest {
        let digits = five.ilog2() + 1;
        *first = Reciprocal {
            #[expect(clippy::cast_possible_truncation, reason = "a power of five is none of two")]
            bits: ((1_u128 << (63 + digits)) / five as u128) as u64,
            exponent: 1_023 + 3 - digits as u64 - scale,
        };
        five = five.wrapping_mul(5);
        scale += 1;
        rest = others;
    }
    reciprocals
};

/// Return the value and the length of the number at the start of `text`.
#[expect(clippy::inline_always, reason = "what is usual needs no call")]
#[inline(always)]
pub(super) fn decimal(text: &[u8]) -> Option<(f64, usize)> {
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    // Most numbers have one digit before the point and no exponent.
    if let [digit @ b'0'..=b'9', b'.', fraction @ ..] = unsigned {
        let (mantissa, rest) = digits(fraction, u64::from(digit.wrapping_sub(b'0')));
        let scale = fraction.len().wrapping_sub(rest.len());
        if (1..MAX_DIGITS).contains(&scale) && !matches!(rest, [b'e' | b'E', ..]) {
            return Some(signed(text, rest, divided(mantissa, scale)?));
        }
    }
    any_decimal(text, unsigned)
}

/// Return the value with the sign of `text`, and the length of `text` before `rest`.
#[inline]
fn signed(text: &[u8], rest: &[u8], value: f64) -> (f64, usize) {
    let value = if text.first() == Some(&b'-') { -value } else { value };
    (value, text.len().wrapping_sub(rest.len()))
}

#[inline(never)]
fn any_decimal(text: &[u8], unsigned: &[u8]) -> Option<(f64, usize)> {
    let (whole, mut rest) = digits(unsigned, 0);
    let zero = unsigned.first() == Some(&b'0');
    let before = unsigned.len().wrapping_sub(rest.len());
    if before == 0 || (zero && before > 1) {
        return None;
    }
    let (mut mantissa, mut scale) = (whole, 0);
    if let Some(fraction) = rest.strip_prefix(b".") {
        (mantissa, rest) = digits(fraction, whole);
        scale = fraction.len().wrapping_sub(rest.len());
        if scale == 0 {
            return None;
        }
    }
    if scale > MAX_DIGITS.checked_sub(if zero { 0 } else { before })? {
        return None;
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = exponent.strip_prefix(b"-")?;
        let (value, behind) = digits(exponent, 0);
        if !(1..=2).contains(&(exponent.len().wrapping_sub(behind.len()))) {
            return None;
        }
        scale = scale.wrapping_add(usize::try_from(value).ok()?);
        rest = behind;
    }
    Some(signed(text, rest, divided(mantissa, scale)?))
}

/// Return the count at the start of `text` and the number of its digits; `None` without a digit and from 19 digits on.
#[inline]
pub(crate) fn leading_count(text: &[u8]) -> Option<(u64, usize)> {
    // One digit a step is faster here than eight at once, because most counts have few digits.
    let (mut value, mut digits) = (0_u64, 0);
    for byte in text.iter().take(MAX_COUNT_DIGITS) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        digits += 1;
    }
    (1..MAX_COUNT_DIGITS).contains(&digits).then_some((value, digits))
}

/// Append the digits at the start of `text` to a value, and return the value and the rest of the text.
///
/// The value wraps around beyond 64 bits.
#[inline]
fn digits(mut text: &[u8], mut value: u64) -> (u64, &[u8]) {
    const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
    loop {
        let (word, behind) = first_word(text);
        let others = above_nine(word);
        if others == 0 {
            value = value.wrapping_mul(100_000_000).wrapping_add(joined(word));
            text = behind;
            continue;
        }
        // Without a branch: the number of remaining digits is unpredictable.
        let bits = others.trailing_zeros();
        let left = word.wrapping_shl(8).wrapping_shl(63_u32.wrapping_sub(bits));
        let count = (bits / 8) as usize;
        let power = POWERS.get(count).copied().unwrap_or(1);
        value = value.wrapping_mul(power).wrapping_add(joined(left));
        return (value, text.get(count..).unwrap_or_default());
    }
}

/// Return `mantissa` divided by 10^`scale`, rounded once.
///
/// The function multiplies with the reciprocal of the power of five.  The reciprocal is truncated, so the high half of the
/// product is exact or one too small, and the discarded part is never zero.  Rounding is therefore certain unless the low
/// bits of the high half are all ones.  That is so for short decimals and for one in 512 others.  An exact division decides
/// them.
#[inline]
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    reason = "an integer below 2^53 is exact, of one below 2^63 the cast rounds to even, as it should"
)]
fn divided(mantissa: u64, scale: usize) -> Option<f64> {
    const DOUBT: u64 = 0x1FF;
    let Reciprocal { bits, exponent } = *RECIPROCALS.get(scale)?;
    let unused = (mantissa | 1).leading_zeros();
    let wide = u128::from(mantissa.wrapping_shl(unused)).wrapping_mul(u128::from(bits));
    let high = (wide >> 64) as u64;
    if high & DOUBT != DOUBT && mantissa != 0 {
        let rounded = (high >> 2 | 1) as i64 as f64;
        return Some(rounded * f64::from_bits(exponent.wrapping_sub(u64::from(unused)) << 52));
    }
    if mantissa < 1 << 53 {
        return TENS.get(scale).map(|ten| mantissa as f64 / ten);
    }
    None
}
