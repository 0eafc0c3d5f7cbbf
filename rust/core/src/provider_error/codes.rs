//! Error codes of the closed list from evidence: a provider's word, an HTTP status, a phrase of a message.
//!
//! The words of each protocol are in its tables, which the caller passes as [`Vocabulary`].
//! Source: mapping of error codes (docs/protocols/decoding.md#errors).

use crate::contract::ErrorCode;
use crate::facts::{Ending, Facts, FinishReasons};

/// Phrases, in lower case, of messages about a prompt that is too long for the model.
///
/// Source: the errors of these services and servers (read 2026-11).
const TOO_LONG: [&str; 29] = [
    // Gemini.
    "exceeds the maximum number of tokens allowed",
    // Anthropic, Fireworks.
    "prompt is too long",
    "exceed context limit",
    // OpenAI, DeepSeek, vLLM, Mistral, OpenRouter, Groq, Cerebras.
    "maximum context length",
    "exceeds the context window",
    "reduce the length of the messages",
    "context length exceeded",
    // Moonshot.
    "exceeded model token limit",
    // Bedrock.
    "input is too long",
    "input tokens exceeded",
    // llama.cpp.
    "exceeds the available context size",
    // vLLM, for an encoder or a decoder.
    "is longer than the maximum model length",
    // SGLang.
    "is longer than the model's context length",
    // LM Studio.
    "greater than the context length",
    // Ollama.
    "exceeds the context length",
    // TGI and Together.
    "`inputs` must have less than",
    "`inputs` tokens + `max_new_tokens` must be",
    // DashScope.
    "range of input length should be",
    // Z.ai.
    "prompt exceeds max length",
    // xAI.
    "maximum prompt length is",
    // GitHub Copilot.
    "prompt token count of",
    // MiniMax.
    "context window exceeds limit",
    // Routers.
    "exceeded max context length",
    "prompt too long",
    "total length of all messages is too long",
    "input length exceeds",
    "too many prompt tokens",
    "too many total text bytes",
    // Cohere writes a count after the colon.  Without the colon this is Bedrock's phrase for throttling.
    "too many tokens:",
];

/// Phrases, in lower case, of messages about a key that xAI refuses with status 400 and the code of a wrong argument.
const WRONG_KEY: [&str; 1] = ["incorrect api key provided"];

/// Phrases, in lower case, of llama-server's messages about a mistake of the caller, which it sends with status 500.
const CALLERS_MISTAKES: [&str; 5] = [
    "image input is not supported",
    "audio input is not supported",
    "failed to parse tool call arguments as json",
    "failed to parse messages:",
    "failed to parse tools:",
];

/// Phrases, in lower case, of messages about reasoning or a signature that was sent back and refused.
///
/// Source: Anthropic's page "Troubleshooting thinking", which Bedrock's errors repeat; Google's page "Thought signatures" and
/// errors of its API (read 2026-11).
const REPLAY_REFUSED: [&str; 6] = [
    "invalid `signature` in `thinking` block",
    "blocks in the latest assistant message cannot be modified",
    "corrupted thought signature",
    "thought signature is not valid",
    "missing a `thought_signature`",
    "missing a thought_signature",
];

/// The facts of all protocols, for their words.
///
/// The words of all of them are read in each protocol, because gateways copy the error and the finish word of one protocol into
/// the body of another.
#[derive(Clone, Copy, Debug)]
pub struct Vocabulary(pub &'static [&'static Facts]);

impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Vocabulary {
    /// Return the error code of a word, in any case, and `None` for an unknown word.
    ///
    /// ```
    /// use deltafold::contract::ErrorCode;
    /// use deltafold::dialect::VOCABULARY;
    /// assert_eq!(VOCABULARY.code("throttlingException"), Some(ErrorCode::RateLimited));
    /// ```
    pub fn code(&self, word: &str) -> Option<ErrorCode> {
        let of_gateway = || {
            let own = |names: &[&str]| names.iter().any(|own| own.eq_ignore_ascii_case(word));
            OTHER_ERRORS.iter().find(|(_, names)| own(names)).map(|(code, _)| *code)
        };
        let known = self.0.iter().find_map(|facts| facts.errors.code(word));
        known.or_else(of_gateway).or_else(|| from_part(word))
    }

    /// Return the meaning of a finish word, by the protocol's own table first, and `None` for an unknown word.
    ///
    /// ```
    /// use deltafold::contract::{ErrorCode, FinishReason};
    /// use deltafold::dialect::{VOCABULARY, openai_chat::facts::FACTS};
    /// use deltafold::facts::Ending;
    /// let ending = |word| VOCABULARY.ending(&FACTS.finish_reasons, word);
    /// assert_eq!(ending("MAX_TOKENS"), Some(Ending::Finish(FinishReason::Length)));
    /// assert_eq!(ending("overloaded_error"), Some(Ending::Failure(ErrorCode::Overloaded)));
    /// assert_eq!(ending("bored"), None);
    /// ```
    pub fn ending(&self, own: &FinishReasons, word: &str) -> Option<Ending> {
        let of_others = || self.0.iter().find_map(|facts| facts.finish_reasons.ending(word));
        let of_errors = || self.0.iter().find_map(|facts| facts.errors.code(word));
        own.ending(word).or_else(of_others).or_else(|| of_errors().map(Ending::Failure))
    }
}

