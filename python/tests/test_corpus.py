"""A corpus and streams: what each call does.

Bug classes: a query that does not see the last flush; ids of two kinds that are mixed; an epoch rule that is
ignored; deltas that wait for the next item of a stream; an operation that is ignored in a table; a call of
the reading thread that is waited for.
"""

import threading

import pytest
from conftest import text_of, wait_for

import dupflow


def test_a_corpus_as_in_the_documentation():
    with dupflow.Corpus("exact", threshold=0.5) as corpus:
        corpus.upsert("a", "one two three four five")
        assert corpus.upsert_many([{"id": "b", "text": "one two three four six"}]) == 1
        (delta,) = corpus.flush()
        assert delta == dupflow.Delta(delta.epoch, 1, "a", "b", 0.5, "insert")
        assert len(corpus.flush()) == 0
        assert corpus.similar("one two three four five", top=1) == [dupflow.Similar("a", 1.0)]
        assert [found[:2] for found in corpus.similar("one two three four five")] == [("a", 1.0), ("b", 0.5)]
        assert corpus.similar("nothing of these words") == []
        assert list(corpus.pairs()) == [dupflow.Pair("a", "b", 0.5)]
        assert corpus.pairs(evidence=True).column_names[2:] == [
            "similarity",
            "blocks",
            "look",
            "components",
            "standard_error",
        ]
        assert list(corpus.clusters()) == [dupflow.Member("a", "a", None), dupflow.Member("b", "a", None)]
        corpus.delete("b")
        corpus.delete("nothing")
        assert corpus.stats()["queued"] == 2 and len(corpus.pairs()) == 1, "as of the last flush"
        (delta,) = corpus.flush()
        assert (delta.diff, delta.cause) == (-1, "delete")
        stats = corpus.stats()
        assert (stats["documents"], stats["pairs"], stats["queued"]) == (1, 0, 0)
        assert "1 documents, 0 pairs" in repr(corpus)
        with pytest.raises(ValueError, match="top"):
            corpus.similar("x", top=0)


def test_ids_of_a_corpus_are_of_one_kind():
    with dupflow.Corpus() as corpus:
        corpus.upsert(7, "one two three four")
        with pytest.raises(TypeError):
            corpus.upsert("7", "one two three four")
        for id in (2**70, 1.5, None, b"a"):
            with pytest.raises((TypeError, ValueError, OverflowError)):
                corpus.upsert(id, "one two three four")
        corpus.upsert_many({"id": [-7, 8], "text": ["one two three four"] * 2})
        assert [(d.a, d.b) for d in corpus.flush()] == [(-7, 7), (-7, 8), (7, 8)], "in the order of numbers"
        assert corpus.pairs().column("a") == [-7, -7, 7]
    with dupflow.Corpus() as corpus:
        for id in ("", "x" * 1025):
            with pytest.raises(ValueError):
                corpus.upsert(id, "one")
        corpus.upsert("x" * 1024, "one two three four")
        corpus.upsert("ä\0\n", "one two three four")
        assert [(d.a, d.b) for d in corpus.flush()] == [("x" * 1024, "ä\0\n")]


