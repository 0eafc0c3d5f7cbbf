//! Grammar of an OpenAI Chat Completions stream (docs/protocols/encoding.md#openai-chat).
//!
//! In: events of server-sent events without names.  Out: the first broken rule.
//!
//! Laws: the head of each answer comes first and once.  Calls are serial and their indexes dense.  The finish comes once, and
//! behind the last one at most the usage chunk, then `[DONE]`.  Nothing follows an error.

use super::answers::Answers;
use super::event::Event;
use super::kept::Ids;
use super::logprobs::{self, Form};
use super::tree::{Node, Rule, Value};

/// Values of `error.type`.
const ERROR_TYPES: [&str; 3] = ["invalid_request_error", "rate_limit_error", "server_error"];
const FINISH_REASONS: [&str; 5] =
    ["stop", "length", "tool_calls", "content_filter", "function_call"];

/// Checker of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OpenaiChat {
    stage: Stage,
    id: String,
    created: u64,
    /// True if the head had `usage: null`, which announces the usage chunk.
    has_usage: bool,
    pub(super) answers: Answers<Answer>,
}

/// State of one answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    state: State,
    /// The member that carries thinking.
    thinking: Option<&'static str>,
    annotated: bool,
    images: u64,
    /// True after the first chunk with `thinking_blocks`.
    thinking_blocks: bool,
    call_ids: Ids,
    calls: u64,
    /// Form of the last call.
    form: CallForm,
}

/// Form of the arguments of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CallForm {
    #[default]
    Json,
    Text,
}

impl CallForm {
    /// Return the form of a call that has its `type`.
    fn of(call: &Node<'_>) -> Rule<Self> {
        Ok(match call.one_of("type", &["function", "custom"])? {
            "custom" => Self::Text,
            _ => Self::Json,
        })
    }

