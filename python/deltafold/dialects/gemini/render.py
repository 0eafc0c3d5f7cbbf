"""Renderer of request bodies of Gemini's generateContent.

Laws: system messages are separate. Parts are sent back unchanged, each with its own signature; they
are neither merged nor moved. The results of a turn's calls are one content directly after the turn,
in the order of the calls. The path names the model. An answer that paused at the end of the history
is not sent: its token goes back in its place.
Source: the generateContent reference (read 2026-11); docs/protocols/gemini.md#request,
docs/protocols/gemini.md#replay, docs/protocols/gemini.md#call-ids; the rule for names is that of
the official client's `FunctionDeclaration.name`.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, cast
from urllib.parse import quote

from deltafold.contract.exceptions import MisuseError
from deltafold.dialects import replay
from deltafold.dialects.aliases import Aliases
from deltafold.dialects.gemini.settings import OLD_MODEL, SETTINGS, GeminiConfig
from deltafold.dialects.media import source_of
from deltafold.dialects.rendered import Identifiers, NoteCode, Object, Place, Rendering, given
from deltafold.dialects.turns import (
    OPENING,
    Turn,
    alternating,
    late_systems_as_user,
    leading_system,
    turns_of,
)
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
from deltafold.specs.tool_specs import ToolSpec

DIALECT: Final = "gemini"

FOREIGN_SIGNATURE: Final = "skip_thought_signature_validator"
"""Documented placeholder of a signature, for a call that another model made."""

CONTINUATION: Final = "continuationToken"
"""Member of a request, and of the state of an answer that ended with the finish reason CONTINUATION
(types of google-genai 3.6, read 2026-11)."""

TOOL_MODES: Final = {"auto": "AUTO", "required": "ANY", "none": "NONE", "tool": "ANY"}


def request_path(config: GeminiConfig, *, stream: bool) -> str:
    """Return the path and query below the vendor's address."""
    model = quote(config.model_id.removeprefix("models/"), safe="")
    if stream:
        return f"/v1beta/models/{model}:streamGenerateContent?alt=sse"
    return f"/v1beta/models/{model}:generateContent"


IDENTIFIERS: Final = Identifiers(
    tool_names=partial(Aliases.of_names, "[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}", 128),
    call_ids=partial(Aliases.of_ids, "(?s).+"),
)


def body_of(rendering: Rendering, config: GeminiConfig) -> Object:
    """Return the request body; the path alone states whether the response is streamed."""
    turns = late_systems_as_user(turns_of(rendering, answers_after_run=True), rendering)
    token = _continued(turns, rendering)
    if OLD_MODEL.match(config.model_id):
        turns = [part for turn in turns for part in _media_apart(turn, rendering)]
    body: Object = {"contents": _contents(turns, rendering)}
    body |= given(
        {
            "systemInstruction": _system(turns, rendering),
            "tools": _tools(rendering),
            "toolConfig": _tool_config(config, rendering),
            CONTINUATION: token,
        }
    )
    body |= rendering.settings(SETTINGS)
    generation = _generation_config(config, body)
    if generation:
        body["generationConfig"] = generation
    return body


def _continued(turns: list[Turn], rendering: Rendering) -> object:
    """Take the pieces of a paused answer from the end; return the token that goes on with it.

    The request is the one that was answered, with the token: the token stands for the pieces. The
    history of a later request has the pieces and no token.
    """
    token: object = None
    while turns and turns[-1].role is Role.ASSISTANT and not rendering.is_excerpt:
        last = turns[-1].parts[-1:]
        found = [rendering.api_members(part, (CONTINUATION,)) for _, part in last]
        if not any(found):
            break
        token = token or found[0][CONTINUATION]
        turns.pop()
    return token


