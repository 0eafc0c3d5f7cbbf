//! Reader of Chat Completions frames: one frame → one [`Event`].

use super::logprobs::ChoiceLogprobs;
use crate::dialect::choices::{ChoiceNumbers, Number, TemplateNumber};
use crate::dialect::protocol::{Frame, Wanted};
use crate::json::{Kind, Reader, Result, Str};
use crate::template::{Template, Token, Tokens};

/// One event, borrowed from its frame.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a box would allocate for every chunk that is read in full"
)]
pub enum Event<'a> {
    /// A chunk with all its members.
    Chunk(Chunk<'a>),
    /// A chunk that matches a template.  Its response id and model are those of an earlier chunk.
    More {
        /// The number of its choice.
        number: u64,
        /// The content of its delta.
        message: Message<'a>,
        /// Log probabilities were read from its frame.
        logprobs: bool,
        /// It holds choices that are not followed.
        other_choices: bool,
    },
}

/// A chunk: the members beside the choices, and the choices that are followed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chunk<'a> {
    pub(super) id: Option<Str<'a>>,
    pub(super) model: Option<Str<'a>>,
    pub(super) fingerprint: Option<Str<'a>>,
    pub(super) service_tier: Option<Str<'a>>,
    /// The frame is a whole response body.
    pub(super) whole: bool,
    pub(super) has_choice: bool,
    pub(super) choice: Choice<'a>,
    pub(super) other_choices: bool,
    pub(super) usage: Option<&'a str>,
    /// The whole frame, if it holds an error and no choices.
    pub(super) failed: Option<&'a str>,
    pub(super) rare: Option<Box<RareMembers<'a>>>,
}

/// Members that few chunks have.  A box of its own keeps the event small.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RareMembers<'a> {
    /// Further entries: other choices that are followed, or the same one again.  One gateway sends the text and the calls of
    /// one answer as separate entries.
    pub(super) more_choices: Vec<Choice<'a>>,
    pub(super) vendor_usage: Option<&'a str>,
    pub(super) timings: Option<&'a str>,
    pub(super) error: Option<&'a str>,
    pub(super) citations: Option<&'a str>,
    pub(super) search_results: Option<&'a str>,
    /// Verdicts of OpenRouter on the calls.
    pub(super) safeguard_results: Option<&'a str>,
    pub(super) opaque: Vec<Opaque<'a>>,
    /// The first entry of a whole body that is not followed: its number and its message.
    pub(super) other_message: Option<(u64, &'a str)>,
}

/// Name and JSON of a member that is kept as it came.
pub(super) type Opaque<'a> = (&'static str, &'a str);

/// Members beside log probabilities that training needs and no other stage reads: the tokens of the prompt, and what vLLM
/// and SGLang say of a token's way through the model.
///
/// Sources: `ChatCompletionStreamResponse` of vLLM, `ChatCompletionStreamResponse` of SGLang.
const OPAQUE: [&str; 9] = [
    "prompt_token_ids",
    "prompt_logprobs",
    "routed_experts",
    "sglext",
    "meta_info",
    "hidden_states",
    "kv_transfer_params",
    "stop_reason",
    "matched_stop",
];

/// Read a member that no other reader knows.  Opaque members are kept if log probabilities are wanted.
fn read_other<'a>(
    reader: &mut Reader<'a>,
    key: &str,
    wanted: Wanted,
    keep: impl FnOnce(Opaque<'a>),
) -> Result<()> {
    match OPAQUE.iter().find(|name| wanted.logprobs && **name == key) {
        Some(name) => {
            if let Some(value) = reader.opt_raw()? {
                keep((name, value));
            }
            Ok(())
        }
        None => reader.ignore(),
    }
}

/// Set a member of a boxed struct.  Without a value, the box is not allocated.
fn put<R: Default, T>(
    rare: &mut Option<Box<R>>,
    member: impl FnOnce(&mut R) -> &mut Option<T>,
    value: Option<T>,
) {
    if value.is_some() {
        *member(rare.get_or_insert_default()) = value;
    }
}

