"""Calls whose body is rendered with a stencil: those with an outlined or a growing history.

In: the arguments of a call, and the function that renders one.  Out: the rendered call.

Laws: the function renders a sample of the history, and the body is a copy of that one with the
texts, ids, names and arguments of the history (`dialects/stencils.py`). The function renders the
call itself if the sample does not represent it. The history in the body is parsed when it is read.
"""

import json
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import FunctionType, MethodType
from typing import Final, TypeGuard, cast

from pydantic import BaseModel

from deltafold._core import RequestOutline, plain_json
from deltafold.dialects import Dialect, message_rows
from deltafold.dialects.settings import ModelConfig
from deltafold.dialects.stencils import OutlinedMessages, Ruled, Stencils, Translated
from deltafold.message.messages import Message, Role
from deltafold.models.call_inputs import (
    CallArguments,
    Messages,
    Tools,
    conversation_of,
    tools_of,
)
from deltafold.models.json_body import encoded
from deltafold.models.kept_rounds import KeptRounds, Learned
from deltafold.models.prepared import WrittenCall
from deltafold.specs.tool_specs import ToolSpec

STENCILS: Final = Stencils[WrittenCall]()
"""Calls of recent forms, of all Models."""

ROUNDS: Final = KeptRounds()
"""Rendered rounds of the conversations whose messages are alive."""


class _Same:
    """An object as a key: it is that object alone, as long as the key is kept."""

    def __init__(self, of: object) -> None:
        self._of = of

    def __hash__(self) -> int:
        return id(self._of)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._of is other._of


class _Function:
    """A function or a class as a key: it is that one alone, as long as its words stay the same.

    The key does not keep it alive. A tool is often a method of an object that has the conversation,
    and a conversation that its own rounds refer to would never be freed.
    """

    def __init__(self, of: FunctionType | MethodType | type) -> None:
        # Each look at a method makes another object.
        own = cast("FunctionType", of.__func__) if isinstance(of, MethodType) else of
        self._is_method = own is not of
        self._of = weakref.ref(own)
        self._words = (own.__doc__, own.__name__, "")
        if not isinstance(own, type):
            typed = (own.__annotations__, own.__defaults__, own.__kwdefaults__)
            self._words = (own.__doc__, own.__name__, repr(typed))

    def __hash__(self) -> int:
        return hash(self._words)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Function):
            return False
        own = self._of()
        is_same = own is not None and own is other._of()
        return is_same and (self._is_method, self._words) == (other._is_method, other._words)


