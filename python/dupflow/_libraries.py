"""Frames of the libraries: which columns the native module reads of them, and the rows that are kept.

No library is imported that the caller has not imported already, but PyArrow or Polars where a frame can be
read only once.
"""

import importlib.util
from collections.abc import Iterator
from itertools import compress
from typing import Any
from uuid import uuid4

from ._columns import CHUNK, Columns, chunks, listed


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

    def names(self) -> list[str]:
        """The names of the columns."""
        raise NotImplementedError

    def column(self, name: str) -> list[Any]:
        """The values of a column; a missing one is None."""
        raise NotImplementedError

    def replaced(self, name: str, texts: list[str | None]) -> Any:
        """The frame with other texts in a column, for `stream`."""
        raise NotImplementedError


class Pandas(Frame):
    def stream(self, columns: Columns) -> Any:
        part = self.data[columns.of(self.names())]
        if importlib.util.find_spec("pyarrow") is not None:
            return part.reset_index(drop=True)
        # Without PyArrow pandas has no `__arrow_c_stream__`.
        return chunks({name: self.column(name) for name in part.columns}, columns)

    def keep(self, mask: bytes) -> Any:
        import numpy

        return self.data[numpy.frombuffer(mask, dtype=bool)]

    def names(self) -> list[str]:
        return [name for name in self.data.columns if isinstance(name, str)]

    def column(self, name: str) -> list[Any]:
        return listed(self.data[name])

    def replaced(self, name: str, texts: list[str | None]) -> Any:
        return self.data.assign(**{name: texts})


class Polars(Frame):
    def stream(self, columns: Columns) -> Any:
        import polars

        part = self.data.select(columns.of(self.names()))
        for name, of_type in part.schema.items():
            if of_type == polars.Object:
                raise TypeError(f'column "{name}": Arrow has no type for objects (pl.Object): cast it')
        # Arrow has no buffer for a column of nulls, and Polars hands out one.
        return part.with_columns(polars.col(polars.Null).cast(polars.String))

    def keep(self, mask: bytes) -> Any:
        import polars

        return self.data.filter(polars.Series("keep", list(mask), dtype=polars.UInt8).cast(polars.Boolean))

    def names(self) -> list[str]:
        names: list[str] = self.data.columns
        return names

    def column(self, name: str) -> list[Any]:
        values: list[Any] = self.data.get_column(name).to_list()
        return values

    def replaced(self, name: str, texts: list[str | None]) -> Any:
        import polars

        return self.data.with_columns(polars.Series(name, texts, dtype=polars.String))


class PyArrow(Frame):
    """A table or a record batch."""

    def rows(self) -> int | None:
        rows: int = self.data.num_rows
        return rows

    def stream(self, columns: Columns) -> Any:
        return self.data.select(columns.of(self.names()))

    def keep(self, mask: bytes) -> Any:
        import pyarrow

        flags = pyarrow.Array.from_buffers(pyarrow.uint8(), len(mask), [None, pyarrow.py_buffer(mask)])
        flags = flags.cast(pyarrow.bool_())
        kept = [_filtered(column, flags, mask) for column in self.data.columns]
        if not kept:
            return self.data.filter(flags)
        return type(self.data).from_arrays(kept, schema=self.data.schema)

    def names(self) -> list[str]:
        names: list[str] = self.data.schema.names
        return names

    def column(self, name: str) -> list[Any]:
        values: list[Any] = self.data.column(name).to_pylist()
        return values

    def replaced(self, name: str, texts: list[str | None]) -> Any:
        import pyarrow

        values = pyarrow.array(texts, pyarrow.large_string())
        return self.data.set_column(self.names().index(name), name, values)


def _filtered(column: Any, flags: Any, mask: bytes) -> Any:
    """The values of the mask, of an array or a chunked one."""
    import pyarrow

    try:
        return column.filter(flags)
    except NotImplementedError:
        large = {pyarrow.string_view(): pyarrow.large_string(), pyarrow.binary_view(): pyarrow.large_binary()}
    if column.type in large:
        return column.cast(large[column.type]).filter(flags).cast(column.type)
    # Lists of views, values encoded by runs.
    parts = [column.slice(start, length) for start, length in _runs(mask)] or [column.slice(0, 0)]
    if not isinstance(column, pyarrow.ChunkedArray):
        return pyarrow.concat_arrays(parts)
    chunked = pyarrow.chunked_array([chunk for part in parts for chunk in part.chunks], type=column.type)
    return chunked.combine_chunks()


