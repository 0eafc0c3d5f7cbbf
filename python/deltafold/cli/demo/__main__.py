"""Streams four recordings through both adapters, and one through the gateway.

In: the recordings beside this file.  Out: each stream as it grows, its message, its usage, the same
answer in three protocols, and the speed of reading.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from deltafold import Message, ModelError

if TYPE_CHECKING:
    from deltafold.cli.demo import protocols

MISSING = "the demo calls through the real SDK clients: pip install 'deltafold[demo]'"

# Seconds between two events: about the pace of a fast model.
PACE_SECONDS = 0.012


@dataclass(frozen=True, slots=True)
class Scene:
    """One recording and its purpose in the demonstration."""

    file: str
    title: str

    @property
    def dialect(self) -> str:
        """Dialect of the recording."""
        return self.file.partition(".")[0]

    @property
    def body(self) -> bytes:
        """The recording's bytes."""
        return (resources.files("deltafold.cli.demo") / "recordings" / self.file).read_bytes()


SCENES = (
    Scene("anthropic-messages.tool-call.sse", "Anthropic: thinking, text and a tool call"),
    Scene("openai-chat.parallel-calls.sse", "OpenAI Chat: reasoning and two parallel tool calls"),
    Scene("anthropic-messages.cut.sse", "Anthropic: the connection breaks inside a tool call"),
    Scene("openai-chat.error.sse", "OpenAI Chat: an error in the stream, under HTTP status 200"),
)


def main() -> int:
    """Show all scenes; returns the exit code."""
    try:
        from deltafold.cli.demo import play, protocols, speed  # noqa: PLC0415 - they import the extra's packages
    except ModuleNotFoundError as missing:
        print(f"deltafold: {missing.name} is not installed; {MISSING}", file=sys.stderr)
        return 1
    print("deltafold demo: recordings from a loopback server, through the real SDK clients")
    speeds: dict[str, speed.Speed] = {}
    with play.Player(PACE_SECONDS) as player:
        for scene in SCENES:
            print(f"\n{scene.title}")
            _conclude(player.play(scene.dialect, scene.body))
            if scene.dialect not in speeds:
                speeds[scene.dialect] = speed.measure(scene.dialect, scene.body)
    scene = SCENES[0]
    print(f"\n{scene.title}, through the gateway to clients of three protocols")
    same = _agree(protocols.show(scene.body, PACE_SECONDS))
    _compare({name: (taken.ours, taken.sdk) for name, taken in speeds.items()})
    return 0 if same else 1


def _conclude(outcome: Message | ModelError) -> None:
    if isinstance(outcome, ModelError):
        print(f"  = ModelError: {outcome}")
        if outcome.partial_message is None:
            return
        print("  = what was received before:")
        outcome = outcome.partial_message
    for line in str(outcome).splitlines():
        print(f"  = {line}")


def _agree(columns: "Sequence[protocols.Column]") -> bool:
    """Show what the clients made of the answer; returns whether it is the same for all."""
    first = columns[0]
    same = all(
        (one.text, one.arguments, one.tokens) == (first.text, first.arguments, first.tokens)
        for one in columns
    )
    print(f"  = text: {first.text}")
    print(f"  = arguments of the call: {first.arguments}")
    print(f"  = {first.tokens[0]:,} input tokens, {first.tokens[1]:,} output tokens")
    print(f"  = {'the same' if same else 'NOT the same'} for all three clients")
    return same


def _compare(speeds: Mapping[str, tuple[float, float]]) -> None:
    print("\nEvents per second over loopback HTTP, the same recording stretched and flat out")
    print(f"  {'dialect':<22}{'deltafold':>12}{'SDK helper':>12}{'ratio':>8}")
    for dialect, (ours, sdk) in speeds.items():
        print(f"  {dialect:<22}{ours:>12,.0f}{sdk:>12,.0f}{ours / sdk:>7.1f}x")


if __name__ == "__main__":
    sys.exit(main())
