"""State that a client sends back reaches the model that made it, under any name of the gateway.

In: the answers of signed_answers.py, from recorded upstreams.  Out: the next request of the
upstream, after a restart of the gateway: the secrets of its own answer, and of no other model.
"""

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, Literal

import httpx2
import pytest
from starlette.requests import Request

from deltafold import OpenAIChatModel, Transcoder, encode_message, fold, parse_request
from deltafold.dialects import dialect_of
from deltafold.gateway import ClientRequest, MemoryStore, create_app
from deltafold.models.adapters import adapter_of
from deltafold.models.base import Model
from deltafold.testing import Recording, ReplayServer
from gateways import served
from native_clients import Body, NativeClient, events, first_request
from signed_answers import SIGNED, Signed, thinking_chat, typed_events

MARK: Final = "eyJkZWx0YWZvbGQi"
CLIENTS: Final = ("anthropic-messages", "openai-responses", "gemini", "openai-chat")
TYPES: Final = {"bedrock-converse": "application/vnd.amazon.eventstream"}
BUSY: Final = Recording.error(529, {"error": {"type": "overloaded_error", "message": "Busy"}})

ANSWERS: Final = tuple(one for one in SIGNED if one.dialect != "cohere-chat")
"""Answers whose state is signed or encrypted; of Cohere, only the name of the model counts."""
OWN: Final = tuple(one for one in ANSWERS if one.dialect in CLIENTS)

both_ways = pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
each_own = pytest.mark.parametrize("answer", OWN, ids=lambda answer: answer.name)
each_answer = pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.name)


def upstream(answer: Signed, url: str, model_id: str | None = None) -> Model[Any]:
    """Return a Model at a replay server, which asks for an alias of what the answer reports."""
    adapter = adapter_of(answer.dialect) or OpenAIChatModel
    base = f"{url}/v1" if dialect_of(answer.dialect).path.startswith("/chat") else url
    config = {"model_id": model_id or answer.aliases[0], **dict(answer.settings)}
    return adapter(config, base_url=base, api_key="upstream-key")


def recorded(answer: Signed, *, streams: bool = True, model: str | None = None) -> Recording:
    kind = TYPES.get(answer.dialect, "text/event-stream") if streams else "application/json"
    return Recording.of(answer.body(model, stream=streams), content_type=kind)


class Chat(NativeClient):
    """A client each of whose requests meets a new gateway."""

    def ask(self, models: Any, name: str = "m", **options: Any) -> None:  # noqa: ANN401 - those of `create_app`
        """Send the request to a gateway, and add its answer and the results to the conversation."""
        options = {"store": MemoryStore(), **options}
        with served(create_app({name: models}, **options)) as url:
            self.said = self.post(url, name)
        self.body = self.next_body()


@contextmanager
def servers(count: int) -> Generator[list[ReplayServer]]:
    opened = [ReplayServer() for _ in range(count)]
    for server in opened:
        server.__enter__()
    try:
        yield opened
    finally:
        for server in opened:
            server.close()


def sent(server: ReplayServer) -> str:
    """Return the last body that an upstream got."""
    return bytes(server.requests[-1].body).decode()


def missing(secrets: Sequence[str], text: str) -> list[str]:
    return [secret for secret in secrets if secret not in text]


def leaked(secrets: Sequence[str], text: str) -> list[str]:
    return [secret for secret in secrets if secret in text]


@pytest.mark.one_in(3)
@each_own
@both_ways
def test_state_reaches_its_model_behind_another_name(answer: Signed, *, streams: bool) -> None:
    with servers(1) as (server,):
        chat = Chat(answer.dialect, streams=streams)
        server.queue(recorded(answer, streams=streams))
        chat.ask(upstream(answer, server.url))
        assert MARK.encode() not in chat.said
        if streams:
            assert chat.said == answer.body(stream=True)  # the bytes pass
        server.queue(recorded(answer, streams=streams))
        chat.ask(upstream(answer, server.url))
        assert missing(answer.secrets, sent(server)) == []


