//! Classification of a provider's refusal or error event, in any shape: a [`Failure`] with a code of the closed list.
//!
//! In: the error object or string of a body or an event, the HTTP status, the headers.  Every entry into the library
//! classifies here: the body in a decoder, a refused stream, an exception of an SDK.
//!
//! Laws: evidence counts in this order:
//! 1. the most specific word: `details.error_code`, a `reason` of `details`, `code`, `__type`, the header
//!    `x-amzn-errortype`, `type`, `status`;
//! 2. a number in the body that is used as HTTP status;
//! 3. the HTTP status;
//! 4. phrases of the message (context length, refused reasoning and overload only).
//!
//! Many servers call every 4xx an "invalid request", so a more specific word or status wins over this word.
//! `x-should-retry` overrides `retryable`.
//! Source: docs/protocols/decoding.md#errors, docs/protocols/decoding.md#retry-after.

mod body;
mod codes;
mod refusal;
mod waits;

pub use body::BODY_BYTES;
pub use codes::Vocabulary;
pub use waits::{MAX_WAIT_SECONDS, seconds_until_reset};

use std::borrow::Cow;

use crate::contract::{ErrorCode, Failure};
use crate::json::{Kind, Reader, Result, Str};

/// First HTTP status that is a refusal.  A redirect that the transport did not follow has no stream either.
pub const FIRST_REFUSAL: u16 = 300;

/// Headers that identify a request at its provider, in lower case.  The provider's own come before those of proxies.
pub const REQUEST_ID_HEADERS: [&str; 6] = [
    "request-id",
    "x-amzn-requestid",
    "apim-request-id",
    "x-goog-request-id",
    "x-request-id",
    "x-generation-id",
];

/// Facts of an HTTP response that are known before its body.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The words that name an error.
    pub vocabulary: Vocabulary,
    /// HTTP status; 0 if unknown.
    pub status: u16,
    /// Id of the request at its provider.
    pub request_id: Option<Box<str>>,
    /// Seconds to wait, from `retry-after-ms` or `retry-after`.
    pub retry_after: Option<f64>,
    /// Seconds until the last of the rate limits resets: an upper bound of the wait.
    pub reset_after: Option<f64>,
    /// `x-should-retry`.
    pub should_retry: Option<bool>,
    /// `x-amzn-errortype`: the name of the error, without the address of its documentation.
    pub error_type: Option<Box<str>>,
    /// Wall-clock time at which the headers arrived, in seconds since 1970; `None` if dates must not be read.
    pub now: Option<f64>,
}

impl Response {
    /// Build a response with a status and without headers; 0 is an unknown status.
    pub const fn from_status(vocabulary: Vocabulary, status: u16) -> Self {
        Self {
            vocabulary,
            status,
            request_id: None,
            retry_after: None,
            reset_after: None,
            should_retry: None,
            error_type: None,
            now: None,
        }
    }

    /// Read the relevant headers; their names may be in any case.
    pub fn new<'a>(
        vocabulary: Vocabulary,
        status: u16,
        headers: impl Iterator<Item = (&'a str, &'a str)>,
        now: Option<f64>,
    ) -> Self {
        let mut response = Self { now, ..Self::from_status(vocabulary, status) };
        let mut milliseconds = None;
        let mut best_rank = REQUEST_ID_HEADERS.len();
        for (name, value) in headers {
            // HTTP clients give most names in lower case.
            let name = if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
                Cow::Owned(name.to_ascii_lowercase())
            } else {
                Cow::Borrowed(name)
            };
            match name.as_ref() {
                "retry-after-ms" => {
                    milliseconds =
                        waits::number(value).and_then(|number| waits::accepted(number / 1_000.0));
                }
                "retry-after" => response.retry_after = waits::retry_after(value, now),
                "x-amzn-errortype" => response.error_type = aws_name(value).map(Into::into),
                "x-should-retry" => {
                    response.should_retry = value.trim().to_ascii_lowercase().parse().ok();
                }
                name if is_reset(name) => {
                    let wait = waits::until_reset(value, now);
                    response.reset_after =
                        wait.into_iter().chain(response.reset_after).reduce(f64::max);
                }
                name => {
                    let rank = REQUEST_ID_HEADERS.iter().position(|known| *known == name);
                    if let Some(rank) = rank.filter(|rank| *rank < best_rank && !value.is_empty()) {
                        best_rank = rank;
                        response.request_id = Some(value.into());
                    }
                }
            }
        }
        response.retry_after = milliseconds.or(response.retry_after);
        response
    }

    /// Return whether the status marks the body as the reason of a refusal instead of a stream.
    pub fn is_refusal(&self) -> bool {
        self.status >= FIRST_REFUSAL
    }
}

/// Return whether a header holds the reset of a rate limit.
///
/// OpenAI and compatible servers use `x-ratelimit-reset-requests`, Anthropic uses `anthropic-ratelimit-tokens-reset`.
fn is_reset(name: &str) -> bool {
    matches!(name, "x-ratelimit-reset-requests" | "x-ratelimit-reset-tokens")
        || (name.starts_with("anthropic-ratelimit-") && name.ends_with("-reset"))
}

