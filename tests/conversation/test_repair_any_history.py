"""Any history, however broken, can be sent after it was mended, and nothing that counts is lost."""

import json
import re
from collections import Counter
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from any_name import AnyName
from conversations import DIALECTS, MODELS, SIGNED
from deltafold import (
    FileRefPart,
    ImagePart,
    Message,
    MessagePart,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from deltafold.dialects import dialect_of
from deltafold.dialects.repairs.repair import check, repair
from strict_providers import refuse

State: TypeAlias = dict[str, object] | None

IDS = st.sampled_from(["", "a", "b", "an id that is/odd", "x" * 70])
NAMES = st.sampled_from(["", "f", "weather now!"])
SECRET = "own:"

TOKENS = st.integers(min_value=0, max_value=999).map(lambda number: f"<said {number}>")
TEXTS = st.one_of(st.sampled_from(["", " ", "\n"]), TOKENS, TOKENS.map(lambda said: f"{said} "))


def secret_state(dialect: str, model_id: str, *, is_own: bool) -> dict[str, object]:
    """Make the state that a decoder of the dialect leaves on reasoning."""
    data = json.loads(json.dumps(SIGNED.get(dialect, {"signature": "c2ln"})))
    text = json.dumps(data).replace("c2ln", SECRET if is_own else "foreign:")
    return {"dialect": dialect, "modelId": model_id, "data": json.loads(text)}


def states(dialect: str) -> st.SearchStrategy[dict[str, object] | None]:
    other = "gemini" if dialect != "gemini" else "anthropic-messages"
    own = secret_state(dialect, MODELS[dialect], is_own=True)
    return st.sampled_from(
        [
            None,
            own,
            own,
            secret_state(dialect, "another-model", is_own=False),
            secret_state(other, MODELS[other], is_own=False),
        ]
    )


def calls(dialect: str) -> st.SearchStrategy[ToolCallPart]:
    raw = st.sampled_from(["", "{}", '{"city": "Brest"}', "[1]", "nonsense", '{"ci'])
    return st.builds(
        make_call,
        call_id=IDS,
        name=NAMES,
        raw=raw,
        incomplete=st.booleans(),
        state=states(dialect) if dialect == "gemini" else st.none(),
    )


# Hypothesis would fill the aliases of a model's fields too, were it given the class.
def make_call(call_id: str, name: str, raw: str, state: State, *, incomplete: bool) -> ToolCallPart:
    return ToolCallPart(
        tool_call_id=call_id,
        tool_name=name,
        raw_args_text=raw,
        incomplete=incomplete,
        provider_state=state,
    )


def make_text(text: str) -> TextPart:
    return TextPart(text=text)


def make_thinking(text: str, state: State) -> ThinkingPart:
    return ThinkingPart(text=text, provider_state=state)


def make_result(call_id: str, content: Any, *, is_error: bool) -> ToolResultPart:  # noqa: ANN401 - three types
    return ToolResultPart(tool_call_id=call_id, content=content, is_error=is_error)


PART_OF_TEXT = st.builds(make_text, text=TEXTS)
MEDIA: st.SearchStrategy[ImagePart | FileRefPart] = st.sampled_from(
    [
        ImagePart(mime_type="image/png", data="iVBORw0="),
        ImagePart(mime_type="image/png", url="https://example.com/a.png"),
        FileRefPart(path="data:application/pdf;name=a.pdf;base64,JVBERi0="),
        FileRefPart(path="/home/somebody/a.pdf"),
    ]
)
BLOCKS = st.just(ProviderPart(dialect="gemini-interactions", block={"type": "x"}))
RESULTS = st.builds(
    make_result,
    call_id=IDS,
    content=st.one_of(
        TEXTS,
        st.fixed_dictionaries({"said": TOKENS}),
        st.lists(st.one_of(PART_OF_TEXT, MEDIA, BLOCKS), max_size=3),
    ),
    is_error=st.booleans(),
)


def parts(dialect: str) -> st.SearchStrategy[MessagePart]:
    thoughts = st.builds(make_thinking, text=TEXTS, state=states(dialect))
    called = calls(dialect)
    return st.one_of(
        PART_OF_TEXT, PART_OF_TEXT, called, called, RESULTS, RESULTS, thoughts, MEDIA, BLOCKS
    )


def unchecked(role: Role, held: list[MessagePart]) -> Message:
    """Make a history that the API cannot produce but a file may hold."""
    return Message.model_construct(role=role, parts=held)


def messages(dialect: str) -> st.SearchStrategy[list[Message]]:
    held = st.lists(parts(dialect), max_size=4)
    message = st.builds(unchecked, role=st.sampled_from(list(Role)), held=held)
    return st.lists(message, max_size=8)


def tokens(held: list[Message]) -> Counter[str]:
    return Counter(re.findall(r"<said \d+>", json.dumps([said(message) for message in held])))


def said(message: Message) -> list[Any]:
    """Return the content for other readers: texts and results, not reasoning."""
    return [
        part.model_dump(mode="json")
        for part in message.parts
        if isinstance(part, TextPart | ToolResultPart)
    ]


def answers(held: list[Message]) -> Counter[str]:
    """Count what results say that surely answer a call: the first one after a call of their id."""
    waiting: set[str] = set()
    found: Counter[str] = Counter()
    for message in held:
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                waiting.add(part.tool_call_id)
            elif isinstance(part, ToolResultPart) and part.tool_call_id in waiting:
                waiting.remove(part.tool_call_id)
                found.update(re.findall(r"<said \d+>", part.model_dump_json()))
    return found


@pytest.mark.one_in(5)
@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_history_can_be_sent_after_it_was_mended(dialect: AnyName, data: st.DataObject) -> None:
    broken = data.draw(messages(dialect))
    before = [message.to_json() for message in broken]
    mended, report = repair(broken, dialect, model_id=MODELS[dialect])
    assert [message.to_json() for message in broken] == before
    assert check(mended, dialect, model_id=MODELS[dialect]).codes == []
    again, _ = repair(mended, dialect, model_id=MODELS[dialect])
    assert all(a is b for a, b in zip(again, mended, strict=True))
    if report.is_clean:
        assert all(a is b for a, b in zip(mended, broken, strict=True))
    for message in mended:
        Message.model_validate(message.to_dict())
    assert not tokens(broken) - tokens(mended)
    assert not answers(broken) - answers(mended)
    config = dialect_of(dialect).config_class.model_validate({"model_id": MODELS[dialect]})
    body = json.loads(json.dumps(dialect_of(dialect).render(mended, [], config).body))
    refuse(dialect, body, secrets=SECRET)
    sent = Counter(re.findall(r"<said \d+>", json.dumps(body)))
    assert not tokens(broken) - sent


def test_a_system_message_whose_neighbour_is_not_sent_becomes_a_text_of_the_user() -> None:
    history = [
        Message.user("Draw it."),
        Message.system("Be brief."),
        unchecked(Role.ASSISTANT, [ImagePart(mime_type="image/png", data="iVBORw0=")]),
        Message.user("Thanks."),
    ]
    config = dialect_of("anthropic-messages").config_class.model_validate(
        {"model_id": MODELS["anthropic-messages"]}
    )
    rendered = dialect_of("anthropic-messages").render(history, [], config)
    refuse("anthropic-messages", rendered.body, secrets=SECRET)
    assert "system" not in rendered.body
    (message,) = json.loads(json.dumps(rendered.body))["messages"]
    marked = "<system>\nBe brief.\n</system>"
    assert [block["text"] for block in message["content"]] == ["Draw it.", marked, "Thanks."]
    assert "system_as_user" in [note["code"] for note in rendered.notes]
