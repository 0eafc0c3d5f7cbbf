"""Calls with an outlined history: what is known of their form is not rendered again.

In: the arguments of a call, and the function that writes one.  Out: the written call.

Laws: the function writes a sample of the history, and the call is a copy of that one with the
texts, ids, names and arguments of the history (`dialects/stencils.py`). What the sample cannot
stand for is written by the function itself. The members of the body, and the messages, are made
when somebody looks at them.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final, cast

from deltafold.dialects import Dialect
from deltafold.dialects.settings import ModelConfig
from deltafold.dialects.stencils import OutlinedMessages, Ruled, Stencils, Translated
from deltafold.models.call_inputs import CallArguments
from deltafold.models.json_body import encoded
from deltafold.models.prepared import WrittenCall

STENCILS: Final = Stencils[WrittenCall]()
"""Calls of recent forms, of all Models."""


class _Same:
    """An object as a key: it is that object alone, as long as the key is kept."""

    def __init__(self, of: object) -> None:
        self._of = of

    def __hash__(self) -> int:
        return id(self._of)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._of is other._of


class _Equal:
    """Tools as a key: all that are equal."""

    def __init__(self, of: object) -> None:
        self._of = of

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Equal) and (self._of is other._of or self._of == other._of)


class JsonMembers(Mapping[str, object]):
    """The members of a body; those with the conversation are read when somebody looks at them.

    >>> JsonMembers(b'{"model":"m","messages":[]}', {"model": "m", "messages": []}, ("messages",))
    """

    def __init__(self, content: bytes, alike: Mapping[str, object], history: Sequence[str]) -> None:
        """`alike` is a body with the same members, and the same values outside of `history`."""
        self._content = content
        self._alike = alike
        self._history = history

    @cached_property
    def _all(self) -> dict[str, object]:
        return cast("dict[str, object]", json.loads(self._content))

    def __getitem__(self, name: str) -> object:
        return (self._all if name in self._history else self._alike)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._alike)

    def __len__(self) -> int:
        return len(self._alike)


def written_alike(
    asked: CallArguments,
    config: ModelConfig,
    row: Dialect,
    write: Callable[[CallArguments], WrittenCall],
) -> WrittenCall | None:
    """Return a call that is written as one of its form was, None if it has to be written itself.

    Args:
        asked: the arguments of the call.
        config: the settings of the Model.
        row: the dialect of the Model.
        write: writes a call.
    """
    messages = asked.messages
    if (
        not isinstance(messages, OutlinedMessages)
        or asked.continue_from is not None
        or asked.output is not None
        or asked.system_prompt is not None
        or asked.system_prompt_content is not None
    ):
        return None

    def rules(body: bytes) -> Ruled[WrittenCall]:
        written = write(replace(asked, messages=list(messages.read(body))))
        content = encoded(written.body, written.sources)
        return Ruled(
            Translated(content, cast("Sequence[dict[str, object]]", written.notes), written),
            written.messages,
            (),
            "",
            depends_on_turns=not written.is_typical,
            own_names=row.named_as_own(written.tools),
        )

    given = (asked.params, asked.tool_choice, asked.notes)
    asks = (asked.repair, asked.strict, asked.streamed)
    settings = (_Same(config), messages.key, _Equal(asked.tool_specs), repr(given), asks)
    made = STENCILS.filled(messages.outline, settings, rules, row.keeps)
    if made is None:
        return None
    content, notes, alike = made
    body = JsonMembers(content, alike.body, row.history)
    return replace(alike, body=body, messages=messages, notes=notes, content=content)
