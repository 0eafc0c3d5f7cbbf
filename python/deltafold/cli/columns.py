"""`deltafold fold --to`: recorded streams become rows of a Parquet file.

In: files and folders.  Out: a Parquet file with a row for each stream, its progress on
a terminal, and a summary.

Laws: memory is bounded by a batch of streams. A file that cannot be read costs no other file. The
target appears when all rows are in it.
"""

import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Self

from deltafold import arrow, target_names
from deltafold.cli.exits import EXIT_DONE, EXIT_ERROR, EXIT_USAGE, complain
from deltafold.cli.progress import open_progress
from deltafold.cli.recorded import UNREADABLE, Named, files_below, recorded_in
from deltafold.cli.stats import print_summary, show_stats
from deltafold.contract.exceptions import MisuseError
from deltafold.contract.names import ProtocolName
from deltafold.contract.near_names import did_you_mean
from deltafold.contract.usage import Usage
from deltafold.dialects import DIALECTS
from deltafold.message.cost import cost_of
from deltafold.models.vendors import VENDORS
from deltafold.testing.captures.captured import Captured
from deltafold.testing.captures.reading import ReadOptions

_BATCH_BYTES: Final = 32 << 20
_BATCH_ROWS: Final = 10_000
_ENDINGS: Final = (".parquet", ".pq")


def fold_to_parquet(
    names: list[str],
    target: str,
    dialect: ProtocolName | None = None,
    vendor: str | None = None,
    *,
    options: ReadOptions,
    summarizes: bool = True,
) -> int:
    """Fold all streams into the rows of a Parquet file; returns the exit code.

    Args:
        names: files and folders.
        target: the Parquet file.
        dialect: the protocol of all streams; None detects that of each.
        vendor: the vendor of all streams, for prices; None takes that of the dialect.
        options: the column and the bound of captures.
        summarizes: print the summary of the file.
    """
    unfinished = Path(f"{target}.unfinished")
    try:
        _check(target, vendor)
        files = files_below(names)
        with _Rows(unfinished, dialect, vendor) as rows:
            is_whole = _fold_all(files, rows, options)
        unfinished.replace(target)
        if summarizes:
            print_summary(target)
    except (OSError, MisuseError) as problem:
        complain(problem)
        return EXIT_USAGE
    finally:
        unfinished.unlink(missing_ok=True)
    if not is_whole:
        return EXIT_USAGE
    return EXIT_ERROR if rows.errors else EXIT_DONE


def _check(target: str, vendor: str | None) -> None:
    """Raise MisuseError for a target that is no Parquet file, and for a misspelled vendor.

    A vendor that only the prices know is none of `VENDORS`.
    """
    if Path(target).suffix.lower() not in _ENDINGS:
        if target in target_names():
            raise MisuseError(
                f"fold --to writes rows: deltafold transcode FILE --to {target} writes a stream"
            )
        raise MisuseError(
            f"--to {target}: it writes Parquet; name the file {Path(target).stem}.parquet, or take "
            "--json for a line of JSON each"
        )
    if vendor is not None and vendor not in VENDORS:
        hint = did_you_mean(vendor, VENDORS)
        if hint:
            raise MisuseError(f"--vendor: there is no vendor {vendor!r}{hint}")


def show_batch_stats(file: str) -> int:
    """Show the distributions of the results of a batch; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="deltafold-") as folder:
        target = str(Path(folder, "messages.parquet"))
        code = fold_to_parquet([file], target, options=ReadOptions(), summarizes=False)
        return code if code == EXIT_USAGE else show_stats(target)


def _fold_all(files: list[Named], rows: "_Rows", options: ReadOptions) -> bool:
    """Fold the streams of all files; return whether all of them could be read."""
    is_whole = True
    with open_progress(file.file for file in files) as progress:
        for file in files:
            try:
                for stream in recorded_in(file, options, progress):
                    rows.append(stream)
            except UNREADABLE as problem:
                progress.erase()
                complain(problem, file.file)
                is_whole = False
    return is_whole


class _Rows:
    """Rows that are folded and written by batches."""

    def __init__(self, path: Path, dialect: ProtocolName | None, vendor: str | None) -> None:
        message = arrow.message_type()  # names the extra if pyarrow is missing
        self._pa: Any = import_module("pyarrow")
        self._dialect: ProtocolName | None = dialect
        self._vendor = vendor
        self._waiting: list[Captured] = []
        self._bytes = 0
        self.errors = 0
        pa = self._pa
        own = [
            pa.field("source", pa.string()),
            pa.field("status", pa.int32()),
            pa.field("cost_usd", pa.float64()),
        ]
        self._schema = pa.schema([*own, *message])
        parquet: Any = import_module("pyarrow.parquet")
        self._writer = parquet.ParquetWriter(path, self._schema, compression="zstd")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._write()
        self._writer.close()

    def append(self, stream: Captured) -> None:
        """Add a row, and write a batch that is full."""
        self._waiting.append(stream)
        self._bytes += len(stream.body)
        if self._bytes >= _BATCH_BYTES or len(self._waiting) >= _BATCH_ROWS:
            self._write()

    def _write(self) -> None:
        streams, self._waiting, self._bytes = self._waiting, [], 0
        if not streams:
            return
        pa = self._pa
        statuses = pa.array([stream.status for stream in streams], pa.int32())
        piece = pa.struct([("after", pa.float64()), ("bytes", pa.int64())])
        messages = arrow.fold(
            pa.array([stream.body for stream in streams], pa.large_binary()),
            self._dialect or pa.array([stream.dialect for stream in streams], pa.string()),
            statuses=statuses,
            pieces=pa.array([_pieces(stream) for stream in streams], pa.list_(piece)),
            logprobs=True,
        )
        self.errors += len(messages) - messages.field("error").null_count
        columns = [
            pa.array([stream.place for stream in streams], pa.string()),
            statuses,
            pa.array(self._costs(streams, messages), pa.float64()),
            *messages.flatten(),
        ]
        self._writer.write_batch(pa.record_batch(columns, schema=self._schema))

    def _costs(
        self,
        streams: list[Captured],
        messages: Any,  # noqa: ANN401 - pyarrow has no types
    ) -> list[float | None]:
        costs: list[float | None] = []
        columns = (messages.field(name).to_pylist() for name in ("dialect", "model_id", "usage"))
        for stream, dialect, model_id, usage in zip(streams, *columns, strict=True):
            vendor = self._vendor or _own_vendor(dialect)
            details: dict[str, object] = {"processing": "batch"} if stream.is_batched else {}
            counted = None if usage is None else Usage.model_construct(**usage, details=details)
            costs.append(cost_of(counted, vendor, model_id or "").usd)
        return costs


def _pieces(stream: Captured) -> list[tuple[float, int]] | None:
    """Return the seconds before each piece of the body, and its size; None without times."""
    recording = stream.recording
    if recording is None:
        return None
    pieces = [(after, len(piece)) for after, piece in recording.pieces_sent()]
    if pieces:
        after, size = pieces[0]
        pieces[0] = (after + recording.headers_after, size)
    return pieces


@cache
def _own_vendor(dialect: str) -> str:
    """Return the vendor whose prices a stream has, unless the caller names another.

    A dialect that is only decoded has no author: it has the prices of the first vendor that lists
    it.
    """
    row = DIALECTS.get(dialect)
    if row is not None:
        return row.author
    return next((one.name for one in VENDORS.values() if dialect in one.addresses), "")
