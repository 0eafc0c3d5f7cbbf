"""Settings that several dialects have, and conversions that their tables share.

In: the value of a setting in one dialect.  Out: portable settings, and the value in another.

Law: a conversion that loses something notes it.
Source: the references of the APIs and the types of their official clients (read 2026-11).
"""

import re
from collections.abc import Collection, Mapping
from typing import Any, Final, cast

from deltafold.contract.kinds import json_object
from deltafold.dialects.settings import Object
from deltafold.dialects.settings_table import Conversion, Counterpart, Path
from deltafold.specs.output_schema import OutputSchema

PORTABLE: Final[Mapping[str, object]] = {
    "max_tokens": None,
    "temperature": None,
    "top_p": 1.0,
    "top_k": None,
    "stop_sequences": (),
    "seed": None,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "candidate_count": 1,
    "logprobs": False,
    "top_logprobs": 0,
    "tool_choice": None,
    "parallel_tool_calls": True,
    "reasoning_effort": None,
    "reasoning_budget": None,
    "reasoning_summary": False,
    "verbosity": None,
    "output_schema": None,
    "modalities": ("text",),
    "prediction": None,
    "service_tier": "auto",
    "user": None,
    "safety_identifier": None,
    "metadata": None,
    "store": False,
    "prompt_cache_key": None,
    "cache_config": None,
}
"""Names of the portable settings, each with the value that every API has without the setting.

An API without the setting needs no note for that value. None marks a setting without such a value.
"""

_NAME: Final = re.compile("[^a-zA-Z0-9_-]")
UNNAMED: Final = "response"
"""Name of a schema without a name, at the APIs that require one."""


def within(name: str, low: float, high: float) -> Counterpart:
    """Return the counterpart of a number with a range: a number outside moves to the limit."""

    def write(values: Mapping[str, Any], conversion: Conversion) -> object:
        value = values[name]
        moved = type(value)(min(max(value, low), high))
        if moved != value:
            conversion.change(name, f"{conversion.target} takes {low} to {high}: {moved} is sent")
        return moved

    return Counterpart((name,), write=write)


def at_most_stops(count: int) -> Counterpart:
    """Return the counterpart of stop sequences where an API takes a limited number."""

    def write(values: Mapping[str, Any], conversion: Conversion) -> object:
        stops = cast("tuple[str, ...]", values["stop_sequences"])
        if len(stops) > count:
            left_out = ", ".join(map(repr, stops[count:]))
            reason = f"{conversion.target} takes at most {count}: {left_out} is left out"
            conversion.change("stop_sequences", reason)
        return stops[:count]

    return Counterpart(("stop_sequences",), write=write)


def at_least(name: str, low: int) -> Counterpart:
    """Return the counterpart of a number with a lower limit."""

    def write(values: Mapping[str, Any], conversion: Conversion) -> object:
        value = values[name]
        if value < low:
            conversion.change(name, f"{conversion.target} takes at least {low}: {low} is sent")
        return max(value, low)

    return Counterpart((name,), write=write)


def only_words(name: str, *known: str) -> Counterpart:
    """Return the counterpart of a list of words where an API takes only some of them."""

    def write(values: Mapping[str, Any], conversion: Conversion) -> object:
        given = cast("tuple[str, ...]", values[name])
        refused = [word for word in given if word not in known]
        if refused:
            conversion.change(name, f"{conversion.target} has no {', '.join(refused)}")
        return tuple(word for word in given if word in known) or None

    return Counterpart((name,), write=write)


def words(name: str, portable: Mapping[str, str], member: Path = ()) -> Counterpart:
    """Return the counterpart of a setting with a fixed list of words.

    Args:
        name: name of the portable setting.
        portable: the portable word for each word of the API.
        member: place of the word in an object.
    """
    own = {word: api_word for api_word, word in reversed(list(portable.items()))}

    def read(value: object, conversion: Conversion) -> Mapping[str, object]:
        word = portable.get(str(value))
        if word is None:
            conversion.drop(name, f"{value} is a word of this API")
            return {}
        return {name: word}

    def write(values: Mapping[str, Any], conversion: Conversion) -> object:
        word = own.get(str(values[name]))
        if word is None:
            conversion.drop(name, f"{conversion.target} has no {values[name]}")
        return word

    return Counterpart((name,), member, read, write)


