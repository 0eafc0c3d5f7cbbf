"""Messages of the Messages API, read as blocks and written again.

In: the JSON of messages: a table of all blocks, generated lists of blocks, the recorded requests.
Out: the same JSON in its normal form (normal_form.py), which the official client's types accept.
"""

import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import anthropic.types as sdk
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from block_bodies import MIXED, PNG, Body
from corpus import CORPUS, needs_corpus
from deltafold import Message, Role, parse_request
from deltafold.blocks import (
    AssistantMessage,
    Block,
    DocumentBlock,
    ImageBlock,
    OtherBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    block_from_dict,
    messages_from_dict,
)
from normal_form import normal
from sdk_types import mismatches

MARK: Final = {"type": "ephemeral", "ttl": "1h"}
PDF: Final = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
AT: Final = {"type": "url", "url": "https://example.org/a.png"}
STORED: Final = {"type": "file", "file_id": "file_1"}
CITATION: Final = {
    "type": "char_location",
    "cited_text": "a",
    "document_index": 0,
    "document_title": None,
    "start_char_index": 0,
    "end_char_index": 1,
}
SEARCHED: Final = {
    "type": "search_result",
    "source": "https://example.org",
    "title": "a title",
    "content": [{"type": "text", "text": "found"}],
}
TEXT: Final = {"type": "text", "text": "日本語 and text"}

USERS: Final[dict[str, tuple[type, Body]]] = {
    "text": (TextBlock, TEXT),
    "image in base64": (ImageBlock, {"type": "image", "source": PNG}),
    "image at an address": (ImageBlock, {"type": "image", "source": AT}),
    "stored image": (ImageBlock, {"type": "image", "source": STORED}),
    "pdf": (DocumentBlock, {"type": "document", "source": PDF, "title": "a.pdf"}),
    "document at an address": (
        DocumentBlock,
        {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
    ),
    "stored document": (
        DocumentBlock,
        {"type": "document", "source": STORED, "citations": {"enabled": True}, "context": "c"},
    ),
    "text document": (
        DocumentBlock,
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a"}},
    ),
    "document of blocks": (
        DocumentBlock,
        {"type": "document", "source": {"type": "content", "content": [TEXT]}},
    ),
    "search result": (OtherBlock, SEARCHED),
    "result": (ToolResultBlock, {"type": "tool_result", "tool_use_id": "c", "content": "21 C"}),
    "failed result": (
        ToolResultBlock,
        {"type": "tool_result", "tool_use_id": "c", "content": "no", "is_error": True},
    ),
    "result of blocks": (
        ToolResultBlock,
        {
            "type": "tool_result",
            "tool_use_id": "c",
            "content": [
                {**TEXT, "cache_control": MARK},
                {"type": "image", "source": PNG},
                {"type": "document", "source": PDF},
                SEARCHED,
            ],
        },
    ),
    "empty result": (ToolResultBlock, {"type": "tool_result", "tool_use_id": "c"}),
}
ASSISTANTS: Final[dict[str, tuple[type, Body]]] = {
    "text": (TextBlock, TEXT),
    "cited text": (TextBlock, {**TEXT, "citations": [CITATION]}),
    "call": (ToolUseBlock, {"type": "tool_use", "id": "c", "name": "f", "input": {"a": [1, None]}}),
    "call without arguments": (
        ToolUseBlock,
        {"type": "tool_use", "id": "c", "name": "f", "input": {}},
    ),
    "thinking": (ThinkingBlock, {"type": "thinking", "thinking": "hm", "signature": "c2ln"}),
    "redacted thinking": (RedactedThinkingBlock, {"type": "redacted_thinking", "data": "ZGF0YQ=="}),
    "server tool": (
        OtherBlock,
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
    ),
}
UNMARKED: Final = {"thinking", "redacted thinking"}
"""Blocks that take no cache mark."""


def bodies() -> list[tuple[str, type, Body]]:
    """Return messages of one block each, without and with a cache mark."""
    found: list[tuple[str, type, Body]] = []
    for role, table in (("user", USERS), ("assistant", ASSISTANTS)):
        for name, (kind, block) in table.items():
            found.append((name, kind, {"role": role, "content": [block]}))
            if name not in UNMARKED:
                marked = {**block, "cache_control": MARK}
                found.append((f"marked {name}", kind, {"role": role, "content": [marked]}))
    return found


every_kind = pytest.mark.parametrize(
    ("kind", "body"),
    [(kind, body) for _, kind, body in bodies()],
    ids=[f"{body['role']}-{name}" for name, _, body in bodies()],
)
every_body = pytest.mark.parametrize(
    "body",
    [body for _, _, body in bodies()],
    ids=[f"{body['role']}-{name}" for name, _, body in bodies()],
)


def view_of(body: Mapping[str, object]) -> UserMessage | AssistantMessage:
    view = AssistantMessage if body.get("role") == "assistant" else UserMessage
    return view.from_dict(body)


def normal_messages(messages: Sequence[Body]) -> object:
    return normal("anthropic-messages", {"messages": json.loads(json.dumps(messages))})


def plain(block: Body) -> Body:
    """Write a block without the members that are defaults of the API."""
    return {name: value for name, value in block.items() if value not in ("", False)}


@every_kind
def test_a_block_is_read_into_its_class_and_written_again(kind: type, body: Body) -> None:
    view = view_of(body)
    (block,) = view.content
    assert type(block) is kind
    assert view.role == body["role"]
    assert plain(block.to_dict()) == plain(body["content"][0])
    assert normal_messages([view.to_api()]) == normal_messages([body])


@every_body
def test_the_official_client_accepts_the_message(body: Body) -> None:
    assert mismatches(sdk.MessageParam, body, "given") == []
    assert mismatches(sdk.MessageParam, view_of(body).to_api(), "written") == []


@every_body
def test_the_blocks_of_a_view_make_an_equal_message(body: Body) -> None:
    view = view_of(body)
    again = type(view).of(*view.content)
    assert [one.parts for one in again.messages] == [one.parts for one in view.messages]
    assert again.content == view.content
    assert type(view).of(*body["content"]).content == view.content


@every_body
def test_a_view_survives_its_json(body: Body) -> None:
    view = view_of(body)
    wire = json.loads(json.dumps(view.to_dict()))
    assert type(view).from_dict(wire) == view


@every_body
def test_the_message_below_is_the_one_of_the_parser(body: Body) -> None:
    (parsed,) = parse_request({"messages": [body]}, "anthropic-messages").messages
    (message,) = view_of(body).messages
    assert message.same_content(parsed)


@pytest.mark.parametrize("name", ASSISTANTS)
def test_blocks_of_the_sdk_are_read_as_their_json(name: str) -> None:
    block = ASSISTANTS[name][1]
    answer = sdk.Message.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [block],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    )
    given = {"role": answer.role, "content": answer.content}
    assert AssistantMessage.from_dict(given).to_api() == {"role": "assistant", "content": [block]}


