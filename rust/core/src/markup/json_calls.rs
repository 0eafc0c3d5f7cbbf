//! Grammar of calls as JSON objects between tags: Hermes, Qwen, Mistral's arrays, Cohere, and Llama's bare objects.
//!
//! In: the text after an opening tag, or an object that begins a turn.  Out: calls.
//!
//! Laws:
//! - A call begins once its name is known, and in families with ids once its id is known too.  Llama's calls begin at the
//!   end of the object.  Arguments that arrive earlier wait.
//! - Arguments are the raw text of their object, or the text of their string.
//! - An object that has no name, or breaks off before it, is prose.
//! - After a whole object the block may end without a closing tag.
//!
//! Source: docs/protocols/inline-markup.md#json, docs/protocols/inline-markup.md#python,
//! docs/protocols/inline-markup.md#mistral-cohere.

use super::literals::{Found, from, here};
use super::value::Value;
use super::writer::{MarkupWriter, Next, Step, next_byte};
use crate::contract::InputFormat;
use crate::emit::{CallEnd, EmitterSink};

/// Grammar of the objects of a family.
#[derive(Debug, PartialEq)]
pub(super) struct JsonGrammar {
    /// Tags around the objects.
    pub(super) tags: &'static [(&'static str, Tag)],
    /// Name of the id member, in families with ids.
    pub(super) id: Option<&'static str>,
    /// True if a call is emitted only at the end of the object and must name an offered tool.
    pub(super) held: bool,
}

/// Tag around the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// Start of another block; the closing tag before it may be missing.
    Open,
    /// End of the block.
    Close,
    /// Code fence inside the block.
    Fence,
}

/// Block of calls that is being parsed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JsonBlock {
    grammar: &'static JsonGrammar,
    state: JsonCallsState,
    array: bool,
    object: Object,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonCallsState {
    Before,
    Inside,
    After,
}

impl JsonBlock {
    pub(super) fn new(grammar: &'static JsonGrammar) -> Self {
        let object = Object::new(grammar);
        Self { grammar, state: JsonCallsState::Before, array: false, object }
    }

    pub(super) fn held(&self) -> usize {
        self.object.held()
    }

    /// Take the end of the text.  A call that waits for its id begins without one.
    pub(super) fn finish(&mut self, writer: &mut MarkupWriter, sink: &mut EmitterSink<'_>) {
        if self.state == JsonCallsState::Inside && !self.grammar.held && !self.object.begun {
            self.object.begin_without_id(writer, sink);
        }
    }

    pub(super) fn step(
        &mut self,
        input: &str,
        writer: &mut MarkupWriter,
        sink: &mut EmitterSink<'_>,
    ) -> Step {
        if self.state == JsonCallsState::Inside {
            return self.inside(input, writer, sink);
        }
        let byte = match next_byte(input) {
            Next::Step(step) => return step,
            Next::Byte(byte) => byte,
        };
        match (byte, self.state) {
            (b'{', state) => {
                if state == JsonCallsState::After {
                    writer.begin_candidate("");
                }
                self.object = Object::new(self.grammar);
                self.state = JsonCallsState::Inside;
                return Step::Take(0);
            }
            (b'[', JsonCallsState::Before) if !self.array => {
                self.array = true;
                return Step::Take(1);
            }
            (b']', _) if self.array => {
                self.array = false;
                let over = !self.grammar.tags.iter().any(|(_, tag)| *tag == Tag::Close);
                self.state = JsonCallsState::After;
                return if over { Step::Leave(1) } else { Step::Take(1) };
            }
            (b',' | b';' | b'}', JsonCallsState::After) => return Step::Take(1),
            _ => {}
        }
        match here(input, 0, self.grammar.tags, |_| true) {
            Found::Partial(_) => Step::Wait,
            Found::At { end, role: Tag::Fence, .. } => Step::Take(end),
            Found::At { end, role: Tag::Close, .. } if self.state == JsonCallsState::After => {
                Step::Leave(end)
            }
            Found::At { end, role: Tag::Open, .. } if self.state == JsonCallsState::After => {
                writer.begin_candidate("");
                self.state = JsonCallsState::Before;
                self.array = false;
                Step::Take(end)
            }
            _ if self.state == JsonCallsState::After => Step::Leave(0),
            _ => Step::Prose(0),
        }
    }

    fn inside(
        &mut self,
        input: &str,
        writer: &mut MarkupWriter,
        sink: &mut EmitterSink<'_>,
    ) -> Step {
        let (taken, status) = self.object.feed(input, writer, sink);
        match status {
            Status::Open if taken == 0 => Step::Wait,
            Status::Open => Step::Take(taken),
            Status::Whole => {
                self.state = JsonCallsState::After;
                Step::Take(taken)
            }
            Status::Wrong => Step::Prose(taken),
        }
    }
}

/// Object that is parsed as a call.
#[derive(Clone, Debug, PartialEq)]
struct Object {
    grammar: &'static JsonGrammar,
    at: At,
    /// Number of open objects of the form `{"function": {…}}`.
    level: usize,
    member: Member,
    value: Value,
    /// Key, name or id that is being read.
    word: String,
    name: Option<String>,
    id: Option<String>,
    /// Arguments that wait for the start of the call.
    args: String,
    args_over: bool,
    begun: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Open,
    Key,
    InKey,
    Colon,
    Value,
    InValue,
    Comma,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Name,
    Id,
    Arguments,
    /// `function`: a name, or an object with name and arguments.
    Function,
    Other,
}

enum Status {
    Open,
    Whole,
    Wrong,
}

/// Maximum length of a key, name or id.  A longer text cannot be the name of a tool.
pub(super) const NAME_BYTES: usize = 256;

