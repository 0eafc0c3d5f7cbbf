"""Result of rendering a conversation: the body, and notes about the losses.

Laws: the body is exactly the JSON of the request. Everything in the conversation that the body
cannot express is in the notes. An alias of a name or an id can be mapped back.
"""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, NamedTuple, Self, TypeAlias, TypeVar, cast

from deltafold.contract.kinds import json_object
from deltafold.contract.names import RequestProtocol
from deltafold.dialects.aliases import Aliases
from deltafold.dialects.model_names import is_state_of
from deltafold.dialects.settings import ModelConfig
from deltafold.dialects.settings_table import SettingTable, write_settings
from deltafold.message.messages import Message, MessagePart, TextPart, ToolCallPart
from deltafold.specs.tool_specs import ToolChoice, ToolSpec

T = TypeVar("T")

Object: TypeAlias = dict[str, object]

IN_BLOCK: Final = "in_block"
"""Member of the state of an image that is also in the block of the part before it."""

IN_INPUT: Final = "deltafold_in_input"
"""Member of `extra` of a tool that the conversation declares, and not the list of tools."""

WITHDRAWN: Final = "deltafold_withdrawn"
"""Member of `extra` of a tool of the list that the conversation removed or defined anew.

Only its own dialect has it in the list, beside the conversation.
"""

_MARKS: Final = frozenset({IN_INPUT, WITHDRAWN})

_OF_EVERY_TOOL: Final = frozenset({"name", "description", *_MARKS})
"""Members of a tool that are no loss: all dialects send them, or none does."""


def is_in_input(tool: ToolSpec, dialect: str) -> bool:
    """Return whether the conversation declares a tool, so that the list of tools has it not."""
    return tool.dialect == dialect and IN_INPUT in tool.extra


def _is_withdrawn(tool: ToolSpec) -> bool:
    return WITHDRAWN in tool.extra


class NoteCode(StrEnum):
    """Code of a note: the treatment of content that a dialect cannot express.

    >>> from deltafold.dialects import dialect_of
    >>> dialect = dialect_of("anthropic-messages")
    >>> config = dialect.config_class(model_id="claude-opus-4-8", max_tokens=100)
    >>> rendered = dialect.render([message], [], config)
    >>> [note["code"] for note in rendered.notes]
    ['thinking_dropped']
    """

    ANNOTATIONS_DROPPED = "annotations_dropped"
    ARGUMENTS_DROPPED = "arguments_dropped"
    CACHE_MARK_DROPPED = "cache_mark_dropped"
    CACHE_MARK_LOWERED = "cache_mark_lowered"
    CACHE_MARK_MOVED = "cache_mark_moved"
    CALL_DROPPED = "call_dropped"
    EMPTY_FILLED = "empty_filled"
    ENVELOPE_DROPPED = "envelope_dropped"
    ERROR_FLAG_DROPPED = "error_flag_dropped"
    MEMBER_DROPPED = "member_dropped"
    PART_DROPPED = "part_dropped"
    PART_MOVED = "part_moved"
    PART_REPLACED = "part_replaced"
    SETTING_CHANGED = "setting_changed"
    SETTING_DROPPED = "setting_dropped"
    SYSTEM_AS_USER = "system_as_user"
    SYSTEM_MOVED = "system_moved"
    THINKING_DROPPED = "thinking_dropped"
    TOOL_ADDED = "tool_added"
    TURN_ADDED = "turn_added"
    UNKNOWN_MEMBER = "unknown_member"


class Place(NamedTuple):
    """Position of a part: the index of its message, and its index in the message."""

    message: int
    part: int


class Rendered(NamedTuple):
    """A rendered request.

    >>> from deltafold.dialects import dialect_of
    >>> dialect = dialect_of("openai-chat")
    >>> config = dialect.config_class(model_id="gpt-5.6-terra")
    >>> rendered = dialect.render([Message.user("Hi")], [], config)
    >>> rendered.body["model"], rendered.notes
    ('gpt-5.6-terra', ())

    Attributes:
        body: the JSON of the request.
        notes: content that the body does not express unchanged, as `{code, message, messageIndex?,
            partIndex?}`, the form of `Meta.warnings`; the codes are those of `NoteCode`.
        tool_names: the original name of each renamed tool, by its alias.
        call_ids: the original id of each renamed tool call, by its alias.
        depends_on_turns: whether a rule has asked where a message stands among the messages of the
            user, so that it would be rendered in another form elsewhere.
    """

    body: dict[str, Any]
    notes: tuple[Object, ...] = ()
    tool_names: Mapping[str, str] = {}
    call_ids: Mapping[str, str] = {}
    depends_on_turns: bool = False


@dataclass(frozen=True, slots=True)
class Identifiers:
    """Forms of tool names and of call ids that a protocol accepts.

    Attributes:
        tool_names: makes the aliases of tool names for one request.
        call_ids: makes the aliases of call ids for one request.
        has_own_form: whether the calls of a tool have a form of their own, so that a rule finds
            them by its name.
    """

    tool_names: Callable[[], Aliases] = Aliases.none
    call_ids: Callable[[], Aliases] = Aliases.none
    has_own_form: Callable[[ToolSpec], bool] = lambda _tool: False


