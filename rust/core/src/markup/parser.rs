//! `Markup`: the parser of the markup of one message.
//!
//! In: the text of a message in any chunking.  Out: text, thinking and calls, to a [`MarkupWriter`].
//!
//! Laws: those of the module [`super`].  The parser emits all unambiguous text at once and holds the rest.

use super::block::{Block, Undecided};
use super::families::{Family, Role};
use super::harmony::HarmonyBlock;
use super::literals::{self, Found, blanks, from, is_blank, upto};
use super::wanted::Wanted;
use super::writer::{MarkupWriter, Next, Step, next_byte};
use crate::emit::{CallEnd, EmitterSink, PartHandle, PartKind};

/// Number of the pair of tags whose opening tag is missing.
const ANY_PAIR: u8 = u8::MAX;

/// Parser of the markup of one message.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Markup {
    family: &'static Family,
    writer: MarkupWriter,
    block: Block,
    /// Pair of tags around the current thinking; `None` in prose.  Used outside of blocks.
    thinking: Option<u8>,
    /// Text that was fed and not consumed yet.
    rest: String,
    /// Length of the known white space at the start of `rest`.
    blank: usize,
    /// The next white space belongs to markup.
    skip_blanks: bool,
    /// White space before possible markup is held with it.
    strips: bool,
    /// Thinking may begin: only white space came since the start, or since the calls of an interleaved family.
    fresh: bool,
    /// No text was emitted and no call began.
    untouched: bool,
    /// Visible text was emitted.
    answered: bool,
    /// Pair of tags of thinking that a call interrupted.  The closing tag may follow after the call.
    owed: Option<u8>,
    /// The answer is wrapped in tags.
    wrapped: bool,
    /// The text ended inside thinking.
    unclosed: bool,
}

impl Markup {
    pub(crate) fn new(wanted: &Wanted) -> Self {
        let harmony = wanted.starts_in_thinking && wanted.family.harmony;
        let block = if harmony { Block::Harmony(HarmonyBlock::thinking()) } else { Block::Nothing };
        Self {
            family: wanted.family,
            writer: MarkupWriter::new(wanted.tools.clone()),
            block,
            thinking: (wanted.starts_in_thinking && !harmony).then_some(ANY_PAIR),
            rest: String::new(),
            blank: 0,
            skip_blanks: wanted.starts_in_thinking && !harmony,
            strips: wanted.family.strips(),
            fresh: true,
            untouched: true,
            answered: false,
            owed: None,
            wrapped: false,
            unclosed: false,
        }
    }

    /// Parse more text.  The cost is linear in its length.
    #[inline(never)]
    pub(crate) fn feed(&mut self, text: &str, sink: &mut EmitterSink<'_>) {
        if self.rest.is_empty() {
            let taken = self.run(text, sink);
            self.rest.push_str(from(text, taken));
            return;
        }
        let mut held = std::mem::take(&mut self.rest);
        held.push_str(text);
        let taken = self.run(&held, sink);
        if taken == held.len() {
            held.clear();
        } else if taken > 0 {
            held.replace_range(..taken, "");
        }
        self.rest = held;
    }

    /// Return the number of held bytes.
    pub(crate) fn held(&self) -> usize {
        let block = match &self.block {
            Block::Nothing | Block::Undecided(_) => 0,
            Block::Json(block) => block.held(),
            Block::Named(block) => block.held(),
            Block::Xml(block) => block.held(),
            Block::Pythonic(block) => block.held(),
            Block::Gemma(block) => block.held(),
            Block::Harmony(block) => block.held(),
        };
        self.rest.len() + self.writer.held_bytes() + block
    }

    /// Return the part that takes an attribute of the text.
    pub(crate) fn attribute_part(
        &mut self,
        citations: bool,
        sink: &mut EmitterSink<'_>,
    ) -> PartHandle {
        self.writer.attribute_part(citations, sink)
    }

    /// Return true if the text ended inside thinking.
    pub(crate) fn unclosed(&self) -> bool {
        self.unclosed
    }

