"""Messages of failed calls in a history, and the place of a call in a trace."""

from typing import Any

import pytest

from answering_server import AnsweringServer, Words
from deltafold import Message, RequestMetadata
from deltafold.conversation import Session
from deltafold.message.messages import Role
from deltafold.testing import Recording, answer


def failing(words: Words) -> Any:  # noqa: ANN401 - a reply
    """Fail before the first byte, or in the middle."""
    asked = words[-1][1]
    if asked == "whole":
        return Recording.error(529, {"error": {"message": "boom"}})
    if asked == "cut":
        body = answer("openai-chat", "High tide ", "is at 17:42.")
        return body.stopping("reset", body.body.index(b"is at"))
    return ("fine",)


@pytest.mark.parametrize("repair", ["none", "auto"])
@pytest.mark.parametrize("kept", ["as it is", "as json", "in a session"])
@pytest.mark.parametrize("how", ["whole", "cut"])
def test_no_model_reads_the_text_of_a_failure(how: str, kept: str, repair: Any) -> None:  # noqa: ANN401
    with AnsweringServer(failing) as server, server.model() as model:
        failed = model.send_message_sync(how, on_error="message")
        assert failed.meta.is_api_error_message
        given = Message.from_json(failed.to_json()) if kept == "as json" else failed
        history = [Message.user(how), given, Message.user("again")]
        if kept == "in a session":
            session = Session()
            session.extend(history)
            history = session.messages_for("openai-chat")[0]
        assert model.send_message_sync(history, repair=repair).text == "fine"
    said = [("assistant", "High tide ")] if how == "cut" else []
    assert server.words[-1] == [("user", how), *said, ("user", "again")]


def test_a_failure_that_a_program_wrote_itself_is_left_out() -> None:
    failed = Message.assistant("API Error: overloaded")
    failed.meta.is_api_error_message = True
    with AnsweringServer(failing) as server, server.model() as model:
        model.send_message_sync([Message.user("q"), failed, Message.user("again")])
    assert server.words == [[("user", "q"), ("user", "again")]]
    assert failed.role is Role.ASSISTANT


@pytest.mark.parametrize(
    "metadata",
    [
        RequestMetadata(session_id="S", run_id="R", trace_id="T"),
        {"sessionId": "S", "runId": "R", "traceId": "T"},
        {"session_id": "S", "run_id": "R", "trace_id": "T"},
    ],
)
def test_a_message_has_the_trace_of_its_request(metadata: Any) -> None:  # noqa: ANN401
    with AnsweringServer(failing) as server, server.model() as model:
        stream = model.stream_sync("q", request_metadata=metadata)
        message = stream.final_message()
        whole = model.send_message_sync("q", request_metadata=metadata)
        without = model.send_message_sync("q")
    assert message.meta.trace == whole.meta.trace == {"traceId": "T"}
    assert message.run_id == "R"
    assert without.meta.trace is None
