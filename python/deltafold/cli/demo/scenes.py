"""The recordings of the demo.

In: the files beside this one.  Out: their bytes and what each shows.

Law: nothing here needs a package beside deltafold, so that a recording can be saved without the
extra.
"""

from dataclasses import dataclass
from importlib import resources
from typing import Final


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


CALL: Final = Scene("anthropic-messages.tool-call.sse", "Anthropic: thinking, text and a tool call")
CUT: Final = Scene(
    "anthropic-messages.cut.sse", "Anthropic: the connection breaks inside of a tool call"
)
SCENES: Final = (
    CALL,
    Scene("openai-chat.parallel-calls.sse", "OpenAI Chat: reasoning and two parallel tool calls"),
    CUT,
    Scene("openai-chat.error.sse", "OpenAI Chat: an error in the stream, under HTTP status 200"),
)
