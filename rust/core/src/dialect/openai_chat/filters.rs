//! Results of Azure's content filters (`content_filter_results` of a choice).
//!
//! Law: one object is kept: the first in which a filter acted, else the first that says something.  Each chunk has the results
//! of its own text, and nearly all of them say that every filter found nothing.

use crate::sink::DeltaSink;

/// Words of results in which a filter acted, or found something: `"filtered": true`, `"severity": "low"`.
const TELLING: [&str; 4] = ["true", "\"low\"", "\"medium\"", "\"high\""];

/// Return whether results say something.  A chunk of others may match a template.
pub(super) fn tell(results: &str) -> bool {
    TELLING.iter().any(|word| results.contains(word))
}

/// The results that say most so far, and whether a filter acted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FilterResults(Option<(bool, String)>);

impl FilterResults {
    /// Keep results that say more than those before.
    pub(super) fn note(&mut self, results: &str) {
        let acted = results.contains("true");
        if results != "{}" && self.0.as_ref().is_none_or(|(before, _)| acted && !before) {
            self.0 = Some((acted, results.to_owned()));
        }
    }

    /// Emit the results as a fact of the answer.
    pub(super) fn send(&mut self, sink: &mut DeltaSink<'_>) {
        if let Some((_, results)) = self.0.take() {
            sink.detail("content_filter_results", &results);
        }
    }
}
