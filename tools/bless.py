"""Rewrites the expectations of the fixtures from what the code does now (`make bless`).

In: tests/fixtures/streams/<dialect>/<case>/wire.*.  Out: beside each, deltas.jsonl and
message.json, as `make test` compares them.

Law: what changes is to be read before it is committed, against the protocol section that the case's
SOURCE.md cites; a case without a SOURCE.md is refused.
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from deltafold import Decoder, MessageAssembler

if TYPE_CHECKING:
    from any_name import AnyName

FIXTURES = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "streams"

# Everything that is not in the bytes is fixed, so that the same bytes give the same files.
RUN_ID = "run"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def expectations(dialect: "AnyName", body: bytes) -> tuple[str, str]:
    """Return the contents of deltas.jsonl and message.json for a body."""
    decoder = Decoder(dialect, run_id=RUN_ID, clock=lambda: NOW)
    assembler = MessageAssembler(RUN_ID)
    deltas: list[str] = []
    for batch in (decoder.feed(body), decoder.close()):
        assembler.consume(batch)
        deltas.extend(delta.to_json() + "\n" for delta in batch)
    message = assembler.snapshot().to_dict()
    del message["id"]  # made anew for every message
    text = json.dumps(message, ensure_ascii=False, indent=2)
    return "".join(deltas), f"{text}\n"


def main() -> int:
    """Rewrite every case; returns 1 when one is not documented."""
    undocumented = 0
    for wire in sorted(FIXTURES.glob("*/*/wire.*")):
        case = wire.parent
        if not (case / "SOURCE.md").is_file():
            print(f"{case.relative_to(FIXTURES)}: no SOURCE.md says where it comes from")
            undocumented += 1
            continue
        deltas, message = expectations(case.parent.name, wire.read_bytes())
        for name, content in (("deltas.jsonl", deltas), ("message.json", message)):
            path = case / name
            if not path.is_file() or path.read_text() != content:
                path.write_text(content)
                print(f"rewrote {path.relative_to(FIXTURES)}")
    return 1 if undocumented else 0


if __name__ == "__main__":
    sys.exit(main())
