"""Values that a library promises and does not keep, numbers that are too large, ids of several kinds; what a
call leaves behind that ends early.

Bug classes: text that is no UTF-8 read as text; rows that are null read as documents; a panic instead of an
exception; an id that decides for a corpus though nothing has it; deltas that are lost with an interrupt; a
state that is still locked.
"""

import contextlib
import logging
import os
import subprocess
import sys
import threading

import pytest

import dupflow
from dupflow import _dupflow as native

pa = pytest.importorskip("pyarrow")

TEXT = "one two three four five"


def strings(of_type, *values):
    """An array of these bytes, whether they are UTF-8 or not."""
    binary = pa.large_binary() if of_type == pa.large_string() else pa.binary()
    return pa.Array.from_buffers(of_type, len(values), pa.array(values, binary).buffers())


@pytest.mark.parametrize("of_type", [pa.string(), pa.large_string()], ids=str)
def test_text_that_is_no_utf8_is_a_value_error(of_type):
    wrong = strings(of_type, b"one two", b"\xff\xfe three")
    for frame in (
        pa.table({"text": wrong}),
        pa.table({"text": pa.DictionaryArray.from_arrays(pa.array([0, 1]), wrong, safe=False)}),
    ):
        with pytest.raises(ValueError, match='column "text"'):
            native.pairs(frame)
    ids = pa.table({"text": [TEXT, TEXT], "id": wrong})
    with pytest.raises(ValueError, match='column "id"'):
        native.pairs(ids, id="id")
    with dupflow.Corpus() as corpus, pytest.raises(ValueError, match='column "id"'):
        corpus.upsert_many(ids)


def test_keys_of_a_dictionary_outside_of_it_are_a_value_error():
    keys = pa.array([0, 9], pa.int8())
    frame = pa.table({"text": pa.DictionaryArray.from_arrays(keys, pa.array([TEXT]), safe=False)})
    with pytest.raises(ValueError, match='column "text"'):
        native.pairs(frame)


class Once:
    """Hands out the same capsules each time."""

    def __init__(self, batch):
        self.capsules = batch.__arrow_c_array__()

    def __arrow_c_array__(self, requested_schema=None):
        return self.capsules


def test_a_batch_that_can_be_read_once_is_not_read_twice():
    once = Once(pa.record_batch({"text": [TEXT, TEXT]}))
    assert len(native.pairs(once)) == 1
    with pytest.raises(ValueError, match="only once"):
        native.pairs(once)


class Rows:
    """A stream whose rows are an array of structs."""

    def __init__(self, array):
        self.array = pa.chunked_array([array])

    def __arrow_c_stream__(self, requested_schema=None):
        return self.array.__arrow_c_stream__(requested_schema)


def test_null_rows_of_a_stream_are_a_value_error():
    rows = pa.array([{"text": TEXT}, None, {"text": TEXT}], pa.struct({"text": pa.string()}))
    assert len(native.pairs(Rows(rows.drop_null()))) == 1
    with pytest.raises(ValueError, match="null"):
        native.pairs(Rows(rows))
    with pytest.raises(TypeError, match="columns"):
        native.pairs(Rows(pa.array([1, 2])))


def test_ids_keep_their_type_through_batches_without_one():
    for of_type, ids in ((pa.string(), ["a", "b"]), (pa.binary_view(), [b"a", b"b"])):
        batches = [
            pa.table({"text": [TEXT], "id": pa.nulls(1, pa.float64())}),
            pa.table({"text": [TEXT, TEXT], "id": pa.array(ids, of_type)}),
            pa.table({"text": [TEXT], "id": pa.nulls(1)}),
        ]
        found = pa.table(native.pairs(iter(batches), id="id"))
        assert found.column("a").to_pylist() == [None, None, None, ids[0], ids[0], ids[1]]
        assert found.column("b").to_pylist() == [*ids, None, ids[1], None, None]
    with pytest.raises(TypeError, match="different types"):
        native.pairs(
            iter([pa.table({"text": [TEXT], "id": [1]}), pa.table({"text": [TEXT], "id": ["a"]})]), id="id"
        )


class Index:
    def __init__(self, number):
        self.number = number

    def __index__(self):
        return self.number


