//! Grammar of calls that name the tool before a JSON object: DeepSeek, Kimi, Mistral from v11 on, Llama's `<function=…>`.
//!
//! In: the text after an opening tag.  Out: calls.
//!
//! Laws: a name is short and holds only characters that its family writes in names; other text is prose.  Arguments are the
//! raw text of their object, which ends at its balancing bracket.  `null` means no arguments.
//!
//! Source: docs/protocols/inline-markup.md#named.

use super::json_calls::NAME_BYTES;
use super::literals::{Found, from, here, upto};
use super::value::Value;
use super::writer::{MarkupWriter, Next, Step, next_byte};
use crate::contract::InputFormat;
use crate::emit::{CallEnd, EmitterSink};

/// Grammar of the calls of a family.
#[derive(Debug, PartialEq)]
pub(super) struct NamedGrammar {
    /// Tags around names and arguments.
    pub(super) tags: &'static [(&'static str, Tag)],
    /// Content of a header.
    pub(super) header: Header,
}

/// Tag around names and arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// Start of a call.
    Begin,
    /// End of the header and start of the arguments.
    Arguments,
    /// End of the name and start of an id.
    Id,
    /// End of the call.
    End,
    /// End of the block.
    Close,
    /// Code fence around the arguments.
    Fence,
}

/// Content of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// The name.  Arguments may follow without a tag.
    Bare,
    /// The name.
    Name,
    /// `functions.NAME:N`, which is the id too.
    Kimi,
    /// The name, or `function` with the name on the next line.
    DeepSeek,
}

/// Block of calls that is being parsed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NamedBlock {
    grammar: &'static NamedGrammar,
    state: NamedCallState,
    header: String,
    id: Option<String>,
    value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NamedCallState {
    /// Between calls.
    Between,
    Header,
    Id,
    /// After `function`: the object or the name follows.
    Which,
    /// On the line of the name.
    Line,
    BeforeArguments,
    Arguments,
    After,
}

impl NamedBlock {
    /// Build a block in a section of calls, or inside its first call.
    pub(super) fn new(grammar: &'static NamedGrammar, in_call: bool) -> Self {
        Self {
            grammar,
            state: if in_call { NamedCallState::Header } else { NamedCallState::Between },
            header: String::new(),
            id: None,
            value: Value::default(),
        }
    }

    pub(super) fn held(&self) -> usize {
        self.header.len()
    }

    /// Take the end of the text, which also ends a number or literal.
    pub(super) fn finish(&mut self, writer: &mut MarkupWriter, sink: &mut EmitterSink<'_>) {
        if self.state == NamedCallState::Arguments && matches!(self.value, Value::Atom(_)) {
            self.arguments("\n", writer, sink);
        }
    }

    pub(super) fn step(
        &mut self,
        input: &str,
        writer: &mut MarkupWriter,
        sink: &mut EmitterSink<'_>,
    ) -> Step {
        match self.state {
            NamedCallState::Header | NamedCallState::Id => return self.word(input, writer, sink),
            NamedCallState::Line => return self.line(input, writer, sink),
            NamedCallState::Arguments => return self.arguments(input, writer, sink),
            _ => {}
        }
        let byte = match next_byte(input) {
            Next::Step(step) => return step,
            Next::Byte(byte) => byte,
        };
        if self.state == NamedCallState::Which {
            self.state =
                if byte == b'{' { NamedCallState::BeforeArguments } else { NamedCallState::Line };
            if self.state == NamedCallState::BeforeArguments {
                self.begin(writer, sink);
            } else {
                self.header.clear();
            }
            return Step::Take(0);
        }
        let tag = here(input, 0, self.grammar.tags, |_| true);
        if tag == Found::Partial(0) {
            return Step::Wait;
        }
        match (self.state, tag) {
            (_, Found::At { end, role: Tag::Fence, .. }) => Step::Take(end),
            (
                NamedCallState::Between | NamedCallState::After,
                Found::At { end, role: Tag::Begin, .. },
            ) => {
                if !writer.has_candidate() {
                    writer.begin_candidate("");
                }
                self.header.clear();
                self.id = None;
                self.state = NamedCallState::Header;
                Step::Take(end)
            }
            (
                NamedCallState::Between | NamedCallState::After,
                Found::At { end, role: Tag::Close, .. },
            ) => Step::Leave(end),
            (NamedCallState::After, Found::At { end, role: Tag::End, .. }) => {
                let alone = !self.grammar.tags.iter().any(|(_, tag)| *tag == Tag::Close);
                self.state = NamedCallState::Between;
                if alone { Step::Leave(end) } else { Step::Take(end) }
            }
            (NamedCallState::BeforeArguments, Found::At { end, role: Tag::End, .. }) => {
                writer.end_call(CallEnd::Provider, sink);
                self.state = NamedCallState::Between;
                Step::Take(end)
            }
            // DeepSeek may omit the tag that begins the first call.
            (NamedCallState::Between, Found::Nothing)
                if self.grammar.header == Header::DeepSeek && writer.has_candidate() =>
            {
                self.state = NamedCallState::Header;
                Step::Take(0)
            }
            (NamedCallState::BeforeArguments, Found::Nothing) => {
                self.value = Value::default();
                self.state = NamedCallState::Arguments;
                Step::Take(0)
            }
            (NamedCallState::After, Found::Nothing) if byte == b'}' => Step::Take(1),
            (NamedCallState::Between | NamedCallState::After, _) if !writer.has_candidate() => {
                Step::Leave(0)
            }
            _ => Step::Prose(0),
        }
    }

