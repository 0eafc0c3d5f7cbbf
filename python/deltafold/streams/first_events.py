"""The protocol of events that another package has parsed, by the first of them.

In: an object of an SDK, a dict of the wire, or an object with the same attributes.  Out: the name
of its dialect.

Law: the class of an SDK's object decides, else the members that `detect` knows.
"""

from typing import Final

from deltafold._core import detect_dialects
from deltafold.contract.event_objects import json_of_event
from deltafold.contract.exceptions import UnknownDialectError

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
        UnknownDialectError: the event does not determine it.
        TypeError: it is neither a dict nor an object with attributes.
    """
    for base in type(event).__mro__:
        for module, dialect in _MODULES:
            if base.__module__ == module or base.__module__.startswith(f"{module}."):
                return dialect
    found = detect_dialects(b"data: " + json_of_event(event, 0).encode(), None)
    if len(found) == 1:
        return found[0]
    fits = " and ".join(found) or "no dialect"
    raise UnknownDialectError(
        f"the first event fits {fits}: name the dialect that it speaks, as in "
        "stream(chunks, 'openai-chat')"
    )