def test_ids_of_a_corpus():
    with dupflow.Corpus() as corpus:
        for id in (2**63, -(2**63) - 1, 2**200):
            with pytest.raises(ValueError, match="64 bits"):
                corpus.upsert(id, TEXT)
        for id in (True, 1.0, None, b"a"):
            with pytest.raises(TypeError):
                corpus.upsert(id, TEXT)
        with pytest.raises(TypeError, match="bool"):
            corpus.upsert_many({"id": [1, True], "text": [TEXT, TEXT]})
        # Nothing has an id yet.
        corpus.delete("nothing")
        corpus.upsert_many({"id": ["nothing"], "text": [None]}, nulls="delete")
        corpus.upsert(Index(7), TEXT)
        corpus.upsert(8, TEXT)
        assert [(delta.a, delta.b) for delta in corpus.flush()] == [(7, 8)]
        with pytest.raises(TypeError, match="int"):
            corpus.delete("nothing")


@pytest.mark.parametrize("number", [0, -1, -(2**70), 2**70])
def test_numbers_that_are_not_possible(number):
    for call in (dupflow.pairs, dupflow.clusters, dupflow.dedup):
        with pytest.raises(dupflow.ConfigError, match="workers: found"):
            call([TEXT], workers=number)
    with pytest.raises(dupflow.ConfigError, match="workers"):
        dupflow.Corpus(workers=number)
    with dupflow.Corpus() as corpus:
        if number < 1:
            with pytest.raises(ValueError, match="top: found"):
                corpus.similar(TEXT, top=number)
        else:
            assert corpus.similar(TEXT, top=number) == []
    if number < 1:
        with pytest.raises(dupflow.ConfigError, match="documents: found"):
            dupflow.plan(documents=number)
    native.set_log_level(number)
    native.set_log_level(30)


def test_a_level_of_a_logger_may_be_any():
    logger = logging.getLogger("dupflow")
    before = logger.level
    try:
        logger.setLevel(1000)
        dupflow.pairs([TEXT])
    finally:
        logger.setLevel(before)


def test_epoch_rules():
    for rule, expected in (
        ("100ms", (0.1, 0)),
        ("every:2s", (2.0, 0)),
        ("events:7", (float("inf"), 7)),
        ("events:7,every:2s", (2.0, 7)),
    ):
        assert native.every(rule) == expected
    for rule in ("ts", "all", "0ms", "events:0", "7", "", "soon"):
        with pytest.raises(dupflow.ConfigError, match="every: found"):
            native.every(rule)


def test_what_a_handler_raises_loses_no_delta(tmp_path):
    """Log records are delivered by the thread that flushes."""
    raised = []

    class Raises(logging.Handler):
        def emit(self, record):
            raised.append(record)
            raise ZeroDivisionError

    logger = logging.getLogger("dupflow")
    before, handler = logger.level, Raises()
    with dupflow.Corpus(state=tmp_path / "state") as corpus:
        logger.addHandler(handler)
        logger.setLevel(1)
        try:
            deltas = []
            for n in range(20):
                corpus.upsert(n, TEXT)
                with contextlib.suppress(ZeroDivisionError):
                    deltas += list(corpus.flush())
        finally:
            logger.removeHandler(handler)
            logger.setLevel(before)
        deltas += list(corpus.flush())
        assert sorted((delta.a, delta.b) for delta in deltas) == [
            (a, b) for a in range(20) for b in range(a + 1, 20)
        ]


def test_an_interrupted_upsert_decides_for_the_kind_of_ids():
    def batches():
        yield {"id": [1, 2], "text": [TEXT, TEXT]}
        raise ZeroDivisionError

    with dupflow.Corpus() as corpus:
        with pytest.raises(ZeroDivisionError):
            corpus.upsert_many(batches())
        with pytest.raises(TypeError, match="int"):
            corpus.upsert("a", TEXT)

    def interrupts(rows):
        raise ZeroDivisionError

    def slowly():
        # Until 50 ms have passed progress is not reported.
        for n in range(10_000_000):
            yield {"id": [n], "text": [TEXT + f" {n}"]}

    with dupflow.Corpus() as corpus:
        with pytest.raises(ZeroDivisionError):
            corpus.upsert_many(slowly(), progress=interrupts)
        with pytest.raises(TypeError, match="int"):
            corpus.upsert("a", TEXT)


