"""Frames of any kind: those of libraries, and lists, dicts and iterators of Python.

A frame of a library is known by the name of its class.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, islice
from typing import Any

from ._columns import CHUNK, Columns, check_lengths, chunks, listed, table_of
from ._dupflow import Table
from ._libraries import Arrow, DuckDB, Frame, HuggingFace, Pandas, Polars, PyArrow


class Dict(Frame):
    """A dict of columns."""

    def rows(self) -> int | None:
        first = next(iter(self.data.values()), ())
        return len(first) if hasattr(first, "__len__") else None

    def hold(self) -> None:
        check_lengths(self.data)

    def stream(self, columns: Columns) -> Any:
        return chunks({name: self.data[name] for name in columns.of(self.data)}, columns)

    def keep(self, mask: bytes) -> Any:
        return {name: _compressed(values, mask) for name, values in self.data.items()}

    def names(self) -> list[str]:
        return list(self.data)

    def column(self, name: str) -> list[Any]:
        return listed(self.data[name])

    def replaced(self, name: str, texts: list[str | None]) -> Any:
        return {**self.data, name: texts}


class Items(Frame):
    """An iterator of texts, rows and batches; it is read once."""

    def rows(self) -> int | None:
        return None

    def hold(self) -> None:
        name = type(self.data).__name__
        if isinstance(self.data, Iterator):
            raise TypeError(
                f"{name} can be read only once, and so its rows cannot be returned: use dupflow.removed(), "
                "or pass a frame, a list of batches, or a function that returns the stream again"
            )
        raise TypeError(
            f"the kept rows are not returned as {name}: pass list() of it, or use dupflow.removed()"
        )

    def stream(self, columns: Columns) -> Any:
        return _batches(self.data, columns)

    def keep(self, mask: bytes) -> Any:
        return _kept(self.data, mask)

    def column(self, name: str) -> list[Any]:
        values: list[Any] = []
        for item in self.data:
            if isinstance(item, Mapping) and is_row(item):
                values.append(item.get(name))
            elif is_row(item):
                values.append(item)
            else:
                values += open_frame(item).column(name)
        return values


class Reader(Items):
    """A `pyarrow.RecordBatchReader`; it is read once."""

    def stream(self, columns: Columns) -> Any:
        names = columns.of(self.data.schema.names)
        # By Python, so that an exception of what it reads is raised as it is.
        return (batch.select(names) for batch in self.data)


class Listed(Items):
    """A list of texts, rows and batches."""

    def rows(self) -> int | None:
        counts = [1 if is_row(item) else open_frame(item).rows() for item in self.data]
        return None if None in counts else sum(count for count in counts if count is not None)

    def hold(self) -> None:
        items = [item if is_row(item) else open_frame(item) for item in self.data]
        for item in items:
            if isinstance(item, Frame):
                item.hold()
        self.data = tuple(items) if isinstance(self.data, tuple) else items

    def keep(self, mask: bytes) -> Any:
        kept = list(super().keep(mask))
        return tuple(kept) if isinstance(self.data, tuple) else kept


class Reopened(Frame):
    """A function that returns a stream, the same one at each call."""

    def rows(self) -> int | None:
        return None

    def stream(self, columns: Columns) -> Any:
        return open_frame(self.data()).stream(columns)

    def keep(self, mask: bytes) -> Any:
        return open_frame(self.data()).keep(mask)

    def column(self, name: str) -> list[Any]:
        return open_frame(self.data()).column(name)


_KINDS: dict[tuple[str, str], type[Frame]] = {
    ("pandas", "DataFrame"): Pandas,
    ("polars", "DataFrame"): Polars,
    ("pyarrow", "Table"): PyArrow,
    ("pyarrow", "RecordBatch"): PyArrow,
    ("pyarrow", "RecordBatchReader"): Reader,
    ("duckdb", "DuckDBPyRelation"): DuckDB,
    ("_duckdb", "DuckDBPyRelation"): DuckDB,
    ("datasets", "Dataset"): HuggingFace,
}

_COLUMN = 'is one column: pass a dict, as in {"text": column}'

_REFUSED: dict[tuple[str, str], str] = {
    ("polars", "LazyFrame"): "has no rows yet: pass frame.collect(), or frame.collect_batches as a function",
    ("datasets", "DatasetDict"): "holds several frames: pass one of its splits",
    ("datasets", "IterableDatasetDict"): "holds several frames: pass one of its splits",
    ("pandas", "Series"): _COLUMN,
    ("polars", "Series"): _COLUMN,
    ("pyarrow", "Array"): _COLUMN,
    ("pyarrow", "ChunkedArray"): _COLUMN,
    ("pyarrow", "Dataset"): "has no rows yet: pass dataset.to_batches as a function, or dataset.to_table()",
    ("pyarrow", "Scanner"): "has no rows yet: pass scanner.to_batches as a function, or scanner.to_table()",
}


def open_frame(data: object) -> Frame:
    """The frame of what a caller passed. TypeError for what is none, with what to pass instead."""
    if isinstance(data, Frame):
        return data
    name = type(data).__name__
    for base in type(data).__mro__:
        kind = (base.__module__.partition(".")[0], base.__name__)
        if kind in _KINDS:
            return _KINDS[kind](data)
        if kind in _REFUSED and not (_REFUSED[kind] is _COLUMN and _is_struct(data)):
            raise TypeError(f"a frame is expected, and {name} {_REFUSED[kind]}")
    if isinstance(data, (str, bytes)) or hasattr(data, "__fspath__"):
        raise TypeError(f"a frame is expected, not {name}: read the file first, or pass a list of texts")
    if isinstance(data, Iterator):
        return Items(data)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return Arrow(data)
    if isinstance(data, Mapping):
        return Dict(data)
    if isinstance(data, Sequence):
        return Listed(data)
    if isinstance(data, Iterable):
        if (count := getattr(data, "ndim", 1)) != 1:
            raise TypeError(f"a frame is expected, and {name} has {count} dimensions: pass a dict of columns")
        return Items(data)
    if callable(data):
        return Reopened(data)
    raise TypeError(f"a frame is expected (a table of any library, a dict of columns, batches), not {name}")


def _is_struct(data: object) -> bool:
    """Whether an array or a series has columns of its own."""
    return str(getattr(data, "dtype", getattr(data, "type", ""))).lower().startswith("struct")


def is_row(item: object) -> bool:
    """Whether an item of a list is one row: a text, or a mapping with a value that is no column."""
    if isinstance(item, Mapping):
        return not item or any(
            isinstance(value, (str, bytes)) or not hasattr(value, "__len__") for value in item.values()
        )
    return item is None or isinstance(item, str)


def _batches(items: Iterable[Any], columns: Columns) -> Iterator[Any]:
    """Batches of items: rows in chunks, batches as they are. A key that a row has not is a missing value;
    ValueError if no row has it."""
    rows: list[Mapping[str, Any]] = []
    seen: dict[str, None] = {}

    def chunk() -> Table:
        return table_of({name: [row.get(name) for row in rows] for name in columns.read}, columns)

    for item in items:
        is_one = is_row(item)
        if rows and (len(rows) == CHUNK or not is_one):
            if not all(name in seen for name in columns.required):
                columns.of(seen)
            yield chunk()
            rows = []
        if is_one:
            rows.append(item if isinstance(item, Mapping) else {columns.text: item})
            seen.update(dict.fromkeys(rows[-1]))
            continue
        batch = open_frame(item).stream(columns)
        if isinstance(batch, Iterator):
            yield from batch
        else:
            yield batch
    if seen:
        columns.of(seen)
    if rows:
        yield chunk()


def _compressed(values: Any, mask: bytes) -> Any:
    """The values of the mask: of lists, tuples, NumPy's arrays and pandas' series the same, else a list."""
    if isinstance(values, (list, tuple)):
        return type(values)(compress(values, mask))
    if type(values).__module__.partition(".")[0] in ("numpy", "pandas"):
        import numpy

        return values[numpy.frombuffer(mask, dtype=bool)]
    return list(compress(listed(values), mask))


def _kept(items: Iterable[Any], mask: bytes) -> Iterator[Any]:
    """The kept rows of items, batches with theirs. ValueError if the items have not as many rows as the
    mask."""
    flags = iter(mask)
    for item in items:
        if is_row(item):
            flag = next(flags, None)
            if flag is None:
                raise ValueError(f"the second reading has more rows than the first, which had {len(mask)}")
            if flag:
                yield item
        else:
            frame = open_frame(item)
            frame.hold()
            rows = frame.rows()
            if rows is None:
                raise TypeError(f"a batch of unknown length: {type(item).__name__}")
            part = bytes(islice(flags, rows))
            if len(part) < rows:
                raise ValueError(f"the second reading has more rows than the first, which had {len(mask)}")
            yield frame.keep(part)
    if next(flags, None) is not None:
        raise ValueError(f"the second reading has fewer rows than the first, which had {len(mask)}")
