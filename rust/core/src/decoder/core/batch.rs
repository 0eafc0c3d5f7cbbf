//! A body that is one line of a batch's result file.
//!
//! In: the first JSON value of a body.  Out: the deltas of the answer in it, with the id of its request among the details.
//!
//! Law: the line is held until the body ends, so that a file of several lines is an error and not its first answer.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Core, Event};
use crate::contract::{ErrorCode, Failure};
use crate::decoder::answers::Outputs;
use crate::dialect::batch::{self, BatchLine, Outcome};
use crate::json::Str;

/// Levels of a line around the body in it.
const LEVELS: usize = 2;

impl Core {
    /// Hold a value that is a line of a batch, and return true.
    #[inline]
    pub(super) fn hold_line(&mut self, json: &[u8]) -> bool {
        batch::may_be_line(json) && self.hold(json)
    }

    #[cold]
    fn hold(&mut self, json: &[u8]) -> bool {
        // Invalid UTF-8 is replaced when the line is read.
        let text = String::from_utf8_lossy(json);
        let line = BatchLine::read(&text, self.line_depth());
        let is_line = line.is_some_and(|line| !line.is_cut);
        if is_line {
            self.line = Some(json.into());
        }
        is_line
    }

    fn line_depth(&self) -> usize {
        self.options.limits.depth.saturating_add(LEVELS)
    }

    /// End the stream because more follows after the line.
    #[cold]
    pub(super) fn refuse_lines(&mut self, out: &mut impl Outputs) {
        self.line = None;
        let message = "the body has several lines of a batch's result file: fold each alone, as \
                       fold_many(), arrow.fold() and `deltafold fold` do";
        self.error(out, &Failure::new(ErrorCode::ProtocolError, message.into()));
    }

    /// Read the line that was held, or the beginning of one, at the end of the body.
    pub(super) fn release_line(&mut self, out: &mut impl Outputs) {
        if let Some(line) = self.line.take() {
            self.read_line(&line, out);
        } else if self.stray.is_first && !self.stray.text.is_empty() {
            let text = String::from_utf8_lossy(&self.stray.text).into_owned();
            if let Some(line) = BatchLine::read(&text, self.line_depth()) {
                self.name_line(line.custom_id, out);
            }
        }
    }

    /// Record that the answer is one of a batch.
    fn name_line(&mut self, custom_id: Option<Str<'_>>, out: &mut impl Outputs) {
        self.join(out).1.each(|sink| {
            sink.text_detail("custom_id", custom_id);
            sink.processed_in_batch();
        });
    }

    #[cold]
    fn read_line(&mut self, json: &[u8], out: &mut impl Outputs) {
        let text = String::from_utf8_lossy(json);
        let Some(line) = BatchLine::read(&text, self.line_depth()) else { return };
        self.name_line(line.custom_id, out);
        if matches!(text, Cow::Owned(_)) {
            self.warn_replaced(out);
        }
        match line.outcome {
            Outcome::Answer(body) => {
                let event = Event::from_data(body.as_bytes());
                if let Err(error) = self.json(&event, out) {
                    let failure = self.broken_event(error, "the line of the batch");
                    self.error(out, &failure);
                }
            }
            Outcome::Refused { status, request_id, body } => {
                let response = &mut Arc::make_mut(&mut self.options).response;
                if status != 0 {
                    response.status = status;
                }
                if let Some(id) = request_id {
                    response.request_id = Some(id.text().into());
                }
                self.answers.set_options(&self.options);
                self.refused(body.as_bytes(), out);
            }
            Outcome::NotRun(word) => {
                let word = word.text();
                let code = match word.as_str() {
                    "canceled" => ErrorCode::Cancelled,
                    "expired" => ErrorCode::Timeout,
                    _ => ErrorCode::ServerError,
                };
                let message = format!("the request of the batch did not run: {word}");
                let mut failure = Failure::new(code, message.into_boxed_str());
                failure.provider_code = Some(word.into());
                self.error(out, &failure);
            }
            Outcome::Missing => {
                let message = "the line of the batch has neither an answer nor an error";
                self.error(out, &Failure::new(ErrorCode::ProtocolError, message.into()));
            }
        }
    }
}
