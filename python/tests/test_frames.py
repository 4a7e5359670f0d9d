"""Frames of all libraries: the same pairs from each, and the same kind of frame back.

Bug classes: a column type that one library hands out and no other (views, dictionaries, large offsets);
columns, an index or the order of rows that are lost; ids that become texts; a `select` that is not honoured.
"""

import itertools

import pytest

import dupflow

KINDS = [
    "dict",
    "list of rows",
    "list of texts",
    "list of batches",
    "pandas",
    "polars",
    "pyarrow",
    "pyarrow batch",
    "duckdb",
    "datasets",
    "function",
]


def make(kind, columns):
    """A frame of a kind, with all columns in their order."""
    if kind == "dict":
        return dict(columns)
    if kind == "list of rows":
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if kind == "list of texts":
        return list(columns["text"])
    if kind == "list of batches":
        cuts = [0, 1, 700, len(columns["text"])]
        return [{name: values[i:j] for name, values in columns.items()} for i, j in itertools.pairwise(cuts)]
    if kind == "function":
        return lambda: iter(make("list of batches", columns))
    if kind.startswith("pyarrow"):
        pyarrow = pytest.importorskip("pyarrow")
        table = pyarrow.table(columns)
        return table.to_batches()[0] if kind == "pyarrow batch" else table
    if kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        pytest.importorskip("pyarrow")
        source = make("pyarrow", columns)
        assert source is not None
        connection = duckdb.connect()
        connection.execute("create table documents as select * from source")
        return connection.sql("from documents")
    if kind == "datasets":
        return pytest.importorskip("datasets").Dataset.from_dict(columns)
    return pytest.importorskip(kind).DataFrame(columns)


def values(frame):
    """The rows of a frame as tuples; of a list of texts these."""
    name = type(frame).__name__
    if isinstance(frame, dict):
        return list(zip(*frame.values(), strict=True))
    if name == "DataFrame":
        return [
            tuple(row) for row in (frame.rows() if hasattr(frame, "rows") else frame.itertuples(index=False))
        ]
    if name in ("Table", "RecordBatch"):
        return list(zip(*frame.to_pydict().values(), strict=True))
    if name == "DuckDBPyRelation":
        return frame.fetchall()
    if name == "Dataset":
        return list(zip(*(frame[column] for column in frame.column_names), strict=True))
    rows = []
    for item in frame:
        if isinstance(item, str):
            rows.append(item)
        elif isinstance(item, dict) and isinstance(item["text"], str):
            rows.append(tuple(item.values()))
        else:
            rows += values(item)
    return rows


@pytest.fixture(scope="module")
def expected(columns):
    kept = dupflow.dedup(columns, threshold=0.7)
    assert 200 < len(kept["text"]) < len(columns["text"]) - 20
    return [tuple(pair) for pair in dupflow.pairs(columns, threshold=0.7)], values(kept)


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_and_dedup(kind, columns, expected):
    pairs, kept = expected
    frame = make(kind, columns)
    found = dupflow.pairs(frame, threshold=0.7)
    assert [tuple(pair) for pair in found] == pairs
    again = dupflow.dedup(frame, threshold=0.7)
    if kind == "list of texts":
        assert again == [text for text, *_ in kept]
        return
    if kind != "function":
        assert type(again) is type(frame)
    assert values(again) == kept
    numbers = dict(enumerate(columns["url"]))
    named = [(pair.a, pair.b, pair.similarity) for pair in dupflow.pairs(frame, id="url", threshold=0.7)]
    assert named == [(numbers[a], numbers[b], similarity) for a, b, similarity, *_ in pairs]
    assert (
        "number" not in kind
        and next(iter(dupflow.pairs(frame, id="number", threshold=0.7)))[:3] == pairs[0][:3]
    )


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("list of texts", "function")])
def test_against(kind, columns):
    """Old documents are kept; new ones that repeat them are removed; the result has no old one."""
    half = len(columns["text"]) // 2
    old = {name: values[:half] for name, values in columns.items()}
    new = {name: [*values[half:], *values[:3]] for name, values in columns.items()}
    kept = dupflow.dedup(make(kind, new), threshold=0.7, against=make(kind, old))
    urls = [row[2] for row in values(kept)]
    removed = dupflow.removed(new, id="url", threshold=0.7, against=old)
    assert urls == [url for url in new["url"] if url not in set(removed.column("id"))]
    assert not set(urls) & set(columns["url"][:3]), "these repeat the old frame"
    assert {row.kept for row in removed if row.old} <= set(old["url"])
    assert any(row.old for row in removed) and not all(row.old for row in removed)


