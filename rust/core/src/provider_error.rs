//! A provider's error, in whatever shape it comes → [`Failure`] with a code of the closed list.
//!
//! In: the error object or string of a body or an event, the HTTP status, the headers.  Order of evidence: specific code,
//! type or status word, number used as HTTP status, HTTP status, message phrases (context length and overload only).
//! Source: mapping of error codes and retry-after (protocols/mapping.md sections 6 and 7).

use crate::contract::{ErrorCode, Failure};
use crate::json::{Kind, Reader, Result, Str};

/// Longest wait in seconds that is believed.
const MAX_RETRY_AFTER: f64 = 86_400.0;

/// What the HTTP response said before its body.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Response {
    /// HTTP status; 0 when unknown.
    pub status: u16,
    /// The HTTP request id.
    pub request_id: Option<Box<str>>,
    /// Seconds to wait, from the headers.
    pub retry_after: Option<f64>,
    /// `x-should-retry`.
    pub should_retry: Option<bool>,
    /// `x-amzn-errortype`: the name of the error, without the place of its documentation.
    pub error_type: Option<Box<str>>,
}

impl Response {
    /// Picks what matters out of the headers; names in any case.
    pub fn new<'a>(status: u16, headers: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut response = Self { status, ..Self::default() };
        let mut milliseconds = None;
        for (name, value) in headers {
            match name.to_ascii_lowercase().as_str() {
                "request-id" | "x-request-id" | "x-amzn-requestid" | "x-generation-id"
                    if response.request_id.is_none() =>
                {
                    response.request_id = Some(value.into());
                }
                "retry-after-ms" => milliseconds = seconds(value, "ms"),
                "retry-after" => response.retry_after = seconds(value, "s"),
                "x-amzn-errortype" => {
                    let name = value.split(':').next().unwrap_or(value).trim();
                    response.error_type = Some(name.into()).filter(|_| !name.is_empty());
                }
                "x-should-retry" => response.should_retry = value.trim().parse().ok(),
                _ => {}
            }
        }
        response.retry_after = milliseconds.or(response.retry_after);
        response
    }

    /// The failure that the status alone tells.
    pub fn failure(&self, message: &str) -> Failure<Box<str>> {
        ErrorObject::default().failure(self, message)
    }
}

/// A number of seconds, or milliseconds when the unit says so; negative values are no waits, long ones are capped.
fn seconds(text: &str, unit: &str) -> Option<f64> {
    let value: f64 = text.trim().parse().ok()?;
    let value = if unit == "ms" { value / 1_000.0 } else { value };
    (value.is_finite() && value >= 0.0).then_some(value.min(MAX_RETRY_AFTER))
}

/// The members of an error object that decide something.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ErrorObject {
    code: Option<String>,
    kind: Option<String>,
    status_word: Option<String>,
    number: Option<u16>,
    message: Option<String>,
    /// As AWS writes it in places; it counts where there is no other.
    capital_message: Option<String>,
    retry_after: Option<f64>,
    moderated: bool,
}

impl ErrorObject {
    /// Reads an error from the JSON of an `error` member, or of a bare error body: an object or a string.
    pub fn read(json: &str) -> Result<Self> {
        let mut found = Self::default();
        let mut reader = Reader::trusted(json);
        found.read_value(&mut reader)?;
        Ok(found)
    }

    /// An error of words alone.
    pub fn of_message(message: &str) -> Self {
        Self { message: Some(message.to_owned()), ..Self::default() }
    }

    /// The error under the name that its framing gives it, and in its words where it has none of its own.
    #[must_use]
    pub fn named(mut self, code: &str, message: &str) -> Self {
        if !code.is_empty() {
            self.code = Some(code.to_owned());
        }
        if self.message.is_none() && !message.is_empty() {
            self.message = Some(message.to_owned());
        }
        self
    }

    fn read_value(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        match reader.kind()? {
            Kind::String => {
                let text = reader.string()?.text();
                self.message.get_or_insert(text);
                Ok(())
            }
            Kind::Object => reader.object(|reader, key| self.read_member(reader, key)),
            // A list of errors: the first decides (Google's OpenAI-compatible endpoint wraps its error so).
            Kind::Array => reader.array(|reader| self.read_value(reader)),
            _ => reader.skip(),
        }
    }

