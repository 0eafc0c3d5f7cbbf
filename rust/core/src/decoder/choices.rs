//! `Choices`: bytes of one response body in any chunking → the deltas of every answer in it.
//!
//! In: the bytes of a body whose request asked for several answers (`n > 1`).  Out: one lawful stream of deltas for each.
//!
//! Laws:
//! - The deltas of an answer are those of a [`Decoder`] that follows it alone, in every chunking.
//! - An answer appears at the first event that holds it.  It has from then on the deltas that came before, such as `start`.
//! - A body without any answer has answer 0, with its error; so has every body of a dialect without several answers.
//! - Bytes are framed once, and each event is read once.
//!
//! The functions that decode are `inline`, so that they are compiled in the crate that also decodes into one [`DeltaBatch`].
//! Otherwise both crates would have their own copy of each dialect, about 300 KB of code.

use std::collections::BTreeMap;

use super::answers::Pending;
use super::body::Decoder;
use super::core::Core;
use super::options::Options;
use crate::contract::{DeltaBatch, Failure};
use crate::framing::Frame;
use crate::provider_error::Response;

/// Bytes in any chunking → deltas of every answer.
///
/// The number of answers is bounded by [`Limits::choices`](crate::limits::Limits::choices).
#[derive(Clone, Debug, PartialEq)]
pub struct Choices(Decoder);

impl Choices {
    /// Build a decoder of all answers; `None` if the dialect of the options is unknown.  The answer of the options is
    /// ignored.
    pub fn new(options: Options) -> Option<Self> {
        // An event of all answers is read in another way than that of one.
        Decoder::with_core(Options { shapes: None, ..options }, Core::of_all).map(Self)
    }

    /// Return the options of this decoder.
    pub fn options(&self) -> Options {
        self.0.options()
    }

    /// Set the status and the headers of the response.  Return false, without an effect, after the first byte.
    pub fn set_response(&mut self, response: Response) -> bool {
        self.0.set_response(response)
    }

    /// Return the dialect, as [`Decoder::dialect`] does.
    pub fn dialect(&self) -> &'static str {
        self.0.dialect()
    }

    /// Return the dialects that fit a body which does not tell its own, as [`Decoder::undecidable`] does.
    pub fn undecidable(&self) -> Option<&[&'static str]> {
        self.0.undecidable()
    }

    /// Take the dialect of a body that does not tell it, as [`Decoder::decide`] does.
    pub fn decide(&mut self, dialect: &str) {
        self.0.decide_to(dialect, &mut Pending);
    }

    /// Return true if no delta of any answer can follow.
    pub fn finished(&self) -> bool {
        self.0.finished()
    }

    /// Return the numbers of the answers so far, lowest first.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.0.core().answers().numbers()
    }

    /// Decode the next bytes of the body, in any chunking.  [`Self::take`] returns their deltas.
    ///
    /// The cost is linear in the number of bytes, and for each event in the number of answers.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8]) {
        self.0.feed_to(bytes, &mut Pending);
        self.0.core_mut().answers_mut().settle_at_end();
    }

    /// Decode an event that was framed elsewhere, as [`Decoder::feed_frame`] does.
    #[inline]
    pub fn feed_frame(&mut self, frame: Frame<'_>) {
        self.0.feed_frame_to(frame, &mut Pending);
        self.0.core_mut().answers_mut().settle_at_end();
    }

    /// Take the end of the body.  Afterwards every answer has its terminal.
    #[inline]
    pub fn close(&mut self) {
        self.0.close_to(&mut Pending);
        self.0.core_mut().answers_mut().settle_at_end();
    }

    /// End every answer for an external reason, as [`Decoder::fail`] does.
    #[inline]
    pub fn fail(&mut self, failure: &Failure<Box<str>>) {
        self.0.fail_to(failure, &mut Pending);
        self.0.core_mut().answers_mut().settle_at_end();
    }

    /// Take the deltas since the last call, by the number of the answer.  Answers without new deltas are left out.
    pub fn take(&mut self) -> BTreeMap<u64, DeltaBatch> {
        self.0.core_mut().answers_mut().take()
    }
}
