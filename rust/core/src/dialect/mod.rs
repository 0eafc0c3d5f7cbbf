//! The registry: one row a wire protocol.
//!
//! A dialect is two functions.  `read(frame)` is pure, borrows from the frame and knows no state; `apply(event, state,
//! sink)` owns all state.  The finisher alone owns seq, ids, pairing and the terminal.

use crate::delta::Output;
use crate::finisher::DeltaSink;
use crate::wire::Result;

pub mod anthropic_messages;
pub mod openai_chat;

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

/// The state of one stream's dialect.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one a stream, never moved after it is made")]
pub enum State {
    /// Anthropic Messages.
    AnthropicMessages(anthropic_messages::State),
    /// OpenAI Chat Completions and everything compatible.
    OpenAiChat(openai_chat::State),
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
        state: || State::AnthropicMessages(anthropic_messages::State::default()),
    },
    Dialect { name: "openai-chat", state: || State::OpenAiChat(openai_chat::State::default()) },
];

/// The row of this name.
pub fn find(name: &str) -> Option<&'static Dialect> {
    REGISTRY.iter().find(|row| row.name == name)
}

impl State {
    /// Reads one frame and applies it.  An error leaves the state as it was.
    pub fn frame<O: Output>(
        &mut self,
        frame: Frame<'_>,
        sink: &mut DeltaSink<'_, O>,
    ) -> Result<()> {
        match self {
            Self::AnthropicMessages(state) => {
                let event = anthropic_messages::read(frame)?;
                anthropic_messages::apply(event, state, sink);
            }
            Self::OpenAiChat(state) => {
                let event = openai_chat::read(frame, sink.options().choice)?;
                openai_chat::apply(&event, state, sink);
            }
        }
        Ok(())
    }

    /// Says what the state still holds back; no frame follows.
    pub fn close<O: Output>(&mut self, sink: &mut DeltaSink<'_, O>) {
        match self {
            Self::AnthropicMessages(state) => anthropic_messages::close(state, sink),
            Self::OpenAiChat(state) => openai_chat::close(state, sink),
        }
    }
}