@pytest.mark.one_in(5)
@each_answer
@pytest.mark.parametrize("client", CLIENTS)
@both_ways
def test_translated_state_reaches_its_model(answer: Signed, client: str, *, streams: bool) -> None:
    if answer.dialect == client:
        return
    with servers(1) as (server,):
        chat = Chat(client, streams=streams)
        server.queue(recorded(answer, streams=streams))
        chat.ask(upstream(answer, server.url))
        assert MARK.encode() in chat.said
        assert leaked(answer.secrets, chat.said.decode()) == []
        server.queue(recorded(answer, streams=streams))
        chat.ask(upstream(answer, server.url))
        assert missing(answer.secrets, sent(server)) == []
        assert MARK not in sent(server)


@pytest.mark.one_in(3)
@each_own
@both_ways
def test_an_answer_of_a_fallback_names_its_model(answer: Signed, *, streams: bool) -> None:
    with servers(2) as (first, second):
        table = [
            upstream(answer, first.url, answer.others[-1]),
            upstream(answer, second.url),
        ]
        chat = Chat(answer.dialect, streams=streams)
        for _ in range(2):
            first.queue(BUSY)
            second.queue(recorded(answer, streams=streams))
            chat.ask(table)
            assert MARK.encode() in chat.said
            assert leaked(answer.secrets, chat.said.decode()) == []
        # The model that made the state gets it, and the first one of the list does not.
        assert missing(answer.secrets, sent(second)) == []
        assert MARK not in sent(second)
        assert leaked([*answer.secrets, MARK], sent(first)) == []


@pytest.mark.one_in(3)
@each_own
@both_ways
def test_an_answer_of_the_first_model_is_its_own_after_others(
    answer: Signed, *, streams: bool
) -> None:
    with servers(2) as (first, second):
        table = [
            upstream(answer, first.url),
            upstream(answer, second.url, answer.others[-1]),
        ]
        chat = Chat(answer.dialect, streams=streams)
        first.queue(recorded(answer, streams=streams))
        chat.ask(table)
        assert MARK.encode() not in chat.said
        first.queue(BUSY)
        second.queue(recorded(answer, streams=streams, model=answer.others[-1]))
        chat.ask(table)
        assert leaked(answer.secrets, sent(second)) == []
        first.queue(recorded(answer, streams=streams))
        chat.ask(table)
        assert missing(answer.secrets, sent(first)) == []
        # Of the two answers in the history, only its own carries secrets.
        assert [sent(first).count(secret) for secret in answer.secrets[:1]] == [1]
        assert MARK not in sent(first)


@both_ways
def test_ids_go_to_no_model_without_the_reasoning_that_they_belong_to(*, streams: bool) -> None:
    answer = next(one for one in SIGNED if one.name == "responses")
    with servers(2) as (first, second):
        table = [
            upstream(answer, first.url, answer.others[-1]),
            upstream(answer, second.url),
        ]
        chat = Chat(answer.dialect, streams=streams)
        first.queue(BUSY)
        second.queue(recorded(answer, streams=streams))
        chat.ask(table)
        first.queue(recorded(answer, streams=streams))
        chat.ask(table)
        kinds = [(item.get("type"), item.get("id")) for item in json.loads(sent(first))["input"]]
        assert kinds == [(None, None), ("function_call", None), ("function_call_output", None)]


@pytest.mark.parametrize("name", ["m", "gpt-5"], ids=["alias", "own name"])
@both_ways
def test_reasoning_of_another_protocol_is_no_stored_item(name: str, *, streams: bool) -> None:
    answer = next(one for one in SIGNED if one.name == "responses")
    plain = ("gpt-oss-120b", ("gpt-oss-120b",), ())
    other = Signed("chat that only thinks", "openai-chat", thinking_chat, (), *plain)
    with servers(2) as (first, second):
        table = [upstream(answer, first.url), upstream(other, second.url)]
        chat = Chat(answer.dialect, streams=streams)
        chat.body |= {"store": True}  # the provider is asked for items that it has stored
        first.queue(BUSY)
        second.queue(recorded(other, streams=streams))
        chat.ask(table, name)
        assert [item["type"] for item in chat.body["input"][1:3]] == ["reasoning", "function_call"]
        first.queue(recorded(answer, streams=streams))
        chat.ask(table, name)
        kinds = [(item.get("type"), item.get("id")) for item in json.loads(sent(first))["input"]]
        assert kinds == [(None, None), ("function_call", None), ("function_call_output", None)]


