"""One library's agent in a process of its own, for one probe of `loop_features`.

In: the arguments `<library> <options as JSON>`.  Out: one line of JSON: the final text, the error,
the progress of tools, the tasks that are left, and whether the run waits for an approval.

Laws: each library is used by its public API. An option that the library does not have ends the
process with the code 3 (`NOT_THERE`). The tool writes its executions to a file, which outlives the
process.

Options: url; folder; tool (tide, progress, image); sleep (seconds of a call of Atlantis); approve
("ask" or "resume"); stored (keep the conversation in the folder); resume; parallel, tokens, usd,
seconds (limits); cancel (cancel the run when the tool has started).
"""

import asyncio
import base64
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODEL = "gpt-4.1"
QUESTION = "When is high tide?"
NOT_THERE = 3
IMAGE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

Options = dict[str, Any]
Result = dict[str, Any]
Execute = Callable[..., Awaitable[str]]


class NotThereError(Exception):
    """The library has no such option."""


def without(options: Options, *names: str) -> None:
    """Refuse options that the library does not have."""
    for name in names:
        if options.get(name) is not None:
            raise NotThereError(name)


def tide_of(options: Options) -> Execute:
    """Make the tool; it writes each step to the file `runs`."""
    runs = Path(options["folder"]) / "runs"

    def note(step: str, place: str) -> None:
        with runs.open("a", encoding="utf-8") as file:
            file.write(f"{step} {place}\n")

    async def tide(place: str, days: int) -> str:
        """Look up the high tides of a place."""
        note("start", place)
        try:
            await asyncio.sleep(options.get("sleep", 0) if place == "Atlantis" else 0.05)
        except asyncio.CancelledError:
            note("cancelled", place)
            raise
        note("end", place)
        return f"High tide at {place} at 17:42 on each of {days} days."

    return tide


async def deltafold(options: Options) -> Result:
    """Run an agent of deltafold."""
    from deltafold import ImagePart, OpenAIChatModel
    from deltafold.conversation import Agent, AgentConfig, AgentState, LogFile, MemoryNotebookWidget

    async def with_progress(place: str, days: int) -> Any:  # noqa: ANN401 - a generator of texts
        """Look up the high tides of a place."""
        yield f"half of {days} days at {place}"
        yield "17:42"

    async def with_image(place: str, days: int) -> ImagePart:  # noqa: ARG001 - the tool's
        """Draw the tides of a place."""
        return ImagePart(mime_type="image/png", data=base64.b64encode(IMAGE).decode())

    tool: Any = {"progress": with_progress, "image": with_image}.get(options["tool"])
    if tool is None:
        tool = tide_of(options)
    tool.__name__ = "tide"
    loop: Options = {"retry_seconds": 0.1}
    names = {"parallel": "max_parallel_tools", "tokens": "max_tokens", "usd": "max_cost_usd"}
    names["seconds"] = "timeout"
    loop |= {there: options[name] for name, there in names.items() if name in options}
    config: Options = {"model": MODEL, "loop": loop}
    if options.get("approve"):
        config["tools"] = {"require_approval": ["tide"]}
    log = LogFile(Path(options["folder"]) / "log") if options.get("stored") else None
    again = options.get("resume")
    state = (
        AgentState(log, [MemoryNotebookWidget()])
        if again
        else AgentState.create_default("Tides.", log=log)
    )
    result: Result = {"progress": []}
    async with OpenAIChatModel({"model_id": MODEL}, base_url=options["url"], api_key="k") as model:
        agent = Agent(AgentConfig.model_validate(config), [tool], model=model)
        agreed = {"call_1": True} if options.get("approve") == "resume" else None
        events = (
            agent.stream_resumed(state, agreed) if again else agent.stream(QUESTION, state=state)
        )
        async for event in events:
            if event.kind == "progress":
                result["progress"].append(event.progress)
            if event.run is not None:
                result |= {"text": event.run.text, "reason": event.run.reason}
                result["waits"] = bool(event.run.pending)
    return result


