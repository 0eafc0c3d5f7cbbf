//! Log probabilities in the form of OpenAI, which Ollama shares.

use crate::contract::{Column, Logprobs, Row, write_bytes};
use crate::json::{ObjectWriter, write_list, write_members};

/// Number that OpenAI writes for tokens beyond its list; the clients require a number.
const UNKNOWN: f64 = -9999.0;

impl Logprobs {
    /// Append a list `[{token, logprob, bytes?, top_logprobs}]`.
    pub fn write_openai(&self, out: &mut String, bytes: bool) {
        let mut alternatives = self.alternatives().into_iter().flat_map(Column::rows);
        let mut ends = self.offsets().iter().skip(1);
        let mut taken = 0;
        write_list(out, self.tokens().rows(), |out, row| {
            let end = ends.next().and_then(|end| usize::try_from(*end).ok()).unwrap_or(taken);
            let count = end.saturating_sub(taken);
            taken = end.max(taken);
            write_members(out, |object| {
                write_token(object, row, bytes);
                object.value("top_logprobs", |out| {
                    write_list(out, alternatives.by_ref().take(count), |out, row| {
                        write_members(out, |object| write_token(object, row, bytes));
                    });
                });
            });
        });
    }
}

fn write_token(object: &mut ObjectWriter<'_>, row: Row<'_>, bytes: bool) {
    object.text("token", row.text);
    object.number("logprob", if row.value.is_finite() { row.value } else { UNKNOWN });
    if bytes {
        object.value("bytes", |out| write_bytes(out, row.bytes()));
    }
}