def _runs(mask: bytes) -> Iterator[tuple[int, int]]:
    """The first row and the length of each run of kept rows."""
    start = mask.find(1)
    while start >= 0:
        end = mask.find(0, start)
        end = len(mask) if end < 0 else end
        yield start, end - start
        start = mask.find(1, end)


class Arrow(Frame):
    """Anything with `__arrow_c_stream__` or `__arrow_c_array__`; it may be readable only once."""

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        self._held: Frame | None = None

    def held(self) -> Frame:
        """Its rows, in memory. ImportError without PyArrow and Polars."""
        self._held = self._held or collected(self.data)
        if self._held is None:
            raise ImportError(
                f"rows of {type(self.data).__name__} are read by PyArrow or Polars, and neither is installed"
            )
        return self._held

    def batches(self) -> Iterator[Frame]:
        """Its rows in parts; with PyArrow only one is in memory at a time."""
        if importlib.util.find_spec("pyarrow") is None or not hasattr(self.data, "__arrow_c_stream__"):
            yield self.held()
            return
        import pyarrow

        for batch in pyarrow.RecordBatchReader.from_stream(self.data):
            yield PyArrow(batch)

    def rows(self) -> int | None:
        return None if self._held is None else self._held.rows()

    def hold(self) -> None:
        self.held()

    def stream(self, columns: Columns) -> Any:
        return self.data if self._held is None else self._held.stream(columns)

    def keep(self, mask: bytes) -> Any:
        return self.held().keep(mask)

    def names(self) -> list[str]:
        return self.held().names()

    def column(self, name: str) -> list[Any]:
        return self.held().column(name)

    def replaced(self, name: str, texts: list[str | None]) -> Any:
        return self.held().replaced(name, texts)


class DuckDB(Arrow):
    """A relation. `dedup` runs its query once: its rows could be in another order the next time."""

    def hold(self) -> None:
        self._check_returns()
        super().hold()

    def _check_returns(self) -> None:
        """TypeError if `keep` cannot make a relation."""
        for name in ("python_enable_replacements", "enable_external_access"):
            if self._setting(name) == "false":
                raise TypeError(
                    f"the connection of this relation reads no variables of Python ({name} is false), and so "
                    "its rows cannot be returned as a relation: use dupflow.removed(), or pass "
                    "relation.to_arrow_table()"
                )

    def _setting(self, name: str) -> str:
        query = f"SELECT value FROM duckdb_settings() WHERE name = '{name}'"
        found = self.data.query("dupflow_relation", query).fetchall()
        return str(found[0][0]).lower() if found else ""

    def stream(self, columns: Columns) -> Any:
        if self._held is not None:
            return self._held.stream(columns)
        quoted = ('"' + name.replace('"', '""') + '"' for name in columns.of(self.names()))
        return self.data.project(", ".join(quoted))

    def keep(self, mask: bytes) -> Any:
        self._check_returns()
        # DuckDB finds a variable of this module by a name that no table has, and then holds its value.
        name = f"_dupflow_kept_{uuid4().hex}"
        globals()[name] = super().keep(mask)
        try:
            return self.data.query("dupflow_relation", f"SELECT * FROM {name}")
        finally:
            del globals()[name]

    def names(self) -> list[str]:
        names: list[str] = self.data.columns
        return names


class HuggingFace(Frame):
    """A `datasets.Dataset`: rows as `select` and `filter` left them."""

    def stream(self, columns: Columns) -> Any:
        part = self.data.select_columns(columns.of(self.names()))
        return iter(part.with_format("arrow").iter(batch_size=CHUNK))

    def keep(self, mask: bytes) -> Any:
        return self.data.select(list(compress(range(len(mask)), mask)))

    def names(self) -> list[str]:
        names: list[str] = self.data.column_names
        return names

    def column(self, name: str) -> list[Any]:
        return list(self.data[name])

    def replaced(self, name: str, texts: list[str | None]) -> Any:
        return PyArrow(self.data.with_format("arrow")[:]).replaced(name, texts)


def collected(data: Any) -> Frame | None:
    """A frame of all rows of a stream, by PyArrow or Polars; None if neither is installed."""
    if importlib.util.find_spec("pyarrow") is not None:
        import pyarrow

        if not hasattr(data, "__arrow_c_stream__"):
            return PyArrow(pyarrow.record_batch(data))
        return PyArrow(pyarrow.RecordBatchReader.from_stream(data).read_all())
    if importlib.util.find_spec("polars") is not None:
        import polars

        return Polars(polars.DataFrame(data))
    return None
