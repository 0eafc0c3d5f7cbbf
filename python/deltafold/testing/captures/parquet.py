"""Columns of Parquet: each value of the column of bodies is a response.

In: the bytes of a file.  Out: the bodies, and the number of the row of each.

Laws: the column is found if the values of one alone are bodies. A value that is repeated is held
once, so that a small file does not unpack to a large one. pyarrow is imported when a file is read.
"""

from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from typing import Any, Final

from deltafold.contract.exceptions import MisuseError
from deltafold.testing.captures.json_values import is_body

MAGIC: Final = b"PAR1"

_BATCH_ROWS: Final = 64


def rows_of(file: Any, name: str, column: str | None) -> Iterator[tuple[int, bytes]]:  # noqa: ANN401 - any binary file
    """Yield the number of each row from 1 and its body; a null is left out.

    Raises:
        MisuseError: pyarrow is not installed, or the column of bodies is not known.
        ValueError: the file is damaged.
    """
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as missing:
        raise MisuseError(
            "pyarrow, which reads Parquet, is not installed: pip install 'deltafold[arrow]'"
        ) from missing
    opened = parquet.ParquetFile(file)
    names = _columns_of_bytes(opened.schema_arrow)
    if column is not None and column not in names:
        raise MisuseError(f"{name}: no column {column!r} of text or bytes, only {_listed(names)}")
    column = column or _found(opened, names, name)
    opened = parquet.ParquetFile(file, read_dictionary=[column])
    number = 0
    for batch in opened.iter_batches(_BATCH_ROWS, columns=[column]):
        for value in batch.column(0):
            number += 1
            body = value.as_py()
            if body is not None:
                yield number, body.encode() if isinstance(body, str) else body


def _columns_of_bytes(schema: Any) -> list[str]:  # noqa: ANN401 - pyarrow has no types
    types: Any = import_module("pyarrow.types")
    tests = (
        types.is_string,
        types.is_large_string,
        types.is_binary,
        types.is_large_binary,
        types.is_string_view,
        types.is_binary_view,
    )

    def has_bytes(kind: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return any(test(kind) for test in tests)

    return [field.name for field in schema if has_bytes(field.type)]


def _found(opened: Any, names: list[str], name: str) -> str:  # noqa: ANN401 - pyarrow has no types
    fitting: list[str] = []
    if names:
        for batch in islice(opened.iter_batches(_BATCH_ROWS, columns=names), 1):
            fitting += [one for one in names if any(is_body(each.as_py()) for each in batch[one])]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise MisuseError(
            f"{name}: several columns hold bodies: {_listed(fitting)}; name one with --column"
        )
    raise MisuseError(
        f"{name}: no column holds the bytes of a stream or an answer, among {_listed(names)}; "
        "name it with --column if it has"
    )


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "no column of text or bytes"