    fn read_member(&mut self, reader: &mut Reader<'_>, key: &str) -> Result<()> {
        match key {
            "error" | "errors" => self.read_value(reader)?,
            "Message" => set(&mut self.capital_message, reader.filled_string()?),
            "message" | "detail" | "msg" | "error_description" => {
                if reader.kind()? == Kind::String {
                    set(&mut self.message, reader.filled_string()?);
                } else {
                    // A list of FastAPI's findings, or an error inside the message.
                    self.read_value(reader)?;
                }
            }
            "code" | "error_code" | "status_code" | "statusCode" | "error_type" => {
                let value = reader.scalar()?;
                let number = value.and_then(|value| value.raw.trim().parse::<u16>().ok());
                match number.filter(|number| (100..600).contains(number)) {
                    Some(number) => self.number = Some(number),
                    None => set(&mut self.code, value.filter(|value| !value.is_empty())),
                }
            }
            // What the model's own server answered Bedrock.
            "originalStatusCode" => {
                let status = reader.count()?.and_then(|status| u16::try_from(status).ok());
                self.number = status.or(self.number);
            }
            "type" => {
                let value = reader.filled_string()?.filter(|value| value.raw != "error");
                set(&mut self.kind, value);
            }
            "status" => {
                let value = reader.scalar()?;
                match value.and_then(|value| value.raw.parse::<u16>().ok()) {
                    Some(number) => self.number = Some(number),
                    None => set(&mut self.status_word, value.filter(|value| !value.is_empty())),
                }
            }
            "details" => match reader.kind()? {
                Kind::Object => self.read_value(reader)?,
                Kind::Array => reader.maybe_array(|reader| self.read_detail(reader))?,
                _ => reader.skip()?,
            },
            "metadata" => reader.maybe_object(|reader, key| {
                self.moderated |= matches!(key, "reasons" | "flagged_input");
                reader.skip()
            })?,
            _ => reader.skip()?,
        }
        Ok(())
    }

    /// One entry of Google's `details`.
    fn read_detail(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        reader.maybe_object(|reader, key| {
            match key {
                "retryDelay" => {
                    if let Some(text) = reader.filled_string()? {
                        self.retry_after =
                            text.raw.strip_suffix('s').and_then(|text| seconds(text, "s"));
                    }
                }
                "reason" => set(&mut self.code, reader.filled_string()?),
                "violations" => {
                    let text = reader.raw()?;
                    if text.contains("PerDay") {
                        self.code = Some("per_day_quota".to_owned());
                    }
                }
                _ => reader.skip()?,
            }
            Ok(())
        })
    }

    /// The failure that this error and its response tell.
    pub fn failure(mut self, response: &Response, fallback: &str) -> Failure<Box<str>> {
        if self.code.is_none() {
            self.code = response.error_type.as_deref().map(Into::into);
        }
        let said = self.message.as_deref().or(self.capital_message.as_deref());
        let message = said.unwrap_or(fallback);
        let code = self.classify(response.status, message);
        Failure {
            code,
            message: Some(message.into()).filter(|_| !message.is_empty()),
            retryable: Some(response.should_retry.unwrap_or_else(|| code.retryable())),
            retry_after: self.retry_after.or(response.retry_after),
            status: self.number.or(Some(response.status)).filter(|status| *status >= 400),
            provider_code: self.code.or(self.kind).or(self.status_word).map(Into::into),
            http_request_id: response.request_id.clone(),
            warnings: None,
        }
    }

    fn classify(&self, http: u16, message: &str) -> ErrorCode {
        let words = [&self.code, &self.kind, &self.status_word];
        let told = words.into_iter().flatten().filter_map(|word| by_word(word));
        let status = self.number.and_then(by_status).or_else(|| by_status(http));
        // "Invalid request" is what many servers call every 4xx: a word or such a status that says more wins.
        let general = |code: &ErrorCode| *code == ErrorCode::InvalidRequest;
        let client_error = (400..500).contains(&self.number.unwrap_or(http));
        let told = match told.clone().find(|code| !general(code)) {
            None if told.count() > 0 && !client_error => Some(ErrorCode::InvalidRequest),
            None => status,
            found => found,
        };
        match told {
            Some(ErrorCode::Permission) if self.moderated => ErrorCode::ContentBlocked,
            Some(ErrorCode::InvalidRequest) | None if says_too_long(message) => {
                ErrorCode::ContextLengthExceeded
            }
            None if message.to_ascii_lowercase().contains("overloaded") => ErrorCode::Overloaded,
            Some(code) => code,
            None => ErrorCode::ServerError,
        }
    }
}