def test_the_rows_of_a_dataset_after_select(columns):
    dataset = make("datasets", columns)
    rows = list(range(0, len(columns["text"]), 2))[::-1]
    found = dupflow.pairs(dataset.select(rows), id="number", threshold=0.6)
    picked = {name: [values[row] for row in rows] for name, values in columns.items()}
    assert len(found) > 5
    assert list(found) == list(dupflow.pairs(picked, id="number", threshold=0.6))


def test_columns_of_all_string_types(columns, expected):
    pyarrow = pytest.importorskip("pyarrow")
    texts = columns["text"][:400]
    want = list(dupflow.pairs(texts, threshold=0.6))
    assert len(want) > 5
    kinds = [
        pyarrow.string(),
        pyarrow.large_string(),
        pyarrow.string_view(),
        pyarrow.dictionary(pyarrow.int32(), pyarrow.string()),
    ]
    for kind in kinds:
        array = pyarrow.array(texts, pyarrow.string())
        array = array.dictionary_encode() if pyarrow.types.is_dictionary(kind) else array.cast(kind)
        assert list(dupflow.pairs(pyarrow.table({"text": array}), threshold=0.6)) == want, kind
        # A slice begins within its buffers.
        sliced = pyarrow.table({"text": array}).slice(100)
        assert list(dupflow.pairs(sliced, threshold=0.6)) == list(
            dupflow.pairs(texts[100:], threshold=0.6)
        ), kind
    with pytest.raises(TypeError, match="text"):
        dupflow.pairs(pyarrow.table({"text": [1, 2]}))
    with pytest.raises(TypeError, match="text"):
        dupflow.pairs(pyarrow.table({"text": pyarrow.array([b"a", b"b"])}))


def test_ids_keep_their_type():
    pyarrow = pytest.importorskip("pyarrow")
    texts = ["one two three four", "one two three four", "five six seven eight"]
    for kind, ids in [
        (pyarrow.int32(), [3, -2, 1]),
        (pyarrow.uint64(), [2**63, 5, 6]),
        (pyarrow.large_string(), ["b", "a", "c"]),
        (pyarrow.string_view(), ["b", "a", "c"]),
        (pyarrow.binary(), [b"\xff", b"a", b"c"]),
        (pyarrow.timestamp("us"), [1, 2, 3]),
    ]:
        table = pyarrow.table({"key": pyarrow.array(ids, kind), "text": texts})
        found = dupflow.pairs(table, id="key").to_arrow()
        is_view = kind == pyarrow.string_view()
        assert found.schema.field("a").type == (pyarrow.large_string() if is_view else kind)
        assert found.column("a").cast(kind).equals(table.column("key").slice(0, 1)), "the earlier row first"


def test_ids_may_repeat_and_rows_are_compared():
    frame = {
        "key": ["x", "x", "x"],
        "text": ["one two three four", "one two three four", "other words are here"],
    }
    assert [tuple(pair)[:3] for pair in dupflow.pairs(frame, id="key")] == [("x", "x", 1.0)]
    assert dupflow.dedup(frame, id="key") == {"key": ["x", "x"], "text": frame["text"][1:]}


@pytest.mark.parametrize("texts", [[], [""], ["", ""], ["a b c d", "", "a b c d", ""], ["..."] * 5])
def test_empty_texts_are_documents_in_no_pair(texts):
    pairs = [(i, j) for i in range(len(texts)) for j in range(i) if texts[i] == texts[j] == "a b c d"]
    found = dupflow.pairs({"text": texts})
    assert [(pair.b, pair.a) for pair in found] == pairs
    kept = dupflow.dedup({"text": texts, "n": list(range(len(texts)))})
    assert len(kept["n"]) == len(texts) - len(pairs)
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"text": pyarrow.array(texts, pyarrow.string())})
    assert dupflow.dedup(table).num_rows == len(kept["n"])


def test_null_texts_are_refused_or_skipped():
    texts = [None, "a b c d", None, "a b c d", None]
    for frame in ({"text": texts}, [{"text": text} for text in texts]):
        with pytest.raises(ValueError, match="null"):
            dupflow.pairs(frame)
        found = dupflow.pairs(frame, nulls="skip")
        assert ([tuple(pair)[:2] for pair in found], found.stats["nulls"]) == ([(1, 3)], 3)
    assert dupflow.dedup({"text": texts}, nulls="skip")["text"] == [None, "a b c d", None, None]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": texts}, index=[9, 8, 7, 6, 5])
    assert list(dupflow.dedup(frame, nulls="skip").index) == [9, 8, 7, 5]


