//! The registry: one row a wire protocol.
//!
//! A dialect is two functions.  `read(frame)` is pure, borrows from the frame and knows no state; `apply(event, sink)`
//! owns all state.  The emitter alone owns seq, ids, pairing and the terminal.

use crate::contract::Output;
use crate::framing::{Bytes, Framing};
use crate::json::Result;
use crate::sink::DeltaSink;
use protocol::ProtocolDriver;

pub mod anthropic_messages;
pub mod bedrock_converse;
pub mod bedrock_invoke;
pub mod cohere_chat;
pub mod gemini;
pub mod gemini_interactions;
pub mod ollama;
pub mod openai_chat;
pub mod openai_responses;
pub mod protocol;

pub use protocol::Frame;

/// A row of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// The name that users write.
    pub name: &'static str,
    /// How its bodies are framed, unless their first bytes say otherwise.
    pub framing: Framing,
    /// A fresh state.
    pub state: fn() -> State,
}

/// The rows, and what follows from them: [`REGISTRY`], [`State`] and its dispatch.
macro_rules! registry {
    ($($(#[$doc:meta])* $name:literal, $framing:ident => $protocol:ident($state:ty),)+) => {
        /// Every dialect.
        pub const REGISTRY: &[Dialect] = &[$(Dialect {
            name: $name,
            framing: Framing::$framing,
            state: || State::$protocol(Box::default()),
        }),+];

        /// The state of one stream's dialect.  Boxed: the largest is ten times the smallest, and what holds it is moved.
        #[derive(Clone, Debug, PartialEq)]
        pub enum State {
            $($(#[$doc])* $protocol(Box<ProtocolDriver<$state>>),)+
        }

        impl State {
            /// Applies a frame that repeats a template; false for any other.
            #[inline]
            pub fn apply_template<O: Output>(
                &mut self,
                name: &[u8],
                frame: &[u8],
                wire: &[u8],
                sink: &mut DeltaSink<'_, O>,
            ) -> bool {
                match self {
                    $(Self::$protocol(driver) => driver.apply_template(name, frame, wire, sink),)+
                }
            }

            /// Applies the events at the start of what is not framed yet, as far as they repeat templates; how many bytes
            /// they are.
            #[inline]
            pub fn apply_templates_unframed<O: Output>(
                &mut self,
                bytes: Bytes<'_>,
                sink: &mut DeltaSink<'_, O>,
            ) -> usize {
                match self {
                    $(Self::$protocol(driver) => driver.apply_templates_unframed(bytes, sink),)+
                }
            }

            /// Reads one frame and applies it.  An error leaves the state as it was.
            pub fn frame<O: Output>(
                &mut self,
                frame: Frame<'_>,
                sink: &mut DeltaSink<'_, O>,
            ) -> Result<()> {
                match self {
                    $(Self::$protocol(driver) => driver.frame(frame, sink),)+
                }
            }

            /// Says what the state still holds back; no frame follows.
            pub fn close<O: Output>(&mut self, sink: &mut DeltaSink<'_, O>) {
                match self {
                    $(Self::$protocol(driver) => driver.close(sink),)+
                }
            }
        }
    };
}

registry! {
    /// Anthropic Messages.
    "anthropic-messages", Sse => AnthropicMessages(anthropic_messages::State),
    /// Amazon Bedrock ConverseStream.
    "bedrock-converse", AwsEventStream => BedrockConverse(bedrock_converse::State),
    /// Amazon Bedrock InvokeModelWithResponseStream: other protocols' events in frames.
    "bedrock-invoke", AwsEventStream => BedrockInvoke(bedrock_invoke::State),
    /// Cohere Chat, version 2, and the older version 1.
    "cohere-chat", Sse => CohereChat(cohere_chat::State),
    /// Gemini's `streamGenerateContent`.
    "gemini", Sse => Gemini(gemini::State),
    /// Gemini's Interactions API, decode only.
    "gemini-interactions", Sse => GeminiInteractions(gemini_interactions::State),
    /// Ollama, `/api/chat` and `/api/generate`.
    "ollama", Ndjson => Ollama(ollama::State),
    /// Mistral: OpenAI Chat Completions with contents as lists, which `openai-chat` reads everywhere.
    "mistral", Sse => Mistral(openai_chat::State),
    /// OpenAI Chat Completions and everything compatible.
    "openai-chat", Sse => OpenAiChat(openai_chat::State),
    /// OpenAI Responses, Open Responses and everything compatible.
    "openai-responses", Sse => OpenAiResponses(openai_responses::State),
}

/// The row of this name.
pub fn find(name: &str) -> Option<&'static Dialect> {
    REGISTRY.iter().find(|row| row.name == name)
}
