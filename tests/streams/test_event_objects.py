"""Events that another package has parsed, in place of bytes: dicts, objects of SDKs, and mocks."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, Final, cast
from unittest.mock import MagicMock

import pytest
from openai.types.chat import ChatCompletionChunk

import deltafold
from any_name import AnyName
from deltafold import ErrorCode, Message, ModelError, UnknownDialectError
from deltafold._core import Transcoder
from deltafold.compat import openai as compat
from deltafold.contract.kinds import json_array, json_object
from sdk_clients import async_openai_client, openai_client

CHAT: Final = "openai-chat"


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    kind = "chat.completion.chunk"
    return {"id": "c-1", "object": kind, "created": 1, "model": "m", "choices": [choice]}


def arguments(text: str, **call: object) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, **call, "function": {"arguments": text}}]}


DICTS: Final = [
    chunk({"role": "assistant", "content": "At "}),
    chunk({"content": "17:42."}),
    chunk(
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "tide", "arguments": '{"place":'},
                }
            ]
        }
    ),
    chunk(arguments('"Brest"}')),
    chunk({}, "tool_calls"),
]


def namespace(value: Any) -> Any:  # noqa: ANN401 - stands for an object of an SDK
    if members := json_object(value):
        return SimpleNamespace(**{name: namespace(member) for name, member in members.items()})
    items: Any = json_array(value)
    return [namespace(item) for item in items] if items else value


def mock(value: Any) -> Any:  # noqa: ANN401 - stands for an object of an SDK
    if members := json_object(value):
        made = MagicMock()
        for name, member in members.items():
            setattr(made, name, mock(member))
        return made
    items: Any = json_array(value)
    return [mock(item) for item in items] if items else value


FORMS: Final[dict[str, Callable[[dict[str, Any]], object]]] = {
    "dict": lambda event: event,
    "object of the SDK": ChatCompletionChunk.model_validate,
    "namespace": namespace,
    "mock": mock,
}


def generated(events: Sequence[object]) -> Iterator[object]:
    yield from events


async def awaited(events: Sequence[object]) -> AsyncIterator[object]:
    for event in events:
        yield event


async def afolded(events: object) -> Message:
    async with deltafold.astream(events, CHAT) as stream:
        return await stream.final_message()


def fed(events: Sequence[object]) -> Message:
    fold = deltafold.Fold(CHAT)
    for event in events:
        fold.feed(event)
    fold.close()
    return fold.message


def transcoded(events: Sequence[object]) -> Message:
    transcoder = Transcoder(CHAT, "anthropic-messages")
    body = b"".join(map(transcoder.feed, events)) + transcoder.close()
    return deltafold.fold(body, "anthropic-messages")


def first_choice(events: Sequence[object]) -> Message:
    return deltafold.fold_choices(events, CHAT)[0].build_final_message()


def streamed(events: object, *name: AnyName) -> Message:
    with deltafold.stream(events, *name) as stream:
        return stream.final_message()


def mocked(events: Sequence[object]) -> Message:
    response = MagicMock()
    response.__iter__.return_value = iter(events)
    return streamed(response, CHAT)


def mocked_client(events: Sequence[object]) -> Message:
    client = MagicMock()
    client.chat.completions.create.return_value.__iter__.return_value = events
    return streamed(client.chat.completions.create(stream=True))


def awaited_mock(events: Sequence[object]) -> Message:
    response = MagicMock()
    response.__aiter__.return_value = events
    return asyncio.run(afolded(response))


WAYS: Final[dict[str, Callable[[Sequence[object]], Message]]] = {
    "fold": lambda events: deltafold.fold(events, CHAT),
    "Fold": fed,
    "fold_choices": first_choice,
    "stream of a list": lambda events: streamed(events, CHAT),
    "stream of a generator": lambda events: streamed(generated(events), CHAT),
    "stream without a name": lambda events: streamed(iter(events)),
    "astream of a list": lambda events: asyncio.run(afolded(events)),
    "astream of a generator": lambda events: asyncio.run(afolded(awaited(events))),
    "stream of a mock": mocked,
    "stream of a mocked client": mocked_client,
    "astream of a mock": awaited_mock,
    "Transcoder": transcoded,
}

every_form = pytest.mark.parametrize("form", FORMS)
every_way = pytest.mark.parametrize("way", WAYS)


@every_form
@every_way
def test_events_are_folded_as_their_bytes_are(form: str, way: str) -> None:
    message = WAYS[way]([FORMS[form](event) for event in DICTS])
    calls = [(call.tool_name, call.arguments) for call in message.runnable_tool_calls]
    assert (message.text, calls) == ("At 17:42.", [("tide", {"place": "Brest"})])


@every_form
@every_way
def test_events_that_end_inside_of_a_call_are_a_cut(form: str, way: str) -> None:
    with pytest.raises(ModelError) as raised:
        WAYS[way]([FORMS[form](event) for event in DICTS[:3]])
    if way != "Transcoder":  # the error of the target
        assert raised.value.code is ErrorCode.CONNECTION_LOST
    partial = raised.value.partial_message
    assert partial is not None
    assert partial.text == "At 17:42."
    assert not partial.runnable_tool_calls


@every_form
def test_a_tee_and_the_deltas_come_one_event_after_the_other(form: str) -> None:
    events = [FORMS[form](event) for event in DICTS]
    seen: list[object] = []
    with deltafold.stream(generated(events), CHAT, tee=seen.append) as stream:
        kinds = [delta.kind for delta in stream]
    assert all(one is other for one, other in zip(seen, events, strict=True))
    assert kinds[-1] == "done"


@pytest.mark.parametrize("wrong", [None, "text", 7, [], object(), ChatCompletionChunk])
@every_way
def test_what_is_neither_bytes_nor_an_event_is_named_with_its_place(
    way: str, wrong: object
) -> None:
    with pytest.raises(TypeError, match=r"data must be bytes, .* is item 2, counted from 0"):
        WAYS[way]([*DICTS[:2], wrong, *DICTS[2:]])


def test_an_event_that_does_not_say_its_protocol_is_named() -> None:
    with pytest.raises(UnknownDialectError, match="fits no dialect: name the dialect"):
        deltafold.stream(iter([{"hello": 1}])).final_message()
    with pytest.raises(TypeError, match="is item 0, counted from 0"):
        deltafold.stream(iter([7])).final_message()


def test_an_iterator_whose_first_item_says_nothing_is_not_read_again() -> None:
    chunks = (chunk for chunk in [{"hello": 1}, b"data: [DONE]\n\n"])
    unknown = deltafold.stream(chunks)
    with pytest.raises(UnknownDialectError):
        next(iter(unknown))
    assert unknown.status == "error"
    with pytest.raises(ModelError, match="the body is empty"):
        streamed(chunks, CHAT)  # its first item is lost: no answer may come without it


def test_events_say_their_protocol_where_they_are_awaited_too() -> None:
    async def read(events: object) -> Message:
        async with deltafold.astream(events) as stream:
            return await stream.final_message()

    for events in (DICTS, awaited(DICTS)):
        assert asyncio.run(read(events)).text == "At 17:42."
    with pytest.raises(UnknownDialectError, match="fits no dialect: name the dialect"):
        asyncio.run(read(awaited([{"hello": 1}])))


def test_a_type_that_ends_as_an_exception_is_a_failure_in_bedrock_alone() -> None:
    odd = {**DICTS[1], "type": "OddException"}
    assert deltafold.fold([odd, DICTS[4]], CHAT).text == "17:42."
    failure = {"throttlingException": {"message": "Slow down"}}
    with pytest.raises(ModelError, match="Slow down") as raised:
        deltafold.fold([{"messageStart": {"role": "assistant"}}, failure], "bedrock-converse")
    assert raised.value.code is ErrorCode.RATE_LIMITED


def test_a_generator_is_closed_that_is_left() -> None:
    ended: list[str] = []

    def events() -> Iterator[object]:
        try:
            yield from DICTS
        finally:
            ended.append("closed")

    with deltafold.stream(events()) as stream:
        next(iter(stream))
    assert ended == ["closed"]


def test_members_that_a_mock_only_was_asked_for_are_none() -> None:
    event = mock(DICTS[1])
    assert event.usage.total_tokens  # a mock makes it
    message = deltafold.fold([event, mock(DICTS[4])], CHAT)
    assert message.text == "17:42."
    assert message.meta.usage is None


def test_members_that_the_class_does_not_know_are_kept() -> None:
    thought = ChatCompletionChunk.model_validate(chunk({"reasoning_content": "Hm."}))
    message = deltafold.fold([thought, *DICTS[1:2], chunk({}, "stop")], CHAT)
    assert message.thinking == "Hm."


def test_a_text_with_half_a_character_is_read() -> None:
    halves = [chunk({"content": "\ud83d"}), chunk({"content": "\ude00"}), chunk({}, "stop")]
    body = b"".join(b"data: %b\n\n" % json.dumps(half).encode() for half in halves)
    text = deltafold.fold(body, CHAT).text
    for form in ("dict", "object of the SDK", "namespace"):
        assert deltafold.fold([FORMS[form](event) for event in halves], CHAT).text == text


def test_a_failure_of_the_iterator_is_one_of_the_transport() -> None:
    def events() -> Iterator[object]:
        yield from DICTS[:2]
        raise ConnectionResetError

    with pytest.raises(ModelError) as raised:
        streamed(events(), CHAT)
    assert raised.value.code is ErrorCode.CONNECTION_LOST
    assert isinstance(raised.value.__cause__, ConnectionResetError)


def test_a_mock_of_an_http_response_is_read_as_one() -> None:
    response = MagicMock(status_code=429, headers={"retry-after": "3"}, is_stream_consumed=False)
    response.stream = iter([])
    response.iter_bytes.return_value = iter([b'{"error":{"message":"slow down"}}'])
    with pytest.raises(ModelError) as raised:
        streamed(response, CHAT)
    assert (raised.value.code, raised.value.status) == (ErrorCode.RATE_LIMITED, 429)


def test_an_assertion_inside_of_a_mock_is_no_failure_of_the_provider() -> None:
    def events() -> Iterator[object]:
        yield DICTS[0]
        assert not DICTS, "the second chunk was read"

    with pytest.raises(AssertionError, match="second chunk"):
        streamed(events(), CHAT)


@pytest.mark.parametrize("form", ["object of the SDK", "mock"])
def test_chunks_of_another_program_pass_unchanged(form: str) -> None:
    given = [FORMS[form](event) for event in DICTS]
    objects: Any = compat.chunks(cast("list[ChatCompletionChunk]", given))
    assert all(one is other for one, other in zip(objects, given, strict=True))
    assert objects.message.text == "At 17:42."
    cut: Any = compat.chunks(cast("Iterator[ChatCompletionChunk]", generated(given[:3])))
    assert len(list(cut)) == 3
    assert not cut.message.runnable_tool_calls


def test_asynchronous_chunks_of_another_program_pass_unchanged() -> None:
    given = [ChatCompletionChunk.model_validate(event) for event in DICTS]

    async def passed() -> list[ChatCompletionChunk]:
        events = cast("AsyncIterator[ChatCompletionChunk]", awaited(given))
        return [one async for one in compat.chunks(events)]

    assert all(one is other for one, other in zip(asyncio.run(passed()), given, strict=True))


def test_objects_that_cannot_be_folded_pass_too() -> None:
    given: list[object] = ["text", 7, ChatCompletionChunk.model_validate(DICTS[0])]
    objects: Any = compat.chunks(cast("list[ChatCompletionChunk]", given))
    assert list(objects) == given


def test_the_answers_of_an_sdk_stream_are_folded_from_its_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chunks = [
        *[{**one, "choices": [{**one["choices"][0], "index": 1}]} for one in DICTS],
        *DICTS[:2],
        chunk({}, "stop"),
    ]
    body = [b"data: " + json.dumps(one).encode() + b"\n\n" for one in chunks]

    def refuse(**_members: object) -> None:
        raise AssertionError("an object of the SDK was made")

    monkeypatch.setattr(ChatCompletionChunk, "construct", refuse)

    async def awaited_answers() -> dict[int, deltafold.MessageAssembler]:
        response = await async_openai_client(body).chat.completions.create(
            model="m", messages=[], stream=True, n=2
        )
        return await deltafold.afold_choices(response, CHAT)

    response = openai_client(body).chat.completions.create(model="m", messages=[], stream=True, n=2)
    for folded in (deltafold.fold_choices(response, CHAT), asyncio.run(awaited_answers())):
        answers = {number: one.build_final_message() for number, one in folded.items()}
        assert {number: one.text for number, one in answers.items()} == dict.fromkeys(
            (0, 1), "At 17:42."
        )
        assert [len(answers[number].runnable_tool_calls) for number in (0, 1)] == [0, 1]
