"""Polars folds on two threads (`map_batches`)."""

from collections.abc import Callable
from pathlib import Path

import pytest
from documented import recipe, run

pytest.importorskip("polars")


def test_polars_folds_the_file(folder: Path, same: Callable[[Path], None]) -> None:
    run(recipe("polars"), {})
    same(folder / "messages.parquet")
