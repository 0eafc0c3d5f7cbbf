//! Options of a stream, set before its first byte.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::limits::Limits;
use crate::provider_error::Response;

/// Facts about a stream that the caller knows before its first byte.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamOptions {
    /// The registry's name.
    pub dialect: &'static str,
    /// The agent run.
    pub run_id: Arc<str>,
    /// The requested model.
    pub model_id: Option<Box<str>>,
    /// The response id, if the body has none.
    pub request_id: Option<Box<str>>,
    /// Status and headers.
    pub response: Response,
    /// The number of the answer to follow, if the stream has several.
    pub choice: u64,
    /// Send the JSON of a frame with its first delta.
    pub provider_raw: bool,
    /// Send log probabilities with text deltas.
    pub logprobs: bool,
    /// The caller's tool names by the names in the request, where these differ.
    pub tool_names: Option<Arc<BTreeMap<Box<str>, Box<str>>>>,
    /// Bounds.
    pub limits: Limits,
}

impl StreamOptions {
    /// Return the caller's name of a tool.
    pub(crate) fn caller_name<'a>(&'a self, name: &'a str) -> &'a str {
        let names = self.tool_names.as_deref();
        names.and_then(|names| names.get(name)).map_or(name, |own| own)
    }
}