    /// Take the end of the text of a part: emit held text as prose, and end an open call.
    pub(crate) fn flush(&mut self, how: CallEnd, sink: &mut EmitterSink<'_>) {
        let mut kind = self.kind();
        let mut end = CallEnd::Abandoned;
        match &mut self.block {
            Block::Named(block) => block.finish(&mut self.writer, sink),
            Block::Json(block) => block.finish(&mut self.writer, sink),
            Block::Harmony(block) => {
                kind = block.kind().unwrap_or(kind);
                end = block.end(how);
            }
            _ => {}
        }
        let rest = std::mem::take(&mut self.rest);
        let read = self.writer.take_candidate().unwrap_or_default();
        self.block = Block::Nothing;
        if self.writer.has_open_call() {
            self.writer.end_call(end, sink);
        } else {
            self.write_text(kind, &read, sink);
            self.write_text(kind, &rest, sink);
        }
        self.unclosed |= kind == PartKind::Thinking;
        self.thinking = None;
        self.blank = 0;
        self.skip_blanks = false;
        self.owed = None;
        self.wrapped = false;
        self.writer.leave_part();
    }

    fn kind(&self) -> PartKind {
        if self.thinking.is_some() { PartKind::Thinking } else { PartKind::Text }
    }

    /// Emit text or thinking.  Tags that are allowed only at the beginning no longer apply after it.
    fn write_text(&mut self, kind: PartKind, text: &str, sink: &mut EmitterSink<'_>) {
        if !text.is_empty() {
            self.writer.write_text(kind, text, sink);
            self.fresh = false;
            self.untouched = false;
            self.answered |= kind == PartKind::Text;
            self.owed = None;
        }
    }

    /// Consume all unambiguous text, and return the number of bytes.
    fn run(&mut self, input: &str, sink: &mut EmitterSink<'_>) -> usize {
        let mut at = 0;
        while at < input.len() {
            let rest = from(input, at);
            let taken = match (&self.block, self.thinking) {
                (Block::Nothing, _) if self.skip_blanks => Some(self.skip(rest)),
                (Block::Nothing, None) => self.prose(rest, sink),
                (Block::Nothing, Some(pair)) => self.think(rest, pair, sink),
                _ => self.in_block(rest, sink),
            };
            match taken {
                Some(taken) => at += taken,
                None => break,
            }
        }
        at
    }

    /// Skip white space that belongs to markup.
    fn skip(&mut self, input: &str) -> usize {
        let space = blanks(input);
        self.skip_blanks = space == input.len();
        space
    }

    /// Parse prose.  Returns `None` if the rest of the input is ambiguous.
    fn prose(&mut self, input: &str, sink: &mut EmitterSink<'_>) -> Option<usize> {
        let known = std::mem::take(&mut self.blank);
        if self.family.untagged && self.untouched {
            let space = known + blanks(from(input, known));
            match from(input, space).bytes().next() {
                None => {
                    self.blank = space;
                    return None;
                }
                Some(byte @ (b'{' | b'[')) => {
                    self.writer.begin_candidate(upto(input, space));
                    self.block = Undecided::PythonTag.decide(byte);
                    return Some(space);
                }
                Some(_) => {}
            }
        }
        let literals = self.family.literals;
        // Some tags are allowed only after nothing but white space.
        let first = known + blanks(from(input, known));
        let found = literals::find(input, known, literals, |role, at| match role {
            Role::Calls(_) => true,
            Role::AnswerEnd => self.wrapped,
            _ if at > first => false,
            Role::Think(_) => self.fresh,
            Role::ThinkEnd(pair) => self.owed.is_some_and(|owed| closes(owed, pair)),
            Role::Answer => !self.answered && !self.wrapped,
        });
        let end = match found {
            Found::At { start, .. } | Found::Partial(start) => start,
            Found::Nothing => input.len(),
        };
        let unknown = upto(from(input, known), end.saturating_sub(known));
        let solid = match unknown.trim_end_matches(is_blank).len() {
            0 => 0,
            solid => known + solid,
        };
        let waits = self.strips || (self.fresh && solid == 0);
        let said = if waits { solid } else { end };
        self.write_text(PartKind::Text, upto(input, said), sink);
        if let Found::At { start, end, role } = found {
            self.enter(role, from(upto(input, start), said), from(upto(input, end), start));
            return Some(end);
        }
        self.blank = end.saturating_sub(said);
        (said > 0).then_some(said)
    }

