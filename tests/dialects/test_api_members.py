"""Members of an API that are no secrets of a model: they go back to every model of the dialect.

Namespaces, callers, phases, toolsets, and the token of an answer that paused.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, cast

import pytest

import deltafold
from any_name import AnyName
from corpus import FIXTURES
from deltafold import (
    Agent,
    AnthropicConfig,
    GeminiConfig,
    GeminiModel,
    Message,
    OpenAIChatConfig,
    OpenAIResponsesConfig,
    OpenAIResponsesModel,
    TextPart,
    ToolCallPart,
    parse_request,
    transcode,
)
from deltafold.dialects import dialect_of
from deltafold.testing import Recording, ReplayServer

RESPONSES: Final = "openai-responses"
MODELS = ["gpt-5.5", "gpt-5.5-2026-01-01", "another-model"]

Body = dict[str, Any]


def wire(case: str) -> bytes:
    (path,) = (FIXTURES / case).glob("wire.*")
    return path.read_bytes()


def message_of(case: str) -> Message:
    return deltafold.fold(wire(case), cast("Any", case.partition("/")[0]))


def next_request(message: Message, model_id: str, *, tools: Any = (), **settings: Any) -> Body:  # noqa: ANN401
    """Return the request that follows a message of Responses, its calls answered."""
    results = [Message.tool_result(call.tool_call_id, "ok") for call in message.tool_calls]
    history = [Message.user("Go"), message, *results]
    config = OpenAIResponsesConfig(model_id=model_id, **settings)
    return dialect_of(RESPONSES).render(history, list(tools), config).body


def items(body: Body, kind: str) -> list[Body]:
    return [item for item in body["input"] if item.get("type") == kind]


def outputs(body: bytes) -> list[Body]:
    """Return the items of the last event of a Responses stream, or of a whole body."""
    if body.startswith(b"{"):
        return cast("list[Body]", json.loads(body)["output"])
    lines = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: ")]
    return cast("list[Body]", json.loads(lines[-1])["response"]["output"])


NAMES = [("find", "crm"), ("find", "erp"), ("find", None)]


@pytest.mark.parametrize("model_id", MODELS)
def test_calls_of_one_name_in_two_namespaces_stay_apart_and_go_back(model_id: str) -> None:
    message = message_of("openai-responses/namespaces-of-one-name")
    assert [call.tool_name for call in message.tool_calls] == ["crm__find", "erp__find", "find"]
    assert len(message.runnable_tool_calls) == 3
    sent = items(next_request(message, model_id), "function_call")
    assert [(item["name"], item.get("namespace")) for item in sent] == NAMES


def test_a_namespace_of_its_own_name_goes_back() -> None:
    message = message_of("openai-responses/namespace-of-its-own-name")
    assert message.tool_calls[0].tool_name == "weather"
    item = items(next_request(message, "another-model"), "function_call")[0]
    assert (item["name"], item["namespace"]) == ("weather", "weather")


def test_a_call_that_was_renamed_keeps_no_namespace() -> None:
    message = message_of("openai-responses/namespaces-of-one-name")
    call = message.tool_calls[0].model_copy(update={"tool_name": "search"})
    item = items(next_request(Message.assistant(call), "gpt-5.5"), "function_call")[0]
    assert (item["name"], "namespace" in item) == ("search", False)


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_the_own_protocol_writes_the_namespace_and_the_members_of_a_call(size: int) -> None:
    body = wire("openai-responses/namespaces-of-one-name")
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    whole = outputs(transcode(body, RESPONSES, RESPONSES))
    assert [(item["name"], item.get("namespace")) for item in whole] == NAMES
    transcoder = deltafold.Transcoder(RESPONSES, RESPONSES)
    written = b"".join([*(transcoder.feed(chunk) for chunk in chunks), transcoder.close()])
    assert outputs(written) == whole
    _, call = outputs(transcode(wire("openai-responses/call-members"), RESPONSES, RESPONSES))
    assert (call["namespace"], call["name"], call["id"]) == ("erp", "find", "fc_1")
    assert (call["caller"], call["async"]) == ({"type": "program", "caller_id": "cp_1"}, True)


@pytest.mark.parametrize("case", ["namespaces-of-one-name", "namespace-whole-body"])
def test_a_whole_body_of_the_own_protocol_has_them_too(case: str) -> None:
    message = message_of(f"openai-responses/{case}")
    written = outputs(deltafold.encode_message(message, RESPONSES).body)
    sent = outputs(wire(f"openai-responses/{case}"))
    for name in ("name", "namespace", "caller"):
        assert [item.get(name) for item in written] == [item.get(name) for item in sent], name


@pytest.mark.parametrize("target", ["openai-chat", "anthropic-messages", "gemini", "ollama"])
def test_other_protocols_get_the_declared_name(target: AnyName) -> None:
    written = transcode(wire("openai-responses/namespaces-of-one-name"), RESPONSES, target)
    names = [call.tool_name for call in deltafold.fold(written, target).tool_calls]
    assert names == ["crm__find", "erp__find", "find"]


def test_the_declaration_of_a_client_names_the_call_before_its_state_does() -> None:
    tools: Any = {"crm__find": {"namespace": "sales", "name": "look"}}
    body = wire("openai-responses/namespaces-of-one-name")
    call = outputs(transcode(body, RESPONSES, RESPONSES, tools=tools))[0]
    assert (call["name"], call["namespace"]) == ("look", "sales")


@pytest.mark.parametrize(
    ("case", "name"),
    [
        ("custom-tool-in-namespace", "edit__apply"),
        ("custom-tool-by-tool-search", "edit__apply"),
        ("custom-tool-of-the-input", "apply"),
    ],
)
def test_custom_tools_of_the_caller_are_calls(case: str, name: str) -> None:
    message = message_of(f"openai-responses/{case}")
    (call,) = message.runnable_tool_calls
    assert (call.tool_name, call.arguments) == (name, {"input": "some text"})
    assert message.meta.finish_reason == "tool_calls"
    (item,) = items(next_request(message, "another-model"), "custom_tool_call")
    assert (item["name"], item["input"]) == ("apply", "some text")


def test_a_history_that_is_parsed_has_the_names_of_a_decoded_one() -> None:
    message = message_of("openai-responses/namespaces-of-one-name")
    body = next_request(message, "gpt-5.5")
    parsed = parse_request(body, RESPONSES)
    calls = [call for one in parsed.messages for call in one.tool_calls]
    assert [call.tool_name for call in calls] == [call.tool_name for call in message.tool_calls]
    for model_id in MODELS:
        config = OpenAIResponsesConfig(model_id=model_id)
        again = dialect_of(RESPONSES).render(parsed.messages, [], config).body
        sent = items(again, "function_call")
        assert [(item["name"], item.get("namespace")) for item in sent] == NAMES


def test_an_agent_runs_the_tool_that_the_namespace_names() -> None:
    ran: list[str] = []

    def crm__find(q: str) -> str:
        """Find a customer."""
        ran.append(f"crm {q}")
        return "a customer"

    def erp__find(q: str) -> str:
        """Find an order."""
        ran.append(f"erp {q}")
        return "an order"

    def find(q: str) -> str:
        """Find anything."""
        ran.append(f"any {q}")
        return "a thing"

    done = b'data: {"type":"response.completed","response":{"id":"r","model":"gpt-5.5","status":"completed","output":[{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"Found."}]}]}}\n\n'  # noqa: E501
    with ReplayServer() as server:
        server.queue(
            Recording.of_events(wire("openai-responses/namespaces-of-one-name")),
            Recording.of_events(done),
        )
        model = OpenAIResponsesModel({"model_id": "gpt-5.5"}, base_url=server.url, api_key="k")
        result = Agent(tools=[crm__find, erp__find, find], model=model).run_sync("Find a.")
        sent = items(cast("Body", server.requests[1].json()), "function_call")
    assert (result.text, sorted(ran)) == ("Found.", ["any a", "crm a", "erp a"])
    assert [(item["name"], item.get("namespace")) for item in sent] == NAMES


@pytest.mark.parametrize("model_id", ["gpt-5.6-sol", "gpt-5.6"])
@pytest.mark.parametrize("settings", [{}, {"store": False}])
def test_a_caller_goes_back_with_the_call_and_its_result(
    model_id: str, settings: Mapping[str, Any]
) -> None:
    program = {"type": "program", "caller_id": "cp_1"}
    body = next_request(message_of("openai-responses/call-members"), model_id, **settings)
    (call,) = items(body, "function_call")
    (result,) = items(body, "function_call_output")
    assert (call["caller"], call["async"], result["caller"]) == (program, True, program)
    assert items(body, "program")[0]["call_id"] == "cp_1"


def test_a_direct_caller_is_the_default_of_a_result() -> None:
    body = next_request(message_of("openai-responses/namespace"), "another-model")
    assert items(body, "function_call")[0]["caller"] == {"type": "direct"}
    assert "caller" not in items(body, "function_call_output")[0]


def test_a_call_that_broke_off_goes_back_without_its_id() -> None:
    message = message_of("openai-responses/call-members")
    call = message.tool_calls[0]
    state = cast("Body", call.provider_state)
    begun = {**state, "data": {**state["data"], "status": "in_progress"}}
    cut = call.model_copy(update={"incomplete": True, "provider_state": begun})
    item = items(next_request(Message.assistant(cut), "gpt-5.5"), "function_call")[0]
    assert item["namespace"] == "erp"
    assert item.keys().isdisjoint({"id", "status"})


def said(phase: str | None, model_id: str | None, *texts: str) -> Message:
    """Return an answer of Responses whose first content has the state of the item."""
    data = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    state: Body = {"dialect": RESPONSES, "data": data | ({} if phase is None else {"phase": phase})}
    state |= {} if model_id is None else {"modelId": model_id}
    first, *others = texts
    parts = [TextPart(text=first, provider_state=state), *(TextPart(text=text) for text in others)]
    return Message.assistant(*parts)


def test_a_phase_goes_back_to_every_model() -> None:
    history = [
        Message.user("Go"),
        said("commentary", "gpt-5.4", "Looking."),
        Message.user("And?"),
        said("final_answer", "gpt-5.4", "Done.", "All."),
        Message.user("And?"),
        said(None, "gpt-5.4", "Bye."),
    ]
    for model_id in ("gpt-5.4", "gpt-5.6"):
        config = OpenAIResponsesConfig(model_id=model_id)
        body = dialect_of(RESPONSES).render(history, [], config).body
        answers = [item for item in cast("list[Body]", body["input"]) if "phase" in item]
        expected = ["commentary", "final_answer", "final_answer"]
        # Two contents of one item stay one for its own model.
        assert [item["phase"] for item in answers] == expected[: 2 if model_id == "gpt-5.4" else 3]


def test_a_toolset_comes_back_in_its_own_protocol() -> None:
    body = wire("anthropic-messages/toolset")
    written = transcode(body, "anthropic-messages", "anthropic-messages")
    again = deltafold.fold(written, "anthropic-messages")
    state = cast("Body", deltafold.fold(body, "anthropic-messages").tool_calls[0].provider_state)
    assert cast("Body", again.tool_calls[0].provider_state)["data"] == state["data"]
    assert state["data"]["toolset_name"] == "browser"


def test_a_toolset_of_a_parsed_history_goes_to_every_model() -> None:
    of_both: Body = {"toolset_name": "browser"}
    use: Body = {"type": "tool_use", "id": "t", "name": "navigate", "input": {}}
    result: Body = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
    messages: list[Body] = [
        {"role": "user", "content": [{"type": "text", "text": "Go"}]},
        {"role": "assistant", "content": [use | of_both]},
        {"role": "user", "content": [result | of_both]},
    ]
    body = {"model": "claude-a", "max_tokens": 9, "messages": messages}
    parsed = parse_request(body, "anthropic-messages")
    for model_id in ("claude-a", "claude-b"):
        config = AnthropicConfig(model_id=model_id, max_tokens=9)
        again = dialect_of("anthropic-messages").render(parsed.messages, [], config).body
        assert again["messages"] == messages


PAUSED = [
    "gemini/continuation-token",
    "gemini/continuation-token-behind-a-signature",
    "gemini/continuation-token-whole-body",
]


@pytest.mark.parametrize("case", PAUSED)
@pytest.mark.parametrize("model_id", ["gemini-3.8-flash", "another-model"])
def test_a_paused_answer_goes_on_by_its_token(case: str, model_id: str) -> None:
    message = message_of(case)
    assert message.meta.finish_reason == "pause"
    config = GeminiConfig(model_id=model_id)
    question = [Message.system("Be short."), Message.user("Tell me.")]
    render = dialect_of("gemini").render
    asked = render(question, [], config).body
    for pieces in ([message], [message, message]):
        body = render([*question, *pieces], [], config).body
        assert body == asked | {"continuationToken": "VE9LRU4="}


def test_the_pieces_of_an_answer_are_history_once_it_is_whole() -> None:
    paused = message_of("gemini/continuation-token")
    history = [Message.user("Go"), paused, Message.assistant(" to the end."), Message.user("And?")]
    body = dialect_of("gemini").render(history, [], GeminiConfig(model_id="gemini-3.8-flash")).body
    assert "continuationToken" not in body
    contents = cast("list[Body]", body["contents"])
    assert contents[1] == {
        "role": "model",
        "parts": [{"text": "part one goes on"}, {"text": " to the end."}],
    }


def test_a_paused_answer_with_a_call_goes_on_by_its_result() -> None:
    text = message_of("gemini/continuation-token").parts[0]
    call = ToolCallPart(tool_call_id="a", tool_name="f", raw_args_text="{}")
    history = [Message.user("Go"), Message.assistant(call, text), Message.tool_result("a", "ok")]
    body = dialect_of("gemini").render(history, [], GeminiConfig(model_id="gemini-3.8-flash")).body
    assert "continuationToken" not in body
    assert len(cast("list[Body]", body["contents"])) == 3


@pytest.mark.parametrize("case", PAUSED)
def test_a_client_of_gemini_gets_the_token(case: str) -> None:
    message = message_of(case)
    for written in (
        transcode(wire(case), "gemini", "gemini"),
        deltafold.encode_message(message, "gemini").body,
    ):
        again = deltafold.fold(written, "gemini")
        assert again.meta.raw_finish_reason == "CONTINUATION"
        states = [part.provider_state for part in again.parts]
        assert states == [part.provider_state for part in message.parts]


def test_a_client_of_gemini_goes_on_with_the_token() -> None:
    contents = [{"role": "user", "parts": [{"text": "Go"}]}]
    body = {"contents": contents, "continuationToken": "VE9LRU4="}
    parsed = parse_request(body, "gemini", model_id="gemini-3.8-flash")
    config = GeminiConfig.model_validate({"model_id": "gemini-3.8-flash", **parsed.config})
    assert dialect_of("gemini").render(parsed.messages, [], config).body == body


def test_other_protocols_get_no_word_of_a_pause_that_their_clients_would_follow() -> None:
    pause = message_of("openai-responses/approval")
    written = deltafold.fold(deltafold.encode_message(pause, "gemini").body, "gemini")
    assert written.meta.raw_finish_reason == "OTHER"


def test_an_agent_goes_on_with_the_token() -> None:
    rest = b'data: {"candidates":[{"content":{"role":"model","parts":[{"text":" to the end."}]},"finishReason":"STOP","index":0}],"modelVersion":"gemini-3.8-flash","responseId":"r2"}\n\n'  # noqa: E501
    paused = wire("gemini/continuation-token")
    with ReplayServer() as server:
        server.queue(*(Recording.of_events(body) for body in (paused, paused, rest)))
        model = GeminiModel({"model_id": "gemini-3.8-flash"}, base_url=server.url, api_key="k")
        result = Agent(model=model).run_sync("Tell me.")
        first, *others = [cast("Body", request.json()) for request in server.requests]
    assert (result.text, result.turns) == (" to the end.", 3)
    assert others == [first | {"continuationToken": "VE9LRU4="}] * 2


@pytest.mark.parametrize(
    "case",
    [
        "requires-continuation",
        "requires-continuation-in-update",
        "requires-continuation-whole-body",
    ],
)
def test_an_interaction_that_paused_keeps_its_token(case: str) -> None:
    message = message_of(f"gemini-interactions/{case}")
    assert message.meta.finish_reason == "pause"
    state = cast("Body", message.parts[-1].provider_state)
    assert state["data"] == {"continuation_token": "VE9LRU4="}
    # It is no content for any other protocol.
    config = OpenAIChatConfig(model_id="m")
    body = dialect_of("openai-chat").render([Message.user("Go"), message], [], config).body
    assert cast("list[Body]", body["messages"])[1] == {"role": "assistant", "content": "part one"}
