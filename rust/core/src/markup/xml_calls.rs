//! Grammar of calls as tags, one for each parameter: Qwen's coder models, GLM, MiniMax, DeepSeek from V3.2 on, Claude's old
//! form.
//!
//! In: the text after an opening tag.  Out: calls, whose arguments are converted to JSON.
//!
//! Laws:
//! - Only its own closing tag ends a value, whatever else the value holds.  In Qwen's form, the next parameter or the end of
//!   the function ends it too.
//! - A value of type string is streamed.  Any other value is emitted once it is whole.
//! - A call without its end stays open, so that it is not run with half its arguments.
//!
//! Source: docs/protocols/inline-markup.md#xml.

use super::literals::{Found, find, from, here, upto};
use super::tools::{self, Types};
use super::writer::{MarkupWriter, Next, Step, next_byte};
use crate::contract::InputFormat;
use crate::emit::{CallEnd, EmitterSink};
use crate::json::{write_string, write_text};

/// Grammar of the calls of a family.
#[derive(Debug, PartialEq)]
pub(super) struct XmlGrammar {
    /// Tags that end a value.
    pub(super) ends: &'static [(&'static str, End)],
    /// True if one newline at either end of a value does not belong to it.
    pub(super) framed_by_newlines: bool,
    /// True if the block begins with the name of the tool and keys are separate tags.
    pub(super) bare_names: bool,
}

/// Tag that ends a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The closing tag of the value.
    Own,
    /// A tag that cannot occur inside a value.  The closing tag is missing.
    Next,
}

/// Block of calls that is being parsed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct XmlBlock {
    grammar: &'static XmlGrammar,
    state: XmlState,
    /// Tag, name or key that is being read.
    word: String,
    /// Tool of the current call or possible call.
    tool: String,
    /// The next tag decides whether the text is a call.
    doubtful: bool,
    in_call: bool,
    key: String,
    kind: Kind,
    /// Value that is held until its end.
    value: String,
    parameters: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum XmlState {
    /// Between tags.
    Between,
    /// Inside a tag.
    Tag,
    /// Inside the name that begins a block of GLM.
    Name,
    /// Inside a key between tags.
    Key,
    /// Before the first character of a value.
    ValueStart,
    Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Typed(Types),
    Json,
}

/// Maximum length of a tag with a name and a key.
const TAG_BYTES: usize = 512;

const KEY_ENDS: &[(&str, ())] = &[("</arg_key>", ())];

/// Meaning of a tag.
enum Element<'a> {
    Call(&'a str),
    CallEnd,
    Parameter(&'a str, Option<&'a str>),
    ParameterEnd,
    Key,
    Value,
    BlockEnd,
    Block,
    Unknown,
}

impl XmlBlock {
    /// Build a block after the opening tag, or inside a tag that begins a call without one.
    pub(super) fn new(grammar: &'static XmlGrammar, tag: Option<&str>) -> Self {
        let state = match tag {
            Some(_) => XmlState::Tag,
            None if grammar.bare_names => XmlState::Name,
            None => XmlState::Between,
        };
        Self {
            grammar,
            state,
            word: tag.unwrap_or("").to_owned(),
            tool: String::new(),
            doubtful: tag.is_some() || grammar.bare_names,
            in_call: false,
            key: String::new(),
            kind: Kind::Text,
            value: String::new(),
            parameters: 0,
        }
    }

    pub(super) fn held(&self) -> usize {
        self.word.len() + self.value.len()
    }

    pub(super) fn step(
        &mut self,
        input: &str,
        writer: &mut MarkupWriter,
        sink: &mut EmitterSink<'_>,
    ) -> Step {
        match self.state {
            XmlState::Tag => self.tag(input, writer, sink),
            XmlState::Name => self.name(input),
            XmlState::Key => self.key(input),
            XmlState::ValueStart => {
                self.state = XmlState::Value;
                let newline = self.grammar.framed_by_newlines && input.starts_with('\n');
                Step::Take(usize::from(newline))
            }
            XmlState::Value => self.value(input, writer, sink),
            XmlState::Between => match next_byte(input) {
                Next::Step(step) => step,
                Next::Byte(b'<') => {
                    if !writer.has_candidate() {
                        writer.begin_candidate("");
                    }
                    self.word.clear();
                    self.state = XmlState::Tag;
                    Step::Take(1)
                }
                Next::Byte(_) if writer.has_candidate() || self.in_call => Step::Prose(0),
                Next::Byte(_) => Step::Leave(0),
            },
        }
    }

