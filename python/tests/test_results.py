"""Results: rows, conversions, what a notebook shows; errors; messages; progress.

Bug classes: markup of a text that a notebook runs; the text of another row; a column that is lost in a
conversion; a problem of a configuration that is not listed; a message that vanishes.
"""

import datetime
import importlib.util
import logging
import os
import pickle
import subprocess
import sys
import uuid
from html import escape

import pytest

import dupflow

TEXTS = {
    "id": ["a", "b", "c"],
    "text": [
        "the council <script>alert(1)</script> expects the work to take six weeks and asks drivers to wait",
        "the council <script>alert(1)</script> expects the work to take six weeks and asks everybody to wait",
        "fold the dough",
    ],
}


def test_rows_and_columns():
    found = dupflow.pairs(TEXTS, id="id", pipeline="exact", threshold=0.5, evidence=True)
    assert found.column_names == ["a", "b", "similarity", "blocks", "look", "components", "standard_error"]
    (pair,) = found
    assert isinstance(pair, dupflow.Pair) and (pair.a, pair.b) == ("a", "b") and 0.5 <= pair.similarity < 1
    assert len(found) == 1 and found.column("b") == ["b"] and found.stats["documents"] == 3
    with pytest.raises(KeyError):
        found.column("c")
    assert repr(found) == "<dupflow.Pairs: 1 rows, documents 3, nulls 0, pairs 1>"
    removed = dupflow.removed(TEXTS, id="id", pipeline="exact", threshold=0.5)
    assert list(removed) == [dupflow.Removal("b", "a", "a")] and removed.stats["kept"] == 2
    clusters = dupflow.clusters(TEXTS, id="id", pipeline="exact", threshold=0.5)
    assert list(clusters) == [dupflow.Member("a", "a", None), dupflow.Member("b", "a", None)]
    giants = dupflow.clusters(["a b c d"] * 3, settings={"output.cluster_limit": 2})
    assert list(giants) == [dupflow.Member(None, 0, 3)]


def test_conversions():
    found = dupflow.pairs(TEXTS, id="id", pipeline="exact", threshold=0.5)
    (pair,) = found
    row = {"a": "a", "b": "b", "similarity": pair.similarity}
    assert pytest.importorskip("pyarrow").table(found).to_pylist() == found.to_arrow().to_pylist() == [row]
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(found).to_dicts() == found.to_polars().to_dicts() == [row]
    frame = pytest.importorskip("pandas").DataFrame
    # pandas reads Arrow from version 3 on.
    if hasattr(frame, "from_arrow"):
        assert frame.from_arrow(found).to_dict("records") == [row]
    assert found.to_pandas().to_dict("records") == [row]
    duckdb = pytest.importorskip("duckdb")
    assert duckdb.sql("select a, b from found").fetchall() == [("a", "b")]
    assert list(dupflow.pairs({"text": []}).to_pandas().columns) == ["a", "b", "similarity"]


def test_a_notebook_shows_texts_with_what_differs():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TEXTS)
    for id in ("id", None):
        found = dupflow.pairs(frame, id=id, pipeline="exact", threshold=0.5)
        html = found._repr_html_()
        marked = [part.split("</mark>")[0].split(">", 1)[1] for part in html.split("<mark")[1:]]
        # A passage ends where no shingle is common.
        assert [mark.split()[0] for mark in marked] == ["drivers", "everybody"], html
        assert "<script" not in html and "&lt;script&gt;" in html
    # The frame is not kept alive.
    del frame
    assert "<mark" not in found._repr_html_() and "<td>" in found._repr_html_()
    many = dupflow.pairs(["the same few words of a text"] * 8)
    assert "and 18 more" in many._repr_html_() and many._repr_html_().count("<caption") == 10
    assert "<th>document</th>" in dupflow.clusters(TEXTS, id="id")._repr_html_()


def test_ids_of_types_that_only_a_library_reads():
    pyarrow = pytest.importorskip("pyarrow")
    day, moment = datetime.date(2026, 11, 23), datetime.datetime(2026, 11, 23, 12, 30)
    for kind, first, second in [
        (pyarrow.date32(), day, datetime.date(2026, 11, 24)),
        (pyarrow.timestamp("us"), moment, moment + datetime.timedelta(days=1)),
        (pyarrow.binary(), b"\xff\0", b"a"),
        (pyarrow.binary(16), b"x" * 16, b"y" * 16),
    ]:
        ids = pyarrow.array([first, second, first], kind)
        frame = pyarrow.table({"id": ids, "text": TEXTS["text"]})
        part = frame.slice(0, 2)
        found = dupflow.pairs(part, id="id", pipeline="exact", threshold=0.5)
        (pair,) = found
        assert (pair.a, pair.b, found.column("b")) == (first, second, [second])
        assert found.to_pandas()["a"].tolist() == [first]
        assert "<mark" in found._repr_html_(), "the texts are found by these ids"
        clusters = dupflow.clusters(frame, id="id", pipeline="exact", threshold=0.5)
        assert escape(str(first)) in clusters._repr_html_()


