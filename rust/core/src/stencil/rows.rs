//! Rows: the forms of the plain messages of a protocol, as data.
//!
//! In: JSON.  Out: patterns, and the tokens that one finds in a message.
//!
//! ```text
//! rows    = {"history": member, "most": {member: count}, "beside": {member: pattern},
//!            "rows": [{"speaker": "assistant" | "user", "item": pattern}]}
//! pattern = "$text" | "$call" | "$result" | "$name" | "$arguments" | "$input" | "$optional"    a token
//!         | "$same"                                              any value; others of the same form have the same one
//!         | "$state"                                             opaque: as "$same", but each id and long string in it is "$optional"
//!         | {"$or": [pattern]} | [pattern]                                       one of them; a list of items, each one of them
//!         | {key: pattern, "key?": pattern}                                      these members and no others; one may be absent
//!         | any other JSON                                                       itself
//! ```

use super::object::strings;
use super::string::string_at;
use super::token::{Kind, Token, token_at};
use crate::json::{Kind as JsonKind, Reader, Result, space_end, value_end};

#[derive(Debug)]
enum Pattern {
    Token(Kind),
    Same,
    State,
    Literal(String),
    Items(Vec<Pattern>),
    Members(Vec<Member>),
    OneOf(Vec<Pattern>),
}

#[derive(Debug)]
struct Member {
    key: String,
    pattern: Pattern,
    is_needed: bool,
}

#[derive(Debug)]
struct Row {
    is_answer: bool,
    pattern: Pattern,
}

/// The plain forms of a protocol.
#[derive(Debug)]
pub struct Rows {
    pub(super) history: String,
    /// Members of which a request with more occurrences is not plain.
    most: Vec<(String, usize)>,
    beside: Vec<Member>,
    messages: Vec<Row>,
}

/// What a pattern has found: tokens in order, and the form that it has taken.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) tokens: Vec<Token>,
    /// Choices among alternatives, absent members and lengths of lists, which determine the order of the tokens.
    pub(super) form: Vec<u8>,
}

impl Found {
    /// Let a piece of JSON be a part of the form.
    fn keep(&mut self, json: &str) {
        self.form.extend_from_slice(json.as_bytes());
        self.form.push(CLOSED);
    }
}

/// Choices that a byte of a form counts; what has more is not plain.
const MOST_CHOICES: usize = 200;

fn choice(number: usize) -> Option<u8> {
    (number < MOST_CHOICES).then(|| u8::try_from(number + 1).ok()).flatten()
}

impl Rows {
    /// Read the rows of a protocol.
    pub fn from_json(json: &str) -> Result<Self> {
        let mut made = Self {
            history: String::new(),
            most: Vec::new(),
            beside: Vec::new(),
            messages: Vec::new(),
        };
        Reader::new(json, LEVELS).object(|reader, key| match key {
            "history" => {
                made.history = reader.string()?.text();
                Ok(())
            }
            "beside" => {
                made.beside = members(reader)?;
                Ok(())
            }
            "most" => reader.object(|reader, key| {
                let start = reader.position();
                reader.skip()?;
                let count = reader.since(start).parse().unwrap_or(0);
                made.most.push((format!("\"{key}\""), count));
                Ok(())
            }),
            "rows" => reader.array(|reader| {
                made.messages.push(row(reader)?);
                Ok(())
            }),
            _ => reader.skip(),
        })?;
        Ok(made)
    }

    /// Return whether a request has no more of each member than the rules take as they are.
    ///
    /// A letter that is written as an escape, as no writer of JSON does, could be one of such a member.
    pub(super) fn allow(&self, json: &str) -> bool {
        let is_few = self.most.iter().all(|(member, most)| {
            memchr::memmem::find_iter(json.as_bytes(), member).take(most + 1).count() <= *most
        });
        is_few && (self.most.is_empty() || !has_escaped_letter(json))
    }

