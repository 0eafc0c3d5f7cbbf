//! Whole bodies of Chat Completions, with one answer or several.
//!
//! In: folded messages with their numbers.  Out: the JSON of a `chat.completion`.
//!
//! Laws: a message has one text, one reasoning and one refusal, in which the parts are joined.  Token counts and lists of
//! sources belong to the body.
//! Source: platform.openai.com, "Chat: the chat completion object" (docs/protocols/encoding.md#openai-chat).

use super::media::{Medium, Sources, is_transcript, medium, with_transcript};
use super::members::{
    FINISH_REASONS, facts_of_chat, optional_text, own_extra, write_all, write_call, write_usage,
};
use super::states::{OfCall, States, joined};
use crate::dialect::openai_chat::facts::{AUDIO, FACTS};
use crate::encode::calls::{is_untold, note_cut_call};
use crate::encode::{
    Answers, Call, Counts, Draft, Ending, TextKind, TextPart, WholePart, finish_word, write_facts,
};
use crate::fold::{MessageAssembler, Part, TextPart as FoldedText, ToolCall};
use crate::json::{ObjectWriter, object, write_list, write_members};

/// Return a whole `chat.completion`.
pub(super) fn chat_body(draft: &mut Draft, answers: &Answers<'_>) -> String {
    let mut lists = Vec::new();
    let choices: Vec<String> = answers
        .iter()
        .map(|(number, message)| choice(draft, *number, message, &mut lists))
        .collect();
    let counts = Counts::known(draft);
    object(|body| {
        body.text("id", &draft.head.request_id);
        body.text("object", "chat.completion");
        body.number("created", draft.head.created_seconds());
        body.text("model", &draft.head.model_id);
        body.value("choices", |out| {
            write_list(out, &choices, |out, choice| out.push_str(choice));
        });
        if let Some(counts) = counts {
            body.object("usage", |usage| write_usage(usage, counts));
        }
        for (name, list) in &lists {
            body.json(name, list);
        }
        let details = answers.iter().find_map(|(_, message)| message.details());
        write_facts(body, &facts_of_chat(details));
    })
}

/// Content of the parts of one answer, by the members of its message.
#[derive(Default)]
struct Said {
    text: String,
    thinking: String,
    refusal: String,
    transcript: String,
    /// Calls, and the members of their state.
    calls: Vec<(Call, String)>,
    /// Members of the message that carry state.
    state_members: Vec<String>,
    images: Vec<String>,
    audio: Option<String>,
    executed_tools: Option<String>,
    sources: Sources,
    states: States,
}

impl Said {
    fn of(draft: &mut Draft, message: &MessageAssembler) -> Self {
        let mut said = Self::default();
        for (index, part) in message.parts().iter().enumerate() {
            match part {
                Part::Text(folded) => said.add_text(draft, index, folded),
                Part::Thinking(folded) => {
                    let follows = !said.thinking.is_empty() && !folded.text.is_empty();
                    let separator = if follows { "\n\n" } else { "" };
                    said.thinking.push_str(separator);
                    said.thinking.push_str(&folded.text);
                    let part = TextPart::from_fold(index, TextKind::Thinking, folded);
                    let state = said.states.of_whole(draft, &part, separator, &folded.text);
                    said.state_members.extend(state);
                }
                Part::ToolCall(call) => said.add_call(draft, index, call),
                Part::Whole(json) => {
                    match medium(&WholePart { index, json: json.clone() }, said.images.len()) {
                        Ok(Medium::Image(image)) => said.images.push(image),
                        Ok(Medium::Audio(members)) => said.audio = Some(members),
                        Ok(Medium::Tools(tools)) => said.executed_tools = Some(tools),
                        Err(what) => draft.notes.add("part", &what),
                    }
                }
            }
        }
        said
    }

