//! The registry: one row a wire protocol.
//!
//! A dialect is two functions.  `read(frame)` is pure, borrows from the frame and knows no state; `apply(event, sink)`
//! owns all state.  The finisher alone owns seq, ids, pairing and the terminal.

use std::fmt::Debug;

use crate::contract::Output;
use crate::emit::DeltaSink;
use crate::framing::{Bytes, Framing};
use crate::json::{Reader, Result};
use crate::template::{Template, Templates};

pub mod anthropic_messages;
pub mod bedrock_converse;
pub mod bedrock_invoke;
pub mod cohere_chat;
pub mod gemini;
pub mod gemini_interactions;
pub mod ollama;
pub mod openai_chat;
pub mod openai_responses;

/// One framed JSON object.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The event's name, empty when it has none.
    pub name: &'a str,
    /// The object's JSON.
    pub json: &'a str,
    /// The event in its framing, when it is this frame alone and stood whole in a feed; else empty.
    pub wire: &'a str,
    /// Nesting that is read.
    pub max_depth: usize,
}

/// What the caller wants of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Which of several answers is followed.
    pub choice: u64,
    /// Whether log probabilities are read.
    pub logprobs: bool,
}

/// A wire protocol: the state of one stream, and the two functions.
pub trait Protocol: Clone + Debug + Default + PartialEq {
    /// The events that come again and again, all alike.
    type Repeat: Template;

    /// Reads a frame.
    fn read<'a>(
        frame: Frame<'a>,
        reader: &mut Reader<'a>,
        wanted: Wanted,
    ) -> Result<Event<'a, Self>>;

    /// Reads the object in a frame's hole into room of its own, which counts only once an event that repeats a template
    /// speaks of it; false for what is no valid object.  See [`crate::template::Tokens::reads`].
    fn read_object(&mut self, _: &mut Reader<'_>) -> bool {
        false
    }

    /// Applies an event.
    fn apply<O: Output>(&mut self, event: &Event<'_, Self>, sink: &mut DeltaSink<'_, O>);

    /// Says what the state still holds back; no event follows.
    fn close<O: Output>(&mut self, sink: &mut DeltaSink<'_, O>);
}

/// What a protocol reads of a frame.
pub type Event<'a, P> = <<P as Protocol>::Repeat as Template>::Event<'a>;

/// A protocol at work: its state, and the templates that its frames repeat.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage<P: Protocol> {
    protocol: P,
    templates: Templates<P::Repeat>,
}

impl<P: Protocol> Default for Stage<P> {
    fn default() -> Self {
        Self { protocol: P::default(), templates: Templates::default() }
    }
}

impl<P: Protocol> Stage<P> {
    #[inline]
    fn repeated<O: Output>(
        &mut self,
        name: &[u8],
        frame: &[u8],
        wire: &[u8],
        sink: &mut DeltaSink<'_, O>,
    ) -> bool {
        let Self { protocol, templates } = self;
        templates.hit(name, frame, wire, protocol, |protocol, event| protocol.apply(event, sink))
    }

    /// Applies the events at the start of what is not framed yet, as far as they repeat templates; how many bytes they are.
    #[inline]
    fn repeated_unframed<O: Output>(
        &mut self,
        bytes: Bytes<'_>,
        sink: &mut DeltaSink<'_, O>,
    ) -> usize {
        let Self { protocol, templates } = self;
        let max_bytes = sink.options().limits.event_bytes;
        let mut taken = 0;
        while let Some(rest) = bytes.after(taken).filter(|_| !sink.ended())
            && let Some(end) =
                templates.hit_unframed(rest, max_bytes, protocol, |protocol, event| {
                    protocol.apply(event, sink);
                    sink.end_frame();
                })
        {
            taken += end;
        }
        taken
    }

    fn frame<O: Output>(&mut self, frame: Frame<'_>, sink: &mut DeltaSink<'_, O>) -> Result<()> {
        let options = sink.options();
        let wanted = Wanted { choice: options.choice, logprobs: options.logprobs };
        let mut reader = Reader::new(frame.json, frame.max_depth);
        if let Some(trace) = self.templates.curious() {
            reader.trace(trace);
        }
        let event = P::read(frame, &mut reader, wanted)?;
        if let Some(ignored) = reader.into_trace() {
            self.templates.study(frame, &event, ignored);
        }
        self.protocol.apply(&event, sink);
        Ok(())
    }
}

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
            $($(#[$doc])* $protocol(Box<Stage<$state>>),)+
        }

        impl State {
            /// Applies a frame that repeats a template; false for any other.
            #[inline]
            pub fn repeated<O: Output>(
                &mut self,
                name: &[u8],
                frame: &[u8],
                wire: &[u8],
                sink: &mut DeltaSink<'_, O>,
            ) -> bool {
                match self {
                    $(Self::$protocol(stage) => stage.repeated(name, frame, wire, sink),)+
                }
            }

            /// Applies the events at the start of what is not framed yet, as far as they repeat templates; how many bytes
            /// they are.
            #[inline]
            pub fn repeated_unframed<O: Output>(
                &mut self,
                bytes: Bytes<'_>,
                sink: &mut DeltaSink<'_, O>,
            ) -> usize {
                match self {
                    $(Self::$protocol(stage) => stage.repeated_unframed(bytes, sink),)+
                }
            }

            /// Reads one frame and applies it.  An error leaves the state as it was.
            pub fn frame<O: Output>(
                &mut self,
                frame: Frame<'_>,
                sink: &mut DeltaSink<'_, O>,
            ) -> Result<()> {
                match self {
                    $(Self::$protocol(stage) => stage.frame(frame, sink),)+
                }
            }

            /// Says what the state still holds back; no frame follows.
            pub fn close<O: Output>(&mut self, sink: &mut DeltaSink<'_, O>) {
                match self {
                    $(Self::$protocol(stage) => stage.protocol.close(sink),)+
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
