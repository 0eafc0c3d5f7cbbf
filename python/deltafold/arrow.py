"""Columns of response bodies: an Arrow array of bodies becomes a struct array of messages.

In: any object with the Arrow C data interface: pyarrow, Polars, DuckDB, pandas 3.  Out: pyarrow.

Laws: the bodies are read in place, on all cores, with the GIL released. No Python object is made
for a row. A row that fails holds its error and the received parts, and costs no other row. A row
has the same message in every batch, in every process and on every machine.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final, Protocol, TypeAlias, Unpack, cast, runtime_checkable

from deltafold._core import Decoder, dialect_names, fold_columns
from deltafold.contract.exceptions import MisuseError, UnknownDialectError
from deltafold.contract.names import ProtocolName
from deltafold.streams.options import DecoderOptions

__all__ = ["ArrowColumn", "fold", "message_type"]

RUN_ID: Final = "arrow"
"""Run id of all rows, unless the caller gives one: made-up ids of tool calls depend on it."""

# Offsets of the result have 32 bits, and an invalid byte of a body becomes a character of three.
_BATCH_BYTES: Final = 512 << 20
_STATUS_OK: Final = 200


Arrow: TypeAlias = Any
"""An object of pyarrow, which has no types."""


@runtime_checkable
class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...


@runtime_checkable
class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


ArrowColumn: TypeAlias = _ArrowArray | _ArrowStream
"""A column that has the Arrow C data interface.