def test_a_large_load_cuts_epochs_by_itself_and_flush_adds_them_up():
    rows = [{"id": n, "text": text_of(n % 40, [(n, n // 40)])} for n in range(5000)]
    with dupflow.Corpus(threshold=0.8) as corpus:
        assert corpus.upsert_many(iter(rows)) == 5000
        # Each of the pairs once, whatever began and ended between.
        deltas = list(corpus.flush())
        assert {delta.diff for delta in deltas} == {1}
        assert [(d.a, d.b, d.similarity) for d in deltas] == [tuple(pair)[:3] for pair in corpus.pairs()]
        assert len(deltas) > 1000


def test_retention_by_a_column_of_times():
    settings = {"retention.max_age": "10s"}
    rows = {"id": ["a", "b", "c"], "text": ["one two three four"] * 3, "at": [100.0, 105.0, 112.0]}
    with dupflow.Corpus(settings=settings) as corpus:
        corpus.upsert_many(rows, time="at")
        corpus.flush()
        assert [(pair.a, pair.b) for pair in corpus.pairs()] == [("b", "c")]


def test_follow_returns_deltas_before_the_next_item_arrives():
    release = threading.Event()

    def source():
        yield {"id": "a", "text": "one two three four"}
        yield {"id": "b", "text": "one two three four"}
        assert release.wait(20), "its deltas were not returned"
        yield {"id": "a", "op": "delete"}
        yield {"id": ["c", "d"], "text": ["five six seven eight", None]}

    taken = dupflow.follow(source(), every="20ms")
    first = list(next(taken))
    release.set()
    rest = [delta for deltas in taken for delta in deltas]
    assert [(d.diff, d.a, d.b) for d in first] == [(1, "a", "b")]
    assert [(d.diff, d.a, d.b, d.cause) for d in rest] == [(-1, "a", "b", "delete")]


def test_follow_of_frames():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"key": [1, 2, 3], "body": ["one two three four"] * 2 + ["other words are here"]})
    for source in (table, table.to_reader(max_chunksize=1), iter([table]), lambda: iter([table])):
        taken = list(dupflow.follow(source, text="body", id="key"))
        assert [(d.a, d.b) for deltas in taken for d in deltas] == [(1, 2)], source
    epochs = list(dupflow.follow(({"id": n, "text": "a b c d"} for n in range(3)), every="events:1"))
    assert sum(map(len, epochs)) == 3


TEXT = "one two three four"
OPERATIONS = [
    {"id": ["a", "b", "c"], "text": [TEXT, TEXT, "other words are here"], "op": ["upsert", None, "upsert"]},
    {"id": ["a", "c", "d"], "text": [TEXT, TEXT, None], "op": ["delete", "upsert", "upsert"]},
    # Of a document the last operation counts.
    {
        "id": ["e", "e", "f", "f"],
        "text": [TEXT] * 4,
        "op": ["upsert", "delete", "delete", None],
    },
]


def operations(kind):
    """The tables of `OPERATIONS`, of a kind."""
    if kind == "rows":
        return [[dict(zip(t, row, strict=True)) for row in zip(*t.values(), strict=True)] for t in OPERATIONS]
    if kind == "iterators of rows":
        return map(iter, operations("rows"))
    if kind in ("dict", "function"):
        return [lambda t=t: iter([t]) for t in OPERATIONS] if kind == "function" else OPERATIONS
    if kind == "datasets":
        return [pytest.importorskip("datasets").Dataset.from_dict(table) for table in OPERATIONS]
    if kind in ("pandas", "polars"):
        return [pytest.importorskip(kind).DataFrame(table) for table in OPERATIONS]
    pyarrow = pytest.importorskip("pyarrow")
    tables = [pyarrow.table(table) for table in OPERATIONS]
    if kind == "duckdb":
        connection = pytest.importorskip("duckdb").connect()
        for n, source in enumerate(tables):
            assert source is not None
            connection.execute(f"create table t{n} as select * from source")
        return [connection.sql(f"from t{n}") for n in range(len(tables))]
    return tables if kind == "pyarrow" else [table.to_batches()[0] for table in tables]


@pytest.mark.parametrize(
    "kind",
    [
        "rows",
        "iterators of rows",
        "dict",
        "function",
        "pandas",
        "polars",
        "pyarrow",
        "batch",
        "datasets",
        "duckdb",
    ],
)
def test_follow_of_operations_in_tables(kind):
    added = {}
    for deltas in dupflow.follow(iter(operations(kind)), every="1s"):
        for delta in deltas:
            added[delta.a, delta.b] = added.get((delta.a, delta.b), 0) + delta.diff
    assert {pair for pair, count in added.items() if count} == {("b", "c"), ("b", "f"), ("c", "f")}
    assert set(added.values()) <= {0, 1}


def test_follow_refuses_operations_that_it_does_not_know():
    for item in (
        {"id": "a", "text": TEXT, "op": "insert"},
        {"id": ["a"], "text": [TEXT], "op": ["Delete"]},
        [{"id": "a", "text": TEXT, "op": 1}],
    ):
        with pytest.raises(ValueError, match='op: expected "upsert" or "delete", found'):
            list(dupflow.follow([item]))
    # A column that the call names is no operation.
    frame = {"op": ["a", "b"], "text": [TEXT] * 2}
    followed = [(d.a, d.b) for deltas in dupflow.follow([frame], id="op") for d in deltas]
    assert followed == [("a", "b")]
    deletes = [{"id": ["a", "b"], "text": [TEXT] * 2}, {"id": ["a"], "op": ["delete"]}]
    assert [d.diff for deltas in dupflow.follow(deletes, every="events:1") for d in deltas] == [1, -1]
    with pytest.raises(ValueError, match='"text"'):
        list(dupflow.follow([{"id": ["a", "b"], "op": ["delete", "upsert"]}]))


def test_follow_keeps_the_types_of_a_table_with_operations():
    """Times are those of Arrow, whether a row is a delete or not."""
    pyarrow, settings = pytest.importorskip("pyarrow"), {"retention.max_age": "10s"}
    table = pyarrow.table(
        {
            "id": ["a", "b", "c", "x"],
            "text": [TEXT] * 4,
            "at": pyarrow.array([100, 105, 112, 112], pyarrow.timestamp("s")),
            "op": ["upsert", "upsert", "upsert", "delete"],
        }
    )
    followed = [d for deltas in dupflow.follow(table, time="at", settings=settings) for d in deltas]
    assert [(delta.diff, delta.a, delta.b) for delta in followed] == [(1, "b", "c")]


def test_follow_of_fields():
    rule = {"pairs.where": "a.host != b.host"}
    rows = [{"id": id, "text": TEXT, "host": host} for id, host in zip("abcd", "xxyx", strict=True)]
    rows.append({"id": "d", "host": "x"})
    table = {name: [row.get(name) for row in rows] for name in rows[0]}
    for source in (iter(rows), iter([rows]), iter([table]), table):
        followed = [delta for deltas in dupflow.follow(source, settings=rule) for delta in deltas]
        assert sorted((delta.a, delta.b) for delta in followed) == [("a", "c"), ("b", "c")]


def test_follow_ends_epochs_within_a_list_of_rows():
    rows = [{"id": n, "text": TEXT} for n in range(6)]
    for source in (rows, [rows], iter([rows[:3], iter(rows[3:])]), lambda: iter(rows)):
        epochs = [{delta.b for delta in deltas} for deltas in dupflow.follow(source, every="events:2")]
        assert epochs == [{1}, {2, 3}, {4, 5}]


def test_closing_follow_ends_the_call_of_the_reading_thread(monkeypatch):
    """Ctrl-C in the loop does not wait until a large item is queued."""
    pyarrow = pytest.importorskip("pyarrow")
    # Equal texts are worked off slowly, and the call waits for that.
    texts = [text_of(n % 50, [(n, n)]) for n in range(1000)] * 100
    taken_first, begun, closing, ended = threading.Event(), threading.Event(), threading.Event(), []
    upsert_many = dupflow.Corpus.upsert_many

    def reading(rows):
        begun.set()
        closing.wait(20)

    def observed(self, *arguments, **options):
        try:
            ended.append(upsert_many(self, *arguments, **options, progress=reading))
        except BaseException as error:
            ended.append(error)
            raise

    def source():
        yield from ({"id": id, "text": TEXT} for id in (-1, -2))
        taken_first.wait(20)
        yield pyarrow.table({"id": range(len(texts)), "text": texts})

    monkeypatch.setattr(dupflow.Corpus, "upsert_many", observed)
    taken = dupflow.follow(source(), every="events:2")
    assert len(next(taken)) == 1
    taken_first.set()
    assert begun.wait(20)
    closing.set()
    taken.close()
    wait_for(lambda: ended)
    assert isinstance(ended[0], RuntimeError) and "abandoned" in str(ended[0]), ended
    wait_for(lambda: "dupflow-follow" not in [thread.name for thread in threading.enumerate()])


def test_follow_of_files(tmp_path):
    lines = ['{"id":"a","text":"one two three four"}', '{"id":"b","text":"one two three four"}']
    for name, line in zip("ab", lines, strict=True):
        (tmp_path / f"{name}.jsonl").write_text(line + "\n")
    for source in (
        [tmp_path / "a.jsonl", str(tmp_path / "b.jsonl")],
        [str(tmp_path / "a.jsonl"), tmp_path / "b.jsonl"],
    ):
        taken = list(dupflow.follow(source))
        assert [(d.a, d.b) for deltas in taken for d in deltas] == [("a", "b")]
    growing = tmp_path / "a.jsonl"
    taken = dupflow.follow(growing, tail=True, every="10ms")
    with growing.open("a") as file:
        file.write(lines[1] + "\n")
    assert [(d.a, d.b) for d in next(taken)] == [("a", "b")]
    taken.close()


def test_follow_refuses_what_it_cannot_do(tmp_path):
    with pytest.raises(dupflow.ConfigError, match=r"missing\.jsonl"):
        dupflow.follow(tmp_path / "missing.jsonl")
    (tmp_path / "empty.jsonl").touch()
    for every in ("", "fast", "0s:1", "events:0", "10", "ms", "ts", "all", "0ms", "every:"):
        with pytest.raises(dupflow.ConfigError, match="every"):
            dupflow.follow(iter(()), every=every)
        if every not in ("ts", "all"):
            with pytest.raises(dupflow.ConfigError, match="every"):
                dupflow.follow(tmp_path / "empty.jsonl", every=every)
    for every in ("10ms", "every:10ms", "2s", "events:3", "events:3,every:10ms"):
        for source in (iter(()), tmp_path / "empty.jsonl"):
            assert list(dupflow.follow(source, every=every)) == []
    with pytest.raises(ValueError, match="tail"):
        dupflow.follow(iter(()), tail=True)
    with pytest.raises(TypeError, match="expected"):
        dupflow.follow(7)
    with pytest.raises(ValueError, match='"id"'):
        list(dupflow.follow([{"text": "a"}]))
