"""Ids of messages of langchain: unique where a server repeats the id of its answers."""

from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk
from served import model

from deltafold.integrations.langchain import ChatDeltafold
from deltafold.testing import ReplayServer, answer

CALL = ("call_1", "high_tide", {"place": "Brest"})
TEXTS = ("At ", "17:42.")
DIALECTS = ("openai-chat", "openai-responses", "anthropic-messages")


async def answered(adapter: ChatDeltafold, way: str) -> Any:
    """Return the answer of a call; all its pieces have one id."""
    match way:
        case "invoke":
            return adapter.invoke("?")
        case "ainvoke":
            return await adapter.ainvoke("?")
        case "stream":
            chunks = list(adapter.stream("?"))
        case "astream":
            chunks = [chunk async for chunk in adapter.astream("?")]
        case "events":
            stream = adapter.stream_events("?", version="v3")
            (start,) = [event for event in stream if event["event"] == "message-start"]
            assert start["id"] == stream.output.id
            return stream.output
        case _:
            opened = await adapter.astream_events("?", version="v3")
            starts = [event async for event in opened if event["event"] == "message-start"]
            output = await opened.output
            assert [start["id"] for start in starts] == [output.id]
            return output
    assert len(chunks) > 1
    assert len({chunk.id for chunk in chunks}) == 1
    full = chunks[0]
    for chunk in chunks[1:]:
        full += chunk
    assert isinstance(full, AIMessageChunk)
    return full


WAYS = ("invoke", "ainvoke", "stream", "astream", "events", "aevents")


@pytest.mark.parametrize("settings", [{}, {"streaming": True}])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_answers_with_one_response_id_have_different_ids(
    dialect: str, way: str, settings: dict[str, bool]
) -> None:
    recordings = [answer(dialect, CALL), answer(dialect, *TEXTS), answer(dialect, *TEXTS)]
    with ReplayServer(recordings) as server:
        adapter = ChatDeltafold(client=model(dialect, server), **settings)
        answers = [await answered(adapter, way) for _ in recordings]
    assert len({one.id for one in answers}) == len(answers)
    (of_provider,) = {one.response_metadata["id"] for one in answers}
    assert of_provider
    assert of_provider not in {one.id for one in answers}
    assert all(one.id.startswith("lc_run-") for one in answers)
    assert [bool(one.tool_calls) for one in answers] == [True, False, False]


def test_a_client_may_be_named() -> None:
    named = ChatDeltafold(client="openai/gpt-4.1", api_key="k")
    other = ChatDeltafold(model="openai/gpt-4.1", api_key="k")
    assert named.model_dump() == other.model_dump()
    with pytest.raises(ValueError, match="client and model both name a model"):
        ChatDeltafold(client="openai/gpt-4.1", model="openai/gpt-4.1")
    with pytest.raises(TypeError, match=r"client must be a deltafold\.Model or the name of one"):
        ChatDeltafold(client=3)
