//! State of one tool call, and the rule which endings leave it incomplete.

use super::digest::Digest;
use crate::contract::{CallId, FinishReason, InputFormat, TextOnlyDelta, is_of_provider};
use crate::json::scan::{JsonScan, Verdict};
use crate::json::{Carry, Reader};

/// Handle of a tool call that a dialect opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallHandle(pub(super) usize);

/// The way in which the arguments of a call ended.
///
/// | ending | no argument text came | the text is one JSON value | the text ends inside a value |
/// |---|---|---|---|
/// | `Provider` | runnable with `{}` | runnable | incomplete |
/// | `EndMarker`, `Finish(Stop)`, `Finish(ToolCalls)` | runnable with `{}` | runnable | incomplete |
/// | `Finish` with any other reason, `Cut` | incomplete | runnable | incomplete |
/// | `Abandoned` | incomplete | incomplete | incomplete |
///
/// A held `{}` and free text (custom tools) are treated like no text, because neither shows that the call was whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// The provider closed the call.
    Provider,
    /// Finish reason of the message.
    Finish(FinishReason),
    /// The provider's end marker, without a finish reason before it.
    EndMarker,
    /// The stream failed or stopped.
    Cut,
    /// The message was abandoned, or the provider announced more arguments.
    Abandoned,
}

impl CallEnd {
    /// Return true if this ending means that the call is whole.
    pub fn says_done(self) -> bool {
        match self {
            Self::Provider | Self::EndMarker => true,
            Self::Finish(reason) => reason.says_done(),
            Self::Cut | Self::Abandoned => false,
        }
    }
}

/// The form in which the arguments of a call arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentForm {
    /// Chunks.  A chunk may repeat or replace others.
    Chunks,
    /// Chunks, which the protocol repeats as a whole at their end.  Chunks that cannot be JSON wait for the whole.
    Repeated,
    /// Text, or one value of a whole body.  No chunk repeats or replaces others.
    Verbatim,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) id: CallId,
    pub(super) given_id: bool,
    /// Number of its part, once it has started.
    pub(super) part: u32,
    pub(super) name: Option<String>,
    pub(super) stage: CallStage,
    pub(super) format: InputFormat,
    pub(super) scan: JsonScan,
    pub(super) said: Digest,
    pub(super) carry: Carry,
    /// Arguments that wait for a name, or that later arguments may replace; see [`Self::holds`].
    pub(super) pending: String,
    pub(super) sent: bool,
    /// The provider closed the call without arguments, and content followed it.
    pub(super) is_confirmed: bool,
    pub(super) form: ArgumentForm,
    pub(super) provider_state: Option<String>,
}

impl Call {
    /// Return the delta with more text of the arguments.
    #[inline]
    pub(super) fn more_args<'a>(&'a self, text: &'a str) -> TextOnlyDelta<'a> {
        TextOnlyDelta::Args { part: self.part, id: &self.id, text }
    }

    /// Return true if the caller may run the call.
    pub(super) fn is_for_caller(&self) -> bool {
        self.never_runs().is_none()
    }

    /// Return why the call never runs, if its name or id say so.
    pub(super) fn never_runs(&self) -> Option<&'static str> {
        let id = self.id.as_ref();
        if self.name.is_none() {
            Some("a tool call without a name does not run")
        } else if is_of_provider(id) {
            Some("a call of a tool that the provider ran itself does not run")
        } else {
            None
        }
    }

    /// Return true if the arguments are `{}` and nothing else.
    pub(super) fn is_empty_object(&self) -> bool {
        self.said == Digest::from_text("{}")
    }

    /// Return true if no text of the arguments came.
    pub(super) fn has_no_args(&self) -> bool {
        self.scan.verdict() == Verdict::Empty && self.pending.is_empty()
    }

    /// Return true if no arguments came, or `{}`.
    pub(super) fn is_blank(&self) -> bool {
        let is_open = self.stage != CallStage::Ended && self.format == InputFormat::Json;
        is_open && (self.scan.verdict() == Verdict::Empty || self.is_empty_object())
    }

    #[inline]
    pub(super) fn take(&mut self, text: &str) {
        self.scan.feed(text.as_bytes());
        self.said.take(text);
    }

    /// Replace held arguments by `text`.
    pub(super) fn take_instead(&mut self, text: &str) {
        self.scan = JsonScan::default();
        self.said = Digest::default();
        self.take(text);
    }

    /// Return true if later arguments may replace the pending ones: `{}`, or possible ciphertext.
    pub(super) fn holds(&self) -> bool {
        self.format == InputFormat::Json
            && (self.pending == "{}" || self.may_be_ciphertext(&self.pending))
    }

    /// Return true if the arguments may be ciphertext, if `text` begins them.
    ///
    /// GitHub Copilot streams ciphertext and repeats the arguments in plain text.  Ciphertext begins neither with white space
    /// nor like an object, an array or a string.  A number or a literal looks like ciphertext until its end.
    #[inline]
    pub(super) fn may_be_ciphertext(&self, text: &str) -> bool {
        self.form == ArgumentForm::Repeated
            && self.format == InputFormat::Json
            && !self.sent
            && text.starts_with(|first: char| {
                !matches!(first, '{' | '[' | '"' | ' ' | '\t' | '\n' | '\r')
            })
    }

    /// Return true if `plain` must wait for later arguments.  It may be a placeholder `{}` or ciphertext.
    #[inline]
    pub(super) fn must_wait(&self, plain: &str) -> bool {
        if self.sent || self.format != InputFormat::Json {
            return false;
        }
        if self.pending.is_empty() {
            let is_placeholder = self.form != ArgumentForm::Verbatim && plain == "{}";
            return is_placeholder || self.may_be_ciphertext(plain);
        }
        self.may_be_ciphertext(&self.pending)
    }

    /// Return true if `text` repeats the whole arguments, raw or encoded as a JSON string.
    ///
    /// Some gateways close a call with its whole arguments.
    #[inline]
    pub(super) fn repeats(&self, text: &str) -> bool {
        self.scan.verdict() == Verdict::Complete
            && self.form != ArgumentForm::Verbatim
            && self.format == InputFormat::Json
            && self.says_again(text)
    }

    fn says_again(&self, text: &str) -> bool {
        if Digest::from_text(text) == self.said {
            return true;
        }
        let mut reader = Reader::new(text, 1);
        let encoded = reader.string().and_then(|token| reader.end().map(|()| token.text()));
        encoded.is_ok_and(|encoded| Digest::from_text(&encoded) == self.said)
    }
}

/// The stage of a call: whether its start and its end were emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallStage {
    Waiting,
    Started,
    Ended,
}
