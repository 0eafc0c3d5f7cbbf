"""Schemas in the older form of the Gemini API, a part of OpenAPI.

In: a schema with types in capitals or numbers, and `nullable`.  Out: JSON Schema.
"""

from typing import Final, cast

_COUNTS: Final = {
    "maxItems",
    "maxLength",
    "maxProperties",
    "minItems",
    "minLength",
    "minProperties",
}
"""Members of a schema that have 64 bits, which JSON of a protocol buffer writes as strings."""

_TYPE_NUMBERS: Final = ("", "string", "number", "integer", "boolean", "array", "object", "null")
"""Types of a schema, by their numbers in the API's protocol buffer `Type`."""


def json_schema_of(schema: object) -> object:
    """Bring the API's older form of a schema to JSON Schema.

    Types have names in capitals or numbers, an integer can be a string, and `nullable` is a member.
    """
    if isinstance(schema, list):
        return [json_schema_of(item) for item in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    members = cast("dict[str, object]", schema)
    found = {name: json_schema_of(value) for name, value in members.items()}
    kind = members.get("type")
    if not isinstance(kind, str | int):
        return found
    word = _type_of(kind)
    found["type"] = word
    for name in found.keys() & _COUNTS:
        if str(found[name]).isdecimal():
            found[name] = int(str(found[name]))
    if found.pop("nullable", None) is True:
        found["type"] = [word, "null"]
        if isinstance(found.get("enum"), list):
            found["enum"] = [*cast("list[object]", found["enum"]), None]
    return found


def _type_of(kind: str | int) -> str:
    if isinstance(kind, str):
        return kind.lower()
    return _TYPE_NUMBERS[kind] if 0 < kind < len(_TYPE_NUMBERS) else str(kind)