    /// Read the header, or the id after it, up to the tag that ends it.
    fn word(&mut self, input: &str, writer: &mut MarkupWriter, sink: &mut EmitterSink<'_>) -> Step {
        let run = input.find(|character| !self.takes(character)).unwrap_or(input.len());
        let in_id = self.state == NamedCallState::Id;
        let word = if in_id { self.id.get_or_insert_default() } else { &mut self.header };
        word.push_str(upto(input, run));
        if word.len() > NAME_BYTES {
            return Step::Prose(run);
        }
        if run > 0 {
            return Step::Take(run);
        }
        if self.header.trim().is_empty() && input.starts_with([' ', '\n', '\r', '\t']) {
            return Step::Take(super::literals::blanks(input));
        }
        if self.grammar.header == Header::Bare && input.starts_with('{') && !self.header.is_empty()
        {
            self.begin(writer, sink);
            return Step::Take(0);
        }
        match here(input, 0, self.grammar.tags, |_| true) {
            Found::Partial(_) => Step::Wait,
            Found::At { end, role: Tag::Arguments, .. } if !self.header.trim().is_empty() => {
                if self.grammar.header == Header::DeepSeek && self.header.trim() == "function" {
                    self.state = NamedCallState::Which;
                } else {
                    self.begin(writer, sink);
                }
                Step::Take(end)
            }
            Found::At { end, role: Tag::Id, .. } if !in_id && !self.header.is_empty() => {
                self.state = NamedCallState::Id;
                Step::Take(end)
            }
            _ => Step::Prose(0),
        }
    }

    /// Return true for a character that a header may contain.
    fn takes(&self, character: char) -> bool {
        match self.grammar.header {
            Header::Bare | Header::Name => {
                character.is_alphanumeric() || "_-.:/".contains(character)
            }
            // Some models write spaces in names.
            Header::Kimi | Header::DeepSeek => !"<{}[]\n\"`".contains(character),
        }
    }

    fn line(&mut self, input: &str, writer: &mut MarkupWriter, sink: &mut EmitterSink<'_>) -> Step {
        let run = input.find(|character| !self.takes(character)).unwrap_or(input.len());
        self.header.push_str(upto(input, run));
        if self.header.len() > NAME_BYTES {
            return Step::Prose(run);
        }
        match from(input, run).bytes().next() {
            None => Step::Take(run),
            Some(b'\n' | b'{' | b'`') if !self.header.trim().is_empty() => {
                self.begin(writer, sink);
                Step::Take(run)
            }
            Some(_) => Step::Prose(run),
        }
    }

    fn begin(&mut self, writer: &mut MarkupWriter, sink: &mut EmitterSink<'_>) {
        let header = self.header.trim();
        let (name, id) = match self.grammar.header {
            Header::Kimi => kimi(header),
            Header::Bare | Header::Name | Header::DeepSeek => {
                (header, self.id.as_deref().map(str::trim).filter(|id| !id.is_empty()))
            }
        };
        writer.begin_call(name, id, InputFormat::Json, sink);
        self.state = NamedCallState::BeforeArguments;
    }

    fn arguments(
        &mut self,
        input: &str,
        writer: &mut MarkupWriter,
        sink: &mut EmitterSink<'_>,
    ) -> Step {
        let mut said = String::new();
        let (taken, over) = self.value.feed(input, &mut said);
        if over && self.value.is_wrong() {
            // The text is neither arguments nor the end of the call.
            writer.abandon_call(sink);
            return Step::Leave(0);
        }
        writer.args(&said, sink);
        if over {
            writer.end_call(CallEnd::Provider, sink);
            self.state = NamedCallState::After;
        }
        if taken == 0 && !over { Step::Wait } else { Step::Take(taken) }
    }
}

/// Return the name and the id of `functions.NAME:N`.
fn kimi(header: &str) -> (&str, Option<&str>) {
    let numbered = |(name, number): &(&str, &str)| {
        !name.trim().is_empty() && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    };
    let (name, id) = match header.rsplit_once(':').map(|(name, n)| (name, n.trim())) {
        Some(split) if numbered(&split) => (split.0.trim(), Some(header)),
        _ => (header, None),
    };
    (name.strip_prefix("functions.").unwrap_or(name).trim(), id)
}
