//! Registry of the dialects: one row for each wire protocol.
//!
//! A dialect consists of two functions.  `read(frame)` is pure: it borrows from the frame and has no access to state.
//! `apply(event, sink)` owns all state of the protocol.  Sequence numbers, ids, the pairing of starts and ends, and the
//! terminal event belong to the emitter alone.

use std::sync::Arc;

use crate::facts::Facts;
use crate::framing::{Bytes, Framing};
use crate::json::Result;
use crate::provider_error::Vocabulary;
use crate::sink::Sinks;
use crate::template::{self, Template};
use protocol::{Protocol, ProtocolDriver};
use signs::Signs;

pub mod anthropic_messages;
pub(crate) mod batch;
pub mod bedrock_converse;
pub mod bedrock_invoke;
pub mod choices;
pub mod cohere_chat;
pub mod gemini;
pub mod gemini_interactions;
pub(crate) mod members;
pub mod ollama;
pub mod openai_chat;
pub mod openai_responses;
pub mod protocol;
pub mod signs;
pub mod unread;

pub use protocol::Frame;

/// A row of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// The name of the dialect in the public interface.
    pub name: &'static str,
    /// The framing of its bodies, unless their first bytes show another one.
    pub framing: Framing,
    /// Signs by which a body is detected.
    pub signs: &'static Signs,
    /// Finish reasons, usage members and error codes.
    pub facts: &'static Facts,
    /// Constructor of a fresh state.
    pub state: fn() -> State,
}

type EventTemplate<P> = <P as Protocol>::EventTemplate;

/// Define the rows and the code that follows from them: [`REGISTRY`], [`VOCABULARY`], [`State`] and its dispatch.
macro_rules! registry {
    ($($(#[$doc:meta])* $name:literal, $framing:ident => $protocol:ident($module:ident),)+) => {
        /// Every dialect.
        pub const REGISTRY: &[Dialect] = &[$(Dialect {
            name: $name,
            framing: Framing::$framing,
            signs: &$module::SIGNS,
            facts: &$module::facts::FACTS,
            state: || State::$protocol(Box::default()),
        }),+];

        /// The words of every dialect that name an error or an end.
        pub const VOCABULARY: Vocabulary = Vocabulary(&[$(&$module::facts::FACTS),+]);

        /// The state of one stream's dialect.  Boxed, because the largest is ten times the smallest and its owner is moved.
        #[derive(Clone, Debug, PartialEq)]
        pub enum State {
            $($(#[$doc])* $protocol(Box<ProtocolDriver<$module::State>>),)+
        }

        /// The shapes of frames that the streams of a process share, for each dialect that has any.
        #[derive(Debug)]
        #[expect(non_snake_case, reason = "the fields have the names of the rows")]
        pub struct Shapes {
            $($protocol: Option<Arc<template::Shapes<EventTemplate<$module::State>>>>,)+
        }

        impl Default for Shapes {
            fn default() -> Self {
                Self {
                    $($protocol: EventTemplate::<$module::State>::HAS_SHAPES.then(Arc::default),)+
                }
            }
        }

        /// The deltas of a stream do not depend on the known shapes.
        impl PartialEq for Shapes {
            fn eq(&self, _: &Self) -> bool {
                true
            }
        }

        impl State {
            /// Share the shapes of frames with other streams that read frames in the same way.
            pub fn share(&mut self, shapes: &Shapes) {
                match self {
                    $(Self::$protocol(driver) => driver.share(shapes.$protocol.as_ref()),)+
                }
            }

            /// Return true if a stream of the dialect may have several answers.
            pub fn has_choices(&self) -> bool {
                match self {
                    $(Self::$protocol(_) => <$module::State as Protocol>::HAS_CHOICES,)+
                }
            }

            /// Apply a frame that matches a template.  Returns false for any other frame.
            #[inline]
            pub fn apply_template(
                &mut self,
                name: &[u8],
                frame: &[u8],
                wire: &[u8],
                sinks: &mut impl Sinks,
            ) -> bool {
                match self {
                    $(Self::$protocol(driver) => driver.apply_template(name, frame, wire, sinks),)+
                }
            }

            /// Apply events at the start of unframed bytes while they match templates.  Returns the number of bytes applied.
            #[inline]
            pub fn apply_templates_unframed(
                &mut self,
                bytes: Bytes<'_>,
                sinks: &mut impl Sinks,
            ) -> usize {
                match self {
                    $(Self::$protocol(driver) => driver.apply_templates_unframed(bytes, sinks),)+
                }
            }

            /// Read one frame and apply it.  An error leaves the state unchanged.
            pub fn frame(&mut self, frame: Frame<'_>, sinks: &mut impl Sinks) -> Result<()> {
                match self {
                    $(Self::$protocol(driver) => driver.frame(frame, sinks),)+
                }
            }

            /// Emit the content that the state still holds; no frame follows.
            pub fn close(&mut self, sinks: &mut impl Sinks) {
                match self {
                    $(Self::$protocol(driver) => driver.close(sinks),)+
                }
            }
        }
    };
}

registry! {
    /// Anthropic Messages.
    "anthropic-messages", Sse => AnthropicMessages(anthropic_messages),
    /// Amazon Bedrock ConverseStream.
    "bedrock-converse", AwsEventStream => BedrockConverse(bedrock_converse),
    /// Amazon Bedrock InvokeModelWithResponseStream: other protocols' events in frames.
    "bedrock-invoke", AwsEventStream => BedrockInvoke(bedrock_invoke),
    /// Cohere Chat, version 2, and the older version 1.
    "cohere-chat", Sse => CohereChat(cohere_chat),
    /// Gemini's `streamGenerateContent`.
    "gemini", Sse => Gemini(gemini),
    /// Gemini's Interactions API, decode only.
    "gemini-interactions", Sse => GeminiInteractions(gemini_interactions),
    /// Ollama, `/api/chat` and `/api/generate`.
    "ollama", Ndjson => Ollama(ollama),
    /// Mistral: OpenAI Chat Completions with lists as contents, which the reader of `openai-chat` always accepts.
    "mistral", Sse => Mistral(openai_chat),
    /// OpenAI Chat Completions and compatible servers.
    "openai-chat", Sse => OpenAiChat(openai_chat),
    /// OpenAI Responses, Open Responses and compatible servers.
    "openai-responses", Sse => OpenAiResponses(openai_responses),
}

/// Return the row with this name.
pub fn find(name: &str) -> Option<&'static Dialect> {
    REGISTRY.iter().find(|row| row.name == name)
}
