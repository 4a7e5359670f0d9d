"""Frames of any library: what the native module reads of them, and the rows of them that are kept.

No library is imported that the caller has not imported already; a frame is known by the name of its class.
"""

import importlib.util
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress, islice
from typing import Any, NamedTuple

from ._dupflow import Table

_CHUNK = 1000
"""Rows of Python objects that are copied into one batch."""

_ONCE = (
    "can be read only once, and so its rows cannot be returned: use dupflow.removed(), or pass a frame, "
    "a list of batches, or a function that returns the stream again"
)


class Columns(NamedTuple):
    """The columns that a call names, and whether it may need others too."""

    text: str
    id: str | None = None
    time: str | None = None
    others: bool = False

    @property
    def named(self) -> list[str]:
        return list(dict.fromkeys(name for name in (self.text, self.id, self.time) if name is not None))

    def of(self, names: Collection[str]) -> list[str]:
        """Those to be read of a frame with columns of these names. ValueError if one is missing."""
        for name in self.named:
            if name not in names:
                known = ", ".join(f'"{known}"' for known in names)
                raise ValueError(f'the frame has no column "{name}"; its columns: {known}')
        return list(names) if self.others else self.named


class Frame:
    """A frame of some library. `keep` takes a byte for each row, 1 for those that are kept."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def rows(self) -> int | None:
        """The number of rows, if it is known without reading."""
        return len(self.data)

    def hold(self) -> None:
        """Makes sure that the rows that `stream` reads can be read again, for `keep`. TypeError if not."""

    def stream(self, columns: Columns) -> Any:
        """What the native module reads: an Arrow table or batch, or an iterator of them."""
        raise NotImplementedError

    def keep(self, mask: bytes) -> Any:
        """The rows of the mask, as a frame of the same kind."""
        raise NotImplementedError

    def column(self, name: str) -> list[Any]:
        """The values of a column."""
        raise NotImplementedError


class Pandas(Frame):
    def stream(self, columns: Columns) -> Any:
        part = self.data[columns.of([name for name in self.data.columns if isinstance(name, str)])]
        if importlib.util.find_spec("pyarrow") is not None:
            return part.reset_index(drop=True)
        # Without PyArrow pandas has no `__arrow_c_stream__`.
        part = part.astype(object).where(part.notna(), None)
        return _chunks({name: part[name].tolist() for name in part.columns})

    def keep(self, mask: bytes) -> Any:
        import numpy

        return self.data[numpy.frombuffer(mask, dtype=bool)]

    def column(self, name: str) -> list[Any]:
        values: list[Any] = self.data[name].tolist()
        return values


class Polars(Frame):
    def stream(self, columns: Columns) -> Any:
        return self.data.select(columns.of(self.data.columns))

    def keep(self, mask: bytes) -> Any:
        import polars

        return self.data.filter(polars.Series("keep", list(mask), dtype=polars.UInt8).cast(polars.Boolean))

    def column(self, name: str) -> list[Any]:
        values: list[Any] = self.data.get_column(name).to_list()
        return values


class PyArrow(Frame):
    """A table or a record batch."""

    def rows(self) -> int | None:
        rows: int = self.data.num_rows
        return rows

    def stream(self, columns: Columns) -> Any:
        return self.data.select(columns.of(self.data.schema.names))

    def keep(self, mask: bytes) -> Any:
        import pyarrow

        flags = pyarrow.Array.from_buffers(pyarrow.uint8(), len(mask), [None, pyarrow.py_buffer(mask)])
        return self.data.filter(flags.cast(pyarrow.bool_()))

    def column(self, name: str) -> list[Any]:
        values: list[Any] = self.data.column(name).to_pylist()
        return values


class Arrow(Frame):
    """Anything with `__arrow_c_stream__` or `__arrow_c_array__`; it may be readable only once."""

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        self._held: Frame | None = None

    def rows(self) -> int | None:
        return None if self._held is None else self._held.rows()

    def hold(self) -> None:
        self._held = self._held or open_frame(_collect(self.data))

    def stream(self, columns: Columns) -> Any:
        return self.data if self._held is None else self._held.stream(columns)

    def keep(self, mask: bytes) -> Any:
        self.hold()
        assert self._held is not None
        return self._held.keep(mask)

    def column(self, name: str) -> list[Any]:
        self.hold()
        assert self._held is not None
        return self._held.column(name)


class DuckDB(Arrow):
    """A relation. `dedup` runs its query once: its rows could be in another order the next time."""

    def stream(self, columns: Columns) -> Any:
        if self._held is not None:
            return self._held.stream(columns)
        quoted = ('"' + name.replace('"', '""') + '"' for name in columns.of(self.data.columns))
        return self.data.project(", ".join(quoted))

    def keep(self, mask: bytes) -> Any:
        # DuckDB finds the local variable by its name, and holds it.
        dupflow_kept = super().keep(mask)
        assert dupflow_kept is not None
        return self.data.query("dupflow_relation", "SELECT * FROM dupflow_kept")


class HuggingFace(Frame):
    """A `datasets.Dataset`: rows as `select` and `filter` left them."""

    def stream(self, columns: Columns) -> Any:
        part = self.data.select_columns(columns.of(self.data.column_names))
        return iter(part.with_format("arrow").iter(batch_size=_CHUNK))

    def keep(self, mask: bytes) -> Any:
        return self.data.select(list(compress(range(len(mask)), mask)))

    def column(self, name: str) -> list[Any]:
        return list(self.data[name])


class Dict(Frame):
    """A dict of columns."""

    def rows(self) -> int | None:
        return len(next(iter(self.data.values()), ()))

    def stream(self, columns: Columns) -> Any:
        return _chunks({name: self.data[name] for name in columns.of(self.data)})

    def keep(self, mask: bytes) -> Any:
        return {name: _compressed(values, mask) for name, values in self.data.items()}

    def column(self, name: str) -> list[Any]:
        return _values(self.data[name])


class Items(Frame):
    """An iterator of texts, rows and batches; it is read once."""

    def rows(self) -> int | None:
        return None

    def hold(self) -> None:
        raise TypeError(f"{type(self.data).__name__} {_ONCE}")

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
    """A stream of a library, as `pyarrow.RecordBatchReader`; it is read once."""

    def stream(self, columns: Columns) -> Any:
        return self.data


class Listed(Items):
    """A list of texts, rows and batches."""

    def rows(self) -> int | None:
        counts = [1 if is_row(item) else open_frame(item).rows() for item in self.data]
        return None if None in counts else sum(count for count in counts if count is not None)

    def hold(self) -> None:
        pass

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


_KINDS: list[tuple[str, str, type[Frame]]] = [
    ("pandas", "DataFrame", Pandas),
    ("polars", "DataFrame", Polars),
    ("pyarrow", "Table", PyArrow),
    ("pyarrow", "RecordBatch", PyArrow),
    ("pyarrow", "RecordBatchReader", Reader),
    ("duckdb", "DuckDBPyRelation", DuckDB),
    ("_duckdb", "DuckDBPyRelation", DuckDB),
    ("datasets", "Dataset", HuggingFace),
]


def open_frame(data: object) -> Frame:
    """The frame of what a caller passed. TypeError for what is none, with what to pass instead."""
    if isinstance(data, Frame):
        return data
    for base in type(data).__mro__:
        package = base.__module__.partition(".")[0]
        for module, name, kind in _KINDS:
            if (package, base.__name__) == (module, name):
                return kind(data)
    name = type(data).__name__
    if isinstance(data, (str, bytes)) or hasattr(data, "__fspath__"):
        raise TypeError(f"a frame is expected, not {name}: read the file first, or pass a list of texts")
    if name == "LazyFrame":
        raise TypeError(
            "a LazyFrame has no rows yet: pass frame.collect(), or frame.collect_batches as a function"
        )
    if name in ("DatasetDict", "IterableDatasetDict"):
        raise TypeError(f"a {name} holds several frames: pass one of its splits")
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return Arrow(data)
    if isinstance(data, Mapping):
        return Dict(data)
    if isinstance(data, Sequence):
        return Listed(data)
    if isinstance(data, Iterable):
        return Items(data)
    if callable(data):
        return Reopened(data)
    raise TypeError(f"a frame is expected (a table of any library, a dict of columns, batches), not {name}")


def is_row(item: object) -> bool:
    """Whether an item of a list is one row: a text, or a mapping whose values are no columns."""
    if isinstance(item, Mapping):
        return not any(
            hasattr(value, "__len__") and not isinstance(value, (str, bytes)) for value in item.values()
        )
    return item is None or isinstance(item, str)


def _batches(items: Iterable[Any], columns: Columns) -> Iterator[Any]:
    """Batches of items: rows in chunks, batches as they are."""
    rows: list[Mapping[str, Any]] = []
    for item in items:
        if is_row(item):
            rows.append(item if isinstance(item, Mapping) else {columns.text: item})
            if len(rows) == _CHUNK:
                yield _table_of(rows, columns)
                rows = []
            continue
        if rows:
            yield _table_of(rows, columns)
            rows = []
        batch = open_frame(item).stream(columns)
        if isinstance(batch, Iterator):
            yield from batch
        else:
            yield batch
    if rows:
        yield _table_of(rows, columns)


def _table_of(rows: list[Mapping[str, Any]], columns: Columns) -> Table:
    names = columns.of(dict.fromkeys(name for row in rows for name in row))
    return Table.from_columns({name: [row.get(name) for row in rows] for name in names})


def _chunks(columns: Mapping[str, Any]) -> Iterator[Table]:
    """Tables of columns of Python, each of some rows, at least one."""
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns of different lengths: {lengths}")
    for start in range(0, max(1, *lengths.values(), 0), _CHUNK):
        chunk = {name: _values(values[start : start + _CHUNK]) for name, values in columns.items()}
        yield Table.from_columns(chunk)


def _values(values: Any) -> list[Any]:
    """A column as a list of objects of Python."""
    for name in ("tolist", "to_pylist", "to_list"):
        if hasattr(values, name):
            listed: list[Any] = getattr(values, name)()
            return listed
    return list(values)


def _compressed(values: Any, mask: bytes) -> Any:
    """The values of the mask: of lists, tuples, NumPy's arrays and pandas' series the same, else a list."""
    if isinstance(values, (list, tuple)):
        return type(values)(compress(values, mask))
    if type(values).__module__.partition(".")[0] in ("numpy", "pandas"):
        import numpy

        return values[numpy.frombuffer(mask, dtype=bool)]
    return list(compress(_values(values), mask))


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
            rows = frame.rows()
            if rows is None:
                raise TypeError(f"a batch of unknown length: {type(item).__name__}")
            part = bytes(islice(flags, rows))
            if len(part) < rows:
                raise ValueError(f"the second reading has more rows than the first, which had {len(mask)}")
            yield frame.keep(part)
    if next(flags, None) is not None:
        raise ValueError(f"the second reading has fewer rows than the first, which had {len(mask)}")


def _collect(data: Any) -> Any:
    """A table of a stream, by PyArrow or Polars."""
    readers: list[Callable[[Any, Any], Any]] = [
        lambda pyarrow, stream: pyarrow.RecordBatchReader.from_stream(stream).read_all(),
        lambda polars, stream: polars.DataFrame(stream),
    ]
    for name, read in zip(("pyarrow", "polars"), readers, strict=True):
        if importlib.util.find_spec(name) is not None:
            return read(importlib.import_module(name), data)
    raise ImportError(
        f"rows of {type(data).__name__} are returned by PyArrow or Polars, and neither is installed"
    )