def test_bytes_of_a_list_pass_where_its_models_are_one() -> None:
    answer = SIGNED[0]
    with servers(2) as (first, second):
        table = [
            upstream(answer, first.url, "claude-sonnet-4-5"),
            upstream(answer, second.url, "claude-sonnet-4-5@20250929"),
        ]
        chat = Chat(answer.dialect, streams=True)
        first.queue(BUSY)
        second.queue(recorded(answer))
        chat.ask(table)
        assert chat.said == answer.body(stream=True)
        first.queue(recorded(answer))
        chat.ask(table)
        assert missing(answer.secrets, sent(first)) == []


def test_a_model_of_another_protocol_in_front_does_not_take_the_state() -> None:
    answer, chat_answer = SIGNED[0], SIGNED[5]
    assert chat_answer.dialect == "openai-chat"
    with servers(2) as (first, second):
        table = [upstream(chat_answer, first.url), upstream(answer, second.url)]
        chat = Chat(answer.dialect, streams=True)
        first.queue(BUSY)
        second.queue(recorded(answer))
        chat.ask(table)
        assert chat.said == answer.body(stream=True)
        first.queue(recorded(chat_answer))
        chat.ask(table)
        assert leaked(["REDACTED_DATA"], sent(first)) == []
        first.queue(BUSY)
        second.queue(recorded(answer))
        chat.ask(table)
        assert missing(answer.secrets, sent(second)) == []


@both_ways
def test_a_name_that_a_hook_chose_may_stand_for_each_of_several_models(*, streams: bool) -> None:
    answer = SIGNED[0]
    chosen = iter(["cheap", "good", "cheap"])

    async def choose(_: Request, asked: ClientRequest) -> ClientRequest:
        return replace(asked, model_id=next(chosen))

    with servers(2) as (cheap, good):
        table = {
            "cheap": upstream(answer, cheap.url, "claude-haiku-4-5"),
            "good": upstream(answer, good.url),
        }
        chat = Chat(answer.dialect, streams=streams)
        for server in (cheap, good, cheap):
            server.queue(recorded(answer, streams=streams))
            with served(create_app(table, on_request=choose)) as url:
                chat.said = chat.post(url, "auto")
            chat.body = chat.next_body()
            assert MARK.encode() in chat.said
        assert leaked([*answer.secrets, MARK], sent(good)) == []
        # Of the two answers in the history, the first one is its own.
        assert [sent(cheap).count(secret) for secret in answer.secrets] == [1, 1]


def test_a_stored_response_keeps_the_model_that_made_it() -> None:
    answer = next(one for one in SIGNED if one.name == "responses")
    store = MemoryStore()
    with servers(2) as (first, second):
        table: dict[str, Any] = {
            "m": [upstream(answer, first.url), upstream(answer, second.url, "gpt-5-mini")],
            "other": upstream(answer, second.url, "gpt-5-mini"),
            "same": upstream(answer, first.url, "openai/gpt-5"),
        }
        with served(create_app(table, store=store)) as url:
            first.queue(recorded(answer, streams=False))
            asked: Body = {**first_request("openai-responses"), "model": "m", "store": True}
            made = httpx2.post(f"{url}/v1/responses", json=asked).json()
            result = {"type": "function_call_output", "call_id": "call_1", "output": "done"}
            more: Body = {"previous_response_id": made["id"], "input": [result], "store": True}
        for name, server, wanted in (("other", second, False), ("same", first, True)):
            with served(create_app(table, store=store)) as url:
                server.queue(recorded(answer, streams=False))
                httpx2.post(f"{url}/v1/responses", json={**more, "model": name})
            assert ("ENCRYPTED" in sent(server)) is wanted