async def pydantic_ai(options: Options) -> Result:
    """Run an agent of pydantic-ai; a stored conversation is its messages in a file."""
    import pydantic_ai as library
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    without(options, "parallel")

    @dataclass(kw_only=True)
    class Progress(library.CustomEvent):
        said: str

    async def with_progress(context: library.RunContext[None], place: str, days: int) -> str:
        """Look up the high tides of a place."""
        await context.emit(Progress(said=f"half of {days} days at {place}"))
        return "17:42"

    async def with_image(place: str, days: int) -> library.BinaryContent:  # noqa: ARG001 - the tool's
        """Draw the tides of a place."""
        return library.BinaryContent(IMAGE, media_type="image/png")

    client = AsyncOpenAI(base_url=options["url"], api_key="k")
    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client))
    types: Any = [str, library.DeferredToolRequests] if options.get("approve") else str
    agent: Any = library.Agent(model, output_type=types)
    if options["tool"] == "progress":
        agent.tool(with_progress, name="tide")
    else:
        plain: Any = with_image if options["tool"] == "image" else tide_of(options)
        agent.tool_plain(plain, name="tide", requires_approval=bool(options.get("approve")))
    given: Options = {"timeout": options["seconds"]} if "seconds" in options else {}
    names = {"tokens": "total_tokens_limit", "usd": "cost_limit"}
    limits = {there: options[name] for name, there in names.items() if name in options}
    if limits:
        from decimal import Decimal

        limits = {name: Decimal(str(v)) if "cost" in name else v for name, v in limits.items()}
        given["usage_limits"] = library.UsageLimits(**limits)
    stored = Path(options["folder"]) / "messages.json"
    if options.get("resume"):
        # Without a run that ended, there is no list of messages to store.
        if not stored.exists():
            raise NotThereError("resume")
        given["message_history"] = library.ModelMessagesTypeAdapter.validate_json(
            stored.read_bytes()
        )
        given["deferred_tool_results"] = library.DeferredToolResults(approvals={"call_1": True})
    else:
        given["user_prompt"] = QUESTION
    result: Result = {"progress": []}
    async with agent.run_stream_events(**given) as events:
        async for event in events:
            if isinstance(event, Progress):
                result["progress"].append(event.said)
            if isinstance(event, library.AgentRunResultEvent):
                output = event.result.output
                result["waits"] = isinstance(output, library.DeferredToolRequests)
                result["text"] = output if isinstance(output, str) else ""
                stored.write_bytes(event.result.all_messages_json())
    return result


def with_retries(url: str) -> Options:
    """Return the model of openai-agents, with the retries that its runner offers."""
    import agents as library
    from openai import AsyncOpenAI

    policies = library.retry_policies
    policy = policies.any(policies.provider_suggested(), policies.network_error())
    retry = library.ModelRetrySettings(max_retries=2, policy=policy)
    client = AsyncOpenAI(base_url=url, api_key="k")
    return {
        "model": library.OpenAIChatCompletionsModel(model=MODEL, openai_client=client),
        "model_settings": library.ModelSettings(include_usage=True, retry=retry),
    }


async def read_all(result: Any) -> None:  # noqa: ANN401 - a RunResultStreaming of openai-agents
    """Read all events. The run is another task than its reader, and is cancelled by itself."""
    try:
        async for _ in result.stream_events():
            pass
    except asyncio.CancelledError:
        result.cancel()
        raise


async def openai_agents(options: Options) -> Result:
    """Run an agent of openai-agents; a stored conversation is an SQLiteSession."""
    import agents as library

    without(options, "tokens", "usd", "seconds")
    if options["tool"] == "progress":
        raise NotThereError("progress")
    library.set_tracing_disabled(disabled=True)

    async def with_image(place: str, days: int) -> library.ToolOutputImage:  # noqa: ARG001 - the tool's
        """Draw the tides of a place."""
        return library.ToolOutputImage(
            image_url=f"data:image/png;base64,{base64.b64encode(IMAGE).decode()}"
        )

    function: Any = with_image if options["tool"] == "image" else tide_of(options)
    tool = library.function_tool(
        function, name_override="tide", needs_approval=bool(options.get("approve"))
    )
    agent = library.Agent(name="tides", tools=[tool], **with_retries(options["url"]))
    given: Options = {}
    if "parallel" in options:
        limit = library.ToolExecutionConfig(max_function_tool_concurrency=options["parallel"])
        given["run_config"] = library.RunConfig(tool_execution=limit)
    folder = Path(options["folder"])
    question: Any = QUESTION
    if options.get("stored"):
        given["session"] = library.SQLiteSession("one", folder / "session.db")
    if options.get("approve") == "resume":
        question = await library.RunState.from_json(
            agent, json.loads((folder / "state.json").read_text())
        )
        for waiting in question.get_interruptions():
            question.approve(waiting)
    elif options.get("resume"):
        question = []
    result = library.Runner.run_streamed(agent, question, **given)
    await read_all(result)
    if result.interruptions:
        (folder / "state.json").write_text(json.dumps(result.to_state().to_json()))
    return {"text": result.final_output or "", "waits": bool(result.interruptions)}


