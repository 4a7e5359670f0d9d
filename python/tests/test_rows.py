"""Lists, dicts and iterators of Python: which of their values are rows, and which are columns.

Bug classes: a row with a list or a dict in it that is read as columns; a text that is read as a column of
letters; a key that a part of the rows has not; a missing value or a time that is no None and no number; an
exception of a stream that becomes another; a message that does not say what to pass.
"""

import datetime

import pytest
from conftest import ROOT

import dupflow

TEXT = "one two three four"
ROWS = [
    {"id": "a", "text": TEXT, "tags": ["x", "y"], "meta": {"n": 1}},
    {"id": "b", "text": TEXT, "tags": [], "meta": {}},
    {"id": "c", "text": "other words are here", "tags": ["x", "y", "z"], "meta": {"n": 2, "m": 3}},
]


def test_rows_with_lists_and_dicts_in_them():
    for frame in (ROWS, tuple(ROWS), iter(ROWS), (row for row in ROWS), lambda: iter(ROWS)):
        assert [(pair.a, pair.b) for pair in dupflow.pairs(frame, id="id")] == [("a", "b")]
    assert dupflow.dedup(ROWS) == [ROWS[0], ROWS[2]]
    assert list(dupflow.dedup(lambda: iter(ROWS))) == [ROWS[0], ROWS[2]]
    with dupflow.Corpus() as corpus:
        assert corpus.upsert_many(ROWS) == 3
        assert [(delta.a, delta.b) for delta in corpus.flush()] == [("a", "b")]
    for source in (ROWS, iter(ROWS), iter([ROWS])):
        followed = [(delta.a, delta.b) for deltas in dupflow.follow(source) for delta in deltas]
        assert followed == [("a", "b")]
    # Columns of lists beside a column of texts are columns.
    batch = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    assert dupflow.dedup([batch], id="id") == [{name: values[::2] for name, values in batch.items()}]


def test_a_pipeline_that_reads_fields_is_given_those_of_rows():
    rule = {"pairs.where": "a.host != b.host"}
    rows = [{**row, "host": host} for row, host in zip([*ROWS, {**ROWS[0], "id": "d"}], "xyzx", strict=True)]
    expected = [("a", "b"), ("b", "d")]
    for frame in (rows, {name: [row[name] for row in rows] for name in rows[0]}):
        assert [(pair.a, pair.b) for pair in dupflow.pairs(frame, id="id", settings=rule)] == expected


def test_a_text_is_no_column():
    for frame in ({"text": "abc"}, {"text": 5}, {"text": (word for word in "abc")}):
        for call in (dupflow.pairs, dupflow.dedup):
            with pytest.raises(TypeError, match=r'column "text".*list'):
                call(frame)
    with pytest.raises(TypeError, match=r'column "note".*list'):
        dupflow.dedup({"text": ["a", "b", "c"], "note": "abc"})
    with pytest.raises(ValueError, match="different lengths"):
        dupflow.dedup({"text": ["a", "b", "c"], "note": ["a"]})


def test_a_key_may_be_missing_in_a_part_of_the_rows():
    rows = [{"text": TEXT, "id": str(n)} if n % 1000 == 0 else {"id": str(n)} for n in range(3)]
    later = [{"id": str(n)} for n in range(3, 2500)]
    found = dupflow.pairs([*rows, *later, {"id": "last", "text": TEXT}], id="id", nulls="skip")
    assert [(pair.a, pair.b) for pair in found] == [("0", "last")] and found.stats["nulls"] == 2499
    with dupflow.Corpus() as corpus:
        assert corpus.upsert_many(iter([*rows, *later]), nulls="delete") == 1


