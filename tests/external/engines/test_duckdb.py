"""DuckDB folds on two threads (a function over Arrow)."""

from collections.abc import Callable
from pathlib import Path

import pytest
from documented import recipe, run

pytest.importorskip("duckdb")


def test_duckdb_folds_the_file(folder: Path, same: Callable[[Path], None]) -> None:
    names = run(recipe("duckdb"), {})
    names["connection"].close()
    same(folder / "messages.parquet")