def _media_apart(turn: Turn, rendering: Rendering) -> list[Turn]:
    """Split a turn of results into a turn of text results and a user turn with the media."""
    if turn.role is not Role.TOOL:
        return [turn]
    results: list[tuple[Place, MessagePart]] = []
    shown: list[tuple[Place, MessagePart]] = []
    for place, part in turn.parts:
        if not isinstance(part, ToolResultPart) or not isinstance(part.content, list):
            results.append((place, part))
            continue
        text, media = replay.result_and_media(part, place, rendering)
        results.append((place, part.model_copy(update={"content": text}) if media else part))
        shown.extend((place, item) for item in media)
    if not shown:
        return [turn]
    return [
        dataclasses.replace(turn, parts=tuple(results)),
        dataclasses.replace(turn, role=Role.USER, parts=tuple(shown)),
    ]


def _generation_config(config: GeminiConfig, body: Object) -> Object:
    members = dict(cast("Object", body.get("generationConfig", {})))
    if config.response_schema is not None:
        members.setdefault("responseMimeType", "application/json")
    return members | (config.generation_config or {})


def _tools(rendering: Rendering) -> list[Object] | None:
    declarations = [_declaration(tool, rendering) for tool in rendering.tools]
    if any(tool.strict for tool in rendering.tools):
        rendering.note(NoteCode.SETTING_DROPPED, "gemini has no strict tools: see VALIDATED mode")
    rendered: list[Object] = [{"functionDeclarations": declarations}] if declarations else []
    return rendering.with_provider_tools(rendered) or None


def _declaration(tool: ToolSpec, rendering: Rendering) -> Object:
    members = rendering.tool_members(tool)
    # A schema in the API's own form stays in this form.
    is_own = "parameters" in members
    declaration = given(
        {
            "name": rendering.tool_names.of(tool.name),
            "description": tool.description,
            "parametersJsonSchema": None if is_own else tool.parameter_schema,
        }
    )
    return declaration | members


def _tool_config(config: GeminiConfig, rendering: Rendering) -> Object | None:
    rendered: Object = dict(config.tool_config or {})
    choice = rendering.tool_choice()
    if choice is not None:
        calling: Object = {"mode": TOOL_MODES[choice.mode]}
        names = choice.allowed_tools if choice.name is None else (choice.name,)
        if names:
            calling["allowedFunctionNames"] = [rendering.tool_names.of(name) for name in names]
        if choice.allowed_tools and choice.mode == "auto":
            # AUTO takes no names. VALIDATED leaves the model free to answer without a call, too.
            calling["mode"] = "VALIDATED"
        others = cast("Object", rendered.get("functionCallingConfig") or {})
        rendered["functionCallingConfig"] = calling | others
    return rendered or None


def _system(turns: Sequence[Turn], rendering: Rendering) -> Object | None:
    texts = [
        text
        for place, part in leading_system(turns, rendering)
        if (text := rendering.block_of(part) or _text(part, place, rendering)) is not None
    ]
    return {"parts": texts} if texts else None


def _contents(turns: Sequence[Turn], rendering: Rendering) -> list[Object]:
    spoken = alternating(
        turns,
        lambda item, turn: _parts(item, turn, rendering),
        rendering,
        opening={"text": OPENING},
        results_apart=True,
    )
    contents: list[Object] = []
    for speech in spoken:
        is_model = speech.role == "assistant"
        if is_model:
            _sign(speech.blocks, rendering)
        role = "model" if is_model else "user"
        contents.append({"role": role, "parts": speech.blocks, **speech.members})
    return contents


def _sign(parts: Sequence[Object], rendering: Rendering) -> None:
    """Add the placeholder of a signature to the first call of a turn that has none."""
    calls = [part for part in parts if "functionCall" in part]
    if calls and "thoughtSignature" not in calls[0] and not OLD_MODEL.match(rendering.model_id):
        calls[0]["thoughtSignature"] = FOREIGN_SIGNATURE
    for call in calls:
        if call.get("thoughtSignature", "") is None:
            del call["thoughtSignature"]


