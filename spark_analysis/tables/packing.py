"""Arrow tables as bytes, to be handed from task to task, and small: a column of texts has only the words that its rows
use; of times and frames the differences are packed.

>>> unpack(pack(pa.table({"frame": [1, 2]}))).column("frame").to_pylist()
[1, 2]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")
_FIRST = b"topicshark.first"  # of a column that has differences: its first number
_WIDE = b"topicshark.wide"  # of a column in fewer bits: its type
_WORTHWHILE = 16  # rows


def pack(table: pa.Table) -> bytes:
    """A table as bytes."""
    narrow = [_shrink(field, table.column(field.name)) for field in table.schema]
    fields, columns = [field for field, _ in narrow], [column for _, column in narrow]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema(fields), options=_OPTIONS) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)))
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpack(data: bytes) -> pa.Table:
    """The table that `pack` made bytes of."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        table = reader.read_all()
    if not any(field.metadata for field in table.schema):
        return table
    return pa.table({field.name: _grow(field, table.column(field.name)) for field in table.schema})


def _shrink(field: pa.Field, column: pa.ChunkedArray) -> tuple[pa.Field, pa.Array]:
    """Numbers in fewer bits, where that is possible: those of 64 bits as differences, as they rise with the frames."""
    array = column.combine_chunks()
    if field.type not in (pa.int64(), pa.int32()) or array.null_count or len(array) < _WORTHWHILE:
        return field, array
    values = array.to_numpy()
    if field.type == pa.int32():
        if values.min() < 0 or values.max() > np.iinfo(np.uint16).max:
            return field, array
        return pa.field(field.name, pa.uint16(), metadata={_WIDE: b"int32"}), pa.array(values.astype(np.uint16))
    steps = np.diff(values)
    low, high = int(steps.min()), int(steps.max())
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            small = pa.array(np.append(kind(0), steps.astype(kind)))
            return pa.field(field.name, small.type, metadata={_FIRST: str(array[0].as_py())}), small
    return field, array


def _grow(field: pa.Field, column: pa.ChunkedArray) -> pa.Array:
    """What `_shrink` was given."""
    if _WIDE in (field.metadata or ()):
        return column.cast(pa.int32()).combine_chunks()
    if _FIRST not in (field.metadata or ()):
        return column
    values = np.cumsum(column.to_numpy(), dtype=np.int64)
    values += int(field.metadata[_FIRST])
    return pa.array(values)


def pack_tables(tables: Mapping[str, pa.Table]) -> bytes:
    """Several tables with names."""
    return pack(pa.table({name: pa.array([pack(table)], pa.binary()) for name, table in tables.items()}))


def unpack_tables(data: bytes) -> dict[str, pa.Table]:
    """Those that `pack_tables` packed."""
    packed = unpack(data)
    return {name: unpack(packed.column(name)[0].as_py()) for name in packed.column_names}


def joined(parts: Iterable[bytes], schema: pa.Schema | None = None) -> pa.Table:
    """Packed tables as one: see `together`."""
    return together([unpack(part) for part in parts], schema)


def together(tables: Sequence[pa.Table], schema: pa.Schema | None = None) -> pa.Table:
    """Tables as one. Each may lack columns of nulls; those of ``schema`` are there in the end, also of no table."""
    if not tables:
        return (schema or pa.schema([])).empty_table()
    whole = pa.concat_tables(tables, promote_options="default").unify_dictionaries().combine_chunks()
    if schema is None:
        return whole
    for field in schema:
        if field.name not in whole.column_names:
            whole = whole.append_column(field, pa.nulls(len(whole), field.type))
    return whole.select(schema.names)


def split_rows(
    table: pa.Table, bucket: NDArray[np.int64], count: int, rows: NDArray[np.int64]
) -> Iterator[tuple[int, pa.Table]]:
    """Of these rows those of each bucket, in their order; ``bucket`` is that of every row."""
    if not len(rows):
        return
    table = table.select([name for name in table.column_names if table.column(name).null_count < len(table)])
    if count == 1:
        yield 0, table if len(rows) == len(table) else table.take(pa.array(rows))
        return
    mine = bucket[rows].astype(np.int16 if count < 1 << 15 else np.int64)
    order = np.argsort(mine, kind="stable")
    edges = np.searchsorted(mine[order], np.arange(count + 1))
    ordered = table.take(pa.array(rows[order])).combine_chunks()
    for number in range(count):
        if edges[number] < edges[number + 1]:
            yield number, ordered.slice(edges[number], edges[number + 1] - edges[number])


def narrow(table: pa.Table) -> pa.Table:
    """Without columns of nulls only, and without words that no row has."""
    columns = {
        field.name: _with_own_words(table.column(field.name).combine_chunks())
        for field in table.schema
        if table.column(field.name).null_count < len(table)
    }
    return pa.table(columns)


def _with_own_words(column: pa.Array) -> pa.Array:
    """A column of texts with the words of its rows; with all words where these are few."""
    if not pa.types.is_dictionary(column.type):
        return column
    if len(column.dictionary) <= len(column) >> 4:
        return pa.DictionaryArray.from_arrays(column.indices.cast(pa.int32()), column.dictionary)
    indices = column.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    used = np.zeros(len(column.dictionary), np.bool_)
    used[indices] = True
    words = column.dictionary.take(pa.array(np.flatnonzero(used)))
    place = (np.cumsum(used) - 1)[indices].astype(np.int32)
    mask = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return pa.DictionaryArray.from_arrays(pa.array(place, mask=mask), words)
