"""The corpus of recordings: its place, and the mark of tests that need it."""

import os
from pathlib import Path

import pytest

CORPUS = Path(
    os.environ.get(
        "DELTAFOLD_CORPUS", Path(__file__).resolve().parent.parent.parent / "shared" / "corpus"
    )
)

needs_corpus = pytest.mark.skipif(
    not (CORPUS / "manifest.jsonl").is_file(),
    reason=f"no recordings at {CORPUS}; set DELTAFOLD_CORPUS",
)
