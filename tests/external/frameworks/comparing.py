"""Requests without what a framework does not keep, for comparing.

In: the JSON of a request.  Out: text that is equal for requests that say the same.

Law: ids that were made up are equal, and arguments of calls are compared as JSON values, because a
framework may keep the value alone.
"""

import json
from typing import Any, Final

_MADE_UP: Final = len("call_") + 16


def comparable(body: object) -> str:
    """Return the text of a request."""
    return json.dumps(_walked(body, ""), sort_keys=True, indent=1)


def _walked(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _walked(one, key) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_walked(one, "") for one in value]
    if isinstance(value, str) and value.startswith("call_") and len(value) == _MADE_UP:
        return "made up"
    if name == "arguments" and isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value
