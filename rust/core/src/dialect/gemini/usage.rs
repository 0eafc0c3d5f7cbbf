//! `usageMetadata` → counts.
//!
//! Laws: the prompt's count includes what the cache gave, and not what tools put in; the candidates' count excludes
//! thoughts; all of them are the contract's input and output.
//! Source: ai.google.dev, "GenerateContentResponse: UsageMetadata".

use crate::finisher::Counts;
use crate::wire::{Reader, Result};

/// Counts of a merged record.
pub(super) fn counts(usage: &str) -> Result<Counts> {
    let mut counts = Counts::default();
    let (mut prompt, mut tools, mut candidates) = (None, None, None);
    Reader::trusted(usage).maybe_object(|reader, key| {
        match key {
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