/// Return the name of an AWS error without its namespace and the address of its documentation.
fn aws_name(text: &str) -> Option<&str> {
    let name = text.rsplit('#').next().unwrap_or(text);
    let name = name.split(':').next().unwrap_or(name).trim();
    Some(name).filter(|name| !name.is_empty())
}

/// The members of an error object that are relevant for the classification.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ErrorObject {
    /// `details.error_code`, or the reason of an entry of `details`: more specific than `code`.
    detail: Option<String>,
    code: Option<String>,
    kind: Option<String>,
    status_word: Option<String>,
    number: Option<u16>,
    message: Option<String>,
    /// Message under the name `Message`, which some AWS services use.  The fallback for `message`.
    capital_message: Option<String>,
    request_id: Option<String>,
    retry_after: Option<f64>,
    /// Time at which OpenRouter's rate limit resets, in seconds since 1970.
    resets_at: Option<f64>,
    moderated: bool,
    daily_quota: bool,
    /// The JSON that was read, at most [`JSON_BYTES`] of it.
    json: Option<String>,
}

/// Maximum number of bytes of an error's JSON that are kept.
const JSON_BYTES: usize = 64 << 10;

impl ErrorObject {
    /// Read an error from the JSON of an `error` member, or of a bare error body: an object or a string.
    pub fn read(json: &str) -> Result<Self> {
        let mut found = Self::default();
        let mut reader = Reader::trusted(json);
        found.read_value(&mut reader)?;
        found.json = Some(json).filter(|json| json.len() <= JSON_BYTES).map(str::to_owned);
        Ok(found)
    }

    /// Read the part of an error before the first byte that is wrong or missing.
    fn read_leniently(json: &str, max_depth: usize) -> Self {
        let mut found = Self::default();
        let mut reader = Reader::new(json, max_depth);
        let _ = found.read_value(&mut reader);
        found
    }

    /// Build an error with only a message.
    pub fn from_message(message: &str) -> Self {
        Self {
            message: Some(message.to_owned()).filter(|text| !text.is_empty()),
            ..Self::default()
        }
    }

    /// Return whether any member describes an error.
    fn has_content(&self) -> bool {
        let texts = [&self.detail, &self.code, &self.kind, &self.status_word, &self.message];
        texts.into_iter().any(Option::is_some)
            || self.capital_message.is_some()
            || self.number.is_some()
    }

