"""`check` and `repair` of histories that a provider would refuse, and of good ones.

In: the histories of bad_histories.py, for each dialect.  Out: the codes of their problems, and the
repaired history, which a strict provider (strict_providers.py) accepts.

Law: a history without a problem stays the same objects.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from any_name import AnyName
from bad_histories import BAD, GOOD, MODELS, Bad
from conversations import DIALECTS, call, thought
from deltafold import (
    AnthropicModel,
    FileRefPart,
    FinishReason,
    ImagePart,
    Message,
    MessagePart,
    Meta,
    MisuseError,
    NoteCode,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    parse_request,
)
from deltafold.dialects import dialect_of
from deltafold.dialects.acceptance import user_must_end
from deltafold.dialects.repairs.pieces import ends_with_answer
from deltafold.dialects.repairs.problems import REFUSED_BY, HistoryError, ProblemCode
from deltafold.dialects.repairs.repair import MISSING_STATUS, RepairPolicy, check, repair
from deltafold.testing import ReplayServer, answer
from lines import lines_of
from strict_providers import refuse

every_dialect = pytest.mark.parametrize("dialect", DIALECTS)
every_bad = pytest.mark.parametrize("history", BAD, ids=lambda history: history.name)

REFUSED_AS_IT_STANDS = {
    ProblemCode.ORPHAN_CALL,
    ProblemCode.ORPHAN_RESULT,
    ProblemCode.LOCAL_FILE,
    ProblemCode.LONE_REASONING,
    ProblemCode.UNPAIRED_SERVER_TOOL,
}
"""Problems that rendering does not repair.

