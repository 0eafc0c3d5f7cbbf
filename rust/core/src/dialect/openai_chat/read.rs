//! Reader of Chat Completions frames: one frame → one [`Event`].

use super::filters;
use super::logprobs::ChoiceLogprobs;
use crate::dialect::choices::{ChoiceNumbers, Number};
use crate::dialect::protocol::{Frame, Wanted};
use crate::dialect::unread::Unread;
use crate::json::{Kind, Reader, Result, Str};

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
    /// Time of the answer, in seconds since 1970.
    pub(super) created: Option<&'a str>,
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
    /// Facts of the answer that no rule knows.
    pub(super) unread: Unread<'a>,
    /// The first entry of a whole body that is not followed: its number and its message.
    pub(super) other_message: Option<(u64, &'a str)>,
    /// Name of the foreign protocol whose entries are in the list.
    pub(super) foreign: Option<&'static str>,
}

/// Members beside log probabilities that training needs and no other stage reads: the tokens of the prompt, and what vLLM
/// and SGLang say of a token's way through the model.
///
/// Sources: `ChatCompletionStreamResponse` of vLLM, `ChatCompletionStreamResponse` of SGLang.
const OPAQUE: [&str; 8] = [
    "prompt_token_ids",
    "prompt_logprobs",
    "routed_experts",
    "sglext",
    "meta_info",
    "hidden_states",
    "kv_transfer_params",
    "matched_stop",
];

const TEXT_COMPLETIONS: &str = "text completions (choices[].text)";
const TOKENS: &str = "an answer of vLLM's /inference/v1/generate (choices[].token_ids)";

