//! `Settings`: choices of the caller for one encoded stream.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::limits::Limits;

/// Kind of a tool that the client declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolKind {
    /// A function with a JSON schema.
    Function,
    /// A tool that takes free text.
    Custom,
    /// The client's own search for further tools.
    Search,
}

/// A tool as the client declared it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolName {
    /// Kind of the tool.
    pub kind: ToolKind,
    /// Namespace that the client declared the tool in.
    pub namespace: Option<Box<str>>,
    /// Name inside the namespace.
    pub name: Box<str>,
}

/// Place of a signature of the source in a Chat stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Nowhere.
    #[default]
    Nowhere,
    /// `delta.reasoning_details[]`, as OpenRouter does.
    ReasoningDetails,
    /// `delta.thinking_blocks[]`, as LiteLLM does.
    ThinkingBlocks,
    /// `extra_content.google.thought_signature`, as Gemini's compatible endpoint does.
    ExtraContent,
}

/// Fate of the calls of an answer that another model may take over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeclinedCalls {
    /// Calls are written at once.  If one was written before a boundary, the answer ends as one that a filter stopped, so that
    /// none of its calls runs.
    #[default]
    Filter,
    /// Calls wait for the end, where those before the last boundary are left out.
    Hold,
    /// Calls are written at once and the end is that of the source, because the caller takes the calls back.
    Keep,
}

/// Members of the response object that say what was answered, and not what was asked.
pub const OWN_RESPONSE_FIELDS: [&str; 9] = [
    "id",
    "object",
    "created_at",
    "status",
    "model",
    "output",
    "error",
    "incomplete_details",
    "usage",
];

/// Choices of the caller.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of the caller")]
pub struct Settings {
    /// Model to name instead of the source's.
    pub model_id: Option<Box<str>>,
    /// Response id for a stream without one.
    pub request_id: Option<Box<str>>,
    /// Response id to write in place of the source's.
    pub response_id: Option<Box<str>>,
    /// Write a chunk of usage (openai-chat).
    pub include_usage: bool,
    /// Tokens of the prompt by the caller's estimate, for heads that must name them.
    pub input_tokens: Option<u64>,
    /// Name of the member that holds reasoning (openai-chat): `reasoning_content` or `reasoning`.
    pub reasoning_member: &'static str,
    /// Place of signatures (openai-chat).
    pub signatures: Place,
    /// Write provider state of other dialects into opaque fields of the target, to get it back with the next request.
    pub envelope: bool,
    /// Models whose secrets the target's client may have as its own; `None` for every model of the target's dialect.
    ///
    /// A client does not say which model made a block that it sends back.  The secrets of a model that is not named here are
    /// written as those of another dialect.
    pub own_models: Option<Arc<BTreeSet<Box<str>>>>,
    /// Hold thinking back until its part ends, so that it can have the id that comes with its encrypted form
    /// (openai-responses).
    pub hold: bool,
    /// Treatment of the calls of a model that another one may take over from.
    pub declined_calls: DeclinedCalls,
    /// Write thinking as raw reasoning and not as its summary (openai-responses).
    pub raw_reasoning: bool,
    /// Write refusals as text (openai-responses).
    pub refusals_as_text: bool,
    /// Write errors that a retry does not mend under a code that ends the client's turn (openai-responses).
    pub final_errors_end_turn: bool,
    /// Write `response.completed` for an answer that was cut by a limit (openai-responses).
    pub incomplete_as_completed: bool,
    /// Members of the response object that repeat the request, as JSON (openai-responses); none of `OWN_RESPONSE_FIELDS`.
    pub response_fields: Arc<BTreeMap<Box<str>, Box<str>>>,
    /// Tools by the names that the source knows, if the client declared them otherwise (openai-responses).
    pub tools: Arc<BTreeMap<Box<str>, ToolName>>,
    /// Id of the conversation (ag-ui); the response id by default.
    pub thread_id: Option<Box<str>>,
    /// Write neither the first nor the last event of a run, which the caller owns (ag-ui).
    pub without_run: bool,
    /// Bounds of the stream.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            model_id: None,
            request_id: None,
            response_id: None,
            include_usage: true,
            input_tokens: None,
            reasoning_member: "reasoning_content",
            signatures: Place::default(),
            envelope: false,
            own_models: None,
            hold: false,
            declined_calls: DeclinedCalls::default(),
            raw_reasoning: false,
            refusals_as_text: false,
            final_errors_end_turn: false,
            incomplete_as_completed: false,
            response_fields: Arc::default(),
            tools: Arc::default(),
            thread_id: None,
            without_run: false,
            limits: Limits::default(),
        }
    }
}