    /// Return the member of the call and its member for the arguments.
    fn places(self) -> (&'static str, &'static str) {
        match self {
            Self::Json => ("function", "arguments"),
            Self::Text => ("custom", "input"),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Before the head.
    #[default]
    Begin,
    /// After the head.
    Open,
    /// After the finish reason.
    Finished,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Before all chunks.
    #[default]
    Begin,
    /// After a chunk.
    Open,
    /// After the usage chunk.
    Counted,
    /// After `[DONE]` or an error.
    Ended,
}

impl OpenaiChat {
    /// Check the next event.
    pub(super) fn read(&mut self, event: Event<'_>) -> Rule {
        let data = event.unnamed()?;
        if self.stage == Stage::Ended {
            return Err("nothing may follow `[DONE]` or an error".to_owned());
        }
        let Some(data) = data else { return Ok(()) };
        if data == "[DONE]" {
            if !self.finished() {
                return Err("`[DONE]` before the finish reason".to_owned());
            }
            self.stage = Stage::Ended;
            return Ok(());
        }
        let value = Value::parse(data)?;
        let chunk = Node::root(&value);
        if chunk.has("error") {
            if self.stage == Stage::Begin {
                return Err("the head must come before an error".to_owned());
            }
            self.stage = Stage::Ended;
            return error(&chunk);
        }
        self.chunk(&chunk)
    }

    /// Check the end of the body.
    pub(super) fn close(&self) -> Rule {
        if self.stage == Stage::Ended {
            Ok(())
        } else {
            Err("the stream ends without `[DONE]` or an error".to_owned())
        }
    }

    fn chunk(&mut self, chunk: &Node<'_>) -> Rule {
        chunk.is("object", "chat.completion.chunk")?;
        chunk.text("model")?;
        let (id, created) = (chunk.filled("id")?, chunk.count("created")?);
        if self.stage == Stage::Begin {
            self.stage = Stage::Open;
            id.clone_into(&mut self.id);
            self.created = created;
            self.has_usage = chunk.has("usage");
        } else {
            chunk.repeats("id", &self.id)?;
            chunk.counts("created", self.created)?;
        }
        let choices = chunk.list("choices")?;
        let [choice] = choices.as_slice() else {
            return self.usage(chunk, choices.len());
        };
        if self.has_usage {
            chunk.null("usage")?;
        } else {
            chunk.absent("usage", "the head has none")?;
        }
        if self.stage != Stage::Open {
            return Err("only `[DONE]` may follow the usage chunk".to_owned());
        }
        self.answers.of(choice)?.read(choice)
    }

    /// Return true if all answers have their finish reason.
    fn finished(&self) -> bool {
        self.answers.all(|answer| answer.state == State::Finished)
    }

    fn usage(&mut self, chunk: &Node<'_>, choices: usize) -> Rule {
        if choices != 0 {
            return Err(format!("`choices` must hold one choice (got {choices})"));
        }
        if !self.finished() || self.stage != Stage::Open {
            return Err("a chunk without a choice is the usage chunk, once after the finish".into());
        }
        if !self.has_usage {
            return Err("the usage chunk was not announced by `usage: null` in the head".into());
        }
        counts(&chunk.object("usage")?)?;
        self.stage = Stage::Counted;
        Ok(())
    }
}

impl Answer {
    fn read(&mut self, choice: &Node<'_>) -> Rule {
        let delta = choice.object("delta")?;
        let tokens = tokens(&choice.at("logprobs")?)?;
        let reason = choice.text_or_null("finish_reason")?;
        match (self.state, reason) {
            (State::Begin, None) => {
                delta.is("role", "assistant")?;
                delta.is("content", "")?;
                delta.only(&["role", "content"])?;
                self.state = State::Open;
                Ok(())
            }
            (State::Begin, Some(_)) => Err("the head must come before the finish".to_owned()),
            (State::Open, None) => self.delta(&delta, tokens > 0),
            (State::Open, Some(_)) => {
                delta.only(&[])?;
                let reason = choice.one_of("finish_reason", &FINISH_REASONS)?;
                if matches!(reason, "tool_calls" | "function_call") && self.calls == 0 {
                    return Err(format!("`finish_reason` is {reason}, but no call was written"));
                }
                self.state = State::Finished;
                Ok(())
            }
            (State::Finished, _) => {
                Err("only the usage chunk and `[DONE]` may follow the finish".to_owned())
            }
        }
    }

    fn delta(&mut self, delta: &Node<'_>, has_tokens: bool) -> Rule {
        delta.absent("role", "the role stands in the head only")?;
        if delta.as_object()?.is_empty() && !has_tokens {
            return Err("an empty `delta` carries nothing".to_owned());
        }
        for key in ["content", "refusal"] {
            // Log probabilities may ride on an empty text.
            if delta.text_if(key)? == Some("") && !has_tokens {
                return Err(format!("an empty `{key}` carries nothing"));
            }
        }
        for key in ["reasoning_content", "reasoning"] {
            if delta.has(key) {
                delta.filled(key)?;
                if *self.thinking.get_or_insert(key) != key {
                    return Err(
                        "thinking must stay in one member, not in both `reasoning_content` \
                                and `reasoning`"
                            .to_owned(),
                    );
                }
            }
        }
        if let Some(annotations) = delta.maybe("annotations") {
            for annotation in annotations.as_list()? {
                annotation.filled("type")?;
            }
            if self.annotated {
                return Err("`annotations` must be written once".to_owned());
            }
            self.annotated = true;
        }
        if let Some(images) = delta.maybe("images") {
            for image in images.as_list()? {
                image.counts("index", self.images)?;
                image.object("image_url")?.filled("url")?;
                self.images += 1;
            }
        }
        if let Some(audio) = delta.maybe("audio") {
            if audio.as_object()?.is_empty() {
                return Err("an empty `audio` carries nothing".to_owned());
            }
            if audio.has("transcript") {
                audio.filled("transcript")?;
            }
        }
        if let Some(details) = delta.maybe("reasoning_details") {
            for detail in details.as_list()? {
                detail.filled("type")?;
                detail.count("index")?;
            }
        }
        if let Some(blocks) = delta.maybe("thinking_blocks") {
            for block in blocks.as_list()? {
                // The accumulator of the Python SDK looks for the index from the second chunk on.
                if self.thinking_blocks {
                    block.count("index")?;
                }
            }
            self.thinking_blocks = true;
        }
        if let Some(calls) = delta.maybe("tool_calls") {
            let calls = calls.as_list()?;
            if calls.is_empty() {
                return Err("an empty `tool_calls` carries nothing".to_owned());
            }
            for call in calls {
                self.call(&call)?;
            }
        }
        Ok(())
    }

    fn call(&mut self, call: &Node<'_>) -> Rule {
        if call.has("id") {
            call.counts("index", self.calls)?;
            self.call_ids.add("the id of the call", call.filled("id")?)?;
            self.form = CallForm::of(call)?;
            let (place, argument) = self.form.places();
            call.only(&["index", "id", "type", place, "extra_content"])?;
            call.object(place)?.filled("name")?;
            call.object(place)?.is(argument, "")?;
            self.calls += 1;
            return Ok(());
        }
        let Some(current) = self.calls.checked_sub(1) else {
            return Err("`tool_calls[0].id` is missing: the first entry opens a call".to_owned());
        };
        call.counts("index", current)?;
        let (place, argument) = self.form.places();
        call.only(&["index", place, "extra_content"])?;
        if call.has(place) || !call.has("extra_content") {
            let fragment = call.object(place)?;
            fragment.only(&[argument])?;
            fragment.filled(argument)?;
        }
        Ok(())
    }
}

/// Check `logprobs`, and return the number of tokens.
fn tokens(logprobs: &Node<'_>) -> Rule<usize> {
    if logprobs.is_null() {
        return Ok(0);
    }
    let mut count = 0;
    for key in ["content", "refusal"] {
        if let Some(list) = logprobs.maybe(key).filter(|list| !list.is_null()) {
            count += logprobs::check(&list, Form::Full)?;
        }
    }
    if count == 0 { Err(logprobs.wrong("null, or an object with tokens")) } else { Ok(count) }
}

/// Check the usage record.
fn counts(usage: &Node<'_>) -> Rule {
    let (prompt, completion) = (usage.count("prompt_tokens")?, usage.count("completion_tokens")?);
    usage.counts("total_tokens", prompt.saturating_add(completion))?;
    if let Some(details) = usage.object_if("prompt_tokens_details")? {
        details.within("cached_tokens", prompt)?;
        details.within("cache_write_tokens", prompt)?;
    }
    if let Some(details) = usage.object_if("completion_tokens_details")? {
        details.within("reasoning_tokens", completion)?;
    }
    Ok(())
}

/// Check an error object of OpenAI, in a stream or as a body.
pub(super) fn error(body: &Node<'_>) -> Rule {
    body.only(&["error"])?;
    error_members(&body.object("error")?)
}

/// Check the members of an error object of OpenAI.
pub(super) fn error_members(error: &Node<'_>) -> Rule {
    error.text("message")?;
    error.one_of("type", &ERROR_TYPES)?;
    error.null("param")?;
    error.text_or_null("code")?;
    Ok(())
}

/// Check a whole body.
pub(super) fn body(status: u16, body: &str) -> Rule {
    let value = Value::parse(body)?;
    let body = Node::root(&value);
    if status >= 400 {
        return error(&body);
    }
    body.is("object", "chat.completion")?;
    body.filled("id")?;
    body.count("created")?;
    body.text("model")?;
    let choices = body.list("choices")?;
    if choices.is_empty() {
        return Err("`choices` must hold a choice".to_owned());
    }
    let mut last = None;
    for choice in &choices {
        let number = choice.count("index")?;
        if last.is_some_and(|last| last >= number) {
            return Err("the indexes of `choices` must rise".to_owned());
        }
        last = Some(number);
        whole_choice(choice)?;
    }
    match body.maybe("usage").filter(|usage| !usage.is_null()) {
        Some(usage) => counts(&usage),
        None => Ok(()),
    }
}

/// Check a choice of a whole body.
fn whole_choice(choice: &Node<'_>) -> Rule {
    let message = choice.object("message")?;
    message.is("role", "assistant")?;
    message.text_or_null("content")?;
    message.text_or_null("refusal")?;
    if let Some(annotations) = message.maybe("annotations") {
        annotations.as_list()?;
    }
    let calls = match message.maybe("tool_calls") {
        Some(calls) => calls.as_list()?,
        None => Vec::new(),
    };
    let mut ids = Ids::default();
    for call in &calls {
        ids.add("the id of the call", call.filled("id")?)?;
        let (place, argument) = CallForm::of(call)?.places();
        call.object(place)?.filled("name")?;
        call.object(place)?.text(argument)?;
    }
    let reason = choice.one_of("finish_reason", &FINISH_REASONS)?;
    if matches!(reason, "tool_calls" | "function_call") && calls.is_empty() {
        return Err(format!("`finish_reason` is {reason}, but no call was written"));
    }
    if let Some(logprobs) = choice.maybe("logprobs") {
        tokens(&logprobs)?;
    }
    Ok(())
}
