"""Golden files of each conversation and each foreign body, for review by a reader.

In: the tables of conversations.py and foreign_bodies.py.  Out:
`tests/fixtures/requests/<dialect>/…`, written by `make bless`, compared by test_requests.py.

Law: what changes is to be read before it is committed, against the section that the folder's
SOURCE.md cites.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from any_name import AnyName
from conversations import CASES, DIALECTS, MODELS, Case
from deltafold import ParsedRequest, Rendered, parse_request
from deltafold.dialects import dialect_of
from foreign_bodies import FOREIGN, GOLDEN

FOREIGN_MODEL = "m"


def path_of(case: Case, dialect: str) -> Path:
    return GOLDEN / dialect / f"{case.name}.json"


def golden_of(case: Case, dialect: AnyName) -> dict[str, Any]:
    """Return the content of a golden file: the request, the losses, and the parsed request."""
    rendered = case.render(dialect)
    whole: dict[str, Any] = {
        "path": dialect_of(dialect).request_path(case.config(dialect), stream=True),
        "body": rendered.body,
        "notes": list(rendered.notes),
        "toolNames": dict(rendered.tool_names),
        "callIds": dict(rendered.call_ids),
        "parsed": written(parse_request(rendered.body, dialect, model_id=MODELS[dialect])),
    }
    return {name: value for name, value in whole.items() if value}


def written(parsed: ParsedRequest) -> dict[str, Any]:
    """Return a request that was read as JSON, without the members that are always new."""
    messages = [message.to_dict() for message in parsed.messages]
    for message in messages:
        del message["id"], message["timestamp"]
    whole: dict[str, Any] = {
        "messages": messages,
        "tools": [tool.model_dump(exclude_defaults=True) for tool in parsed.tools],
        "config": parsed.config,
        "stream": parsed.stream,
        "notes": list(parsed.notes),
    }
    plain: dict[str, Any] = json.loads(json.dumps(whole))
    return {name: value for name, value in plain.items() if value}


def golden_of_foreign(body: Mapping[str, object], dialect: AnyName) -> dict[str, Any]:
    """Return the golden file of a foreign body: the request, and the body rendered from it."""
    parsed = parse_request(body, dialect, model_id=FOREIGN_MODEL)
    rendered = again(parsed, dialect)
    whole: dict[str, Any] = {
        "body": body,
        "parsed": written(parsed),
        "again": None if rendered.body == body else rendered.body,
        "notes": list(rendered.notes),
    }
    return {name: value for name, value in whole.items() if value}


def again(parsed: ParsedRequest, dialect: str) -> Rendered:
    """Render a parsed request."""
    config = dialect_of(dialect).config_class.model_validate(parsed.config)
    return dialect_of(dialect).render(parsed.messages, parsed.tools, config)


def bless() -> None:
    """Rewrite all golden files from what the code does now."""
    for dialect in DIALECTS:
        folder = GOLDEN / dialect
        (folder / "foreign").mkdir(parents=True, exist_ok=True)
        for case in CASES:
            write(path_of(case, dialect), golden_of(case, dialect))
        for name, body in FOREIGN[dialect].items():
            write(folder / "foreign" / f"{name}.json", golden_of_foreign(body, dialect))


def write(path: Path, golden: Mapping[str, object]) -> None:
    text = json.dumps(golden, indent=1, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    bless()