def test_ids_that_are_objects_or_have_a_type_of_their_own():
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    names = [uuid.UUID(int=n) for n in range(3)]
    objects = polars.Series("id", names, dtype=polars.Object)
    frame = polars.DataFrame({"text": TEXTS["text"], "id": objects})
    for call in (dupflow.pairs, dupflow.dedup):
        with pytest.raises(TypeError, match=r'"id".*pl\.Object'):
            call(frame, id="id")
    with pytest.raises(TypeError, match=r'"id".*UUID'):
        dupflow.pairs({"text": TEXTS["text"], "id": objects}, id="id")
    # They are no hindrance where they are not read.
    kept = dupflow.dedup(frame, pipeline="exact", threshold=0.5)
    assert kept["id"].to_list() == [names[0], names[2]]
    table = pyarrow.table(
        {"text": TEXTS["text"], "id": pyarrow.array([name.bytes for name in names], pyarrow.uuid())}
    )
    (pair,) = dupflow.pairs(table, id="id", pipeline="exact", threshold=0.5)
    assert (pair.a, pair.b) == (names[0].bytes, names[1].bytes)


def test_ids_of_such_types_without_a_library(monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    ids = pyarrow.array([b"a", b"b", b"c"])
    found = dupflow.pairs(pyarrow.table({**TEXTS, "id": ids}), id="id", pipeline="exact", threshold=0.5)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TypeError, match="library"):
        found.column("a")
    assert found._repr_html_() == "<p>&lt;dupflow.Pairs: 1 rows, documents 3, nulls 0, pairs 1&gt;</p>"


def test_a_notebook_shows_no_text_of_another_row():
    """Rows whose ids repeat, or a frame that has changed since: the table alone."""
    texts = TEXTS["text"]
    repeated = {"id": ["x", "a", "b", "a"], "text": [texts[2], texts[0], texts[1], "the text of the other a"]}
    found = dupflow.pairs(repeated, id="id", pipeline="exact", threshold=0.5)
    html = found._repr_html_()
    assert [tuple(pair)[:2] for pair in found] == [("a", "b")]
    assert "<td>a</td><td>b</td>" in html and "council" not in html and "other" not in html
    rows = [{"id": id, "text": text} for id, text in zip("abc", texts, strict=True)]
    found = dupflow.pairs(rows, id="id", pipeline="exact", threshold=0.5)
    assert "<mark" in found._repr_html_()
    rows.insert(0, {"id": "d", "text": "fold the dough"})
    assert "<mark" not in found._repr_html_() and "<td>a</td>" in found._repr_html_()
    rows[:] = [{"id": id} for id in "abc"]
    assert "<mark" not in found._repr_html_() and "<td>a</td>" in found._repr_html_()


def test_a_configuration_error_lists_every_problem():
    with pytest.raises(dupflow.ConfigError) as raised:
        dupflow.pairs(TEXTS, threshold=7, settings={"sketch.size": 3, "text.shingel": "words:5"})
    error = raised.value
    assert isinstance(error, ValueError) and len(error.problems) == 3, error.problems
    for word in ("threshold", "sketch.size", "text.shingel"):
        assert any(word in problem for problem in error.problems) and word in str(error), error
    for call in (
        lambda: dupflow.Corpus("minhush"),
        lambda: dupflow.plan("minhash", threshold=0),
        lambda: dupflow.compare("a", "b", threshold=2),
        lambda: dupflow.dedup(TEXTS, pipeline="none/such.toml"),
        lambda: dupflow.follow("x.jsonl", threshold=2),
        lambda: dupflow.follow(iter(()), threshold=2),
    ):
        with pytest.raises(dupflow.ConfigError) as raised:
            call()
        assert raised.value.problems
    assert issubclass(dupflow.StateError, RuntimeError)


def test_settings_are_those_of_a_pipeline_file():
    texts = ["one two three", "one two four"]
    words = dupflow.pairs(texts, pipeline="exact", settings={"text.shingle": "words:1", "threshold": 0.5})
    assert [pair.similarity for pair in words] == [0.5]
    without = dupflow.pairs(
        texts,
        pipeline="exact",
        threshold=0.5,
        settings={"text.shingle": "words:1", "text.stop_words": ["three", "four"]},
    )
    assert [pair.similarity for pair in without] == [1.0]
    frame = {"text": ["one two three four"] * 2, 'a "title"': ["five six", "six seven"]}
    (once,), (often,) = (
        dupflow.pairs(
            frame, pipeline="weighted", threshold=0.1, settings={"text.fields": {'a "title"': weight}}
        )
        for weight in (1, 9)
    )
    assert once.similarity > often.similarity, "the titles differ"
    with pytest.raises(dupflow.ConfigError, match="title: found"):
        dupflow.pairs(frame, settings={"text.fields": {"title": "two"}})
    with pytest.raises(dupflow.ConfigError, match="stop_words"):
        dupflow.pairs(frame, settings={"text.stop_words": [True]})