/// A choice.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Choice<'a> {
    pub(super) number: Number<'a>,
    pub(super) has_delta: bool,
    pub(super) delta: Message<'a>,
    /// A full message.  It repeats `delta`, or replaces it in a whole body.
    pub(super) message: Option<&'a str>,
    pub(super) finish_reason: Option<Str<'a>>,
    /// Log probabilities; read only if the caller wants them.
    pub(super) logprobs: ChoiceLogprobs<'a>,
    pub(super) usage: Option<&'a str>,
    #[expect(clippy::box_collection, reason = "few chunks have one, and the event stays small")]
    pub(super) opaque: Option<Box<Vec<Opaque<'a>>>>,
}

/// The `delta` of a chunk, or the `message` of a whole body.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message<'a> {
    pub(super) content: Option<Str<'a>>,
    pub(super) reasoning_content: Option<Str<'a>>,
    pub(super) reasoning: Option<Str<'a>>,
    pub(super) reasoning_details: Option<&'a str>,
    pub(super) first_call: Option<ToolCall<'a>>,
    pub(super) rare: Option<Box<RareContent<'a>>>,
}

/// Members that few messages have.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RareContent<'a> {
    pub(super) content_list: Option<&'a str>,
    pub(super) refusal: Option<Str<'a>>,
    pub(super) thinking_blocks: Option<&'a str>,
    pub(super) more_calls: Vec<ToolCall<'a>>,
    pub(super) annotations: Option<&'a str>,
    pub(super) audio: Option<&'a str>,
    pub(super) images: Option<&'a str>,
    pub(super) extra_content: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ToolCall<'a> {
    pub(super) index: Option<i64>,
    pub(super) id: Option<Str<'a>>,
    pub(super) name: Option<Str<'a>>,
    pub(super) arguments: Option<Arguments<'a>>,
    pub(super) custom: bool,
    pub(super) extra_content: Option<&'a str>,
}

/// Arguments of a call.  Usually a JSON text in a string; some gateways send the object itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Arguments<'a> {
    Text(Str<'a>),
    Json(&'a str),
}

impl<'a> Chunk<'a> {
    /// Return the first entry of a whole body that does not belong to an answer: its number and its message.
    pub(super) fn other_message(&self, number: u64) -> Option<(u64, &'a str)> {
        let other = |choice: &Choice<'a>| {
            choice
                .message
                .filter(|_| choice.number.value != number)
                .map(|m| (choice.number.value, m))
        };
        let skipped = self.rare.as_ref().and_then(|rare| rare.other_message);
        skipped.or_else(|| self.choices().find_map(other))
    }

    /// Return the choices that are followed, in their order.
    pub(super) fn choices(&self) -> impl Iterator<Item = &Choice<'a>> {
        let more = self.rare.as_ref().map_or(&[][..], |rare| &rare.more_choices);
        Some(&self.choice).filter(|_| self.has_choice).into_iter().chain(more)
    }
}

/// Read a frame.
pub(super) fn read<'a>(
    frame: Frame<'a>,
    reader: &mut Reader<'a>,
    wanted: Wanted,
) -> Result<Event<'a>> {
    let mut chunk = Chunk::default();
    let mut has_choices = false;
    let mut error_like = frame.name == "error";
    reader.object(|reader, key| {
        match key {
            "id" => chunk.id = reader.id()?,
            "model" => chunk.model = reader.filled_string()?,
            "system_fingerprint" => chunk.fingerprint = reader.filled_string()?,
            "service_tier" => chunk.service_tier = reader.filled_string()?,
            "object" => {
                let object = reader.opt_string()?.map_or("", |object| object.raw);
                chunk.whole = object == "chat.completion";
                error_like |= object == "error";
            }
            "choices" => {
                has_choices = true;
                let mut numbers = ChoiceNumbers::default();
                reader
                    .maybe_array(|reader| read_choice(reader, wanted, &mut numbers, &mut chunk))?;
            }
            "usage" => chunk.usage = reader.opt_raw()?,
            "x_groq" => reader.maybe_object(|reader, key| {
                match key {
                    "usage" => {
                        put(&mut chunk.rare, |rare| &mut rare.vendor_usage, reader.opt_raw()?);
                    }
                    _ => reader.ignore()?,
                }
                Ok(())
            })?,
            "timings" => put(&mut chunk.rare, |rare| &mut rare.timings, reader.opt_raw()?),
            // Some servers always send this member: an empty string or `false` means that there was no error.
            "error" => {
                let error = reader.opt_raw()?.filter(|raw| !matches!(*raw, "\"\"" | "false"));
                put(&mut chunk.rare, |rare| &mut rare.error, error);
            }
            "detail" | "errors" => error_like |= reader.opt_raw()?.is_some(),
            "type" => error_like |= reader.opt_string()?.is_some_and(|kind| kind.raw == "error"),
            "citations" => put(&mut chunk.rare, |rare| &mut rare.citations, reader.opt_raw()?),
            "search_results" => {
                put(&mut chunk.rare, |rare| &mut rare.search_results, reader.opt_raw()?);
            }
            "safeguard_results" => {
                put(&mut chunk.rare, |rare| &mut rare.safeguard_results, reader.opt_raw()?);
            }
            key => {
                let rare = &mut chunk.rare;
                read_other(reader, key, wanted, |member| {
                    rare.get_or_insert_default().opaque.push(member);
                })?;
            }
        }
        Ok(())
    })?;
    reader.end()?;
    let bare = !chunk.has_choice && !chunk.other_choices;
    if bare
        && (chunk.rare.as_ref().is_some_and(|rare| rare.error.is_some())
            || (error_like && !has_choices))
    {
        chunk.failed = Some(frame.json);
    }
    Ok(Event::Chunk(chunk))
}

