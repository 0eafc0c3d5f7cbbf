"""Columns of Polars, pandas and DuckDB are folded as they are, by the C data interface of Arrow."""

from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deltafold
from arrow_rows import assert_rows, row_of
from scale_bodies import bodies_and_dialects

PAIRS = list(bodies_and_dialects(50))
BODIES: list[bytes | None] = [None if row % 7 == 6 else body for row, (body, _) in enumerate(PAIRS)]
DIALECTS = [dialect for _, dialect in PAIRS]


def of_pandas(values: list[Any], kind: Any) -> Any:
    return pd.Series(values, dtype=pd.ArrowDtype(kind))


def of_polars(values: list[Any], kind: Any) -> Any:
    return pl.Series(values, dtype=pl.Binary if kind == pa.binary() else pl.String)


def of_duckdb(values: list[Any], kind: Any) -> Any:
    table = pa.table({"value": pa.array(values, kind)})
    return duckdb.from_arrow(table).to_arrow_table()["value"]


@pytest.mark.parametrize("column", [of_pandas, of_polars, of_duckdb])
@pytest.mark.parametrize("is_text", [False, True])
def test_a_column_of_another_library_is_folded(column: Any, is_text: bool) -> None:
    kind = pa.string() if is_text else pa.binary()
    values = [body and body.decode() for body in BODIES] if is_text else BODIES
    folded = deltafold.arrow.fold(column(values, kind), column(DIALECTS, pa.string()))
    pairs = zip(BODIES, DIALECTS, strict=True)
    wanted = [None if body is None else row_of(body, name) for body, name in pairs]
    assert_rows(folded, wanted)
