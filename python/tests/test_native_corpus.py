"""The native corpus alone: the law, kinds of ids, states, threads, forks."""

import gc
import os
import signal
import subprocess
import sys
import threading

import pytest
from conftest import cells, native_table, native_text, replay, threads, wait_for

from dupflow import _dupflow as native

pa = pytest.importorskip("pyarrow")


@pytest.mark.parametrize("workers", [1, 2])
def test_deltas_add_up_to_a_fresh_run(workers):
    alive, added = {}, set()
    with native.Corpus(workers=workers) as corpus:
        for step in range(30):
            name = f"d{step * 7 % 12:02}"
            if step % 5 == 4:
                corpus.delete(name)
                alive.pop(name, None)
            else:
                alive[name] = native_text(step % 3, step if step % 2 else None)
                corpus.upsert(name, alive[name])
            if step % 4 == 3:
                replay(added, corpus.flush())
        replay(added, corpus.flush())
        ordered = dict(sorted(alive.items()))
        frame = native_table(list(ordered.values()), id=list(ordered))
        fresh = native.pairs(frame, id="id")
        assert added == set(cells(fresh, "a", "b", "similarity"))
        assert cells(corpus.pairs(), "a", "b") == cells(fresh, "a", "b")
        assert cells(corpus.clusters(), "document", "cluster") == cells(
            native.clusters(frame, id="id"), "document", "cluster"
        )
        assert corpus.stats()["documents"] == len(alive) and corpus.stats()["queued"] == 0
        assert len(corpus.flush()) == 0


