"""Tools of MCP servers: what an agent calls, what its model reads, and what the server is told."""

import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from typing import Any, Final, cast

import pytest
from mcp import Client, types
from mcp.server import MCPServer, Server

from answering_server import AnsweringServer, Reply, Words
from deltafold import Agent, DeltafoldError, MisuseError, Tool
from deltafold.conversation import AgentEventKind, RunResult, mcp
from deltafold.testing import Recording
from deltafold.testing.answers import ScriptedCall
from mcp_harbour import PAGES, PIXEL, PROGRAMS, SCHEMA, SOUND, WAYS, Context, Session, opened
from talks import Talk

ENDED: Final = (
    "ConnectionError: the connection to the MCP server has ended, and its tools cannot be called"
)

FOLLOWS: Final = "[the result follows in the next user message]"


def calling(*calls: ScriptedCall) -> Reply:
    """Return a reply that makes calls, and then says that it is done."""

    def reply(words: Words) -> Sequence[str | ScriptedCall]:
        return ("done",) if any(role == "tool" for role, _ in words) else calls

    return reply


def sent(server: AnsweringServer) -> dict[str, Any]:
    """Return the last request of a model."""
    return cast("dict[str, Any]", server.requests[-1].json())


def call(name: str, number: int = 1, **arguments: object) -> ScriptedCall:
    return (f"c{number}", name, arguments)


async def run(tools: Sequence[Tool], *calls: ScriptedCall) -> tuple[RunResult[Any], dict[str, Any]]:
    """Let an agent make calls; returns the result, and the request with their results."""
    with AnsweringServer(calling(*calls)) as server:
        async with server.model() as model, Talk(Agent(tools=tools, model=model)) as talk:
            result = await talk.run("Go.")
        return result, sent(server)


def read(body: dict[str, Any]) -> list[Any]:
    """Return what a model reads of results: the texts, and the contents that follow them."""
    at = next(at for at, one in enumerate(body["messages"]) if one["role"] == "tool")
    return [one["content"] for one in body["messages"][at:]]


async def told(session: Session) -> str:
    """Return how the call of `wait` has ended in the server."""
    _, body = await run(await mcp.tools(session, only=["waited"]), call("waited"))
    return str(read(body)[0])


# The tools.


@pytest.mark.parametrize("way", WAYS)
def test_a_run_calls_the_tools_of_all_pages(way: str) -> None:
    async def main() -> None:
        async with opened(way) as session:
            tools = await mcp.tools(session)
            result, body = await run(tools, call("text", self="Brest", depth=3), call("list", 2))
        assert result.text == "done"
        assert read(body) == ["high tide at Brest", '{"result": ["17", "low"]}']
        offered = [tool["function"] for tool in body["tools"]]
        assert [one["name"] for one in offered] == [name for page in PAGES for name in page]
        assert offered[0] == {"name": "text", "description": "Tide times", "parameters": SCHEMA}
        assert offered[1]["description"] == "About texts."

    asyncio.run(main())


def test_some_tools_are_chosen_and_some_need_an_approval() -> None:
    def is_destructive(tool: types.Tool) -> bool:
        return bool(tool.annotations and tool.annotations.destructive_hint)

    async def main() -> None:
        async with opened("memory") as session:
            few = await mcp.tools(session, only=["die", "text"], require_approval=is_destructive)
            assert [(one.name, one.requires_approval) for one in few] == [
                ("text", False),
                ("die", True),
            ]
            (asking,) = await mcp.tools(
                session, only=lambda tool: tool.name == "text", require_approval=["text"]
            )
            result, _ = await run([asking], call("text"))
            assert [one.tool_name for one in result.pending] == ["text"]

    asyncio.run(main())


@pytest.mark.parametrize("option", ["only", "require_approval"])
def test_a_misspelled_name_is_an_error(option: str) -> None:
    async def main() -> None:
        async with opened("memory") as session:
            names: Any = {option: ["text", "dye"]}
            with pytest.raises(
                MisuseError, match=f"{option}: the server has no tool 'dye'; it has text"
            ):
                await mcp.tools(session, **names)

    asyncio.run(main())


def test_two_servers_have_tools_of_one_name() -> None:
    async def main() -> None:
        async with opened("memory") as one, opened("memory") as other:
            only = ["text"]
            brest = await mcp.tools(one, only=only, prefix="brest_")
            dover = await mcp.tools(other, only=only, prefix="dover_")
            calls = call("brest_text", self="Brest"), call("dover_text", 2, self="Dover")
            _, body = await run([*brest, *dover], *calls)
        assert read(body) == ["high tide at Brest", "high tide at Dover"]

    asyncio.run(main())