def test_results_and_text_of_one_message_stand_for_several_messages_in_order() -> None:
    view = UserMessage.from_dict(MIXED)
    assert [message.role for message in view.messages] == [Role.TOOL, Role.USER]
    assert view.message is view.messages[0]
    assert (view.id, view.timestamp) == (view.message.id, view.message.timestamp)
    assert view.to_api() == MIXED
    assert UserMessage(*view.messages) == view
    assert UserMessage.from_dict(view.to_dict()) == view
    assert [block.type for block in view.content] == ["tool_result", "tool_result", "text", "image"]


def test_a_text_before_and_between_results_keeps_its_place() -> None:
    first, second, text, _ = MIXED["content"]
    given = {"role": "user", "content": [text, first, text, second]}
    view = UserMessage.from_dict(given)
    roles = [Role.USER, Role.TOOL, Role.USER, Role.TOOL]
    assert [message.role for message in view.messages] == roles
    assert view.to_api() == given


def test_two_results_of_one_call_are_two_messages() -> None:
    result = {"type": "tool_result", "tool_use_id": "a", "content": "1"}
    view = UserMessage.from_dict({"role": "user", "content": [result, result]})
    assert [message.role for message in view.messages] == [Role.TOOL, Role.TOOL]
    assert view.to_api()["content"] == [result, result]


