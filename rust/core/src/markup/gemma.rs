//! Grammar of Gemma's calls: `call:f{k:<|"|>text<|"|>,n:1}`.
//!
//! In: the text after an opening tag.  Out: calls, whose arguments are converted to JSON while they arrive.
//!
//! Laws: keys are bare.  A text ends at the mark that it began with, whatever else it holds.  A bare value is a number, a
//! literal, or otherwise a text.
//!
//! Source: docs/protocols/inline-markup.md#gemma; ai.google.dev, "Function calling with Gemma".

use super::json_calls::NAME_BYTES;
use super::literals::{Found, find, from, here, upto};
use super::tools::{self, Types};
use super::writer::{MarkupWriter, Next, Step, next_byte};
use crate::contract::InputFormat;
use crate::emit::{CallEnd, EmitterSink};
use crate::json::{write_string, write_text};

/// Call that is being parsed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GemmaBlock {
    state: GemmaState,
    word: String,
    /// Open brackets: `true` for an object, `false` for an array.
    open: Vec<bool>,
    /// Mark that ends the current text.
    mark: &'static str,
    is_key: bool,
    first: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GemmaState {
    /// Inside `call:f`.
    Name,
    Key,
    BareKey,
    Colon,
    Value,
    BareValue,
    Text,
    Comma,
    After,
}

const PREFIX: &str = "call:";

const ENDS: &[(&str, ())] = &[("<tool_call|>", ()), ("<end_function_call>", ())];

/// Marks around texts.  The last is the quote of JSON, which some models write.
const MARKS: &[(&str, &str)] = &[("<|\"|>", "<|\"|>"), ("<escape>", "<escape>"), ("\"", "\"")];

/// Maximum length of a bare value.
const BARE_BYTES: usize = 4_096;

impl GemmaBlock {
    pub(super) fn new() -> Self {
        Self {
            state: GemmaState::Name,
            word: String::new(),
            open: Vec::new(),
            mark: "",
            is_key: false,
            first: true,
        }
    }

    pub(super) fn held(&self) -> usize {
        self.word.len()
    }

    pub(super) fn step(
        &mut self,
        input: &str,
        writer: &mut MarkupWriter,
        sink: &mut EmitterSink<'_>,
    ) -> Step {
        match self.state {
            GemmaState::Name => return self.name(input, writer, sink),
            GemmaState::Text => return self.text(input, writer, sink),
            GemmaState::BareKey | GemmaState::BareValue => return self.bare(input, writer, sink),
            _ => {}
        }
        let byte = match next_byte(input) {
            Next::Step(step) => return step,
            Next::Byte(byte) => byte,
        };
        match (self.state, byte) {
            (GemmaState::Key, b'}')
            | (GemmaState::Comma, b'}' | b']')
            | (GemmaState::Value, b']') => self.close(byte, writer, sink),
            (GemmaState::Comma, b',') => {
                self.first = false;
                let object = self.open.last() == Some(&true);
                self.state = if object { GemmaState::Key } else { GemmaState::Value };
                Step::Take(1)
            }
            (GemmaState::Colon, b':') => {
                writer.args(":", sink);
                self.first = true;
                self.state = GemmaState::Value;
                Step::Take(1)
            }
            (GemmaState::Value, b'{' | b'[') => {
                self.comma(writer, sink);
                self.open(byte, writer, sink)
            }
            (GemmaState::Key | GemmaState::Value, _) => match here(input, 0, MARKS, |_| true) {
                Found::Partial(_) => Step::Wait,
                Found::At { end, role, .. } => {
                    self.comma(writer, sink);
                    writer.args("\"", sink);
                    self.mark = role;
                    self.is_key = self.state == GemmaState::Key;
                    self.state = GemmaState::Text;
                    Step::Take(end)
                }
                Found::Nothing => {
                    self.comma(writer, sink);
                    self.word.clear();
                    let key = self.state == GemmaState::Key;
                    self.state = if key { GemmaState::BareKey } else { GemmaState::BareValue };
                    Step::Take(0)
                }
            },
            (GemmaState::After, _) => match here(input, 0, ENDS, |()| true) {
                Found::Partial(_) => Step::Wait,
                Found::At { end, .. } => Step::Leave(end),
                Found::Nothing => Step::Leave(0),
            },
            _ => Step::Prose(0),
        }
    }