impl Object {
    fn new(grammar: &'static JsonGrammar) -> Self {
        Self {
            grammar,
            at: At::Open,
            level: 0,
            member: Member::Other,
            value: Value::default(),
            word: String::new(),
            name: None,
            id: None,
            args: String::new(),
            args_over: false,
            begun: false,
        }
    }

    fn held(&self) -> usize {
        self.args.len() + self.word.len()
    }

    fn feed(
        &mut self,
        input: &str,
        writer: &mut MarkupWriter,
        sink: &mut EmitterSink<'_>,
    ) -> (usize, Status) {
        let mut at = 0;
        loop {
            let rest = from(input, at);
            let Some(byte) = rest.bytes().next() else { return (at, Status::Open) };
            let outside = !matches!(self.at, At::InKey | At::InValue);
            if outside && matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                at += 1;
                continue;
            }
            match (self.at, byte) {
                (At::Open, b'{') | (At::Comma, b',') => self.at = At::Key,
                (At::Key, b'"' | b'\'') => {
                    self.begin_value();
                    self.at = At::InKey;
                    continue;
                }
                (At::Key | At::Comma, b'}') if self.level > 0 => {
                    self.level -= 1;
                    self.at = At::Comma;
                }
                (At::Key | At::Comma, b'}') => {
                    let status = self.whole(writer, sink);
                    return (at + 1, status);
                }
                (At::Colon, b':') => {
                    self.member = self.member_of_key();
                    self.begin_value();
                    self.at = At::Value;
                }
                (At::Value, b'{') if self.member == Member::Function && self.level == 0 => {
                    self.level = 1;
                    self.at = At::Key;
                }
                (At::Value, _) => {
                    self.at = At::InValue;
                    continue;
                }
                (At::InKey, _) => {
                    let (taken, over) = self.value.feed(rest, &mut self.word);
                    at += taken;
                    if self.word.len() > NAME_BYTES {
                        return (at, Status::Wrong);
                    }
                    if over {
                        self.at = At::Colon;
                    }
                    continue;
                }
                (At::InValue, _) => {
                    let (taken, fits) = self.in_value(rest, writer, sink);
                    at += taken;
                    if !fits {
                        return (at, Status::Wrong);
                    }
                    continue;
                }
                _ => return (at, Status::Wrong),
            }
            at += 1;
        }
    }

    fn begin_value(&mut self) {
        self.value = Value::default();
        self.word.clear();
    }

    fn member_of_key(&self) -> Member {
        match self.word.as_str() {
            "name" | "tool_name" if self.name.is_none() => Member::Name,
            "function" if self.name.is_none() => Member::Function,
            "arguments" | "parameters" if !self.args_over => Member::Arguments,
            key if self.grammar.id == Some(key) && self.id.is_none() => Member::Id,
            _ => Member::Other,
        }
    }

    /// Read more of a member's value.  Returns the number of bytes, and false if the value is not possible there.
    fn in_value(
        &mut self,
        rest: &str,
        writer: &mut MarkupWriter,
        sink: &mut EmitterSink<'_>,
    ) -> (usize, bool) {
        let mut said = String::new();
        let (taken, over) = self.value.feed(rest, &mut said);
        if self.value.is_wrong() && over {
            return (taken, false);
        }
        match self.member {
            Member::Other => {}
            Member::Arguments => {
                if self.begun {
                    writer.args(&said, sink);
                } else {
                    self.args.push_str(&said);
                }
            }
            Member::Name | Member::Function | Member::Id => {
                self.word.push_str(&said);
                if self.word.len() > NAME_BYTES {
                    return (taken, false);
                }
            }
        }
        if over {
            self.at = At::Comma;
            let fits = self.take_member(writer);
            if fits {
                self.begin(false, writer, sink);
            }
            return (taken, fits);
        }
        (taken, true)
    }

    /// Use the complete value of a member.  Returns false if the object cannot be a call.
    fn take_member(&mut self, writer: &MarkupWriter) -> bool {
        match self.member {
            Member::Name | Member::Function => {
                let name = std::mem::take(&mut self.word);
                let fits = self.value.is_text()
                    && !name.is_empty()
                    && (!self.grammar.held || writer.offers(&name));
                self.name = Some(name);
                fits
            }
            Member::Id => {
                self.id = Some(std::mem::take(&mut self.word));
                true
            }
            Member::Arguments => {
                self.args_over = true;
                true
            }
            Member::Other => true,
        }
    }

    /// Begin the call if its name and id are known, and end it if its arguments are complete.
    fn begin(&mut self, whole: bool, writer: &mut MarkupWriter, sink: &mut EmitterSink<'_>) {
        let known = !self.grammar.held && (self.grammar.id.is_none() || self.id.is_some());
        if !self.begun && (whole || known) {
            self.begin_without_id(writer, sink);
        }
        if self.begun && (self.args_over || whole) {
            writer.end_call(CallEnd::Provider, sink);
        }
    }

    /// Begin the call if its name is known, with or without an id.
    fn begin_without_id(&mut self, writer: &mut MarkupWriter, sink: &mut EmitterSink<'_>) {
        if let Some(name) = &self.name {
            let id = self.id.as_deref().filter(|id| !id.is_empty());
            writer.begin_call(name, id, InputFormat::Json, sink);
            self.begun = true;
            writer.args(&std::mem::take(&mut self.args), sink);
            if self.args_over {
                writer.end_call(CallEnd::Provider, sink);
            }
        }
    }

    fn whole(&mut self, writer: &mut MarkupWriter, sink: &mut EmitterSink<'_>) -> Status {
        // Llama's objects need both members, because an answer in JSON may have a member `name`.
        if self.name.is_none() || (self.grammar.held && !self.args_over) {
            return Status::Wrong;
        }
        self.begin(true, writer, sink);
        Status::Whole
    }
}
