//! `Writer`: the words of one target.

use std::fmt::Debug;

use super::draft::Draft;
use super::out::Form;
use super::parts::{Call, Extras, TextPart, WholePart};
use super::run::{RunContent, RunEnd, RunResult, WrittenCall};
use crate::contract::{ErrorCode, Failure, FinishReason};
use crate::fold::{MessageAssembler, Terminal};

/// Parts that the grammar of a target allows to be open at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One part.
    Serial,
    /// One call; texts may come at any time.
    SerialCalls,
    /// Any number of parts, each under a key.
    Keyed,
}

/// Normal end of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ending<'a> {
    /// Reason; `ToolCalls` only if a whole call was written.
    pub reason: FinishReason,
    /// The answer has calls, whole or not.
    pub has_calls: bool,
    /// Reason as the source wrote it.
    pub raw: Option<&'a str>,
    /// JSON object of facts without a member in the contract, under the source's names.
    pub details: Option<&'a str>,
}

impl<'a> Ending<'a> {
    /// Return the end of a folded message of which `whole_calls` whole calls are written.
    pub fn of(message: &'a MessageAssembler, whole_calls: usize) -> Self {
        let (reason, raw) = match message.terminal() {
            Some(Terminal::Done { finish_reason, raw_finish_reason }) => {
                (*finish_reason, raw_finish_reason.as_deref())
            }
            _ => (FinishReason::Stop, None),
        };
        let has_calls = message.tool_calls().next().is_some();
        let ending = Self { reason, raw, has_calls, details: message.details() };
        ending.without_calls(whole_calls == 0)
    }

    /// Return the end of a message without whole calls, whose reason cannot be its calls.
    #[must_use]
    pub fn without_calls(self, no_calls: bool) -> Self {
        match self.reason {
            FinishReason::ToolCalls if no_calls => Self { reason: FinishReason::Stop, ..self },
            _ => self,
        }
    }

    /// Return true if the answer has calls that its end forbids to run.
    pub fn forbids_calls(&self) -> bool {
        self.has_calls && self.reason.forbids_calls().is_some()
    }

    /// Return the text of the failure, if this end is a failure: an error as the reason with `error_fails`, or an empty answer
    /// without a reason of the contract.
    pub fn failure_text(&self, error_fails: bool, is_empty: bool) -> Option<String> {
        let fails = (error_fails && self.reason == FinishReason::Error)
            || (is_empty && self.reason == FinishReason::Other);
        fails.then(|| match self.raw {
            Some(raw) => format!("the model ended with the reason {raw:?}"),
            None => "the model ended without an answer and without a reason".to_owned(),
        })
    }

    /// Return the failure that this end is, with its text.
    pub fn failure<'b>(&self, text: &'b str) -> Failure<&'b str>
    where
        'a: 'b,
    {
        Failure { provider_code: self.raw, ..Failure::new(ErrorCode::ServerError, text) }
    }
}

/// The folded answers of one response, with their numbers.
pub type Answers<'a> = [(u64, &'a MessageAssembler)];

/// Writer of one target.
///
/// The [`super::Sequencer`] calls it in the order that [`Writer::ORDER`] allows.  A part of text is opened by its first text, and
/// [`Writer::bare`] gets one that never had any.  All strings inside of parts are valid; JSON of the contract may hold white
/// space, which [`super::write_compact`] drops.
pub trait Writer: Clone + Debug + Default + PartialEq {
    /// Name of the target.
    const NAME: &'static str;
    /// Dialect whose provider state and provider parts the target understands; "" for none.
    const DIALECT: &'static str;
    /// Framing.
    const FORM: Form;
    /// Parts that may be open at once.
    const ORDER: Order;
    /// The target takes whole calls only.
    const WHOLE_CALLS: bool = false;
    /// The target has no word for an end that forbids calls to run, so whole calls wait for the end.
    const CALLS_AT_END: bool = false;
    /// A call opens with its first arguments or at its end, so that a call that was cut before is not written.
    const LAZY_CALLS: bool = true;
    /// The target has a form of its own for calls with free text.
    const FREE_TEXT: bool = false;
    /// The target has several answers in one response, each with a number.
    const HAS_ANSWERS: bool = false;
    /// The target has the events of a run, and the methods from [`Writer::open_step`] to [`Writer::end_run`].
    const HAS_RUNS: bool = false;
    /// The target can take an answer back that broke off.
    const RETRACTS: bool = false;
    /// A normal end with a failure reason is written as a failure.
    const ERROR_REASON_FAILS: bool = true;