def test_text_alone_is_a_text_block() -> None:
    for role in ("user", "assistant"):
        assert view_of({"role": role, "content": "Hello"}).content == [TextBlock(text="Hello")]
    assert UserMessage.from_dict({"role": "user", "content": []}).content == []


def test_unknown_blocks_sources_and_members_survive() -> None:
    body: Body = {
        "role": "user",
        "content": [
            {"type": "hologram", "frames": [1, None], "cache_control": MARK},
            {"type": "image", "source": {"type": "orbit", "satellite": 7}, "zoom": 2},
            {"type": "text", "text": "a", "mood": "calm"},
            {"type": "image", "source": {**AT, "region": "eu"}},
        ],
        "turn": 3,
    }
    view = UserMessage.from_dict(body)
    assert view.to_api() == body
    assert [block.to_dict() for block in view.content] == body["content"]
    assert UserMessage.from_dict(json.loads(json.dumps(view.to_dict()))).to_api() == body
    assert view.content[0].model_extra == {"frames": [1, None]}


def test_a_system_message_between_the_others_is_read_as_one() -> None:
    (message,) = messages_from_dict({"role": "system", "content": [TEXT]})
    assert message.role is Role.SYSTEM
    with pytest.raises(ValueError, match="shows user and tool messages, not system"):
        UserMessage.from_dict({"role": "system", "content": [TEXT]})


def test_types_describe_the_json_of_the_api() -> None:
    written: Literal["tool_use"] = ToolUseBlock(id="c", name="f", input={"a": 1}).type
    assert written == "tool_use"
    result = ToolResultBlock(
        tool_use_id="c", content=[TextBlock(text="a"), block_from_dict({"type": "x"})]
    )
    assert result.model_dump() == json.loads(result.model_dump_json()) == result.to_dict()
    assert result.to_dict() == {
        "type": "tool_result",
        "tool_use_id": "c",
        "content": [{"type": "text", "text": "a"}, {"type": "x"}],
    }


WRONG: Final[list[tuple[object, str]]] = [
    ({"role": "user", "content": [TEXT, {"text": "a"}]}, "content[1].type: Field required"),
    ({"role": "user", "content": [{"type": 7}]}, "content[0].type: "),
    ({"role": "user", "content": [TEXT, 5]}, "content[1]: Input should be an object (got int)"),
    ({"role": "user", "content": [{"type": "text"}]}, "content[0].text: Field required"),
    (
        {"role": "user", "content": [TEXT, TEXT, {"type": "image", "source": {**PNG, "data": 5}}]},
        "content[2].source.data: Input should be a valid string (got int)",
    ),
    (
        {"role": "user", "content": [{"type": "image", "source": "a.png"}]},
        "content[0].source: Input should be an object (got str)",
    ),
    ({"role": "user", "content": [{"type": "image"}]}, "content[0].source: Field required"),
    (
        {"role": "user", "content": [{"type": "image", "source": {"data": "a"}}]},
        "content[0].source.type: Field required",
    ),
    (
        {"role": "user", "content": [{"type": "document", "source": {**AT, "url": ""}}]},
        "content[0].source.url: String should have at least 1 character",
    ),
    (
        {"role": "user", "content": [{"type": "tool_result", "content": "a"}]},
        "content[0].tool_use_id: Field required",
    ),
    (
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c",
                    "content": [TEXT, {"type": "image", "source": {"type": "base64"}}],
                }
            ],
        },
        "content[0].content[1].source.media_type: Field required",
    ),
    (
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c", "is_error": "no"}],
        },
        "content[0].is_error: Input should be a valid boolean (got str)",
    ),
    (
        {"role": "user", "content": [{**TEXT, "cache_control": "ephemeral"}]},
        "content[0].cache_control: Input should be an object (got str)",
    ),
    (
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c", "name": "f", "input": "{}"}],
        },
        "content[0].input: Input should be an object (got str)",
    ),
    (
        {"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": {}}]},
        "content[0].id: Field required",
    ),
    (
        {"role": "assistant", "content": [{"type": "redacted_thinking"}]},
        "content[0].data: Field required",
    ),
    (
        {"role": "user", "content": [ASSISTANTS["call"][1]]},
        "content[0]: tool_use is a block of the assistant, not the user",
    ),
    (
        {"role": "assistant", "content": [TEXT, USERS["result"][1]]},
        "content[1]: tool_result is a block of the user, not the assistant",
    ),
    ({"role": "user", "content": 5}, "content: Input should be a valid list (got int)"),
    ({"role": "user"}, "content: Field required"),
    ({"role": "tool", "content": "a"}, "role: Input should be 'user', 'assistant' or 'system'"),
    ({"content": "a"}, "role: Field required"),
]