def test_a_name_that_no_provider_takes_is_another_one_in_the_request() -> None:
    def reply(words: Words) -> Sequence[str | ScriptedCall] | Recording:
        return calling(call(offered(), self="Brest"))(words)

    def offered() -> str:
        (tool,) = sent(server)["tools"]
        return str(tool["function"]["name"])

    async def main() -> None:
        async with opened("memory") as session, server.model() as model:
            tools = await mcp.tools(session, only=["text"], prefix=f"harbour.{'x' * 60}/")
            await Agent(tools=tools, model=model).run("Go.")

    with AnsweringServer(reply) as server:
        asyncio.run(main())
        assert len(offered()) == 64
        assert read(sent(server)) == ["high tide at Brest"]


def test_a_list_that_does_not_end_is_an_error() -> None:
    async def list_tools(
        context: Context,  # noqa: ARG001 - the signature of a handler
        asked: types.PaginatedRequestParams | None,  # noqa: ARG001 - as above
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[], next_cursor="again")

    async def main() -> None:
        async with Client(Server("endless", on_list_tools=list_tools)) as client:
            with pytest.raises(DeltafoldError, match="list of tools does not end: 'again'"):
                await mcp.tools(client)

    asyncio.run(main())


def test_without_the_sdk_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    session: Any = object()
    with pytest.raises(MisuseError, match=r"pip install 'deltafold\[mcp\]'"):
        asyncio.run(mcp.tools(session))


# What the model reads.


def url(mime_type: str, data: str) -> str:
    return f"data:{mime_type};base64,{data}"


@pytest.mark.parametrize(
    ("name", "contents"),
    [
        ("texts", ["17:42\n\n5.1 m"]),
        (
            "image",
            ["seen", [{"type": "image_url", "image_url": {"url": url("image/png", PIXEL)}}]],
        ),
        (
            "sound",
            [FOLLOWS, [{"type": "input_audio", "input_audio": {"data": SOUND, "format": "wav"}}]],
        ),
        ("note", ["file:///log.txt\ncalm"]),
        (
            "blob",
            [
                FOLLOWS,
                [
                    {
                        "type": "file",
                        "file": {
                            "file_data": url("application/pdf", "JVBERi0="),
                            "filename": "tides today.pdf",
                        },
                    }
                ],
            ],
        ),
        ("link", ["log: file:///log.txt\nThe log of today."]),
        ("broken", ["[image/png left out: its data is not base64]"]),
        ("nothing", [""]),
        ("structured", ['{"at": "17:42", "height": 5.1}']),
        ("explained", ['{"height": 5.1}\n\nA spring tide.']),
        ("list", ['{"result": ["17", "low"]}']),
        ("refuse", ["MCPError: no such harbour: {}"]),
    ],
)
def test_a_model_reads_each_kind_of_content_once(name: str, contents: list[Any]) -> None:
    async def main() -> None:
        async with opened("legacy memory") as session:
            _, body = await run(await mcp.tools(session), call(name))
        assert read(body) == contents

    asyncio.run(main())


def test_an_error_of_a_tool_is_a_failed_result_with_all_of_its_content() -> None:
    async def main() -> None:
        async with opened("memory") as session:
            result, body = await run(await mcp.tools(session), call("fail"), call("refuse", 2))
        assert json.dumps(body).count(PIXEL) == 1
        assert read(body)[0] == "The gauge is dry."
        entry: Any = result.state.log.entries[-2]
        assert [str(one.status) for one in entry.results] == ["failed", "failed"]

    asyncio.run(main())


def test_a_typed_function_of_a_server_is_a_tool() -> None:
    server = MCPServer("tides")

    @server.tool()
    def tide(place: str, days: int = 1) -> list[str]:
        """Look up the next high tides at a place."""
        return [f"{place}, day {day}" for day in range(days)]

    async def main() -> None:
        async with Client(server) as client:
            tools = await mcp.tools(client)
            _, body = await run(tools, call("tide", place="Brest", days=2), call("tide", 2))
        told, refused = read(body)
        assert json.loads(told) == {"result": ["Brest, day 0", "Brest, day 1"]}
        assert "place" in refused  # the server checks the arguments

    asyncio.run(main())


def asking() -> Server[Any]:
    """Make a server whose tool asks the user for a place, and says it."""
    schema: dict[str, Any] = {"type": "object", "properties": {"place": {"type": "string"}}}
    question = types.ElicitRequestFormParams(message="Where?", requested_schema=schema)

    async def list_tools(
        context: Context,  # noqa: ARG001 - the signature of a handler
        asked: types.PaginatedRequestParams | None,  # noqa: ARG001 - as above
    ) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[types.Tool(name="ask", input_schema={"type": "object"})]
        )

    async def call_tool(
        context: Context,  # noqa: ARG001 - as above
        asked: types.CallToolRequestParams,
    ) -> types.CallToolResult | types.InputRequiredResult:
        if asked.input_responses is None:
            requests: Any = {"place": types.ElicitRequest(params=question)}
            return types.InputRequiredResult(input_requests=requests)
        given: Any = asked.input_responses["place"]
        text = f"asked for {given.content['place']}"
        return types.CallToolResult(content=[types.TextContent(text=text)])

    return Server("asking", on_list_tools=list_tools, on_call_tool=call_tool)


