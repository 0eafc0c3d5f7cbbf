//! The value of a short decimal, exactly rounded, without looking at a byte twice.
//!
//! In: JSON bytes and where a number begins.  Out: its value and where it ends, or nothing: numbers that are long, large
//! or wrong are left to the standard library.  What is answered is what it would answer.

use super::tokens::{ZEROS, leading_digits, word};

/// Digits that fit into 64 bits.
const MAX_DIGITS: usize = 19;

const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Powers of five that fit into 64 bits.
const FIVES: [u64; 28] = {
    let mut fives = [1; 28];
    let mut rest = fives.as_mut_slice();
    let mut power: u64 = 1;
    while let [first, others @ ..] = rest {
        *first = power;
        power = power.wrapping_mul(5);
        rest = others;
    }
    fives
};

/// The value of the number that begins at `at`, and where it ends.
#[inline]
pub(super) fn decimal(bytes: &[u8], at: usize) -> Option<(f64, usize)> {
    let negative = bytes.get(at) == Some(&b'-');
    let start = at + usize::from(negative);
    // Nearly always one digit stands before the point.
    let (whole, point) = match bytes.get(start..).and_then(|rest| rest.first_chunk()) {
        Some([digit @ b'0'..=b'9', b'.']) => (u64::from(digit - b'0'), start + 1),
        _ => digits(bytes, start, 0),
    };
    let zero = bytes.get(start) == Some(&b'0');
    if point == start || (zero && point > start + 1) {
        return None;
    }
    let (mut mantissa, mut end) = (whole, point);
    if bytes.get(point) == Some(&b'.') {
        (mantissa, end) = digits(bytes, point + 1, whole);
        if end == point + 1 {
            return None;
        }
    }
    let fraction = end.saturating_sub(point + 1);
    if fraction + if zero { 0 } else { point - start } > MAX_DIGITS {
        return None;
    }
    let mut scale = fraction;
    if let Some(b'e' | b'E') = bytes.get(end) {
        if bytes.get(end + 1) != Some(&b'-') {
            return None;
        }
        let (exponent, behind) = digits(bytes, end + 2, 0);
        if !(1..=2).contains(&(behind - end - 2)) {
            return None;
        }
        scale += usize::try_from(exponent).ok()?;
        end = behind;
    }
    let value = divided(mantissa, scale)?;
    Some((if negative { -value } else { value }, end))
}

/// Appends the digits that begin at `at` to a value, which wraps around beyond 64 bits; and where they end.
#[inline]
fn digits(bytes: &[u8], mut at: usize, mut value: u64) -> (u64, usize) {
    const POWERS: [u64; 9] =
        [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
    loop {
        let word = word(bytes, at) ^ ZEROS;
        let count = leading_digits(word);
        let Some(power) = POWERS.get(count).filter(|_| count > 0) else { return (value, at) };
        value = value.wrapping_mul(*power).wrapping_add(joined(word << (64 - 8 * count)));
        at += count;
        if count < 8 {
            return (value, at);
        }
    }
}

/// The value of eight digits, the first one lowest: pairs, then fours, then all.
#[inline]
fn joined(word: u64) -> u64 {
    const MASK: u64 = 0x0000_00FF_0000_00FF;
    let pairs = word.wrapping_mul(10).wrapping_add(word >> 8);
    let first = (pairs & MASK).wrapping_mul(100 + (1_000_000 << 32));
    let second = (pairs >> 16 & MASK).wrapping_mul(1 + (10_000 << 32));
    first.wrapping_add(second) >> 32
}

/// `mantissa` divided by that power of ten, rounded once.
#[inline]
#[expect(
    clippy::cast_precision_loss,
    reason = "an integer below 2^53 is exact, of another the cast rounds to even, as it should"
)]
fn divided(mantissa: u64, scale: usize) -> Option<f64> {
    if mantissa < 1 << 53
        && let Some(ten) = TENS.get(scale)
    {
        return Some(mantissa as f64 / ten);
    }
    // Divided by the power of five with bits to spare; what is left over only matters by being there, and the power of
    // two moves the point.
    let five = u128::from(*FIVES.get(scale)?);
    let unused = mantissa.leading_zeros();
    let wide = u128::from(mantissa).checked_shl(64 + unused)?;
    let quotient = wide / five;
    let surplus = 64_u32.saturating_sub(quotient.leading_zeros());
    let top = quotient.wrapping_shr(surplus);
    let inexact = quotient.wrapping_mul(five) != wide || top.wrapping_shl(surplus) != quotient;
    let rounded = (u64::try_from(top).ok()? | u64::from(inexact)) as f64;
    let power = 1_023 + u64::from(surplus) - u64::from(64 + unused) - u64::try_from(scale).ok()?;
    Some(rounded * f64::from_bits(power << 52))
}
