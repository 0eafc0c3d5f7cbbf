//! Templates of Chat Completions chunks: what is read of a chunk that repeats the form of an earlier one.

use super::logprobs::ChoiceLogprobs;
use super::read::{Arguments, Choice, Chunk, Event, Message, RareMembers, ToolCall, is_call_id};
use crate::dialect::choices::TemplateNumber;
use crate::json::Str;
use crate::template::{Template, Token, Tokens};

/// The chunks that repeat: text, reasoning with its details, arguments of one call, and their log probabilities.  Of the other
/// members, only identifiers such as the response id may be present.  A chunk with a finish reason or counts has a shape only.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a member of `Chunk` or `Choice`")]
pub struct EventTemplate {
    number: TemplateNumber,
    has_choice: bool,
    has_delta: bool,
    other_choices: bool,
    content: Option<Token>,
    reasoning_content: Option<Token>,
    reasoning: Option<Token>,
    reasoning_details: Option<Token>,
    call: Option<TemplateCall>,
    logprobs: bool,
    /// Response id, model, fingerprint and service tier.
    names: [Option<Token>; 4],
    created: Option<Token>,
    finish_reason: Option<Token>,
    usage: Option<Token>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct TemplateCall {
    index: Option<i64>,
    id: Option<Token>,
    name: Option<Token>,
    arguments: Token,
    custom: bool,
}

/// Return the rare members that a template may leave out: facts that no rule knows.
fn facts_alone<'a>(chunk: &Chunk<'a>) -> Option<Box<RareMembers<'a>>> {
    let unread = chunk.rare.as_ref()?.unread.clone();
    Some(Box::new(RareMembers { unread, ..RareMembers::default() }))
}

impl EventTemplate {
    #[inline]
    fn message<'a>(&self, text: impl Fn(Token) -> Str<'a>) -> Message<'a> {
        Message {
            content: self.content.map(&text),
            reasoning_content: self.reasoning_content.map(&text),
            reasoning: self.reasoning.map(&text),
            reasoning_details: self.reasoning_details.map(|list| text(list).raw),
            first_call: self.call.map(|call| ToolCall {
                index: call.index,
                id: call.id.map(&text).filter(is_call_id),
                name: call.name.map(&text),
                arguments: Some(Arguments::Text(text(call.arguments))),
                custom: call.custom,
                extra_content: None,
            }),
            rare: None,
        }
    }
}

impl Template for EventTemplate {
    type Event<'a> = Event<'a>;

    const HAS_SHAPES: bool = true;

    fn repeats(event: &Event<'_>) -> bool {
        let Event::Chunk(chunk) = event else { return false };
        let delta = &chunk.choice.delta;
        let says = delta.content.or(delta.reasoning_content).or(delta.reasoning);
        chunk.has_choice
            && chunk.choice.has_delta
            && chunk.choice.finish_reason.is_none()
            && chunk.usage.is_none()
            && (says.is_some()
                || delta.first_call.is_some()
                || chunk.choice.logprobs.json.is_some())
    }

    fn has_facts(event: &Event<'_>) -> bool {
        let Event::Chunk(chunk) = event else { return false };
        let of_chunk = chunk.rare.as_ref().is_some_and(|rare| !rare.unread.is_empty());
        of_chunk || !chunk.choice.unread.is_empty()
    }

    fn from_event(event: &Event<'_>, tokens: &mut Tokens<'_>) -> Option<Self> {
        let Event::Chunk(chunk) = event else { return None };
        let delta = &chunk.choice.delta;
        let bare = Chunk {
            id: chunk.id,
            model: chunk.model,
            fingerprint: chunk.fingerprint,
            service_tier: chunk.service_tier,
            created: chunk.created,
            has_choice: chunk.has_choice,
            choice: Choice {
                number: chunk.choice.number,
                has_delta: chunk.choice.has_delta,
                delta: Message { rare: None, ..delta.clone() },
                finish_reason: chunk.choice.finish_reason,
                logprobs: ChoiceLogprobs {
                    json: chunk.choice.logprobs.json,
                    tokens: None,
                    unread: false,
                },
                unread: chunk.choice.unread.clone(),
                ..Choice::default()
            },
            other_choices: chunk.other_choices,
            usage: chunk.usage,
            rare: facts_alone(chunk),
            ..Chunk::default()
        };
        if bare != *chunk {
            return None;
        }
        // Identifiers may change from chunk to chunk, but only the first ones count.
        let names = [chunk.id, chunk.model, chunk.fingerprint, chunk.service_tier];
        let mut rarely = |text| tokens.rarely_changing(text);
        let names = names.map(|name| name.map(&mut rarely));
        let finish_reason = chunk.choice.finish_reason.map(&mut rarely);
        let usage = chunk.usage.map(|usage| tokens.raw(usage));
        let created = chunk.created.map(|created| tokens.raw(created));
        let call = match delta.first_call {
            None => None,
            Some(ToolCall {
                index,
                id,
                name,
                arguments: Some(Arguments::Text(text)),
                custom,
                extra_content: None,
            }) => Some(TemplateCall {
                index,
                id: id.map(|id| tokens.rarely_changing(id)),
                name: name.map(|name| tokens.rarely_changing(name)),
                arguments: tokens.changing(text),
                custom,
            }),
            Some(_) => return None,
        };
        Some(Self {
            number: TemplateNumber::new(chunk.choice.number, tokens)?,
            has_choice: chunk.has_choice,
            has_delta: chunk.choice.has_delta,
            other_choices: chunk.other_choices,
            content: delta.content.map(|text| tokens.changing(text)),
            reasoning_content: delta.reasoning_content.map(|text| tokens.changing(text)),
            reasoning: delta.reasoning.map(|text| tokens.changing(text)),
            reasoning_details: delta.reasoning_details.map(|list| tokens.changing_list(list)),
            call,
            logprobs: chunk.choice.logprobs.json.map(|raw| tokens.parsed_object(raw)).is_some(),
            names,
            created,
            finish_reason,
            usage,
        })
    }

    // A single expression lets the compiler build the event in place, without a copy.
    #[inline]
    fn fill<'a>(&self, text: impl Fn(Token) -> Str<'a>) -> Event<'a> {
        Event::More {
            number: self.number.fill(&text).value,
            message: self.message(&text),
            other_choices: self.other_choices,
            logprobs: self.logprobs,
        }
    }

    fn fill_whole<'a>(&self, text: impl Fn(Token) -> Str<'a>) -> Event<'a> {
        let [id, model, fingerprint, service_tier] = self.names.map(|name| name.map(&text));
        Event::Chunk(Chunk {
            id,
            model,
            fingerprint,
            service_tier,
            created: self.created.map(|created| text(created).raw),
            has_choice: self.has_choice,
            choice: Choice {
                number: self.number.fill(&text),
                has_delta: self.has_delta,
                delta: self.message(&text),
                finish_reason: self.finish_reason.map(&text),
                ..Choice::default()
            },
            other_choices: self.other_choices,
            usage: self.usage.map(|usage| text(usage).raw),
            ..Chunk::default()
        })
    }
}
