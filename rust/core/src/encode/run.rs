//! Run of an agent: its events beside the deltas of answers, and what the encoder remembers of them.
//!
//! In: events of an agent.  Out: the facts that a writer needs: the numbers of parts, and the calls without a result.
//!
//! Laws (docs/protocols/encoding.md#e17): a call that was written has one result before the run ends.  Ids of parts and calls
//! are unique in the run.
//! Source: docs/agents.md, "Events".

use std::collections::{BTreeMap, BTreeSet};

use crate::contract::Usage;
use crate::json::{ObjectWriter, write_members};

/// Result of a call that was taken back with its answer.
pub(super) const TAKEN_BACK: &str = "The call was not run, because its answer broke off.";
/// Result of a call that has none when the run goes on or ends.
pub(super) const NO_RESULT: &str = "The call has no result.";

/// A call of an agent's model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunCall {
    /// Id in the conversation.
    pub id: Box<str>,
    /// Name of the tool.
    pub name: Box<str>,
    /// Arguments as the model wrote them.
    pub args: Box<str>,
}

/// Status of a call that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStatus {
    /// The tool has a result.
    Success,
    /// The call or its tool failed.
    Failed,
    /// The call was not run.
    Skipped,
    /// A person or a program rejected the call.
    Rejected,
}

impl CallStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Success, Self::Failed, Self::Skipped, Self::Rejected];

    /// Return the name of a conversation's log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Rejected => "rejected",
        }
    }
}

/// An image or a file.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFile {
    /// Media type; "" if it is unknown.
    pub mime_type: Box<str>,
    /// Where the bytes are.
    pub place: FilePlace,
}

/// Place of the bytes of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum FilePlace {
    /// Base64.
    Data(Box<str>),
    /// An address, or a `data:` URL.
    Url(Box<str>),
}

/// Text and files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunContent {
    /// The text.
    pub text: Box<str>,
    /// Images and files that a client can show.
    pub files: Vec<RunFile>,
    /// Number of files that no client can show, such as those of a provider's store.
    pub lost: usize,
}

/// Result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// Status.
    pub status: CallStatus,
    /// The content that the model gets.
    pub content: RunContent,
    /// JSON value of the text, if it is an object or a list.
    pub json: Option<Box<str>>,
}

impl RunResult {
    /// Build a result without files.
    pub fn told(status: CallStatus, text: &str) -> Self {
        Self {
            status,
            content: RunContent { text: text.into(), ..RunContent::default() },
            json: None,
        }
    }
}

/// Status of a run that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// The last answer is the end.
    Completed,
    /// The run failed.
    Failed,
    /// A limit or a cancellation ended the run.
    Aborted,
    /// Calls wait for a person.
    AwaitingHuman,
}

impl RunStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Completed, Self::Failed, Self::Aborted, Self::AwaitingHuman];

    /// Return the name of the agent's result.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Aborted => "aborted",
            Self::AwaitingHuman => "awaiting_human",
        }
    }
}

/// End of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// Status.
    pub status: RunStatus,
    /// Reason in a word, such as `answered`, `length`, `max_turns` or `error`.
    pub reason: Box<str>,
    /// Code and message of the failure.
    pub failure: Option<(Box<str>, Box<str>)>,
    /// Tokens and cost of all requests.
    pub usage: Usage<String>,
    /// Result of a call whose arguments were the output of the run.
    pub accepted: Box<str>,
    /// Calls that wait for a person.
    pub pending: Vec<RunCall>,
}

impl RunEnd {
    /// Return the code and the message of the failure; a run that has none has its reason.
    pub fn failure(&self) -> (&str, &str) {
        self.failure
            .as_ref()
            .map_or((&self.reason, &self.reason), |(code, message)| (code, message))
    }

    /// Return true if the run must not look like a success.
    pub fn is_failure(&self) -> bool {
        self.status == RunStatus::Failed
            || (self.status == RunStatus::Completed && &*self.reason == "error")
    }
}

/// Event of a run, beside the deltas of its answers.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEvent {
    /// The next answer begins.
    Turn,
    /// The answer is whole, and has these calls.
    Answer(Vec<Box<str>>),
    /// The answer broke off, and is asked for again.
    Retry {
        /// The rest of the answer is asked for alone.
        continues: bool,
        /// JSON object of the facts.
        facts: Box<str>,
    },
    /// An answer is not the output of the run, and the model is asked to mend it.
    Defect {
        /// The text that the model gets.
        reason: Box<str>,
        /// JSON object of the facts.
        facts: Box<str>,
    },
    /// Something for which the protocols have no word: its name and a JSON object of its facts.
    Notice(&'static str, Box<str>),
    /// A call waits for a person.
    Approval(RunCall),
    /// A call runs, and tells this JSON value.
    Progress(RunCall, Box<str>),
    /// A call ended.
    Result(RunCall, RunResult),
    /// A message of the user was delivered to the run.
    Input(RunContent),
    /// The run ended.
    End(Box<RunEnd>),
}