/// Read a member that no other reader knows.  Opaque members are kept if log probabilities are wanted.
fn read_other<'a>(
    reader: &mut Reader<'a>,
    key: &str,
    wanted: Wanted,
    unread: &mut Unread<'a>,
) -> Result<()> {
    match OPAQUE.iter().find(|name| **name == key) {
        None => unread.fact(reader, key)?,
        Some(name) if wanted.logprobs => {
            if let Some(value) = reader.opt_raw()? {
                unread.first(name, value);
            }
        }
        Some(_) => reader.ignore()?,
    }
    Ok(())
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
    /// A stop string ended the answer.
    pub(super) names_a_stop_string: bool,
    /// Results of Azure's filters: those that say something, and those of the end.
    pub(super) filter_results: Option<&'a str>,
    /// Facts of the answer, and members of its content, that no rule knows.
    pub(super) unread: Unread<'a>,
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
    /// What Groq's own tools did.
    pub(super) executed_tools: Option<&'a str>,
    pub(super) extra_content: Option<&'a str>,
    /// Portkey's copy of the blocks of Messages, if they think.
    pub(super) content_blocks: Option<&'a str>,
    /// LiteLLM's members of one provider, if they cite.
    pub(super) provider_fields: Option<&'a str>,
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

/// Return whether MiniMax's `base_resp` is a failure.  It is in every answer.
fn is_failed_base(json: &str) -> bool {
    let mut failed = false;
    let _ = Reader::trusted(json).maybe_object(|reader, key| {
        match key {
            "status_code" => failed = reader.integer()?.is_some_and(|code| code != 0),
            _ => reader.skip()?,
        }
        Ok(())
    });
    failed
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
    let (mut is_coded, mut has_words) = (false, false);
    let mut unread = Unread::default();
    reader.object(|reader, key| {
        match key {
            "id" => chunk.id = reader.id()?,
            "model" => chunk.model = reader.filled_string()?,
            "system_fingerprint" => chunk.fingerprint = reader.filled_string()?,
            "service_tier" => chunk.service_tier = reader.filled_string()?,
            "created" if reader.kind()? == Kind::Number => chunk.created = Some(reader.raw()?),
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
            "x_groq" => {
                let start = reader.position();
                reader.maybe_object(|reader, key| {
                    match key {
                        "usage" => {
                            put(&mut chunk.rare, |rare| &mut rare.vendor_usage, reader.opt_raw()?);
                        }
                        _ => reader.ignore()?,
                    }
                    Ok(())
                })?;
                unread.add("x_groq", reader.since(start));
            }
            "timings" => put(&mut chunk.rare, |rare| &mut rare.timings, reader.opt_raw()?),
            // Some servers always send this member: an empty string or `false` means that there was no error.
            "error" => {
                let error = reader.opt_raw()?.filter(|raw| !matches!(*raw, "\"\"" | "false"));
                put(&mut chunk.rare, |rare| &mut rare.error, error);
            }
            "detail" | "errors" => {
                error_like |= reader.opt_raw()?.is_some_and(|raw| raw != "[]");
            }
            // Errors with status 200: Baidu's own API and Tencent Cloud's.
            "error_msg" => error_like |= reader.opt_raw()?.is_some(),
            "Response" => reader.maybe_object(|reader, key| {
                error_like |= key == "Error";
                reader.skip()
            })?,
            // iFlytek's, Zhipu's and others' have a code beside their message; 0 is none.
            "code" => is_coded = reader.scalar()?.is_some_and(|code| code.raw != "0"),
            "message" | "msg" => has_words = reader.opt_raw()?.is_some(),
            "base_resp" => {
                let base = reader.opt_raw()?;
                let failed = base.filter(|base| is_failed_base(base));
                put(&mut chunk.rare, |rare| &mut rare.error, failed);
            }
            "type" => error_like |= reader.opt_string()?.is_some_and(|kind| kind.raw == "error"),
            "citations" => put(&mut chunk.rare, |rare| &mut rare.citations, reader.opt_raw()?),
            "search_results" => {
                put(&mut chunk.rare, |rare| &mut rare.search_results, reader.opt_raw()?);
            }
            // Azure's, of the request.
            "prompt_filter_results" => {
                if let Some(results) = reader.opt_raw()?.filter(|results| *results != "[]") {
                    unread.first("prompt_filter_results", results);
                }
            }
            "safeguard_results" => {
                put(&mut chunk.rare, |rare| &mut rare.safeguard_results, reader.opt_raw()?);
            }
            // The padding of each chunk.
            "obfuscation" | "p" => reader.ignore()?,
            key => read_other(reader, key, wanted, &mut unread)?,
        }
        Ok(())
    })?;
    reader.end()?;
    if !unread.is_empty() {
        chunk.rare.get_or_insert_default().unread = unread;
    }
    error_like |= is_coded && has_words;
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
    let mut foreign = None;
    reader.maybe_object(|reader, key| {
        match key {
            "index" => {
                let start = reader.position();
                index = reader.count()?;
                raw_index = reader.since(start);
            }
            "delta" if reader.kind()? == Kind::Object => {
                choice.has_delta = true;
                read_message(reader, &mut choice.delta, &mut choice.unread)?;
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
            "logprobs" => choice.logprobs.unread |= Wanted::pass_over_logprobs(reader)?,
            "usage" => choice.usage = reader.opt_raw()?,
            "content_filter_results" => choice.filter_results = reader.opt_raw()?,
            // vLLM names the stop string that ended the answer, or the number of a token.
            "stop_reason" => {
                let reason = reader.opt_raw()?;
                choice.names_a_stop_string |= reason.is_some_and(|text| text.starts_with('"'));
                if let Some(reason) = reason.filter(|_| wanted.logprobs) {
                    choice.unread.first("stop_reason", reason);
                }
            }
            "text" if reader.kind()? == Kind::String => {
                foreign = Some(TEXT_COMPLETIONS);
                reader.skip()?;
            }
            "token_ids" => {
                foreign = foreign.or(Some(TOKENS));
                reader.skip()?;
            }
            key => read_other(reader, key, wanted, &mut choice.unread)?,
        }
        Ok(())
    })?;
    if let Some(tokens) = &mut choice.logprobs.tokens {
        tokens.join();
    }
    if choice.finish_reason.is_none() {
        choice.filter_results = choice.filter_results.filter(|results| filters::tell(results));
    }
    let foreign = foreign.filter(|_| !choice.has_delta && choice.message.is_none());
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
    put(&mut chunk.rare, |rare| &mut rare.foreign, foreign);
    Ok(())
}

/// Read the members of a `delta`, or of the full `message` that replaces it.
pub(super) fn read_message<'a>(
    reader: &mut Reader<'a>,
    message: &mut Message<'a>,
    unread: &mut Unread<'a>,
) -> Result<()> {
    let mut function = None;
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
                let call = read_tool_call(reader, unread)?;
                message.add_call(call);
            }
            "tool_calls" => reader.maybe_array(|reader| {
                let call = read_tool_call(reader, unread)?;
                message.add_call(call);
                Ok(())
            })?,
            "function_call" if reader.kind()? == Kind::Object => {
                let mut call = ToolCall { index: Some(FUNCTION), ..ToolCall::default() };
                read_function(reader, &mut call, unread)?;
                function = Some(call);
            }
            "annotations" => {
                put(&mut message.rare, |rare| &mut rare.annotations, reader.opt_raw()?);
            }
            "audio" => put(&mut message.rare, |rare| &mut rare.audio, reader.opt_raw()?),
            "images" => put(&mut message.rare, |rare| &mut rare.images, reader.opt_raw()?),
            "executed_tools" => {
                put(&mut message.rare, |rare| &mut rare.executed_tools, reader.opt_raw()?);
            }
            "extra_content" => {
                put(&mut message.rare, |rare| &mut rare.extra_content, reader.opt_raw()?);
            }
            "content_blocks" => {
                let blocks = reader.ignored_raw()?;
                let thinks = ["\"thinking\"", "\"signature\"", "\"redacted_thinking\""];
                let blocks = Some(blocks).filter(|json| thinks.iter().any(|t| json.contains(t)));
                put(&mut message.rare, |rare| &mut rare.content_blocks, blocks);
            }
            "provider_specific_fields" => {
                let fields = Some(reader.ignored_raw()?);
                let fields = fields.filter(|fields| fields.contains("\"citation"));
                put(&mut message.rare, |rare| &mut rare.provider_fields, fields);
            }
            // Snowflake has one call in the delta itself; its name comes with its id.
            "tool_use_id" => flat.id = reader.scalar()?.filter(is_call_id),
            "name" if reader.kind()? == Kind::String => flat.name = reader.filled_string()?,
            "input" if reader.kind()? == Kind::String => {
                flat.arguments = reader.filled_string()?.map(Arguments::Text);
            }
            // The speaker, the kind of a call or of a content where a server has them in the delta itself, and Together's
            // number of the token, another one in each delta.
            "role" | "type" | "token_id" => reader.ignore()?,
            key => unread.content(reader, key)?,
        }
        Ok(())
    })?;
    // llama-cpp-python mirrors each call in this older member.
    if let Some(call) = function.filter(|_| message.first_call.is_none()) {
        message.add_call(call);
    }
    if flat.id.is_some() || flat.arguments.is_some() {
        message.add_call(flat);
    }
    Ok(())
}