def test_pandas_keeps_its_index_and_columns_that_arrow_has_not():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"text": ["a b c d", "x y z w", "a b c d"], "any": [object(), {1, 2}, 3j]},
        index=pandas.MultiIndex.from_tuples([("k", 1), ("k", 2), ("l", 1)]),
    )
    kept = dupflow.dedup(frame)
    assert list(kept.index) == [("k", 1), ("k", 2)] and list(kept.columns) == ["text", "any"]
    assert list(frame.iloc[::-1].pipe(dupflow.dedup).index) == [("l", 1), ("k", 2)]


def test_columns_of_a_dict_keep_their_kind():
    texts = ["a b c d", "x y z w", "a b c d"]
    polars, numpy = pytest.importorskip("polars"), pytest.importorskip("numpy")
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = {
        "text": numpy.array(texts),
        "id": numpy.array([3, 2, 1]),
        "x": pandas.Series([1, 2, 3], index=[7, 8, 9]),
    }
    kept = dupflow.dedup(frame, id="id")
    assert kept["text"].tolist() == texts[:2] and kept["id"].dtype == frame["id"].dtype
    assert kept["x"].to_dict() == {7: 1, 8: 2}
    kept = dupflow.dedup({"text": polars.Series(texts), "id": pyarrow.chunked_array([[3, 2], [1]])}, id="id")
    assert kept == {"text": texts[:2], "id": [3, 2]}


def test_pandas_without_pyarrow(columns, expected, monkeypatch):
    pandas = pytest.importorskip("pandas")
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyarrow" else find(name))
    assert [tuple(pair) for pair in dupflow.pairs(pandas.DataFrame(columns), threshold=0.7)] == expected[0]


def test_a_stream_is_read_once(columns, expected):
    pairs, kept = expected
    batches = make("list of batches", columns)
    assert [tuple(pair) for pair in dupflow.pairs(iter(batches), threshold=0.7)] == pairs
    for stream in (iter(batches), (row for row in make("list of rows", columns))):
        with pytest.raises(TypeError, match="only once"):
            dupflow.dedup(stream, threshold=0.7)
        # It was not touched.
        found = dupflow.removed(stream, threshold=0.7)
        assert len(found) == len(columns["text"]) - len(kept)
        assert values(list(found.filter(iter(batches)))) == kept
        with pytest.raises(ValueError, match="rows"):
            found.filter({"text": ["a"]})
        with pytest.raises(ValueError, match="fewer rows"):
            list(found.filter(iter(batches[:-1])))
        with pytest.raises(ValueError, match="more rows"):
            list(found.filter(iter([*batches, {"text": ["one more"]}])))
    pyarrow = pytest.importorskip("pyarrow")
    reader = pyarrow.table(columns).to_reader(max_chunksize=300)
    with pytest.raises(TypeError, match="only once"):
        dupflow.dedup(reader)
    assert [tuple(pair) for pair in dupflow.pairs(reader, threshold=0.7)] == pairs
    table = pyarrow.table(columns)
    again = dupflow.dedup(lambda: table.to_reader(max_chunksize=300), threshold=0.7)
    assert values(list(again)) == kept