def test_upsert_many_similar_and_kinds_of_ids():
    corpus = native.Corpus("exact", settings=["threshold=0.5"])
    assert (
        corpus.pairs().num_rows == 0 and pa.table(corpus.pairs()).schema.field("a").type == pa.large_string()
    )
    frame = native_table(
        [native_text(n // 2, n) for n in range(5000)], id=pa.array(range(-2500, 2500), pa.int32())
    )
    counts = []
    assert corpus.upsert_many(frame, progress=counts.append) == 5000 and counts[-1] == 5000
    assert set(cells(corpus.flush(), "diff", "a", "b")) == {(1, n, n + 1) for n in range(-2500, 2500, 2)}
    found = corpus.similar(native_text(1200))
    assert [row[0] for row in found] == [-100, -99] and {row[2:] for row in found} == {(None, None)}
    assert corpus.similar("nothing like it") == []
    with pytest.raises(TypeError, match="ids of this corpus are int, found str"):
        corpus.upsert("a", "b")
    with pytest.raises(ValueError, match="row 1: the id is null"):
        corpus.upsert_many(native_table(["a", "b"], id=[1, None]))
    assert corpus.upsert_many(native_table([None], id=[0]), nulls="delete") == 0
    assert cells(corpus.flush(), "diff", "a", "b", "cause") == [(-1, 0, 1, "delete")]
    corpus.close()
    corpus.close()
    assert corpus.closed
    with pytest.raises(ValueError, match="closed"):
        corpus.flush()


def test_a_state_is_continued(tmp_path):
    place = str(tmp_path / "state")
    program = (
        "import os, sys\n"
        "from dupflow import _dupflow as native\n"
        "corpus = native.Corpus(state=sys.argv[1])\n"
        "corpus.upsert(1, sys.argv[2]); corpus.upsert(2, sys.argv[2]); corpus.flush()\n"
        "corpus.upsert(3, sys.argv[2])\n"
        "os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, place, native_text(1)], check=False)
    assert killed.returncode == -signal.SIGKILL
    with native.Corpus(state=place) as corpus:
        assert cells(corpus.pairs(), "a", "b") == [(1, 2)] and corpus.stats()["documents"] == 2
        with pytest.raises(TypeError, match="are int"):
            corpus.delete("a")
        with pytest.raises(native.StateError, match="owns the state"):
            native.Corpus(state=place)
        corpus.upsert(0, native_text(1))
        assert cells(corpus.flush(), "diff", "a", "b") == [(1, 0, 1), (1, 0, 2)]
        corpus.delete(2)
    with native.Corpus(state=place) as corpus:
        assert cells(corpus.pairs(), "a", "b") == [(0, 1)], "close finishes what is queued"
    with pytest.raises(native.StateError, match="another pipeline"):
        native.Corpus(state=place, settings=["threshold=0.9"])


def test_corpora_leave_no_thread():
    before = threads()
    corpora = [native.Corpus(workers=2) for _ in range(4)]
    for corpus in corpora:
        corpus.upsert("a", "b")
    assert threads() > before
    corpora[0].close()
    corpora[1].abandon()
    del corpora, corpus
    gc.collect()
    wait_for(lambda: threads() <= before)


def test_a_child_process_makes_its_own():
    corpus = native.Corpus()
    corpus.upsert("a", native_text(1))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            corpus.flush()
        except RuntimeError as error:
            code = 0 if "forked" in str(error) else 2
        del corpus
        gc.collect()
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    corpus.upsert("b", native_text(1))
    assert cells(corpus.flush(), "a", "b") == [("a", "b")]
    corpus.close()


def test_threads_take_turns():
    corpus = native.Corpus()

    def work(part):
        for n in range(300):
            corpus.upsert(part * 1000 + n, native_text(n))
            if n % 50 == 0:
                corpus.flush()

    workers = [threading.Thread(target=work, args=[part]) for part in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    corpus.flush()
    assert corpus.stats()["documents"] == 1200 and corpus.pairs().num_rows == 300 * 6
    corpus.close()


def test_what_was_not_received_is_in_the_next_table():
    def flushed():
        found = corpus.flush()
        return list(zip(*(found.column(name) for name in ("diff", "a", "b")), strict=True))

    text = "one two three four five"
    corpus = native.Corpus()
    corpus.unreceived(0)
    corpus.upsert("a", text)
    corpus.upsert("b", text)
    assert flushed() == [(1, "a", "b")]
    corpus.unreceived(1)
    assert flushed() == []
    corpus.upsert("b", text + " six seven eight nine ten")
    assert flushed() == [(-1, "a", "b")]
    corpus.upsert("b", text)
    assert flushed() == [(1, "a", "b")]
    corpus.unreceived(3)
    corpus.upsert("c", text)
    assert flushed() == [(1, "a", "b"), (1, "a", "c"), (1, "b", "c")]
    corpus.unreceived(4)
    corpus.delete("b")
    assert flushed() == [(1, "a", "c")]
    assert flushed() == [] and len(corpus.pairs()) == 1
    corpus.close()


INTERRUPTED = """
import random, signal, sys, threading, time
import dupflow
draw = random.Random(int(sys.argv[1]))
sums = {}
def add(deltas):
    for delta in deltas:
        sums[delta.a, delta.b] = sums.get((delta.a, delta.b), 0) + delta.diff
with dupflow.Corpus() as corpus:
    for n in range(60):
        corpus.upsert(n, "one two three four")
        signal.setitimer(signal.ITIMER_REAL, draw.random() * 0.002)
        deltas = None
        try:
            deltas = corpus.flush()
        except KeyboardInterrupt:
            pass
        signal.setitimer(signal.ITIMER_REAL, 0)
        if deltas is not None:
            add(deltas)
    add(corpus.flush())
    expected = {(pair.a, pair.b) for pair in corpus.pairs()}
print(len(expected), len({pair for pair, sum in sums.items() if sum}), set(sums.values()))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals")
def test_interrupted_flushes_lose_nothing():
    """A signal between the return of flush and the assignment loses its result, as that of any function; here
    the handler waits until the assignment is done."""
    code = (
        "import signal\nclass Late:\n    pass\n"
        "def handler(number, frame):\n"
        "    if frame.f_code.co_name != '<module>':\n        raise KeyboardInterrupt\n"
        "signal.signal(signal.SIGALRM, handler)\n" + INTERRUPTED
    )
    done = subprocess.run([sys.executable, "-c", code, "1"], capture_output=True, text=True, timeout=120)
    assert done.stdout == "1770 1770 {1}\n", done.stdout + done.stderr