/// The index of the call of the older member `function_call`.
pub(super) const FUNCTION: i64 = -1;

impl<'a> Message<'a> {
    fn add_call(&mut self, call: ToolCall<'a>) {
        match self.first_call {
            None => self.first_call = Some(call),
            Some(_) => self.rare.get_or_insert_default().more_calls.push(call),
        }
    }
}

fn read_tool_call<'a>(reader: &mut Reader<'a>, unread: &mut Unread<'a>) -> Result<ToolCall<'a>> {
    let mut call = ToolCall::default();
    reader.maybe_object(|reader, key| {
        match key {
            "index" => call.index = reader.integer()?,
            "id" => call.id = reader.scalar()?.filter(is_call_id),
            "function" => read_function(reader, &mut call, unread)?,
            "custom" => {
                call.custom = reader.kind()? == Kind::Object;
                read_function(reader, &mut call, unread)?;
            }
            "extra_content" => call.extra_content = reader.opt_raw()?,
            "type" => reader.ignore()?,
            key => unread.dropped(reader, key)?,
        }
        Ok(())
    })?;
    Ok(call)
}

/// Return whether a text is an id.  Mistral writes `"null"` if a call has no id yet.
pub(super) fn is_call_id(id: &Str<'_>) -> bool {
    !id.is_empty() && id.raw != "null"
}

fn read_function<'a>(
    reader: &mut Reader<'a>,
    call: &mut ToolCall<'a>,
    unread: &mut Unread<'a>,
) -> Result<()> {
    reader.maybe_object(|reader, key| {
        match key {
            "name" => call.name = reader.filled_string()?,
            "arguments" | "input" => {
                call.arguments = match reader.kind()? {
                    Kind::String => Some(Arguments::Text(reader.string()?)),
                    _ => reader.opt_raw()?.map(Arguments::Json),
                }
            }
            key => unread.dropped(reader, key)?,
        }
        Ok(())
    })
}
