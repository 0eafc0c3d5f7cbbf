"""Kinds of content in a request, in one neutral form for all protocols.

A content of a message has the role of its speaker: "system", "user", "assistant" or "result".
"""

from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Text:
    """A text; in a result its role is "result", and that of a refusal is "refusal".

    Attributes:
        is_cited: whether the text has citations, which split a text anywhere.
    """

    role: str
    text: str
    is_cited: bool = False


@dataclass(frozen=True, slots=True)
class Medium:
    """An image, a recording or a document.

    Attributes:
        form: `data` is base64 without padding; `url` is an address; `id` is an id of the provider's
            file store.
        kind: `image`, `audio`, `video` or `document`, "" where the body does not say it.
    """

    role: str
    form: str
    value: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Json:
    """A result that is JSON instead of text."""

    value: Any


@dataclass(frozen=True, slots=True)
class Block:
    """A block of one provider, with the texts in it."""

    role: str
    kind: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A piece of reasoning; its text is empty if it is encrypted."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool; free text is the argument `input`."""

    name: str
    arguments: Any
    id: str | None


Inside: TypeAlias = Text | Medium | Json | Block


@dataclass(frozen=True, slots=True)
class Result:
    """A result of a call.

    Attributes:
        call: number of the call among all calls, None if no call is in the body.
    """

    call: int | None
    id: str | None
    contents: tuple[Inside, ...]
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """The definition of a tool that the caller runs."""

    name: str
    description: str
    schema: Any


Content: TypeAlias = Inside | Reasoning | Call | Result