fn set(place: &mut Option<String>, value: Option<Str<'_>>) {
    if let (None, Some(value)) = (&place, value) {
        *place = Some(value.text());
    }
}

fn by_status(status: u16) -> Option<ErrorCode> {
    Some(match status {
        401 | 498 => ErrorCode::Authentication,
        402 => ErrorCode::QuotaExceeded,
        403 | 451 => ErrorCode::Permission,
        404 => ErrorCode::NotFound,
        408 | 504 => ErrorCode::Timeout,
        409 | 424 => ErrorCode::ServerError,
        429 => ErrorCode::RateLimited,
        499 => ErrorCode::Cancelled,
        501 | 400..=499 => ErrorCode::InvalidRequest,
        503 | 529 => ErrorCode::Overloaded,
        500..=599 => ErrorCode::ServerError,
        _ => return None,
    })
}

fn says_too_long(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    [
        "prompt is too long",
        "maximum context length",
        "input is too long",
        "exceeds the available context size",
        "reduce the length of the messages",
        "context length exceeded",
        "exceed context limit",
        "too many total text bytes",
        // Cohere's, with what follows; without the colon it is Bedrock's word for throttling.
        "too many tokens:",
    ]
    .iter()
    .any(|phrase| message.contains(phrase))
}

/// A provider's word for an error, by the closed list.
fn by_word(word: &str) -> Option<ErrorCode> {
    let word = word.to_ascii_lowercase();
    let word = word.as_str();
    Some(match word {
        "authentication_error"
        | "invalid_api_key"
        | "unauthenticated"
        | "api_key_invalid"
        | "unrecognizedclientexception"
        | "expiredtokenexception"
        | "invalidsignatureexception"
        | "invalid_authentication_error"
        | "unauthorized" => ErrorCode::Authentication,
        "permission_error"
        | "permission_denied"
        | "accessdeniedexception"
        | "forbidden"
        | "insufficient_permissions" => ErrorCode::Permission,
        "not_found_error" | "model_not_found" | "not_found" | "resourcenotfoundexception" => {
            ErrorCode::NotFound
        }
        "context_length_exceeded" | "exceed_context_size_error" | "context_window_exceeded" => {
            ErrorCode::ContextLengthExceeded
        }
        "insufficient_quota"
        | "billing_error"
        | "exceeded_current_quota_error"
        | "servicequotaexceededexception"
        | "billing_hard_limit_reached"
        | "credit_balance_exhausted"
        | "organization_usage_limit_exceeded"
        | "per_day_quota"
        | "payment_required" => ErrorCode::QuotaExceeded,
        "rate_limit_error"
        | "rate_limit_exceeded"
        | "throttlingexception"
        | "resource_exhausted"
        | "ramp_limit_exceeded"
        | "too_many_requests"
        | "rate_limit_reached_error" => ErrorCode::RateLimited,
        "overloaded_error"
        | "overloaded"
        | "server_is_overloaded"
        | "unavailable"
        | "serviceunavailableexception"
        | "modelnotreadyexception"
        | "service_unavailable"
        | "insufficient_system_resource"
        | "engine_overloaded_error" => ErrorCode::Overloaded,
        "timeout_error" | "timeout" | "deadline_exceeded" | "modeltimeoutexception" => {
            ErrorCode::Timeout
        }
        "cancelled" | "canceled" => ErrorCode::Cancelled,
        "content_filter"
        | "content_policy_violation"
        | "responsibleaipolicyviolation"
        | "content_blocked" => ErrorCode::ContentBlocked,
        "invalid_request_error"
        | "invalid_argument"
        | "validationexception"
        | "request_too_large"
        | "tool_use_failed"
        | "badrequesterror"
        | "bad_request"
        | "failed_precondition"
        | "out_of_range"
        | "invalid_request" => ErrorCode::InvalidRequest,
        "api_error"
        | "server_error"
        | "internal"
        | "internalserverexception"
        | "internal_server_error"
        | "internalservererror"
        | "conflict_error"
        | "modelerrorexception"
        | "unknown"
        | "data_loss"
        | "aborted" => ErrorCode::ServerError,
        _ if word.contains("spend_limit") => ErrorCode::QuotaExceeded,
        _ if word.contains("_policy") => ErrorCode::ContentBlocked,
        _ if word.starts_with("invalid_request_") => ErrorCode::InvalidRequest,
        _ => return None,
    })
}