def asking(event: Any) -> None:  # noqa: ANN401 - a BeforeToolCallEvent of strands
    """Interrupt the run before a call, until a person has answered."""
    if event.interrupt("tide", reason="approval") != "yes":
        event.cancel_tool = "not approved"


async def strands(options: Options) -> Result:
    """Run an agent of strands; a stored conversation is a FileSessionManager."""
    import strands as library
    from openai import AsyncOpenAI
    from strands.hooks import BeforeToolCallEvent
    from strands.models.openai import OpenAIModel
    from strands.session.file_session_manager import FileSessionManager

    without(options, "parallel", "usd", "seconds")

    async def with_progress(place: str, days: int) -> Any:  # noqa: ANN401 - a generator of texts
        """Look up the high tides of a place."""
        yield f"half of {days} days at {place}"
        yield "17:42"

    async def with_image(place: str, days: int) -> Any:  # noqa: ANN401, ARG001 - the tool's
        """Draw the tides of a place."""
        image = {"image": {"format": "png", "source": {"bytes": IMAGE}}}
        return {"status": "success", "content": [image]}

    functions: Options = {"progress": with_progress, "image": with_image}
    function = functions.get(options["tool"]) or tide_of(options)
    client = AsyncOpenAI(base_url=options["url"], api_key="k")
    given: Options = {"tools": [library.tool(name="tide")(function)], "callback_handler": None}
    if options.get("stored"):
        given["session_manager"] = FileSessionManager("one", storage_dir=options["folder"])
    agent = library.Agent(
        model=OpenAIModel(client=client, model_id=MODEL), agent_id="tides", **given
    )
    question: Any = None if options.get("resume") else QUESTION
    waiting = Path(options["folder"]) / "interrupts"
    if options.get("approve"):
        agent.hooks.add_callback(BeforeToolCallEvent, asking)
    if options.get("approve") == "resume":
        question = [
            {"interruptResponse": {"interruptId": one, "response": "yes"}}
            for one in waiting.read_text().split()
        ]
    limits: Options = {"limits": {"total_tokens": options["tokens"]}} if "tokens" in options else {}
    result: Result = {"progress": []}
    async for event in agent.stream_async(question, **limits):
        if "tool_stream_event" in event:
            result["progress"].append(event["tool_stream_event"]["data"])
        if "result" in event:
            end = event["result"]
            result["reason"] = end.stop_reason
            result["waits"] = end.stop_reason == "interrupt"
            result["text"] = "".join(b.get("text", "") for b in end.message["content"])
            waiting.write_text(" ".join(one.id for one in end.interrupts or ()))
    return result


LIBRARIES = {
    "deltafold": deltafold,
    "pydantic-ai": pydantic_ai,
    "openai-agents": openai_agents,
    "strands": strands,
}


async def probed(library: str, options: Options) -> Result:
    """Run the agent, and return what is seen from outside."""
    running = asyncio.ensure_future(LIBRARIES[library](options))
    if options.get("cancel"):
        runs = Path(options["folder"]) / "runs"
        while not runs.exists() and not running.done():  # noqa: ASYNC110 - the sign is a file
            await asyncio.sleep(0.05)
        running.cancel()
    result: Result = {}
    try:
        result = await running
    except asyncio.CancelledError:
        result["error"] = "cancelled"
    except NotThereError:
        raise
    except Exception as error:
        result["error"] = f"{type(error).__name__}: {error}"[:300]
    # Time for the tasks that end by themselves.
    await asyncio.sleep(0.5)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    return {"text": "", "error": None, "tasks_left": len(left), **result}


def main() -> int:
    """Probe once."""
    library, options = sys.argv[1], json.loads(sys.argv[2])
    try:
        result = asyncio.run(probed(library, options))
    except NotThereError:
        return NOT_THERE
    sys.stdout.write(json.dumps(result, default=str) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
