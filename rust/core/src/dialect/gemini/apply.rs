//! State of a Gemini stream, and the application of chunks to it.

use super::partial_args::PartialArgs;
use super::read::{
    self, Candidate, Event, EventTemplate, FunctionCall, OtherPart, Part, RareMembers,
};
use super::usage::Merged;

use super::facts::{CONTINUATION, FACTS, GROUNDING, METADATA, SEARCHES};
use crate::contract::{ErrorCode, Failure, FinishReason, InputFormat};
use crate::dialect::protocol::{Frame, Protocol, Wanted};
use crate::emit::{CallEnd, CallHandle, ImageContent, PartHandle, PartKind};
use crate::json::{self, Reader, Result, Str};
use crate::limits::Limits;
use crate::sink::DeltaSink;

/// The state of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// The open part.  Text of the same kind extends it.
    current: Option<(PartKind, PartHandle)>,
    last_text: Option<PartHandle>,
    /// The call whose arguments are being streamed.
    open: Option<OpenCall>,
    usage: Merged,
    /// The last value of each kind in [`METADATA`].  Several chunks may repeat a value, which is emitted once.
    metadata: [String; METADATA.len()],
    /// The last token with which another request continues the answer: a JSON object, empty without one.
    continuation: String,
}

#[derive(Clone, Debug, PartialEq)]
struct OpenCall {
    handle: CallHandle,
    id: Option<String>,
    named: bool,
    args: PartialArgs,
}

impl OpenCall {
    /// Return the end of a call that the provider closed.  A call without a name or with broken arguments is abandoned,
    /// because it must not be run.
    fn end(&self) -> CallEnd {
        if self.named && !self.args.broken() { CallEnd::Provider } else { CallEnd::Abandoned }
    }
}

impl Protocol for State {
    type EventTemplate = EventTemplate;
    const HAS_CHOICES: bool = true;

    fn read<'a>(frame: Frame<'a>, reader: &mut Reader<'a>, wanted: Wanted) -> Result<Event<'a>> {
        read::read(frame, reader, wanted)
    }

    #[inline]
    fn read_object(&mut self, reader: &mut Reader<'_>) -> bool {
        self.usage.read_ahead(reader)
    }

    fn swap_object(&mut self, other: &mut Self) {
        self.usage.swap_ahead(&mut other.usage);
    }

    fn show_choices(&self, event: &Event<'_>, _: &Limits, shown: &mut dyn FnMut(u64)) {
        event.candidates().for_each(|candidate| shown(candidate.number.value));
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "an event of a template is never put together then")]
    fn apply(&mut self, event: &Event<'_>, sink: &mut DeltaSink<'_>) {
        sink.identity(event.model, event.response_id);
        if let Some(rare) = &event.rare {
            return self.rare(event, rare, sink);
        }
        let is_followed = event.candidate.number.value == sink.options().choice;
        if event.other_candidates || (event.has_candidate && !is_followed) {
            sink.warn_other_choices("candidates");
        }
        if event.has_candidate && is_followed {
            self.candidate(&event.candidate, sink);
        }
        if event.has_read_usage {
            self.merge_read_usage(sink);
        } else if let Some(usage) = event.usage {
            self.merge_usage(usage, sink);
        }
    }

    fn close(&mut self, sink: &mut DeltaSink<'_>) {
        if let Some((_, part)) = self.current.take() {
            sink.end_part(part);
        }
        self.abandon_open_call(sink);
    }
}

impl State {
    #[cold]
    fn rare(&mut self, event: &Event<'_>, rare: &RareMembers<'_>, sink: &mut DeltaSink<'_>) {
        let number = sink.options().choice;
        let is_followed = |candidate: &&Candidate<'_>| candidate.number.value == number;
        if event.other_candidates || !event.candidates().all(|candidate| is_followed(&candidate)) {
            sink.warn_other_choices("candidates");
        }
        rare.unread.send(sink);
        if let Some(json) = rare.failed {
            if let Some(usage) = event.usage {
                self.merge_usage(usage, sink);
            }
            self.close(sink);
            return sink.error(sink.failure(json));
        }
        if let Some(error) = rare.error {
            let failure = sink.failure(error);
            sink.defer_error(failure);
        }
        let mut has_candidate = false;
        for candidate in event.candidates().filter(is_followed) {
            has_candidate = true;
            self.candidate(candidate, sink);
        }
        if let Some(usage) = event.usage {
            self.merge_usage(usage, sink);
        }
        // An error that is held came first, and it is the one that the stream fails with.
        if let (Some(reason), false, true) = (rare.block_reason, has_candidate, sink.is_open()) {
            let reason = reason.text();
            let message = match rare.block_message {
                Some(message) => message.text(),
                None => format!("the prompt was blocked: {reason}"),
            };
            let mut failure = Failure::new(ErrorCode::ContentBlocked, message.into());
            failure.provider_code = Some(reason.into());
            failure.body = rare.feedback.map(Into::into);
            self.close(sink);
            sink.error(failure);
        }
    }

