//! Grammar of a Gemini stream (docs/protocols/encoding.md#gemini), as server-sent events or as a JSON array.
//!
//! In: events without names.  Out: the first broken rule.
//!
//! Laws: every chunk has one candidate with parts, for a chunk without parts makes chat objects forget the answer.  The finish
//! reason and the usage come once, with the last chunk of an answer.  Nothing of it follows that chunk, and nothing at all
//! follows an error or a blocked prompt.

use super::answers::Answers;
use super::event::Event;
use super::kept::Ids;
use super::tree::{Node, Rule, Value};
use deltafold::base64;

const FINISH_REASONS: [&str; 22] = [
    "STOP",
    "MAX_TOKENS",
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "MODEL_ARMOR",
    "ESCALATION",
    "PUP_LIMITED_DISABLED",
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "MALFORMED_RESPONSE",
    "NO_IMAGE",
    "IMAGE_OTHER",
    "OTHER",
];
const STATUSES: [&str; 12] = [
    "INVALID_ARGUMENT",
    "FAILED_PRECONDITION",
    "OUT_OF_RANGE",
    "UNAUTHENTICATED",
    "PERMISSION_DENIED",
    "NOT_FOUND",
    "RESOURCE_EXHAUSTED",
    "CANCELLED",
    "INTERNAL",
    "UNKNOWN",
    "UNAVAILABLE",
    "DEADLINE_EXCEEDED",
];

/// Checker of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gemini {
    ended: bool,
    chunks: u64,
    /// `responseId` of the first chunk that has one; a keep-alive may come before it is known.
    response_id: String,
    pub(super) answers: Answers<Answer>,
}

/// State of one answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    ended: bool,
    calls: Ids,
    /// A call whose arguments are streamed as `partialArgs` is open.
    partial: bool,
}

impl Gemini {
    /// Check the next event.
    pub(super) fn read(&mut self, event: Event<'_>) -> Rule {
        let data = event.bare()?;
        if self.ended {
            return Err("nothing may follow the last chunk or an error".to_owned());
        }
        if data == "[DONE]" {
            return Err("the target has no `[DONE]`".to_owned());
        }
        let value = Value::parse(data)?;
        let chunk = Node::root(&value);
        if chunk.has("error") {
            self.ended = true;
            return error(&chunk);
        }
        if chunk.has("promptFeedback") {
            if self.chunks > 0 {
                return Err("`promptFeedback` after the first chunk".to_owned());
            }
            self.ended = true;
            return blocked(&chunk);
        }
        self.chunk(&chunk)
    }

    /// Check the end of the body.
    pub(super) fn close(&self) -> Rule {
        if self.ended || self.answers.all(|answer| answer.ended) {
            Ok(())
        } else {
            Err("the stream ends without a finish reason or an error".to_owned())
        }
    }

    fn chunk(&mut self, chunk: &Node<'_>) -> Rule {
        self.chunks += 1;
        self.names(chunk)?;
        let candidates = chunk.list("candidates")?;
        let [candidate] = candidates.as_slice() else {
            return Err(format!("`candidates` must hold one candidate (got {})", candidates.len()));
        };
        let answer = self.answers.of(candidate)?;
        answer.read(candidate, false)?;
        if !answer.ended {
            return chunk.absent("usageMetadata", "the usage comes with the finish reason");
        }
        self.ended = !self.answers.are_several();
        usage(chunk)
    }

    /// Check the chunk of a whole body, which has all parts and the finish reasons.
    fn whole(&mut self, chunk: &Node<'_>) -> Rule {
        self.names(chunk)?;
        let candidates = chunk.list("candidates")?;
        if candidates.is_empty() {
            return Err("`candidates` must hold a candidate".to_owned());
        }
        for candidate in &candidates {
            self.answers.of(candidate)?.read(candidate, true)?;
        }
        usage(chunk)
    }

    fn names(&mut self, chunk: &Node<'_>) -> Rule {
        chunk.text("modelVersion")?;
        let id = chunk.text("responseId")?;
        if self.response_id.is_empty() {
            id.clone_into(&mut self.response_id);
            Ok(())
        } else {
            chunk.repeats("responseId", &self.response_id)
        }
    }
}

fn usage(chunk: &Node<'_>) -> Rule {
    match chunk.object_if("usageMetadata")? {
        Some(usage) => counts(&usage),
        None => Ok(()),
    }
}