    /// Set the name that the framing gives the error, and a message if the error has none of its own.
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
                let text = reader.filled_string()?;
                set(&mut self.message, text);
                Ok(())
            }
            Kind::Object => reader.object(|reader, key| self.read_member(reader, key)),
            // A list of errors, of which the first counts.  Google's OpenAI-compatible endpoint wraps its error in a list.
            Kind::Array => reader.array(|reader| self.read_value(reader)),
            _ => reader.skip(),
        }
    }

    fn read_member(&mut self, reader: &mut Reader<'_>, key: &str) -> Result<()> {
        match key {
            "error" | "errors" | "Error" | "Response" | "base_resp" => self.read_value(reader)?,
            "Message" => set(&mut self.capital_message, reader.filled_string()?),
            "message" | "detail" | "msg" | "error_description" | "error_msg" | "errorMessage"
            | "status_msg" => {
                if reader.kind()? == Kind::String {
                    set(&mut self.message, reader.filled_string()?);
                } else {
                    // A list of FastAPI's validation errors, or an error inside the message.
                    self.read_value(reader)?;
                }
            }
            "code" | "Code" | "error_code" | "status_code" | "statusCode" | "error_type"
            | "errorCode" => {
                let value = reader.scalar()?;
                let number = value.and_then(|value| value.raw.trim().parse::<u16>().ok());
                match number.filter(|number| (100..600).contains(number)) {
                    Some(number) => self.number = Some(number),
                    None => set(&mut self.code, value.filter(|value| is_code(value))),
                }
            }
            // The exception name of Bedrock and other AWS services, after its namespace.
            "__type" => {
                if let Some(text) = reader.filled_string()?.map(|text| text.text())
                    && let Some(name) = aws_name(&text)
                {
                    self.code.get_or_insert_with(|| name.to_owned());
                }
            }
            // The status that the model's own server returned to Bedrock.
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
                    None => set(&mut self.status_word, value.filter(|value| is_code(value))),
                }
            }
            "details" => match reader.kind()? {
                Kind::Object => self.read_details(reader)?,
                Kind::Array => reader.maybe_array(|reader| self.read_detail(reader))?,
                _ => reader.skip()?,
            },
            "metadata" => reader.maybe_object(|reader, key| {
                self.moderated |= matches!(key, "reasons" | "flagged_input");
                if key == "headers" { self.read_gateway_headers(reader) } else { reader.skip() }
            })?,
            "request_id" | "requestId" => set(&mut self.request_id, reader.filled_string()?),
            _ => reader.skip()?,
        }
        Ok(())
    }

    /// Read Anthropic's `details`, an object whose `error_code` is more specific than the type.
    fn read_details(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let mut inner = Self::default();
        inner.read_value(reader)?;
        self.detail = self.detail.take().or(inner.code);
        self.kind = self.kind.take().or(inner.kind);
        self.message = self.message.take().or(inner.message);
        Ok(())
    }

    /// Read one entry of Google's `details`.
    fn read_detail(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        reader.maybe_object(|reader, key| {
            match key {
                "retryDelay" => {
                    let text = reader.filled_string()?;
                    let wait = text.and_then(|text| waits::duration(&text.text()));
                    self.retry_after = wait.and_then(waits::accepted).or(self.retry_after);
                }
                "reason" => set(&mut self.detail, reader.filled_string()?),
                "violations" => {
                    self.daily_quota |= reader.raw()?.to_ascii_lowercase().contains("perday");
                }
                _ => reader.skip()?,
            }
            Ok(())
        })
    }

    /// Read the headers that OpenRouter copies into the body: `X-RateLimit-Reset`, milliseconds since 1970.
    fn read_gateway_headers(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        reader.maybe_object(|reader, key| {
            if !key.eq_ignore_ascii_case("x-ratelimit-reset") {
                return reader.skip();
            }
            let value = reader.scalar()?;
            self.resets_at =
                value.and_then(|value| waits::number(value.raw)).map(|at| at / 1_000.0);
            Ok(())
        })
    }

    /// Combine the error with its response.
    pub fn failure(mut self, response: &Response, fallback: &str) -> Failure<Box<str>> {
        if self.code.is_none() {
            self.code = response.error_type.as_deref().map(Into::into);
        }
        let body = self.json.take().map(Into::into);
        let own = self.message.as_deref().or(self.capital_message.as_deref());
        let message = own.unwrap_or(fallback);
        let code = self.classify(response, message);
        let refused = Some(response.status).filter(|_| response.is_refusal());
        let status = refused.or(self.number.filter(|number| *number >= 400));
        // A number that equals the status is not repeated as the provider code.
        let number = || self.number.filter(|_| self.number != status).map(|it| it.to_string());
        Failure {
            code,
            message: Some(message.into()).filter(|_| !message.is_empty()),
            retryable: Some(response.should_retry.unwrap_or_else(|| code.retryable())),
            retry_after: self.wait(response, code, message),
            status,
            provider_code: self.words().next().cloned().or_else(number).map(Into::into),
            http_request_id: response
                .request_id
                .clone()
                .or_else(|| self.request_id.as_deref().map(Into::into)),
            details: None,
            warnings: None,
            body,
        }
    }

    /// Return the seconds to wait, from the most exact source that has them.
    ///
    /// The sources are the delay in the body, the `retry-after` of the headers, the reset of a rate limit, and the words of
    /// the message.  Providers send the reset headers with every answer, so they count only if a limit refused the request.
    fn wait(&self, response: &Response, code: ErrorCode, message: &str) -> Option<f64> {
        let gateway = || Some(self.resets_at? - response.now?);
        let reset = || response.reset_after.or_else(gateway).and_then(waits::accepted);
        self.retry_after
            .or(response.retry_after)
            .or_else(|| (code == ErrorCode::RateLimited).then(reset).flatten())
            .or_else(|| waits::in_words(message))
    }

    /// Return the words that name the error, most specific first.
    fn words(&self) -> impl Iterator<Item = &String> + Clone {
        [&self.detail, &self.code, &self.kind, &self.status_word].into_iter().flatten()
    }

    fn classify(&self, response: &Response, message: &str) -> ErrorCode {
        let http = response.status;
        let number = self.number.filter(|number| *number >= 400).unwrap_or(http);
        let status = codes::from_status(number).or_else(|| codes::from_status(http));
        let says_more = codes::SAYS_MORE_THAN_A_SERVER_ERROR.contains(&number);
        let known = self.words().filter(|word| !(says_more && codes::is_any_failure(word)));
        let known = known.filter_map(|word| response.vocabulary.code(word));
        let code = match known.clone().find(|code| *code != ErrorCode::InvalidRequest) {
            // Without a status, an event of a stream says no more.
            None if status.is_none() && known.count() > 0 => Some(ErrorCode::InvalidRequest),
            None => status,
            found => found,
        };
        match code {
            Some(ErrorCode::Permission) if self.moderated => ErrorCode::ContentBlocked,
            // Waiting for a moment does not restore a daily quota (Gemini).
            Some(ErrorCode::RateLimited) if self.daily_quota => ErrorCode::QuotaExceeded,
            code => codes::refined(code.unwrap_or(ErrorCode::ServerError), message),
        }
    }
}

/// Return whether a value names an error: neither empty nor a number too long to be a code.
fn is_code(value: &Str<'_>) -> bool {
    let is_number = value.raw.bytes().all(|byte| byte.is_ascii_digit());
    !value.is_empty() && (!is_number || value.raw.len() <= MAX_CODE_DIGITS)
}

/// Maximum number of digits of a number that is an error code.
const MAX_CODE_DIGITS: usize = 20;

fn set(member: &mut Option<String>, value: Option<Str<'_>>) {
    if let (None, Some(value)) = (&member, value) {
        *member = Some(value.text());
    }
}