    /// Read a tag up to its end.
    fn tag(&mut self, input: &str, writer: &mut MarkupWriter, sink: &mut EmitterSink<'_>) -> Step {
        let end = input.find(['>', '<', '\n']);
        let run = end.unwrap_or(input.len());
        self.word.push_str(upto(input, run));
        if self.word.len() > TAG_BYTES {
            return Step::Prose(run);
        }
        if end.is_none() {
            return Step::Take(run);
        }
        if !from(input, run).starts_with('>') {
            return Step::Prose(run);
        }
        let word = std::mem::take(&mut self.word);
        self.state = XmlState::Between;
        if self.element(&element(&word), writer, sink) {
            if !self.doubtful {
                writer.take_candidate();
            }
            if self.state == XmlState::Between && self.over(&word) {
                return Step::Leave(run + 1);
            }
            Step::Take(run + 1)
        } else {
            Step::Prose(run + 1)
        }
    }

    /// Return true if this tag ends the block.
    fn over(&self, word: &str) -> bool {
        matches!(element(word), Element::BlockEnd) && !self.in_call
    }

    /// Apply a tag.  Returns false if the tag is not allowed at this place.
    fn element(
        &mut self,
        element: &Element<'_>,
        writer: &mut MarkupWriter,
        sink: &mut EmitterSink<'_>,
    ) -> bool {
        match element {
            Element::Call(name) if !name.is_empty() => {
                // The end tag of the call before may be missing.
                self.end(writer, sink);
                (*name).clone_into(&mut self.tool);
                self.in_call = true;
                if !self.doubtful {
                    self.begin(writer, sink);
                }
                true
            }
            Element::Parameter(key, text) if self.in_call => {
                self.begin(writer, sink);
                let kind = match text {
                    Some("true") => Kind::Text,
                    Some(_) => Kind::Json,
                    None => self.kind_of(key, writer),
                };
                self.begin_value(key, kind, writer, sink);
                true
            }
            Element::Key if self.grammar.bare_names && self.in_call => {
                self.begin(writer, sink);
                self.state = XmlState::Key;
                true
            }
            Element::Value if self.grammar.bare_names && self.in_call => {
                let key = std::mem::take(&mut self.key);
                let kind = self.kind_of(&key, writer);
                self.begin_value(&key, kind, writer, sink);
                true
            }
            Element::CallEnd | Element::BlockEnd if self.in_call => {
                self.begin(writer, sink);
                self.end(writer, sink);
                true
            }
            // The closing tag of the block before is missing.
            Element::Block if !self.tool.is_empty() => {
                if self.in_call {
                    self.begin(writer, sink);
                }
                self.end(writer, sink);
                if self.grammar.bare_names {
                    self.tool.clear();
                    self.doubtful = true;
                    self.state = XmlState::Name;
                }
                true
            }
            // Closing tags without opening tags are accepted after a call.
            Element::BlockEnd | Element::CallEnd | Element::ParameterEnd => !self.tool.is_empty(),
            _ => false,
        }
    }

    fn kind_of(&self, key: &str, writer: &MarkupWriter) -> Kind {
        let types = writer.types(&self.tool, key);
        if types.only_text() { Kind::Text } else { Kind::Typed(types) }
    }

    /// Begin the call if it is not open yet.  The tag that was read shows that the text is a call.
    fn begin(&mut self, writer: &mut MarkupWriter, sink: &mut EmitterSink<'_>) {
        if !writer.has_open_call() {
            writer.begin_call(&self.tool, None, InputFormat::Json, sink);
            self.doubtful = false;
            self.parameters = 0;
        }
    }

    fn end(&mut self, writer: &mut MarkupWriter, sink: &mut EmitterSink<'_>) {
        if writer.has_open_call() {
            writer.args(if self.parameters == 0 { "{}" } else { "}" }, sink);
            writer.end_call(CallEnd::Provider, sink);
        }
        self.in_call = false;
    }

    fn begin_value(
        &mut self,
        key: &str,
        kind: Kind,
        writer: &mut MarkupWriter,
        sink: &mut EmitterSink<'_>,
    ) {
        let mut out = String::from(if self.parameters == 0 { "{" } else { "," });
        write_string(&mut out, key);
        out.push(':');
        if kind == Kind::Text {
            out.push('"');
        }
        writer.args(&out, sink);
        self.parameters += 1;
        self.kind = kind;
        self.value.clear();
        self.state = XmlState::ValueStart;
    }

