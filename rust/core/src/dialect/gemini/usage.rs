//! `usageMetadata` → counts.
//!
//! Laws: the prompt's count includes what the cache gave, and not what tools put in; the candidates' count excludes
//! thoughts; all of them are the contract's input and output.
//! Source: ai.google.dev, "GenerateContentResponse: UsageMetadata".

use std::ops::Range;

use crate::emit::Counts;
use crate::json::{self, Kind, Reader, Result, Str, leading_count};

/// The records so far, merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Merged {
    record: String,
    /// The last record as it came, where that is not all that is known.
    last: Option<String>,
    /// Names of the record's members.
    names: Vec<String>,
    numbers: Numbers,
    /// Where the record has its members' numbers.
    spans: MemberSpans,
}

type MemberSpans = Vec<(Range<usize>, Member)>;

impl Merged {
    /// Bytes of what is known.
    pub(super) fn bytes(&self) -> usize {
        self.record.len()
    }

    /// Takes a record; the counts and the whole of what is known, or `None` where it says what the last one said.
    pub(super) fn take(&mut self, new: &str) -> Option<(Counts, &str)> {
        if self.last.as_ref().unwrap_or(&self.record) == new {
            return None;
        }
        if !self.recount(new) {
            // Nearly all records of a stream have the same members: then the new one is the whole.
            let mut known = self.names.iter();
            let mut whole = true;
            let found = Numbers::read(new, |name, kind| {
                let next = known.next();
                whole &= kind != Kind::Null && next.is_some_and(|known| name.raw == known);
            });
            if !whole || known.next().is_some() {
                return self.merge(new);
            }
            (self.numbers, self.spans) = found.ok()?;
        }
        new.clone_into(&mut self.record);
        self.last = None;
        Some((self.numbers.counts(), &self.record))
    }

    /// Takes the counts of a record in which nothing but its members' numbers is new; false for any other.
    fn recount(&mut self, new: &str) -> bool {
        let known = self.record.as_bytes();
        let (mut mine, mut rest) = (0, new.as_bytes());
        for (span, member) in &mut self.spans {
            let literal = known.get(mine..span.start).unwrap_or_default();
            let value = rest.strip_prefix(literal).and_then(leading_count);
            let Some((value, digits)) = value else {
                // Some spans are those of the new record by now.
                self.spans.clear();
                return false;
            };
            mine = span.end;
            let start = new.len() - rest.len() + literal.len();
            *span = start..start + digits;
            self.numbers.set(*member, Some(value));
            rest = new.as_bytes().get(span.end..).unwrap_or_default();
        }
        let same = !self.spans.is_empty() && known.get(mine..) == Some(rest);
        if !same {
            self.spans.clear();
        }
        same
    }

    fn merge(&mut self, new: &str) -> Option<(Counts, &str)> {
        let known = if self.record.is_empty() { "{}" } else { &self.record };
        let record = json::merge_objects(known, new);
        let (members, added) = (json::members(&record), json::members(new));
        let covers =
            members.len() == added.len() && added.iter().all(|(_, value)| *value != "null");
        let members = if covers { added } else { members };
        let written = json::write_object(&members);
        self.names = members.into_iter().map(|(name, _)| name.into_owned()).collect();
        self.record = written;
        self.last = (self.record != new).then(|| new.to_owned());
        (self.numbers, self.spans) = Numbers::read(&self.record, |_, _| {}).ok()?;
        Some((self.numbers.counts(), &self.record))
    }
}

/// A member that is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Prompt,
    Tools,
    Candidates,
    Thoughts,
    Cached,
    /// One that is not counted by itself.
    Other,
}

/// The numbers of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Numbers {
    prompt: Option<u64>,
    tools: Option<u64>,
    candidates: Option<u64>,
    thoughts: Option<u64>,
    cached: Option<u64>,
    audio_input: Option<u64>,
    audio_output: Option<u64>,
}

impl Numbers {
    /// The numbers of a record, each of whose members is shown, and where its members' numbers lie.
    fn read(usage: &str, mut member: impl FnMut(Str<'_>, Kind)) -> Result<(Self, MemberSpans)> {
        let mut numbers = Self::default();
        let mut spans = MemberSpans::new();
        Reader::trusted(usage).entries(|reader, key| {
            let kind = reader.kind()?;
            member(key, kind);
            let which = match key.raw {
                "promptTokenCount" | "prompt_token_count" => Member::Prompt,
                "toolUsePromptTokenCount" | "tool_use_prompt_token_count" => Member::Tools,
                // The second is the name in the Live API and in Vertex's older answers.
                "candidatesTokenCount" | "candidates_token_count" | "responseTokenCount" => {
                    Member::Candidates
                }
                "thoughtsTokenCount" | "thoughts_token_count" => Member::Thoughts,
                "cachedContentTokenCount" | "cached_content_token_count" => Member::Cached,
                "promptTokensDetails" | "prompt_tokens_details" => {
                    numbers.audio_input = audio(reader)?;
                    return Ok(());
                }
                "candidatesTokensDetails" | "candidates_tokens_details" => {
                    numbers.audio_output = audio(reader)?;
                    return Ok(());
                }
                _ => Member::Other,
            };
            let start = reader.position();
            numbers.set(which, reader.count()?);
            if leading_count(reader.since(start).as_bytes())
                .is_some_and(|(_, digits)| start + digits == reader.position())
            {
                spans.push((start..reader.position(), which));
            }
            Ok(())
        })?;
        Ok((numbers, spans))
    }

    fn set(&mut self, member: Member, count: Option<u64>) {
        match member {
            Member::Prompt => self.prompt = count,
            Member::Tools => self.tools = count,
            Member::Candidates => self.candidates = count.or(self.candidates),
            Member::Thoughts => self.thoughts = count,
            Member::Cached => self.cached = count,
            Member::Other => {}
        }
    }

    fn counts(&self) -> Counts {
        // Whoever counts more cached tokens than prompt tokens leaves them out of the prompt.
        let beside =
            self.cached.filter(|cached| self.prompt.is_some_and(|prompt| *cached > prompt));
        Counts {
            input: sum([self.prompt, self.tools, beside]),
            output: sum([self.candidates, self.thoughts]),
            cache_read: self.cached,
            reasoning: self.thoughts,
            audio_input: self.audio_input,
            audio_output: self.audio_output,
            ..Counts::default()
        }
    }
}

/// The sum of what is known; unknown when nothing is.
#[inline]
pub(in crate::dialect) fn sum<const N: usize>(counts: [Option<u64>; N]) -> Option<u64> {
    let mut total = None;
    for count in counts {
        total = match (total, count) {
            (Some(total), Some(count)) => Some(u64::saturating_add(total, count)),
            (total, count) => total.or(count),
        };
    }
    total
}

/// Tokens of sound in a list `[{modality, tokenCount}]`.
pub(in crate::dialect) fn audio(reader: &mut Reader<'_>) -> Result<Option<u64>> {
    let mut found = None;
    reader.maybe_array(|reader| {
        let (mut is_audio, mut count) = (false, None);
        reader.maybe_object(|reader, key| {
            match key {
                "modality" => {
                    let name = reader.opt_string()?;
                    is_audio = name.is_some_and(|name| name.raw.eq_ignore_ascii_case("audio"));
                }
                "tokenCount" | "token_count" | "tokens" => count = reader.count()?,
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        if is_audio {
            found = sum([found, count]);
        }
        Ok(())
    })?;
    Ok(found)
}
