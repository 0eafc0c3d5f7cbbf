//! Bare JSON: values outside of events, as those of a whole body.
//!
//! In: lines without a field.  Out: each value that is whole, read as the data of an event.

use super::collected::Collected;
use super::{Core, Event, Opening};
use crate::contract::{ErrorCode, Failure};
use crate::decoder::answers::Outputs;
use crate::json::scan::Verdict;

impl Core {
    /// Read a line without a field.  Bare JSON begins with a bracket and may extend over several lines.
    pub(in crate::decoder) fn stray_line(
        &mut self,
        line: &[u8],
        offset: u64,
        record: bool,
        out: &mut impl Outputs,
    ) {
        let trimmed = line.trim_ascii_start();
        if self.stray.text.is_empty() {
            if !matches!(trimmed.first(), Some(b'{' | b'[')) {
                self.misspelt |=
                    line.get(..5).is_some_and(|name| name.eq_ignore_ascii_case(b"data:"));
                if !trimmed.is_empty() && (record || memchr::memchr(b':', line).is_none()) {
                    self.noise(offset, out);
                }
                return;
            }
            if self.line.is_some() {
                return self.refuse_lines(out);
            }
            self.stray.offset = offset;
            self.stray.is_first = !record && !self.bare && matches!(self.opening, Opening::Nothing);
            self.bare |= !record;
        }
        let bound = self.options.limits.event_bytes;
        if self.stray.text.len().saturating_add(line.len()) > bound {
            let message = format!("limit reached: event_bytes ({bound})");
            return self.error(out, &Failure::new(ErrorCode::ProtocolError, message.into()));
        }
        // Nearly always this line is the whole body.  Reading it at once is the cheapest test.
        if self.stray.text.is_empty()
            && trimmed.first() == Some(&b'{')
            && ((self.stray.is_first && self.hold_line(trimmed))
                || self.apply_template(b"", trimmed, b"", out)
                || self.json(&Event::from_data(trimmed), out).is_ok())
        {
            return;
        }
        if !self.stray.text.is_empty() {
            // The line break is added between two lines and not after each, because the last line may be cut inside a
            // string.
            self.gather(b"\n", record, out);
        }
        self.gather(line, record, out);
        if self.stray.text.is_empty() {
            self.stray = Collected::default();
        }
    }

    /// Collect more bare JSON.  A complete value is read at once; another value may follow it without a separator.
    fn gather(&mut self, bytes: &[u8], record: bool, out: &mut impl Outputs) {
        let mut rest = bytes;
        while !rest.is_empty() && !self.has_ended() {
            if self.line.is_some() && !rest.trim_ascii().is_empty() {
                return self.refuse_lines(out);
            }
            let end = self.stray.scan.feed_value(rest);
            let (value, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
            self.stray.text.extend_from_slice(value);
            rest = after;
            let verdict = self.stray.scan.verdict();
            match verdict {
                Verdict::Open => {}
                Verdict::Empty => self.stray.text.clear(),
                Verdict::Complete | Verdict::Wrong => {
                    let stray = std::mem::take(&mut self.stray);
                    self.stray.offset = stray.offset;
                    if verdict == Verdict::Complete && stray.is_first && self.hold_line(&stray.text)
                    {
                        continue;
                    }
                    if verdict == Verdict::Complete || record {
                        self.event(
                            Event { offset: stray.offset, ..Event::from_data(&stray.text) },
                            out,
                        );
                    } else {
                        self.noise(stray.offset, out);
                    }
                }
            }
        }
    }
}
