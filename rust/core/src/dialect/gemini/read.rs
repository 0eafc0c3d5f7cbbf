//! Reader of Gemini chunks: one chunk → one [`Event`].
//!
//! Names are in camelCase.  Proxies written in Python send snake_case; both are read.

use super::facts::METADATA;
use crate::contract::Logprobs;
use crate::dialect::choices::{ChoiceNumbers, Number, TemplateNumber};
use crate::dialect::protocol::{Frame, Wanted};
use crate::dialect::unread::Unread;
use crate::json::{Reader, Result, Str};
use crate::template::{Template, Token, Tokens};

/// One chunk, borrowed from its frame: the members beside the candidates, and the candidates that are followed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event<'a> {
    pub(super) model: Option<Str<'a>>,
    pub(super) response_id: Option<Str<'a>>,
    pub(super) has_candidate: bool,
    pub(super) candidate: Candidate<'a>,
    pub(super) other_candidates: bool,
    pub(super) usage: Option<&'a str>,
    /// Token counts were read from a frame that matches a template.
    pub(super) has_read_usage: bool,
    pub(super) rare: Option<Box<RareMembers<'a>>>,
}

/// Members that few chunks have.  A box of its own keeps the event small.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RareMembers<'a> {
    /// Further entries: other candidates that are followed, or the same one again.
    pub(super) more_candidates: Vec<Candidate<'a>>,
    pub(super) error: Option<&'a str>,
    /// The whole frame, if it holds an error and no candidates.
    pub(super) failed: Option<&'a str>,
    pub(super) block_reason: Option<Str<'a>>,
    pub(super) block_message: Option<Str<'a>>,
    /// What the filters say of a prompt that they blocked.
    pub(super) feedback: Option<&'a str>,
    /// Facts of the answer that no rule knows.
    pub(super) unread: Unread<'a>,
}

impl RareMembers<'_> {
    /// Return true if there are only facts that no rule knows.
    fn are_facts(&self) -> bool {
        *self == Self { unread: self.unread.clone(), ..Self::default() }
    }
}

impl RareContent<'_> {
    /// Return true if there are only facts that no rule knows.
    fn is_facts(&self) -> bool {
        *self == Self { unread: self.unread.clone(), ..Self::default() }
    }
}

/// A candidate.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Candidate<'a> {
    pub(super) number: Number<'a>,
    pub(super) part: Option<Part<'a>>,
    pub(super) rare: Option<Box<RareContent<'a>>>,
}

/// Members that few candidates have.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RareContent<'a> {
    pub(super) more_parts: Vec<Part<'a>>,
    /// The finish reason: a name, but a number from some servers.
    pub(super) finish_reason: Option<Str<'a>>,
    pub(super) finish_message: Option<Str<'a>>,
    /// The token with which another request continues an answer that paused.
    pub(super) continuation_token: Option<Str<'a>>,
    /// The sources of the text, in the order of [`METADATA`].
    pub(super) metadata: [Option<&'a str>; METADATA.len()],
    /// Log probabilities, if the caller wants them and the candidate has any.
    pub(super) logprobs: Option<Box<Logprobs>>,
    /// Facts of the candidate that no rule knows.
    pub(super) unread: Unread<'a>,
}

/// A part of the content.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Part<'a> {
    /// Text or reasoning.  The text is empty if the part holds only a signature.
    Text { thought: bool, text: Str<'a>, signature: Option<Str<'a>> },
    /// A call, media, or a part specific to the provider: the whole part.
    Other(&'a str),
}

/// Read a frame.
pub(super) fn read<'a>(
    frame: Frame<'a>,
    reader: &mut Reader<'a>,
    wanted: Wanted,
) -> Result<Event<'a>> {
    let mut chunk = Event::default();
    let mut bare_status = false;
    let mut bare_message = false;
    let mut unread = Unread::default();
    reader.object(|reader, key| match key {
        // A Google error without the surrounding `error` object.
        "status" => {
            bare_status = reader.filled_string()?.is_some();
            Ok(())
        }
        "message" => {
            bare_message = reader.filled_string()?.is_some();
            Ok(())
        }
        // Code Assist, the service behind the Gemini CLI, wraps the chunk in `response`.
        "response" => {
            reader.maybe_object(|reader, key| chunk.member(reader, key, wanted, &mut unread))
        }
        _ => chunk.member(reader, key, wanted, &mut unread),
    })?;
    reader.end()?;
    if !unread.is_empty() {
        chunk.rare.get_or_insert_default().unread = unread;
    }
    let says_nothing = !chunk.has_candidate && !chunk.other_candidates;
    let error = chunk.rare.as_ref().is_some_and(|rare| rare.error.is_some());
    if says_nothing && (error || (bare_status && bare_message)) {
        chunk.rare.get_or_insert_default().failed = Some(frame.json);
    }
    Ok(chunk)
}

