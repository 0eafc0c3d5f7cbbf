//! The classification of a whole refusal: status, headers and body.

use std::borrow::Cow;

use super::{Response, body};
use crate::contract::Failure;

impl Response {
    /// Classify the body of a refusal.
    ///
    /// Returns the failure, and the JSON that it was read from if the body holds JSON.  `fallback` is the message of a
    /// body that has none.
    ///
    /// ```
    /// use deltafold::{dialect::VOCABULARY, provider_error::Response};
    /// let response = Response::from_status(VOCABULARY, 402);
    /// let (failure, _) = response.refusal(br#"{"error":{"message":"Insufficient Balance"}}"#, "");
    /// assert_eq!(failure.code.as_str(), "quota_exceeded");
    /// ```
    pub fn refusal<'a>(
        &self,
        body: &'a [u8],
        fallback: &str,
    ) -> (Failure<Box<str>>, Option<Cow<'a, str>>) {
        let (error, json) = body::read(body);
        let without_message = if self.status == 0 {
            "the provider sent an error without a message".to_owned()
        } else if error.has_content() {
            format!("HTTP status {} and an error without a message", self.status)
        } else {
            format!("HTTP status {} without an error in the body", self.status)
        };
        let fallback = if fallback.is_empty() { &without_message } else { fallback };
        (error.failure(self, fallback), json)
    }
}
