"""Renderer of request bodies of OpenAI's Responses API.

Laws: system messages keep their position; on request, the first one becomes the instructions. Each
call, result and piece of reasoning is a separate item. An item of the provider is sent back as that
item.
The result of a search for tools that the client runs is an item with tools and without a text: the
API takes no other result of such a call. Tools of an item that is no longer sent are in `tools`.
The namespace and the caller of a call and the phase of a message are sent back to every model; the
result of a call that a program made names that program, as the call does.
Reasoning that is neither encrypted nor plain text is sent back only if the provider stored it. If
it is left out, the items after it lose their ids, because the API refuses them without the
reasoning.
Source: the Responses reference, and the types of openai 3.57 and of openai-agents, which copies the
caller (read 2026-11); docs/protocols/openai-responses.md#request,
docs/protocols/openai-responses.md#replay; the lengths
of ids and names are those that the API's errors name.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, cast

from deltafold.contract.kinds import json_object
from deltafold.dialects import replay
from deltafold.dialects.aliases import Aliases
from deltafold.dialects.found_tools import tools_said
from deltafold.dialects.media import Source, source_of
from deltafold.dialects.openai_chat.render import (
    is_sent,
    system_message,
    text_content,
    text_or_list,
)
from deltafold.dialects.openai_responses.client_tools import (
    SEARCH,
    flat_name,
    freeform_input,
    has_own_form,
    is_client_search,
    is_freeform,
    is_search,
    names_inside,
    namespace_of,
    native_names,
    own_item,
)
from deltafold.dialects.openai_responses.settings import SETTINGS, OpenAIResponsesConfig
from deltafold.dialects.rendered import (
    Identifiers,
    NoteCode,
    Object,
    Place,
    Rendering,
    given,
    is_in_input,
)
from deltafold.dialects.turns import Turn, turns_of
from deltafold.message.messages import (
    FileRefPart,
    ImagePart,
    MessagePart,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from deltafold.specs.tool_specs import ToolChoice, ToolSpec

DIALECT: Final = "openai-responses"

_CONTENT_STATE: Final = {"members", "absent", "block", "message"}
"""Members of a text's state that are those of its content, not of its item."""

_OF_CALLS: Final = ("namespace", "name", "caller", "async")
"""Members of a call that belong to the API and not to the model that wrote them."""

_OF_MESSAGES: Final = ("phase",)

_UNFINISHED: Final = "in_progress"
"""The status of an item that broke off.  The provider did not store it; its text is sent alone."""

ENCRYPTED_REASONING: Final = "reasoning.encrypted_content"

_REASONING_MODEL: Final = re.compile(r"(?:.*/)?(?:o\d|gpt-[5-9](?!.*-chat)|codex)")
"""The provider's names of models that reason; a question for encrypted reasoning is refused by
others ("Encrypted content is not supported with this model")."""


IDENTIFIERS: Final = Identifiers(
    tool_names=partial(Aliases.of_names, "[a-zA-Z0-9_-]{1,64}", 64),
    call_ids=partial(Aliases.of_ids, "(?s).{1,64}"),
    has_own_form=partial(has_own_form, dialect=DIALECT),
)


def body_of(rendering: Rendering, config: OpenAIResponsesConfig) -> Object:
    """Return the request body."""
    rendering.refuse_setting("stop_sequences")
    turns = turns_of(rendering, answers_after_run=True)
    instructions = None
    if config.system_as_instructions and turns and turns[0].role is Role.SYSTEM:
        instructions = _system_text(turns.pop(0), rendering)
    items = _Items(rendering, is_stored=config.store is not False)
    for turn in turns:
        items.add(turn)
    choice = rendering.tool_choice()
    body: Object = {"model": config.model_id, "input": items.rendered, "stream": rendering.stream}
    body |= given(
        {
            "instructions": instructions or None,
            "tools": _tools(rendering, items.rendered) or None,
            "tool_choice": choice and _tool_choice(choice, rendering),
            "include": _include(config),
        }
    )
    return body | rendering.settings(SETTINGS)


