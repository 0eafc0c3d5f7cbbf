"""A message of the Messages API that holds blocks of several kinds."""

from typing import Any, Final

Body = dict[str, Any]

PNG: Final = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}

MIXED: Final[Body] = {
    "role": "user",
    "content": [
        {"type": "tool_result", "tool_use_id": "a", "content": "1"},
        {"type": "tool_result", "tool_use_id": "b", "content": "2", "is_error": True},
        {"type": "text", "text": "And now?"},
        {"type": "image", "source": PNG},
    ],
}