    fn add_text(&mut self, draft: &mut Draft, index: usize, folded: &FoldedText) {
        for json in &folded.annotations {
            self.sources.keep(draft, json);
        }
        if is_transcript(folded.provider_state.as_deref()) {
            return self.transcript.push_str(&folded.text);
        }
        let text = if folded.refusal { &mut self.refusal } else { &mut self.text };
        text.push_str(&folded.text);
        let part = TextPart::from_fold(index, TextKind::Text, folded);
        self.state_members.extend(self.states.of_whole(draft, &part, "", &folded.text));
    }

    fn add_call(&mut self, draft: &mut Draft, index: usize, folded: &ToolCall) {
        let call = Call::from_fold(index, self.calls.len(), folded);
        if is_untold(&call) {
            return note_cut_call(draft, &call);
        }
        let state = match self.states.of_call(draft, &call) {
            Some(OfCall::Call(members)) => members,
            Some(OfCall::Message(members)) => {
                self.state_members.push(members);
                String::new()
            }
            None => String::new(),
        };
        self.calls.push((call, state));
    }

    fn has_audio(&self) -> bool {
        self.audio.is_some() || !self.transcript.is_empty()
    }

    /// Write the message.
    fn write(&self, draft: &Draft, answer: &mut ObjectWriter<'_>) {
        let Self { text, thinking, refusal, calls, .. } = self;
        answer.text("role", "assistant");
        let silent =
            text.is_empty() && (!calls.is_empty() || !refusal.is_empty() || self.has_audio());
        optional_text(answer, "content", (!silent).then_some(text.as_str()));
        optional_text(answer, "refusal", (!refusal.is_empty()).then_some(refusal.as_str()));
        if !thinking.is_empty() {
            answer.text(draft.settings.reasoning_member, thinking);
        }
        write_all(answer, &joined(&self.state_members));
        if !self.images.is_empty() {
            answer
                .value("images", |out| write_list(out, &self.images, |out, one| out.push_str(one)));
        }
        if self.has_audio() {
            answer.json(AUDIO, &with_transcript(self.audio.as_deref(), &self.transcript));
        }
        if let Some(tools) = &self.executed_tools {
            answer.json("executed_tools", tools);
        }
        if !calls.is_empty() {
            answer.value("tool_calls", |out| {
                write_list(out, calls, |out, (call, state)| {
                    write_members(out, |item| {
                        write_call(item, call, &call.args);
                        if let Some(extra) = own_extra(&draft.settings, call) {
                            item.json("extra_content", extra);
                        }
                        write_all(item, state);
                    });
                });
            });
        }
        let annotations = &self.sources.annotations;
        if !annotations.is_empty() {
            answer.value("annotations", |out| {
                write_list(out, annotations, |out, json| out.push_str(json));
            });
        }
    }
}

/// Return a choice of a whole `chat.completion`; its lists of sources belong to the body.
fn choice(
    draft: &mut Draft,
    number: u64,
    message: &MessageAssembler,
    lists: &mut Vec<(&'static str, String)>,
) -> String {
    let mut said = Said::of(draft, message);
    let whole_calls = said.calls.iter().filter(|(call, _)| !call.incomplete).count();
    let ending = Ending::of(message, whole_calls);
    let refused = !said.refusal.is_empty();
    let finish = finish_word(draft, &ending, &FACTS.finish_reasons, FINISH_REASONS, refused);
    for (name, list) in std::mem::take(&mut said.sources.lists) {
        if lists.iter().all(|(known, _)| *known != name) {
            lists.push((name, list));
        }
    }
    object(|choice| {
        choice.number("index", number);
        choice.object("message", |answer| said.write(draft, answer));
        match message.logprobs().filter(|logprobs| !logprobs.is_empty()) {
            Some(logprobs) => choice.object("logprobs", |object| {
                object.value("content", |out| logprobs.write_openai(out, true));
            }),
            None => choice.json("logprobs", "null"),
        }
        choice.text("finish_reason", finish);
    })
}