def test_fields_of_a_rule_are_columns():
    frame = {"text": ["one two three four"] * 3, "host": ["x", "x", "y"]}
    rule = {"pairs.where": "a.host != b.host"}
    assert [tuple(pair)[:2] for pair in dupflow.pairs(frame, settings=rule)] == [(0, 2), (1, 2)]
    with pytest.raises(ValueError, match="host"):
        dupflow.pairs({"text": frame["text"]}, settings=rule)


@pytest.mark.parametrize("setting", ["enable_external_access", "python_enable_replacements"])
def test_a_relation_that_cannot_be_returned_is_refused_before_its_query_runs(setting):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    connection = duckdb.connect()
    connection.execute("create sequence calls")
    relation = connection.sql("select nextval('calls') as call, 'a b c d' as text from range(3)")
    connection.execute(f"set {setting} = false")
    removed = dupflow.removed(relation)
    assert len(removed) == 2
    calls = connection.sql("select currval('calls')").fetchall()
    for call in (lambda: dupflow.dedup(relation), lambda: removed.filter(relation)):
        with pytest.raises(TypeError, match=rf"{setting}.*relation\.to_arrow_table"):
            call()
    assert connection.sql("select currval('calls')").fetchall() == calls
    assert removed.filter(relation.to_arrow_table()).num_rows == 1


def test_messages_are_logged(tmp_path, caplog):
    path = tmp_path / "feed.jsonl"
    path.write_text('{"id":"a","text":"one two three"}\n')
    with caplog.at_level(logging.DEBUG, "dupflow"):
        list(dupflow.follow(path))
        with dupflow.Corpus(state=tmp_path / "state") as corpus:
            corpus.upsert("a", "one two three")
            corpus.flush()
    assert caplog.records, "at this level something is said of a state"
    assert all(record.name.split(".")[0] == "dupflow" for record in caplog.records)
    caplog.clear()
    with caplog.at_level(logging.ERROR, "dupflow"):
        dupflow.pairs(["a b c d"] * 2)
    assert not caplog.records


def test_progress_is_reported():
    seen = []
    batches = ({"text": [f"text {n} {i}" for i in range(500)]} for n in range(4))
    dupflow.pairs(batches, progress=seen.append)
    assert seen[-1] == 2000 and seen == sorted(seen)
    with pytest.raises(ZeroDivisionError):
        dupflow.pairs(["a b c"] * 10, progress=lambda read: 1 // 0)


def test_progress_shows_a_bar_where_tqdm_is_installed():
    code = "import dupflow; dupflow.pairs(['a b c d'] * 2, progress=True)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    try:
        import tqdm  # noqa: F401
    except ImportError:
        assert done.stderr == "", "no terminal, no line"
    else:
        assert "2/2" in done.stderr, done.stderr


def test_import_needs_no_library_and_starts_nothing():
    """Neither before nor after other libraries, whose allocators and threads must not matter."""
    code = (
        "import sys, threading; before = set(sys.modules); import dupflow; "
        "loaded = {name.partition('.')[0] for name in set(sys.modules) - before}; "
        "heavy = {'numpy', 'pandas', 'polars', 'pyarrow', 'duckdb', 'tqdm', 'datasets'} & loaded; "
        "assert not heavy, heavy; assert threading.active_count() == 1; "
        "assert len(dupflow.pairs(['a b c d'] * 2)) == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    libraries = [name for name in ("pyarrow", "polars", "pandas", "duckdb") if can_import(name)]
    for order in (["dupflow", *libraries], [*libraries, "dupflow"]):
        code = f"import {', '.join(order)}; assert len(dupflow.pairs(['a b c d'] * 2)) == 1"
        subprocess.run([sys.executable, "-c", code], check=True)


def can_import(name):
    import importlib.util

    return importlib.util.find_spec(name) is not None


def test_rows_can_be_pickled_and_tables_say_that_they_cannot():
    (pair,) = dupflow.pairs(["a b c d"] * 2)
    assert pickle.loads(pickle.dumps(pair)) == pair
    with pytest.raises(TypeError):
        pickle.dumps(dupflow.pairs(["a b c d"] * 2))


def test_the_version_is_that_of_the_program(program):
    printed = subprocess.run(
        [os.fspath(program), "--version"], capture_output=True, text=True, check=True
    ).stdout
    assert dupflow.__version__ in printed.splitlines()[0]
    assert isinstance(dupflow.FEATURES, tuple)
