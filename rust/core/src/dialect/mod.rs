//! The registry: one row a wire protocol.
//!
//! A dialect is two functions.  `read(frame)` is pure, borrows from the frame and knows no state; `apply(event, state,
//! sink)` owns all state.  The finisher alone owns seq, ids, pairing and the terminal.

use crate::delta::Output;
use crate::finisher::DeltaSink;
use crate::wire::{Reader, Result};
use template::{Template, Templates};

pub mod anthropic_messages;
pub mod openai_chat;
pub mod template;

/// One framed JSON object.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The event's name, empty when it has none.
    pub name: &'a str,
    /// The object's JSON.
    pub json: &'a str,
    /// Nesting that is read.
    pub max_depth: usize,
}

/// The state of one stream's dialect, and the templates that its frames repeat.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one a stream, never moved after it is made")]
pub enum State {
    /// Anthropic Messages.
    AnthropicMessages(anthropic_messages::State, Templates<anthropic_messages::Repeat>),
    /// OpenAI Chat Completions and everything compatible.
    OpenAiChat(openai_chat::State, Templates<openai_chat::Repeat>),
}

/// A row of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// The name that users write.
    pub name: &'static str,
    /// A fresh state.
    pub state: fn() -> State,
}

/// Every dialect.
pub const REGISTRY: &[Dialect] = &[
    Dialect {
        name: "anthropic-messages",
        state: || {
            State::AnthropicMessages(anthropic_messages::State::default(), Templates::default())
        },
    },
    Dialect {
        name: "openai-chat",
        state: || State::OpenAiChat(openai_chat::State::default(), Templates::default()),
    },
];

/// The row of this name.
pub fn find(name: &str) -> Option<&'static Dialect> {
    REGISTRY.iter().find(|row| row.name == name)
}

/// Reads a frame that is no hit, and lets the templates study it.
fn read<'a, E: Template>(
    templates: &mut Templates<E>,
    frame: Frame<'a>,
    read: impl Fn(&mut Reader<'a>) -> Result<E::Event<'a>>,
) -> Result<E::Event<'a>> {
    let curious = templates.curious();
    let mut reader = if curious {
        Reader::tracing(frame.json, frame.max_depth)
    } else {
        Reader::new(frame.json, frame.max_depth)
    };
    let event = read(&mut reader)?;
    if curious {
        templates.study(frame.name, frame.json, &event, &reader.into_trace());
    }
    Ok(event)
}

impl State {
    /// Applies a frame that repeats a template; false for any other.
    #[inline]
    pub fn repeated<O: Output>(
        &mut self,
        name: &str,
        frame: &[u8],
        sink: &mut DeltaSink<'_, O>,
    ) -> bool {
        match self {
            Self::AnthropicMessages(state, templates) => templates
                .hit(name, frame)
                .map(|event| anthropic_messages::apply(event, state, sink))
                .is_some(),
            Self::OpenAiChat(state, templates) => templates
                .hit(name, frame)
                .map(|event| openai_chat::apply(&event, state, sink))
                .is_some(),
        }
    }

    /// Reads one frame and applies it.  An error leaves the state as it was.
    pub fn frame<O: Output>(
        &mut self,
        frame: Frame<'_>,
        sink: &mut DeltaSink<'_, O>,
    ) -> Result<()> {
        match self {
            Self::AnthropicMessages(state, templates) => {
                let event =
                    read(templates, frame, |reader| anthropic_messages::read(frame, reader))?;
                anthropic_messages::apply(event, state, sink);
            }
            Self::OpenAiChat(state, templates) => {
                let options = sink.options();
                let wanted =
                    openai_chat::Wanted { choice: options.choice, logprobs: options.logprobs };
                let event =
                    read(templates, frame, |reader| openai_chat::read(frame, reader, wanted))?;
                openai_chat::apply(&event, state, sink);
            }
        }
        Ok(())
    }

    /// Says what the state still holds back; no frame follows.
    pub fn close<O: Output>(&mut self, sink: &mut DeltaSink<'_, O>) {
        match self {
            Self::AnthropicMessages(state, _) => anthropic_messages::close(state, sink),
            Self::OpenAiChat(state, _) => openai_chat::close(state, sink),
        }
    }
}
