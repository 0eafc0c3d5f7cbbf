"""Words of refusals: the prompt is too long, the key is wrong, an image cannot be read."""

import json
from typing import Any, Final

import pytest

from deltafold import ErrorCode, ErrorMapper, ModelError, fold

TOO_LONG: Final[dict[str, tuple[int, Any]]] = {
    "openai": (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 8192 tokens.",
                "type": "invalid_request_error",
            }
        },
    ),
    "openai responses": (
        400,
        {"error": {"message": "Your input exceeds the context window of this model.", "type": "x"}},
    ),
    "anthropic": (
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: 210000 tokens > 200000 maximum",
            },
        },
    ),
    "anthropic with max_tokens": (
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "input length and `max_tokens` exceed context limit: 19 + 2 > 20",
            },
        },
    ),
    "mistral": (
        400,
        {
            "object": "error",
            "message": "Prompt contains 40000 tokens, too large for model with 32768 maximum",
            "type": "invalid_request_prompt_too_long",
            "code": "3051",
        },
    ),
    "vllm": (
        400,
        {
            "error": {
                "message": "The decoder prompt (length 14) is longer than the maximum model length",
                "type": "BadRequestError",
                "code": 400,
            }
        },
    ),
    "tgi": (
        422,
        {
            "error": "Input validation error: `inputs` must have less than 4095 tokens.",
            "error_type": "validation",
        },
    ),
    "together": (
        422,
        {
            "error": {
                "message": "`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000",
                "type": "invalid_request_error",
            }
        },
    ),
    "llama.cpp": (
        500,
        {"error": {"code": 500, "message": "the request exceeds the available context size."}},
    ),
    "dashscope": (
        400,
        {"code": "InvalidParameter", "message": "Range of input length should be [1, 129024]"},
    ),
    "zai": (400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}),
    "moonshot": (
        400,
        {
            "error": {
                "message": "Invalid request: Your request exceeded model token limit: 131072",
                "type": "invalid_request_error",
            }
        },
    ),
    "gemini": (
        400,
        {
            "error": {
                "code": 400,
                "message": "The input token count exceeds the maximum number of tokens allowed",
                "status": "INVALID_ARGUMENT",
            }
        },
    ),
    "xai": (
        400,
        {
            "code": "Client specified an invalid argument",
            "error": "This model's maximum prompt length is 131072 but the request contains more.",
        },
    ),
    "bedrock": (400, {"message": "Input is too long for requested model."}),
    "bedrock of another model": (
        400,
        {"message": "Input Tokens Exceeded: Number of input tokens exceeds maximum length."},
    ),
    "cohere": (
        400,
        {"message": "too many tokens: total number of tokens cannot exceed 128000 - received 14"},
    ),
    "ollama": (400, {"error": "the input length exceeds the context length"}),
    "sglang": (
        400,
        {
            "object": "error",
            "message": "The input (5 tokens) is longer than the model's context length (4 tokens).",
            "type": "BadRequestError",
            "code": 400,
        },
    ),
    "lm studio": (
        400,
        {"error": "The number of tokens to keep is greater than the context length"},
    ),
    "copilot": (
        400,
        {
            "error": {
                "message": "prompt token count of 140000 exceeds the limit of 128000",
                "code": "model_max_prompt_tokens_exceeded",
            }
        },
    ),
    "minimax": (
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "invalid params, context window exceeds limit (2013)",
            },
        },
    ),
    "a router": (
        400,
        {
            "error": {
                "message": "prompt too long; exceeded max context length by 11 tokens",
                "type": "invalid_request_error",
            }
        },
    ),
    "another router": (
        400,
        {
            "error": {
                "message": "The total length of all messages is too long.",
                "type": "too_many_prompt_tokens",
                "code": 400,
            }
        },
    ),
}

OTHERS: Final[dict[str, tuple[int, Any, ErrorCode]]] = {
    "tokens a minute": (
        413,
        {
            "error": {
                "message": "Request too large on tokens per minute (TPM): Limit 6000",
                "type": "tokens",
                "code": "rate_limit_exceeded",
            }
        },
        ErrorCode.RATE_LIMITED,
    ),
    "too many tokens of the answer": (
        400,
        {
            "error": {
                "message": "max_tokens is too large: 99999. This model supports at most 4096",
                "type": "invalid_request_error",
                "param": "max_tokens",
            }
        },
        ErrorCode.INVALID_REQUEST,
    ),
    "a rate": (
        429,
        {
            "error": {
                "message": "Rate limit reached on tokens per min (TPM): Limit 10000",
                "type": "tokens",
                "code": "rate_limit_exceeded",
            }
        },
        ErrorCode.RATE_LIMITED,
    ),
    "a key at xai": (
        400,
        {"code": "invalid-argument", "error": "Incorrect API key provided. You can obtain one."},
        ErrorCode.AUTHENTICATION,
    ),
}

OF_REQUESTS: Final = (
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
)


@pytest.mark.parametrize("name", TOO_LONG)
def test_a_prompt_that_is_too_long_is_read_in_the_words_of_each_server(name: str) -> None:
    status, body = TOO_LONG[name]
    fields = ErrorMapper().map_response(status, {}, json.dumps(body).encode())
    assert (fields.code, fields.retryable) == (ErrorCode.CONTEXT_LENGTH_EXCEEDED, False)


@pytest.mark.parametrize("name", TOO_LONG)
def test_such_an_error_within_a_stream_is_the_same(name: str) -> None:
    _, body = TOO_LONG[name]
    error = body["error"] if isinstance(body.get("error"), dict) else {"message": "", **body}
    if isinstance(body.get("error"), str):
        error = {"message": body["error"]}
    event = f"data: {json.dumps({'error': error})}\n\n".encode()
    with pytest.raises(ModelError) as caught:
        fold(event, "openai-chat")
    assert caught.value.code is ErrorCode.CONTEXT_LENGTH_EXCEEDED


@pytest.mark.parametrize("name", OTHERS)
def test_other_refusals_keep_their_code(name: str) -> None:
    status, body, code = OTHERS[name]
    assert ErrorMapper().map_response(status, {}, json.dumps(body).encode()).code is code


@pytest.mark.parametrize(
    ("word", "code"),
    [
        *((word, ErrorCode.INVALID_REQUEST) for word in OF_REQUESTS),
        ("image_content_policy_violation", ErrorCode.CONTENT_BLOCKED),
        ("bio_policy", ErrorCode.CONTENT_BLOCKED),
        ("server_error", ErrorCode.SERVER_ERROR),
        ("vector_store_timeout", ErrorCode.SERVER_ERROR),
    ],
)
@pytest.mark.parametrize("streamed", [True, False])
def test_a_failed_response_of_openai_says_whether_the_request_is_wrong(
    word: str, code: ErrorCode, *, streamed: bool
) -> None:
    response: dict[str, Any] = {
        "id": "resp_1",
        "object": "response",
        "status": "failed",
        "output": [],
        "error": {"code": word, "message": "boom"},
    }
    body = json.dumps(response).encode()
    if streamed:
        event = json.dumps({"type": "response.failed", "response": response})
        body = f"event: response.failed\ndata: {event}\n\n".encode()
    with pytest.raises(ModelError) as caught:
        fold(body, "openai-responses")
    assert caught.value.code is code
    assert caught.value.retryable is (code is ErrorCode.SERVER_ERROR)
