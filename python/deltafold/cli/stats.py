"""Facts about a Parquet file of messages: a summary, and distributions in the terminal.

In: a file of `deltafold fold --to`.  Out: tables on standard output.

Law: one column is held at a time.
"""

import math
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from deltafold.cli.exits import EXIT_DONE, EXIT_ERROR, EXIT_USAGE, complain
from deltafold.cli.table import print_table
from deltafold.contract.exceptions import MisuseError
from deltafold.testing.captures.parquet import MAGIC

_WRITES: Final = "deltafold fold {} --to rows.parquet writes one for deltafold stats"
_BINS: Final = 16
_WIDTH: Final = 40
_BLOCKS: Final = " ▏▎▍▌▋▊▉█"
_QUANTILES: Final = (0.5, 0.95, 0.99)
_WHOLE_FROM: Final = 100

_DISTRIBUTIONS: Final = (
    ("output tokens", "usage.output_tokens"),
    ("input tokens", "usage.input_tokens"),
    ("seconds to the first byte", "timing.time_to_first_byte"),
    ("seconds to the first text", "timing.time_to_first_text"),
    ("seconds in all", "timing.duration"),
    ("cost in US dollars", "cost_usd"),
)
_COUNTED: Final = (
    ("finish reason", "finish_reason"),
    ("error", "error.code"),
    ("model", "model_id"),
    ("dialect", "dialect"),
)


class _Table:
    """A Parquet file of messages, read by columns."""

    def __init__(self, path: str) -> None:
        try:
            parquet: Any = import_module("pyarrow.parquet")
        except ModuleNotFoundError as missing:
            raise MisuseError(
                "pyarrow is not installed: pip install 'deltafold[arrow]'"
            ) from missing
        self.compute: Any = import_module("pyarrow.compute")
        self._file: Any = parquet.ParquetFile(path)
        self.rows: int = self._file.metadata.num_rows
        columns = set(self._file.schema_arrow.names)
        missing_columns = {place.partition(".")[0] for _, place in _DISTRIBUTIONS} - columns
        if missing_columns:
            raise MisuseError(
                f"{path} is not a file of `deltafold fold --to`: it has no column "
                f"{', '.join(sorted(missing_columns))}"
            )

    def column(self, place: str) -> Any:  # noqa: ANN401 - pyarrow has no types
        """Return a column, or a field of one (`column.field`), without its nulls."""
        name, *fields = place.split(".")
        column = self._file.read([place])[name]
        for field in fields:
            column = self.compute.struct_field(column, field)
        return column.drop_null()

    def counted(self, place: str) -> list[tuple[str, int]]:
        """Return the values of a column and how often each occurs, the most frequent first."""
        pairs = self.compute.value_counts(self.column(place)).to_pylist()
        return sorted(
            ((pair["values"], pair["counts"]) for pair in pairs), key=lambda pair: -pair[1]
        )


def print_summary(path: str) -> None:
    """Print streams, errors by code, tokens, cost and times."""
    table = _Table(path)
    errors = table.counted("error.code")
    failed = sum(count for _, count in errors)
    rows = [("streams", f"{table.rows:,}"), ("ended in an error", f"{failed:,}")]
    rows += [(f"  {code}", f"{count:,}") for code, count in errors]
    for name, place in (
        ("input tokens", "usage.input_tokens"),
        ("output tokens", "usage.output_tokens"),
    ):
        rows.append((name, f"{table.compute.sum(table.column(place)).as_py() or 0:,}"))
    costs = table.column("cost_usd")
    if len(costs):
        known = "" if len(costs) == table.rows else f" ({len(costs):,} streams with a price)"
        rows.append(("cost", f"${table.compute.sum(costs).as_py():,.4f}{known}"))
    for name, place in (
        ("time to first byte", "timing.time_to_first_byte"),
        ("time to first text", "timing.time_to_first_text"),
    ):
        times = table.column(place)
        if len(times):
            median, high, _ = table.compute.quantile(times, list(_QUANTILES)).to_pylist()
            rows.append((name, f"{median:.3f} s (95 %: {high:.3f} s)"))
    print_table(("of all streams", "value"), rows)


def show_stats(path: str) -> int:
    """Print the summary and the distributions of a file; returns the exit code."""
    try:
        _check(path)
        print_summary(path)
        table = _Table(path)
    except (OSError, ValueError, MisuseError) as problem:
        complain(problem, path)
        return EXIT_USAGE
    for name, place in _COUNTED:
        pairs = table.counted(place)
        if pairs:
            print()
            highest = pairs[0][1]
            bars = [(value, f"{count:,}", bar(count / highest)) for value, count in pairs[:_BINS]]
            print_table((name, "streams", ""), bars)
    for name, place in _DISTRIBUTIONS:
        values = table.column(place)
        if len(values):
            print()
            _print_distribution(name, values, table.compute)
    return EXIT_ERROR if table.counted("error.code") else EXIT_DONE


def _check(path: str) -> None:
    """Raise MisuseError for what is no Parquet file, and OSError for what cannot be read."""
    if Path(path).is_dir():
        raise MisuseError(f"{path} is a folder, no Parquet file: {_WRITES.format(path)}")
    with Path(path).open("rb") as file:
        begins = file.read(len(MAGIC))
    if not begins:
        raise MisuseError(f"{path} is empty: deltafold fold FILES --to {path} did not end")
    if begins != MAGIC:
        raise MisuseError(f"{path} is no Parquet file: {_WRITES.format(path)}")


def bar(share: float) -> str:
    """Return a bar of a share between 0 and 1.

    >>> bar(0.5)
    '████████████████████'
    """
    eighths = round(share * _WIDTH * 8)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_BLOCKS[rest] if rest else "")


def _print_distribution(name: str, values: Any, compute: Any) -> None:  # noqa: ANN401 - as above
    """Print quantiles and a histogram, whose classes grow by a constant factor."""
    quantiles = compute.quantile(values, list(_QUANTILES)).to_pylist()
    ends = compute.min_max(values).as_py()
    low, high = ends["min"], ends["max"]
    shown = ", ".join(
        f"{share:.0%} {number(value)}" for share, value in zip(_QUANTILES, quantiles, strict=True)
    )
    print(f"{name}: {number(low)} to {number(high)}; {shown}")
    positive = compute.filter(values, compute.greater(values, 0))
    if not len(positive) or low == high:
        return
    first = compute.min(positive).as_py()
    width = max(math.log(high / first) / _BINS, 1e-9)
    places = compute.floor(
        compute.divide(
            compute.ln(compute.divide(compute.cast(positive, "double"), float(first))), width
        )
    )
    counts = [0] * _BINS
    for pair in compute.value_counts(places).to_pylist():
        counts[min(int(pair["values"]), _BINS - 1)] += pair["counts"]
    highest = max(counts)
    rows = [
        (f"from {number(first * math.exp(width * place))}", f"{count:,}", bar(count / highest))
        for place, count in enumerate(counts)
    ]
    print_table((name, "streams", ""), rows)


def number(value: float) -> str:
    """Return a number with three significant digits, or all digits before the point.

    >>> number(0.01234), number(1234567)
    ('0.0123', '1,234,567')
    """
    return f"{value:,.0f}" if abs(value) >= _WHOLE_FROM else f"{value:.3g}"
