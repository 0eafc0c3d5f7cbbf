"""Parser of the arguments of a tool call.

In: the raw text exactly as the provider sent it, and its format.  Out: `ParsedArguments`.

Laws: nothing raises. `value` is an object or None, and None always comes with `error`. `warning`
lists each repair and each decision. The value can be written as JSON again: it has no NaN, no
infinity and no lone surrogate. Cost is linear in the text.
"""

import json
import math
import re
from typing import Final, Literal, NamedTuple

from deltafold._core import MAX_ARGUMENT_DEPTH, read_json
from deltafold.contract.kinds import json_object

InputFormat = Literal["json", "text"]

MAX_INTEGER_DIGITS: Final = 4300
"""CPython's default bound for int(str), held here too in a process that lifts it."""

MAX_DEPTH: Final = MAX_ARGUMENT_DEPTH
"""Open objects and arrays: the decoder's default, below pydantic's 200 for reading JSON."""

_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole pair
    r"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    r"|\\.",  # any other escape, so that the u of `\\ud800` (an escaped backslash) is no escape
    re.DOTALL,
)
_STRING_OR_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)


class ParsedArguments(NamedTuple):
    """Arguments as an object, or the error that prevented it."""

    value: dict[str, object] | None
    error: str | None = None
    warning: str | None = None


class _NotJsonError(ValueError):
    """The text follows JSON's grammar where `json` looks, and is still no JSON that we accept."""


def parse_arguments(raw: str, input_format: InputFormat = "json") -> ParsedArguments:
    """Parse the raw arguments text of one tool call that has ended.

    An empty text is `{}`. These cases are accepted with a warning: `null` is `{}`; a JSON string
    that holds an object is decoded; the last value of a repeated key is used; a lone surrogate
    escape becomes U+FFFD.

    These cases are errors: other JSON, invalid JSON, NaN, infinities (also by overflow), integers
    of more than `MAX_INTEGER_DIGITS` digits, and nesting deeper than `MAX_DEPTH`.

    With the format "text" the arguments are `{"input": raw}`.
    """
    if input_format == "text":
        return ParsedArguments({"input": raw})
    if not raw:
        return ParsedArguments({})
    warnings: list[str] = []
    try:
        value = _load(raw, warnings)
        if isinstance(value, str):
            value = _load_quoted(value, warnings)
    except (ValueError, RecursionError) as error:
        return ParsedArguments(None, error=_describe(error), warning=_join(warnings))
    if value is None:
        warnings.append("arguments are null, read as an empty object")
        value = {}
    if not isinstance(value, dict):
        return ParsedArguments(
            None,
            error=f"arguments are {_json_type(value)}, not an object",
            warning=_join(warnings),
        )
    return ParsedArguments(value, warning=_join(warnings))


def _load(text: str, warnings: list[str]) -> object:
    """Parse JSON strictly and append each decision to `warnings`."""
    try:
        return read_json(text, MAX_DEPTH)
    except ValueError:
        return _decide(text, warnings)


def _decide(text: str, warnings: list[str]) -> object:
    """Parse text that is invalid JSON or needs a decision, and describe the case."""
    if _SURROGATE_ESCAPE.search(text):
        text, replaced = _without_lone_surrogates(text)
        if replaced:
            warnings.append(f"{replaced} lone surrogate escape(s) replaced by U+FFFD")
    _check_depth(text)
    repeated = False

    def to_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal repeated
        members = dict(pairs)
        repeated = repeated or len(members) != len(pairs)
        return members

    value: object = json.loads(
        text,
        object_pairs_hook=to_object,
        parse_int=_to_int,
        parse_float=_to_float,
        parse_constant=_refuse_constant,
    )
    if repeated:
        warnings.append("repeated key(s), the last value counts")
    return value


def _load_quoted(text: str, warnings: list[str]) -> object:
    """Parse arguments that were encoded twice: a JSON string whose text is an object."""
    value: object = _load(text, warnings) if text.lstrip().startswith("{") else text
    if json_object(value) is not None:
        warnings.append("arguments were a JSON string holding an object, decoded")
    return value


def _without_lone_surrogates(text: str) -> tuple[str, int]:
    replaced = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal replaced
        if match["lone"] is None:
            return match[0]
        replaced += 1
        return "\\ufffd"

    return _ESCAPE.sub(replace, text), replaced


def _check_depth(text: str) -> None:
    if (
        text.count("{") + text.count("[") <= MAX_DEPTH
    ):  # cannot be deeper; spares nearly every call the walk below
        return
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        character = token[0]
        if character in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                message = f"nested deeper than {MAX_DEPTH} levels at character {token.start()}"
                raise _NotJsonError(message)
        elif character in "]}":
            depth -= 1


def _to_int(digits: str) -> int:
    if len(digits.removeprefix("-")) > MAX_INTEGER_DIGITS:
        message = f"an integer has more than {MAX_INTEGER_DIGITS} digits"
        raise _NotJsonError(message)
    return int(digits)


def _to_float(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        message = "a number is too large for a double"
        raise _NotJsonError(message)
    return value


def _refuse_constant(name: str) -> object:
    message = f"{name} is no JSON"
    raise _NotJsonError(message)


def _describe(error: ValueError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg[:1].lower()}{error.msg[1:]} at character {error.pos}"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error)


def _json_type(value: object) -> str:
    if isinstance(value, str):
        return "a string"
    if isinstance(value, bool):
        return "a boolean"
    return "an array" if isinstance(value, list) else "a number"


def _join(warnings: list[str]) -> str | None:
    return "; ".join(warnings) or None
