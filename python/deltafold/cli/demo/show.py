"""The scenes of the demo, one after the other.

In: the recordings.  Out: each answer while it grows, if there is a terminal, and once as it ended;
one answer in three protocols; an agent; the speed of reading.

Laws: no key is read, and nothing is sent but to this machine. The figures come last.
"""

import sys
from io import TextIOWrapper

from deltafold import Message, ModelError
from deltafold.cli.demo import agent, page, play, protocols, speed
from deltafold.cli.demo.scenes import CALL, CUT, SCENES
from deltafold.cli.exits import EXIT_DONE, EXIT_ERROR

_PACE_SECONDS = 0.012
"""Seconds between two events for a person: about the pace of a fast model."""

_SAVE = (
    "Look at it: deltafold demo --save broken.sse, then deltafold fold broken.sse and "
    "deltafold inspect broken.sse"
)


def run() -> int:
    """Show all scenes; returns the exit code."""
    output: object = sys.stdout
    if isinstance(output, TextIOWrapper):
        # A pipe of Windows has an encoding that lacks characters of the recordings.
        output.reconfigure(errors="backslashreplace")
    pace = _PACE_SECONDS if sys.stdout.isatty() else 0.0
    page.paragraph(
        "deltafold demo: recorded answers of two providers come from a server on this machine, "
        "and are read through the real clients of openai and anthropic. No key is needed. "
        "Each answer is shown as deltafold fold prints it."
    )
    with play.Player(pace) as player:
        for scene in SCENES:
            page.title(scene.title)
            _conclude(player.play(scene.dialect, scene.body))
            if scene is CUT:
                page.item(_SAVE)
    page.title("One answer of Anthropic, through the gateway, at clients of three protocols")
    same = _agree(protocols.show(CALL.body, pace))
    page.title("An agent: two providers, tools, an approval, and a stream that breaks off")
    agent.show()
    page.title("Events a second, read through the same client of the SDK")
    print(f"  {'protocol':<20}{'deltafold':>12}{'SDK helper':>12}{'ratio':>9}")
    for dialect, taken in speed.measured():
        figures = f"{taken.ours:>12,.0f}{taken.sdk:>12,.0f}{taken.ours / taken.sdk:>8.1f}x"
        print(f"  {dialect:<20}{figures}")
    return EXIT_DONE if same else EXIT_ERROR


def _conclude(outcome: Message | ModelError) -> None:
    """Print an answer as `deltafold fold` does, behind the failure that ended it."""
    if isinstance(outcome, ModelError):
        page.item(f"ModelError {outcome}")
        if outcome.partial_message is None:
            return
        outcome = outcome.partial_message
    for line in str(outcome).splitlines():
        page.item(line)
    for call in outcome.runnable_tool_calls:
        page.item(f"may run: {call.tool_name} ({call.tool_call_id})")


def _agree(columns: list[protocols.Column]) -> bool:
    """Say whether the answer is the same for all clients, and return it."""
    first = columns[0]
    same = all(
        (one.text, one.arguments, one.tokens) == (first.text, first.arguments, first.tokens)
        for one in columns
    )
    if same:
        page.item(
            "All three clients read the same text, the same arguments of the call, and the same "
            f"{first.tokens[0]:,} input and {first.tokens[1]:,} output tokens."
        )
        return True
    for one in columns:
        page.item(f"NOT the same: {one.title}: {one.text} {one.arguments} {one.tokens}")
    return False