    /// Write what precedes all content.
    fn head(&mut self, draft: &mut Draft);

    /// Open a part of text.
    fn open_text(&mut self, draft: &mut Draft, part: &TextPart);

    /// Write text of the open part.  The text is empty only if it has extras.
    fn text(&mut self, draft: &mut Draft, part: &TextPart, text: &str, extras: Extras<'_>);

    /// Close a part of text.
    fn close_text(&mut self, draft: &mut Draft, part: &TextPart);

    /// Write a part that ended without a text: withheld or signed thinking.
    fn bare(&mut self, draft: &mut Draft, part: &TextPart);

    /// Write attributes of a part that was closed before.
    fn late(&mut self, draft: &mut Draft, part: &TextPart, extras: Extras<'_>);

    /// Open a call.
    fn open_call(&mut self, draft: &mut Draft, call: &Call);

    /// Write arguments of the open call.
    fn args(&mut self, draft: &mut Draft, call: &Call, text: &str);

    /// Close a call; true if it is one that the client may run.
    fn close_call(&mut self, draft: &mut Draft, call: &Call) -> bool;

    /// Write a whole call; false if it cannot be written.  For targets with [`Writer::WHOLE_CALLS`].
    fn whole_call(&mut self, draft: &mut Draft, call: &Call) -> bool;

    /// Write a part that came in one delta.
    fn whole_part(&mut self, draft: &mut Draft, part: &WholePart);

    /// Write a piece of audio, whose whole part follows.  A target without audio waits for the part.
    fn audio(&mut self, _: &mut Draft, _data: &str) {}

    /// Write the terminal of a normal end.
    fn finish(&mut self, draft: &mut Draft, ending: &Ending<'_>);

    /// Write the failure as the last event.  Open parts stay open.
    fn fail(&mut self, draft: &mut Draft, failure: &Failure<&str>);

    /// Write what ends a stream of several answers, behind the terminals of all of them.
    fn end_answers(&mut self, draft: &mut Draft) {
        self.end(draft);
    }

    /// Write what closes the framing after an event that was the whole answer.
    fn end(&mut self, _: &mut Draft) {}

    /// Write what precedes the content of an answer of a run.  A retried answer goes on in its step.
    fn open_step(&mut self, _: &mut Draft) {}

    /// Write what follows an answer of a run and its results.
    fn close_step(&mut self, _: &mut Draft) {}

    /// Write that the answer broke off and is asked for again, as a whole or from where it broke off.
    fn retry(&mut self, _: &mut Draft, _continues: bool, _facts: &str) {}

    /// Write an event of a run that has no word in the protocol.
    fn notice(&mut self, _: &mut Draft, _name: &str, _facts: &str) {}

    /// Write that a call waits for a person.
    fn approval(&mut self, _: &mut Draft, _: &WrittenCall<'_>) {}

    /// Write a JSON value that a running call tells.
    fn progress(&mut self, _: &mut Draft, _: &WrittenCall<'_>, _value: &str) {}

    /// Write the result of a call.
    fn result(&mut self, _: &mut Draft, _: &WrittenCall<'_>, _: &RunResult) {}

    /// Write a message of the user that was delivered to the run.
    fn input(&mut self, _: &mut Draft, _: &RunContent) {}

    /// Write the end of a run, behind the last step.
    fn end_run(&mut self, _: &mut Draft, _: &RunEnd) {}

    /// Write something that keeps the connection alive, between two events.
    fn keep_alive(&mut self, draft: &mut Draft);

    /// Return the HTTP status and the JSON body of a failure before all content.
    fn refusal(draft: &mut Draft, failure: &Failure<&str>) -> (u16, String);

    /// Return the JSON of a whole body; `None` if the target has none.
    fn body(draft: &mut Draft, message: &MessageAssembler) -> Option<String>;

    /// Return the JSON of a whole body with several answers and their numbers; `None` without [`Writer::HAS_ANSWERS`].
    fn body_of_answers(_: &mut Draft, _: &Answers<'_>) -> Option<String> {
        None
    }
}