@pytest.mark.parametrize("before", [0, 1, 999, 1000, 1001, 2000])
def test_a_key_may_be_missing_wherever_its_row_is(before):
    others = [{"id": str(n)} for n in range(before)]
    rule = {"pairs.where": "a.host == b.host"}
    last = [{"id": "x", "text": TEXT, "host": "h"}, {"id": "y", "text": TEXT, "host": "h"}]
    options = {"id": "id", "time": "at", "settings": rule, "nulls": "skip"}
    for rows in ([*others, *last], [*last, *others]):
        timed = [*rows, {"id": "z", "at": 5}]
        assert [(pair.a, pair.b) for pair in dupflow.pairs(timed, **options)] == [("x", "y")]
        with pytest.raises(ValueError, match='no column "at"'):
            dupflow.pairs(rows, **options)
    for nulls in ("skip", "error"):
        with pytest.raises(ValueError, match='no column "text"'):
            dupflow.pairs([*others, {"id": "z"}], nulls=nulls)
    with dupflow.Corpus() as corpus, pytest.raises(ValueError, match='no column "id"'):
        corpus.upsert_many([{"url": "x", "text": TEXT}] * (before + 1))


def test_a_key_may_be_missing_in_rows_that_are_followed():
    rule = {"pairs.where": "a.host == b.host"}
    rows = [{**row, "host": "h"} for row in ROWS]
    for first in ({"id": "z", "text": TEXT}, {"id": "a", "op": "delete"}):
        followed = dupflow.follow(iter([first, *rows]), settings=rule)
        assert [(delta.a, delta.b) for deltas in followed for delta in deltas] == [("a", "b")]
    followed = dupflow.follow(iter(ROWS), settings=rule)
    with pytest.raises(ValueError, match='no column "host"'):
        list(followed)


def test_columns_that_a_pipeline_does_not_read_may_be_of_any_values(tmp_path):
    pandas = pytest.importorskip("pandas")
    rows = [
        {"id": "a", "text": TEXT, "title": "x", "host": "h", "any": 1},
        {"id": "b", "text": TEXT, "title": "x", "host": "h", "any": "s"},
        {"id": "c", "text": TEXT, "title": "y z y z", "host": "i", "any": [2]},
    ]
    path = tmp_path / "pipeline.toml"
    exact = (ROOT / "pipelines/exact.toml").read_text(encoding="utf-8")
    path.write_text(exact + '\n[pairs]\nwhere = "a.host == b.host"\n')
    fields = {"text.fields": {"title": 1}}
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    for options in (
        {"pipeline": "exact", "settings": {"pairs.where": "a.host == b.host"}},
        {"pipeline": "exact", "threshold": 1, "settings": fields},
        {"pipeline": path},
    ):
        for frame in (rows, columns, pandas.DataFrame(rows), iter(rows)):
            found = dupflow.pairs(frame, id="id", **options)
            assert [(pair.a, pair.b) for pair in found] == [("a", "b")]
        with dupflow.Corpus(**options) as corpus:
            assert corpus.upsert_many(rows) == 3 and len(corpus.flush()) == 1
        for source in (iter(rows), pandas.DataFrame(rows)):
            assert sum(len(deltas) for deltas in dupflow.follow(source, **options)) == 1


@pytest.mark.parametrize("dtype", ["object", "str", "string", "category"])
def test_missing_texts_of_pandas(dtype):
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([TEXT, None, TEXT], dtype=dtype)
    rows = pandas.DataFrame({"id": ["a", "b", "c"], "text": series}).to_dict("records")
    for frame in ({"text": series}, {"text": series.array}, {"text": pandas.Index(series)}, rows):
        with pytest.raises(ValueError, match="null"):
            dupflow.pairs(frame)
        found = dupflow.pairs(frame, nulls="skip")
        assert ([(pair.a, pair.b) for pair in found], found.stats["nulls"]) == ([(0, 2)], 1)
    followed = dupflow.follow(iter([{"id": "b", "text": TEXT}, *rows[:2]]), every="events:1")
    assert [delta.diff for deltas in followed for delta in deltas] == [1, -1]