/// Write a text and files as the list of their parts, which both protocols of runs have.
pub(super) fn write_parts(
    out: &mut String,
    text: &str,
    files: &[RunFile],
    write_file: impl Fn(&mut ObjectWriter<'_>, &RunFile),
) {
    out.push('[');
    if !text.is_empty() {
        write_members(out, |part| {
            part.text("type", "text");
            part.text("text", text);
        });
    }
    for file in files {
        if !out.ends_with('[') {
            out.push(',');
        }
        write_members(out, |part| write_file(part, file));
    }
    out.push(']');
}

/// A call as it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WrittenCall<'a> {
    /// The call.
    pub call: &'a RunCall,
    /// Id in the stream.
    pub id: &'a str,
    /// The stream has the call; the client has one of an earlier run.
    pub is_known: bool,
    /// No tool ran: the arguments are the output of the run, or the call was taken back.
    pub is_output: bool,
}

/// What an encoder remembers of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Number of the first part of this answer in the run.
    pub first_part: usize,
    /// The first event of the stream was written.
    pub has_head: bool,
    /// Number of inputs that were delivered.
    pub inputs: usize,
    /// Models of the answers.
    pub models: BTreeSet<Box<str>>,
    /// Ids in the stream, by ids in the conversation.
    ids: BTreeMap<Box<str>, Box<str>>,
    /// Ids in the stream.
    used: BTreeSet<Box<str>>,
    /// Ids in the conversation of the written calls without a result, in the order of the calls.
    open: BTreeMap<usize, Box<str>>,
    /// Places of those calls.
    places: BTreeMap<Box<str>, usize>,
    /// Number of calls so far.
    calls: usize,
}

impl Run {
    /// Return an id for a call that begins, which no other call of the stream has.
    pub fn new_id(&mut self, id: &str) -> Box<str> {
        let mut unique: Box<str> = id.into();
        let mut number = 1;
        while !self.used.insert(unique.clone()) {
            number += 1;
            unique = format!("{id}-{number}").into();
        }
        unique
    }

    /// Remember a call that was written.
    pub fn add(&mut self, id: &str) {
        self.used.insert(id.into());
        self.ids.insert(id.into(), id.into());
        self.open.insert(self.calls, id.into());
        self.places.insert(id.into(), self.calls);
        self.calls += 1;
    }

    /// Give the open calls the ids that the conversation has for them, where it has others.
    pub fn rename(&mut self, ids: &[Box<str>]) {
        let new: Vec<_> = ids.iter().filter(|id| !self.places.contains_key(*id)).collect();
        let known: BTreeSet<_> = ids.iter().collect();
        let old: Vec<_> = self
            .open
            .iter()
            .filter(|(_, id)| !known.contains(id))
            .map(|(place, id)| (*place, id.clone()))
            .collect();
        if new.len() != old.len() {
            return;
        }
        for (id, (place, written)) in new.into_iter().zip(old) {
            self.open.insert(place, id.clone());
            self.places.remove(&written);
            self.places.insert(id.clone(), place);
            if let Some(in_stream) = self.ids.remove(&written) {
                self.ids.insert(id.clone(), in_stream);
            }
        }
    }

    /// Return the id in the stream of a call, and true if the stream has the call.
    pub fn id_of(&self, id: &str) -> (Box<str>, bool) {
        self.ids.get(id).map_or_else(|| (id.into(), false), |known| (known.clone(), true))
    }

    /// Note that the stream has a call, although none of its answers has.
    pub fn learn(&mut self, id: &str) {
        self.used.insert(id.into());
        self.ids.insert(id.into(), id.into());
    }

    /// Note that a call has its result.
    pub fn answered(&mut self, id: &str) {
        if let Some(place) = self.places.remove(id) {
            self.open.remove(&place);
        }
    }

    /// Forget the calls without a result, which a client forgets too.
    pub fn take_back(&mut self) {
        for id in self.take_open(&[]) {
            if let Some(in_stream) = self.ids.remove(&id) {
                self.used.remove(&in_stream);
            }
        }
    }

    /// Take the calls without a result but for some: their ids in the conversation.
    pub fn take_open(&mut self, kept: &[Box<str>]) -> Vec<Box<str>> {
        let kept: BTreeSet<_> = kept.iter().collect();
        let open: Vec<_> = self.open.values().filter(|id| !kept.contains(id)).cloned().collect();
        for id in &open {
            self.answered(id);
        }
        open
    }
}