def test_abandoning_ends_a_call_of_another_thread():
    for leave in (lambda corpus: corpus.abandon(), lambda corpus: corpus.__exit__(KeyError, None, None)):
        corpus, begun = dupflow.Corpus(), threading.Event()
        errors = []

        def endless(begun=begun):
            begun.set()
            while True:
                yield {"id": 1, "text": TEXT}

        def read(corpus=corpus, errors=errors, endless=endless):
            try:
                corpus.upsert_many(endless())
            except RuntimeError as error:
                errors.append(error)

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        begun.wait()
        leave(corpus)
        thread.join(60)
        assert corpus.closed and len(errors) == 1


def test_whole_numbers_of_other_libraries_are_ids():
    numpy = pytest.importorskip("numpy")
    rows = [{"id": numpy.int64(2**53 + 1), "text": TEXT}, {"id": numpy.int64(2**53), "text": TEXT}]
    assert [(pair.a, pair.b) for pair in dupflow.pairs(rows, id="id")] == [(2**53 + 1, 2**53)]
    with dupflow.Corpus() as corpus:
        assert corpus.upsert_many(rows) == 2
        with pytest.raises(TypeError):
            corpus.upsert(numpy.array([1, 2]), TEXT)
    for id in (b"1", object()):
        with pytest.raises(TypeError, match="str, int, float and bool"):
            dupflow.pairs([{"id": id, "text": TEXT}], id="id")


def test_columns_that_a_pipeline_reads_besides():
    assert native.field_columns("minhash", []) == []
    settings = ["pairs.where=a.lang == b.lang", "text.fields={title = 1}"]
    assert native.field_columns("minhash", settings) == ["lang", "title"]
    with pytest.raises(dupflow.ConfigError):
        native.field_columns("none", [])


def test_a_corpus_is_stopped_while_another_thread_uses_it():
    corpus = native.Corpus()
    reading = threading.Event()

    def batches():
        reading.set()
        while True:
            yield pa.record_batch({"id": ["a"] * 1000, "text": [TEXT] * 1000})

    errors = []

    def read():
        try:
            corpus.upsert_many(batches())
        except RuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=read)
    thread.start()
    reading.wait()
    corpus.stop()
    thread.join(60)
    assert not thread.is_alive() and len(errors) == 1
    corpus.abandon()
    assert corpus.closed
    corpus.stop()


def test_an_abandoned_state_is_free_and_its_epochs_go_on(tmp_path):
    state, last = str(tmp_path / "state"), 0
    for n in range(10):
        corpus = native.Corpus(state=state)
        restored = corpus.stats()["epoch"]
        assert restored >= last
        corpus.upsert(n, TEXT)
        found = corpus.flush()
        assert len(found) == n
        assert set(found.column("epoch")) <= {restored + 1}
        last = corpus.stats()["epoch"]
        corpus.abandon()
        with pytest.raises(dupflow.StateError):
            native.Corpus("exact", state=state)


FORKED = """
import os, sys, dupflow
corpus = dupflow.Corpus(state=sys.argv[1])
corpus.upsert("a", "one two three four five")
corpus.flush()
reader, writer = os.pipe()
if os.fork() == 0:
    os.close(writer)
    os.read(reader, 1)
    os._exit(0)
os.close(reader)
corpus.close()
dupflow.Corpus(state=sys.argv[1]).close()
print("free")
os.close(writer)
os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_closed_state_is_free_while_a_forked_process_lives(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FORKED, str(tmp_path / "state")], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "free\n", done.stderr


def test_objects_say_what_they_are():
    assert repr(dupflow.plan(documents=1000)).startswith("Plan(minhash, threshold 0.8, 1000 documents of ")
    assert repr(dupflow.compare("a b c d", "a b c d")) == "Comparison(jaccard 1.0000, a pair)"
    named = "Plan", "Comparison", "Corpus", "Follow", "Table", "Deduplicated"
    for kind in (getattr(native, name) for name in named):
        undocumented = [name for name in vars(kind) if name[0] != "_" and not getattr(kind, name).__doc__]
        assert undocumented == [], kind
