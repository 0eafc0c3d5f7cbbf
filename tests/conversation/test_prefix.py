"""What was sent is sent again unchanged, with a provider that binds reasoning to it.

In: sessions of an agent, of a Model and of a conversation log.  Out: the requests, and the refusals
of the provider.
"""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import pytest

from binding_server import BindingServer, Block, thinking_in
from deltafold import AnthropicModel, Message
from deltafold.conversation import Agent, AgentState, ConversationLog, MemoryNotebookWidget
from deltafold.testing.playlist import Request
from talks import Talk

MODEL: Final = "claude-fable-5-1"
NOTE: Final = "memory_notebook_replace"


def thought(text: str) -> Block:
    return {"type": "thinking", "thinking": text}


def said(text: str) -> Block:
    return {"type": "text", "text": text}


def call(number: object, name: str, **arguments: object) -> Block:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}


def model_of(server: BindingServer, model_id: str = MODEL) -> AnthropicModel:
    config = {"model_id": model_id, "max_tokens": 1000}
    return AnthropicModel(config, base_url=server.url, api_key="k")


def tide(place: str) -> str:
    """Look up the tide."""
    return f"{place}: 17:42. " * 40


def script(turns: int) -> list[list[Block]]:
    """Return answers with thinking, parallel calls, changes of the notebook, and texts."""
    answers: list[list[Block]] = []
    for number in range(turns):
        answers.append([thought(f"plan {number}"), call(f"{number}a", "tide", place="Brest")])
        if number % 3 == 1:
            answers[-1].append(call(f"{number}b", "tide", place="Dover"))
        if number % 4 == 2:
            note = call(f"{number}n", NOTE, text=f"note {number}")
            answers.append([thought(""), said(" \n"), thought("and then"), note])
        answers.append([thought(f"sum {number}"), said(f"answer {number} " * 20)])
    return answers


def is_prefix(before: Block, after: Block) -> bool:
    """Return whether a request repeats another one: its system, its tools, its blocks."""
    same = all(before.get(name) == after.get(name) for name in ("system", "tools"))
    blocks = [
        [(message["role"], block) for message in body["messages"] for block in message["content"]]
        for body in (before, after)
    ]
    return same and blocks[1][: len(blocks[0])] == blocks[0]


