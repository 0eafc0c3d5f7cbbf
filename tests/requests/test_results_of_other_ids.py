"""Results whose ids are those of no call answer the calls before them, by name and in order.

Source: docs/protocols/gemini.md#call-ids, docs/requests.md.
"""

import json
from typing import Final, TypeAlias

import pytest

from any_name import AnyName
from deltafold import Message, Role, ToolCallPart, ToolResultPart, migrate_config, parse_request
from deltafold.conversation import ProblemCode, repair
from deltafold.dialects import dialect_of
from deltafold.dialects.repairs.repair import MISSING_RESULT

GEMINI: Final = "gemini"

Part: TypeAlias = dict[str, object]


def call(name: str, **members: object) -> Part:
    return {"functionCall": {"name": name, "args": {}, **members}}


def answer(name: str | None, said: str, **members: object) -> Part:
    named = {} if name is None else {"name": name}
    return {"functionResponse": {**named, "response": {"output": said}, **members}}


def contents(calls: list[Part], answers: list[Part]) -> list[Part]:
    return [
        {"role": "user", "parts": [{"text": "Tide?"}]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": answers},
    ]


CASES: Final[dict[str, tuple[list[Part], list[Part], list[str]]]] = {
    "ids of the client": (
        [call("f"), call("f")],
        [answer("f", "one", id="f-1"), answer("f", "two", id="f-2")],
        ["one", "two"],
    ),
    "by name, in another order": (
        [call("f"), call("g")],
        [answer("g", "two", id="x"), answer("f", "one", id="y")],
        ["one", "two"],
    ),
    "the id as the name": ([call("f")], [answer("call_1338bc52", "one")], ["one"]),
    "other names, in order": (
        [call("f"), call("g")],
        [answer("a", "one"), answer("b", "two")],
        ["one", "two"],
    ),
    "an id decides before a name": (
        [call("f", id="a"), call("f", id="b")],
        [answer("f", "two", id="b"), answer("f", "one", id="new")],
        ["one", "two"],
    ),
    "without a name": ([call("f")], [answer(None, "one")], ["one"]),
}


@pytest.mark.parametrize("target", [GEMINI, "anthropic-messages", "openai-chat"])
@pytest.mark.parametrize(("calls", "answers", "said"), CASES.values(), ids=CASES)
def test_a_response_of_gemini_answers_its_call(
    calls: list[Part],
    answers: list[Part],
    said: list[str],
    target: AnyName,
) -> None:
    given = {"contents": contents(calls, answers)}
    parsed = parse_request(given, GEMINI, model_id="gemini-2.5-flash")
    history, report = repair(parsed.messages, target)
    assert not report.codes
    results = {
        part.tool_call_id: part.content
        for message in history
        for part in message.parts
        if isinstance(part, ToolResultPart)
    }
    ids = [part.tool_call_id for part in history[1].parts if isinstance(part, ToolCallPart)]
    assert [results[call_id] for call_id in ids] == said
    config, _ = migrate_config(parsed, target, model_id="gemini-2.5-flash")
    body = dialect_of(target).render(history, parsed.tools, config).body
    rendered = json.dumps(body, sort_keys=True)
    assert MISSING_RESULT not in rendered
    if target == GEMINI:
        # They are sent as they came, in the order of the calls.
        for part in answers:
            sent = part if answers != CASES["without a name"][1] else answer("f", "one")
            members = sent["functionResponse"]
            assert json.dumps(members, sort_keys=True) in rendered


def test_results_that_are_more_than_the_calls_stay_apart() -> None:
    answers = [answer("a", "one"), answer("b", "two")]
    parsed = parse_request({"contents": contents([call("f")], answers)}, GEMINI, model_id="m")
    _, report = repair(parsed.messages, "openai-chat")
    assert ProblemCode.ORPHAN_CALL in report.codes
    assert report.codes.count(ProblemCode.ORPHAN_RESULT) == 2


def test_an_id_of_the_wrong_kind_is_an_error_or_none() -> None:
    answers = [answer("f", "one", id=["a"])]
    parsed = parse_request({"contents": contents([call("f")], answers)}, GEMINI, model_id="m")
    assert parsed.messages[-1].parts[0].kind == "tool_result"


# The same for every protocol, when a history is repaired.


def history(*results: Message, calls: int = 1) -> list[Message]:
    parts = [
        ToolCallPart(tool_call_id=f"c{number}", tool_name="f", raw_args_text="{}")
        for number in range(calls)
    ]
    return [Message.user("Tide?"), Message.assistant(*parts), *results]


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic-messages", "openai-responses"])
def test_results_with_lost_ids_answer_in_order(dialect: AnyName) -> None:
    results = [Message.tool_result("x", "one"), Message.tool_result("y", "two")]
    mended, report = repair(history(*results, calls=2), dialect)
    codes = [ProblemCode.ORPHAN_CALL, ProblemCode.ORPHAN_RESULT]
    assert report.codes == [code for code in codes for _ in range(2)]
    said = [
        (part.tool_call_id, part.content)
        for message in mended
        for part in message.parts
        if isinstance(part, ToolResultPart)
    ]
    assert said == [("c0", "one"), ("c1", "two")]
    assert repair(mended, dialect)[1].codes == []


def test_a_lost_id_beside_one_that_fits_answers_the_other_call() -> None:
    results = [Message.tool_result("c1", "two"), Message.tool_result("x", "one")]
    mended, _ = repair(history(*results, calls=2), "openai-chat")
    said = {
        part.tool_call_id: part.content
        for message in mended
        for part in message.parts
        if isinstance(part, ToolResultPart)
    }
    assert said == {"c0": "one", "c1": "two"}


@pytest.mark.parametrize(
    "results",
    [
        [Message.tool_result("c0", "one"), Message.tool_result("c0", "again")],
        [Message.tool_result("x", "one"), Message.tool_result("y", "two")],
        [Message.user("Never mind."), Message.tool_result("x", "one")],
    ],
    ids=["an id that was answered", "more results than calls", "behind another speaker"],
)
def test_other_results_without_a_call_stay_what_they_were(results: list[Message]) -> None:
    mended, report = repair(history(*results), "openai-chat")
    assert ProblemCode.ORPHAN_RESULT in report.codes
    assert any(message.role is Role.USER for message in mended[2:])
