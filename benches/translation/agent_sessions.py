"""Requests of an agent, each with texts of its own, in the three protocols that clients speak.

In: a number and a count of turns.  Out: the body of the request, and whether a translation of it
has kept every text and every argument.

Laws: two sessions with different numbers share no text of a message, no path and no id of a call,
so that a translator that stores what it has seen finds nothing of a new session. The same number
with one turn more is the same session, one turn later. A turn is a call of a tool and its result.
"""

import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from deltafold.contract.names import RequestProtocol

MODEL: Final = "gpt-5-mini"
MAX_TOKENS: Final = 8000
TOOLS: Final = 20
WORDS_IN_A_RESULT: Final = 268
"""About 1.5 KB of text, with quotes, line ends and letters that JSON escapes."""
_WORDS: Final = (
    *("def", "return", "self", "value", "line", "x = 1", '"text"', "{", "}", "# note"),
    "überprüfen",
)
_ENDS: Final = (" ", " ", " ", " ", "\n")
_ABOUT: Final = "Reads a file of the project and returns its text. " * 6
_QUESTION: Final = "Fix the bug"
_SAID: Final = "I look at the next file."
_SCHEMA: Final[dict[str, object]] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "where"},
        "n": {"type": "integer"},
    },
    "required": ["path"],
}


@dataclass(frozen=True)
class Turn:
    """A call of a tool and its result."""

    call_id: str
    tool: str
    arguments: dict[str, object]
    result: str


@dataclass(frozen=True)
class Session:
    """The request of an agent after some turns.

    Attributes:
        number: what no other session has.
        count: number of turns.
        own_tools: whether its tools have descriptions that no other session has.
    """

    number: int
    count: int
    own_tools: bool = False

    def body(self, protocol: "RequestProtocol") -> bytes:
        """Return the request as a client of this protocol sends it.

        Raises:
            KeyError: the protocol is not one of the three.
        """
        write = {
            "openai-chat": self._chat,
            "openai-responses": self._responses,
            "anthropic-messages": self._messages,
        }[protocol]
        return json.dumps(write() | {"model": MODEL, "stream": True}).encode()

    def check(self, translated: bytes) -> None:
        """Read a translation.

        Raises:
            AssertionError: a text or an argument of the session is missing.
        """
        found = set(_strings(json.loads(translated)))
        turns = self._turns()
        missing = {turn.result for turn in turns} - found
        assert not missing, f"{len(missing)} results of {len(turns)} are missing"
        for turn in turns:
            path = str(turn.arguments["path"])
            assert path in found or path.encode() in translated, f"{path} is missing"
        assert any(self._system() in text for text in found), "the instructions are missing"
        assert all(name.encode() in translated for name, _ in self._tools())

    def _system(self) -> str:
        return f"You are a careful engineer {self.number}. " * 150

    def _tools(self) -> list[tuple[str, str]]:
        about = f"{_ABOUT}{self.number}" if self.own_tools else _ABOUT
        return [(f"tool_{number}", about) for number in range(TOOLS)]

    def _turns(self) -> list[Turn]:
        drawn = random.Random(self.number)  # noqa: S311 - texts are drawn from a seed
        turns: list[Turn] = []
        for index in range(self.count):
            words = drawn.choices(_WORDS, k=WORDS_IN_A_RESULT)
            ends = drawn.choices(_ENDS, k=WORDS_IN_A_RESULT)
            pairs = zip(words, ends, strict=True)
            turns.append(
                Turn(
                    f"call_{self.number}_{index:04d}",
                    f"tool_{index % TOOLS}",
                    {"path": f"/src/{self.number}/a{index}.py", "n": index},
                    "".join(word + end for word, end in pairs),
                )
            )
        return turns

    def _chat(self) -> dict[str, object]:
        messages: list[object] = [
            {"role": "system", "content": self._system()},
            {"role": "user", "content": _QUESTION},
        ]
        for turn in self._turns():
            function = {"name": turn.tool, "arguments": json.dumps(turn.arguments)}
            call = {"id": turn.call_id, "type": "function", "function": function}
            messages.extend(
                (
                    {"role": "assistant", "content": _SAID, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": turn.call_id, "content": turn.result},
                )
            )
        tools = [
            {
                "type": "function",
                "function": {"name": name, "description": about, "parameters": _SCHEMA},
            }
            for name, about in self._tools()
        ]
        return {"messages": messages, "tools": tools, "max_tokens": MAX_TOKENS}

    def _responses(self) -> dict[str, object]:
        items: list[object] = [{"role": "user", "content": _QUESTION}]
        for turn in self._turns():
            said = {"type": "output_text", "text": _SAID}
            items.extend(
                (
                    {"type": "message", "role": "assistant", "content": [said]},
                    {
                        "type": "function_call",
                        "call_id": turn.call_id,
                        "name": turn.tool,
                        "arguments": json.dumps(turn.arguments),
                    },
                    {
                        "type": "function_call_output",
                        "call_id": turn.call_id,
                        "output": turn.result,
                    },
                )
            )
        tools = [
            {"type": "function", "name": name, "description": about, "parameters": _SCHEMA}
            for name, about in self._tools()
        ]
        return {
            "instructions": self._system(),
            "input": items,
            "tools": tools,
            "max_output_tokens": MAX_TOKENS,
        }

    def _messages(self) -> dict[str, object]:
        messages: list[object] = [{"role": "user", "content": _QUESTION}]
        for turn in self._turns():
            call = {
                "type": "tool_use",
                "id": turn.call_id,
                "name": turn.tool,
                "input": turn.arguments,
            }
            result = {
                "type": "tool_result",
                "tool_use_id": turn.call_id,
                "content": turn.result,
            }
            messages.extend(
                (
                    {"role": "assistant", "content": [{"type": "text", "text": _SAID}, call]},
                    {"role": "user", "content": [result]},
                )
            )
        tools = [
            {"name": name, "description": about, "input_schema": _SCHEMA}
            for name, about in self._tools()
        ]
        return {
            "system": self._system(),
            "messages": messages,
            "tools": tools,
            "max_tokens": MAX_TOKENS,
        }


def _strings(value: object) -> list[str]:
    """Return the strings of a JSON value, without the names of members."""
    found: list[str] = []
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            found.append(part)
        elif isinstance(part, list):
            waiting.extend(cast("list[object]", part))
        elif isinstance(part, dict):
            waiting.extend(cast("dict[str, object]", part).values())
    return found
