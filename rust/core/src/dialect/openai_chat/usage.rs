//! Usage records of Chat Completions and Responses servers → counts.
//!
//! Laws: Responses writes `input` and `output` for Chat's `prompt` and `completion`; `prompt_tokens` includes cached tokens,
//! unless there are more cached than prompt tokens (xAI, grok on Azure); `completion_tokens` includes reasoning, unless the
//! total says otherwise (xAI).
//! Source: the servers' documents and recordings; which vendor sends which member stands beside the member.

use crate::emit::Counts;
use crate::json::{Kind, Reader, Result};

#[derive(Default)]
struct Record {
    prompt: Option<u64>,
    completion: Option<u64>,
    total: Option<u64>,
    cached: Option<u64>,
    cached_elsewhere: Option<u64>,
    cache_write: Option<u64>,
    reasoning: Option<u64>,
    reasoning_elsewhere: Option<u64>,
    cost: Option<f64>,
    audio_input: Option<u64>,
    audio_output: Option<u64>,
}

/// Counts of a merged usage object.
pub(in crate::dialect) fn counts(usage: &str) -> Result<Counts> {
    let mut record = Record::default();
    Reader::trusted(usage).maybe_object(|reader, key| {
        match key {
            "prompt_tokens" => record.prompt = reader.count()?.or(record.prompt),
            "completion_tokens" => record.completion = reader.count()?.or(record.completion),
            "input_tokens" => record.prompt = record.prompt.or(reader.count()?),
            "output_tokens" => record.completion = record.completion.or(reader.count()?),
            "total_tokens" => record.total = reader.count()?,
            "prompt_tokens_details" | "input_tokens_details" => {
                reader.maybe_object(|reader, key| {
                    match key {
                        "cached_tokens" => record.cached = reader.count()?,
                        "cache_write_tokens" => record.cache_write = reader.count()?,
                        "audio_tokens" => record.audio_input = reader.count()?,
                        _ => reader.skip()?,
                    }
                    Ok(())
                })?;
            }
            "completion_tokens_details" | "output_tokens_details" => {
                reader.maybe_object(|reader, key| {
                    match key {
                        "reasoning_tokens" => record.reasoning = reader.count()?,
                        "audio_tokens" => record.audio_output = reader.count()?,
                        _ => reader.skip()?,
                    }
                    Ok(())
                })?;
            }
            // DeepSeek; Together and Hugging Face; Mistral; Databricks.
            "prompt_cache_hit_tokens"
            | "cached_tokens"
            | "num_cached_tokens"
            | "cache_read_input_tokens" => {
                record.cached_elsewhere = reader.count()?.or(record.cached_elsewhere);
            }
            // Databricks.
            "cache_creation_input_tokens" => {
                record.cache_write = reader.count()?.or(record.cache_write);
            }
            // DeepSeek hosted by Azure.
            "reasoning_tokens" => record.reasoning_elsewhere = reader.count()?,
            "cost" => record.cost = read_cost(reader)?,
            // xAI: ten billionths of a US dollar.
            "cost_in_usd_ticks" => {
                record.cost = reader.float()?.map(|ticks| ticks / 1e10).or(record.cost);
            }
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(record.counts())
}

/// OpenRouter states a number, Perplexity an object.
fn read_cost(reader: &mut Reader<'_>) -> Result<Option<f64>> {
    if reader.kind()? != Kind::Object {
        return reader.float();
    }
    let mut total = None;
    reader.object(|reader, key| {
        match key {
            "total_cost" => total = reader.float()?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(total)
}

impl Record {
    fn counts(self) -> Counts {
        let cached = self.cached.or(self.cached_elsewhere);
        let reasoning = self.reasoning.or(self.reasoning_elsewhere);
        let excludes_cache =
            self.prompt.zip(cached).is_some_and(|(prompt, cached)| cached > prompt);
        let input = if excludes_cache {
            self.prompt.zip(cached).and_then(|(prompt, cached)| prompt.checked_add(cached))
        } else {
            self.prompt
        };
        let with_reasoning = self
            .completion
            .zip(reasoning)
            .filter(|(_, reasoning)| *reasoning > 0)
            .and_then(|(completion, reasoning)| completion.checked_add(reasoning));
        let sum = |output: Option<u64>| {
            self.prompt.zip(output).and_then(|(prompt, output)| prompt.checked_add(output))
        };
        let excludes_reasoning =
            with_reasoning.is_some() && self.total.is_some() && sum(with_reasoning) == self.total;
        Counts {
            input,
            output: if excludes_reasoning { with_reasoning } else { self.completion },
            cost: self.cost,
            cache_read: cached,
            cache_write: self.cache_write,
            reasoning,
            audio_input: self.audio_input,
            audio_output: self.audio_output,
        }
    }
}

/// Counts of llama.cpp's `timings`, for servers that send no usage.
pub(super) fn timings(timings: &str) -> Result<Counts> {
    let mut counts = Counts::default();
    let mut prompt = None;
    Reader::trusted(timings).maybe_object(|reader, key| {
        match key {
            "cache_n" => counts.cache_read = reader.count()?,
            "prompt_n" => prompt = reader.count()?,
            "predicted_n" => counts.output = reader.count()?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    counts.input =
        prompt.and_then(|prompt: u64| prompt.checked_add(counts.cache_read.unwrap_or(0)));
    Ok(counts)
}
