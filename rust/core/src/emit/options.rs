//! Options of a stream, set before its first byte.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::limits::Limits;
use crate::markup::Wanted;
use crate::provider_error::Response;

/// What the caller knows of a stream before its first byte.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The registry's name.
    pub dialect: &'static str,
    /// The agent run.
    pub run_id: Arc<str>,
    /// The model that was asked for.
    pub model_id: Option<Box<str>>,
    /// Stands in where the body names no response id.
    pub request_id: Option<Box<str>>,
    /// Status and headers.
    pub response: Response,
    /// Which of several answers is followed.
    pub choice: u64,
    /// Whether the first delta of a frame carries the frame's JSON.
    pub provider_raw: bool,
    /// Whether log probabilities ride on text deltas.
    pub logprobs: bool,
    /// What is looked for in plain text.
    pub markup: Option<Wanted>,
    /// The caller's name of each tool that the request had to name otherwise, by that other name.
    pub tool_names: Option<Arc<BTreeMap<Box<str>, Box<str>>>>,
    /// Bounds.
    pub limits: Limits,
}

impl Options {
    /// What the caller calls a tool that the provider calls `name`.
    pub(crate) fn caller_name<'a>(&'a self, name: &'a str) -> &'a str {
        let names = self.tool_names.as_deref();
        names.and_then(|names| names.get(name)).map_or(name, |own| own)
    }
}
