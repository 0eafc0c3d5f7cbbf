"""The cause of a `ModelError` where a client of an SDK was called, and `ModelError.as_sdk`."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final

import anthropic
import openai
import pytest

import deltafold
from deltafold import ErrorCode, MisuseError, ModelError
from deltafold.errors.model_error import model_error_from_fold
from deltafold.errors.sdk_exceptions import SDKS, SdkName
from sdk_clients import (
    ANTHROPIC_HTTP,
    OPENAI_HTTP,
    anthropic_client,
    async_anthropic_client,
    async_openai_client,
    openai_client,
)

HEAD: Final = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m",'
    b'"choices":[{"index":0,"delta":{"role":"assistant","content":"At "}}]}\n\n'
)
FAILED: Final = b'data: {"error":{"message":"Engine overloaded","code":"server_error"}}\n\n'
START: Final = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message",'
    b'"role":"assistant","model":"c","content":[],"stop_reason":null,'
    b'"usage":{"input_tokens":1,"output_tokens":1}}}\n\n'
)
BUSY: Final = (
    b'event: error\ndata: {"type":"error",'
    b'"error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
)

Case = tuple[SdkName, Sequence[bytes], str | None, type[Exception]]
CASES: Final[dict[str, Case]] = {
    "openai, error event": ("openai", [HEAD, FAILED], None, openai.APIError),
    "openai, cut": ("openai", [HEAD], None, openai.APIConnectionError),
    "openai, reset": ("openai", [HEAD], "RemoteProtocolError", openai.APIConnectionError),
    "openai, timeout": ("openai", [HEAD], "ReadTimeout", openai.APITimeoutError),
    "anthropic, error event": ("anthropic", [START, BUSY], None, anthropic.APIStatusError),
    "anthropic, cut": ("anthropic", [START], None, anthropic.APIConnectionError),
    "anthropic, reset": ("anthropic", [START], "ReadError", anthropic.APIConnectionError),
    "anthropic, timeout": ("anthropic", [START], "ReadTimeout", anthropic.APITimeoutError),
}
HTTP: Final[dict[SdkName, Any]] = {"openai": OPENAI_HTTP, "anthropic": ANTHROPIC_HTTP}


def failure_of(package: SdkName, name: str | None) -> Exception | None:
    return None if name is None else getattr(HTTP[package], name)("gone")


def synchronously(package: SdkName, chunks: Sequence[bytes], failure: Exception | None) -> object:
    if package == "openai":
        chat = openai_client(chunks, failure).chat.completions
        return deltafold.stream(chat.create(model="m", messages=[], stream=True)).final_message()
    made = anthropic_client(chunks, failure).messages.create(
        model="m", max_tokens=5, messages=[], stream=True
    )
    return deltafold.stream(made).final_message()


def awaited(package: SdkName, chunks: Sequence[bytes], failure: Exception | None) -> object:
    async def read() -> object:
        if package == "openai":
            chat = async_openai_client(chunks, failure).chat.completions
            made: Any = await chat.create(model="m", messages=[], stream=True)
        else:
            made = await async_anthropic_client(chunks, failure).messages.create(
                model="m", max_tokens=5, messages=[], stream=True
            )
        async with deltafold.astream(made) as stream:
            return await stream.final_message()

    return asyncio.run(read())


def through_a_model(package: SdkName, chunks: Sequence[bytes], failure: Exception | None) -> object:
    client = (openai_client if package == "openai" else anthropic_client)(chunks, failure)
    model = deltafold.load_model(f"{package}/m", client=client, max_tokens=5)
    return model.send_message_sync("Hello")


@pytest.mark.parametrize("read", [synchronously, awaited, through_a_model])
@pytest.mark.parametrize("case", CASES)
def test_the_cause_is_the_exception_that_users_of_the_sdk_retry(
    case: str, read: Callable[[SdkName, Sequence[bytes], Exception | None], object]
) -> None:
    package, chunks, name, kind = CASES[case]
    failure = failure_of(package, name)
    with pytest.raises(ModelError) as raised:
        read(package, chunks, failure)
    cause: Any = raised.value.__cause__
    assert kind in type(cause).__mro__
    assert id(raised.value.as_sdk(package)) == id(cause)
    assert cause.__cause__ is failure
    assert str(cause.request.url).startswith("http://test/")
    assert not cause.request.headers.get("authorization")
    assert not cause.request.headers.get("x-api-key")


def test_an_error_event_has_the_status_and_the_body_of_its_kind() -> None:
    with pytest.raises(ModelError) as raised:
        synchronously("anthropic", [START, BUSY], None)
    cause: Any = raised.value.__cause__
    assert cause.status_code == 529
    assert cause.body == {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "Overloaded"},
    }
    with pytest.raises(ModelError) as raised:
        synchronously("openai", [HEAD, FAILED], None)
    cause = raised.value.__cause__
    assert (cause.code, cause.message) == ("server_error", "Engine overloaded")


def test_a_stream_that_its_caller_closed_has_no_cause() -> None:
    chat = openai_client([HEAD, FAILED]).chat.completions
    stream = deltafold.stream(chat.create(model="m", messages=[], stream=True))
    next(iter(stream))
    stream.close()
    assert stream.error is not None
    assert (stream.error.code, stream.error.__cause__) == (ErrorCode.CANCELLED, None)


def test_bytes_that_no_sdk_brought_have_no_cause() -> None:
    with pytest.raises(ModelError) as raised:
        deltafold.stream([HEAD], "openai-chat").final_message()
    assert raised.value.__cause__ is None
    assert isinstance(raised.value.as_sdk("openai"), openai.APIConnectionError)


REFUSALS: Final = {
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    409: "ConflictError",
    422: "UnprocessableEntityError",
    429: "RateLimitError",
    500: "InternalServerError",
}


@pytest.mark.parametrize("package", SDKS)
@pytest.mark.parametrize("status", REFUSALS)
def test_a_refusal_has_the_class_the_body_and_the_headers_of_its_status(
    package: SdkName, status: int
) -> None:
    error = model_error_from_fold(
        code="rate_limited", message="slow down", retryable=None, retry_after=3.0, status=status
    )
    error.body = '{"error": {"message": "slow down", "code": "slow"}}'
    made: Any = error.as_sdk(package)
    sdk = import_module(package)
    assert type(made) is getattr(sdk, REFUSALS[status])
    assert made.response.headers["retry-after"] == "3.0"
    inner = {"message": "slow down", "code": "slow"}
    assert made.body == (inner if package == "openai" else {"error": inner})


@pytest.mark.parametrize("package", SDKS)
@pytest.mark.parametrize("code", list(ErrorCode))
def test_each_code_has_an_exception_of_each_sdk(package: SdkName, code: ErrorCode) -> None:
    sdk = import_module(package)
    error = model_error_from_fold(code=code.value, message="why", retryable=None)
    made: Any = error.as_sdk(package)
    assert isinstance(made, sdk.APIError)
    retried = (sdk.RateLimitError, sdk.InternalServerError, sdk.APIConnectionError)
    # The SDKs retry a 429 even where the account has no money left.
    assert isinstance(made, retried) is (error.retryable or code is ErrorCode.QUOTA_EXCEEDED)


def test_an_sdk_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    error = model_error_from_fold(code="timeout", message="", retryable=None)
    with pytest.raises(MisuseError, match=r"pip install 'deltafold\[openai\]'"):
        error.as_sdk("openai")
