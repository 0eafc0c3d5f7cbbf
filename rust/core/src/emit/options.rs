//! Options of a stream, set before its first byte.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::limits::Limits;
use crate::provider_error::Response;

/// Facts about a stream that the caller knows before its first byte.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamOptions {
    /// Name of the dialect in the registry.
    pub dialect: &'static str,
    /// Id of the agent run.
    pub run_id: Arc<str>,
    /// Requested model.
    pub model_id: Option<Box<str>>,
    /// Response id to use if the body has none.
    pub request_id: Option<Box<str>>,
    /// Status and headers of the HTTP response.
    pub response: Response,
    /// Number of the answer to decode, if the stream has several.
    pub choice: u64,
    /// All answers of the stream are pieces of the one to decode.
    pub joined_choices: bool,
    /// Ends that make an answer whole.
    pub whole_ends: WholeEnds,
    /// Attach the JSON of a frame to its first delta.
    pub provider_raw: bool,
    /// Attach log probabilities to text deltas.
    pub logprobs: bool,
    /// Tool names of the caller by their names in the request; only those that differ.
    pub tool_names: Option<Arc<BTreeMap<Box<str>, Box<str>>>>,
    /// Bounds of the stream.
    pub limits: Limits,
}

impl StreamOptions {
    /// Return the options of one answer, with the default of every fact that is not given.
    pub fn new(dialect: &'static str, run_id: &str, response: Response) -> Self {
        Self {
            dialect,
            run_id: run_id.into(),
            model_id: None,
            request_id: None,
            response,
            choice: 0,
            joined_choices: false,
            whole_ends: WholeEnds::Signed,
            provider_raw: false,
            logprobs: false,
            tool_names: None,
            limits: Limits::default(),
        }
    }

    /// Return the caller's name of a tool.
    pub(crate) fn caller_name<'a>(&'a self, name: &'a str) -> &'a str {
        let names = self.tool_names.as_deref();
        names.and_then(|names| names.get(name)).map_or(name, |own| own)
    }
}

/// The ends that make an answer whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WholeEnds {
    /// A finish reason or another sign of the protocol.
    Signed,
    /// An end mark or a closed body too, because the service sends no sign.
    Any,
}
