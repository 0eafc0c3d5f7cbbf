//! One Chat Completions frame → [`Event`].

use crate::dialect::Frame;
use crate::wire::{Kind, Reader, Result, Str};

/// One event, borrowed from its frame: what stands beside the choices, and the choice that is followed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event<'a> {
    pub(super) id: Option<Str<'a>>,
    pub(super) model: Option<Str<'a>>,
    /// The frame is a whole response body.
    pub(super) whole: bool,
    pub(super) has_choice: bool,
    pub(super) choice: Choice<'a>,
    pub(super) other_choices: bool,
    pub(super) usage: Option<&'a str>,
    pub(super) vendor_usage: Option<&'a str>,
    pub(super) timings: Option<&'a str>,
    pub(super) error: Option<&'a str>,
    /// The whole frame, where it is an error and nothing else.
    pub(super) failed: Option<&'a str>,
    pub(super) citations: Option<&'a str>,
    pub(super) search_results: Option<&'a str>,
}

/// A choice.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Choice<'a> {
    pub(super) has_delta: bool,
    pub(super) delta: Message<'a>,
    /// A full message: repeats `delta`, or stands in for it in a whole body.
    pub(super) message: Option<&'a str>,
    pub(super) finish_reason: Option<Str<'a>>,
    pub(super) logprobs: Option<&'a str>,
    pub(super) usage: Option<&'a str>,
}

/// `delta`, or `message` of a whole body.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Message<'a> {
    pub(super) content: Option<Str<'a>>,
    pub(super) content_list: Option<&'a str>,
    pub(super) refusal: Option<Str<'a>>,
    pub(super) reasoning_content: Option<Str<'a>>,
    pub(super) reasoning: Option<Str<'a>>,
    pub(super) reasoning_details: Option<&'a str>,
    pub(super) thinking_blocks: Option<&'a str>,
    pub(super) first_call: Option<ToolCall<'a>>,
    pub(super) more_calls: Vec<ToolCall<'a>>,
    pub(super) annotations: Option<&'a str>,
    pub(super) audio: Option<&'a str>,
    pub(super) images: Option<&'a str>,
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

/// Arguments come as text; some gateways send the object itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Arguments<'a> {
    Text(Str<'a>),
    Json(&'a str),
}

/// Reads a frame, following choice number `wanted`.
pub fn read(frame: Frame<'_>, wanted: u64) -> Result<Event<'_>> {
    let mut chunk = Event::default();
    let mut has_choices = false;
    let mut error_like = frame.name == "error";
    let mut reader = Reader::new(frame.json, frame.max_depth);
    reader.object(|reader, key| {
        match key {
            "id" => chunk.id = reader.scalar()?.filter(|id| !id.is_empty()),
            "model" => chunk.model = reader.filled_string()?,
            "object" => {
                let object = reader.opt_string()?.map_or("", |object| object.raw);
                chunk.whole = object == "chat.completion";
                error_like |= object == "error";
            }
            "choices" => {
                has_choices = true;
                reader.maybe_array(|reader| read_choice(reader, wanted, &mut chunk))?;
            }
            "usage" => chunk.usage = reader.opt_raw()?,
            "x_groq" => reader.maybe_object(|reader, key| {
                match key {
                    "usage" => chunk.vendor_usage = reader.opt_raw()?,
                    _ => reader.skip()?,
                }
                Ok(())
            })?,
            "timings" => chunk.timings = reader.opt_raw()?,
            "error" => chunk.error = reader.opt_raw()?,
            "detail" | "errors" => error_like |= reader.opt_raw()?.is_some(),
            "type" => error_like |= reader.opt_string()?.is_some_and(|kind| kind.raw == "error"),
            "citations" => chunk.citations = reader.opt_raw()?,
            "search_results" => chunk.search_results = reader.opt_raw()?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    reader.end()?;
    let bare = !chunk.has_choice && !chunk.other_choices;
    if bare && (chunk.error.is_some() || (error_like && !has_choices)) {
        chunk.failed = Some(frame.json);
    }
    Ok(chunk)
}

fn read_choice<'a>(reader: &mut Reader<'a>, wanted: u64, chunk: &mut Event<'a>) -> Result<()> {
    if chunk.has_choice {
        chunk.other_choices = true;
        return reader.skip();
    }
    let choice = &mut chunk.choice;
    let mut index = 0;
    reader.maybe_object(|reader, key| {
        match key {
            "index" => index = reader.count()?.unwrap_or(0),
            "delta" if reader.kind()? == Kind::Object => {
                choice.has_delta = true;
                read_message(reader, &mut choice.delta)?;
            }
            "message" if reader.kind()? == Kind::Object => choice.message = Some(reader.raw()?),
            "finish_reason" => choice.finish_reason = reader.filled_string()?,
            "logprobs" => choice.logprobs = reader.opt_raw()?,
            "usage" => choice.usage = reader.opt_raw()?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    if index == wanted {
        chunk.has_choice = true;
    } else {
        chunk.choice = Choice::default();
        chunk.other_choices = true;
    }
    Ok(())
}

/// Reads the members of a `delta`, or of the full `message` that stands in for one.
pub(super) fn read_message<'a>(reader: &mut Reader<'a>, message: &mut Message<'a>) -> Result<()> {
    reader.object(|reader, key| {
        match key {
            "content" => match reader.kind()? {
                Kind::Array => message.content_list = Some(reader.raw()?),
                _ => message.content = reader.filled_string()?,
            },
            "refusal" => message.refusal = reader.filled_string()?,
            "reasoning_content" => message.reasoning_content = reader.filled_string()?,
            "reasoning" => message.reasoning = reader.filled_string()?,
            "reasoning_details" => message.reasoning_details = reader.opt_raw()?,
            "thinking_blocks" => message.thinking_blocks = reader.opt_raw()?,
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
            "annotations" => message.annotations = reader.opt_raw()?,
            "audio" => message.audio = reader.opt_raw()?,
            "images" => message.images = reader.opt_raw()?,
            _ => reader.skip()?,
        }
        Ok(())
    })
}

impl<'a> Message<'a> {
    fn add_call(&mut self, call: ToolCall<'a>) {
        match self.first_call {
            None => self.first_call = Some(call),
            Some(_) => self.more_calls.push(call),
        }
    }
}

fn read_tool_call<'a>(reader: &mut Reader<'a>) -> Result<ToolCall<'a>> {
    let mut call = ToolCall::default();
    reader.maybe_object(|reader, key| {
        match key {
            "index" => call.index = reader.integer()?,
            "id" => call.id = reader.scalar()?.filter(|id| !id.is_empty()),
            "function" => read_function(reader, &mut call)?,
            "custom" => {
                call.custom = reader.kind()? == Kind::Object;
                read_function(reader, &mut call)?;
            }
            "extra_content" => call.extra_content = reader.opt_raw()?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(call)
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
            _ => reader.skip()?,
        }
        Ok(())
    })
}
