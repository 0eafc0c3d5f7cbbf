//! Waits before another attempt, in the forms that providers write.
//!
//! In: header values, members of an error body, an error message.  Out: seconds.
//!
//! Laws: a value that is negative, not finite or unreadable is ignored.  A wait beyond one day becomes one day.
//! Source: docs/protocols/decoding.md#retry-after; the rate-limit headers of the API references of OpenAI
//! and Anthropic (read 2026-11).

use time::OffsetDateTime;
use time::format_description::well_known::{Rfc2822, Rfc3339};

/// Longest accepted wait in seconds.  No limit resets later, and a wrong clock must not block a caller for years.
pub const MAX_WAIT_SECONDS: f64 = 86_400.0;

/// Units of a duration, longest name first, so that `ms` is not read as `m`.
const UNITS: [(&str, f64); 4] = [("ms", 0.001), ("h", 3_600.0), ("m", 60.0), ("s", 1.0)];

/// Phrases of a message that precede a duration.
const PHRASES: [&str; 2] = ["try again in ", "retry in "];

/// Accept a finite wait of at least 0 seconds and limit it to one day.
pub(super) fn accepted(seconds: f64) -> Option<f64> {
    (seconds.is_finite() && seconds >= 0.0).then_some(seconds.min(MAX_WAIT_SECONDS))
}

/// Read a decimal number.  Rejects `inf` and `nan`, which Rust would accept.
pub(super) fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

/// Read the header `retry-after`: seconds, or an HTTP date after `now` (seconds since 1970).
pub(super) fn retry_after(text: &str, now: Option<f64>) -> Option<f64> {
    let text = text.trim();
    number(text)
        .or_else(|| until(OffsetDateTime::parse(text, &Rfc2822).ok()?, now))
        .and_then(accepted)
}

/// Return the seconds from `now` until a rate limit resets: a duration (`6m0s`, `120ms`, `30`) or an RFC 3339 instant.
///
/// An instant of the past is 0.  The result is not limited to one day.
///
/// ```
/// use deltafold::provider_error::seconds_until_reset;
/// assert_eq!(seconds_until_reset("6m0s", None), Some(360.0));
/// assert_eq!(seconds_until_reset("1970-01-01T00:01:00Z", Some(15.0)), Some(45.0));
/// ```
pub fn seconds_until_reset(text: &str, now: Option<f64>) -> Option<f64> {
    until_reset(text, now).map(|wait| wait.max(0.0))
}

/// Return the same as [`seconds_until_reset`], but a negative number for an instant in the past.
pub(super) fn until_reset(text: &str, now: Option<f64>) -> Option<f64> {
    let text = text.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return number(text);
    }
    duration(text).or_else(|| until(OffsetDateTime::parse(text, &Rfc3339).ok()?, now))
}

/// Read `1s`, `6m0s`, `12ms`, `1h2m3.5s`, with or without spaces between number and unit.
pub(super) fn duration(text: &str) -> Option<f64> {
    let (seconds, rest) = leading_duration(text)?;
    rest.trim().is_empty().then_some(seconds)
}

/// Read `try again in 1m2.5s` anywhere in a message.
pub(super) fn in_words(message: &str) -> Option<f64> {
    let message = message.to_ascii_lowercase();
    let after = |phrase| message.find(phrase).and_then(|at| message.get(at + str::len(phrase)..));
    let (seconds, _) = PHRASES.into_iter().find_map(after).and_then(leading_duration)?;
    accepted(seconds)
}

/// Return the duration at the start of `text`, and the text after it.
fn leading_duration(text: &str) -> Option<(f64, &str)> {
    let mut rest = text;
    let mut seconds = None;
    loop {
        let digits = rest.trim_start();
        let end =
            digits.find(|it: char| !(it.is_ascii_digit() || it == '.')).unwrap_or(digits.len());
        let (Some(count), Some(unit)) = (digits.get(..end), digits.get(end..)) else { break };
        let Some(count) = number(count) else { break };
        let unit = unit.strip_prefix(' ').unwrap_or(unit);
        let known = UNITS.into_iter().find_map(|(name, length)| {
            let after = strip_prefix_ignoring_case(unit, name)?;
            // The unit must end here: "5 minutes" and "2 mil" are not units of this table.
            (!after.starts_with(|next: char| next.is_ascii_alphabetic())).then_some((length, after))
        });
        let Some((length, after)) = known else { break };
        seconds = Some(seconds.unwrap_or(0.0) + count * length);
        rest = after;
    }
    seconds.map(|seconds| (seconds, rest))
}

fn strip_prefix_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a calendar ends in the year 9999: 2^53 seconds are more"
)]
fn until(instant: OffsetDateTime, now: Option<f64>) -> Option<f64> {
    let seconds = instant.unix_timestamp() as f64 + f64::from(instant.millisecond()) / 1_000.0;
    Some(seconds - now?)
}
