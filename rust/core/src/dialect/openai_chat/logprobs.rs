//! `choices[].logprobs` and the token ids beside it → [`Logprobs`].
//!
//! Three shapes: lists of `{token, logprob, top_logprobs}` under `content` and `refusal`; the parallel lists of older
//! servers (`tokens`, `token_logprobs`, `token_ids`, `top_logprobs`); ids alone.
//!
//! Token ids, the first that is there: `token_id` or `id` of an entry (SGLang, llama.cpp, KoboldCpp), the token's text
//! where a server writes `token_id:123` for it (vLLM, `return_tokens_as_token_ids`), `token_ids` of the choice (vLLM and
//! SGLang, `return_token_ids`).

use crate::contract::{Column, Logprobs, NO_ID};
use crate::json::{Cursor, Kind, Reader, Result, Str};

/// What a choice says about its tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ChoiceLogprobs<'a> {
    /// The object of a chunk as it stands: a template may hold it, and `apply` reads it into arrays that it keeps.
    pub(super) json: Option<&'a str>,
    /// What is read where it is found: a whole body's many tokens, and what is said in two places.
    pub(super) tokens: Option<Box<Tokens>>,
}

impl<'a> ChoiceLogprobs<'a> {
    /// Reads `logprobs` of a choice; `whole` is one that holds its message.
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

    /// Reads the list of token ids beside it.
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

/// Tokens as they are read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tokens {
    logprobs: Logprobs,
    ids: Vec<i64>,
}

impl Tokens {
    /// Reads the object under `logprobs`.
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

    /// Puts ids and log probabilities side by side; a server that counts them differently loses none of either.
    pub(super) fn join(&mut self) -> Option<&Logprobs> {
        if self.logprobs.ids().is_none() && !self.ids.is_empty() {
            while self.logprobs.len() < self.ids.len() {
                self.logprobs.open();
            }
            self.logprobs.set_ids(&self.ids);
        }
        self.joined()
    }

    /// What was put side by side, when there is any.
    pub(super) fn joined(&self) -> Option<&Logprobs> {
        Some(&self.logprobs).filter(|logprobs| !logprobs.is_empty())
    }

    /// Reads the object of another choice; only the room is kept.
    pub(super) fn read_anew(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        self.ids.clear();
        self.read(reader)
    }
}

/// Reads a list of `{token, logprob, top_logprobs}`.
pub(in crate::dialect) fn read_entries(
    reader: &mut Reader<'_>,
    logprobs: &mut Logprobs,
) -> Result<()> {
    reader.maybe_array(|reader| {
        // As many as come in the usual form, and one in any other.
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
    reader.maybe_object(|reader, key| {
        match key {
            "token" => {
                if let Some(token) = reader.opt_string()? {
                    written_id = id_in(token.raw);
                    logprobs.set_token(token);
                }
            }
            "logprob" => logprobs.set_logprob(reader.float()?.unwrap_or(f64::NAN)),
            "top_logprobs" => {
                logprobs.clear_alternatives();
                reader.maybe_array(|reader| read_alternative(reader, logprobs))?;
            }
            "token_id" | "id" => id = reader.integer()?.filter(|id| *id >= 0),
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    if let Some(id) = id.or(written_id) {
        logprobs.set_id(id);
    }
    Ok(())
}

/// Nesting of an entry without alternatives (it, its bytes), and with them (it, the list, one of them, its bytes).
const LEVELS: [usize; 2] = [2, 4];

/// Reads an entry whose members stand in the order and form in which OpenAI and most servers write them, and what
/// follows it; `None` at the first difference.
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

/// Reads a token from behind its text's quote, up to its brace.
fn read_usual_token<'a>(mut cursor: Cursor<'a>, column: &mut Column) -> Option<Cursor<'a>> {
    let token = cursor.string()?;
    cursor.follows(",\"logprob\":").then_some(())?;
    column.push(token, cursor.float()?);
    if cursor.follows(",\"bytes\":[") {
        cursor.counts()?;
    } else {
        cursor.follows(",\"bytes\":null");
    }
    Some(cursor)
}

/// How a token begins that is written as its id, `token_id:123`.
const WRITTEN_ID: &str = "token_id:";

/// The id in such a token.
fn id_in(token: &str) -> Option<i64> {
    token.strip_prefix(WRITTEN_ID)?.parse().ok().filter(|id| *id >= 0)
}

fn read_alternative(reader: &mut Reader<'_>, logprobs: &mut Logprobs) -> Result<()> {
    logprobs.open_alternative();
    reader.maybe_object(|reader, key| {
        match key {
            "token" => {
                if let Some(token) = reader.opt_string()? {
                    logprobs.set_alternative_token(token);
                }
            }
            "logprob" => logprobs.set_alternative_logprob(reader.float()?.unwrap_or(f64::NAN)),
            _ => reader.skip()?,
        }
        Ok(())
    })
}

/// The older shape: lists side by side.
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