fn read_choice<'a>(
    reader: &mut Reader<'a>,
    wanted: Wanted,
    numbers: &mut ChoiceNumbers,
    chunk: &mut Chunk<'a>,
) -> Result<()> {
    let mut further = Choice::default();
    let choice = if chunk.has_choice { &mut further } else { &mut chunk.choice };
    let mut index = None;
    let mut raw_index = "";
    reader.maybe_object(|reader, key| {
        match key {
            "index" => {
                let start = reader.position();
                index = reader.count()?;
                raw_index = reader.since(start);
            }
            "delta" if reader.kind()? == Kind::Object => {
                choice.has_delta = true;
                read_message(reader, &mut choice.delta)?;
            }
            "message" if reader.kind()? == Kind::Object => choice.message = Some(reader.raw()?),
            // Some gateways name it as their own API does.
            "finish_reason" | "finishReason" => {
                choice.finish_reason = reader.filled_string()?.or(choice.finish_reason);
            }
            "logprobs" if wanted.logprobs => {
                choice.logprobs.read(reader, choice.message.is_some())?;
            }
            "token_ids" if wanted.logprobs => choice.logprobs.read_ids(reader)?,
            // Not wanted.  `skip`, unlike `ignore`, does not trace scalars: a template with a hole per number is useless.
            "logprobs" => reader.skip()?,
            "usage" => choice.usage = reader.opt_raw()?,
            key => {
                let opaque = &mut choice.opaque;
                read_other(reader, key, wanted, |member| {
                    opaque.get_or_insert_default().push(member);
                })?;
            }
        }
        Ok(())
    })?;
    if let Some(tokens) = &mut choice.logprobs.tokens {
        tokens.join();
    }
    match (numbers.next(index, raw_index, wanted.followed), chunk.has_choice) {
        (Some(number), false) => {
            chunk.choice.number = number;
            chunk.has_choice = true;
        }
        (Some(number), true) => {
            further.number = number;
            chunk.rare.get_or_insert_default().more_choices.push(further);
        }
        (None, has_choice) => {
            let message =
                if has_choice { further } else { std::mem::take(&mut chunk.choice) }.message;
            if let Some(message) = message {
                let rare = chunk.rare.get_or_insert_default();
                rare.other_message.get_or_insert((numbers.last(), message));
            }
            chunk.other_choices = true;
        }
    }
    Ok(())
}