Rendering loses a part with each other problem, or the body is accepted by chance.
"""


def send(messages: Sequence[Message], dialect: str) -> None:
    """Render the messages and check the body as a strict provider does."""
    config = dialect_of(dialect).config_class.model_validate({"model_id": MODELS[dialect]})
    body = dialect_of(dialect).render(messages, [], config).body
    refuse(dialect, json.loads(json.dumps(body)), secrets="")


def test_there_are_enough_bad_histories_and_every_code_has_one() -> None:
    assert len(BAD) >= 40
    of_models = {ProblemCode.ASSISTANT_LAST}
    assert {code for history in BAD for code in history.codes} == set(ProblemCode) - of_models
    assert all(history.source for history in BAD)


@pytest.mark.one_in(4)
@every_dialect
@every_bad
def test_a_bad_history_is_found_out(history: Bad, dialect: AnyName) -> None:
    report = check(history.messages(dialect), dialect, model_id=MODELS[dialect])
    # Many of the histories end with an answer, which some models refuse beside everything else.
    codes = [code for code in report.codes if code is not ProblemCode.ASSISTANT_LAST]
    assert codes == history.codes_in(dialect)
    for problem in report.problems:
        assert dialect in problem.refused_by
        assert problem.message
        assert problem.repaired
        assert 0 <= problem.message_index <= len(history.messages(dialect))


@pytest.mark.one_in(4)
@every_dialect
@every_bad
def test_a_bad_history_is_mended(history: Bad, dialect: AnyName) -> None:
    mended, _ = repair(history.messages(dialect), dialect, model_id=MODELS[dialect])
    assert check(mended, dialect, model_id=MODELS[dialect]).is_clean
    send(mended, dialect)


@pytest.mark.one_in(4)
@every_dialect
@every_bad
def test_what_rendering_does_not_put_right_is_refused(history: Bad, dialect: str) -> None:
    if not REFUSED_AS_IT_STANDS.isdisjoint(history.codes_in(dialect)):
        with pytest.raises((AssertionError, MisuseError)):
            send(history.messages(dialect), dialect)


@every_dialect
@pytest.mark.parametrize(("name", "history"), GOOD, ids=[name for name, _ in GOOD])
def test_a_good_history_is_left_alone(
    name: str, history: Callable[[str], Sequence[Message]], dialect: AnyName
) -> None:
    messages = [*history(dialect)]
    if user_must_end(dialect, MODELS[dialect]) and ends_with_answer(messages):
        messages.append(Message.user("Go on"))
    mended, report = repair(messages, dialect, model_id=MODELS[dialect])
    assert (name, report.codes) == (name, [])
    assert all(a is b for a, b in zip(mended, messages, strict=True))
    send(mended, dialect)


def test_a_missing_result_is_made_up_and_marked() -> None:
    asked = [Message.user("?"), Message.assistant(call("a"), call("b"))]
    mended, report = repair([*asked, Message.tool_result("b", "sun")], "openai-chat")
    result = mended[-1].parts[0]
    assert isinstance(result, ToolResultPart)
    assert (result.tool_call_id, result.is_error, result.status) == ("a", True, MISSING_STATUS)
    assert report.to_warnings() == [
        {
            "code": "orphan_call",
            "message": "a call has no result",
            "messageIndex": 1,
            "partIndex": 0,
            "refusedBy": DIALECTS,
        }
    ]


def test_a_result_without_a_call_becomes_text_or_goes() -> None:
    stray = [Message.user("?"), Message.tool_result("x", {"sky": "grey"})]
    written, _ = repair(stray, "openai-chat")
    assert [message.text for message in written] == [
        "?",
        '[result of the call \'x\']{"sky":"grey"}',
    ]
    dropped, report = repair(stray, "openai-chat", RepairPolicy(orphan_results="drop"))
    assert [message.text for message in dropped] == ["?"]
    assert report.problems[0].repaired == "it is left out"


def test_thinking_that_cannot_go_back_goes_or_becomes_text() -> None:
    history = [Message.user("?"), Message.assistant(ThinkingPart(text="Hm."), "Yes")]
    dropped, _ = repair(history, "anthropic-messages")
    assert [part.kind for part in dropped[1].parts] == ["text"]
    written, _ = repair(history, "anthropic-messages", RepairPolicy(thinking="text"))
    assert [part.text for part in written[1].parts if isinstance(part, TextPart)] == ["Hm.", "Yes"]
    assert dropped[1].id == history[1].id


def test_the_model_matters_only_where_it_is_known() -> None:
    history = [
        Message.user("?"),
        Message.assistant(thought("anthropic-messages", model_id="other"), "Yes"),
    ]
    assert check(history, "anthropic-messages").is_clean
    assert not check(history, "anthropic-messages", model_id="mine").is_clean


def test_no_dialect_is_an_error() -> None:
    with pytest.raises(MisuseError, match="no request is rendered in 'morse'"):
        check([], cast("Any", "morse"))


def test_every_code_says_who_refuses_it() -> None:
    assert set(REFUSED_BY) == set(ProblemCode)


def long_history(length: int, dialect: str) -> list[Message]:
    """Return a history with several problems, in the same proportions at each length."""
    messages: list[Message] = []
    for number in range(length // 5):
        messages += [
            Message.user(f"Question {number}", " "),
            Message.assistant(thought(dialect), "Both.", call(f"a{number}"), call(f"b{number}")),
            Message.tool_result(f"a{number}", "rain"),
            Message.tool_result("a0", "once more"),
            Message.assistant(ThinkingPart(text="Hm."), "So it is."),
        ]
    return messages


@pytest.mark.slow
@every_dialect
def test_the_work_is_linear_in_the_length_of_the_history(dialect: AnyName) -> None:
    module, config_of = (
        dialect_of(dialect),
        dialect_of(dialect).config_class.model_validate,
    )
    config = config_of({"model_id": MODELS[dialect]})

    def counted(length: int) -> tuple[int, int, int]:
        history = long_history(length, dialect)
        mended, _ = repair(history, dialect)
        body = module.render(mended, [], config).body
        return (
            lines_of(lambda: repair(history, dialect)),
            lines_of(lambda: module.render(mended, [], config)),
            lines_of(lambda: parse_request(body, dialect)),
        )

    short, long = counted(1_000), counted(10_000)
    assert all(many <= 10.5 * few for few, many in zip(short, long, strict=True))


@pytest.mark.parametrize(
    ("dialect", "model_id", "code"),
    [
        ("bedrock-converse", "amazon.nova-pro-v1:0", ProblemCode.ASSISTANT_FIRST),
        ("bedrock-converse", None, ProblemCode.ASSISTANT_FIRST),
        ("bedrock-converse", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", None),
        ("openai-chat", "gpt-oss-120b", ProblemCode.ARGUMENTS_NOT_AN_OBJECT),
        ("openai-chat", None, ProblemCode.ARGUMENTS_NOT_AN_OBJECT),
        ("openai-chat", "gpt-5.2", None),
        ("openai-responses", "o3", None),
        ("mistral", "gpt-5.2", ProblemCode.ARGUMENTS_NOT_AN_OBJECT),
    ],
)
def test_what_some_models_accept_is_a_problem_for_the_others(
    dialect: AnyName, model_id: str | None, code: ProblemCode | None
) -> None:
    odd = ToolCallPart(tool_call_id="a", tool_name="weather", raw_args_text="[1]")
    history = (
        [Message.assistant("Welcome."), Message.user("Hello")]
        if dialect == "bedrock-converse"
        else [Message.user("Hello"), Message.assistant(odd), Message.tool_result("a", "rain")]
    )
    assert check(history, dialect, model_id=model_id).codes == ([] if code is None else [code])
    config = dialect_of(dialect).config_class.model_validate({"model_id": model_id or "m"})
    rendered = dialect_of(dialect).render(history, [], config)
    changes = {NoteCode.TURN_ADDED, NoteCode.ARGUMENTS_DROPPED}
    noted = {note["code"] for note in rendered.notes} & changes
    assert bool(noted) == (code is not None)


def answered(*parts: MessagePart) -> list[Message]:
    return [Message.user("Hello"), Message.assistant(*parts), Message.user("More")]


@pytest.mark.parametrize(
    ("model_id", "answer_id", "reasoning_id", "is_lone"),
    [
        ("gpt-5.2", None, "rs_1", True),
        ("gpt-5.2", "msg_1", "rs_1", False),
        ("gpt-5.2", None, None, False),
        ("deepseek-v4", None, "rs_1", False),
    ],
)
def test_reasoning_is_lone_where_the_answer_lost_its_id(
    model_id: str, answer_id: str | None, reasoning_id: str | None, *, is_lone: bool
) -> None:
    def own(item_id: str | None) -> dict[str, object]:
        data = {"encrypted_content": "opaque", **({"id": item_id} if item_id else {})}
        return {"dialect": "openai-responses", "modelId": model_id, "data": data}

    history = answered(
        ThinkingPart(text="Hm.", provider_state=own(reasoning_id)),
        TextPart(text="Yes.", provider_state=own(answer_id) if answer_id else None),
    )
    mended, report = repair(history, "openai-responses", model_id=model_id)
    assert report.codes == ([ProblemCode.LONE_REASONING] if is_lone else [])
    # Encrypted reasoning needs no id.
    assert [part.kind for part in mended[1].parts] == ["thinking", "text"]
    state = mended[1].parts[0].provider_state
    assert state is not None
    assert state["data"] == own(None if is_lone else reasoning_id)["data"]


def test_deepseek_gets_the_results_behind_each_message() -> None:
    """Its error: messages with tool_calls must be followed by the messages of their results."""
    history = [
        Message.user("Hello"),
        Message.assistant(call("a")),
        Message.assistant(call("b")),
        Message.tool_result("a", "rain"),
        Message.tool_result("b", "sun"),
    ]
    assert check(history, "openai-chat", model_id="deepseek-chat").is_clean
    config = dialect_of("openai-chat").config_class.model_validate({"model_id": "deepseek-chat"})
    sent: Any = dialect_of("openai-chat").render(history, [], config).body["messages"]
    assert [message["role"] for message in sent[1:]] == ["assistant", "tool"] * 2


BEGUN = [Message.user("Give JSON."), Message.assistant("{")]


@pytest.mark.parametrize(
    ("dialect", "model_id", "is_refused"),
    [
        ("anthropic-messages", "claude-sonnet-5", True),
        ("anthropic-messages", "claude-opus-4-6", True),
        ("bedrock-converse", "us.anthropic.claude-sonnet-4-6", True),
        ("anthropic-messages", "claude-sonnet-4-5", False),
        ("anthropic-messages", "claude-of-nobody", False),
        ("anthropic-messages", None, False),
        ("openai-chat", "anthropic/claude-sonnet-5", False),
        ("gemini", "gemini-3-pro", False),
    ],
)
def test_some_models_refuse_a_history_that_the_assistant_ends(
    dialect: AnyName, model_id: str | None, *, is_refused: bool
) -> None:
    mended, report = repair(BEGUN, dialect, model_id=model_id)
    assert report.codes == ([ProblemCode.ASSISTANT_LAST] if is_refused else [])
    assert mended[:2] == BEGUN
    assert [message.text for message in mended[2:]] == (["(Continue.)"] if is_refused else [])
    assert repair(mended, dialect, model_id=model_id)[1].is_clean
    for problem in report.problems:
        assert problem.refused_by == ("anthropic-messages", "bedrock-converse")
        assert problem.message_index == 2


@pytest.mark.parametrize(
    "paused",
    [
        Message.assistant(
            TextPart(text="I look."),
            ProviderPart(
                dialect="anthropic-messages",
                block={"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
            ),
        ),
        Message.assistant("I look.").model_copy(
            update={"meta": Meta(finish_reason=FinishReason.PAUSE)}
        ),
    ],
)
def test_an_answer_that_paused_may_end_a_history(paused: Message) -> None:
    history = [Message.user("Search."), paused]
    assert check(history, "anthropic-messages", model_id="claude-sonnet-5").is_clean


def test_a_refused_prefill_is_told_of_and_mended_where_that_is_asked_for() -> None:
    said = answer("anthropic-messages", "At 17:42.")
    with (
        ReplayServer({"/v1/messages": said}) as server,
        AnthropicModel({"model_id": "claude-sonnet-5"}, base_url=server.url, api_key="k") as model,
    ):
        told = model.send_message_sync(BEGUN)
        mended = model.send_message_sync(BEGUN, repair="auto")
        with pytest.raises(HistoryError, match="refuses a history that the assistant ends"):
            model.send_message_sync(BEGUN, strict=True)
    for message in (told, mended):
        assert [warning["code"] for warning in message.meta.warnings] == ["assistant_last"]
    bodies: list[Any] = [request.json() for request in server.requests]
    roles = [[turn["role"] for turn in body["messages"]] for body in bodies]
    assert roles == [["user", "assistant"], ["user", "assistant", "user"]]


IMAGE = ImagePart(mime_type="image/png", url="https://example.com/a.png")


@pytest.mark.parametrize(
    ("dialect", "model_id", "part", "is_refused"),
    [
        ("openai-chat", "deepseek-v4-flash", IMAGE, True),
        ("openai-responses", "deepseek-v4-flash", IMAGE, True),
        ("openai-chat", "deepseek-v4-flash-vision-exp", IMAGE, False),
        ("openai-chat", "deepseek-chat", FileRefPart(path="https://e.com/a.mp3"), True),
        ("openai-chat", "deepseek-chat", FileRefPart(path="https://e.com/a.mp4"), True),
        ("openai-chat", "deepseek-chat", FileRefPart(path="https://e.com/a.pdf"), True),
        ("openai-chat", "deepseek-chat", FileRefPart(path="https://e.com/a.txt"), False),
        # By the table of models.
        ("openai-chat", "openai/gpt-oss-120b", IMAGE, True),
        ("openai-chat", "gpt-3.5-turbo", IMAGE, True),
        ("openai-chat", "gpt-5.2", IMAGE, False),
        ("openai-chat", "model-of-nobody", IMAGE, False),
        ("openai-chat", None, IMAGE, False),
    ],
)
def test_a_model_gets_no_medium_that_it_does_not_read(
    dialect: AnyName, model_id: str | None, part: ImagePart | FileRefPart, *, is_refused: bool
) -> None:
    history = [Message.user("See", part)]
    mended, report = repair(history, dialect, model_id=model_id)
    assert report.codes == ([ProblemCode.REFUSED_MEDIUM] if is_refused else [])
    assert [one.kind for one in mended[0].parts] == ["text", "text" if is_refused else part.kind]


@pytest.mark.parametrize("model_id", ["deepseek-v4-flash", "gpt-5.2"])
def test_deepseek_gets_results_before_the_next_text_of_an_answer(model_id: str) -> None:
    """Its error over Responses: no tool output found for the first call."""
    history = [
        Message.user("Hello"),
        Message.assistant("One.", call("a"), "Two.", call("b"), call("c"), "Done."),
        Message.tool_result("a", "rain"),
        Message.tool_result("b", "sun"),
        Message.tool_result("c", "snow"),
    ]
    mended, report = repair(history, "openai-responses", model_id=model_id)
    if model_id == "gpt-5.2":
        assert report.is_clean
        assert mended == history
        return
    assert report.codes == [ProblemCode.LATE_RESULT] * 3
    kinds = [[part.kind for part in message.parts] for message in mended[1:]]
    answers = [["text", "tool_call"], ["tool_result"], ["text", "tool_call", "tool_call"]]
    assert kinds == [*answers, ["tool_result"], ["tool_result"], ["text"]]
    assert check(mended, "openai-responses", model_id=model_id).is_clean
    assert check(history, "openai-chat", model_id=model_id).is_clean


@pytest.mark.parametrize("state", ["in_progress", "of another model"])
def test_an_answer_whose_id_is_not_sent_takes_no_reasoning_with_an_id(state: str) -> None:
    owner = "gpt-4o" if state == "of another model" else "gpt-5.2"
    status = "in_progress" if state == "in_progress" else "completed"
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": status}
    reasoning: dict[str, Any] = {
        "type": "reasoning",
        "id": "rs_1",
        "encrypted_content": "opaque",
        "summary": [],
    }
    history = answered(
        ThinkingPart(text="Hm.", provider_state=owned("gpt-5.2", reasoning)),
        TextPart(text="Yes", provider_state=owned(owner, item)),
    )
    mended, report = repair(history, "openai-responses", model_id="gpt-5.2")
    assert report.codes == [ProblemCode.LONE_REASONING]
    config = dialect_of("openai-responses").config_class.model_validate({"model_id": "gpt-5.2"})
    sent: Any = dialect_of("openai-responses").render(mended, [], config).body["input"]
    assert [one.get("id") for one in sent] == [None, None, None, None]
    assert sent[1]["encrypted_content"] == "opaque"


def owned(model_id: str, data: dict[str, Any]) -> dict[str, object]:
    return {"dialect": "openai-responses", "modelId": model_id, "data": data}
