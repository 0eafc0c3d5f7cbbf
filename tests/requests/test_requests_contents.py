"""Every kind of content of every protocol, at home and in every other dialect.

In: the smallest body that holds a content (wire_contents.py).  Out: the content is in the rendered
body or in a note, and the official client's types accept the body.
"""

import copy
import json
from itertools import pairwise
from random import Random
from typing import Any, cast

import pytest

from any_name import AnyName
from content_losses import faults, silent_losses
from content_walker import Walk
from conversations import MODELS
from deltafold import Rendered, migrate_config, parse_request
from deltafold.dialects import DIALECTS, dialect_of
from normal_form import normal
from wire_contents import Row, rows

ROWS = list(rows())

LISTS = {"gemini": "contents", "openai-responses": "input"}

every_row = pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row.dialect}-{row.place}-{row.kind}"
)


@every_row
def test_a_content_is_sent_or_noted_in_every_other_dialect(row: Row) -> None:
    request, source = parse_request(row.body, row.dialect), Walk(row.dialect, row.body)
    others = [name for name in DIALECTS if name != row.dialect]
    found = {target: faults(request, source, target) for target in others}
    assert not any(found.values()), found


@every_row
def test_a_content_is_an_empty_message_in_no_other_dialect(row: Row) -> None:
    request = parse_request(row.body, row.dialect)
    for target in DIALECTS:
        if target == row.dialect or row.kind == "empty":
            continue
        config = dialect_of(target).config_class.model_validate({"model_id": MODELS[target]})
        body: Any = dialect_of(target).render(request.messages, request.tools, config).body
        for message in body[LISTS.get(target, "messages")]:
            if message.get("role") in {"user", "system", "developer"}:
                assert message.get("content") or message.get("parts") or message.get("images")


@every_row
def test_a_content_is_sent_home_as_it_was(row: Row) -> None:
    request = parse_request(row.body, row.dialect, model_id="m")
    home = dialect_of(row.dialect)
    config = home.config_class.model_validate({"model_id": "m", **request.config})
    rendered = home.render(request.messages, request.tools, config, stream=bool(request.stream))
    given, again = (json.loads(json.dumps(body)) for body in (row.body, rendered.body))
    assert normal(row.dialect, again) == normal(row.dialect, given) or rendered.notes


@every_row
def test_the_comparison_sees_each_content_that_is_missing(row: Row) -> None:
    source = Walk(row.dialect, row.body)
    assert not silent_losses(source, Walk(row.dialect, row.body), Rendered({}))
    for position in range(len(source.contents)):
        damaged = Walk(row.dialect, row.body)
        del damaged.contents[position]
        if not is_blank(source.contents[position]):
            assert silent_losses(source, damaged, Rendered({})), source.contents[position]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dialect", DIALECTS)
def test_contents_in_one_conversation_are_sent_or_noted_together(
    dialect: AnyName, seed: int
) -> None:
    random = Random(seed)  # noqa: S311 - a reproducible choice
    name = LISTS.get(dialect, "messages")
    chosen = random.sample([row.body for row in ROWS if row.dialect == dialect], 6)
    spoken = [message for body in chosen for message in body[name]]
    whole: dict[str, Any] = {}
    for body in chosen:
        whole |= body
    whole[name] = copy.deepcopy(spoken)
    request, source = parse_request(whole, dialect), Walk(dialect, whole)
    others = [other for other in DIALECTS if other != dialect]
    found = {target: faults(request, source, target) for target in others}
    assert not any(found.values()), (json.dumps(whole), found)


def is_blank(content: Any) -> bool:  # noqa: ANN401 - any content
    return getattr(content, "text", "said") == ""


FILE = {"type": "container_upload", "file_id": "file_1"}
UPLOAD = {"role": "user", "content": [FILE]}
REFERENCE = {"type": "item_reference", "id": "msg_1"}
APPROVAL = {"type": "mcp_approval_response", "approval_request_id": "r", "approve": True}
ANSWER, GO = {"role": "assistant", "content": "Okay."}, {"role": "user", "content": "Go."}
RULES = {"role": "system", "content": "Be brief."}