    /// Read a value.  A possible end tag, and the newline before it, are held.
    fn value(
        &mut self,
        input: &str,
        writer: &mut MarkupWriter,
        sink: &mut EmitterSink<'_>,
    ) -> Step {
        let found = find(input, 0, self.grammar.ends, |_, _| true);
        let (end, taken) = match found {
            Found::At { start, end, role: End::Own } => (start, Some(end)),
            Found::At { start, role: End::Next, .. } => (start, Some(start)),
            Found::Partial(at) => (at, None),
            Found::Nothing => (input.len(), None),
        };
        let mut piece = upto(input, end);
        let mut done = end;
        if self.grammar.framed_by_newlines
            && let Some(without) = piece.strip_suffix('\n')
        {
            piece = without;
            done = piece.len();
        }
        let mut out = String::new();
        match self.kind {
            Kind::Text => write_text(&mut out, piece),
            Kind::Typed(_) | Kind::Json => self.value.push_str(piece),
        }
        if let Some(taken) = taken {
            done = taken;
            self.state = XmlState::Between;
            let value = std::mem::take(&mut self.value);
            let max_depth = sink.options().limits.depth;
            match self.kind {
                Kind::Text => out.push('"'),
                Kind::Typed(types) => out.push_str(&tools::coerce(types, &value, max_depth)),
                Kind::Json => out.push_str(&tools::as_json(&value, max_depth)),
            }
        }
        writer.args(&out, sink);
        if done == 0 && taken.is_none() { Step::Wait } else { Step::Take(done) }
    }

    /// Read the name that begins a block of GLM.
    fn name(&mut self, input: &str) -> Step {
        if self.tool.is_empty() {
            let blanks = super::literals::blanks(input);
            if blanks > 0 {
                return Step::Take(blanks);
            }
        }
        let part = |character: char| character.is_alphanumeric() || "_-.:/".contains(character);
        let end = input.find(|character| !part(character));
        let run = end.unwrap_or(input.len());
        self.tool.push_str(upto(input, run));
        let fits = !self.tool.is_empty() && self.tool.len() <= TAG_BYTES;
        match from(input, run).bytes().next() {
            None if fits => Step::Take(run),
            Some(b'<' | b'\n' | b' ' | b'\r') if fits => {
                self.in_call = true;
                self.state = XmlState::Between;
                Step::Take(run)
            }
            _ => Step::Prose(run),
        }
    }

    fn key(&mut self, input: &str) -> Step {
        let run = input.find('<').unwrap_or(input.len());
        self.key.push_str(upto(input, run));
        if self.key.len() > TAG_BYTES {
            return Step::Prose(run);
        }
        if run > 0 {
            return Step::Take(run);
        }
        match here(input, 0, KEY_ENDS, |()| true) {
            Found::At { end, .. } => {
                let key = self.key.trim().to_owned();
                self.key = key;
                self.state = XmlState::Between;
                Step::Take(end)
            }
            Found::Partial(_) => Step::Wait,
            Found::Nothing => Step::Prose(0),
        }
    }
}

/// Parse the text between `<` and `>`.
fn element(tag: &str) -> Element<'_> {
    let (closing, tag) = match tag.strip_prefix('/') {
        Some(rest) => (true, rest),
        None => (false, tag),
    };
    let marks = ["｜DSML｜", "|DSML|"];
    let tag = marks.iter().find_map(|mark| tag.strip_prefix(mark)).unwrap_or(tag).trim();
    let end = tag.find([' ', '=', '\t']).unwrap_or(tag.len());
    let (name, rest) = (upto(tag, end), from(tag, end));
    let named = || match rest.strip_prefix('=') {
        Some(name) => unquoted(name.trim()),
        None => attribute(rest, "name").unwrap_or(""),
    };
    match (name, closing) {
        ("function" | "invoke", false) => Element::Call(named()),
        ("function" | "invoke", true) => Element::CallEnd,
        ("parameter", false) => Element::Parameter(named(), attribute(rest, "string")),
        ("parameter", true) => Element::ParameterEnd,
        ("arg_key", false) => Element::Key,
        ("arg_value", false) => Element::Value,
        ("tool_call" | "minimax:tool_call" | "function_calls" | "tool_calls", true) => {
            Element::BlockEnd
        }
        ("tool_call" | "minimax:tool_call" | "function_calls" | "tool_calls", false) => {
            Element::Block
        }
        _ => Element::Unknown,
    }
}

/// Return the value of the attribute `wanted` in attributes of the form `name="value"`.
fn attribute<'a>(attributes: &'a str, wanted: &str) -> Option<&'a str> {
    let mut rest = attributes.trim_start();
    while let Some((name, value)) = rest.split_once('=') {
        let value = value.trim_start();
        let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let (value, after) = from(value, 1).split_once(quote)?;
        if name.trim() == wanted {
            return Some(value);
        }
        rest = after.trim_start();
    }
    None
}

fn unquoted(name: &str) -> &str {
    let inner = |quote| name.strip_prefix(quote).and_then(|name| name.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(name)
}