>>> import pyarrow
>>> isinstance(pyarrow.array([b""]), ArrowColumn)
True
"""


@cache
def message_type() -> Arrow:
    """Return the type of a folded message: a `pyarrow.StructType`, the same for every row.

    A value that a message lacks is null. The fields mean what those of `Message` and `Meta` mean:

    - `dialect`: the dialect that decoded the row; null if the body fits none, or its dialect has an
      unknown name.
    - `text`, `thinking`: all parts of the kind, joined. These and `tool_calls` are null in a row
      whose dialect has an unknown name.
    - `tool_calls`: a list of `id`, `name`, `arguments` (the raw text), `input_format` and
      `incomplete`.
    - `finish_reason`, `raw_finish_reason`: null if the stream ended in an error.
    - `usage`: the token counts, and the `cost` in US dollars that the provider stated. A count
      that 64 bits with a sign cannot hold is null.
    - `error`: `code`, `message`, `retryable`, `retry_after` (seconds), `status`, `provider_code`
      and `http_request_id`; null if the stream ended well.
    - `warnings`: a list of `code`, `message` and `offset` (bytes).
    - `model_id`, `response_id`: those of the body.
    - `details`: JSON of further facts, under the provider's names.
    - `custom_id`: the id that the caller gave a request of a batch, of a body that is a line of its
      result file.
    - `timing`: seconds since the request, of a row with recorded pieces.
    - `tokens`, `logprobs`, `token_ids`, `alternatives`: those of all tokens, if `logprobs=True`. A
      missing log probability is NaN and a missing id is -1.

    >>> message_type().field("text").type
    DataType(string)
    """
    pa = _pyarrow()
    text, number, count, flag = pa.string(), pa.float64(), pa.int64(), pa.bool_()

    def struct(**fields: Arrow) -> Arrow:
        return pa.struct(list(fields.items()))

    return struct(
        dialect=text,
        text=text,
        thinking=text,
        tool_calls=pa.list_(
            struct(id=text, name=text, arguments=text, input_format=text, incomplete=flag)
        ),
        finish_reason=text,
        raw_finish_reason=text,
        usage=struct(
            input_tokens=count,
            output_tokens=count,
            total_tokens=count,
            cache_read_tokens=count,
            cache_write_tokens=count,
            reasoning_tokens=count,
            cost=number,
        ),
        error=struct(
            code=text,
            message=text,
            retryable=flag,
            retry_after=number,
            status=count,
            provider_code=text,
            http_request_id=text,
        ),
        warnings=pa.list_(struct(code=text, message=text, offset=count)),
        model_id=text,
        response_id=text,
        details=text,
        custom_id=text,
        timing=struct(
            time_to_first_byte=number,
            time_to_first_delta=number,
            time_to_first_text=number,
            duration=number,
        ),
        tokens=pa.list_(text),
        logprobs=pa.list_(number),
        token_ids=pa.list_(count),
        alternatives=pa.list_(pa.list_(struct(token=text, logprob=number))),
    )


def fold(
    bodies: ArrowColumn,
    dialects: ProtocolName | ArrowColumn | None = None,
    *,
    statuses: ArrowColumn | None = None,
    pieces: ArrowColumn | None = None,
    threads: int | None = None,
    **options: Unpack[DecoderOptions],
) -> Arrow:
    r"""Fold a column of whole bodies into a column of messages, on all cores, without the GIL.

    Returns a `pyarrow.StructArray` of `message_type()`; a `pyarrow.ChunkedArray` for a chunked
    column. A null row stays null. A row that ends in an error holds it in `error`, beside the parts
    that came; the call does not raise for it. Memory is bounded by the column: fold one batch of a
    file after the other.

    >>> import pyarrow
    >>> body = b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
    >>> folded = deltafold.arrow.fold(pyarrow.array([body, None, b""]), "openai-chat")
    >>> folded.field("text").to_pylist()
    ['Hi', None, '']
    >>> folded.field("error").field("code").to_pylist()
    [None, None, 'protocol_error']

    Args:
        bodies: a column of binary, string or their large and view forms.
        dialects: the wire protocol of all rows, or a column with that of each row. A null, and
            None for all rows, means that it is detected; of two that fit, the first one is used. A
            row whose name is no dialect has an error.
        statuses: the HTTP status of each row; a null is 200.
        pieces: how each body arrived: a list of `after` (seconds of silence before the piece) and
            `bytes` (its size), for the column `timing`.
        threads: number of threads; the default is the number of cores.
        options: the options of `Decoder`, for all rows. The default of `run_id` is "arrow", so that
            a row has the same made-up ids wherever it is folded.

    Raises:
        UnknownDialectError: `dialects` is one name for all rows, and it is no dialect.
        MisuseError: pyarrow is not installed.
        TypeError: an argument is not a column, or has another type.
        ValueError: the columns differ in length, or `threads` is 0.
        OverflowError: a column of the result is larger than 2 GiB.
    """
    pa = _pyarrow()
    given = _as_arrow(bodies, "bodies")
    columns = {"bodies": given}
    if dialects is not None and not isinstance(dialects, str):
        columns["dialects"] = _as_arrow(dialects, "dialects")
    if statuses is not None:
        columns["statuses"] = _as_arrow(statuses, "statuses").fill_null(_STATUS_OK).cast(pa.int32())
    if pieces is not None:
        columns["pieces"] = _as_arrow(pieces, "pieces").cast(
            pa.list_(pa.struct([("after", pa.float64()), ("bytes", pa.int64())]))
        )
    for name, column in columns.items():
        if len(column) != len(given):
            raise ValueError(f"{name} has {len(column)} rows, and bodies has {len(given)}")
    folding = _Folding(dialects if isinstance(dialects, str) else None, threads, options)
    # A table brings the chunks of its columns into the same batches, without a copy.
    batches = pa.table(columns).to_batches()
    folded = [folding.fold(part) for batch in batches for part in _parts(_without_views(batch))]
    if isinstance(given, pa.ChunkedArray):
        return pa.chunked_array(folded, message_type())
    if len(folded) == 1:
        return folded[0]
    return pa.concat_arrays(folded) if folded else pa.array([], message_type())


class _Folding:
    """One call of `fold`: the decoders of its dialects, made once for all batches."""

    def __init__(
        self, dialect: ProtocolName | None, threads: int | None, options: DecoderOptions
    ) -> None:
        self._options: DecoderOptions = {**options, "run_id": options.get("run_id") or RUN_ID}
        self._threads = threads
        self._decoders: dict[str, Decoder | None] = {}
        self._of_all: list[tuple[str, Decoder | None]] = []
        if dialect is not None:
            self._of_all.append((dialect, Decoder(dialect, **self._options)))

    def fold(self, batch: Arrow) -> Arrow:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        bodies = _body_buffers(columns["bodies"])
        decoders, codes = self._of_all, None
        if "dialects" in columns:
            names = _plain(columns["dialects"]).dictionary_encode()
            decoders = self._named(names.dictionary.to_pylist())
            codes = _numbers(names.indices.fill_null(-1).cast(_pyarrow().int32()))
            is_detected = names.null_count > 0
        else:
            is_detected = not decoders
        buffers = fold_columns(
            bodies,
            decoders,
            self._named(dialect_names()) if is_detected else [],
            codes=codes,
            statuses=_numbers(columns["statuses"]) if "statuses" in columns else None,
            pieces=_pieces(columns["pieces"]) if "pieces" in columns else None,
            threads=self._threads,
        )
        return _array(message_type(), len(batch), iter(buffers))

    def _named(self, names: Sequence[str]) -> list[tuple[str, Decoder | None]]:
        """Return the decoders of dialects; None for a name that is no dialect."""
        for name in names:
            if name not in self._decoders:
                try:
                    self._decoders[name] = Decoder(cast("ProtocolName", name), **self._options)
                except UnknownDialectError:
                    self._decoders[name] = None
        return [(name, self._decoders[name]) for name in names]


@cache
def _pyarrow() -> Arrow:
    try:
        return import_module("pyarrow")
    except ModuleNotFoundError as missing:
        raise MisuseError("pyarrow is not installed: pip install 'deltafold[arrow]'") from missing


def _as_arrow(column: object, name: str) -> Arrow:
    """Return a column as an array of pyarrow; nothing is copied."""
    pa = _pyarrow()
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    if isinstance(column, _ArrowArray):
        return pa.array(column)
    if isinstance(column, _ArrowStream):
        return pa.chunked_array(column)
    kind = type(column).__qualname__
    raise TypeError(f"{name} must be an Arrow array, not {kind}; pyarrow.array() makes one")


def _without_views(batch: Arrow) -> Arrow:
    """Return a batch whose bodies lie in one buffer; those of a view are copied."""
    pa = _pyarrow()
    bodies = batch.column(0)
    if bodies.type not in {pa.binary_view(), pa.string_view()}:
        return batch
    return batch.set_column(0, "bodies", bodies.cast(pa.large_binary()))


def _parts(batch: Arrow) -> Iterator[Arrow]:
    """Halve a batch until the bodies of each part are small enough for offsets of 32 bits."""
    if len(batch) <= 1 or batch.column(0).nbytes <= _BATCH_BYTES:
        yield batch
        return
    half = len(batch) // 2
    yield from _parts(batch.slice(0, half))
    yield from _parts(batch.slice(half))


def _plain(array: Arrow) -> Arrow:
    """Return an array of texts or bytes without a dictionary."""
    return array.dictionary_decode() if _pyarrow().types.is_dictionary(array.type) else array


_Buffer: TypeAlias = memoryview | bytes


def _body_buffers(array: Arrow) -> tuple[_Buffer | None, _Buffer, _Buffer, int, int, bool]:
    pa = _pyarrow()
    array = _plain(array)
    kind = array.type
    if kind == pa.null():
        array = array.cast(pa.large_binary())
    elif kind not in {pa.binary(), pa.string(), pa.large_binary(), pa.large_string()}:
        raise TypeError(f"bodies must be a column of binary or string, not {kind}")
    validity, offsets, data = array.buffers()
    is_large = array.type in {pa.large_binary(), pa.large_string()}
    return (
        None if validity is None else _bytes(validity),
        _bytes(offsets),
        _bytes(data),
        array.offset,
        len(array),
        is_large,
    )


def _bytes(buffer: Arrow) -> _Buffer:
    return b"" if buffer is None else memoryview(buffer).cast("B")


def _numbers(array: Arrow) -> tuple[_Buffer, int]:
    return _bytes(array.buffers()[1]), array.offset


def _pieces(array: Arrow) -> tuple[_Buffer | None, _Buffer, int, _Buffer, int, _Buffer, int]:
    validity, offsets = array.buffers()[:2]
    after, sizes = array.values.flatten()
    return (
        None if validity is None else _bytes(validity),
        _bytes(offsets),
        array.offset,
        *_numbers(after),
        *_numbers(sizes),
    )


def _array(kind: Arrow, length: int, buffers: Iterator[bytes | None]) -> Arrow:
    """Build an array from its buffers, depth first, without a copy."""
    pa = _pyarrow()

    def taken() -> Arrow:
        buffer = next(buffers)
        return None if buffer is None else pa.py_buffer(buffer)

    own = [taken()]
    children: list[Arrow] | None = None
    if pa.types.is_struct(kind):
        children = [_array(field.type, length, buffers) for field in kind]
    elif pa.types.is_list(kind):
        own.append(taken())
        items = memoryview(own[1]).cast("B").cast("i")[length]
        children = [_array(kind.value_type, items, buffers)]
    else:
        own += [taken() for _ in range(2 if pa.types.is_string(kind) else 1)]
    return pa.Array.from_buffers(kind, length, own, children=children)
