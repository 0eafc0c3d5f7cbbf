"""The protocol of events that another package has parsed, by the first of them.

In: an object of an SDK, a dict of the wire, or an object with the same attributes.  Out: the name
of its dialect.

Law: the class of an SDK's object decides, else the members that `detect` knows.
"""

from itertools import chain
from typing import Final

from deltafold._core import detect_dialects
from deltafold.contract.event_objects import json_of_event
from deltafold.contract.exceptions import UnknownDialectError
from deltafold.transports.sources import Source

_MODULES: Final = (
    ("openai.types.chat", "openai-chat"),
    ("openai.types.responses", "openai-responses"),
    ("openai.lib.streaming.responses", "openai-responses"),
    ("anthropic", "anthropic-messages"),
    ("google.genai", "gemini"),
    ("mistralai", "mistral"),
    ("cohere", "cohere-chat"),
    ("ollama", "ollama"),
)
"""Modules of the SDKs' event classes, and the dialect of their events."""


def dialect_of_event(event: object) -> str:
    """Return the dialect of an event.

    Raises:
        UnknownDialectError: the event does not determine it, or is none.
    """
    if isinstance(event, bytes | bytearray | memoryview | str):
        raise UnknownDialectError(_UNNAMED)
    for base in type(event).__mro__:
        for module, dialect in _MODULES:
            if base.__module__ == module or base.__module__.startswith(f"{module}."):
                return dialect
    found = detect_dialects(b"data: " + json_of_event(event, 0).encode(), None)
    if len(found) != 1:
        raise UnknownDialectError(_UNNAMED)
    return found[0]


def name_by_first(source: Source) -> str:
    """Return the dialect of the first event of a source, which keeps all its events.

    A source whose first item does not determine the dialect is closed: a caller that names the
    dialect and passes the same iterator again must not lose its first item without a word.

    Raises:
        UnknownDialectError: the first item does not determine the dialect, or there is none.
    """
    try:
        first = next(source.chunks, b"")
        named = dialect_of_event(first)
    except BaseException:
        source.close()
        raise
    source.chunks = chain((first,), source.chunks)
    return named


_UNNAMED: Final = (
    "the first item does not say which dialect it speaks: name it, as in "
    "stream(chunks, 'openai-chat')"
)
