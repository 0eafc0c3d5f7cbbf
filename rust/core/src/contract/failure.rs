//! `Failure`: the failure of a model call.

use super::kinds::ErrorCode;

/// Failure that ends a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failure<S> {
    /// Code of the contract.
    pub code: ErrorCode,
    /// Message of the provider, or one written by deltafold.
    pub message: Option<S>,
    /// True if the same request may succeed later.
    pub retryable: Option<bool>,
    /// Seconds to wait before a retry.
    pub retry_after: Option<f64>,
    /// HTTP status.
    pub status: Option<u16>,
    /// Error code of the provider.
    pub provider_code: Option<S>,
    /// HTTP request id, for the support of the provider.
    pub http_request_id: Option<S>,
    /// JSON object with facts of the answer so far, under the provider's names.
    pub details: Option<S>,
    /// JSON array of `{code, message, offset?}`.
    pub warnings: Option<S>,
    /// JSON of the error as the provider wrote it.  It is no member of the wire: a gateway would show it to its client.
    pub body: Option<S>,
}

impl<S> Failure<S> {
    /// Build a failure with a code and a message only.
    pub fn new(code: ErrorCode, message: S) -> Self {
        Self {
            code,
            message: Some(message),
            retryable: Some(code.retryable()),
            retry_after: None,
            status: None,
            provider_code: None,
            http_request_id: None,
            details: None,
            warnings: None,
            body: None,
        }
    }

    /// Return the same failure over another string type.
    pub fn map<'a, T>(&'a self, f: &mut impl FnMut(&'a S) -> T) -> Failure<T> {
        Failure {
            code: self.code,
            message: self.message.as_ref().map(&mut *f),
            retryable: self.retryable,
            retry_after: self.retry_after,
            status: self.status,
            provider_code: self.provider_code.as_ref().map(&mut *f),
            http_request_id: self.http_request_id.as_ref().map(&mut *f),
            details: self.details.as_ref().map(&mut *f),
            warnings: self.warnings.as_ref().map(&mut *f),
            body: self.body.as_ref().map(&mut *f),
        }
    }
}