class Rendering:
    """State of one request while it is rendered: the input, the aliases and the notes.

    Attributes:
        stream: whether the response is streamed.
        is_excerpt: whether the messages are a part of a conversation that the caller has, so that
            nothing is done to its first and its last turn.
    """

    def __init__(
        self,
        dialect: RequestProtocol,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        config: ModelConfig,
        *,
        stream: bool,
        identifiers: Identifiers,
        notes: Sequence[Object] = (),
        is_excerpt: bool = False,
    ) -> None:
        self.dialect: RequestProtocol = dialect
        self.messages = messages
        self.tools = [tool for tool in tools if tool.dialect == dialect or not _is_withdrawn(tool)]
        self.config = config
        self.stream = stream
        self.is_excerpt = is_excerpt
        self.model_id = config.model_id
        self._identifiers = identifiers
        self._notes = list(notes)
        self._depends_on_turns = False
        # Most requests have neither, so that they are made when they are needed.
        self._tool_names: Aliases | None = None
        self._call_ids: Aliases | None = None

    @property
    def tool_names(self) -> Aliases:
        """Aliases of tool names."""
        if self._tool_names is None:
            self._tool_names = self._identifiers.tool_names()
        return self._tool_names

    @property
    def call_ids(self) -> Aliases:
        """Aliases of call ids."""
        if self._call_ids is None:
            self._call_ids = self._identifiers.call_ids()
        return self._call_ids

    def take_call_ids(self, aliases: Aliases) -> None:
        """Make the call ids of this request in another form, before the first one is made."""
        self._call_ids = aliases

    @cached_property
    def declared(self) -> Mapping[str, ToolSpec]:
        """The tools of the caller, by name."""
        return {tool.name: tool for tool in self.tools}

    @cached_property
    def calls(self) -> Mapping[str, ToolCallPart]:
        """The calls of the conversation, by id."""
        return {call.tool_call_id: call for message in self.messages for call in message.tool_calls}

    def of_turn(self, fact: bool) -> bool:
        """Return a fact about where a turn stands, and remember that a rule has asked for it."""
        self._depends_on_turns = True
        return fact

    def without_withdrawn(self) -> None:
        """Leave out the tools that the conversation removed, for a model that reads no removal."""
        self.tools = [tool for tool in self.tools if not _is_withdrawn(tool)]

    def with_config(self, config: ModelConfig) -> Self:
        """Return the same request with other settings; notes and aliases are shared."""
        _ = self.tool_names, self.call_ids  # made now, to be shared
        other = copy.copy(self)
        other.config = config
        return other

    def note(self, code: NoteCode, message: str, place: Place | None = None) -> None:
        """Note content that the body does not express."""
        note: Object = {"code": code.value, "message": message}
        if place is not None:
            note |= {"messageIndex": place.message, "partIndex": place.part}
        self._notes.append(note)

    def refuse_setting(self, name: str) -> None:
        """Note a setting that the protocol has no member for, if the setting is given."""
        if getattr(self.config, name) is not None:
            self.note(NoteCode.SETTING_DROPPED, f"{self.dialect} has no {name}")

    def of_tools(self, name: str, value: T | None) -> T | None:
        """Return a setting about tools. Without tools, note the setting and return None."""
        if value is None or self.tools or self.config.provider_tools:
            return value
        self.note(NoteCode.SETTING_DROPPED, f"{name}: there are no tools")
        return None

    def tool_choice(self) -> ToolChoice | None:
        """Return the choice of a tool, None without tools or without a choice."""
        return self.of_tools("tool_choice", self.config.tool_choice)

    def unlimited_tool_choice(self) -> ToolChoice | None:
        """Return the choice of a tool where the protocol cannot limit it to some of the tools."""
        choice = self.tool_choice()
        if choice is None or not choice.allowed_tools:
            return choice
        if choice.mode == "required" and len(choice.allowed_tools) == 1:
            return ToolChoice.tool(choice.allowed_tools[0])
        self.note(
            NoteCode.SETTING_CHANGED,
            f"{self.dialect} cannot limit tool_choice to {', '.join(choice.allowed_tools)}: "
            "it chooses from all tools",
        )
        return ToolChoice(mode=choice.mode)

    def tool_list(
        self, render: "Callable[[ToolSpec, Rendering], Object]", *, repeats: bool = False
    ) -> list[Object]:
        """Return the rendered tools of the caller, and the tools of the provider among them.

        `repeats` adds the tools that the conversation declares in the form of this dialect.
        """
        if not self.tools and not self.config.provider_tools:
            return []
        tools = [tool for tool in self.tools if repeats or not is_in_input(tool, self.dialect)]
        return self.with_provider_tools([render(tool, self) for tool in tools])

    def with_provider_tools(self, rendered: list[Object]) -> list[Object]:
        """Add the tools of the provider at their positions, or after the rendered tools."""
        places = self.config.provider_tool_positions or ()
        for number, tool in enumerate(self.config.provider_tools):
            place = places[number] if number < len(places) else len(rendered)
            rendered.insert(place, dict(tool))
        return rendered

    def tool_members(self, tool: ToolSpec) -> Object:
        """Return the provider's members of a tool; note members of another dialect."""
        if not tool.extra or tool.dialect in {None, self.dialect}:
            return {name: value for name, value in tool.extra.items() if name not in _MARKS}
        names = ", ".join(name for name in tool.extra if name not in _OF_EVERY_TOOL)
        if not names:
            return {}
        self.note(
            NoteCode.MEMBER_DROPPED,
            f"tool {tool.name}: {names} of {tool.dialect} is not sent in {self.dialect}",
        )
        return {}

    def settings(self, table: SettingTable) -> Object:
        """Return the members of all settings that are copied into the body."""
        members = write_settings(table, self.config)
        if "parallel_tool_calls" in members:
            value = members.pop("parallel_tool_calls")
            members |= given({"parallel_tool_calls": self.of_tools("parallel_tool_calls", value)})
        return members

    def state(self, part: MessagePart) -> Mapping[str, object]:
        """Return the part's provider state if it belongs to this dialect and model, else nothing.

        A model may have another name in the state than in the settings.
        """
        state = part.provider_state
        if state is None or state.get("dialect") != self.dialect:
            return {}
        data = state.get("data")
        if not isinstance(data, Mapping) or not is_state_of(state, self.model_id):
            return {}
        return cast("Mapping[str, object]", data)

    def api_members(self, part: MessagePart, names: Iterable[str]) -> Object:
        """Return those of the named members that the part's state has, for every model.

        They are members of the dialect's API, as the namespace of a call is, and no secrets of the
        model that wrote them.
        """
        state = part.provider_state
        if state is None or state.get("dialect") != self.dialect:
            return {}
        data = json_object(state.get("data")) or {}
        return {name: data[name] for name in names if data.get(name) is not None}

    def block_of(self, part: MessagePart) -> Object | None:
        """Return the block that a parsed request had for a part; it is sent back unchanged."""
        block = self.state(part).get("block")
        return dict(cast("Object", block)) if isinstance(block, dict) else None

    def as_given(self, part: MessagePart, rendered: Object) -> Object:
        """Return the form of a part with the members that a parsed request had beside it.

        Cache marks and unknown members are added. Members that the request left out are removed.
        """
        state = self.state(part)
        if not state:
            return rendered
        members, absent = state.get("members"), state.get("absent")
        if isinstance(members, Mapping):
            rendered = {**rendered, **cast("Mapping[str, object]", members)}
        if isinstance(absent, list):
            names = cast("list[str]", absent)
            rendered = {name: value for name, value in rendered.items() if name not in names}
        return rendered

    def _foreign_state(self, part: MessagePart) -> Mapping[str, object]:
        """Return the data of the part's state if it is not of this dialect and model."""
        state = part.provider_state
        found = None if state is None else json_object(state.get("data"))
        return {} if found is None or self.state(part) else found

    def foreign_block(self, part: MessagePart) -> Mapping[str, object] | None:
        """Return the block of another dialect if it is all that there is of a part."""
        # A medium is in its part as well.
        if part.provider_state is None or not isinstance(part, TextPart) or part.text:
            return None
        found = self._foreign_state(part)
        block = json_object(found.get("block", found.get("item")))
        is_blank = block is None or not str(block.get("text", "-")).strip()
        return None if is_blank else block

    def note_foreign(self, part: MessagePart, place: Place, *, is_replaced: bool = False) -> bool:
        """Note content and members that only the state of another dialect holds.

        Args:
            part: a part.
            place: its position.
            is_replaced: whether a text stands for the part, which has its own note.

        Returns:
            Whether the part is nothing but a block of another dialect.
        """
        state, found = part.provider_state, self._foreign_state(part)
        if state is None or not found:
            return False
        is_foreign = self.foreign_block(part) is not None
        if is_foreign and not is_replaced:
            self.note(
                NoteCode.PART_DROPPED,
                f"a block of {state.get('dialect')} has no form in {self.dialect}",
                place,
            )
        names = [
            name
            for member in ("members", "message")
            for name in json_object(found.get(member)) or {}
            # Other dialects have a type of each call.
            if name != "role" and not (name == "type" and isinstance(part, ToolCallPart))
        ]
        if names:
            self.note(
                NoteCode.MEMBER_DROPPED,
                f"{', '.join(names)} of {state.get('dialect')} is not sent in {self.dialect}",
                place,
            )
        return is_foreign

    def done(self, body: Object) -> Rendered:
        """Return the finished request."""
        names = {} if self._tool_names is None else self._tool_names.changed
        ids = {} if self._call_ids is None else self._call_ids.changed
        return Rendered(body, tuple(self._notes), names, ids, self._depends_on_turns)


def given(members: Mapping[str, object]) -> Object:
    """Return the members that are set."""
    return {name: value for name, value in members.items() if value is not None}