/// Read the members of a `delta`, or of the full `message` that replaces it.
pub(super) fn read_message<'a>(reader: &mut Reader<'a>, message: &mut Message<'a>) -> Result<()> {
    let mut flat = ToolCall::default();
    reader.object(|reader, key| {
        match key {
            "content" => match reader.kind()? {
                Kind::Array => {
                    put(&mut message.rare, |rare| &mut rare.content_list, Some(reader.raw()?));
                }
                _ => message.content = reader.filled_string()?,
            },
            "refusal" => put(&mut message.rare, |rare| &mut rare.refusal, reader.filled_string()?),
            "reasoning_content" => message.reasoning_content = reader.filled_string()?,
            "reasoning" => message.reasoning = reader.filled_string()?,
            "reasoning_details" => message.reasoning_details = reader.opt_raw()?,
            "thinking_blocks" => {
                put(&mut message.rare, |rare| &mut rare.thinking_blocks, reader.opt_raw()?);
            }
            "tool_calls" if reader.kind()? == Kind::Object => {
                let call = read_tool_call(reader)?;
                message.add_call(call);
            }
            "tool_calls" => reader.maybe_array(|reader| {
                let call = read_tool_call(reader)?;
                message.add_call(call);
                Ok(())
            })?,
            "function_call" if reader.kind()? == Kind::Object => {
                let mut call = ToolCall { index: Some(-1), ..ToolCall::default() };
                read_function(reader, &mut call)?;
                message.add_call(call);
            }
            "annotations" => {
                put(&mut message.rare, |rare| &mut rare.annotations, reader.opt_raw()?);
            }
            "audio" => put(&mut message.rare, |rare| &mut rare.audio, reader.opt_raw()?),
            "images" => put(&mut message.rare, |rare| &mut rare.images, reader.opt_raw()?),
            "extra_content" => {
                put(&mut message.rare, |rare| &mut rare.extra_content, reader.opt_raw()?);
            }
            // Snowflake has one call in the delta itself; its name comes with its id.
            "tool_use_id" => flat.id = reader.scalar()?.filter(is_call_id),
            "name" if reader.kind()? == Kind::String => flat.name = reader.filled_string()?,
            "input" if reader.kind()? == Kind::String => {
                flat.arguments = reader.filled_string()?.map(Arguments::Text);
            }
            _ => reader.ignore()?,
        }
        Ok(())
    })?;
    if flat.id.is_some() || flat.arguments.is_some() {
        message.add_call(flat);
    }
    Ok(())
}

impl<'a> Message<'a> {
    fn add_call(&mut self, call: ToolCall<'a>) {
        match self.first_call {
            None => self.first_call = Some(call),
            Some(_) => self.rare.get_or_insert_default().more_calls.push(call),
        }
    }
}

fn read_tool_call<'a>(reader: &mut Reader<'a>) -> Result<ToolCall<'a>> {
    let mut call = ToolCall::default();
    reader.maybe_object(|reader, key| {
        match key {
            "index" => call.index = reader.integer()?,
            "id" => call.id = reader.scalar()?.filter(is_call_id),
            "function" => read_function(reader, &mut call)?,
            "custom" => {
                call.custom = reader.kind()? == Kind::Object;
                read_function(reader, &mut call)?;
            }
            "extra_content" => call.extra_content = reader.opt_raw()?,
            _ => reader.ignore()?,
        }
        Ok(())
    })?;
    Ok(call)
}

/// Return whether a text is an id.  Mistral writes `"null"` if a call has no id yet.
fn is_call_id(id: &Str<'_>) -> bool {
    !id.is_empty() && id.raw != "null"
}

fn read_function<'a>(reader: &mut Reader<'a>, call: &mut ToolCall<'a>) -> Result<()> {
    reader.maybe_object(|reader, key| {
        match key {
            "name" => call.name = reader.filled_string()?,
            "arguments" | "input" => {
                call.arguments = match reader.kind()? {
                    Kind::String => Some(Arguments::Text(reader.string()?)),
                    _ => reader.opt_raw()?.map(Arguments::Json),
                }
            }
            _ => reader.ignore()?,
        }
        Ok(())
    })
}

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

    fn from_event(event: &Event<'_>, tokens: &mut Tokens<'_>) -> Option<Self> {
        let Event::Chunk(chunk) = event else { return None };
        let delta = &chunk.choice.delta;
        let bare = Chunk {
            id: chunk.id,
            model: chunk.model,
            fingerprint: chunk.fingerprint,
            service_tier: chunk.service_tier,
            has_choice: chunk.has_choice,
            choice: Choice {
                number: chunk.choice.number,
                has_delta: chunk.choice.has_delta,
                delta: Message { rare: None, ..delta.clone() },
                finish_reason: chunk.choice.finish_reason,
                logprobs: ChoiceLogprobs { json: chunk.choice.logprobs.json, tokens: None },
                ..Choice::default()
            },
            other_choices: chunk.other_choices,
            usage: chunk.usage,
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