    /// Find the tokens of a message; return whether it is an answer of the model, and its end.
    ///
    /// A message without a token is not plain: nothing would tell it in the translation of a sample.
    pub(super) fn message(
        &self,
        json: &str,
        at: usize,
        found: &mut Found,
    ) -> Option<(bool, usize)> {
        let (tokens, form) = (found.tokens.len(), found.form.len());
        for (number, row) in self.messages.iter().enumerate() {
            found.form.push(choice(number)?);
            if let Some(end) = row.pattern.end(json, at, found)
                && found.tokens.len() > tokens
            {
                return Some((row.is_answer, end));
            }
            found.tokens.truncate(tokens);
            found.form.truncate(form);
        }
        None
    }

    /// Find the tokens of a member beside the history.
    pub(super) fn beside(
        &self,
        key: &str,
        json: &str,
        at: usize,
        found: &mut Found,
    ) -> Option<usize> {
        let (tokens, form) = (found.tokens.len(), found.form.len());
        let member = self.beside.iter().find(|member| member.key == key)?;
        let end = member.pattern.end(json, at, found);
        if end.is_none() {
            found.tokens.truncate(tokens);
            found.form.truncate(form);
        }
        end
    }
}

fn has_escaped_letter(json: &str) -> bool {
    let mut escapes = memchr::memmem::find_iter(json.as_bytes(), "\\u00");
    escapes.any(|at| {
        let code = json.get(at + 4..at + 6).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        code.is_some_and(|code| code.is_ascii_alphabetic() || code == b'_')
    })
}

const LEVELS: usize = 32;

