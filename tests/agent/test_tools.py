"""One tool: its arguments in the types of its function, its results of any kind, its progress."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from deltafold import (
    FileRefPart,
    ImagePart,
    Message,
    MisuseError,
    OpenAIChatModel,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    ToolSpec,
)
from deltafold.conversation import (
    AgentState,
    ModelOutputEntry,
    Tool,
    ToolArgumentParser,
    ToolCallRequest,
    ToolDefinition,
    ToolExecutionStatus,
    ToolExecutor,
    ToolOutcome,
    ToolResultsEntry,
    to_messages,
)
from deltafold.testing import Recording, ReplayServer
from wires import chat

PIXEL = ImagePart(mime_type="image/png", data="iVBORw0KGgo=")


class Place(BaseModel):
    """A place."""

    name: str
    depth: float = 0.0


@dataclasses.dataclass
class Wind:
    """Wind."""

    knots: int
    bearing: int = 0


class Tide(TypedDict):
    """A tide."""

    at: date
    height: float


class Season(StrEnum):
    """Season."""

    SUMMER = "summer"
    WINTER = "winter"


def sail(
    place: Place,
    winds: list[Wind],
    tide: Tide | None = None,
    *,
    season: Season = Season.SUMMER,
    crew: Annotated[int, Field(ge=1, description="Number of people.")] = 1,
    mode: Literal["fast", "safe"] = "safe",
) -> dict[str, object]:
    """Plan a trip."""
    values = (place, winds, tide, season, crew, mode)
    return {"types": [type(one).__name__ for one in values], "crew": crew}


def part(name: str, arguments: object, tool_call_id: str = "c") -> ToolCallPart:
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCallPart(tool_call_id=tool_call_id, tool_name=name, raw_args_text=raw)


def outcome_of(tool: Tool, arguments: object, **options: Any) -> ToolOutcome:  # noqa: ANN401
    return asyncio.run(ToolExecutor([tool], **options).execute(part(tool.name, arguments)))


# Arguments.


def test_arguments_have_the_types_of_the_function() -> None:
    arguments = {
        "place": {"name": "Brest"},
        "winds": [{"knots": "12"}],
        "tide": {"at": "2026-11-24", "height": 5},
        "season": "winter",
        "crew": "3",
    }
    outcome = outcome_of(Tool.from_function(sail), arguments)
    assert outcome.status is ToolExecutionStatus.SUCCESS, outcome.content
    assert json.loads(outcome.content) == {
        "types": ["Place", "list", "dict", "Season", "int", "str"],
        "crew": 3,
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"winds": []}, "'place': field required"),
        ({"place": "Brest", "winds": []}, "'place': input should be a valid dictionary"),
        ({"place": {"name": "B", "depth": "deep"}, "winds": []}, "'place.depth': "),
        ({"place": {"name": "B"}, "winds": [{"knots": "seven"}]}, "'winds[0].knots': input should"),
        ({"place": {"name": "B"}, "winds": [{"knots": "seven"}]}, 'not "seven"'),
        ({"place": {"name": "B"}, "winds": [], "crew": 0}, "'crew': input should be greater"),
        ({"place": {"name": "B"}, "winds": [], "mode": "odd"}, "'fast' or 'safe', not \"odd\""),
        ({"place": {"name": "B"}, "winds": [], "sails": 2}, "'sails' is not one of its arguments"),
        ([1], "not a JSON object"),
        ('{"place": ', "not a JSON object"),
    ],
)
def test_an_argument_that_does_not_fit_is_an_error_for_the_model(
    arguments: object, words: str
) -> None:
    outcome = outcome_of(Tool.from_function(sail), arguments)
    assert outcome.status is ToolExecutionStatus.FAILED
    assert words in outcome.content
    assert "all it again" in outcome.content


def test_all_wrong_arguments_are_named_at_once() -> None:
    arguments = {"winds": 7, "crew": 0, "sails": 2}
    content = outcome_of(Tool.from_function(sail), arguments).content
    for name in ("'place'", "'winds'", "'crew'", "'sails'"):
        assert name in content


def test_a_default_is_the_functions_own() -> None:
    given: list[object] = []

    def remember(words: list[str] = given) -> str:  # type: ignore[assignment]
        """Remember."""
        assert words is given
        return "yes"

    assert outcome_of(Tool.from_function(remember), {}).content == "yes"


def test_a_tool_made_of_a_schema_takes_its_arguments_as_they_are() -> None:
    def run(**arguments: object) -> object:
        return arguments

    schema: dict[str, object] = {"type": "object", "properties": {"x": {}}}
    assert outcome_of(Tool("f", "d", schema, run), {"x": [None]}).value == {"x": [None]}


def test_a_tool_may_ask_for_the_parser_and_the_call() -> None:
    def choose(arguments: ToolArgumentParser, call: ToolCallRequest) -> str:
        """Choose."""
        colour = arguments.get_choice("colour", ["red", "blue"])
        return f"{colour} {call.tool_call_id} {call.raw_arguments}"

    schema = {"type": "object", "properties": {"colour": {"type": "string"}}}
    tool = Tool.from_function(choose, parameter_schema=schema)
    assert tool.to_spec().parameter_schema == schema
    assert outcome_of(tool, {"colour": "red"}).content == 'red c {"colour": "red"}'
    wrong = outcome_of(tool, {"colour": "green"})
    assert wrong.status is ToolExecutionStatus.FAILED
    assert "'colour' is one of red, blue" in wrong.content


def test_a_typed_tool_may_take_the_call_too() -> None:
    async def twice(number: int, call: ToolCallRequest, runtime: str) -> str:
        """Double."""
        await asyncio.sleep(0)
        return f"{2 * number} {call.tool_name} {runtime}"

    tool = Tool.from_function(twice)
    properties: Any = tool.to_spec().parameter_schema["properties"]
    assert list(properties) == ["number"]
    assert outcome_of(tool, {"number": "4"}, runtime="R").content == "8 twice R"


# Results.


@pytest.mark.parametrize(
    ("value", "content", "parts"),
    [
        ("text", "text", ()),
        (None, "", ()),
        ({"a": [1, None, True]}, '{"a": [1, null, true]}', ()),
        ([1, "two"], '[1, "two"]', ()),
        (Place(name="Brest"), '{"name":"Brest","depth":0.0}', ()),
        (Wind(12), '{"knots": 12, "bearing": 0}', ()),
        ({"at": date(2026, 11, 24)}, '{"at": "2026-11-24"}', ()),
        (PIXEL, "", (PIXEL,)),
        (["A chart:", PIXEL], "A chart:", (TextPart(text="A chart:"), PIXEL)),
        ((PIXEL, {"a": 1}), '{"a": 1}', (PIXEL, TextPart(text='{"a": 1}'))),
    ],
)
def test_a_tool_returns_text_parts_or_json(
    value: object, content: str, parts: tuple[object, ...]
) -> None:
    def give() -> object:
        """Give."""
        return value

    outcome = outcome_of(Tool.from_function(give), {})
    assert (outcome.content, tuple(outcome.parts)) == (content, parts)
    made = outcome.part()
    assert made.content == (list(parts) if parts else content)


def test_an_image_stays_an_image_in_the_history() -> None:
    def chart() -> list[object]:
        """Draw."""
        return ["The chart.", PIXEL, FileRefPart(path="https://x/y.pdf")]

    state = AgentState.create_default()
    call = part("chart", {})
    state.log.append_message(Message.assistant(call))
    outcome = outcome_of(Tool.from_function(chart), {})
    state.append_tool_results(ToolResultsEntry(results=[outcome.history_result()]))
    (result,) = to_messages(state.render_live_context())[-1].parts
    assert isinstance(result, ToolResultPart)
    assert result.content == [
        TextPart(text="The chart."),
        PIXEL,
        FileRefPart(path="https://x/y.pdf"),
    ]


# Progress.


def test_a_generator_reports_its_progress() -> None:
    seen: list[object] = []

    def count(to: int) -> Generator[str, None, str]:
        """Count."""
        for number in range(to):
            yield f"{number}"
        return "all"

    def last(to: int) -> Iterator[str]:
        """Count, without a result of its own."""
        for number in range(to):
            yield f"{number}"

    async def later(to: int) -> AsyncIterator[str]:
        """Count."""
        for number in range(to):
            await asyncio.sleep(0)
            yield f"{number}"

    def note(call: ToolCallRequest, progress: object) -> None:
        seen.append((call.tool_name, progress))

    for function, content, progress in (
        (count, "all", ["0", "1"]),
        (last, "1", ["0"]),
        (later, "1", ["0"]),
    ):
        seen.clear()
        outcome = outcome_of(Tool.from_function(function), {"to": 2}, on_progress=note)
        assert outcome.content == content
        assert seen == [(function.__name__, one) for one in progress]
        assert outcome_of(Tool.from_function(function), {"to": 0}).content in {"", "all"}


def test_a_function_that_something_else_runs_reports_its_progress_at_once() -> None:
    seen: list[object] = []

    async def run(call: ToolCallRequest, report: Callable[[object], None]) -> object:
        report("half")
        assert seen == ["half"]
        return dict(call.arguments or {})

    def note(call: ToolCallRequest, progress: object) -> None:
        seen.append(progress)
        assert call.tool_name == "count"

    def named(call: ToolCallRequest) -> str:
        return call.tool_name

    described = Tool("count", "Count.", {"type": "object"})
    tool = described.run_by(run, reports=True)
    outcome = outcome_of(tool, {"report": 1}, on_progress=note)
    assert outcome.content == '{"report": 1}'
    assert outcome_of(tool.run_by(named), {}).content == "count"


def test_a_generator_that_fails_or_takes_too_long_is_a_failed_result() -> None:
    closed: list[bool] = []

    async def slow() -> AsyncIterator[str]:
        """Take long."""
        try:
            yield "begun"
            await asyncio.sleep(30)
            yield "done"
        finally:
            closed.append(True)

    def broken() -> Iterator[str]:
        """Break."""
        yield "begun"
        raise KeyError("oops")

    outcome = outcome_of(Tool.from_function(slow, timeout_ms=20), {})
    assert "20 ms" in outcome.content
    assert closed == [True]
    assert "oops" in outcome_of(Tool.from_function(broken), {}).content


# The same tool everywhere.


def test_a_model_takes_tools_and_specifications() -> None:
    spec = ToolSpec(name="g", description="d")
    with ReplayServer({"*": Recording.of_events(chat("Hi"))}) as server:
        url = f"{server.url}/v1"
        with OpenAIChatModel({"model_id": "m"}, base_url=url, api_key="k") as model:
            tools: list[Any] = [
                Tool.from_function(sail, strict=False),
                spec,
                {"name": "h", "description": "d"},
            ]
            model.send_message_sync("Hello", tools)
            same = Tool("g", "d", {"type": "object"})
            with pytest.raises(MisuseError, match="two tools have the name 'g'"):
                model.send_message_sync("Hello", [spec, same])
        body: Any = server.requests[0].json()
    assert [tool["function"]["name"] for tool in body["tools"]] == ["sail", "g", "h"]
    assert ToolDefinition is Tool


def test_the_executor_takes_calls_of_messages_and_of_entries() -> None:
    state = AgentState.create_default()
    call = part("twice", {"number": 4})
    entry = state.append_model_output(ModelOutputEntry.of_message(Message.assistant(call)))

    def twice(number: int) -> int:
        """Double."""
        return 2 * number

    executor = ToolExecutor([Tool.from_function(twice)])
    by_entry = asyncio.run(executor.execute_all(entry.tool_calls))
    by_message = asyncio.run(executor.execute_all([call]))
    assert [one.value for one in (*by_entry, *by_message)] == [8, 8]
    assert by_entry[0].call == by_message[0].call


def test_the_executor_runs_the_tools_of_widgets() -> None:
    state = AgentState.create_default()
    executor = ToolExecutor(state.enumerate_widget_tools())
    call = part("memory_notebook_replace", {"text": "remember"})
    state.append_model_output(ModelOutputEntry.of_message(Message.assistant(call)))
    (outcome,) = asyncio.run(executor.execute_all([call]))
    assert state.memory_notebook_snapshot == "remember"
    assert outcome.content == "Replaced: 8 characters."
    stored = state.append_tool_results(ToolResultsEntry(results=[outcome.history_result()]))
    assert stored.results[0].status is ToolExecutionStatus.SUCCESS
    assert stored.results[0].elapsed is not None
    (wrong,) = asyncio.run(executor.execute_all([part("memory_notebook_replace", {"texts": 1})]))
    assert wrong.status is ToolExecutionStatus.FAILED
    assert "needs 'text'" in wrong.content


def test_a_tool_without_an_implementation_cannot_be_executed() -> None:
    with pytest.raises(MisuseError, match="execute: the tool 'f' requires it"):
        ToolExecutor([Tool("f", "d", {"type": "object"})])
