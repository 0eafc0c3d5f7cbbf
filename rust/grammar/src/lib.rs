//! `Checker`: the grammar of every protocol that deltafold writes, as a checker of bytes.
//!
//! ```text
//! bytes ─► framing ─► event ─► grammar of the target ─► the first Violation
//!          SSE, lines, array,   one file a target
//!          AWS frames
//! ```
//!
//! In: a body in any chunking.  Out: the first violation, with the number of its event.
//!
//! Laws: the same bytes give the same verdict in any chunking.  A checker is as strict as docs/protocols/encoding.md and
//! shares no code with the writers.  Memory is bounded, and each byte is read a constant number of times.  Parts that a
//! provider of the target's own dialect made pass with any content, but under the structural rules.
//!
//! Source: docs/protocols/encoding.md.

mod ag_ui;
mod ai_sdk;
mod answers;
mod anthropic_messages;
mod aws_frames;
mod bedrock_converse;
mod event;
mod framing;
mod gemini;
mod kept;
mod langchain;
mod logprobs;
mod ollama;
mod openai_chat;
mod openai_responses;
mod responses_items;
mod tree;

use std::fmt;

use answers::Answers;
use event::{Event, MAX_EVENT_BYTES};
use framing::{Array, Framing, Lines, Sse};
use tree::{Rule, quoted};

/// Rule of a target's grammar that a body breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Name of the target; "" if the target is unknown.
    pub target: &'static str,
    /// Number of the event at fault, from 1.  A missing end counts as the event after the last one.
    pub event: u64,
    /// The broken rule, with the member and its value.
    pub rule: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, event {}: {}", self.target, self.event, self.rule)
    }
}

impl std::error::Error for Violation {}

/// Row of the table of targets.
struct Target {
    name: &'static str,
    framing: fn() -> Framing,
    grammar: fn() -> Grammar,
    /// Check of a whole body with its HTTP status.
    body: fn(u16, &str) -> Rule,
}

const TARGETS: [Target; 11] = [
    Target {
        name: "openai-chat",
        framing: sse,
        grammar: || Grammar::OpenaiChat(openai_chat::OpenaiChat::default()),
        body: openai_chat::body,
    },
    Target {
        name: "openai-responses",
        framing: sse,
        grammar: || Grammar::OpenaiResponses(Box::default()),
        body: openai_responses::body,
    },
    Target {
        name: "anthropic-messages",
        framing: sse,
        grammar: || Grammar::AnthropicMessages(anthropic_messages::AnthropicMessages::default()),
        body: anthropic_messages::body,
    },
    Target {
        name: "gemini",
        framing: sse,
        grammar: || Grammar::Gemini(gemini::Gemini::default()),
        body: gemini::body,
    },
    Target {
        name: "gemini-array",
        framing: || Framing::Array(Array::default()),
        grammar: || Grammar::Gemini(gemini::Gemini::default()),
        body: gemini::body,
    },
    Target {
        name: "ollama",
        framing: || Framing::Lines(Lines::new(ollama::MAX_LINE_BYTES)),
        grammar: || Grammar::Ollama(ollama::Ollama::default()),
        body: ollama::body,
    },
    Target {
        name: "ollama-generate",
        framing: || Framing::Lines(Lines::new(ollama::MAX_LINE_BYTES)),
        grammar: || Grammar::Ollama(ollama::Ollama::generate()),
        body: ollama::generate_body,
    },
    Target {
        name: "bedrock-converse",
        framing: || Framing::Aws(aws_frames::AwsFrames::default()),
        grammar: || Grammar::BedrockConverse(bedrock_converse::BedrockConverse::default()),
        body: bedrock_converse::body,
    },
    Target {
        name: "ag-ui",
        framing: sse,
        grammar: || Grammar::AgUi(Box::default()),
        body: error_text,
    },
    Target {
        name: "ai-sdk",
        framing: sse,
        grammar: || Grammar::AiSdk(Box::default()),
        body: error_text,
    },
    Target {
        name: "langchain",
        framing: || Framing::Lines(Lines::new(MAX_EVENT_BYTES)),
        grammar: || Grammar::Langchain(langchain::Langchain::default()),
        body: error_text,
    },
];

fn sse() -> Framing {
    Framing::Sse(Sse::default())
}

/// Check a body of a target for user interfaces: an error's text; such a target has no whole answers.
fn error_text(status: u16, body: &str) -> Rule {
    if status < 400 {
        return Err("the target has no whole body".to_owned());
    }
    if body.is_empty() { Err("the body must hold the message".to_owned()) } else { Ok(()) }
}

fn find(target: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|row| row.name == target)
}

/// Return the names of all targets.
pub fn targets() -> impl Iterator<Item = &'static str> {
    TARGETS.iter().map(|row| row.name)
}

/// Grammar of one target with its state.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Grammar {
    OpenaiChat(openai_chat::OpenaiChat),
    OpenaiResponses(Box<openai_responses::OpenaiResponses>),
    AnthropicMessages(anthropic_messages::AnthropicMessages),
    Gemini(gemini::Gemini),
    Ollama(ollama::Ollama),
    BedrockConverse(bedrock_converse::BedrockConverse),
    AgUi(Box<ag_ui::AgUi>),
    AiSdk(Box<ai_sdk::AiSdk>),
    Langchain(langchain::Langchain),
}