impl Answer {
    /// Check a candidate; that of a whole body has all parts and the finish reason.
    fn read(&mut self, candidate: &Node<'_>, whole: bool) -> Rule {
        if self.ended {
            return Err("nothing of an answer may follow its last chunk".to_owned());
        }
        let content = candidate.object("content")?;
        content.is("role", "model")?;
        let parts = content.list("parts")?;
        if parts.is_empty() {
            return Err(content.at("parts")?.wrong("a list that is not empty"));
        }
        for part in &parts {
            self.part(part)?;
        }
        if let Some(logprobs) = candidate.object_if("logprobsResult")? {
            logprobs.list("chosenCandidates")?;
            logprobs.list("topCandidates")?;
        }
        if !candidate.has("finishReason") {
            return if whole {
                Err("`candidates[].finishReason` is missing".to_owned())
            } else {
                Ok(())
            };
        }
        if let [part] = parts.as_slice()
            && !whole
        {
            part.is("text", "")?;
        } else if !whole {
            return Err("the last chunk has one part, an empty text".to_owned());
        }
        self.finish(candidate)
    }

    fn finish(&mut self, candidate: &Node<'_>) -> Rule {
        let reason = candidate.text("finishReason")?;
        if reason == "CONTINUATION" {
            // Without its token the SDKs continue by themselves.
            candidate.filled("continuationToken")?;
        } else {
            candidate.one_of("finishReason", &FINISH_REASONS)?;
        }
        if reason == "MALFORMED_FUNCTION_CALL" {
            candidate.text("finishMessage")?;
        }
        self.ended = true;
        Ok(())
    }

    fn part(&mut self, part: &Node<'_>) -> Rule {
        if part.as_object()?.is_empty() {
            return Err(part.wrong("a part with members"));
        }
        part.text_if("text")?;
        if part.has("thought") {
            part.flag("thought")?;
        }
        if let Some(signature) = part.text_if("thoughtSignature")? {
            let mut bytes = Vec::new();
            if signature.is_empty()
                || base64::decode_into(signature.as_bytes(), &mut bytes).is_none()
            {
                return Err(part.at("thoughtSignature")?.wrong("base64"));
            }
        }
        match part.object_if("functionCall")? {
            Some(call) => self.call(&call),
            None => Ok(()),
        }
    }

    fn call(&mut self, call: &Node<'_>) -> Rule {
        let continues = call.has("partialArgs") || call.has("willContinue");
        if let Some(arguments) = call.maybe("partialArgs") {
            for argument in arguments.as_list()? {
                argument.filled("jsonPath")?;
            }
        }
        if !continues && self.partial && !call.has("name") {
            self.partial = false;
            return call.only(&[]);
        }
        if continues && self.partial && !call.has("name") {
            return Ok(());
        }
        self.partial = continues;
        call.filled("name")?;
        self.calls.add("the id of the call", call.filled("id")?)?;
        if continues { Ok(()) } else { call.object("args").map(drop) }
    }
}

fn blocked(chunk: &Node<'_>) -> Rule {
    chunk.only(&["promptFeedback", "usageMetadata", "modelVersion", "responseId"])?;
    chunk.object("promptFeedback")?.filled("blockReason")?;
    Ok(())
}

fn counts(usage: &Node<'_>) -> Rule {
    let count = |key| usage.count_if(key);
    let (prompt, tools) = (count("promptTokenCount")?, count("toolUsePromptTokenCount")?);
    let (answer, thoughts) = (count("candidatesTokenCount")?, count("thoughtsTokenCount")?);
    count("cachedContentTokenCount")?;
    if let Some(prompt) = prompt {
        usage.within("cachedContentTokenCount", prompt)?;
    }
    if count("totalTokenCount")?.is_none() {
        return Ok(());
    }
    match (prompt, answer) {
        (Some(prompt), Some(answer)) => {
            let parts = [prompt, answer, tools.unwrap_or(0), thoughts.unwrap_or(0)];
            usage.counts("totalTokenCount", parts.into_iter().fold(0, u64::saturating_add))
        }
        _ => Err("`usageMetadata.totalTokenCount` without the counts of its sum".to_owned()),
    }
}

fn error(chunk: &Node<'_>) -> Rule {
    chunk.only(&["error"])?;
    let error = chunk.object("error")?;
    if !(400..600).contains(&error.count("code")?) {
        return Err(error.at("code")?.wrong("a number from 400 to 599"));
    }
    error.text("message")?;
    error.one_of("status", &STATUSES)?;
    Ok(())
}

/// Check a whole body: one chunk.
pub(super) fn body(status: u16, body: &str) -> Rule {
    let value = Value::parse(body)?;
    let body = Node::root(&value);
    if body.has("promptFeedback") {
        blocked(&body)
    } else if status >= 400 {
        error(&body)
    } else {
        Gemini { answers: Answers::several(), ..Gemini::default() }.whole(&body)
    }
}