def asks_for_encrypted_reasoning(config: OpenAIResponsesConfig) -> bool:
    """Return whether the request asks for encrypted reasoning, which can be sent back."""
    if config.encrypted_reasoning is not None:
        return config.encrypted_reasoning
    reasons = config.reasoning is not None or _REASONING_MODEL.match(config.model_id) is not None
    return config.store is False and reasons


def _include(config: OpenAIResponsesConfig) -> list[str] | None:
    include = list(config.include or ())
    if asks_for_encrypted_reasoning(config) and ENCRYPTED_REASONING not in include:
        include.append(ENCRYPTED_REASONING)
    return include or None


def _tools(rendering: Rendering, items: Sequence[Object]) -> list[Object]:
    """Return the tools that no item declares.

    Those of one namespace are one entry, at the place of the first.
    """
    rendered: list[Object] = []
    namespaces: dict[object, list[Object]] = {}
    has_items = any(is_in_input(tool, DIALECT) for tool in rendering.tools)
    in_items = set(names_inside(items)) if has_items else set[str]()
    for tool in rendering.tools:
        if is_in_input(tool, DIALECT) and tool.name in in_items:
            continue
        entry = namespace_of(tool, DIALECT)
        item = _tool(tool, rendering)
        if entry is None:
            rendered.append(item)
        elif (inner := namespaces.get(entry.get("name"))) is not None:
            inner.append(item)
        else:
            namespaces[entry.get("name")] = [item]
            rendered.append({**entry, "tools": namespaces[entry.get("name")]})
    return rendering.with_provider_tools(rendered)


def _tool(tool: ToolSpec, rendering: Rendering) -> Object:
    entry = namespace_of(tool, DIALECT)
    members = rendering.tool_members(tool)
    if entry is not None:
        del members["namespace"]
    if is_in_input(tool, DIALECT):
        members.pop("defer_loading", None)  # the conversation has loaded it
    if is_freeform(tool, DIALECT) or is_search(tool, DIALECT):
        return members
    rendered = given(
        {
            "type": "function",
            "name": rendering.tool_names.of(tool.name),
            "description": tool.description,
            "parameters": tool.parameter_schema,
        }
    )
    # The default of this API is strict, which refuses most schemas; it is not that of the others.
    if tool.strict is not None or tool.dialect != DIALECT:
        rendered["strict"] = bool(tool.strict)
    return rendered | members


def _tool_choice(choice: ToolChoice, rendering: Rendering) -> str | Object:
    if choice.name is not None:
        return _named(choice.name, rendering)
    if choice.allowed_tools:
        tools = [_named(name, rendering) for name in choice.allowed_tools]
        return {"type": "allowed_tools", "mode": choice.mode, "tools": tools}
    return choice.mode


def _named(name: str, rendering: Rendering) -> Object:
    tool = rendering.declared.get(name)
    kind = "custom" if is_freeform(tool, DIALECT) else "function"
    named = native_names(tool, DIALECT) or {"name": rendering.tool_names.of(name)}
    return {"type": kind, **named}


def _system_text(turn: Turn, rendering: Rendering) -> str:
    texts = replay.system_texts(turn.parts, rendering)
    return replay.joined(part.text for _, part in texts)