class Foreign:
    """A frame of a library that dupflow has not heard of."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def test_a_frame_of_another_library_is_returned_as_a_table(columns, expected):
    pyarrow = pytest.importorskip("pyarrow")
    frame = Foreign(pyarrow.table(columns))
    assert [tuple(pair) for pair in dupflow.pairs(frame, threshold=0.7)] == expected[0]
    assert values(dupflow.dedup(frame, threshold=0.7)) == expected[1]


def test_a_relation_is_run_once_by_dedup():
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    connection = duckdb.connect()
    connection.execute("create sequence calls")
    # Each run of the query gives other numbers.
    relation = connection.sql(
        "select nextval('calls') as call, 'the same few words ' || (i % 3) || ' and ' || (i % 3) as text "
        "from range(9) r(i) order by i"
    )
    kept = dupflow.dedup(relation, threshold=0.5, pipeline="exact").order("call").fetchall()
    calls = [call for call, _ in kept]
    assert len({text for _, text in kept}) == len(kept) == 3 and max(calls) - min(calls) < 9, kept


def test_a_column_that_is_missing_or_there_twice():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pyarrow, texts = pytest.importorskip("pyarrow"), ["a b c d"] * 2
    frame = polars.DataFrame({"txt": ["a"]})
    with pytest.raises(ValueError, match='"text"'):
        dupflow.pairs(frame)
    with pytest.raises(ValueError, match='"url"'):
        dupflow.pairs(frame, text="txt", id="url")
    twice = pyarrow.table([pyarrow.array(texts)] * 2 + [pyarrow.array([1, 2])], names=["text", "text", "id"])
    for frame in (
        twice,
        twice.to_reader(),
        twice.to_batches()[0],
        pandas.DataFrame([["a b c d"] * 2], columns=["text", "text"]),
    ):
        with pytest.raises(ValueError, match='2 columns of the frame are called "text"'):
            dupflow.pairs(frame)
    # Others may be.
    other = twice.rename_columns(["x", "x", "text"]).set_column(2, "text", [texts])
    assert len(dupflow.pairs(other)) == 1 and dupflow.dedup(other).num_rows == 1


def test_columns_of_nulls():
    """Polars has a type for them; a batch may have no id or no text at all."""
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"text": ["a b c d"] * 3, "id": [None] * 3})
    assert frame.schema["id"] == polars.Null
    assert [(pair.a, pair.b) for pair in dupflow.pairs(frame, id="id")] == [(None, None)] * 3
    empty = polars.DataFrame({"text": [None] * 3, "id": ["a", "b", "c"]})
    assert dupflow.pairs(empty, nulls="skip").stats["nulls"] == 3
    assert dupflow.dedup(empty, nulls="skip").equals(empty)
    with dupflow.Corpus() as corpus:
        corpus.upsert_many({"id": ["a", "b"], "text": ["a b c d"] * 2})
        assert len(corpus.flush()) == 1
        assert corpus.upsert_many(empty, nulls="delete") == 0
        assert [delta.diff for delta in corpus.flush()] == [-1]


def test_kept_rows_of_types_that_pyarrow_does_not_filter():
    pyarrow = pytest.importorskip("pyarrow")
    texts = ["a b c d", "e f g h", "a b c d", "", "e f g h", "i j k l"]
    kept = [0, 1, 3, 5]
    views = pyarrow.array(texts).cast(pyarrow.string_view())
    columns = {
        "text": views,
        "bytes": pyarrow.array([text.encode() for text in texts]).cast(pyarrow.binary_view()),
        "lists": pyarrow.array([[text] for text in texts], pyarrow.list_(pyarrow.string_view())),
        "structs": pyarrow.StructArray.from_arrays([views], ["inner"]),
        "runs": pyarrow.RunEndEncodedArray.from_arrays([2, 6], ["x", "y"]),
        "number": pyarrow.array(range(6)),
    }
    batch = pyarrow.record_batch(columns)
    for frame in (
        batch,
        pyarrow.table(columns),
        pyarrow.Table.from_batches([batch.slice(0, 4), batch.slice(4)]),
    ):
        found = dupflow.dedup(frame)
        assert found.schema == frame.schema and type(found) is type(frame)
        assert found.to_pylist() == [frame.to_pylist()[row] for row in kept]
    nothing = dupflow.removed(batch).filter(batch)
    assert nothing.num_rows == 4
    alone = dupflow.dedup(batch.select(["lists", "text"]).slice(4), against=batch)
    assert alone.num_rows == 0 and alone.schema.names == ["lists", "text"]


def test_batches_of_polars_are_a_stream(columns, expected):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(columns).lazy()
    assert [tuple(pair) for pair in dupflow.pairs(frame.collect_batches(), threshold=0.7)] == expected[0]
    with pytest.raises(TypeError, match="only once"):
        dupflow.dedup(frame.collect_batches())
    kept = list(dupflow.dedup(frame.collect_batches, threshold=0.7))
    assert all(isinstance(batch, polars.DataFrame) for batch in kept) and values(kept) == expected[1]


def test_kept_rows_of_a_relation_are_no_table_of_its_database(columns):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    connection = duckdb.connect()
    connection.execute("create table dupflow_kept as select 'wrong' as text")
    relation = connection.sql("select 'a b c d' as text, i from range(2) r(i)")
    first, second = dupflow.dedup(relation), dupflow.dedup(relation.project("i + 7 as i, text"))
    assert sorted(first.fetchall() + second.fetchall(), key=str) == [("a b c d", 0), (7, "a b c d")]
    connection.execute("set python_enable_replacements = false")
    assert len(dupflow.pairs(relation)) == 1
    with pytest.raises(TypeError, match="python_enable_replacements"):
        dupflow.dedup(relation)
