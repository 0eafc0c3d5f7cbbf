"""A file of 100,000 bodies, and the messages that every engine must make of them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pytest
from pyarrow import parquet

import deltafold
from arrow_rows import assert_rows, row_of
from scale_bodies import bodies_and_dialects

ROWS = int(os.environ.get("DELTAFOLD_ENGINE_ROWS", "100000"))


@pytest.fixture(scope="session")
def bodies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the file: every 50th body is cut, every 70th is null, each has its number."""
    path = tmp_path_factory.mktemp("bodies") / "bodies.parquet"
    whole, dialects = zip(*bodies_and_dialects(ROWS), strict=True)
    damaged = [
        None if row % 70 == 69 else body[: len(body) // 2] if row % 50 == 49 else body
        for row, body in enumerate(whole)
    ]
    table = pa.table({"id": range(ROWS), "body": damaged, "dialect": dialects})
    parquet.write_table(table, path, compression="zstd", row_group_size=10_000)
    return path


@pytest.fixture(scope="session")
def messages(bodies: Path) -> Any:
    """Return the messages of the file, row by row equal to those of `deltafold.fold`."""
    table = parquet.read_table(bodies)
    folded = deltafold.arrow.fold(table["body"], table["dialect"])
    pairs = zip(table["body"].to_pylist(), table["dialect"].to_pylist(), strict=True)
    assert_rows(folded, [None if body is None else row_of(body, name) for body, name in pairs])
    errors = pc.struct_field(folded, ["error", "code"]).drop_null()
    assert len(errors) > ROWS // 60
    return folded


@pytest.fixture
def folder(bodies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder with the file, in which the recipe runs."""
    (tmp_path / "bodies.parquet").hardlink_to(bodies)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def same(messages: Any) -> Callable[[Path], None]:
    """Return the assertion that written files hold the messages."""

    def check(path: Path) -> None:
        table = pyarrow.dataset.dataset(path, format="parquet").to_table().sort_by("id")
        assert table["id"].to_pylist() == list(range(ROWS))
        found = table["message"].cast(deltafold.arrow.message_type())
        assert found.equals(messages)

    return check
