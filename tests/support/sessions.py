"""Generated sessions with providers that refuse a conversation whose state is not whole.

In: a seed.  Out: the answers of a model and the questions of a user, and for each provider its
server and a Model that calls it.
"""

import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, TypeAlias, cast

from binding_elsewhere import BindingChat, BindingGemini, BindingResponses
from binding_server import BindingServer, Block, ScriptedServer
from deltafold import (
    AnthropicModel,
    GeminiModel,
    ImagePart,
    Message,
    OpenAIResponsesModel,
    TextPart,
    load_model,
)
from deltafold.models.base import Model

SESSIONS: Final = int(os.environ.get("DELTAFOLD_SESSIONS", "1"))
"""How many sessions each way has for each provider."""
TURNS: Final = int(os.environ.get("DELTAFOLD_TURNS", "8"))
"""How long a session is."""

Script: TypeAlias = list[list[Block]]

NOTE: Final = "memory_notebook_replace"
"""Tool with which an agent changes its notebook."""
PNG: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9Q"
    "DwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@dataclass(frozen=True)
class Provider:
    """A provider that binds its state to the conversation.

    Attributes:
        dialect: the protocol.
        model_id: the model that is asked for.
        reported: the name of the same model in answers.
        serve: makes the server, of a script and the reported name.
        connect: makes a Model, of the address and the asked name.
    """

    dialect: str
    model_id: str
    reported: str
    serve: Callable[..., ScriptedServer]
    connect: Callable[[str, str], Model[Any]]


def _messages(url: str, model_id: str) -> Model[Any]:
    return AnthropicModel({"model_id": model_id, "max_tokens": 1000}, base_url=url, api_key="k")


def _responses(url: str, model_id: str) -> Model[Any]:
    config: Any = {"model_id": model_id, "store": False}
    return OpenAIResponsesModel(config, base_url=url, api_key="k")


def _gemini(url: str, model_id: str) -> Model[Any]:
    return GeminiModel({"model_id": model_id}, base_url=url, api_key="k")


def _vendor(name: str) -> Callable[[str, str], Model[Any]]:
    return lambda url, model_id: load_model(f"{name}/{model_id}", base_url=url, api_key="k")


def _filled(script: Script, *, reported: str | None = None) -> ScriptedServer:
    return BindingChat(script, reported=reported, takes_empty=False)


PROVIDERS: Final = {
    "messages": Provider(
        "anthropic-messages",
        "claude-fable-5-1",
        "claude-fable-5-1-20261001",
        BindingServer,
        _messages,
    ),
    "responses": Provider(
        "openai-responses", "gpt-5.4", "gpt-5.4-2026-03-05", BindingResponses, _responses
    ),
    "deepseek": Provider(
        "openai-chat", "deepseek-v4-pro", "deepseek-v4-pro", BindingChat, _vendor("deepseek")
    ),
    "moonshot": Provider("openai-chat", "kimi-k2.6", "kimi-k2.6", _filled, _vendor("moonshot")),
    "gemini": Provider(
        "gemini", "gemini-3-pro-preview", "gemini-3-pro-preview", BindingGemini, _gemini
    ),
}


def script_of(seed: int, turns: int, *, leads: bool = False, notes: bool = False) -> Script:
    """Return answers: thinking, also empty or in several blocks, texts, and parallel calls.

    Args:
        seed: decides everything.
        turns: how many of the answers have no call; the others come before them.
        leads: whether all thinking stands in front of an answer, in one block.
        notes: whether some answers change the notebook of an agent.
    """
    rng = random.Random(seed)  # noqa: S311 - no secret
    answers: Script = []
    for turn in range(turns):
        for step in range(rng.choice([0, 1, 1, 2])):
            at = f"{seed}_{turn}_{step}"
            thought: Block = {"type": "thinking", "thinking": f"plan {at}"}
            answer = [thought] * (rng.random() < 0.8)
            if not leads and rng.random() < 0.2:
                answer.append({"type": "text", "text": f"first {at}"})
                answer.append({"type": "thinking", "thinking": rng.choice(["", f"more {at}"])})
            answer += [
                {
                    "type": "tool_use",
                    "id": f"toolu_{at}_{number}",
                    "name": "find",
                    "input": {"place": f"Brest {number}"},
                }
                for number in range(rng.choice([1, 1, 2, 3]))
            ]
            if notes and rng.random() < 0.2:
                note = {"id": f"toolu_{at}_n", "name": NOTE, "input": {"text": f"note {at}"}}
                answer.append({"type": "tool_use", **note})
            answers.append(answer)
        said = [{"type": "thinking", "thinking": f"sum {seed}_{turn}"}] * (rng.random() < 0.8)
        answers.append([*said, {"type": "text", "text": f"answer {seed}_{turn} " * 10}])
    return answers


def questions(seed: int, turns: int) -> Iterator[Message]:
    """Yield the questions of a user, some with an image."""
    for turn in range(turns):
        text = TextPart(text=f"question {seed}_{turn} " + "word " * 20)
        image = [ImagePart(mime_type="image/png", data=PNG)] * (turn % 5 == 2)
        yield Message.user(text, *image)


def assert_whole(server: ScriptedServer) -> None:
    """Check that nothing was refused; each request repeats the last one, with all state."""
    assert server.refusals == []
    assert breaks(server) == []
    assert lost(server) == []


def breaks(server: ScriptedServer) -> list[int]:
    """Return the numbers of the requests that do not repeat the one before."""
    views = [view(body) for body in server.bodies]
    return [
        number
        for number, ((head, said), (next_head, next_said)) in enumerate(pairwise(views), 1)
        if head != next_head or said != next_said[: len(said)]
    ]


def lost(server: ScriptedServer) -> list[tuple[int, list[str]]]:
    """Return the state that did not come back, by the number of the request."""
    found = [
        (number, sorted(set(server.made[:known]) - set(server.replayed(body))))
        for number, (known, body) in enumerate(zip(server.known, server.bodies, strict=True))
    ]
    return [(number, marks) for number, marks in found if marks]


def view(body: Block) -> tuple[list[object], list[object]]:
    """Return the head of a request, and its blocks with their roles; cache marks aside."""
    bare = _unmarked(body)
    head = [bare.get(name) for name in ("system", "systemInstruction", "instructions", "tools")]
    config: Block = bare.get("toolConfig") or {}
    head.append(config.get("tools"))
    said: list[object] = []
    turns: Sequence[Block] = bare.get("messages") or bare.get("contents") or bare.get("input") or []
    for turn in turns:
        inside: str | list[Block] | None = turn.get("content", turn.get("parts"))
        if isinstance(inside, list) and turn.get("role"):
            rest = {key: one for key, one in turn.items() if key not in {"content", "parts"}}
            said += [(rest, block) for block in inside]
        else:
            said.append(turn)
    return head, said


def _unmarked(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        members = cast("Block", value)
        return {key: _unmarked(one) for key, one in members.items() if key != "cache_control"}
    if isinstance(value, list):
        return [_unmarked(one) for one in cast("list[object]", value) if not _is_cache_point(one)]
    return value


def _is_cache_point(value: object) -> bool:
    return isinstance(value, dict) and [*cast("Block", value)] == ["cachePoint"]