@pytest.mark.parametrize(("body", "told"), WRONG, ids=[told for _, told in WRONG])
def test_a_wrong_body_is_an_error_that_names_the_place(body: Body, told: str) -> None:
    with pytest.raises(ValueError, match=r"^\S+: ") as caught:
        view_of(body)
    assert told in str(caught.value)
    with pytest.raises(ValueError, match=r"^messages\[3\]\.") as caught:
        messages_from_dict(body, "messages[3]")
    assert f"messages[3].{told}" in str(caught.value)


# Generated lists of blocks.

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
marks = st.sampled_from([{}, {"cache_control": MARK}])
sources = st.sampled_from([PNG, AT, STORED])


def marked(block: Body, mark: Body) -> Body:
    return {**block, **mark}


def of(**members: Any) -> st.SearchStrategy[Body]:  # noqa: ANN401 - values and strategies
    fixed = {
        name: st.just(v) for name, v in members.items() if not isinstance(v, st.SearchStrategy)
    }
    return st.builds(marked, st.fixed_dictionaries({**members, **fixed}), marks)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
texts = of(type="text", text=words)
media = of(type="image", source=sources) | of(type="document", source=st.just(PDF))
others = of(type=st.sampled_from(["hologram", "container_upload"]), value=json_values)
results = of(
    type="tool_result",
    tool_use_id=st.sampled_from("abc"),
    content=words | st.lists(texts | media, max_size=3),
) | of(type="tool_result", tool_use_id="d", content=words, is_error=True)
calls = of(
    type="tool_use",
    id=st.sampled_from("abc"),
    name="f",
    input=st.dictionaries(words, json_values, max_size=3),
)
reasoning = st.fixed_dictionaries(
    {"type": st.just("thinking"), "thinking": words, "signature": words}
) | st.fixed_dictionaries({"type": st.just("redacted_thinking"), "data": words})


def message(role: str, content: list[Body]) -> Body:
    return {"role": role, "content": content}


said = st.lists(texts | media | results | others, max_size=6)
answered = st.lists(texts | calls | reasoning | others, max_size=6)
generated = st.builds(message, st.just("user"), said) | st.builds(
    message, st.just("assistant"), answered
)


@settings(max_examples=300, deadline=None)
@given(generated)
def test_any_list_of_blocks_is_written_as_it_was_read(body: Body) -> None:
    view = view_of(body)
    assert view.to_api() == body
    assert [block.to_dict() for block in view.content] == body["content"]
    assert type(view).from_dict(json.loads(json.dumps(view.to_dict()))) == view
    again = type(view).of(*view.content)
    assert [one.parts for one in again.messages] == [one.parts for one in view.messages]


# Recorded requests.


@needs_corpus
def test_the_recorded_requests_are_written_in_their_normal_form() -> None:
    with gzip.open(CORPUS / "requests.jsonl.gz") as lines:
        rows = [json.loads(line) for line in lines]
    rows = [row for row in rows if row["dialect"] == "anthropic-messages"]
    rows = [row for row in rows if row["status"] // 100 == 2]
    for row in rows:
        given_messages: list[Body] = row["body"]["messages"]
        written: list[Body] = []
        blocks: list[Block] = []
        for body in given_messages:
            if body["role"] == "system":
                written.append(body)
                continue
            view = view_of(body)
            blocks += view.content
            written.append(view.to_api())
            assert type(view).from_dict(json.loads(json.dumps(view.to_dict()))) == view
            again: list[Message] = list(type(view).of(*view.content).messages)
            assert [one.parts for one in again] == [one.parts for one in view.messages]
        assert normal_messages(written) == normal_messages(given_messages), row["id"]
    assert len(rows) > 400