def message_of(texts: Sequence[str], *, stream: bool) -> bytes:
    """Write a Responses answer: reasoning, and a message with a content for each text."""
    reasoning: Body = {"type": "reasoning", "id": "rs1", "summary": [], "encrypted_content": "ENC"}
    begun: Body = {"type": "message", "id": "m1", "role": "assistant", "status": "in_progress"}
    empty: Body = {"type": "output_text", "text": "", "annotations": []}
    contents = [{**empty, "text": text} for text in texts]
    message = {**begun, "status": "completed", "content": contents}
    head: Body = {"id": "resp_1", "object": "response", "model": "gpt-5"}
    done = {**head, "status": "completed", "output": [reasoning, message]}
    if not stream:
        return json.dumps(done).encode()
    written: list[Body] = [
        {"type": "response.created", "response": {**head, "output": []}},
        {"type": "response.output_item.done", "output_index": 0, "item": reasoning},
        {"type": "response.output_item.added", "output_index": 1, "item": {**begun, "content": []}},
    ]
    for index, content in enumerate(contents):
        at = {"item_id": "m1", "output_index": 1, "content_index": index}
        text = content["text"]
        written += [
            {"type": "response.content_part.added", **at, "part": empty},
            {"type": "response.output_text.delta", **at, "delta": text},
            {"type": "response.output_text.done", **at, "text": text},
            {"type": "response.content_part.done", **at, "part": content},
        ]
    written.append({"type": "response.output_item.done", "output_index": 1, "item": message})
    return typed_events([*written, {"type": "response.completed", "response": done}])


@pytest.mark.parametrize(
    "texts", [["a"], ["a", "b"], ["a", "b", "c"], ["a\n\n", "é😀", "c", "d", "e"], ["", "b"]]
)
@pytest.mark.parametrize("place", ["reasoning_details", "thinking_blocks"])
@both_ways
def test_a_message_of_several_contents_returns_as_it_was_made(
    texts: list[str], place: Literal["reasoning_details", "thinking_blocks"], *, streams: bool
) -> None:
    body = message_of(texts, stream=streams)
    if streams:
        encoder = Transcoder("openai-responses", "openai-chat", envelope=True, signatures=place)
        given = encoder.feed(body) + encoder.close()
        deltas = [event["choices"][0]["delta"] for event in events(given)]
        content = "".join(delta.get("content") or "" for delta in deltas)
        answer = {"content": content, place: [one for d in deltas for one in d.get(place, [])]}
    else:
        message = fold(body, "openai-responses")
        encoded = encode_message(message, "openai-chat", envelope=True, signatures=place)
        answer = json.loads(encoded.body)["choices"][0]["message"]
    parsed = parse_request({"messages": [{"role": "assistant", **answer}]}, "openai-chat")
    assert [note["code"] for note in parsed.notes] == []
    config = dialect_of("openai-responses").config_class.model_validate({"model_id": "gpt-5"})
    rendered = dialect_of("openai-responses").render(list(parsed.messages), [], config)
    made = json.loads(message_of(texts, stream=False))["output"]
    assert json.loads(json.dumps(rendered.body["input"])) == made


@both_ways
def test_a_client_of_chat_sends_the_ids_of_a_message_back(*, streams: bool) -> None:
    texts = ["a", "b", "c"]

    def write(_: str, *, stream: bool) -> bytes:
        return message_of(texts, stream=stream)

    answer = Signed("contents", "openai-responses", write, ("ENC",), "gpt-5", ("gpt-5",), ())
    with servers(1) as (server,):
        chat = Chat("openai-chat", streams=streams)
        for _ in range(2):
            server.queue(recorded(answer, streams=streams))
            chat.ask(upstream(answer, server.url))
        made = json.loads(message_of(texts, stream=False))["output"]
        assert json.loads(sent(server))["input"][1:3] == made