    /// Apply a literal; `lead` is the white space before it.
    fn enter(&mut self, role: Role, lead: &str, literal: &str) {
        match role {
            Role::Think(pair) => {
                self.thinking = Some(pair);
                self.fresh = false;
                self.untouched = false;
            }
            Role::ThinkEnd(_) => {
                self.thinking = None;
                self.owed = None;
                self.fresh = false;
            }
            Role::Answer => self.wrapped = true,
            Role::AnswerEnd => self.wrapped = false,
            Role::Calls(grammar) => {
                self.writer.begin_candidate(lead);
                self.writer.extend_candidate(literal);
                self.block = grammar.block();
                return;
            }
        }
        self.skip_blanks = true;
    }

    /// Parse thinking up to its closing tag.
    fn think(&mut self, input: &str, pair: u8, sink: &mut EmitterSink<'_>) -> Option<usize> {
        let found = literals::find(input, 0, self.family.literals, |role, at| match role {
            // The prompt already opened the thinking, and the model repeats the tag.
            Role::Think(_) => self.fresh && at == 0,
            Role::ThinkEnd(end) => closes(pair, end),
            Role::Calls(_) => self.family.calls_in_thinking,
            Role::Answer | Role::AnswerEnd => false,
        });
        let end = match found {
            Found::At { start, .. } | Found::Partial(start) => start,
            Found::Nothing => input.len(),
        };
        self.write_text(PartKind::Thinking, upto(input, end), sink);
        if let Found::At { start, end, role } = found {
            self.enter(role, "", from(upto(input, end), start));
            return Some(end);
        }
        (end > 0).then_some(end)
    }

    fn in_block(&mut self, input: &str, sink: &mut EmitterSink<'_>) -> Option<usize> {
        let writer = &mut self.writer;
        let step = match &mut self.block {
            Block::Nothing => Step::Leave(0),
            Block::Undecided(which) => match next_byte(input) {
                Next::Step(step) => step,
                Next::Byte(byte) => {
                    self.block = which.decide(byte);
                    Step::Take(0)
                }
            },
            Block::Json(block) => block.step(input, writer, sink),
            Block::Named(block) => block.step(input, writer, sink),
            Block::Xml(block) => block.step(input, writer, sink),
            Block::Pythonic(block) => block.step(input, writer, sink),
            Block::Gemma(block) => block.step(input, writer, sink),
            Block::Harmony(block) => block.step(input, writer, sink),
        };
        if writer.take_call_began() {
            self.owed = self.thinking.take();
            self.fresh = false;
            self.untouched = false;
        }
        match step {
            Step::Take(taken) => {
                self.writer.extend_candidate(upto(input, taken));
                Some(taken)
            }
            Step::Wait => None,
            Step::Leave(taken) if !self.writer.has_candidate() => {
                self.block = Block::Nothing;
                self.skip_blanks = true;
                self.fresh = self.family.interleaved;
                Some(taken)
            }
            Step::Leave(taken) | Step::Prose(taken) => {
                self.block = Block::Nothing;
                // After the start of a call, the text that breaks its grammar belongs to the call.
                if let Some(mut read) = self.writer.take_candidate() {
                    read.push_str(upto(input, taken));
                    self.writer.abandon_call(sink);
                    self.write_text(self.kind(), &read, sink);
                } else {
                    self.writer.abandon_call(sink);
                    self.skip_blanks = true;
                }
                Some(taken)
            }
        }
    }
}

/// Return true if the closing tag of pair `close` ends the thinking of pair `open`.
fn closes(open: u8, close: u8) -> bool {
    open == ANY_PAIR || open == close
}