    #[inline]
    fn candidate(&mut self, candidate: &Candidate<'_>, sink: &mut DeltaSink<'_>) {
        if let Some(part) = &candidate.part {
            self.part(part, sink);
        }
        let Some(rare) = &candidate.rare else { return };
        rare.unread.send(sink);
        for part in &rare.more_parts {
            self.part(part, sink);
        }
        if let Some(logprobs) = &rare.logprobs
            && !sink.misses(logprobs)
        {
            let part = self.said_part(sink);
            sink.logprobs(part, logprobs);
        }
        for (which, found) in rare.metadata.iter().enumerate() {
            if let Some(found) = found {
                self.annotate(which, found, sink);
            }
        }
        if let Some(token) = rare.continuation_token {
            sink.give_back_state_bytes(self.continuation.len());
            self.continuation = json::object(|state| state.wire_text(CONTINUATION, token));
            if !sink.take_state_bytes(self.continuation.len()) {
                self.continuation.clear();
            }
        }
        if let Some(reason) = rare.finish_reason {
            self.finish(reason, rare.finish_message, sink);
        } else if let Some(message) = rare.finish_message {
            sink.unknown_detail("finishMessage", &format!("\"{}\"", message.raw));
        }
    }

    #[inline]
    fn part(&mut self, part: &Part<'_>, sink: &mut DeltaSink<'_>) {
        match *part {
            Part::Text { thought, text, signature } => {
                let kind = if thought { PartKind::Thinking } else { PartKind::Text };
                let part = self.text_part(kind, sink);
                sink.text(part, text);
                if let Some(signature) = signature {
                    sink.part_state(part, &signature_state(signature));
                    self.current = None;
                }
            }
            // `read` validated the part, so that an error here only means a value that is not an object.
            Part::Other(json) => {
                let _ = self.other(json, sink);
            }
        }
    }

    /// Return the part that text of this kind extends.  Opens a new part if the kind changed.
    #[inline]
    fn text_part(&mut self, kind: PartKind, sink: &mut DeltaSink<'_>) -> PartHandle {
        match self.current {
            Some((known, part)) if known == kind => part,
            _ => {
                self.leave_part(sink);
                let part = sink.open_part(kind);
                self.current = Some((kind, part));
                if kind == PartKind::Text {
                    self.last_text = Some(part);
                }
                part
            }
        }
    }

    fn leave_part(&mut self, sink: &mut DeltaSink<'_>) {
        if let Some((_, part)) = self.current.take() {
            sink.end_part(part);
        }
    }

    /// Return the text part that log probabilities and metadata belong to.
    fn said_part(&mut self, sink: &mut DeltaSink<'_>) -> PartHandle {
        match self.last_text {
            Some(part) => part,
            None => self.text_part(PartKind::Text, sink),
        }
    }

    fn annotate(&mut self, which: usize, found: &str, sink: &mut DeltaSink<'_>) {
        let (Some(name), Some(known)) = (METADATA.get(which), self.metadata.get_mut(which)) else {
            return;
        };
        if known == found {
            return;
        }
        if known.is_empty() && *name == GROUNDING {
            for (_, queries) in json::members(found).iter().filter(|(key, _)| key == SEARCHES) {
                sink.billed_list(SEARCHES, queries);
            }
        }
        found.clone_into(known);
        let part = self.said_part(sink);
        sink.annotate_list(part, name, found);
    }

    fn other(&mut self, json: &str, sink: &mut DeltaSink<'_>) -> Result<()> {
        let part = OtherPart::read(json)?;
        self.leave_part(sink);
        if let Some(call) = part.call {
            let call = FunctionCall::read(call)?;
            part.unread.send(sink);
            call.unread.send(sink);
            return self.function_call(&call, part.signature, sink);
        }
        // An image inside a thought is not part of the answer.
        match (part.mime_type, part.data) {
            (Some(mime_type), Some(data))
                if !part.thought && mime_type.raw.starts_with("image") =>
            {
                part.unread.send(sink);
                image(mime_type, data, part.signature, json, sink);
            }
            _ => sink.provider_part(json),
        }
        Ok(())
    }

