"""The request by itself: from the client's bytes to the body for the upstream, without a network.

In: a request with one message, and one of an agent, in the client's protocol.  Out: microseconds of
CPU, and the size of each request in bytes.

Law: the measured functions are those of a call of the gateway, up to the sending.
"""

import gc
import json
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from deltafold import AnthropicConfig, AnthropicModel, OpenAIChatConfig, OpenAIChatModel
from deltafold.dialects import DIALECTS
from deltafold.gateway import open_stream, read_request
from deltafold.gateway.table import ModelTable, Upstream
from deltafold.message.messages import Message, ToolCallPart
from deltafold.specs.tool_specs import ToolSpec

if TYPE_CHECKING:
    from any_name import AnyName

CHAT: Final = "openai-chat"
MESSAGES: Final = "anthropic-messages"
WAYS: Final = ((CHAT, "chat"), (MESSAGES, "chat"), (CHAT, "messages"), (MESSAGES, "messages"))
TOOLS: Final = 20
TURNS: Final = 30
ABOUT: Final = (
    f"From the client's bytes to those for the upstream. An agent's request has {TOOLS} tools and a"
    f" history of {TURNS} calls with their results."
)
_SAMPLE_SECONDS: Final = 0.05
_ROUNDS: Final = 15


def agent_tools() -> list[ToolSpec]:
    """Return the tools of an agent."""
    member = {"type": "string", "description": "A path below the root of the repository."}
    schema: dict[str, object] = {
        "type": "object",
        "properties": dict.fromkeys(("path", "other", "pattern", "reason"), member),
        "required": ["path"],
        "additionalProperties": False,
    }
    about = "Reads a file of the repository and returns the lines that match a pattern. " * 6
    return [
        ToolSpec(name=f"tool_{number}", description=about, parameter_schema=schema)
        for number in range(TOOLS)
    ]


def agent_history() -> list[Message]:
    """Return the history of an agent: a question, then calls and their results."""
    history = [Message.system("You are a careful engineer. " * 100), Message.user("Mend the test.")]
    for turn in range(TURNS):
        call = ToolCallPart(
            tool_call_id=f"call_{turn}",
            tool_name=f"tool_{turn % TOOLS}",
            arguments={"path": f"src/{turn}.py"},
        )
        said = "I look at the file that the failing test imports."
        history.append(Message.assistant(said, call))
        history.append(Message.tool_result(call.tool_call_id, "a line\n" * 40))
    return history


def bodies(protocol: str) -> dict[str, bytes]:
    """Return the requests of a client, by their names."""
    row = DIALECTS[protocol]
    config = row.config_class.model_validate({"model_id": "m", "max_tokens": 1000})
    given: dict[str, tuple[list[Message], list[ToolSpec]]] = {
        "one message": ([Message.user("Count the tokens.")], []),
        "an agent's": (agent_history(), agent_tools()),
    }
    return {
        name: json.dumps(row.render(history, tools, config).body).encode()
        for name, (history, tools) in given.items()
    }


def translate(protocol: "AnyName", body: bytes, upstream: Upstream) -> object:
    """Do what the gateway does before it sends a request."""
    return open_stream(read_request(protocol, body), upstream)


def translations() -> Iterator[tuple[str, str, int, Callable[[], object]]]:
    """Yield the way, the name of the request, its bytes, and the function that translates it."""
    table = ModelTable(
        {
            "chat": OpenAIChatModel(OpenAIChatConfig(model_id="m"), api_key="unused"),
            "messages": AnthropicModel(AnthropicConfig(model_id="m"), api_key="unused"),
        }
    )
    names = {CHAT: "Chat", MESSAGES: "Messages"}
    for protocol, model in WAYS:
        upstream = table.find(model)
        way = f"{names[protocol]} to {model.title()}"
        for name, body in bodies(protocol).items():
            yield way, name, len(body), partial(translate, protocol, body, upstream)


def microseconds(work: Callable[[], object]) -> float:
    """Return the CPU of a translation."""
    begun = time.process_time()
    work()
    times = max(1, int(_SAMPLE_SECONDS / max(time.process_time() - begun, 1e-6)))
    samples: list[float] = []
    gc.collect()
    for _ in range(_ROUNDS):
        begun = time.process_time()
        for _ in range(times):
            work()
        samples.append((time.process_time() - begun) / times * 1e6)
    return statistics.median(samples)


def table() -> str:
    """Measure the translations, and return their table."""
    sizes: dict[str, list[int]] = {}
    cells: dict[str, list[str]] = {}
    for way, name, size, work in translations():
        sizes.setdefault(name, []).append(size)
        cells.setdefault(way, []).append(f"{microseconds(work):.0f}")
    heads = [f"{name}, {min(found) / 1000:.1f} KB" for name, found in sizes.items()]
    rows = [f"| {' | '.join(['µs of CPU a request', *heads])} |", f"|---{'|---:' * len(heads)}|"]
    rows += [f"| {' | '.join([way, *found])} |" for way, found in cells.items()]
    return "\n".join(rows)