/// Return the code of a word by the part of it that several providers use.
fn from_part(word: &str) -> Option<ErrorCode> {
    let word = word.to_ascii_lowercase();
    // Tencent Cloud's words have a family before a dot.
    if word.starts_with("authfailure") {
        Some(ErrorCode::Authentication)
    } else if word.starts_with("requestlimitexceeded") {
        Some(ErrorCode::RateLimited)
    } else if word.starts_with("invalidparameter") {
        Some(ErrorCode::InvalidRequest)
    } else if word.contains("spend_limit") {
        Some(ErrorCode::QuotaExceeded)
    } else if word.contains("_policy") {
        Some(ErrorCode::ContentBlocked)
    } else if word.starts_with("invalid_request_") {
        Some(ErrorCode::InvalidRequest)
    } else {
        None
    }
}

/// Words of gateways, compatible vendors and older versions, which no encoder writes.
const OTHER_ERRORS: &[(ErrorCode, &[&str])] = &[
    (
        ErrorCode::Authentication,
        // The numbers are those of MiniMax and iFlytek.
        &[
            "invalid_authentication_error",
            "API_KEY_INVALID",
            "unauthorized",
            "1004",
            "2049",
            "11200",
        ],
    ),
    (ErrorCode::Permission, &["forbidden", "insufficient_permissions"]),
    (
        ErrorCode::ContextLengthExceeded,
        // The number is Z.ai's.
        &[
            "context_window_exceeded",
            "exceed_context_size_error",
            "exceeds_context_size_error",
            "invalid_request_prompt_too_long",
            "model_max_prompt_tokens_exceeded",
            "too_many_prompt_tokens",
            "1261",
        ],
    ),
    (
        ErrorCode::QuotaExceeded,
        &[
            "billing_hard_limit_reached",
            "credit_balance_exhausted",
            "exceeded_current_quota_error",
            "organization_usage_limit_exceeded",
            "payment_required",
            "1008",
        ],
    ),
    (
        ErrorCode::RateLimited,
        &[
            "rate_limit_reached_error",
            "ramp_limit_exceeded",
            "too_many_requests",
            "1002",
            "1039",
            "11201",
            "11202",
            "11203",
        ],
    ),
    (
        ErrorCode::Overloaded,
        &[
            "overloaded",
            "engine_overloaded_error",
            "insufficient_system_resource",
            "service_unavailable",
        ],
    ),
    // Those of requests of a batch that did not run.
    (ErrorCode::Timeout, &["timeout", "batch_expired"]),
    (ErrorCode::Cancelled, &["canceled", "batch_cancelled"]),
    (
        ErrorCode::ContentBlocked,
        &[
            "content_policy_violation",
            "content_blocked",
            "ResponsibleAIPolicyViolation",
            "1026",
            "1027",
        ],
    ),
    (
        ErrorCode::InvalidRequest,
        &[
            "invalid_request",
            "bad_request",
            "BadRequestError",
            "FAILED_PRECONDITION",
            "OUT_OF_RANGE",
            "tool_use_failed",
            "2013",
            // Codes of a failed response of OpenAI that concern the request.
            "invalid_prompt",
            "data_residency_mismatch",
            "invalid_image",
            "invalid_image_format",
            "invalid_base64_image",
            "invalid_image_url",
            "image_too_large",
            "image_too_small",
            "image_parse_error",
            "invalid_image_mode",
            "image_file_too_large",
            "unsupported_image_media_type",
            "empty_image_file",
            "failed_to_download_image",
            "image_file_not_found",
        ],
    ),
    (
        ErrorCode::ServerError,
        &["internal_server_error", "InternalServerError", "ABORTED", "DATA_LOSS", "unknown"],
    ),
];

/// Statuses that say more than a word for a failure of the server, which gateways write for every failure.
pub(super) const SAYS_MORE_THAN_A_SERVER_ERROR: [u16; 7] = [400, 401, 403, 404, 413, 422, 429];

/// Return whether a word is one that servers write for a failure of any kind.
pub(super) fn is_any_failure(word: &str) -> bool {
    ["api_error", "server_error", "internal_server_error"]
        .iter()
        .any(|own| own.eq_ignore_ascii_case(word))
}

/// Return the code of an HTTP status; `None` below 400 and above 599.
pub(super) fn from_status(status: u16) -> Option<ErrorCode> {
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

/// Refine a general code by phrases of the message: a context that is too long, refused reasoning, or an overload.
pub(super) fn refined(code: ErrorCode, message: &str) -> ErrorCode {
    if !matches!(code, ErrorCode::InvalidRequest | ErrorCode::ServerError) {
        return code;
    }
    let message = message.to_ascii_lowercase();
    if WRONG_KEY.iter().any(|phrase| message.contains(phrase)) {
        ErrorCode::Authentication
    } else if TOO_LONG.iter().any(|phrase| message.contains(phrase)) {
        ErrorCode::ContextLengthExceeded
    } else if REPLAY_REFUSED.iter().any(|phrase| message.contains(phrase)) {
        ErrorCode::ReplayRefused
    } else if code == ErrorCode::ServerError && message.contains("overloaded") {
        ErrorCode::Overloaded
    } else if CALLERS_MISTAKES.iter().any(|phrase| message.contains(phrase)) {
        ErrorCode::InvalidRequest
    } else {
        code
    }
}