class _Items:
    """The input, item by item."""

    def __init__(self, rendering: Rendering, *, is_stored: bool) -> None:
        self.rendered: list[Object] = []
        self._rendering = rendering
        self._is_stored = is_stored
        self._is_free_text: set[str] = set()
        self._searches: set[str] = set()
        """Ids of the calls of the client's search for tools."""
        self._lost_reasoning = False
        self._open: Object | None = None
        """The message that further text of the assistant belongs to."""
        self._phase: Object = {}
        """Members of the last message of another model, whose further contents have no state."""
        self._callers: dict[str, object] = {}
        """The programs that made calls, by the id of the call."""

    def add(self, turn: Turn) -> None:
        match turn.role:
            case Role.SYSTEM:
                self.rendered.extend(system_message(turn, self._rendering, "input_text"))
            case Role.USER:
                self._add_user(turn)
            case Role.ASSISTANT:
                self._open, self._phase = None, {}
                self._lost_reasoning = False
                is_own = any(self._rendering.state(part) for _, part in turn.parts)
                parts = turn.parts if is_own else replay.without_splits(turn.parts)
                for place, part in parts:
                    self._add_said(part, place)
            case Role.TOOL:
                for place, part in turn.parts:
                    if isinstance(part, ToolResultPart):
                        self._add_result(part, place)

    def _add_user(self, turn: Turn) -> None:
        contents: list[Object] = []
        items: list[Object] = []
        for place, part in turn.parts:
            item = self._rendering.state(part).get("item")
            if isinstance(item, dict):
                items.append(cast("Object", item))
            elif not isinstance(part, TextPart) or is_sent(part, self._rendering):
                contents.append(self._content(part, place))
        self.rendered.extend(items)
        if contents or (turn.parts and not items):
            message: Object = {"role": "user", "content": text_or_list(contents, "input_text")}
            members = replay.message_members(turn.parts, self._rendering)
            self.rendered.append(message | members)

    def _content(self, part: MessagePart, place: Place) -> Object:
        if isinstance(part, TextPart):
            return text_content(part, self._rendering, "input_text")
        content = self._rendering.block_of(part)
        if content is None and isinstance(part, ImagePart | FileRefPart):
            content = media_content(source_of(part))
        if content is None:
            text = replay.stand_in(part, place, self._rendering)
            return {"type": "input_text", "text": text}
        return self._rendering.as_given(part, content)

    def _add_said(self, part: MessagePart, place: Place) -> None:
        state = self._rendering.state(part)
        if isinstance(part, TextPart):
            self._add_text(part, place, state)
            return
        self._open, self._phase = None, {}
        match part:
            case ThinkingPart() if self._can_return(state):
                self.rendered.append(dict(state))
                self._lost_reasoning = False
            case ThinkingPart():
                self._lost_reasoning = self._lost_reasoning or bool(state)
                replay.drop(part, place, self._rendering)
            case ToolCallPart():
                self._add_call(part, place, state)
            case ProviderPart() if part.dialect == DIALECT and "type" in part.block:
                if is_client_search(part.block):
                    self._searches.add(str(part.block.get("call_id")))
                self.rendered.append(self._with_id(part.block))
            case _:
                replay.drop(part, place, self._rendering)

    def _can_return(self, state: Mapping[str, object]) -> bool:
        if state.get("type") != "reasoning":
            return False
        is_stored = self._is_stored and state.get("status") != _UNFINISHED
        return is_stored or bool(state.get("encrypted_content") or state.get("content"))

    def _with_id(self, item: Mapping[str, object]) -> Object:
        """Remove the id of an item whose reasoning is not sent."""
        return {k: v for k, v in item.items() if k != "id" or not self._lost_reasoning}

    def _add_text(self, part: TextPart, place: Place, state: Mapping[str, object]) -> None:
        said = self._rendering.block_of(part) or self._said(part)
        if state.get("status") == _UNFINISHED:
            state = {}
        item = {name: value for name, value in state.items() if name not in _CONTENT_STATE}
        if item:
            self._open = {**self._with_id(item), "content": [said]}
            self.rendered.append(self._open)
        elif self._open is not None and (state or part.provider_state is None):
            cast("list[Object]", self._open["content"]).append(said)
        elif part.text:
            self._open = None
            if part.provider_state is not None:
                self._phase = self._rendering.api_members(part, _OF_MESSAGES)
            replay.note_annotations(part, place, self._rendering)
            self.rendered.append({"role": "assistant", "content": part.text, **self._phase})

    def _add_search(self, call: ToolCallPart, place: Place) -> bool:
        """Add a call of the client's search for tools, and return whether it is one."""
        item = own_item(call, self._rendering)
        if item is None:
            if not is_search(self._rendering.declared.get(call.tool_name), DIALECT):
                return False
            arguments = replay.arguments_of(call, place, self._rendering)
            item = {"type": "tool_search_call", "execution": "client", "status": "completed"}
            item |= {"call_id": call.tool_call_id, "arguments": arguments}
        elif json_object(item.get("arguments")) is not None and call.arguments is not None:
            item["arguments"] = call.arguments
        if item.get("call_id"):
            item["call_id"] = self._rendering.call_ids.of(call.tool_call_id)
        self._searches.add(call.tool_call_id)
        self.rendered.append(self._with_id(item))
        return True

    def _add_call(self, call: ToolCallPart, place: Place, state: Mapping[str, object]) -> None:
        if self._add_search(call, place):
            return
        self._searches.discard(call.tool_call_id)
        item: Object = {}
        is_item = state.get("type") in {"function_call", "custom_tool_call"}
        if is_item and state.get("status") != _UNFINISHED:
            item = self._with_id(state)
        item |= self._rendering.api_members(call, _OF_CALLS)
        item |= {"call_id": self._rendering.call_ids.of(call.tool_call_id)}
        self._callers[call.tool_call_id] = item.get("caller")
        tool = self._rendering.declared.get(call.tool_name)
        if "namespace" not in item or flat_name(item) != call.tool_name:
            item.pop("namespace", None)
            name = {"name": self._rendering.tool_names.of(call.tool_name)}
            item |= native_names(tool, DIALECT) or name
        is_free = call.input_format == "text" or is_freeform(tool, DIALECT)
        if is_free and (said := freeform_input(call)) is not None:
            self._is_free_text.add(call.tool_call_id)
            item |= {"type": "custom_tool_call", "input": said}
        else:
            self._is_free_text.discard(call.tool_call_id)
            arguments = replay.argument_text(call, place, self._rendering)
            item |= {"type": "function_call", "arguments": arguments}
        self.rendered.append(item)

    def _add_result(self, result: ToolResultPart, place: Place) -> None:
        replay.note_error_flag(result, place, self._rendering)
        if self._add_found(result, place):
            return
        items = replay.result_items(result)
        output: str | list[Object]
        is_text = all(isinstance(item, TextPart) and not item.provider_state for item in items)
        if is_text and len(items) <= 1:
            output = replay.result_text(result)
        else:
            output = [self._content(item, place) for item in items]
        is_free = result.tool_call_id in self._is_free_text
        item: Object = {
            "type": "custom_tool_call_output" if is_free else "function_call_output",
            "call_id": self._rendering.call_ids.of(result.tool_call_id),
            "output": output,
        }
        caller = json_object(self._callers.get(result.tool_call_id))
        # A call by the model itself is the default.
        if caller is not None and caller.get("type") != "direct":
            item["caller"] = dict(caller)
        self.rendered.append(self._rendering.as_given(result, item))

    def _add_found(self, result: ToolResultPart, place: Place) -> bool:
        """Add the result of a search for tools of the client, and return whether it is one."""
        found = own_item(result, self._rendering)
        if found is None and result.tool_call_id not in self._searches:
            return False
        none: Object = {"type": f"{SEARCH}_output", "execution": "client", "status": "completed"}
        none["tools"] = []
        item = none if found is None else found
        # A budget of tokens changes the content, and a result that was made up is a text alone.
        if result.content and result.content != tools_said(item):
            text = "the result of a search has tools and no text: its text is left out"
            self._rendering.note(NoteCode.PART_DROPPED, text, place)
        item["call_id"] = self._rendering.call_ids.of(result.tool_call_id)
        self.rendered.append(item)
        return True

    def _said(self, part: TextPart) -> Object:
        if part.refusal:
            return self._rendering.as_given(part, {"type": "refusal", "refusal": part.text})
        said: Object = {"type": "output_text", "text": part.text}
        said["annotations"] = part.annotations or []
        return self._rendering.as_given(part, said)


def media_content(source: Source) -> Object | None:
    """Render an image or a file of a user message or of a result."""
    if source.kind == "uri":
        return None
    if source.is_image:
        image: Object = {"type": "input_image", "detail": "auto"}
        if source.kind == "id":
            return image | {"file_id": source.value}
        return image | {"image_url": source.data_url if source.kind == "data" else source.value}
    if source.kind == "id":
        return {"type": "input_file", "file_id": source.value}
    if source.kind == "url":
        return {"type": "input_file", "file_url": source.value}
    name = source.name or f"file.{source.subtype}"
    return {"type": "input_file", "filename": name, "file_data": source.data_url}
