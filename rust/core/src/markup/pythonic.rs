//! Grammar of calls in Python syntax: `[f(a='x', b=1), g()]`.  Llama, LFM2, Olmo.
//!
//! In: the text after an opening tag, or a bracket that begins a turn.  Out: calls, with arguments as JSON.
//!
//! Laws: a call is held until its closing parenthesis and then emitted whole.  Arguments have names and literal values;
//! other text is prose.  No code is evaluated.
//!
//! Source: docs/protocols/inline-markup.md#python.

use super::json_calls::NAME_BYTES;
use super::literal;
use super::literals::{Found, from, here, upto};
use super::value::Balance;
use super::writer::{MarkupWriter, Next, Step, next_byte};
use crate::emit::EmitterSink;

/// Grammar of the calls of a family.
#[derive(Debug, PartialEq)]
pub(super) struct PythonicGrammar {
    /// Literals that end the block.
    pub(super) ends: &'static [(&'static str, ())],
    /// True if only offered names are calls.
    pub(super) offered: bool,
    /// True if calls follow each other without brackets and commas.
    pub(super) lines: bool,
    /// Suffix of a name that does not belong to it.
    pub(super) method: &'static str,
}

/// List of calls that is being parsed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PythonicBlock {
    grammar: &'static PythonicGrammar,
    state: PythonicState,
    bracket: bool,
    name: String,
    balance: Balance,
    arguments: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PythonicState {
    Before,
    Name,
    Arguments,
    After,
}

impl PythonicBlock {
    pub(super) fn new(grammar: &'static PythonicGrammar) -> Self {
        Self {
            grammar,
            state: PythonicState::Before,
            bracket: false,
            name: String::new(),
            balance: Balance::default(),
            arguments: String::new(),
        }
    }

    pub(super) fn held(&self) -> usize {
        self.name.len() + self.arguments.len()
    }

    pub(super) fn step(
        &mut self,
        input: &str,
        writer: &mut MarkupWriter,
        sink: &mut EmitterSink<'_>,
    ) -> Step {
        match self.state {
            PythonicState::Name => return self.name(input, writer),
            PythonicState::Arguments => return self.arguments(input, writer, sink),
            PythonicState::Before | PythonicState::After => {}
        }
        let byte = match next_byte(input) {
            Next::Step(step) => return step,
            Next::Byte(byte) => byte,
        };
        let begins = byte.is_ascii_alphabetic() || byte == b'_';
        match (self.state, byte) {
            (PythonicState::Before, b'[') if !self.bracket => {
                self.bracket = true;
                return Step::Take(1);
            }
            (PythonicState::Before, _) if begins => {
                self.name.clear();
                self.state = PythonicState::Name;
                return Step::Take(0);
            }
            (PythonicState::After, b',') if self.bracket => {
                writer.begin_candidate("");
                self.state = PythonicState::Before;
                return Step::Take(1);
            }
            (_, b']') if self.bracket && !self.name.is_empty() => {
                writer.take_candidate();
                self.bracket = false;
                self.state = PythonicState::After;
                return Step::Take(1);
            }
            (PythonicState::After, _) if begins && self.grammar.lines => {
                writer.begin_candidate("");
                self.state = PythonicState::Before;
                return Step::Take(0);
            }
            _ => {}
        }
        match here(input, 0, self.grammar.ends, |()| true) {
            Found::Partial(_) => Step::Wait,
            Found::At { end, .. } if self.state == PythonicState::After => Step::Leave(end),
            _ if self.state == PythonicState::After => Step::Leave(0),
            _ => Step::Prose(0),
        }
    }

    fn name(&mut self, input: &str, writer: &MarkupWriter) -> Step {
        let part = |character: char| character.is_alphanumeric() || "_.-".contains(character);
        let run = input.find(|character| !part(character)).unwrap_or(input.len());
        self.name.push_str(upto(input, run));
        if self.name.len() > NAME_BYTES {
            return Step::Prose(run);
        }
        let next = from(input, run);
        if next.is_empty() {
            return Step::Take(run);
        }
        let name = self.name.strip_suffix(self.grammar.method).unwrap_or(&self.name);
        if !next.starts_with('(') || (self.grammar.offered && !writer.offers(name)) {
            return Step::Prose(run);
        }
        self.name.truncate(name.len());
        self.balance = Balance::default();
        self.arguments.clear();
        self.state = PythonicState::Arguments;
        Step::Take(run)
    }

    fn arguments(
        &mut self,
        input: &str,
        writer: &mut MarkupWriter,
        sink: &mut EmitterSink<'_>,
    ) -> Step {
        let end = self.balance.feed(input.as_bytes());
        let run = end.unwrap_or(input.len());
        self.arguments.push_str(upto(input, run));
        if end.is_some() {
            let text = std::mem::take(&mut self.arguments);
            let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
            let max_depth = sink.options().limits.depth;
            match inner.and_then(|inner| literal::arguments(inner, max_depth)) {
                Some(json) => writer.whole_call(&self.name, None, &json, sink),
                None => return Step::Prose(run),
            }
            self.state = PythonicState::After;
        }
        Step::Take(run)
    }
}
