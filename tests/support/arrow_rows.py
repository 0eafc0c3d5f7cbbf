"""Rows that a column of messages must have, made by way of `Message`.

In: bodies, or a folded column.  Out: rows in Python's own types; a failed assertion.

Laws: nothing here uses `deltafold.arrow` to make an expectation. The module imports no other test.
"""

import json
import math
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import deltafold
from any_name import AnyName
from deltafold.arrow import Arrow

Plain: TypeAlias = Any  # a value of a row

PAIR = ("token", "logprob")


def row_of(body: bytes, dialect: AnyName, *, logprobs: bool = False) -> dict[str, Any]:
    """Return the row of a body, by way of its message."""
    (folded,) = deltafold.fold_many([body], dialect, run_id="arrow", logprobs=logprobs)
    message, error = folded.snapshot(), folded.error
    meta = message.meta
    usage = meta.usage
    tokens = meta.logprobs
    top = None if tokens is None else tokens.to_dict().get("top")
    return {
        "dialect": dialect,
        "text": message.text,
        "thinking": message.thinking,
        "tool_calls": [
            {
                "id": call.tool_call_id,
                "name": call.tool_name,
                "arguments": call.raw_args_text,
                "input_format": call.input_format,
                "incomplete": call.incomplete,
            }
            for call in message.tool_calls
        ],
        "finish_reason": meta.finish_reason,
        "raw_finish_reason": meta.raw_finish_reason,
        "usage": usage
        and {
            name: getattr(usage, name)
            for name in deltafold.arrow.message_type().field("usage").type.names
        },
        "error": error
        and {
            name: getattr(error, name)
            for name in deltafold.arrow.message_type().field("error").type.names
        },
        "warnings": [
            {name: warning.get(name) for name in ("code", "message", "offset")}
            for warning in meta.warnings
        ],
        "model_id": meta.model_id,
        "response_id": None if meta.response_id == "arrow" else meta.response_id,
        "details": meta.details,
        "custom_id": meta.custom_id,
        "timing": None,
        "tokens": tokens and tokens.tokens,
        "logprobs": tokens and tokens.logprobs.tolist(),
        "token_ids": tokens and tokens.token_ids and tokens.token_ids.tolist(),
        "alternatives": top,
    }


def without_nan(value: Plain) -> Plain:
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, list):
        return [without_nan(each) for each in cast("list[object]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, Plain]", value)
        return {name: without_nan(each) for name, each in members.items()}
    return value


def plain_row(row: dict[str, Any]) -> Plain:
    """Return a row with its details read and without NaN."""
    details: Plain = row["details"]
    alternatives: Plain = row["alternatives"]
    if isinstance(details, str):
        written = json.dumps(json.loads(details), ensure_ascii=False)
        # The column has the JSON of the wire, in which half a surrogate pair is an escape.
        details = json.loads(written.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    if alternatives is not None:
        alternatives = [
            [each if isinstance(each, dict) else dict(zip(PAIR, each, strict=True)) for each in top]
            for top in alternatives
        ]
    return without_nan({**row, "details": details, "alternatives": alternatives})


def assert_rows(folded: Arrow, expected: Sequence[dict[str, Any] | None]) -> None:
    folded.validate(full=True)
    assert folded.type == deltafold.arrow.message_type()
    rows = folded.to_pylist()
    assert len(rows) == len(expected)
    for found, wanted in zip(rows, expected, strict=True):
        if wanted is None:
            assert found is None
        else:
            assert plain_row(found) == plain_row(wanted)