impl<'a> Event<'a> {
    /// Return the candidates that are followed, in their order.
    pub(super) fn candidates(&self) -> impl Iterator<Item = &Candidate<'a>> {
        let more = self.rare.as_ref().map_or(&[][..], |rare| &rare.more_candidates);
        Some(&self.candidate).filter(|_| self.has_candidate).into_iter().chain(more)
    }

    fn member(
        &mut self,
        reader: &mut Reader<'a>,
        key: &str,
        wanted: Wanted,
        unread: &mut Unread<'a>,
    ) -> Result<()> {
        match key {
            "candidates" => {
                let mut numbers = ChoiceNumbers::default();
                reader.maybe_array(|reader| self.read_candidate(reader, &mut numbers, wanted))?;
            }
            "usageMetadata" | "usage_metadata" => {
                self.usage = reader.opt_raw()?.filter(|raw| raw.starts_with('{'));
            }
            "modelVersion" | "model_version" => self.model = reader.filled_string()?,
            "responseId" | "response_id" => {
                self.response_id = reader.id()?;
            }
            "promptFeedback" | "prompt_feedback" => self.read_feedback(reader, unread)?,
            "error" => {
                if let Some(error) = reader.opt_raw()?.filter(|raw| !matches!(*raw, "\"\"" | "{}"))
                {
                    self.rare.get_or_insert_default().error = Some(error);
                }
            }
            key => unread.fact(reader, key)?,
        }
        Ok(())
    }

    fn read_feedback(&mut self, reader: &mut Reader<'a>, unread: &mut Unread<'a>) -> Result<()> {
        let start = reader.position();
        let (mut reason, mut message) = (None, None);
        reader.maybe_object(|reader, key| {
            match key {
                "blockReason" | "block_reason" => {
                    reason = reader.scalar()?.filter(|reason| !is_unset(*reason));
                }
                "blockReasonMessage" | "block_reason_message" => {
                    message = reader.filled_string()?;
                }
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        let feedback = reader.since(start);
        unread.add("promptFeedback", feedback);
        if reason.is_some() {
            let rare = self.rare.get_or_insert_default();
            rare.feedback = Some(feedback);
            rare.block_reason = reason;
            rare.block_message = message;
        }
        Ok(())
    }

    fn read_candidate(
        &mut self,
        reader: &mut Reader<'a>,
        numbers: &mut ChoiceNumbers,
        wanted: Wanted,
    ) -> Result<()> {
        let mut candidate = Candidate::default();
        let mut index = None;
        let mut raw_index = "";
        let mut unread = Unread::default();
        reader.maybe_object(|reader, key| {
            match key {
                "content" => reader.maybe_object(|reader, key| match key {
                    "parts" => reader.maybe_array(|reader| candidate.read_part(reader)),
                    "role" => reader.ignore(),
                    key => unread.content(reader, key),
                })?,
                "index" => {
                    let start = reader.position();
                    index = reader.count()?;
                    raw_index = reader.since(start);
                }
                _ => candidate.read_rare(reader, key, wanted, &mut unread)?,
            }
            Ok(())
        })?;
        if !unread.is_empty() {
            candidate.rare.get_or_insert_default().unread = unread;
        }
        let Some(number) = numbers.next(index, raw_index, wanted.followed) else {
            self.other_candidates = true;
            return Ok(());
        };
        candidate.number = number;
        if self.has_candidate {
            self.rare.get_or_insert_default().more_candidates.push(candidate);
        } else {
            self.has_candidate = true;
            self.candidate = candidate;
        }
        Ok(())
    }
}

impl<'a> Candidate<'a> {
    fn read_rare(
        &mut self,
        reader: &mut Reader<'a>,
        key: &str,
        wanted: Wanted,
        unread: &mut Unread<'a>,
    ) -> Result<()> {
        match key {
            "finishReason" | "finish_reason" => {
                if let Some(reason) = reader.scalar()?.filter(|reason| !is_unset(*reason)) {
                    self.rare.get_or_insert_default().finish_reason = Some(reason);
                }
            }
            "finishMessage" | "finish_message" => {
                if let Some(message) = reader.filled_string()? {
                    self.rare.get_or_insert_default().finish_message = Some(message);
                }
            }
            "continuationToken" | "continuation_token" => {
                if let Some(token) = reader.filled_string()? {
                    self.rare.get_or_insert_default().continuation_token = Some(token);
                }
            }
            "citationMetadata" | "citation_metadata" => self.read_metadata(reader, 0)?,
            "groundingMetadata" | "grounding_metadata" => self.read_metadata(reader, 1)?,
            "urlContextMetadata" | "url_context_metadata" => self.read_metadata(reader, 2)?,
            "logprobsResult" | "logprobs_result" if wanted.logprobs => {
                if let Some(logprobs) = logprobs(reader, unread)? {
                    self.rare.get_or_insert_default().logprobs = Some(logprobs);
                }
            }
            "logprobsResult" | "logprobs_result" => {
                if let Some(unread) = Wanted::unread_logprobs(reader)? {
                    self.rare.get_or_insert_default().logprobs = Some(unread);
                }
            }
            key => unread.fact(reader, key)?,
        }
        Ok(())
    }

    fn read_metadata(&mut self, reader: &mut Reader<'a>, which: usize) -> Result<()> {
        let found = reader.opt_raw()?.filter(|raw| *raw != "{}");
        if found.is_some()
            && let Some(place) = self.rare.get_or_insert_default().metadata.get_mut(which)
        {
            *place = found;
        }
        Ok(())
    }

    fn read_part(&mut self, reader: &mut Reader<'a>) -> Result<()> {
        let mut thought = false;
        let mut text = None;
        let mut signature = None;
        let mut other = false;
        let start = reader.position();
        reader.maybe_object(|reader, key| {
            match key {
                "text" => text = reader.filled_string()?,
                "thought" => thought = reader.boolean()? == Some(true),
                "thoughtSignature" | "thought_signature" => signature = reader.filled_string()?,
                _ => other |= reader.opt_raw()?.is_some(),
            }
            Ok(())
        })?;
        if other {
            if let Some(text) = text {
                // The protocol has no part with text and other members.  The signature stays in the provider part.
                self.push(Part::Text { thought, text, signature: None });
            }
            self.push(Part::Other(reader.since(start)));
        } else if text.is_some() || signature.is_some() {
            let text = text.unwrap_or(Str::plain(""));
            self.push(Part::Text { thought, text, signature });
        }
        Ok(())
    }

    fn push(&mut self, part: Part<'a>) {
        match self.part {
            None => self.part = Some(part),
            Some(_) => self.rare.get_or_insert_default().more_parts.push(part),
        }
    }
}

/// Return whether an enumeration has its default value, which servers with numeric enumerations write as 0.
fn is_unset(value: Str<'_>) -> bool {
    matches!(value.raw, "" | "0")
}

/// Read `{chosenCandidates: [T], topCandidates: [{candidates: [T]}]}` with tokens T `{token, tokenId, logProbability}`.
fn logprobs<'a>(reader: &mut Reader<'a>, unread: &mut Unread<'a>) -> Result<Option<Box<Logprobs>>> {
    let mut chosen = None;
    let mut top = Vec::new();
    reader.maybe_object(|reader, key| match key {
        "chosenCandidates" | "chosen_candidates" => {
            chosen = reader.opt_raw()?;
            Ok(())
        }
        "topCandidates" | "top_candidates" => reader.maybe_array(|reader| {
            top.push(reader.raw()?);
            Ok(())
        }),
        key => unread.fact(reader, key),
    })?;
    let mut found = Logprobs::default();
    let mut rows = top.into_iter();
    Reader::trusted(chosen.unwrap_or("[]")).maybe_array(|reader| {
        let token = read_token(reader)?;
        found.open();
        if let Some(text) = token.text {
            found.set_token(text);
        }
        found.set_logprob(token.logprob.unwrap_or(f64::NAN));
        if let Some(id) = token.id {
            found.set_id(id);
        }
        Reader::trusted(rows.next().unwrap_or("{}")).maybe_object(|reader, key| match key {
            "candidates" => reader.maybe_array(|reader| {
                let token = read_token(reader)?;
                found.open_alternative();
                if let Some(text) = token.text {
                    found.set_alternative_token(text);
                }
                found.set_alternative_logprob(token.logprob.unwrap_or(f64::NAN));
                Ok(())
            }),
            _ => reader.skip(),
        })
    })?;
    Ok((!found.is_empty()).then(|| Box::new(found)))
}

#[derive(Default)]
struct LikelyToken<'a> {
    text: Option<Str<'a>>,
    id: Option<i64>,
    logprob: Option<f64>,
}

