//! `usageMetadata` → counts.
//!
//! Laws: the prompt's count includes what the cache gave, and not what tools put in; the candidates' count excludes
//! thoughts; all of them are the contract's input and output.
//! Source: ai.google.dev, "GenerateContentResponse: UsageMetadata".

use crate::finisher::Counts;
use crate::wire::{self, Kind, Reader, Result, Str};

/// The records so far, merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Merged {
    last: String,
    record: String,
    /// Names of its members.
    names: Vec<String>,
}

impl Merged {
    /// Takes a record; the counts and the whole of what is known, or `None` where it says what the last one said.
    pub(super) fn take(&mut self, new: &str) -> Option<(Counts, &str)> {
        if self.last == new {
            return None;
        }
        new.clone_into(&mut self.last);
        // Nearly all records of a stream have the same members: then the new one is the whole.
        let mut known = self.names.iter();
        let mut whole = true;
        let counts_of_new = counts(new, |name, kind| {
            let next = known.next();
            whole &= kind != Kind::Null && next.is_some_and(|known| name.raw == known);
        });
        if whole && known.next().is_none() {
            new.clone_into(&mut self.record);
            return Some((counts_of_new.ok()?, &self.record));
        }
        let record =
            wire::merge_objects(if self.record.is_empty() { "{}" } else { &self.record }, new);
        let (members, added) = (wire::members(&record), wire::members(new));
        let covers =
            members.len() == added.len() && added.iter().all(|(_, value)| *value != "null");
        let members = if covers { added } else { members };
        let written = wire::write_object(&members);
        self.names = members.into_iter().map(|(name, _)| name.into_owned()).collect();
        self.record = written;
        Some((counts(&self.record, |_, _| {}).ok()?, &self.record))
    }
}

/// Counts of a record, each of whose members is shown.
fn counts(usage: &str, mut member: impl FnMut(Str<'_>, Kind)) -> Result<Counts> {
    let mut counts = Counts::default();
    let (mut prompt, mut tools, mut candidates) = (None, None, None);
    Reader::trusted(usage).entries(|reader, key| {
        member(key, reader.kind()?);
        match key.raw {
            "promptTokenCount" | "prompt_token_count" => prompt = reader.count()?,
            "toolUsePromptTokenCount" | "tool_use_prompt_token_count" => tools = reader.count()?,
            // The second is the name in the Live API and in Vertex's older answers.
            "candidatesTokenCount" | "candidates_token_count" | "responseTokenCount" => {
                candidates = reader.count()?.or(candidates);
            }
            "thoughtsTokenCount" | "thoughts_token_count" => counts.reasoning = reader.count()?,
            "cachedContentTokenCount" | "cached_content_token_count" => {
                counts.cache_read = reader.count()?;
            }
            "promptTokensDetails" | "prompt_tokens_details" => {
                counts.audio_input = audio(reader)?;
            }
            "candidatesTokensDetails" | "candidates_tokens_details" => {
                counts.audio_output = audio(reader)?;
            }
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    // Whoever counts more cached tokens than prompt tokens leaves them out of the prompt.
    let beside = counts.cache_read.filter(|cached| prompt.is_some_and(|prompt| *cached > prompt));
    counts.input = sum([prompt, tools, beside]);
    counts.output = sum([candidates, counts.reasoning]);
    Ok(counts)
}

/// The sum of what is known; unknown when nothing is.
pub(in crate::dialect) fn sum<const N: usize>(counts: [Option<u64>; N]) -> Option<u64> {
    counts.into_iter().flatten().reduce(u64::saturating_add)
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
