//! Reading of a run's events from JSON, the form in which an agent tells them.
//!
//! In: one JSON object an event.  Out: the event; `None` for one that changes nothing in a stream.
//!
//! Law: a member that is missing or of another type counts as empty.
//! Source: `AgentEvent.facts` (docs/agents.md, "Events as JSON").

use super::parts::text;
use super::run::{
    CallStatus, FilePlace, RunCall, RunContent, RunEnd, RunEvent, RunFile, RunResult, RunStatus,
};
use crate::contract::Usage;
use crate::json::{Reader, members};

/// Members of an object.
struct Facts<'a>(Vec<(std::borrow::Cow<'a, str>, &'a str)>);

impl<'a> Facts<'a> {
    fn of(json: &'a str) -> Self {
        Self(members(json))
    }

    fn raw(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find(|(name, value)| name == key && *value != "null").map(|(_, value)| *value)
    }

    fn text(&self, key: &str) -> Box<str> {
        text(self.raw(key)).unwrap_or_default().into()
    }

    fn count(&self, key: &str) -> Option<u64> {
        Reader::trusted(self.raw(key)?).count().ok()?
    }

    fn list(&self, key: &str) -> Vec<&'a str> {
        let mut items = Vec::new();
        if let Some(json) = self.raw(key) {
            let _ = Reader::trusted(json).maybe_array(|reader| {
                items.push(reader.raw()?);
                Ok(())
            });
        }
        items
    }

    fn call(&self) -> RunCall {
        RunCall {
            id: self.text("toolCallId"),
            name: self.text("toolName"),
            args: self.text("arguments"),
        }
    }

    fn content(&self) -> RunContent {
        let files = self.list("files");
        let shown: Vec<_> = files.iter().filter_map(|json| Self::of(json).file()).collect();
        RunContent { text: self.text("text"), lost: files.len() - shown.len(), files: shown }
    }

    fn file(&self) -> Option<RunFile> {
        let (data, url) = (self.text("data"), self.text("url"));
        let place = match (data.is_empty(), url.is_empty()) {
            (false, _) => FilePlace::Data(data),
            (true, false) => FilePlace::Url(url),
            (true, true) => return None,
        };
        Some(RunFile { mime_type: self.text("mimeType"), place })
    }

    fn result(&self) -> RunResult {
        let status = self.text("status");
        let status = CallStatus::ALL.into_iter().find(|one| one.as_str() == &*status);
        RunResult {
            status: status.unwrap_or(CallStatus::Failed),
            content: self.content(),
            json: self.raw("json").map(Into::into),
        }
    }

    fn end(&self) -> RunEnd {
        let status = self.text("status");
        let status = RunStatus::ALL.into_iter().find(|one| one.as_str() == &*status);
        let failure = self.raw("error").map(Self::of);
        let usage = Self::of(self.raw("usage").unwrap_or("{}"));
        let cost = self.raw("costUsd").and_then(|json| Reader::trusted(json).float().ok()?);
        RunEnd {
            status: status.unwrap_or(RunStatus::Failed),
            reason: self.text("reason"),
            failure: failure.map(|failure| (failure.text("code"), failure.text("message"))),
            usage: Usage {
                input: usage.count("inputTokens"),
                output: usage.count("outputTokens"),
                total: usage.count("totalTokens"),
                cost,
                cache_read: usage.count("cacheReadTokens"),
                cache_write: usage.count("cacheWriteTokens"),
                reasoning: usage.count("reasoningTokens"),
                details: None,
            },
            accepted: self.text("accepted"),
            pending: self.list("pending").iter().map(|json| Self::of(json).call()).collect(),
        }
    }
}

impl RunEvent {
    /// Read an event from its JSON object; `None` for the kinds that a stream has no event for.
    pub fn read(json: &str) -> Option<Self> {
        let facts = Facts::of(json);
        Some(match &*facts.text("kind") {
            "turn" => Self::Turn,
            "answer" => {
                let ids = facts.list("toolCallIds").into_iter();
                Self::Answer(ids.filter_map(|json| text(Some(json))).map(Into::into).collect())
            }
            "retry" => Self::Retry {
                continues: facts.raw("continues") == Some("true"),
                facts: json.into(),
            },
            "compacted" => Self::Notice("compacted", json.into()),
            "output_defect" => Self::Defect { reason: facts.text("reason"), facts: json.into() },
            "approval" => Self::Approval(facts.call()),
            "progress" => {
                Self::Progress(facts.call(), facts.raw("progress").unwrap_or("\"\"").into())
            }
            "tool_end" => Self::Result(facts.call(), facts.result()),
            "input" => Self::Input(facts.content()),
            "run_end" => Self::End(Box::new(facts.end())),
            _ => return None,
        })
    }
}