fn row(reader: &mut Reader<'_>) -> Result<Row> {
    let mut made = Row { is_answer: false, pattern: Pattern::OneOf(Vec::new()) };
    reader.object(|reader, key| {
        match key {
            "speaker" => made.is_answer = reader.string()?.is("assistant"),
            "item" => made.pattern = pattern(reader)?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(made)
}

fn members(reader: &mut Reader<'_>) -> Result<Vec<Member>> {
    let mut made = Vec::new();
    reader.object(|reader, key| {
        let (key, is_needed) = match key.strip_suffix('?') {
            Some(key) => (key, false),
            None => (key, true),
        };
        made.push(Member { key: key.to_owned(), pattern: pattern(reader)?, is_needed });
        Ok(())
    })?;
    Ok(made)
}

fn patterns(reader: &mut Reader<'_>) -> Result<Vec<Pattern>> {
    let mut made = Vec::new();
    reader.array(|reader| {
        made.push(pattern(reader)?);
        Ok(())
    })?;
    Ok(made)
}

fn pattern(reader: &mut Reader<'_>) -> Result<Pattern> {
    match reader.kind()? {
        JsonKind::Object => {
            let mut made = members(reader)?;
            if matches!(made.as_slice(), [only] if only.key == "$or")
                && let Some(Member { pattern: Pattern::Items(alternatives), .. }) = made.pop()
            {
                return Ok(Pattern::OneOf(alternatives));
            }
            Ok(Pattern::Members(made))
        }
        JsonKind::Array => {
            let made = patterns(reader)?;
            // Without alternatives, it is the empty list itself.
            Ok(if made.is_empty() {
                Pattern::Literal("[]".to_owned())
            } else {
                Pattern::Items(made)
            })
        }
        _ => {
            let start = reader.position();
            reader.skip()?;
            let json = reader.since(start);
            Ok(match json {
                "\"$text\"" => Pattern::Token(Kind::Text),
                "\"$call\"" => Pattern::Token(Kind::Call),
                "\"$result\"" => Pattern::Token(Kind::Result),
                "\"$name\"" => Pattern::Token(Kind::Name),
                "\"$arguments\"" => Pattern::Token(Kind::ArgumentText),
                "\"$input\"" => Pattern::Token(Kind::ArgumentObject),
                "\"$optional\"" => Pattern::Token(Kind::Optional),
                "\"$same\"" => Pattern::Same,
                "\"$state\"" => Pattern::State,
                other => Pattern::Literal(other.to_owned()),
            })
        }
    }
}

impl Pattern {
    /// Return the end of the value at `at` if it has this form; on a mismatch, `found` may have more than before.
    fn end(&self, json: &str, at: usize, found: &mut Found) -> Option<usize> {
        match self {
            Self::Token(kind) => {
                let token = token_at(json, at, *kind)?;
                found.tokens.push(token);
                Some(token.end)
            }
            Self::Same => {
                let end = value_end(json.as_bytes(), at, LEVELS)?;
                found.keep(json.get(at..end)?);
                Some(end)
            }
            Self::State => state_end(json, at, found),
            Self::Literal(text) => {
                let is_same = json.get(at..)?.starts_with(text.as_str());
                value_end(json.as_bytes(), at, 1).filter(|end| is_same && *end == at + text.len())
            }
            Self::Items(alternatives) => items_end(alternatives, json, at, found),
            Self::OneOf(alternatives) => one_of_end(alternatives, json, at, found),
            Self::Members(members) => members_end(members, json, at, found),
        }
    }
}

/// Bytes of a string in opaque state, quotes included, that no rule compares with a word.
const OPAQUE: usize = 32;

fn state_end(json: &str, at: usize, found: &mut Found) -> Option<usize> {
    let (strings, end) = strings(json, at)?;
    let mut kept = at;
    for string in strings {
        let is_id = json.get(..string.start)?.ends_with("\"id\":");
        if !is_id && string.len() < OPAQUE {
            continue;
        }
        let Some(token) = token_at(json, string.start, Kind::Optional) else { continue };
        found.keep(json.get(kept..token.start)?);
        found.tokens.push(token);
        kept = token.end;
    }
    found.keep(json.get(kept..end)?);
    Some(end)
}

fn one_of_end(alternatives: &[Pattern], json: &str, at: usize, found: &mut Found) -> Option<usize> {
    let (tokens, form) = (found.tokens.len(), found.form.len());
    for (number, pattern) in alternatives.iter().enumerate() {
        found.form.push(choice(number)?);
        if let Some(end) = pattern.end(json, at, found) {
            return Some(end);
        }
        found.tokens.truncate(tokens);
        found.form.truncate(form);
    }
    None
}

/// Byte of a form behind the items of a list, the members of an object, and a piece of JSON, which does not have it.
const CLOSED: u8 = 0xFE;

fn items_end(alternatives: &[Pattern], json: &str, at: usize, found: &mut Found) -> Option<usize> {
    let bytes = json.as_bytes();
    if bytes.get(at) != Some(&b'[') {
        return None;
    }
    let mut at = space_end(bytes, at + 1);
    loop {
        at = space_end(bytes, one_of_end(alternatives, json, at, found)?);
        match bytes.get(at)? {
            b',' => at = space_end(bytes, at + 1),
            b']' => break,
            _ => return None,
        }
    }
    found.form.push(CLOSED);
    Some(at + 1)
}

fn members_end(members: &[Member], json: &str, at: usize, found: &mut Found) -> Option<usize> {
    let bytes = json.as_bytes();
    if bytes.get(at) != Some(&b'{') {
        return None;
    }
    let mut seen = vec![false; members.len()];
    let mut at = space_end(bytes, at + 1);
    loop {
        let (key, end) = string_at(json, at)?;
        let number = members.iter().position(|member| !key.escaped && member.key == key.raw)?;
        if std::mem::replace(seen.get_mut(number)?, true) {
            return None;
        }
        found.form.push(choice(number)?);
        at = space_end(bytes, end);
        if bytes.get(at) != Some(&b':') {
            return None;
        }
        at = members.get(number)?.pattern.end(json, space_end(bytes, at + 1), found)?;
        at = space_end(bytes, at);
        match bytes.get(at)? {
            b',' => at = space_end(bytes, at + 1),
            b'}' => break,
            _ => return None,
        }
    }
    found.form.push(CLOSED);
    let is_whole = members.iter().zip(&seen).all(|(member, seen)| *seen || !member.is_needed);
    is_whole.then_some(at + 1)
}