fn read_token<'a>(reader: &mut Reader<'a>) -> Result<LikelyToken<'a>> {
    let mut found = LikelyToken::default();
    reader.maybe_object(|reader, key| {
        match key {
            "token" => found.text = reader.opt_string()?,
            "tokenId" | "token_id" => found.id = reader.integer()?.filter(|id| *id >= 0),
            "logProbability" | "log_probability" => found.logprob = reader.float()?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(found)
}

/// The members of a part that the decoder interprets.
#[derive(Debug, Default)]
pub(super) struct OtherPart<'a> {
    pub(super) thought: bool,
    pub(super) signature: Option<Str<'a>>,
    pub(super) call: Option<&'a str>,
    pub(super) mime_type: Option<Str<'a>>,
    pub(super) data: Option<Str<'a>>,
    /// Members that no rule knows.
    pub(super) unread: Unread<'a>,
}

impl<'a> OtherPart<'a> {
    /// Read a part that `read` validated.
    pub(super) fn read(part: &'a str) -> Result<Self> {
        let mut found = Self::default();
        Reader::trusted(part).maybe_object(|reader, key| {
            match key {
                "thought" => found.thought = reader.boolean()? == Some(true),
                "thoughtSignature" | "thought_signature" => {
                    found.signature = reader.filled_string()?;
                }
                "functionCall" | "function_call" => {
                    found.call = reader.opt_raw()?.filter(|raw| raw.starts_with('{'));
                }
                "inlineData" | "inline_data" => reader.maybe_object(|reader, key| {
                    match key {
                        "mimeType" | "mime_type" => found.mime_type = reader.filled_string()?,
                        "data" => found.data = reader.filled_string()?,
                        key => found.unread.dropped(reader, key)?,
                    }
                    Ok(())
                })?,
                key => found.unread.dropped(reader, key)?,
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// A function call, or a fragment of one.
#[derive(Debug, Default)]
pub(super) struct FunctionCall<'a> {
    pub(super) id: Option<Str<'a>>,
    pub(super) name: Option<Str<'a>>,
    pub(super) args: Option<Str<'a>>,
    pub(super) partial_args: Option<&'a str>,
    pub(super) will_continue: bool,
    /// Members that no rule knows.
    pub(super) unread: Unread<'a>,
}

impl<'a> FunctionCall<'a> {
    /// Read a call that `read` validated.
    pub(super) fn read(call: &'a str) -> Result<Self> {
        let mut found = Self::default();
        Reader::trusted(call).maybe_object(|reader, key| {
            match key {
                "id" => found.id = reader.id()?,
                "name" => found.name = reader.filled_string()?,
                "args" => found.args = reader.text_or_json()?,
                "partialArgs" | "partial_args" => {
                    found.partial_args = reader.opt_raw()?.filter(|raw| *raw != "[]");
                }
                "willContinue" | "will_continue" => {
                    found.will_continue = reader.boolean()? == Some(true);
                }
                key => found.unread.dropped(reader, key)?,
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// The chunks that repeat: text or reasoning, and counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventTemplate {
    number: TemplateNumber,
    other_candidates: bool,
    thought: bool,
    text: Token,
    usage: Option<Token>,
}

impl Template for EventTemplate {
    type Event<'a> = Event<'a>;

    fn has_facts(event: &Event<'_>) -> bool {
        event.rare.as_ref().is_some_and(|rare| !rare.unread.is_empty())
            || event.candidate.rare.as_ref().is_some_and(|rare| !rare.unread.is_empty())
    }

    fn from_event(event: &Event<'_>, tokens: &mut Tokens<'_>) -> Option<Self> {
        let Event { model, response_id, other_candidates, usage, .. } = *event;
        match event {
            Event {
                has_candidate: true,
                candidate:
                    Candidate {
                        number,
                        part: Some(Part::Text { thought, text, signature: None }),
                        rare: of_candidate,
                    },
                rare,
                ..
            } if rare.as_deref().is_none_or(RareMembers::are_facts)
                && of_candidate.as_deref().is_none_or(RareContent::is_facts) =>
            {
                // Identifiers may change from chunk to chunk, but only the first ones count.
                for name in [model, response_id].into_iter().flatten() {
                    tokens.rarely_changing(name);
                }
                Some(Self {
                    number: TemplateNumber::new(*number, tokens)?,
                    other_candidates,
                    thought: *thought,
                    text: tokens.changing(*text),
                    usage: usage.map(|raw| tokens.rarely_changing_object(raw)),
                })
            }
            _ => None,
        }
    }

    #[inline]
    fn fill<'a>(&self, text: impl Fn(Token) -> Str<'a>) -> Event<'a> {
        let number = self.number.fill(&text);
        let usage = self.usage.map(|raw| text(raw).raw);
        let said = Part::Text { thought: self.thought, text: text(self.text), signature: None };
        Event {
            model: None,
            response_id: None,
            has_candidate: true,
            candidate: Candidate { number, part: Some(said), rare: None },
            other_candidates: self.other_candidates,
            usage,
            has_read_usage: usage == Some(""),
            rare: None,
        }
    }
}
