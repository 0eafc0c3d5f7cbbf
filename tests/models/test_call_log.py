"""The logger `deltafold`: the records of a call at each level, and content that none contains."""

import logging
import subprocess
import sys

import pytest

from deltafold import ModelError, load_model
from deltafold.testing import Recording, ReplayTransport
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
