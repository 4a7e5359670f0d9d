"""The native module alone: frames in and out, the plan, files, the command line."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import cells, native_table, native_text, replay, threads, wait_for

from dupflow import _dupflow as native

pa = pytest.importorskip("pyarrow")


def pairs(frame, **options):
    return {(a, b) for a, b in cells(native.pairs(frame, **options), "a", "b")}


TEXTS = [native_text(1), native_text(2), native_text(1, 3), native_text(3), native_text(1), native_text(2, 7)]
EXPECTED = {(0, 2), (0, 4), (2, 4), (1, 5)}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "of_type",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())],
    ids=str,
)
def test_every_type_of_texts(of_type, workers):
    frame = pa.table({"text": pa.array(TEXTS, pa.string()).cast(of_type)})
    found = native.pairs(frame, workers=workers)
    assert set(cells(found, "a", "b")) == EXPECTED
    assert found.stats == {"documents": 6, "nulls": 0, "pairs": 4}
    assert all(0.8 <= similarity <= 1 for similarity in found.column("similarity"))
    out = pa.table(found)
    assert out.schema.names == ["a", "b", "similarity"] and out.schema.field("a").type == pa.int64()


def test_evidence_and_exact_similarity():
    found = native.pairs(native_table(TEXTS), pipeline="exact", settings=["threshold=0.5"], evidence=True)
    assert set(cells(found, "a", "b")) == EXPECTED
    assert found.column_names[3:] == ["blocks", "look", "components", "standard_error"]
    similarities = dict(zip(cells(found, "a", "b"), found.column("similarity"), strict=True))
    assert similarities[0, 4] == 1.0 and similarities[0, 2] == pytest.approx(35 / 41)


@pytest.mark.parametrize(("pipeline", "least"), [("exact", 0.0), ("minhash", 0.007)])
def test_copies_have_the_error_of_equal_sketches(pipeline, least):
    found = native.pairs(native_table(TEXTS), pipeline=pipeline, evidence=True)
    rows = dict(zip(cells(found, "a", "b"), cells(found, "look", "standard_error"), strict=True))
    look, error = rows[0, 4]
    assert look == 0 and error == pytest.approx(least, abs=2e-4)


@pytest.mark.parametrize(
    ("ids", "of_type"),
    [
        (["x", "y", "z", "x", None, "ü"], pa.string()),
        ([9, -1, 5, 5, 2**40, 0], pa.int64()),
        ([1, 2, 3, 4, 5, 6], pa.uint8()),
        ([1, 2, 3, 4, 5, 6], pa.date32()),
    ],
)
def test_ids_are_put_in_afterwards(ids, of_type):
    frame = native_table(TEXTS, url=pa.array(ids, of_type))
    # In batches of two, so that ids come from several parts.
    out = pa.table(
        native.pairs(pa.RecordBatchReader.from_batches(frame.schema, frame.to_batches(2)), id="url")
    )
    expected = pa.array(ids, of_type).cast(pa.large_string() if of_type == pa.string() else of_type)
    wanted = [(expected[a], expected[b]) for a, b in sorted(EXPECTED)]
    assert list(zip(out["a"], out["b"], strict=True)) == wanted


def test_iterables_of_batches_and_lists():
    frame = native_table(TEXTS)
    assert pairs(iter(frame.to_batches(1))) == EXPECTED
    assert pairs(native.Table.from_columns({"text": TEXTS})) == EXPECTED
    assert pairs([native_table(TEXTS[:2]), native_table(TEXTS[2:])]) == EXPECTED
    for wrong in ["text", {"text": TEXTS}, 5, [TEXTS]]:
        with pytest.raises(TypeError, match="expected a table"):
            native.pairs(wrong)


def test_edges_of_texts():
    assert native.pairs(native_table([native_text(1), native_text(1), ""])).stats == {
        "documents": 3,
        "nulls": 0,
        "pairs": 1,
    }
    with pytest.raises(ValueError, match="the text of row 2 is null"):
        native.pairs(native_table([native_text(1), native_text(1), None]))
    skipped = native.dedup(native_table([native_text(1), None, native_text(1), None]), nulls="skip")
    assert skipped.mask_bytes == bytes([1, 1, 0, 1])
    assert skipped.stats == {"documents": 2, "nulls": 2, "kept": 3, "removed": 1}
    nothing = native.pairs(native_table(pa.array([], pa.string())))
    assert nothing.num_rows == 0 and nothing.stats["documents"] == 0
    all_null = native.pairs(native_table(pa.nulls(3)), nulls="skip")
    assert all_null.stats == {"documents": 0, "nulls": 3, "pairs": 0}
    with pytest.raises(ValueError, match='no column "body" in the frame, it has "text"'):
        native.pairs(native_table(TEXTS), text="body")
    with pytest.raises(TypeError, match="expected texts, found values of type Int64"):
        native.pairs(native_table(pa.array([1, 2])))


def test_dedup_keeps_by_rule():
    frame = native_table(
        [native_text(1), native_text(1, 3) + " more", native_text(2), native_text(1)],
        when=[3.0, 1.0, 0.0, 2.0],
    )
    kept = lambda **rule: list(native.dedup(frame, **rule).mask_bytes)  # noqa: E731
    assert kept() == [1, 0, 1, 0]
    assert kept(keep="longest") == [0, 1, 1, 0]
    assert kept(keep="oldest", time="when") == [0, 1, 1, 0]
    with pytest.raises(ValueError, match="needs time"):
        kept(keep="oldest")
    with pytest.raises(native.ConfigError, match="keep: found"):
        kept(keep="best")
    assert kept(keep="max:when") == [1, 0, 1, 0]
    assert kept(keep="min:when") == [0, 1, 1, 0]
    assert kept(keep="priority:when:2>1") == [0, 0, 1, 1]
    assert kept(keep="source-order") == [1, 0, 1, 0]
    with pytest.raises(ValueError, match='no column "score"'):
        kept(keep="max:score")
    mask = pa.table(native.dedup(frame).mask)
    assert frame.filter(mask["keep"]).num_rows == 2


def test_dedup_against_an_older_frame():
    old = native_table([native_text(1), native_text(1, 3), native_text(9)], id=["o0", "o1", "o2"])
    new = native_table([native_text(2), native_text(1, 5), native_text(2)], id=["n0", "n1", "n2"])
    found = native.dedup(new, against=old, id="id")
    assert list(found.mask_bytes) == [1, 0, 0]
    assert cells(found.removed, "id", "kept", "old") == [("n1", "o0", True), ("n2", "n0", False)]
    assert found.stats == {"documents": 3, "nulls": 0, "kept": 1, "removed": 2, "old": 3}
    with pytest.raises(TypeError, match="different types"):
        native.dedup(native_table([native_text(1)], id=[1]), against=old, id="id")


def test_clusters_and_giants():
    found = native.clusters(native_table(TEXTS))
    assert cells(found, "document", "cluster") == [(0, 0), (2, 0), (4, 0), (1, 1), (5, 1)]
    giant = native.clusters(native_table(TEXTS), settings=["output.cluster_limit=2"])
    assert cells(giant, "document", "cluster", "size") == [(1, 1, None), (5, 1, None), (None, 0, 3)]
    assert giant.stats == {"documents": 6, "nulls": 0, "clusters": 2, "giants": 1}


def test_fields_of_pairs_where():
    frame = native_table([native_text(1), native_text(1), native_text(1)], host=["a", "a", "b"])
    found = pairs(frame, settings=["pairs.where=a.host != b.host"])
    assert found == {(0, 2), (1, 2)}
    with pytest.raises(ValueError, match='no column "host"'):
        pairs(native_table([native_text(1)]), settings=["pairs.where=a.host != b.host"])


def test_every_problem_of_a_configuration():
    with pytest.raises(native.ConfigError) as caught:
        native.pairs(native_table(TEXTS), settings=["threshold=7", "sketch.siz=3"])
    assert len(caught.value.problems) == 2 and isinstance(caught.value, ValueError)
    assert "did you mean" in str(caught.value)
    with pytest.raises(native.ConfigError, match="no pipeline"):
        native.plan("minhas")
    with pytest.raises(native.ConfigError, match="workers"):
        native.pairs(native_table(TEXTS), workers=0)
    with pytest.raises(native.ConfigError, match="items of a reference"):
        native.pairs(native_table(TEXTS), pipeline="decontaminate")


def test_plan_and_compare():
    plan = native.plan("minhash", settings=["threshold=0.8"], documents=10_000_000)
    # p = 0.8 + 0.2 / 16, P = 1 - (1 - p^7)^18.
    assert plan.recall(0.95) > 0.99 and plan.recall(0.5) < 1e-6
    assert plan.bytes_per_document < 1024 and plan.total_bytes == plan.bytes_per_document * 10_000_000
    assert len(plan.curve()) > 10 and '"points"' in plan.json() and "pipeline  minhash" in plan.text()
    with pytest.raises(ValueError, match="similarity"):
        plan.recall(1.5)
    compared = native.compare("a b c d", "a b c e", pipeline="exact", settings=["text.shingle=words:1"])
    assert compared.jaccard == 0.6 and compared.containment == (0.75, 0.75)
    assert not compared.is_pair and compared.similarity is None
    assert ["".join(piece for _, piece in side) for side in compared.passages] == ["a b c d", "a b c e"]
    assert compared.html().startswith("<!doctype html>")


def test_interrupts_leave_no_thread():
    before = threads()

    def interrupt():
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    def endless():
        while True:
            yield native_table([native_text(n) for n in range(1000)])

    alarm = threading.Thread(target=interrupt)
    alarm.start()
    with pytest.raises(KeyboardInterrupt):
        native.pairs(endless())
    alarm.join()
    wait_for(lambda: threads() <= before)


def test_failing_callbacks_end_a_call():
    before = threads()

    def broken():
        yield native_table(TEXTS)
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        native.pairs(broken())
    with pytest.raises(ZeroDivisionError):
        native.pairs(native_table(TEXTS), progress=lambda rows: 1 // 0)
    corpus = native.Corpus()
    with pytest.raises(RuntimeError, match="callback"):
        corpus.upsert_many(native_table([native_text(1)], id=["a"]), progress=lambda rows: corpus.flush())
    assert corpus.flush().num_rows == 0
    corpus.close()
    wait_for(lambda: threads() <= before)


def test_messages_go_to_a_callable():
    # In a process of its own, since there is one callable.
    program = (
        "from dupflow import _dupflow as native\n"
        "messages = []\n"
        "native.set_log(lambda *message: messages.append(message))\n"
        "native.set_log_level(10)\n"
        "frame = native.Table.from_columns({'text': ['a b c d', 'a b c d']})\n"
        "native.pairs(frame)\n"
        "assert any(target.startswith('dupflow') for _, target, _ in messages), messages\n"
        "assert all(level in (10, 20, 30, 40) for level, _, _ in messages), messages\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_files_are_followed(tmp_path):
    path = tmp_path / "feed.jsonl"
    path.write_text(
        "".join(f'{{"id":"{n}","text":"{native_text(1, n)}"}}\n' for n in range(3)) + "no event\n"
    )
    follow = native.Follow([str(path)], every="events:2")
    added = set()
    while (deltas := follow.next()) is not None:
        replay(added, deltas)
    assert {pair[:2] for pair in added} == {("0", "1"), ("0", "2"), ("1", "2")}
    assert follow.ended and follow.bad_records == 1
    follow.close()
    before = threads()
    live = native.Follow([str(path)], follow=True)
    assert live.next(timeout=20) is not None
    with path.open("a") as more:
        more.write(f'{{"id":"4","text":"{native_text(1)}"}}\n')
    wait_for(lambda: live.next(timeout=1) is not None)
    assert live.next(timeout=0) is None and not live.ended
    live.close()
    wait_for(lambda: threads() <= before)
    with pytest.raises(native.ConfigError) as caught:
        native.Follow([str(tmp_path / "none")], every="often", format="doc")
    assert len(caught.value.problems) == 3


def test_the_command_line_returns_its_code(tmp_path, capfd):
    path = tmp_path / "feed.jsonl"
    path.write_text(f'{{"id":"a","text":"{native_text(1)}"}}\n{{"id":"b","text":"{native_text(1)}"}}\n')
    assert native.main(["dupflow", "replay", "--emit", "pairs", str(path)]) == 0
    assert capfd.readouterr().out == '{"a":"a","b":"b","similarity":1.0}\n'
    assert native.main(["dupflow", "replay", "--workers", "0", str(path)]) == 2
    assert native.main(["dupflow", "--version"]) == 0
    assert native.__version__ in capfd.readouterr().out
    assert native.main(["dupflow", "replay"]) == 2