class JsonMembers(Mapping[str, object]):
    """The members of a body; those with the conversation are read when somebody looks at them.

    >>> JsonMembers(
    ...     b'{"model":"m","messages":[]}', {"model": "m", "messages": []}, ("messages",)
    ... )
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
    """Return a call that a stencil has rendered, None if the renderer has to do it.

    Args:
        asked: the arguments of the call, whose messages `may_repeat`.
        config: the settings of the Model.
        row: the dialect of the Model.
        write: writes a call.
    """
    is_other = asked.continue_from is not None or asked.output is not None
    if is_other or _has_iterator(asked.tool_specs, asked.system_prompt_content):
        return None
    messages = asked.messages
    if isinstance(messages, OutlinedMessages):
        settings = _settings(asked, config, messages.key)
        has_system = asked.system_prompt is not None or asked.system_prompt_content is not None
        if settings is None or has_system:
            return None
        rules = _Rules(asked, row, write, messages.read)
        made = STENCILS.filled(messages.outline, settings, rules, row.keeps)
        if made is None:
            return None
        content, notes, alike = made
    elif _may_have_rounds(messages):
        said = [*_system(asked), *messages]
        settings = _settings(asked, config, None)
        rules = _Rules(asked, row, write, _read(said))
        found = None if settings is None else _kept(said, settings, rules, row)
        if found is None:
            return None
        content, alike = found
        messages, notes = said, [dict(note) for note in alike.notes]
    else:
        return None
    body = JsonMembers(content, alike.body, row.history)
    return replace(alike, body=body, messages=messages, notes=notes, content=content)


def _has_iterator(*given: object) -> bool:
    """Return whether a value can be read only once: the rules do."""
    return any(isinstance(one, Iterator) for one in given)


def _may_have_rounds(messages: Messages) -> TypeGuard[Sequence[Message]]:
    """Return whether a stencil may render these messages; the others are checked later.

    Objects of another form become new messages in each call, so that no rounds of them are kept. A
    renderer treats an answer at the end in its own way.
    """
    last = messages[-1] if isinstance(messages, list | tuple) else None
    return isinstance(last, Message) and last.role is not Role.ASSISTANT


def _settings(asked: CallArguments, config: ModelConfig, key: Hashable) -> Hashable | None:
    """Return the key of all that a call depends on beside its messages, None without a key.

    The caller may change each object later, so that the key has what it says now.
    """
    asks = (asked.repair, asked.strict, asked.streamed)
    try:
        given = _written([asked.params, asked.tool_choice, asked.notes])
        tools = _key_of_tools(asked.tool_specs or ())
    except Exception:  # noqa: BLE001 - the rules raise it again for the call itself
        return None
    return (_Same(config), tools, given, asks, key)


def _key_of_tools(tools: Tools) -> Hashable:
    functions: list[_Function] = []
    others: list[object] = []
    for tool in tools:
        if isinstance(tool, Mapping):
            others.append(cast("object", tool))
        elif isinstance(tool, FunctionType | MethodType | type) and not hasattr(tool, "to_spec"):
            functions.append(_Function(tool))
            others.append(None)
        else:
            specs = [tool] if isinstance(tool, ToolSpec) else tools_of([tool])
            others.append([vars(spec) for spec in specs])
    return (_written(others), *functions)


def _written(value: object) -> str | bytes:
    """Return the JSON of a value that a caller gave: `repr` cuts off long texts of a model."""
    plain = plain_json({"": value})
    return _COMPLETE.encode(value) if plain is None else plain


def _members(one: object) -> object:
    """Return the members of an object in the arguments of a call.

    Raises:
        TypeError: this is another object.
    """
    if isinstance(one, BaseModel):
        return [type(one).__qualname__, dict(one)]
    if isinstance(one, Mapping):
        return dict(cast("Mapping[object, object]", one))
    raise TypeError(type(one).__qualname__)


_COMPLETE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_members)


def _system(asked: CallArguments) -> Sequence[Message]:
    return conversation_of((), asked.system_prompt, asked.system_prompt_content)


def _read(said: Sequence[Message]) -> Callable[[bytes], Sequence[Message]]:
    return lambda body: message_rows.messages_in(body, said.__getitem__)


def _kept(
    said: list[Message], settings: Hashable, rules: "_Rules", row: Dialect
) -> tuple[bytes, WrittenCall] | None:
    """Return the body of a call, and a rendered call that differs from it in the history alone."""
    alike: WrittenCall | None = None

    def learn(outline: RequestOutline) -> Learned | None:
        nonlocal alike
        found = STENCILS.found(outline, settings, rules, row.keeps)
        if found is None or found.stencil is None or found.notes_are_placed:
            return None
        filled = STENCILS.fill(outline, found)
        alike = found.facts
        return None if filled is None else Learned(found.stencil, *filled)

    content = ROUNDS.written(said, settings, learn)
    return None if content is None or alike is None else (content, alike)


@dataclass(frozen=True, slots=True)
class _Rules:
    """Renderer of the samples of a call."""

    asked: CallArguments
    row: Dialect
    write: Callable[[CallArguments], WrittenCall]
    read: Callable[[bytes], Sequence[Message]]

    def __call__(self, body: bytes) -> Ruled[WrittenCall]:
        asked = replace(
            self.asked,
            messages=list(self.read(body)),
            system_prompt=None,
            system_prompt_content=None,
        )
        written = self.write(asked)
        content = encoded(written.body, written.sources)
        return Ruled(
            Translated(content, cast("Sequence[dict[str, object]]", written.notes), written),
            written.messages,
            (),
            "",
            depends_on_turns=not written.is_typical,
            own_names=self.row.named_as_own(written.tools),
        )
