//! Log probabilities of a choice (`choices[].logprobs`) and the token ids beside them → [`Logprobs`].
//!
//! Servers send one of three shapes:
//! - lists of `{token, logprob, top_logprobs}` under `content` and `refusal`;
//! - the parallel lists of older servers (`tokens`, `token_logprobs`, `token_ids`, `top_logprobs`);
//! - token ids alone.
//!
//! A token id is taken from the first of these places that has one:
//! - `token_id` or `id` of an entry (SGLang, llama.cpp, KoboldCpp);
//! - the token text, if the server writes `token_id:123` instead of it (vLLM, `return_tokens_as_token_ids`);
//! - `token_ids` of the choice (vLLM and SGLang, `return_token_ids`).

use crate::contract::{Column, Logprobs, NO_ID, read_bytes};
use crate::json::{Cursor, Kind, Reader, Result, Str};

/// Token data of a choice.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ChoiceLogprobs<'a> {
    /// The object of a chunk as raw JSON.  A template may hold it, and `apply` reads it into reused arrays.
    pub(super) json: Option<&'a str>,
    /// Data that is read at once: the many tokens of a whole body, or data that arrives in two places.
    pub(super) tokens: Option<Box<Tokens>>,
    /// Data that was sent and not read.
    pub(super) unread: bool,
}

impl<'a> ChoiceLogprobs<'a> {
    /// Read `logprobs` of a choice.  `whole` means that the choice holds its full message.
    pub(super) fn read(&mut self, reader: &mut Reader<'a>, whole: bool) -> Result<()> {
        if reader.kind()? != Kind::Object {
            return reader.skip();
        }
        if whole || *self != Self::default() {
            return self.tokens()?.read(reader);
        }
        self.json = Some(reader.raw()?);
        Ok(())
    }

    /// Read the list of token ids beside `logprobs`.
    pub(super) fn read_ids(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        self.tokens()?.read_ids(reader)
    }

    fn tokens(&mut self) -> Result<&mut Tokens> {
        let json = self.json.take();
        let tokens = self.tokens.get_or_insert_default();
        match json {
            Some(json) => tokens.read(&mut Reader::trusted(json)).map(|()| tokens.as_mut()),
            None => Ok(tokens),
        }
    }
}

/// Tokens during reading.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tokens {
    logprobs: Logprobs,
    ids: Vec<i64>,
}

impl Tokens {
    /// Read the object under `logprobs`.
    pub(super) fn read(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        self.logprobs.clear();
        let mut lists = Lists::default();
        reader.object(|reader, key| match key {
            "content" | "refusal" => read_entries(reader, &mut self.logprobs),
            "tokens" => reader.maybe_array(|reader| {
                lists.tokens.push(reader.opt_string()?);
                Ok(())
            }),
            "token_logprobs" => reader.maybe_array(|reader| {
                lists.logprobs.push(reader.float()?);
                Ok(())
            }),
            "token_ids" => self.read_ids(reader),
            "top_logprobs" => reader.maybe_array(|reader| {
                lists.alternatives.push(reader.raw()?);
                Ok(())
            }),
            _ => reader.skip(),
        })?;
        if self.logprobs.is_empty() { lists.join(&mut self.logprobs) } else { Ok(()) }
    }

    fn read_ids(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        self.ids.clear();
        reader.maybe_array(|reader| {
            self.ids.push(reader.integer()?.filter(|id| *id >= 0).unwrap_or(NO_ID));
            Ok(())
        })
    }

    /// Combine ids and log probabilities.  If a server sends different numbers of them, none is lost.
    pub(super) fn join(&mut self) -> Option<&Logprobs> {
        if self.logprobs.ids().is_none() && !self.ids.is_empty() {
            while self.logprobs.len() < self.ids.len() {
                self.logprobs.open();
            }
            self.logprobs.set_ids(&self.ids);
        }
        self.joined()
    }

    /// Return the combined data, if there is any.
    pub(super) fn joined(&self) -> Option<&Logprobs> {
        Some(&self.logprobs).filter(|logprobs| !logprobs.is_empty())
    }

    /// Read the object of another choice.  Replaces the content and keeps the allocated memory.
    pub(super) fn read_anew(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        self.ids.clear();
        self.read(reader)
    }
}

/// Read a list of `{token, logprob, top_logprobs}`.
pub(in crate::dialect) fn read_entries(
    reader: &mut Reader<'_>,
    logprobs: &mut Logprobs,
) -> Result<()> {
    reader.maybe_array(|reader| {
        // Reads entries in the usual form as long as they match, then one entry in another form.
        let (mut cursor, mut rows) = (reader.cursor(), logprobs.len());
        while let Some(behind) = read_usual_entry(cursor, reader.levels(), logprobs) {
            cursor = behind;
            if !cursor.follows(",") {
                reader.resume(cursor);
                return Ok(());
            }
            rows += 1;
        }
        reader.resume(cursor);
        logprobs.truncate(rows);
        read_entry(reader, logprobs)
    })
}

