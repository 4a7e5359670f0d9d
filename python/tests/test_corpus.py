"""A corpus and streams: what each call does.

Bug classes: a query that does not see the last flush; ids of two kinds that are mixed; an epoch rule that is
ignored; deltas that wait for the next item of a stream.
"""

import threading

import pytest
from conftest import text_of

import dupflow


def test_a_corpus_as_in_the_documentation():
    with dupflow.Corpus("exact", threshold=0.5) as corpus:
        corpus.upsert("a", "one two three four five")
        assert corpus.upsert_many([{"id": "b", "text": "one two three four six"}]) == 1
        (delta,) = corpus.flush()
        assert delta == dupflow.Delta(delta.epoch, 1, "a", "b", 0.5, "insert")
        assert len(corpus.flush()) == 0
        assert corpus.similar("one two three four five", top=1) == [("a", 1.0)]
        assert corpus.similar("one two three four five") == [("a", 1.0), ("b", 0.5)]
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
        assert corpus.pairs().to_arrow().schema.field("a").type == "int64"
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
    for every in ("", "fast", "0s:1", "events:0", "10", "ms", "ts"):
        with pytest.raises(ValueError, match="every"):
            dupflow.follow(iter(()), every=every)
    with pytest.raises(ValueError, match="tail"):
        dupflow.follow(iter(()), tail=True)
    with pytest.raises(TypeError, match="expected"):
        dupflow.follow(7)
    with pytest.raises(ValueError, match='"id"'):
        list(dupflow.follow([{"text": "a"}]))