def test_missing_values_of_rows():
    """A chunk may have no other."""
    nan = float("nan")
    pandas = pytest.importorskip("pandas")
    for missing in (nan, None, pandas.NA, pandas.NaT):
        rows = [{"id": missing, "text": missing, "at": missing}] * 1000
        rows += [{"id": "a", "text": TEXT, "at": 2}, {"id": missing, "text": TEXT, "at": 1.5}]
        found = dupflow.removed(rows, id="id", time="at", keep="oldest", nulls="skip")
        assert [(row.id, row.kept) for row in found] == [("a", None)] and found.stats["nulls"] == 1000
        row = {"id": "a", "text": TEXT, "op": missing, "at": missing}
        followed = dupflow.follow(iter([row, {**row, "id": "b"}]), time="at")
        assert sum(len(deltas) for deltas in followed) == 1


def times(kind, text):
    """A column of one time, of a kind."""
    time = datetime.datetime.fromisoformat(text)
    if kind == "datetime":
        return [time]
    if kind == "zone":
        zone = datetime.timezone(datetime.timedelta(hours=5))
        return [time.replace(tzinfo=datetime.timezone.utc).astimezone(zone)]
    if kind == "polars":
        return pytest.importorskip("polars").Series([time])
    if kind == "pyarrow":
        return pytest.importorskip("pyarrow").array([time])
    if kind.startswith("pandas"):
        dtype = kind.removeprefix("pandas ")
        return pytest.importorskip("pandas").Series([text]).astype("datetime64[ns]").astype(dtype)
    return pytest.importorskip("numpy").array([text], dtype=kind)


KINDS_OF_TIMES = [
    "datetime",
    "zone",
    "polars",
    "pyarrow",
    "pandas datetime64[s]",
    "pandas datetime64[ns]",
    "pandas object",
    "datetime64[s]",
    "datetime64[us]",
    "datetime64[ns]",
]


@pytest.mark.parametrize("kind", KINDS_OF_TIMES)
def test_times_of_columns_and_rows_are_seconds(kind):
    column = times(kind, "2020-01-02T00:00:00")
    # Half a minute before and after.
    for other, kept in ((1577923170, 1), (1577923230, 0)):
        for batch in ({"text": [TEXT], "at": column}, {"text": TEXT, "at": next(iter(column))}):
            if not hasattr(batch["at"], "as_py"):
                batches = [batch, {"text": [TEXT], "at": [other]}]
                found = dupflow.removed(batches, time="at", keep="oldest")
                assert [row.kept for row in found] == [kept]
    numpy = pytest.importorskip("numpy")
    missing = {"text": [TEXT] * 2, "at": numpy.array(["NaT", "2020-01-01"], dtype="datetime64[ns]")}
    assert dupflow.removed(missing, time="at", keep="oldest").column("kept") == [1]


def test_batches_that_are_read_once_in_a_list():
    """The kept rows of a list are those of its batches, whatever they are."""
    pyarrow = pytest.importorskip("pyarrow")

    class Once:
        def __init__(self, texts):
            self.reader = pyarrow.table({"text": texts}).to_reader()

        def __arrow_c_stream__(self, requested_schema=None):
            return self.reader.__arrow_c_stream__(requested_schema)

    kept = dupflow.dedup([Once([TEXT, "a b c d"]), "a b c d", Once([TEXT, "e f g h"])])
    assert kept[0].to_pydict() == {"text": [TEXT, "a b c d"]} and kept[1].to_pydict() == {"text": ["e f g h"]}
    with pytest.raises(TypeError, match="only once"):
        dupflow.dedup([iter([TEXT])])


def test_an_exception_of_a_stream_is_raised_as_it_is():
    pyarrow = pytest.importorskip("pyarrow")

    def broken():
        yield pyarrow.record_batch({"text": [TEXT], "id": ["a"]})
        raise KeyError("mine")

    def reader():
        return pyarrow.RecordBatchReader.from_batches(
            pyarrow.schema({"text": "string", "id": "string"}), broken()
        )

    with dupflow.Corpus() as corpus:
        for call in (dupflow.pairs, dupflow.removed, corpus.upsert_many, lambda f: list(dupflow.follow(f))):
            with pytest.raises(KeyError, match="mine"):
                call(reader())


