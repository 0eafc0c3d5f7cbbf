//! Annotations of any dialect, as far as other targets have a word for them.

use crate::json::{Reader, members, write_string};

/// Citation of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Citation {
    /// Address of the page.
    pub url: String,
    /// Title of the page.
    pub title: Option<String>,
    /// Start of the cited place in the text, in characters.
    pub start: Option<u64>,
    /// End of the cited place.
    pub end: Option<u64>,
}

/// Depth to which members of a citation are searched: `{"type": …, "url_citation": {"url": …}}`.
const DEPTH: usize = 3;

/// Return the annotations of a JSON array, each as its JSON.
pub fn list(annotations: &str) -> Vec<&str> {
    let mut found = Vec::new();
    // The contract guarantees an array.
    let _ = Reader::trusted(annotations).maybe_array(|reader| {
        found.push(reader.raw()?);
        Ok(())
    });
    found
}

/// Return the type of an annotation, "" without one.
pub fn kind(annotation: &str) -> String {
    let value = members(annotation).into_iter().find(|(key, _)| key == "type");
    value.and_then(|(_, value)| text(value)).unwrap_or_default()
}

/// Return the citation of a page that an annotation of any dialect holds.
pub fn citation(annotation: &str) -> Option<Citation> {
    let mut citation = Citation::default();
    search(annotation, &mut citation, DEPTH);
    (!citation.url.is_empty()).then_some(citation)
}

fn text(json: &str) -> Option<String> {
    Reader::trusted(json).opt_string().ok()?.map(|text| text.text())
}

fn search(object: &str, citation: &mut Citation, depth: usize) {
    for (key, value) in members(object) {
        let count = || Reader::trusted(value).count().ok().flatten();
        match key.as_ref() {
            "url" | "uri" if citation.url.is_empty() => {
                citation.url = text(value).unwrap_or_default();
            }
            "title" => citation.title = text(value).or(citation.title.take()),
            "start_index" | "startIndex" => citation.start = count(),
            "end_index" | "endIndex" => citation.end = count(),
            _ if value.starts_with('{') && depth > 0 => search(value, citation, depth - 1),
            _ => {}
        }
    }
}

impl Citation {
    /// Append a JSON object of a `url_citation`, as Chat nests it and Responses has it.
    pub fn write_members(&self, out: &mut String) {
        out.push_str("\"url\":");
        write_string(out, &self.url);
        out.push_str(",\"title\":");
        write_string(out, self.title.as_deref().unwrap_or(""));
        for (key, place) in [("start_index", self.start), ("end_index", self.end)] {
            out.push_str(",\"");
            out.push_str(key);
            out.push_str("\":");
            out.push_str(&place.unwrap_or(0).to_string());
        }
    }
}