Said = list[dict[str, Any]]
NEEDED: dict[str, tuple[str, Said]] = {
    "first": ("anthropic-messages", [UPLOAD, ANSWER, GO]),
    "alone": ("anthropic-messages", [UPLOAD]),
    "two parts": (
        "anthropic-messages",
        [{"role": "user", "content": [FILE, FILE]}, ANSWER, GO],
    ),
    "between": ("anthropic-messages", [GO, ANSWER, UPLOAD, ANSWER, GO]),
    "behind the last answer": ("anthropic-messages", [GO, ANSWER, UPLOAD]),
    "two in a row": ("anthropic-messages", [UPLOAD, UPLOAD, ANSWER, GO]),
    "alone in the input": ("openai-responses", [REFERENCE]),
    "behind rules": ("openai-responses", [RULES, REFERENCE]),
    "between answers": ("openai-responses", [GO, ANSWER, APPROVAL, ANSWER, GO]),
}
LEFT_OUT: dict[str, tuple[str, Said]] = {
    "before a question": ("anthropic-messages", [UPLOAD, GO]),
    "behind a question": ("anthropic-messages", [GO, UPLOAD, ANSWER, GO]),
    "between a question and an item": ("openai-responses", [REFERENCE, GO]),
}


def sent(dialect: AnyName, said: Said, target: str) -> tuple[list[Any], list[str]]:
    """Return the messages of a request in another dialect, and the codes of its notes."""
    name = LISTS.get(dialect, "messages")
    request = parse_request({"model": "m", "max_tokens": 9, name: said}, dialect)
    config = dialect_of(target).config_class.model_validate({"model_id": MODELS[target]})
    made = dialect_of(target).render(request.messages, request.tools, config)
    body: Any = json.loads(json.dumps(made.body))
    return body[LISTS.get(target, "messages")], [str(note["code"]) for note in made.notes]


@pytest.mark.parametrize("target", DIALECTS)
@pytest.mark.parametrize("case", NEEDED)
def test_a_text_stands_for_a_turn_of_the_user_that_the_request_needs(
    case: str, target: str
) -> None:
    dialect, said = NEEDED[case]
    if target == dialect:
        return
    messages, notes = sent(dialect, said, target)
    roles = [message["role"] for message in messages if message["role"] != "system"]
    assert roles
    assert roles[0] == "user"
    answers = [role in {"assistant", "model"} for role in roles]
    assert not any(both == (True, True) for both in pairwise(answers))
    kinds = ("container_upload", "item_reference", "mcp_approval_response")
    assert any(f"[{kind} left out" in json.dumps(messages) for kind in kinds)
    assert "part_replaced" in notes
    assert "turn_added" not in notes


@pytest.mark.parametrize("case", LEFT_OUT)
def test_a_turn_of_the_user_that_the_request_does_not_need_is_left_out(case: str) -> None:
    dialect, said = LEFT_OUT[case]
    messages, notes = sent(dialect, said, "openai-chat")
    assert messages == [one for one in said if one in (ANSWER, GO)]
    assert notes == ["part_dropped"]


def test_a_part_that_a_text_stands_for_has_one_note() -> None:
    messages, notes = sent("anthropic-messages", [UPLOAD, ANSWER, GO], "openai-chat")
    text = "[container_upload left out: it cannot be sent here]"
    assert messages == [{"role": "user", "content": text}, ANSWER, GO]
    assert notes == ["part_replaced"]


def test_an_empty_text_gives_its_cache_mark_to_the_block_before_it() -> None:
    # Anthropic: "cache_control cannot be set for empty text blocks".
    mark = {"type": "ephemeral"}
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    empty = {"type": "text", "text": "", "cache_control": mark}
    result = {"type": "tool_result", "tool_use_id": "c", "content": [image, empty]}
    call: dict[str, object] = {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}
    body: dict[str, object] = {
        "model": "claude-opus-4-8",
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": [image, empty]},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ],
    }
    parsed = parse_request(body, "anthropic-messages")
    config, _ = migrate_config(parsed, "anthropic-messages", model_id="claude-opus-4-8")
    dialect = dialect_of("anthropic-messages")
    rendered = dialect.render(parsed.messages, parsed.tools, config)
    marked = {**image, "cache_control": mark}
    sent = cast("list[dict[str, Any]]", rendered.body["messages"])
    assert sent[0]["content"] == [marked]
    assert sent[2]["content"][0]["content"] == [marked]
    assert [note["code"] for note in rendered.notes].count("cache_mark_moved") == 2


def home(body: dict[str, Any], dialect: AnyName) -> tuple[Any, list[str]]:
    """Return the body that a request becomes in its own dialect, and the codes of the notes."""
    parsed = parse_request(body, dialect)
    config, _ = migrate_config(parsed, dialect, model_id=str(body["model"]))
    stream = bool(parsed.stream)
    rendered = dialect_of(dialect).render(parsed.messages, parsed.tools, config, stream=stream)
    return rendered.body, [str(note["code"]) for note in rendered.notes]


MARK = {"type": "ephemeral"}
BLANK = {"type": "text", "text": " \n", "cache_control": MARK}
HELLO = {"type": "text", "text": "Hello"}