    fn function_call(
        &mut self,
        call: &FunctionCall<'_>,
        signature: Option<Str<'_>>,
        sink: &mut DeltaSink<'_>,
    ) -> Result<()> {
        let goes_on = call.name.is_none()
            || (call.id.is_some()
                && self.open.as_ref().is_some_and(|open| open.id == call.id.map(|id| id.text())));
        if !goes_on {
            self.abandon_open_call(sink);
        }
        if self.open.is_none() {
            let has_content =
                call.name.is_some() || call.args.is_some() || call.partial_args.is_some();
            if !has_content {
                // The end of a call that has ended already, or a keep-alive between two values.
                return Ok(());
            }
            let handle = sink.open_call(InputFormat::Json);
            let id = call.id.map(|id| id.text());
            let named = call.name.is_some();
            self.open = Some(OpenCall { handle, id, named, args: PartialArgs::default() });
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        if let Some(signature) = signature {
            sink.call_state(open.handle, &signature_state(signature));
        }
        sink.name_call(open.handle, call.id, call.name);
        if let Some(entries) = call.partial_args {
            let mut text = String::new();
            let max_depth = sink.options().limits.depth;
            let was_broken = open.args.broken();
            open.args.take(entries, max_depth, &mut text)?;
            sink.call_args(open.handle, Str::plain(&text));
            if open.args.broken() && !was_broken {
                let message = "a tool call's arguments came in an order that no text can follow";
                sink.warn("partial_arguments", message, None);
            }
        } else if let Some(args) = call.args.filter(|_| open.args.is_empty()) {
            // Arguments after partial values would repeat them.
            sink.call_args(open.handle, args);
        }
        if call.args.is_some() || !call.will_continue {
            self.end_open_call(sink);
        }
        Ok(())
    }

    /// End the open call, because the provider closed it.
    fn end_open_call(&mut self, sink: &mut DeltaSink<'_>) {
        let Some(mut call) = self.open.take() else { return };
        let mut end = String::new();
        call.args.close(&mut end);
        if !call.args.broken() {
            sink.call_args(call.handle, Str::plain(&end));
        }
        sink.end_call(call.handle, call.end());
    }

    /// End the open call as abandoned: its last chunk announced more (`willContinue`), but another call or the finish reason
    /// followed.
    fn abandon_open_call(&mut self, sink: &mut DeltaSink<'_>) {
        if let Some(call) = self.open.take() {
            sink.end_call(call.handle, CallEnd::Abandoned);
        }
    }

    fn finish(&mut self, reason: Str<'_>, message: Option<Str<'_>>, sink: &mut DeltaSink<'_>) {
        let raw = reason.text();
        let mapped = sink.ending(&FACTS.finish_reasons, &raw).reason();
        self.abandon_open_call(sink);
        if let Some(message) = message {
            if mapped == FinishReason::Stop {
                sink.unknown_detail("finishMessage", &format!("\"{}\"", message.raw));
            } else {
                sink.warn("finish_message", &message.text(), None);
            }
        }
        if mapped == FinishReason::Pause {
            self.keep_continuation(sink);
        } else if let Some((_, token)) = json::members(&self.continuation).first() {
            sink.unknown_detail(CONTINUATION, token);
        }
        sink.finish_word(&FACTS.finish_reasons, &raw);
    }

    /// Emit the token of an answer that paused as the state of its last text, or of an empty one behind other content.
    fn keep_continuation(&mut self, sink: &mut DeltaSink<'_>) {
        let state = std::mem::take(&mut self.continuation);
        if !state.is_empty() {
            sink.give_back_state_bytes(state.len());
            let part = self.text_part(PartKind::Text, sink);
            sink.part_state(part, &state);
        }
    }

    fn merge_usage(&mut self, new: &str, sink: &mut DeltaSink<'_>) {
        if !self.usage.is_last(new)
            && sink.take_repeated_bytes(self.usage.bytes(), new.len())
            && let Some((counts, record)) = self.usage.take(new)
        {
            sink.usage(&counts, record);
        }
    }

    /// Merge the record that was read last.
    #[inline]
    fn merge_read_usage(&mut self, sink: &mut DeltaSink<'_>) {
        let bytes = self.usage.bytes();
        if self.usage.has_news()
            && sink.take_repeated_bytes(bytes, self.usage.bytes_ahead())
            && let Some((counts, record)) = self.usage.take_ahead()
        {
            sink.usage(&counts, record);
        }
    }
}

/// Return the provider state of a part: its signature, in its original escapes.
fn signature_state(signature: Str<'_>) -> String {
    json::object(|state| state.wire_text("thoughtSignature", signature))
}

/// Emit a generated image, or a provider part if its data is not base64.
fn image(
    mime_type: Str<'_>,
    data: Str<'_>,
    signature: Option<Str<'_>>,
    json: &str,
    sink: &mut DeltaSink<'_>,
) {
    // Google writes the padding as a JSON escape.
    let data = data.text();
    if !data.bytes().all(is_base64) {
        return sink.provider_part(json);
    }
    let state = signature.map(signature_state);
    sink.image_part(&mime_type.text(), ImageContent::Base64(&data), state.as_deref());
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=')
}