@pytest.mark.parametrize("frame", ["corpus.parquet", b"bytes", 7, None, object()])
def test_what_is_no_frame_is_a_type_error(frame):
    with pytest.raises(TypeError, match="frame is expected"):
        dupflow.pairs(frame)


def test_what_is_no_frame_says_what_to_pass():
    with pytest.raises(ValueError, match='"text"'):
        dupflow.pairs({"txt": ["a"]})
    with pytest.raises(ValueError, match='"url"'):
        dupflow.pairs({"txt": ["a"]}, text="txt", id="url")
    with pytest.raises(ValueError, match="different lengths"):
        dupflow.pairs({"text": ["a", "b"], "id": ["a"]}, id="id")
    with pytest.raises(TypeError):
        dupflow.pairs({"text": ["a", 7]})
    with pytest.raises(ZeroDivisionError):
        dupflow.pairs({"text": [str(1 // (3 - n))]} for n in range(5))
    for once in ({TEXT, "a"}, {"k": TEXT}.values()):
        assert len(dupflow.pairs(once)) == 0
        with pytest.raises(TypeError, match=r"pass list\(\) of it"):
            dupflow.dedup(once)


def test_columns_and_datasets_of_libraries_say_what_to_pass():
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    dataset = pytest.importorskip("pyarrow.dataset").dataset(pyarrow.table({"text": [TEXT] * 2}))
    texts = [TEXT] * 2
    columns = [
        pandas.Series(texts),
        polars.Series(texts),
        pyarrow.array(texts),
        pyarrow.chunked_array([texts]),
    ]
    for column in columns:
        for call in (dupflow.pairs, dupflow.dedup):
            with pytest.raises(TypeError, match="is one column: pass a dict"):
                call(column)
        assert len(dupflow.pairs({"text": column})) == 1
    with pytest.raises(TypeError, match="collect"):
        dupflow.pairs(polars.LazyFrame({"text": texts}))
    for lazy in (dataset, dataset.scanner()):
        with pytest.raises(TypeError, match="to_batches as a function"):
            dupflow.pairs(lazy)
        assert [batch.num_rows for batch in dupflow.dedup(lazy.to_batches)] == [1]
    with pytest.raises(TypeError, match="2 dimensions"):
        dupflow.pairs(numpy.array([texts, texts]))
    assert len(dupflow.pairs(numpy.array(texts))) == 1
    with pytest.raises(TypeError, match=r"pass list\(\) of it"):
        dupflow.dedup(numpy.array(texts))


def test_numbers_of_numpy_in_rows():
    numpy = pytest.importorskip("numpy")
    for kind in (numpy.float16, numpy.float32, numpy.float64, numpy.int8, numpy.uint64):
        rows = [{"id": kind(n), "text": TEXT, "at": kind(9 - n)} for n in range(2)]
        found = dupflow.removed(rows, id="id", time="at", keep="oldest")
        assert [(row.id, row.kept) for row in found] == [(0, 1)]


def test_values_that_lists_cannot_have():
    date = datetime.date(2020, 1, 1)
    numpy = pytest.importorskip("numpy")
    for value in (date, b"a", {"a": 1}, numpy.datetime64("2020-01-01")):
        for frame in ([{"id": value, "text": TEXT}], {"id": [value], "text": [TEXT]}):
            with pytest.raises(TypeError, match='column "id": a list may have str, int, float and bool'):
                dupflow.pairs(frame, id="id")
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"id": [date] * 2, "text": [TEXT] * 2})
    assert [(pair.a, pair.b) for pair in dupflow.pairs(table, id="id")] == [(date, date)]
