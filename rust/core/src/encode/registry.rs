//! Targets: everything that an encoder can write, one row each.

use super::ag_ui::AgUiWriter;
use super::ai_sdk::AiSdkWriter;
use super::anthropic_messages::MessagesWriter;
use super::bedrock_converse::ConverseWriter;
use super::gemini::GeminiWriter;
use super::langchain::LangChainWriter;
use super::ollama::OllamaWriter;
use super::openai_chat::ChatWriter;
use super::openai_responses::ResponsesWriter;
use crate::contract::{Delta, Destination, Failure};
use crate::encode::{Answers, Draft, Form, RunEvent, Sequencer, Writer};
use crate::fold::MessageAssembler;

/// A row of the list of targets.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Name in the public interface.
    pub name: &'static str,
    /// Dialect whose provider state and provider parts the target understands; "" for none.
    pub(super) dialect: &'static str,
    /// Framing.
    pub form: Form,
    /// Constructor of a fresh state.
    pub(super) state: fn() -> State,
    /// A finish reason `error` is written as a failure.
    pub(super) error_fails: bool,
    /// Status and JSON body of a failure before all content.
    pub(super) refusal: fn(&mut Draft, &Failure<&str>) -> (u16, String),
    /// JSON of a whole body.
    pub(super) body: fn(&mut Draft, &MessageAssembler) -> Option<String>,
    /// The target has several answers in one response.
    pub has_answers: bool,
    /// The target has the events of a run.
    pub has_runs: bool,
    /// JSON of a whole body with several answers.
    pub(super) body_of_answers: fn(&mut Draft, &Answers<'_>) -> Option<String>,
}

/// Define the rows and the dispatch that follows from them.
macro_rules! targets {
    ($($(#[$doc:meta])* $variant:ident($writer:ty),)+) => {
        /// Every target.
        pub const TARGETS: &[Target] = &[$(Target {
            name: <$writer as Writer>::NAME,
            dialect: <$writer as Writer>::DIALECT,
            form: <$writer as Writer>::FORM,
            state: || State::$variant(Box::default()),
            error_fails: <$writer as Writer>::ERROR_REASON_FAILS,
            refusal: <$writer as Writer>::refusal,
            body: <$writer as Writer>::body,
            has_answers: <$writer as Writer>::HAS_ANSWERS,
            has_runs: <$writer as Writer>::HAS_RUNS,
            body_of_answers: <$writer as Writer>::body_of_answers,
        }),+];

        /// Order and writer of one stream.
        #[derive(Clone, Debug, PartialEq)]
        pub(super) enum State {
            $($(#[$doc])* $variant(Box<Sequencer<$writer>>),)+
        }

        impl State {
            pub(super) fn status(&self) -> Option<u16> {
                match self { $(Self::$variant(state) => state.status(),)+ }
            }

            pub(super) fn ended(&self) -> bool {
                match self { $(Self::$variant(state) => state.ended(),)+ }
            }

            pub(super) fn failed(&self) -> bool {
                match self { $(Self::$variant(state) => state.failed(),)+ }
            }

            pub(super) fn delta(&mut self, draft: &mut Draft, delta: &Delta<&str>, place: Destination) {
                match self { $(Self::$variant(state) => state.delta(draft, delta, place),)+ }
            }

            #[inline]
            pub(super) fn more_text(&mut self, draft: &mut Draft, index: usize, text: &str) -> bool {
                match self { $(Self::$variant(state) => state.more_text(draft, index, text),)+ }
            }

            #[inline]
            pub(super) fn more_args(&mut self, draft: &mut Draft, index: usize, text: &str) -> bool {
                match self { $(Self::$variant(state) => state.more_args(draft, index, text),)+ }
            }

            pub(super) fn end_answers(
                &mut self,
                draft: &mut Draft,
                failure: Option<&Failure<&str>>,
                has_head: bool,
            ) {
                match self { $(Self::$variant(state) => state.end_answers(draft, failure, has_head),)+ }
            }

            pub(super) fn run_event(&mut self, draft: &mut Draft, event: &RunEvent) {
                match self { $(Self::$variant(state) => state.run_event(draft, event),)+ }
            }

            pub(super) fn lose_run(&mut self, draft: &mut Draft, failure: &Failure<&str>) {
                match self { $(Self::$variant(state) => state.lose_run(draft, failure),)+ }
            }

            pub(super) fn keep_alive(&mut self, draft: &mut Draft) {
                match self { $(Self::$variant(state) => state.keep_alive(draft),)+ }
            }
        }
    };
}

targets! {
    /// AG-UI.
    AgUi(AgUiWriter),
    /// UI message stream of Vercel's `ai`.
    AiSdk(AiSdkWriter),
    /// Anthropic Messages.
    AnthropicMessages(MessagesWriter),
    /// Amazon Bedrock ConverseStream.
    BedrockConverse(ConverseWriter),
    /// Gemini's `streamGenerateContent?alt=sse`.
    Gemini(GeminiWriter<false>),
    /// Gemini's `streamGenerateContent`, one JSON array.
    GeminiArray(GeminiWriter<true>),
    /// Content-block events of langchain-core.
    LangChain(LangChainWriter),
    /// Ollama, `/api/chat`.
    Ollama(OllamaWriter<false>),
    /// Ollama, `/api/generate`.
    OllamaGenerate(OllamaWriter<true>),
    /// OpenAI Chat Completions.
    OpenAiChat(ChatWriter),
    /// OpenAI Responses.
    OpenAiResponses(ResponsesWriter),
}

/// Return the row with this name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|row| row.name == name)
}