def _parts(item: tuple[Place, MessagePart], turn: Turn, rendering: Rendering) -> list[Object]:
    place, part = item
    state = rendering.state(part)
    rendered = rendering.block_of(part) or _part(part, place, turn, rendering)
    if rendered is None:
        return []
    if "thoughtSignature" in state:
        rendered["thoughtSignature"] = state["thoughtSignature"]
    if state.get("has_no_id"):
        _remove_id(rendered)
    return [rendering.as_given(part, rendered)]


def _part(part: MessagePart, place: Place, turn: Turn, rendering: Rendering) -> Object | None:
    state = rendering.state(part)
    rendered: Object | None = None
    match part:
        case TextPart():
            rendered = _text(part, place, rendering)
        case ThinkingPart() if state:
            rendered = {"text": part.text, "thought": True}
        case ToolCallPart():
            rendered = _call(part, place, state, rendering)
        case ToolResultPart():
            rendered = _response(part, place, turn, rendering)
        case ImagePart() | FileRefPart():
            rendered = _media(part, place, rendering)
        case ProviderPart() if part.dialect == DIALECT:
            rendered = dict(part.block)
        case _:
            replay.drop(part, place, rendering)
    return rendered


def _remove_id(rendered: Object) -> None:
    """Remove the id of a call or a result that had none in the parsed request."""
    for name in rendered.keys() & {"functionCall", "functionResponse"}:
        cast("Object", rendered[name]).pop("id", None)


def _text(part: TextPart, place: Place, rendering: Rendering) -> Object | None:
    if not part.text and "thoughtSignature" not in rendering.state(part):
        return None
    replay.note_annotations(part, place, rendering)
    return {"text": part.text}


def _call(
    call: ToolCallPart, place: Place, state: Mapping[str, object], rendering: Rendering
) -> Object:
    rendered: Object = {
        "functionCall": {
            "id": rendering.call_ids.of(call.tool_call_id),
            "name": rendering.tool_names.of(call.tool_name),
            "args": replay.arguments_of(call, place, rendering),
        }
    }
    # `_sign` leaves a call without a signature that was sent so.
    return rendered | ({"thoughtSignature": None} if state.get("unsigned") else {})


def _response(result: ToolResultPart, place: Place, turn: Turn, rendering: Rendering) -> Object:
    name = turn.call_names.get(result.tool_call_id)
    if name is None and rendering.is_excerpt:
        raise MisuseError(
            f"gemini names the tool of a result, and the call {result.tool_call_id!r} is not here: "
            "deltafold.render_messages([answer, *results], 'gemini', excerpt=True) has both"
        )
    response: Object = {
        "id": rendering.call_ids.of(result.tool_call_id),
        "name": rendering.tool_names.of(name or "unknown_tool"),
        "response": {},
    }
    media: list[Object] = []
    if isinstance(result.content, dict):
        response["response"] = result.content
        if result.is_error:
            response["response"] = {"error": result.content}
    else:
        texts: list[str] = []
        for item in replay.result_items(result):
            medium = _medium(item) if isinstance(item, ImagePart | FileRefPart) else None
            if isinstance(item, TextPart):
                texts.append(item.text)
            elif medium is not None:
                media.append(medium)
            else:
                texts.append(replay.stand_in(item, place, rendering))
        key = "error" if result.is_error else "output"
        response["response"] = {key: replay.joined(texts)}
    if media:
        response["parts"] = media
    return {"functionResponse": response}


def _media(part: ImagePart | FileRefPart, place: Place, rendering: Rendering) -> Object:
    return _medium(part) or {"text": replay.stand_in(part, place, rendering)}


def _medium(part: ImagePart | FileRefPart) -> Object | None:
    """Return the form of a medium, None for an address that the API cannot read."""
    source = source_of(part)
    if source.kind == "data":
        return {"inlineData": {"mimeType": source.mime_type, "data": source.value}}
    is_stored = source.kind == "id" and source.value.startswith("files/")
    if not is_stored and not source.value.startswith(("http", "gs://")):
        return None
    address = source.value
    if is_stored:
        address = f"https://generativelanguage.googleapis.com/v1beta/{address}"
    return {"fileData": given({"mimeType": source.mime_type, "fileUri": address})}
