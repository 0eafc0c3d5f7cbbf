"""Outcomes of calls whose tools return and raise anything, in a run of an agent.

In: a seed, the number of the first call, and a count.  Out: how many calls have each status, and
the calls that break a law.

Laws: each call has one outcome: one result in the next request, the same one in the log, and one
entry of its end. A KeyboardInterrupt and a cancellation from outside end the run, and the log has
an outcome of the call.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import deltafold
from deltafold import OpenAIChatModel, Tool
from deltafold.conversation.history.kinds import CallStage, ToolExecutionStatus
from deltafold.conversation.history.run_entries import CallEntry
from deltafold.conversation.history.tool_calls import HistoryToolCallResult
from deltafold.testing import ReplayTransport, answer
from seeded import LoopResult, chance_of
from talks import Talk
from tool_values import FORMS, INTERRUPTS, function_of, of_error

CALLS_OF_A_RUN: Final = 10
_INTERRUPTS: Final = 25
"""One in so many runs is interrupted."""


def results_of(one: Talk[Any]) -> list[HistoryToolCallResult]:
    """Return the results of calls that the log has."""
    entries = one.state.log.entries
    ended = [entry for entry in entries if isinstance(entry, CallEntry)]
    return [entry.result for entry in ended if entry.stage is CallStage.ENDED and entry.result]


def _agent(transport: ReplayTransport, tools: Sequence[Tool | Callable[..., object]]) -> Talk[Any]:
    model = OpenAIChatModel(
        {"model_id": "m"}, client=transport, base_url="http://localhost", api_key="k"
    )
    return Talk(deltafold.Agent({"model": "openai/x"}, tools, model=model))


def _answer(count: int) -> deltafold.testing.Recording:
    calls = [(f"call_{number}", f"t{number}", dict[str, object]()) for number in range(count)]
    return answer("openai-chat", *calls)


def _tool_of(seed: int, number: int, index: int) -> Tool:
    chance = chance_of(seed, number)
    form = FORMS[chance.choice(tuple(FORMS))]
    return Tool.from_function(form(function_of(chance)), name=f"t{index}", description="Do it.")


def tool_outcomes(seed: int, first: int, count: int) -> LoopResult:
    """Run calls of drawn tools; the counts are those of each status."""
    found = LoopResult(count)
    for start in range(first, first + count, CALLS_OF_A_RUN):
        numbers = range(start, min(start + CALLS_OF_A_RUN, first + count))
        broken = _broken_law(seed, numbers, found.counts)
        if broken is not None:
            # The calls of the run one by one: the finding names the tool that broke the law.
            alone = [(number, _broken_law(seed, [number], Counter())) for number in numbers]
            named = [f"call {number} of seed {seed}: {what}" for number, what in alone if what]
            found.wrong += named or [f"calls {numbers} of seed {seed}: {broken}"]
        if start // CALLS_OF_A_RUN % _INTERRUPTS == 0:
            interrupted = _interrupted(seed, start)
            found.counts["interrupted"] += 1
            if interrupted is not None:
                found.wrong.append(f"interrupt {start} of seed {seed}: {interrupted}")
    return found


def _broken_law(seed: int, numbers: Sequence[int], counts: Counter[str]) -> str | None:
    """Run an agent whose model calls each tool once; return what is wrong."""
    transport = ReplayTransport([_answer(len(numbers)), answer("openai-chat", "done")])
    tools = [_tool_of(seed, number, index) for index, number in enumerate(numbers)]
    one = _agent(transport, tools)
    try:
        text = one.run_sync("go").text
    except BaseException as error:  # noqa: BLE001 - whatever leaves the run is a finding
        return f"the run raised {type(error).__name__}"
    if text != "done" or len(transport.requests) != 2:
        return f"the run ended with {text!r} after {len(transport.requests)} requests"
    body = cast("dict[str, Any]", json.loads(transport.requests[1].body))
    sent = [part["tool_call_id"] for part in body["messages"] if part["role"] == "tool"]
    wanted = [f"call_{index}" for index in range(len(numbers))]
    logged = sorted(results_of(one), key=lambda result: wanted.index(result.tool_call_id))
    if sent != wanted:
        return f"results of {sent} were sent"
    if [result.tool_call_id for result in logged] != wanted:
        return f"the log has the results of {[result.tool_call_id for result in logged]}"
    try:
        one.state.log.to_json().encode()
    except Exception as error:  # noqa: BLE001 - as above
        return f"the log cannot be written: {type(error).__name__}"
    counts.update(str(result.status) for result in logged)
    return None


def _interrupted(seed: int, number: int) -> str | None:
    """Run an agent whose tool is interrupted or whose run is cancelled; return what is wrong."""
    chance = chance_of(seed, -1 - number)
    transport = ReplayTransport([_answer(1)])
    kind = chance.randrange(len(INTERRUPTS) + 1)
    if kind == len(INTERRUPTS):
        one = asyncio.run(_cancelled(transport))
    else:
        form = FORMS[chance.choice(tuple(FORMS))]
        tool = Tool.from_function(form(of_error(INTERRUPTS[kind]())), name="t0", description="Do.")
        one = _agent(transport, [tool])
        try:
            one.run_sync("go")
        except (KeyboardInterrupt, BaseExceptionGroup):
            pass
        else:
            return "the run went on after an interrupt"
    statuses = [result.status for result in results_of(one)]
    return None if statuses == [ToolExecutionStatus.FAILED] else f"the log has {statuses}"


async def _cancelled(transport: ReplayTransport) -> Talk[Any]:
    """Cancel a run while its call waits."""
    begun = asyncio.Event()

    async def t0() -> None:
        """Wait."""
        begun.set()
        await asyncio.Event().wait()

    one = _agent(transport, [t0])
    running = asyncio.ensure_future(one.run("go"))
    await begun.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await one.aclose()
    return one