impl Grammar {
    fn read(&mut self, event: Event<'_>) -> Rule {
        match self {
            Self::OpenaiChat(grammar) => grammar.read(event),
            Self::OpenaiResponses(grammar) => grammar.read(event),
            Self::AnthropicMessages(grammar) => grammar.read(event),
            Self::Gemini(grammar) => grammar.read(event),
            Self::Ollama(grammar) => grammar.read(event),
            Self::BedrockConverse(grammar) => grammar.read(event),
            Self::AgUi(grammar) => grammar.read(event),
            Self::AiSdk(grammar) => grammar.read(event),
            Self::Langchain(grammar) => grammar.read(event),
        }
    }

    fn close(&self) -> Rule {
        match self {
            Self::OpenaiChat(grammar) => grammar.close(),
            Self::OpenaiResponses(grammar) => grammar.close(),
            Self::AnthropicMessages(grammar) => grammar.close(),
            Self::Gemini(grammar) => grammar.close(),
            Self::Ollama(grammar) => grammar.close(),
            Self::BedrockConverse(grammar) => grammar.close(),
            Self::AgUi(grammar) => grammar.close(),
            Self::AiSdk(grammar) => grammar.close(),
            Self::Langchain(grammar) => grammar.close(),
        }
    }
}

/// Checker of one streamed body.
///
/// ```
/// use deltafold_grammar::Checker;
///
/// let mut checker = Checker::new("ollama").unwrap();
/// checker.feed(b"{\"error\":\"out of ").unwrap();
/// checker.feed(b"memory\"}\n").unwrap();
/// checker.close().unwrap();
///
/// let mut checker = Checker::new("ollama").unwrap();
/// let violation = checker.feed(b"{\"error\": \"x\"}\n").unwrap_err();
/// assert_eq!(violation.to_string(), "ollama, event 1: the JSON holds white space");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checker {
    target: &'static str,
    framing: Framing,
    grammar: Grammar,
    events: u64,
    violation: Option<Violation>,
    closed: bool,
}

impl Checker {
    /// Build a checker of a target; `None` for an unknown name.
    pub fn new(target: &str) -> Option<Self> {
        let row = find(target)?;
        Some(Self {
            target: row.name,
            framing: (row.framing)(),
            grammar: (row.grammar)(),
            events: 0,
            violation: None,
            closed: false,
        })
    }

    /// Build a checker of a stream with several answers; `None` for a target without such streams.
    pub fn of_answers(target: &str) -> Option<Self> {
        let mut checker = Self::new(target)?;
        match &mut checker.grammar {
            Grammar::OpenaiChat(grammar) => grammar.answers = Answers::several(),
            Grammar::Gemini(grammar) => grammar.answers = Answers::several(),
            _ => return None,
        }
        Some(checker)
    }

    /// Build a checker of the stream of an agent's run; `None` for a target without such streams.
    pub fn of_run(target: &str) -> Option<Self> {
        let mut checker = Self::new(target)?;
        checker.grammar = match checker.grammar {
            Grammar::AgUi(_) => Grammar::AgUi(Box::new(ag_ui::AgUi::of_run())),
            Grammar::AiSdk(_) => Grammar::AiSdk(Box::new(ai_sdk::AiSdk::of_run())),
            _ => return None,
        };
        Some(checker)
    }

    /// Check the next bytes of the body, in any chunking.
    ///
    /// # Errors
    /// The first rule that the body breaks.  Every later call returns the same violation.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        self.verdict()?;
        if self.closed && !bytes.is_empty() {
            return self.break_rule(self.events + 1, "bytes after the end of the body".to_owned());
        }
        let Self { framing, grammar, events, .. } = self;
        let mut in_grammar = false;
        let checked = framing.feed(bytes, &mut |event| {
            *events += 1;
            let rule = grammar.read(event);
            in_grammar = rule.is_err();
            rule
        });
        match checked {
            Ok(()) => Ok(()),
            Err(rule) => self.break_rule(self.events + u64::from(!in_grammar), rule),
        }
    }

    /// Check the end of the body.
    ///
    /// # Errors
    /// The body ends inside an event or without its terminal, or it broke a rule before.
    pub fn close(&mut self) -> Result<(), Violation> {
        self.verdict()?;
        if self.closed {
            return Ok(());
        }
        self.closed = true;
        match self.framing.close().and_then(|()| self.grammar.close()) {
            Ok(()) => Ok(()),
            Err(rule) => self.break_rule(self.events + 1, rule),
        }
    }

    fn verdict(&self) -> Result<(), Violation> {
        self.violation.clone().map_or(Ok(()), Err)
    }

    #[cold]
    fn break_rule(&mut self, event: u64, rule: String) -> Result<(), Violation> {
        let violation = Violation { target: self.target, event, rule };
        self.violation = Some(violation.clone());
        Err(violation)
    }
}

/// Check a whole body: an answer that was not streamed, or the error of a refused request (`status` from 400 on).
///
/// # Errors
/// The first rule that the body breaks, or an unknown target.
pub fn check_body(target: &str, status: u16, body: &[u8]) -> Result<(), Violation> {
    let (name, checked) = match find(target) {
        Some(row) => (row.name, event::utf8(body).and_then(|body| (row.body)(status, body))),
        None => ("", Err(format!("unknown target {:?}", quoted(target)))),
    };
    checked.map_err(|rule| Violation { target: name, event: 1, rule })
}