@pytest.mark.parametrize(
    ("said", "before", "after"),
    [
        ([BLANK, HELLO], {**HELLO, "cache_control": MARK}, [HELLO]),
        ([BLANK, BLANK, HELLO], {**HELLO, "cache_control": MARK}, [HELLO]),
        # The only text of a message stays; nothing else is said there.
        ([BLANK], {**HELLO, "cache_control": MARK}, [{"type": "text", "text": " \n"}]),
        ([HELLO, BLANK], HELLO, [{**HELLO, "cache_control": MARK}]),
    ],
)
def test_an_empty_text_gives_its_cache_mark_to_the_message_before_it(
    said: list[object], before: object, after: list[object]
) -> None:
    turns: list[object] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [HELLO]},
        {"role": "user", "content": said},
    ]
    body, codes = home(
        {"model": "claude-opus-4-8", "max_tokens": 9, "messages": turns}, "anthropic-messages"
    )
    assert body["messages"][1]["content"] == [before]
    assert body["messages"][2]["content"] == after
    assert codes == ["cache_mark_moved"] * said.count(BLANK)


def test_an_empty_text_that_begins_a_result_gives_its_cache_mark_to_the_result() -> None:
    result = {"type": "tool_result", "tool_use_id": "c", "content": [BLANK, HELLO]}
    turns: list[object] = [
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}],
        },
        {"role": "user", "content": [result]},
    ]
    body, codes = home(
        {"model": "claude-opus-4-8", "max_tokens": 9, "messages": turns}, "anthropic-messages"
    )
    [sent] = body["messages"][2]["content"]
    assert (sent["content"], sent["cache_control"]) == ([HELLO], MARK)
    assert codes == ["cache_mark_moved"]


PIXEL = {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}
CHUNKS = {
    "type": "document",
    "source": {
        "type": "content",
        "content": [{"type": "text", "text": "Chunk"}, {"type": "image", "source": PIXEL}],
    },
    "title": "X",
}


@pytest.mark.parametrize("is_of_result", [False, True])
def test_an_image_in_the_content_of_a_document_reaches_every_dialect(*, is_of_result: bool) -> None:
    said: list[Any] = [{"role": "user", "content": [CHUNKS, HELLO]}]
    if is_of_result:
        use: dict[str, Any] = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
        result = {"type": "tool_result", "tool_use_id": "c", "content": [CHUNKS, HELLO]}
        said = [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ]
    body = {"model": "claude-opus-4-8", "max_tokens": 9, "messages": said}
    again, codes = home(body, "anthropic-messages")
    assert codes == []
    assert normal("anthropic-messages", again) == normal("anthropic-messages", body)
    parsed = parse_request(body, "anthropic-messages")
    for target in DIALECTS:
        if target == "anthropic-messages":
            continue
        config = dialect_of(target).config_class.model_validate({"model_id": MODELS[target]})
        rendered = dialect_of(target).render(parsed.messages, [], config)
        text = json.dumps(rendered.body, default=repr)
        assert "Chunk" in text
        assert "aGVsbG8=" in text or any("image" in str(note) for note in rendered.notes), target


def test_the_type_of_a_call_goes_back_to_ollama() -> None:
    function = {"name": "f", "arguments": {"a": 1}}
    for call in ({"id": "c", "type": "function", "function": function}, {"function": function}):
        said: list[object] = [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "1", "tool_name": "f"},
        ]
        body = {"model": "qwen3", "messages": said}
        again, codes = home(body, "ollama")
        assert again["messages"][1]["tool_calls"] == [call]
        assert codes == []
        parsed = parse_request(body, "ollama")
        config = dialect_of("openai-chat").config_class.model_validate({"model_id": "m"})
        assert not dialect_of("openai-chat").render(parsed.messages, [], config).notes


@pytest.mark.parametrize(
    ("model_id", "is_kept"),
    [
        ("deepseek/deepseek-chat-v3.1", True),
        ("qwen/qwen3-max", True),
        ("openai/gpt-5.2", False),
        ("gpt-5.2", False),
    ],
)
def test_the_length_of_a_call_id_is_limited_at_openai_alone(
    model_id: str, *, is_kept: bool
) -> None:
    long = "call_" + "0123456789" * 5
    function = {"name": "f", "arguments": "{}"}
    call = {"id": long, "type": "function", "function": function}
    said: list[object] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": long, "content": "1"},
    ]
    body, _ = home({"model": model_id, "messages": said}, "openai-chat")
    ids = {body["messages"][1]["tool_calls"][0]["id"], body["messages"][2]["tool_call_id"]}
    assert len(ids) == 1
    assert (ids == {long}) is is_kept
    assert all(is_kept or len(one) <= 40 for one in ids)