def test_a_client_answers_what_a_server_asks_during_a_call() -> None:
    async def answer(context: object, params: object) -> types.ElicitResult:  # noqa: ARG001 - the signature
        return types.ElicitResult(action="accept", content={"place": "Brest"})

    async def main() -> None:
        async with Client(asking(), elicitation_callback=answer) as client:
            _, body = await run(await mcp.tools(client), call("ask"))
            assert read(body) == ["asked for Brest"]
            _, body = await run(await mcp.tools(client.session), call("ask"))
            assert read(body)[0].startswith("RuntimeError: ")  # a session has nobody to ask

    asyncio.run(main())


@pytest.mark.parametrize("way", WAYS)
def test_the_progress_of_a_call_is_that_of_the_run(way: str) -> None:
    async def main() -> list[object]:
        async with opened(way) as session:
            tools = await mcp.tools(session)
            with AnsweringServer(calling(call("count"))) as server:
                async with server.model() as model, Talk(Agent(tools=tools, model=model)) as talk:
                    events = [event async for event in talk.stream("Go.")]
        return [event.progress for event in events if event.kind is AgentEventKind.PROGRESS]

    assert asyncio.run(main()) == [{"progress": step, "total": 3} for step in range(3)]


def test_calls_of_one_answer_run_at_once() -> None:
    async def main() -> None:
        async with opened("stdio") as session:
            _, body = await run(await mcp.tools(session), call("meet"), call("meet", 2))
        assert read(body) == ["met", "met"]

    asyncio.run(main())


# The end of a call.


@pytest.mark.parametrize("way", WAYS)
def test_a_cancelled_run_cancels_the_call_in_the_server(way: str) -> None:
    async def main() -> str:
        async with opened(way) as session:
            tools = await mcp.tools(session)
            began = asyncio.Event()

            async def follow() -> None:
                with AnsweringServer(calling(call("wait"))) as server:
                    async with (
                        server.model() as model,
                        Talk(Agent(tools=tools, model=model)) as talk,
                    ):
                        async for event in talk.stream("Go."):
                            if event.progress is not None:
                                began.set()

            task = asyncio.create_task(follow())
            await began.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await told(session)

    assert asyncio.run(main()) == "began CancelledError"


@pytest.mark.parametrize("way", WAYS)
def test_a_time_limit_cancels_the_call_in_the_server(way: str) -> None:
    async def main() -> None:
        async with opened(way) as session:
            tools = await mcp.tools(session, only=["wait"], timeout_ms=1000)
            result, body = await run(tools, call("wait"))
            assert result.text == "done"
            assert read(body) == ["The tool did not finish within 1000 ms."]
            assert await told(session) == "began CancelledError"

    asyncio.run(main())


@pytest.mark.parametrize("way", ["legacy memory", "stdio", "legacy http"])
def test_a_session_that_was_closed_fails_the_call(way: str) -> None:
    async def main() -> None:
        async with opened(way) as session:
            tools = await mcp.tools(session)
        _, body = await run(tools, call("text", self="Brest"))
        assert read(body) == [ENDED]

    asyncio.run(main())


@pytest.mark.parametrize("way", PROGRAMS)
def test_a_call_fails_when_its_server_dies(way: str) -> None:
    """Over HTTP the SDK ends the block of the session, and its task: no run is in this task."""

    async def hold(given: asyncio.Future[Session], done: asyncio.Event) -> None:
        async with opened(way) as session:
            given.set_result(session)
            await done.wait()

    async def main() -> list[Any]:
        given, done = asyncio.get_running_loop().create_future(), asyncio.Event()
        holder = asyncio.create_task(hold(given, done))
        tools = await mcp.tools(await given)
        first, body = await run(tools, call("die"))
        second, later = await run(tools, call("text", self="Brest"))
        done.set()
        await asyncio.gather(holder, return_exceptions=True)
        assert first.text == second.text == "done"
        return [*read(body), *read(later)]

    first, second = asyncio.run(main())
    assert first == ENDED or (way == "legacy http" and "ended without a response" in first)
    assert second == ENDED


def test_a_server_over_http_that_dies_ends_the_block_of_its_session() -> None:
    async def main() -> None:
        async with opened("http") as session:
            await run(await mcp.tools(session), call("die"))

    with pytest.raises(ExceptionGroup, match="unhandled errors in a TaskGroup"):
        asyncio.run(main())


def test_a_run_in_another_event_loop_gets_an_error(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> list[Any]:
        async with opened("stdio") as session:
            tools = await mcp.tools(session)
            with AnsweringServer(calling(call("text", self="Brest"))) as server:
                async with server.model() as model:
                    agent = Agent(tools=tools, model=model)
                    await asyncio.to_thread(agent.run_sync, "Go.")
                return read(sent(server))

    with caplog.at_level(logging.ERROR, "deltafold"):
        (text,) = asyncio.run(main())
    assert text.startswith("MisuseError: the MCP session of the tool 'text' belongs to another")
    assert text.removeprefix("MisuseError: ") in caplog.text
