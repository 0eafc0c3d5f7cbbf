//! Log probabilities in the form of OpenAI, which Ollama shares.

use crate::contract::Logprobs;
use crate::json::{ObjectWriter, write_list, write_members};

/// Number that OpenAI writes for tokens beyond its list; the clients require a number.
const UNKNOWN: f64 = -9999.0;

impl Logprobs {
    /// Append a list `[{token, logprob, bytes?, top_logprobs}]`.
    pub fn write_openai(&self, out: &mut String, bytes: bool) {
        let tokens = self.tokens();
        let mut alternatives = self
            .alternatives()
            .into_iter()
            .flat_map(|column| column.texts().zip(column.values().iter().copied()));
        let mut ends = self.offsets().iter().skip(1);
        let mut taken = 0;
        write_list(
            out,
            tokens.texts().zip(tokens.values().iter().copied()),
            |out, (token, logprob)| {
                let end = ends.next().and_then(|end| usize::try_from(*end).ok()).unwrap_or(taken);
                let count = end.saturating_sub(taken);
                taken = end.max(taken);
                write_members(out, |object| {
                    write_token(object, token, logprob, bytes);
                    object.value("top_logprobs", |out| {
                        write_list(
                            out,
                            alternatives.by_ref().take(count),
                            |out, (token, logprob)| {
                                write_members(out, |object| {
                                    write_token(object, token, logprob, bytes);
                                });
                            },
                        );
                    });
                });
            },
        );
    }
}

fn write_token(object: &mut ObjectWriter<'_>, token: &str, logprob: f64, bytes: bool) {
    object.text("token", token);
    object.number("logprob", if logprob.is_finite() { logprob } else { UNKNOWN });
    if bytes {
        object.value("bytes", |out| {
            write_list(out, token.bytes(), |out, byte| out.push_str(&byte.to_string()));
        });
    }
}