def read_user(value: object, _conversion: Conversion) -> Mapping[str, object]:
    """Return an identifier of the end user, which Anthropic uses to find abuse."""
    return {"safety_identifier": value}


def write_user(values: Mapping[str, Any], conversion: Conversion) -> object:
    """Return the identifier of the end user: the one against abuse, else the older `user`."""
    if "safety_identifier" in values and "user" in values:
        conversion.drop("user", "safety_identifier is sent")
    return values.get("safety_identifier", values.get("user"))


def write_logprobs(values: Mapping[str, Any], _conversion: Conversion) -> object:
    """Return whether to ask for log probabilities: a number of alternatives implies it."""
    return values.get("logprobs") or bool(values.get("top_logprobs")) or None


LOGPROBS: Final = Counterpart(("logprobs", "top_logprobs"), write=write_logprobs)


def schema_of(value: Mapping[str, object]) -> OutputSchema:
    """Return the schema of an object `{schema, name, description, strict}`."""
    return OutputSchema(
        json_schema=dict(json_object(value.get("schema")) or {}),
        name=cast("str | None", value.get("name")),
        description=cast("str | None", value.get("description")),
        strict=cast("bool | None", value.get("strict")),
    )


def _named_schema(schema: OutputSchema) -> Object:
    """Return `{name, schema, description?, strict?}`, the form of OpenAI and its copies."""
    name = _NAME.sub("_", schema.name or UNNAMED)[:64]
    members: Object = {"name": name, "schema": dict(schema.json_schema or {})}
    if schema.description is not None:
        members["description"] = schema.description
    if schema.strict is not None:
        members["strict"] = schema.strict
    return members


def only_schema(
    values: Mapping[str, Any], conversion: Conversion, keeps: Collection[str] = ()
) -> OutputSchema:
    """Return the schema of the answer, and note its members that the API does not have.

    `strict` needs no note where it is true: an API without the member always holds to the schema.
    """
    schema = cast("OutputSchema", values["output_schema"])
    lost = [
        name
        for name in ("name", "description", "strict")
        if name not in keeps and getattr(schema, name) is not None
    ]
    if schema.strict:
        lost = [name for name in lost if name != "strict"]
    if lost:
        reason = f"{conversion.target} has no {', '.join(lost)} of a schema"
        conversion.change("output_schema", reason)
    return schema


def no_json_mode(schema: OutputSchema, conversion: Conversion) -> bool:
    """Return whether a schema is missing, at an API that needs one; note it."""
    if schema.json_schema is None:
        conversion.drop("output_schema", f"{conversion.target} has no JSON output without a schema")
    return schema.json_schema is None


def write_nothing(_values: Mapping[str, Any], _conversion: Conversion) -> object:
    """Leave out a member whose setting is written to another member."""
    return None


def read_text_format(value: Mapping[str, object], conversion: Conversion) -> Mapping[str, object]:
    """Read `text.format` of Responses: `{type, name?, schema?, ...}`."""
    match value.get("type"):
        case "json_schema":
            return {"output_schema": schema_of(value)}
        case "json_object":
            return {"output_schema": OutputSchema()}
        case "text":
            return {}
        case kind:
            conversion.drop("output_schema", f"{kind} is a format of this API")
            return {}


def write_text_format(values: Mapping[str, Any], _conversion: Conversion) -> Object:
    """Write `text.format` of Responses."""
    schema = cast("OutputSchema", values["output_schema"])
    if schema.json_schema is None:
        return {"type": "json_object"}
    return {"type": "json_schema", **_named_schema(schema)}


def _read_response_format(
    value: Mapping[str, object], conversion: Conversion
) -> Mapping[str, object]:
    """Read `response_format` of Chat: `{type, json_schema?}`."""
    schema = json_object(value.get("json_schema")) or {}
    return read_text_format({**schema, "type": value.get("type")}, conversion)


def _write_response_format(values: Mapping[str, Any], conversion: Conversion) -> object:
    """Write `response_format` of Chat."""
    schema = write_text_format(values, conversion)
    kind = schema.pop("type")
    return {"type": kind, "json_schema": schema} if schema else {"type": kind}


RESPONSE_FORMAT: Final = Counterpart(
    ("output_schema",), read=_read_response_format, write=_write_response_format
)