def run(
    server: BindingServer,
    turns: int,
    *,
    is_sync: bool,
    log: ConversationLog | None = None,
    **options: Any,  # noqa: ANN401 - of the agent
) -> None:
    """Run an agent so many times; in the middle it begins anew from its log."""
    state = AgentState.create_default("Be brief.", log=log)
    for part in (range(turns // 2), range(turns // 2, turns)):
        model = model_of(server)
        config = options.get("config", {})
        recipe = Agent(config, [tide], model=model, compact=options.get("compact"))
        agent = Talk(recipe, state, (model,))
        for number in part:
            question = f"question {number} " + "word " * 30
            if is_sync:
                agent.run_sync(question)
            else:
                asyncio.run(_closing(agent, question))
        state = AgentState(ConversationLog.from_json(state.log.to_json()), [MemoryNotebookWidget()])


async def _closing(agent: Talk[None], question: str) -> None:
    async with agent:
        await agent.run(question)


@pytest.mark.parametrize("is_sync", [False, True])
def test_an_agent_repeats_its_requests_with_all_thinking(is_sync: bool) -> None:
    answers = script(12)
    with BindingServer(answers) as server:
        run(server, 12, is_sync=is_sync)
    assert server.refusals == []
    assert all(is_prefix(before, after) for before, after in pairwise(server.bodies))
    made = sum(one["type"] == "thinking" for answer in answers[:-1] for one in answer)
    assert len(thinking_in(server.bodies[-1])) == made


@pytest.mark.one_in(3)
@pytest.mark.parametrize("budget", [1_500, 3_000, 6_000])
def test_a_budget_cuts_seldom_and_takes_the_bound_thinking_along(budget: int) -> None:
    answers = script(30)
    with BindingServer(answers) as server:
        run(server, 30, is_sync=True, config={"context": {"token_budget": budget}})
    assert server.refusals == []
    cuts = [not is_prefix(before, after) for before, after in pairwise(server.bodies)]
    assert 0 < sum(cuts) <= len(cuts) / 3, sum(cuts)
    # The thinking since the last cut comes back.
    last = len(cuts) - cuts[::-1].index(True)
    since = answers[last : len(server.bodies) - 1]
    made = sum(one["type"] == "thinking" for answer in since for one in answer)
    assert len(thinking_in(server.bodies[-1])) >= made


class SmallBindingServer(BindingServer):
    """A BindingServer whose model has a small window."""

    limit = 20_000

    def refusal_of(self, body: Block, request: Request) -> str | None:
        """Refuse long requests too."""
        if len(request.body) > self.limit:
            return f"prompt is too long: {len(request.body)} tokens > {self.limit} maximum"
        return super().refusal_of(body, request)


def shortened(messages: Sequence[Message]) -> str:
    return f"{len(messages)} messages about tides"


@pytest.mark.parametrize("compact", [None, shortened])
def test_a_context_that_was_too_long_takes_the_bound_thinking_along(compact: Any) -> None:  # noqa: ANN401 - a function
    with SmallBindingServer(script(40)) as server:
        config = {"context": {"on_overflow": "compact"}}
        run(server, 40, is_sync=True, config=config, compact=compact)
    assert len(server.refusals) == 1
    assert "too long" in server.refusals[0]
    cuts = [not is_prefix(before, after) for before, after in pairwise(server.bodies)]
    assert 0 < sum(cuts) <= len(cuts) / 3, sum(cuts)
    assert thinking_in(server.bodies[-1])


def test_a_summary_takes_the_bound_thinking_along() -> None:
    seen: list[int] = []

    def summarise(messages: Sequence[Message]) -> str:
        seen.append(len(messages))
        return f"{len(messages)} messages about tides"

    with BindingServer(script(30)) as server:
        config = {"context": {"token_budget": 3_000}}
        run(server, 30, is_sync=True, config=config, compact=summarise)
    assert seen
    assert server.refusals == []


def test_the_note_says_what_is_not_sent() -> None:
    with BindingServer(script(30)) as server:
        state = AgentState.create_default("Be brief.")
        config = {"context": {"token_budget": 1_500}}
        agent = Talk(Agent(config, [tide], model=model_of(server)), state)
        results = [agent.run_sync(f"question {number} " + "word " * 30) for number in range(6)]
    codes = {
        warning["code"]
        for result in results
        if result.message is not None
        for warning in result.message.meta.warnings
    }
    assert "unsigned_thinking" in codes


def test_a_model_sends_a_system_message_behind_the_user() -> None:
    with BindingServer([[thought("t1"), said("a1")], [thought("t2"), said("a2")]]) as server:
        model = model_of(server)
        history = [Message.system("Be brief."), Message.user("q1")]
        history.append(model.send_message_sync(history))
        history += [Message.system("New mode."), Message.user("q2")]
        model.send_message_sync(history)
        model.close()
    assert server.refusals == []
    assert is_prefix(*server.bodies)
    assert [one["role"] for one in server.bodies[-1]["messages"]][-2:] == ["user", "system"]


def test_thinking_of_models_that_bind_none_survives_a_cut() -> None:
    config = {"context": {"token_budget": 1_500}}
    with BindingServer(script(12), binds=False) as server:
        model = model_of(server, "claude-sonnet-4-5")
        agent = Talk(Agent(config, [tide], model=model))
        for number in range(12):
            agent.run_sync(f"question {number} " + "word " * 30)
    assert not all(is_prefix(before, after) for before, after in pairwise(server.bodies))
    for body in server.bodies:
        answers = [one for one in body["messages"] if one["role"] == "assistant"]
        assert all(one["content"][0]["type"] == "thinking" for one in answers)
