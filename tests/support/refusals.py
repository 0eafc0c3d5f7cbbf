"""Bodies with which vendors, gateways and proxies refuse a request, and the error of each.

Written after the error documents of the vendors and after recorded answers, shortened. Names, ids
and keys are made up.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True)
class Refusal:
    """A refused response and the fields of its error.

    Attributes:
        vendor: the sender.
        retryable: None where the code alone decides.
        retry_after: seconds.
    """

    vendor: str
    status: int
    body: str
    code: str
    message: str
    provider_code: str | None = None
    retryable: bool | None = None
    retry_after: float | None = None
    request_id: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


def _openai(
    message: str, kind: str | None, code: str | int | None = None, param: str | None = None
) -> str:
    return json.dumps({"error": {"message": message, "type": kind, "param": param, "code": code}})


def _anthropic(kind: str, message: str, **details: object) -> str:
    error: dict[str, object] = {"type": kind, "message": message, **details}
    return json.dumps({"type": "error", "error": error, "request_id": "req_body"})


def _gemini(code: int, status: str, message: str, *details: object) -> str:
    error: dict[str, object] = {"code": code, "message": message, "status": status}
    if details:
        error["details"] = list(details)
    return json.dumps({"error": error}, indent=2)


_QUOTA = "You exceeded your current quota, please check your plan and billing details."
_TOO_LONG = "This model's maximum context length is 8192 tokens, your messages have 9001 tokens."
_NO_WORDS = "HTTP status {} without an error in the body"

REFUSALS: Final = (
    # OpenAI
    Refusal(
        "openai",
        401,
        _openai("Incorrect API key provided.", "invalid_request_error", "invalid_api_key"),
        "authentication",
        "Incorrect API key provided.",
        "invalid_api_key",
        request_id="req_1",
        headers={"x-request-id": "req_1"},
    ),
    Refusal(
        "openai",
        429,
        _openai(_QUOTA, "insufficient_quota", "insufficient_quota"),
        "quota_exceeded",
        _QUOTA,
        "insufficient_quota",
    ),
    Refusal(
        "openai",
        429,
        _openai("Rate limit reached. Please try again in 1m2.5s.", "tokens", "rate_limit_exceeded"),
        "rate_limited",
        "Rate limit reached. Please try again in 1m2.5s.",
        "rate_limit_exceeded",
        retry_after=62.5,
    ),
    Refusal(
        "openai",
        429,
        _openai("Rate limit reached.", "requests", "rate_limit_exceeded"),
        "rate_limited",
        "Rate limit reached.",
        "rate_limit_exceeded",
        retry_after=360.0,
        headers={"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"},
    ),
    Refusal(
        "openai",
        400,
        _openai(_TOO_LONG, "invalid_request_error", "context_length_exceeded", "messages"),
        "context_length_exceeded",
        _TOO_LONG,
        "context_length_exceeded",
    ),
    Refusal(
        "openai",
        404,
        _openai("The model `m` does not exist.", "invalid_request_error", "model_not_found"),
        "not_found",
        "The model `m` does not exist.",
        "model_not_found",
    ),
    Refusal(
        "openai",
        503,
        _openai("The server is overloaded.", "server_error", "server_is_overloaded"),
        "overloaded",
        "The server is overloaded.",
        "server_is_overloaded",
        retry_after=1.5,
        headers={"retry-after-ms": "1500", "retry-after": "2"},
    ),
    Refusal(
        "openai",
        500,
        _openai("The server had an error.", "server_error"),
        "server_error",
        "The server had an error.",
        "server_error",
        retryable=False,
        headers={"x-should-retry": "false"},
    ),
    Refusal(
        "openai",
        400,
        _openai("Unknown parameter: 'foo'.", "invalid_request_error", "unknown_parameter", "foo"),
        "invalid_request",
        "Unknown parameter: 'foo'.",
        "unknown_parameter",
    ),
    # Azure OpenAI
    Refusal(
        "azure",
        400,
        json.dumps(
            {
                "error": {
                    "message": "The prompt was filtered.",
                    "type": None,
                    "param": "prompt",
                    "code": "content_filter",
                    "status": 400,
                    "innererror": {"code": "ResponsibleAIPolicyViolation"},
                }
            }
        ),
        "content_blocked",
        "The prompt was filtered.",
        "content_filter",
        request_id="apim-1",
        headers={"apim-request-id": "apim-1"},
    ),
    Refusal(
        "azure",
        429,
        json.dumps({"error": {"code": "429", "message": "Requests have exceeded the rate limit."}}),
        "rate_limited",
        "Requests have exceeded the rate limit.",
        retry_after=7.0,
        headers={"retry-after": "7"},
    ),
    Refusal(
        "azure",
        401,
        json.dumps({"error": {"code": "401", "message": "Access denied: wrong key."}}),
        "authentication",
        "Access denied: wrong key.",
    ),
    Refusal(
        "azure",
        404,
        json.dumps(
            {"error": {"code": "DeploymentNotFound", "message": "The deployment does not exist."}}
        ),
        "not_found",
        "The deployment does not exist.",
        "DeploymentNotFound",
    ),
    # Anthropic
    Refusal(
        "anthropic",
        401,
        _anthropic("authentication_error", "invalid x-api-key"),
        "authentication",
        "invalid x-api-key",
        "authentication_error",
        request_id="req_body",
    ),
    Refusal(
        "anthropic",
        429,
        _anthropic("rate_limit_error", "Too many input tokens."),
        "rate_limited",
        "Too many input tokens.",
        "rate_limit_error",
        retry_after=20.0,
        request_id="req_header",
        headers={"retry-after": "20", "request-id": "req_header", "x-request-id": "proxy"},
    ),
    Refusal(
        "anthropic",
        529,
        _anthropic("overloaded_error", "Overloaded"),
        "overloaded",
        "Overloaded",
        "overloaded_error",
        request_id="req_body",
    ),
    Refusal(
        "anthropic",
        400,
        _anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        "context_length_exceeded",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "invalid_request_error",
        request_id="req_body",
    ),
    Refusal(
        "anthropic",
        400,
        _anthropic("invalid_request_error", "messages: first message must use the user role"),
        "invalid_request",
        "messages: first message must use the user role",
        "invalid_request_error",
        request_id="req_body",
    ),
    Refusal(
        "anthropic",
        429,
        _anthropic(
            "rate_limit_error",
            "The limit of your workspace is reached.",
            details={"error_code": "enforced_spend_limit_reached"},
        ),
        "quota_exceeded",
        "The limit of your workspace is reached.",
        "enforced_spend_limit_reached",
        request_id="req_body",
    ),
    Refusal(
        "anthropic",
        413,
        _anthropic("request_too_large", "Request exceeds the maximum size"),
        "invalid_request",
        "Request exceeds the maximum size",
        "request_too_large",
        request_id="req_body",
    ),
    # Amazon Bedrock
    Refusal(
        "bedrock",
        429,
        json.dumps({"message": "Too many requests, please wait before trying again."}),
        "rate_limited",
        "Too many requests, please wait before trying again.",
        "ThrottlingException",
        request_id="aws-1",
        headers={
            "x-amzn-errortype": "ThrottlingException:http://internal.amazon.com/coral/",
            "x-amzn-requestid": "aws-1",
        },
    ),
    Refusal(
        "bedrock",
        400,
        json.dumps({"__type": "ThrottlingException", "message": "Rate exceeded"}),
        "rate_limited",
        "Rate exceeded",
        "ThrottlingException",
    ),
    Refusal(
        "bedrock",
        400,
        json.dumps(
            {"__type": "com.amazon.coral.service#ExpiredTokenException", "Message": "Expired."}
        ),
        "authentication",
        "Expired.",
        "ExpiredTokenException",
    ),
    Refusal(
        "bedrock",
        400,
        json.dumps({"message": "Input is too long for requested model."}),
        "context_length_exceeded",
        "Input is too long for requested model.",
        "ValidationException",
        headers={"x-amzn-errortype": "ValidationException"},
    ),
    Refusal(
        "bedrock",
        424,
        json.dumps({"originalStatusCode": 429, "message": "The model refused."}),
        "rate_limited",
        "The model refused.",
        "ModelStreamErrorException",
        headers={"x-amzn-errortype": "ModelStreamErrorException"},
    ),
    Refusal(
        "bedrock",
        403,
        json.dumps({"Message": "You don't have access to the model."}),
        "permission",
        "You don't have access to the model.",
        "AccessDeniedException",
        headers={"x-amzn-errortype": "AccessDeniedException"},
    ),
    # Gemini
    Refusal(
        "gemini",
        429,
        _gemini(
            429,
            "RESOURCE_EXHAUSTED",
            "Quota exceeded.",
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"},
        ),
        "rate_limited",
        "Quota exceeded.",
        "RESOURCE_EXHAUSTED",
        retry_after=34.4,
    ),
    Refusal(
        "gemini",
        429,
        _gemini(
            429,
            "RESOURCE_EXHAUSTED",
            "Quota exceeded.",
            {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]},
        ),
        "quota_exceeded",
        "Quota exceeded.",
        "RESOURCE_EXHAUSTED",
    ),
    Refusal(
        "gemini",
        400,
        "["
        + _gemini(400, "INVALID_ARGUMENT", "API key not valid.", {"reason": "API_KEY_INVALID"})
        + "]",
        "authentication",
        "API key not valid.",
        "API_KEY_INVALID",
    ),
    Refusal(
        "gemini",
        403,
        _gemini(403, "PERMISSION_DENIED", "The caller does not have permission."),
        "permission",
        "The caller does not have permission.",
        "PERMISSION_DENIED",
    ),
    Refusal(
        "gemini",
        503,
        _gemini(503, "UNAVAILABLE", "The model is overloaded."),
        "overloaded",
        "The model is overloaded.",
        "UNAVAILABLE",
    ),
    Refusal(
        "gemini",
        504,
        _gemini(504, "DEADLINE_EXCEEDED", "The request timed out."),
        "timeout",
        "The request timed out.",
        "DEADLINE_EXCEEDED",
    ),
    # DeepSeek
    Refusal(
        "deepseek",
        402,
        _openai("Insufficient Balance", "unknown_error", "invalid_request_error"),
        "quota_exceeded",
        "Insufficient Balance",
        "invalid_request_error",
    ),
    Refusal(
        "deepseek",
        401,
        _openai("Authentication Fails", "authentication_error", "invalid_request_error"),
        "authentication",
        "Authentication Fails",
        "invalid_request_error",
    ),
    Refusal(
        "deepseek",
        422,
        _openai("Invalid parameters", "invalid_request_error", "invalid_request_error"),
        "invalid_request",
        "Invalid parameters",
        "invalid_request_error",
    ),
    # OpenRouter
    Refusal(
        "openrouter",
        403,
        json.dumps(
            {
                "error": {
                    "code": 403,
                    "message": "Your input was flagged.",
                    "metadata": {"reasons": ["violence"], "flagged_input": "…"},
                }
            }
        ),
        "content_blocked",
        "Your input was flagged.",
    ),
    Refusal(
        "openrouter",
        402,
        json.dumps({"error": {"code": 402, "message": "This request requires more credits."}}),
        "quota_exceeded",
        "This request requires more credits.",
    ),
    Refusal(
        "openrouter",
        502,
        json.dumps(
            {"error": {"code": 502, "message": "Provider returned error", "metadata": {"raw": "x"}}}
        ),
        "server_error",
        "Provider returned error",
        request_id="gen-1",
        headers={"x-generation-id": "gen-1"},
    ),
    # Mistral
    Refusal(
        "mistral",
        401,
        json.dumps({"message": "Unauthorized", "request_id": "m-1"}),
        "authentication",
        "Unauthorized",
        request_id="m-1",
    ),
    Refusal(
        "mistral",
        429,
        json.dumps(
            {
                "object": "error",
                "message": "Rate limit exceeded",
                "type": "rate_limited",
                "code": "1300",
            }
        ),
        "rate_limited",
        "Rate limit exceeded",
        "1300",
    ),
    Refusal(
        "mistral",
        422,
        json.dumps(
            {
                "detail": [
                    {
                        "loc": ["body", "messages"],
                        "msg": "field required",
                        "type": "value_error.missing",
                    }
                ]
            }
        ),
        "invalid_request",
        "field required",
        "value_error.missing",
    ),
    # Cohere
    Refusal(
        "cohere",
        401,
        json.dumps({"id": "c-1", "message": "invalid api token"}),
        "authentication",
        "invalid api token",
    ),
    Refusal(
        "cohere",
        498,
        json.dumps({"message": "token expired"}),
        "authentication",
        "token expired",
    ),
    Refusal(
        "cohere",
        400,
        json.dumps({"message": "too many tokens: size limit exceeded by 11 tokens."}),
        "context_length_exceeded",
        "too many tokens: size limit exceeded by 11 tokens.",
    ),
    Refusal(
        "cohere",
        499,
        json.dumps({"message": "request cancelled"}),
        "cancelled",
        "request cancelled",
    ),
    # Groq, xAI, Kimi
    Refusal(
        "groq",
        413,
        _openai(
            "Request too large for model on tokens per minute.", "tokens", "rate_limit_exceeded"
        ),
        "rate_limited",
        "Request too large for model on tokens per minute.",
        "rate_limit_exceeded",
    ),
    Refusal(
        "groq",
        400,
        _openai("Failed to call a function.", "invalid_request_error", "tool_use_failed"),
        "invalid_request",
        "Failed to call a function.",
        "tool_use_failed",
    ),
    Refusal(
        "xai",
        400,
        json.dumps({"code": "Client specified an invalid argument", "error": "Incorrect API key."}),
        "invalid_request",
        "Incorrect API key.",
        "Client specified an invalid argument",
    ),
    Refusal(
        "kimi",
        429,
        _openai("Your account is suspended.", "exceeded_current_quota_error"),
        "quota_exceeded",
        "Your account is suspended.",
        "exceeded_current_quota_error",
    ),
    # Local servers
    Refusal(
        "ollama",
        404,
        json.dumps({"error": "model 'm' not found"}),
        "not_found",
        "model 'm' not found",
    ),
    Refusal(
        "vllm",
        400,
        json.dumps(
            {
                "object": "error",
                "message": _TOO_LONG,
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            }
        ),
        "context_length_exceeded",
        _TOO_LONG,
        "BadRequestError",
    ),
    Refusal(
        "llama.cpp",
        400,
        json.dumps(
            {
                "error": {
                    "code": 400,
                    "message": "the request exceeds the available context size",
                    "type": "exceed_context_size_error",
                    "n_ctx": 8,
                }
            }
        ),
        "context_length_exceeded",
        "the request exceeds the available context size",
        "exceed_context_size_error",
    ),
    Refusal(
        "llama.cpp",
        503,
        json.dumps(
            {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
        ),
        "overloaded",
        "Loading model",
        "unavailable_error",
    ),
    # Gateways and proxies
    Refusal(
        "gateway",
        500,
        'data: {"error": {"message": "upstream failed", "type": "api_error"}}\n\ndata: [DONE]\n\n',
        "server_error",
        "upstream failed",
        "api_error",
    ),
    Refusal(
        "gateway",
        400,
        '{"done": false}\n{"error": {"code": "content_filter", "message": "blocked"}}\n',
        "content_blocked",
        "blocked",
        "content_filter",
    ),
    Refusal(
        "proxy",
        502,
        "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>nginx</body>\r\n</html>",
        "server_error",
        "502 Bad Gateway",
    ),
    Refusal(
        "proxy",
        429,
        "<!DOCTYPE html><html><head><title>Too many\nrequests</title></head></html>",
        "rate_limited",
        "Too many requests",
        retry_after=30.0,
        headers={"retry-after": "30", "content-type": "text/html"},
    ),
    Refusal("proxy", 503, "upstream connect error", "overloaded", "upstream connect error"),
    Refusal("proxy", 504, "", "timeout", _NO_WORDS.format(504)),
    Refusal("proxy", 413, "{}", "invalid_request", _NO_WORDS.format(413)),
    Refusal(
        "proxy",
        429,
        '{"error": {"code": "insufficient_quota", "message": "You exceeded',
        "quota_exceeded",
        "HTTP status 429 and an error without a message",
        "insufficient_quota",
    ),
)
