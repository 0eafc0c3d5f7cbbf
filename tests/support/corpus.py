"""Places of what tests read: the repository, the fixtures, and the corpus of recordings.

In: DELTAFOLD_CORPUS, where the corpus is not beside the checkout.  Out: the places, the recordings
of a dialect, and the mark of tests that need them.
"""

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
FIXTURES: Final = ROOT / "tests" / "fixtures" / "streams"
CORPUS = Path(os.environ.get("DELTAFOLD_CORPUS", ROOT.parent / "shared" / "corpus"))

needs_corpus = pytest.mark.skipif(
    not (CORPUS / "manifest.jsonl").is_file(),
    reason=f"no recordings at {CORPUS}; set DELTAFOLD_CORPUS",
)


def recorded(dialect: str) -> list[tuple[str, bytes]]:
    """Return name and body of each recording of a dialect."""
    lines = (CORPUS / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    files = [str(row["file"]) for row in rows if row["dialect"] == dialect]
    return [(file, (CORPUS / file).read_bytes()) for file in files]