    fn name(&mut self, input: &str, writer: &mut MarkupWriter, sink: &mut EmitterSink<'_>) -> Step {
        let part = |character: char| character.is_alphanumeric() || "_-.:/".contains(character);
        let run = input.find(|character| !part(character)).unwrap_or(input.len());
        self.word.push_str(upto(input, run));
        let seen = self.word.len().min(PREFIX.len());
        if self.word.len() > NAME_BYTES || !self.word.starts_with(upto(PREFIX, seen)) {
            return Step::Prose(run);
        }
        let name = self.word.strip_prefix(PREFIX).unwrap_or("");
        match from(input, run).bytes().next() {
            None => Step::Take(run),
            Some(b'{') if !name.is_empty() => {
                writer.begin_call(name, None, InputFormat::Json, sink);
                match self.open(b'{', writer, sink) {
                    Step::Take(_) => Step::Take(run + 1),
                    _ => Step::Prose(run),
                }
            }
            Some(_) => Step::Prose(run),
        }
    }

    fn comma(&mut self, writer: &mut MarkupWriter, sink: &mut EmitterSink<'_>) {
        if !std::mem::replace(&mut self.first, true) {
            writer.args(",", sink);
        }
    }

    fn open(&mut self, bracket: u8, writer: &mut MarkupWriter, sink: &mut EmitterSink<'_>) -> Step {
        if self.open.len() >= sink.options().limits.depth {
            return Step::Prose(0);
        }
        let object = bracket == b'{';
        self.open.push(object);
        self.first = true;
        self.state = if object { GemmaState::Key } else { GemmaState::Value };
        writer.args(if object { "{" } else { "[" }, sink);
        Step::Take(1)
    }

    fn close(
        &mut self,
        bracket: u8,
        writer: &mut MarkupWriter,
        sink: &mut EmitterSink<'_>,
    ) -> Step {
        if self.open.pop() != Some(bracket == b'}') {
            return Step::Prose(0);
        }
        writer.args(if bracket == b'}' { "}" } else { "]" }, sink);
        self.state = GemmaState::Comma;
        if self.open.is_empty() {
            writer.end_call(CallEnd::Provider, sink);
            self.state = GemmaState::After;
        }
        Step::Take(1)
    }

    fn text(&mut self, input: &str, writer: &mut MarkupWriter, sink: &mut EmitterSink<'_>) -> Step {
        let found = if self.mark == "\"" {
            let quote = memchr::memchr(b'"', input.as_bytes());
            quote.map_or(Found::Nothing, |at| Found::At { start: at, end: at + 1, role: "" })
        } else {
            find(input, 0, MARKS, |mark, _| mark == self.mark)
        };
        let (end, taken, over) = match found {
            Found::At { start, end, .. } => (start, end, true),
            Found::Partial(at) => (at, at, false),
            Found::Nothing => (input.len(), input.len(), false),
        };
        let mut out = String::new();
        write_text(&mut out, upto(input, end));
        if over {
            out.push('"');
            self.state = if self.is_key { GemmaState::Colon } else { GemmaState::Comma };
        }
        writer.args(&out, sink);
        if taken == 0 { Step::Wait } else { Step::Take(taken) }
    }

    fn bare(&mut self, input: &str, writer: &mut MarkupWriter, sink: &mut EmitterSink<'_>) -> Step {
        let key = self.state == GemmaState::BareKey;
        let ends: &[char] = if key { &[':', ',', '}', '<', '\n'] } else { &[',', '}', ']', '<'] };
        let end = input.find(ends);
        let run = end.unwrap_or(input.len());
        self.word.push_str(upto(input, run));
        if self.word.len() > if key { NAME_BYTES } else { BARE_BYTES } {
            return Step::Prose(run);
        }
        if end.is_some() {
            let word = std::mem::take(&mut self.word);
            let mut out = String::new();
            if key {
                write_string(&mut out, word.trim());
            } else {
                out = tools::coerce(Types::ANY, word.trim(), sink.options().limits.depth);
            }
            writer.args(&out, sink);
            self.state = if key { GemmaState::Colon } else { GemmaState::Comma };
        }
        Step::Take(run)
    }
}
