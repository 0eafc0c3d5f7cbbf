"""Plain messages in deltafold's own wire form, as rows, and the JSON of a plain message.

In: a message.  Out: its role and its parts as JSON.

Laws: requests depend on neither ids of messages, times nor metadata, except the model of an answer,
which renderers compare with that of its reasoning. Provider state is opaque, except its dialect and
its model.
"""

import json
from collections.abc import Callable, Iterable
from functools import cache
from json.encoder import (  # pyright: ignore[reportMissingModuleSource]
    encode_basestring as quoted,
)
from typing import Final, cast

from deltafold._core import RequestRows
from deltafold.dialects.rendered import Object
from deltafold.message.messages import (
    Message,
    MessagePart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)

_STATE: Final[Object] = {
    "providerState?": {"dialect": "$same", "modelId?": "$same", "data?": "$state"}
}

_TEXT: Final[Object] = {"kind": "text", "payload": {"text": "$text"}, **_STATE}

PLAIN: Final[Object] = {
    "history": "messages",
    "rows": [
        {"speaker": "user", "item": {"role": {"$or": ["user", "system"]}, "parts": [_TEXT]}},
        {
            "speaker": "assistant",
            "item": {
                "role": "assistant",
                "model": "$same",
                "parts": [
                    _TEXT,
                    {
                        "kind": "tool_call",
                        "payload": {
                            "toolCallId": "$call",
                            "toolName": "$name",
                            "rawArgsText": "$arguments",
                        },
                        **_STATE,
                    },
                    {
                        "kind": "thinking",
                        "payload": {"text": {"$or": ["$optional", ""]}, "redacted?": True},
                        **_STATE,
                    },
                ],
            },
        },
        {
            "speaker": "user",
            "item": {
                "role": "tool",
                "parts": [
                    {
                        "kind": "tool_result",
                        "payload": {
                            "toolCallId": "$result",
                            "isError": {"$or": [False, True]},
                            "status": "$same",
                            "content": {"$or": ["$text", "", "$input", [_TEXT]]},
                        },
                        **_STATE,
                    }
                ],
            },
        },
    ],
}
"""Plain messages, as the module `parse` of a dialect has them."""


CACHE_MARKS: Final = ('"cache_control":', '"cachePoint":')
"""Members of cache marks. Renderers limit their number, which depends on the whole request."""


@cache
def plain_rows() -> RequestRows:
    """Return the plain messages of our own form."""
    return RequestRows(json.dumps(PLAIN, separators=(",", ":")))


def json_of(message: Message) -> str | None:
    """Return the JSON of a plain message, None if a member of it is not plain.

    Raises:
        ValueError: JSON cannot hold a value of a part, or a text has a lone surrogate.
    """
    if type(message) is not Message or not message.parts:
        return None
    written = [_written(part) for part in message.parts]
    parts = [part for part in written if part is not None]
    if len(parts) < len(written):
        return None
    model = ""
    if message.role is Role.ASSISTANT:
        meta = message.meta
        if meta.is_api_error_message:
            return None
        model = f'"model":{_dumped(meta.model_id)},'
    return f'{{"role":"{message.role}",{model}"parts":[{",".join(parts)}]}}'


def messages_in(body: bytes, others: Callable[[int], Message]) -> list[Message]:
    """Return the messages of a request in our own form.

    Args:
        body: the request.
        others: returns the message that a number stands for.
    """
    return [
        others(one) if isinstance(one, int) else _read(one) for one in json.loads(body)["messages"]
    ]


def request_of(messages: Iterable[str]) -> bytes:
    """Return the request of messages in our own form."""
    return f'{{"messages":[{",".join(messages)}]}}'.encode()


def _read(written: dict[str, object]) -> Message:
    model_id = written.pop("model", None)
    meta = {} if model_id is None else {"meta": {"modelId": model_id}}
    return Message.from_dict({**written, **meta})


def _written(part: MessagePart) -> str | None:
    state = ""
    if part.provider_state is not None:
        state = f',"providerState":{_dumped(part.provider_state)}'
    if type(part) is TextPart:
        if part.annotations is not None or part.refusal:
            return None
        return f'{{"kind":"text","payload":{{"text":{quoted(part.text)}}}{state}}}'
    if type(part) is ToolCallPart:
        return _written_call(part, state)
    if type(part) is ToolResultPart:
        return _written_result(part, state)
    if type(part) is ThinkingPart:
        redacted = ',"redacted":true' if part.redacted else ""
        return f'{{"kind":"thinking","payload":{{"text":{quoted(part.text)}{redacted}}}{state}}}'
    return None


def _written_call(part: ToolCallPart, state: str) -> str | None:
    raw = part.raw_args_text
    is_whole = part.input_format == "json" and part.defect is None and part.parse_warning is None
    if not is_whole or not _says(raw, part.arguments):
        return None
    payload = (
        f'"toolCallId":{quoted(part.tool_call_id)},"toolName":{quoted(part.tool_name)},'
        f'"rawArgsText":{quoted(raw)}'
    )
    return f'{{"kind":"tool_call","payload":{{{payload}}}{state}}}'


def _says(raw: str, arguments: object) -> bool:
    """Return whether a text has these arguments; a caller may give a text that has others."""
    written = _dumped(arguments)
    return raw == written or _dumped(json.loads(raw)) == written


def _written_result(part: ToolResultPart, state: str) -> str | None:
    content = part.content
    if isinstance(content, list):
        parts = [_written(one) for one in content]
        if None in parts:
            return None
        written = f"[{','.join(cast('list[str]', parts))}]"
    else:
        written = quoted(content) if isinstance(content, str) else _dumped(content)
    payload = (
        f'"toolCallId":{quoted(part.tool_call_id)},"isError":{_dumped(part.is_error)},'
        f'"status":{_dumped(part.status)},"content":{written}'
    )
    return f'{{"kind":"tool_result","payload":{{{payload}}}{state}}}'


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