fn read_entry(reader: &mut Reader<'_>, logprobs: &mut Logprobs) -> Result<()> {
    logprobs.open();
    let mut written_id = None;
    let mut id = None;
    let mut bytes = Bytes::default();
    reader.maybe_object(|reader, key| {
        match key {
            "token" => {
                if let Some(token) = reader.opt_string()? {
                    written_id = id_in(token.raw);
                    bytes.is_read |= may_have_other_bytes(token);
                    logprobs.set_token(token);
                }
            }
            "logprob" => logprobs.set_logprob(reader.float()?.unwrap_or(f64::NAN)),
            "top_logprobs" => {
                logprobs.clear_alternatives();
                reader.maybe_array(|reader| read_alternative(reader, logprobs))?;
            }
            "bytes" => bytes.list = read_bytes(reader)?,
            "token_id" | "id" => id = reader.integer()?.filter(|id| *id >= 0),
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    if let Some(id) = id.or(written_id) {
        logprobs.set_id(id);
    }
    if let Some(bytes) = bytes.found() {
        logprobs.set_bytes(bytes);
    }
    Ok(())
}

/// Nesting levels of an entry without alternatives (entry, bytes) and with them (entry, list, alternative, bytes).
const LEVELS: [usize; 2] = [2, 4];

/// Read an entry in the member order and form that OpenAI and most servers write.
///
/// Returns the position behind the entry, or `None` at the first difference.
#[inline]
fn read_usual_entry<'a>(
    mut cursor: Cursor<'a>,
    levels: usize,
    logprobs: &mut Logprobs,
) -> Option<Cursor<'a>> {
    let [least, most] = LEVELS;
    (levels >= least && cursor.follows("{\"token\":\"")).then_some(())?;
    let text = cursor.rest();
    cursor = read_usual_token(cursor, logprobs.begin())?;
    if !cursor.follows(",\"top_logprobs\":[]}") {
        if cursor.follows(",\"top_logprobs\":[{\"token\":\"") {
            (levels >= most).then_some(())?;
            let alternatives = logprobs.begin_alternatives();
            cursor = read_usual_token(cursor, alternatives)?;
            while cursor.follows("},{\"token\":\"") {
                cursor = read_usual_token(cursor, alternatives)?;
            }
            cursor.follows("}]").then_some(())?;
            logprobs.end_alternatives();
        }
        cursor.follows("}").then_some(())?;
    }
    if text.starts_with(WRITTEN_ID) {
        logprobs.set_id(id_in(text.get(..text.find('"')?)?)?);
    }
    Some(cursor)
}

/// Read a token, from behind the opening quote of its text up to its closing brace.
fn read_usual_token<'a>(mut cursor: Cursor<'a>, column: &mut Column) -> Option<Cursor<'a>> {
    let token = cursor.string()?;
    cursor.follows(",\"logprob\":").then_some(())?;
    column.push(token, cursor.float()?);
    if cursor.follows(",\"bytes\":[") {
        let list = cursor.rest();
        cursor.counts()?;
        if may_have_other_bytes(token) {
            set_bytes(list, column)?;
        }
    } else {
        cursor.follows(",\"bytes\":null");
    }
    Some(cursor)
}

/// The bytes of a token, and whether its text is such that they count.
#[derive(Default)]
struct Bytes {
    is_read: bool,
    list: Option<Vec<u8>>,
}

impl Bytes {
    fn found(&self) -> Option<&[u8]> {
        self.list.as_deref().filter(|_| self.is_read)
    }
}

/// Return whether the bytes of a token may differ from its text: half a character, or an escape.
#[inline]
fn may_have_other_bytes(token: Str<'_>) -> bool {
    token.escaped
        || !token.raw.is_ascii()
        || token.raw.as_bytes().first().is_none_or(|first| *first == b'<')
}

/// Set the bytes of the last row from a list of numbers, whose opening bracket was read.
#[cold]
fn set_bytes(list: &str, column: &mut Column) -> Option<()> {
    let (list, _) = list.split_once(']')?;
    let bytes: Option<Vec<u8>> = list.split(',').map(|number| number.parse().ok()).collect();
    column.set_bytes(&bytes?);
    Some(())
}

/// Prefix of a token text that holds an id, as in `token_id:123`.
const WRITTEN_ID: &str = "token_id:";

/// Return the id in a token text of the form `token_id:123`.
fn id_in(token: &str) -> Option<i64> {
    token.strip_prefix(WRITTEN_ID)?.parse().ok().filter(|id| *id >= 0)
}

fn read_alternative(reader: &mut Reader<'_>, logprobs: &mut Logprobs) -> Result<()> {
    logprobs.open_alternative();
    let mut bytes = Bytes::default();
    reader.maybe_object(|reader, key| {
        match key {
            "token" => {
                if let Some(token) = reader.opt_string()? {
                    bytes.is_read |= may_have_other_bytes(token);
                    logprobs.set_alternative_token(token);
                }
            }
            "logprob" => logprobs.set_alternative_logprob(reader.float()?.unwrap_or(f64::NAN)),
            "bytes" => bytes.list = read_bytes(reader)?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    if let Some(bytes) = bytes.found() {
        logprobs.set_alternative_bytes(bytes);
    }
    Ok(())
}

/// The older shape: parallel lists.
#[derive(Default)]
struct Lists<'a> {
    tokens: Vec<Option<Str<'a>>>,
    logprobs: Vec<Option<f64>>,
    /// Objects `{token: log probability}` as JSON.
    alternatives: Vec<&'a str>,
}

impl Lists<'_> {
    fn join(self, out: &mut Logprobs) -> Result<()> {
        let rows = self.tokens.len().max(self.logprobs.len()).max(self.alternatives.len());
        for row in 0..rows {
            out.open();
            if let Some(token) = self.tokens.get(row).copied().flatten() {
                out.set_token(token);
            }
            out.set_logprob(self.logprobs.get(row).copied().flatten().unwrap_or(f64::NAN));
            if let Some(alternatives) = self.alternatives.get(row) {
                Reader::trusted(alternatives).maybe_object(|reader, token| {
                    out.open_alternative();
                    out.set_alternative_token(Str::plain(token));
                    out.set_alternative_logprob(reader.float()?.unwrap_or(f64::NAN));
                    Ok(())
                })?;
            }
        }
        Ok(())
    }
}
