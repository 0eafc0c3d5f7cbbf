"""The logger `deltafold`: the records of a call at each level, and content that none contains."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import httpx2
import pytest

from deltafold import ErrorCode, ModelError, OpenAIChatModel, load_model
from deltafold.contract.log import LOGGER
from deltafold.gateway import create_app
from deltafold.testing import Recording, ReplayServer, ReplayTransport
from gateways import served
from wires import ANTHROPIC, CHAT_ERROR

KEY = "sk-very-secret-key"
QUESTION = "What is the secret of the tide?"


def ask(body: bytes, name: str = "anthropic/claude-demo", status: int = 200) -> None:
    recording = Recording(((0.0, body),), status=status)
    model = load_model(name, client=ReplayTransport([recording]), api_key=KEY, max_tokens=10)
    with model.stream_sync(QUESTION) as stream:
        stream.final_message()


def test_info_has_the_request_and_the_end_of_a_call(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "deltafold")
    ask(ANTHROPIC)
    first, last = (record.getMessage() for record in caplog.records)
    assert first == (
        "anthropic/claude-demo: POST https://api.anthropic.com/v1/messages "
        "with 1 messages and 0 tools"
    )
    assert "status 200, finish reason tool_calls, 1948 input and " in last
    assert {record.levelno for record in caplog.records} == {logging.INFO}


def test_a_failed_call_is_a_warning_without_the_text_of_the_provider(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "deltafold")
    body = b'{"error":{"message":"the prompt %s is too long","type":"invalid_request_error"}}'
    with pytest.raises(ModelError):
        ask(body % QUESTION.encode(), status=400)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "failed with invalid_request, status 400" in record.getMessage()
    assert QUESTION not in caplog.text


def test_debug_has_the_text_of_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "deltafold")
    with pytest.raises(ModelError):
        ask(CHAT_ERROR, "openai/gpt-demo")
    assert "overloaded" in caplog.text


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO, logging.WARNING])
def test_no_key_is_logged_at_any_level(level: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(level, "deltafold")
    ask(ANTHROPIC)
    with pytest.raises(ModelError):
        ask(f'{{"error":{{"message":"bad key {KEY}"}}}}'.encode(), status=401)
    assert KEY not in caplog.text


def test_a_warning_of_the_decoder_is_logged_by_its_code(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "deltafold")
    event = b'event: surprise\ndata: {"type":"surprise","text":"of the tide"}\n\n'
    ask(ANTHROPIC.replace(b"event: message_stop", event + b"event: message_stop"))
    (record,) = caplog.records
    assert record.getMessage() == "anthropic/claude-demo: warning unknown_event"


def test_a_program_that_sets_no_logging_sees_nothing() -> None:
    program = (
        "from deltafold import load_model\n"
        "from deltafold.testing import Recording, ReplayTransport\n"
        'body = b\'{"error":{"message":"no"}}\'\n'
        "client = ReplayTransport([Recording(((0.0, body),), status=500)])\n"
        "model = load_model('openai/gpt-demo', client=client, api_key='k')\n"
        "list(model.stream_sync('Hi'))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


HOSTILE = "x\nERROR:root:FORGED\x1b[31m\x85\u2028\u202e\x9b"
SHOWN = r"x\nERROR:root:FORGED\u001b[31m\u0085\u2028\u202e\u009b"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[io.StringIO]:
    """What a plain handler writes, at the level of a program that looks for a mistake."""
    caplog.set_level(logging.DEBUG, "deltafold")
    written, logger = io.StringIO(), logging.getLogger("deltafold")
    handler = logging.StreamHandler(written)
    handler.setFormatter(logging.Formatter("%(levelname)s:%(name)s:%(message)s"))
    logger.addHandler(handler)
    yield written
    logger.removeHandler(handler)


def event(**members: object) -> bytes:
    return b"data: " + json.dumps(members).encode() + b"\n\n"


REFUSED = json.dumps({"error": {"message": HOSTILE, "code": HOSTILE, "type": HOSTILE}}).encode()
CHOICE: dict[str, object] = {"delta": {}, "finish_reason": HOSTILE}
STRANGE = event(id=HOSTILE, model=HOSTILE, choices=[CHOICE])


@pytest.mark.parametrize(
    ("body", "status", "headers"),
    [
        (REFUSED, 400, {"x-request-id": "a\x0bb\x85"}),
        (REFUSED, 500, {}),
        (b"data: " + REFUSED + b"\n\n", 200, {}),
        (STRANGE + b"data: [DONE]\n\n", 200, {"x-request-id": "a\x1b[31m"}),
        (event(type=HOSTILE) + STRANGE, 200, {}),
    ],
    ids=["refusal", "failure", "error event", "finish reason", "event"],
)
def test_a_text_of_a_provider_makes_no_line_of_the_log(
    log: io.StringIO, body: bytes, status: int, headers: dict[str, str]
) -> None:
    recording = Recording(((0.0, body),), status=status, headers=headers)
    client = ReplayTransport([recording])
    model = load_model(f"openai/gpt-{HOSTILE}", client=client, api_key=KEY)
    list(model.stream_sync(QUESTION))
    lines = log.getvalue().split("\n")[:-1]
    assert lines
    assert all(line.partition(":")[0] in {"INFO", "WARNING", "DEBUG"} for line in lines)
    assert all(":deltafold:" in line and line.isprintable() for line in lines)
    assert SHOWN in log.getvalue()


def test_the_text_of_an_exception_begins_no_line_of_the_log(log: io.StringIO) -> None:
    def store() -> None:
        raise ValueError(HOSTILE)

    try:
        store()
    except ValueError:
        LOGGER.exception("the store of %s failed", HOSTILE)
    first, *traceback = log.getvalue().split("\n")[:-1]
    assert first == f"ERROR:deltafold:the store of {SHOWN} failed"
    assert traceback[0] == "  Traceback (most recent call last):"
    assert traceback[-1] == "  " + SHOWN.partition(r"\n")[2]
    assert all(line.startswith("  ") and line.isprintable() for line in traceback)


def test_a_name_that_a_client_completes_makes_no_line_of_the_log(log: io.StringIO) -> None:
    with ReplayServer() as server:
        server.queue(Recording(((0.0, REFUSED),), status=400))
        model = OpenAIChatModel({"model_id": "x-*"}, base_url=f"{server.url}/v1", api_key=KEY)
        with served(create_app({"x-*": model})) as url:
            body = {"model": f"x-{HOSTILE}", "messages": [{"role": "user", "content": "Hi"}]}
            assert httpx2.post(f"{url}/v1/chat/completions", json=body).status_code == 400
    lines = log.getvalue().split("\n")[:-1]
    assert any(SHOWN in line for line in lines)
    assert all(line.isprintable() for line in lines)


def test_the_text_of_an_error_is_one_printable_line() -> None:
    error = ModelError(
        code=ErrorCode.SERVER_ERROR,
        message=f"no\n{HOSTILE}",
        retryable=True,
        provider_code=HOSTILE,
        http_request_id=HOSTILE,
    )
    assert str(error).isprintable()
    assert error.message == f"no\n{HOSTILE}"
