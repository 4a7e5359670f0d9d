"""Signals, threads, forks, memory.

Bug classes: an interrupt that waits for the end of a call; threads that outlive their corpus; an exception of
a generator or a callback that is lost, or hangs; a child process that works on its parent's threads; texts of
a stream that are kept.
"""

import gc
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import text_of, threads, wait_for

import dupflow

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


INTERRUPTED = """
import itertools, os, signal, sys, threading
import dupflow
from conftest import text_of
def rows():
    for n in itertools.count():
        if n == 3000:
            print("reading", flush=True)
        yield {"id": n, "text": text_of(n % 50, [(n, n), (n // 7, n)])}
before = len(os.listdir("/proc/self/task")) if sys.platform.startswith("linux") else 0
try:
    CALL
except KeyboardInterrupt:
    import time
    end = time.monotonic() + 20
    while before and len(os.listdir("/proc/self/task")) > before:
        assert time.monotonic() < end, "threads are left"
    print("interrupted", flush=True)
"""

CALLS = {
    "pairs": "dupflow.pairs(rows())",
    "dedup": "dupflow.removed(rows())",
    "upsert_many": "with dupflow.Corpus() as c: c.upsert_many(rows())",
    "follow": "for d in dupflow.follow(rows(), every='50ms'): pass",
    # It waits for the next item, without an epoch that has to end.
    "follow, waiting": "def wait(): yield [{'id': n, 'text': 'a b c'} for n in (1, 2)]; seen.wait(); "
    "print('reading', flush=True); threading.Event().wait()\n"
    "    seen = threading.Event()\n    for d in dupflow.follow(wait()): seen.set()",
}
# Polars has a handler of signals, after which a call of the system goes on.
CALLS["follow, waiting, with Polars"] = CALLS["follow, waiting"]


@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_ends_a_call(name):
    code = INTERRUPTED.replace("CALL", CALLS[name])
    if "Polars" in name:
        pytest.importorskip("polars")
        code = "import polars\n" + code
    if "waiting" in name:
        # The thread that waits for the source is Python's own, and ends with the process.
        code = code.replace("> before:", "> before + 1:")
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent
    )
    try:
        assert child.stdout.readline() == "reading\n"
        child.send_signal(signal.SIGINT)
        # It would read without end.
        assert child.communicate(timeout=30)[0] == "interrupted\n"
        assert child.returncode == 0
    finally:
        child.kill()


def failing():
    yield {"id": "a", "text": "one two three four"}
    yield {"id": "b", "text": "one two three four"}
    raise ZeroDivisionError("in the generator")


@linux
def test_an_exception_of_a_generator_or_a_callback_ends_a_call():
    before = threads()

    def broken(read):
        raise ZeroDivisionError("in the callback")

    for call in (
        lambda: dupflow.pairs(failing()),
        lambda: dupflow.clusters(failing()),
        lambda: dupflow.removed(failing(), against=["a b c"]),
        lambda: dupflow.removed(["a b c"], against=failing()),
        lambda: dupflow.pairs(["a b c"] * 5, progress=broken),
    ):
        with pytest.raises(ZeroDivisionError, match="in the"):
            call()
        wait_for(lambda: threads() <= before, "threads are left")
    with dupflow.Corpus() as corpus:
        with pytest.raises(ZeroDivisionError):
            corpus.upsert_many({"id": [str(1 // (3 - n))], "text": ["a b c"]} for n in range(9))
        assert corpus.stats()["queued"] == 3
        corpus.flush()
        assert corpus.stats()["documents"] == 2, "two of the three ids are equal"
    taken = dupflow.follow(failing(), every="events:1")
    with pytest.raises(ZeroDivisionError):
        for deltas in taken:
            assert [(delta.a, delta.b) for delta in deltas] == [("a", "b")]
    wait_for(lambda: threads() <= before, "threads are left")


@linux
def test_closed_and_dropped_corpora_leave_no_thread():
    before = threads()
    corpora = [dupflow.Corpus(workers=1 + n % 2) for n in range(6)]
    for n, corpus in enumerate(corpora):
        corpus.upsert(n, "one two three four")
        corpus.upsert(n + 1, "one two three four")
    assert threads() > before
    for n, corpus in enumerate(corpora):
        assert [(d.a, d.b) for d in corpus.flush()] == [(n, n + 1)], "several corpora in one process"
    for corpus in corpora[:2]:
        corpus.close()
        corpus.close()
        assert corpus.closed and repr(corpus) == "<dupflow.Corpus: closed>"
        for call in (corpus.flush, corpus.pairs, corpus.stats, lambda c=corpus: c.upsert("a", "b")):
            with pytest.raises(ValueError, match="closed"):
                call()
    with pytest.raises(ZeroDivisionError), corpora[2]:
        raise ZeroDivisionError
    assert corpora[2].closed
    del corpora, corpus, call
    gc.collect()
    wait_for(lambda: threads() <= before, "threads are left")


@linux
def test_a_generator_of_deltas_that_is_dropped_ends_its_threads():
    before = threads()
    release = threading.Event()

    def source():
        yield {"id": "a", "text": "one two three four"}
        yield {"id": "b", "text": "one two three four"}
        release.wait(20)
        yield {"id": "c", "text": "one two three four"}

    taken = dupflow.follow(source(), every="10ms")
    assert [delta.diff for delta in next(taken)] == [1]
    taken.close()
    assert threads() <= before + 1, "only the one that waits for the source"
    release.set()
    wait_for(lambda: threads() <= before, "threads are left")
    del taken
    # One that never began has no thread.
    waiting = dupflow.follow(source())
    del waiting
    gc.collect()
    wait_for(lambda: threads() <= before, "threads are left")


def test_calls_of_several_threads_take_turns():
    """The interpreter is free during calls, or these would wait for each other without end."""
    with dupflow.Corpus(workers=2) as corpus:
        barrier = threading.Barrier(4)
        sums, lock = {}, threading.Lock()

        def work(part):
            barrier.wait()
            for n in range(60):
                corpus.upsert(f"{part}/{n}", text_of(n % 5, [(n, n // 5)]))
                if n % 10 == 9:
                    deltas = list(corpus.flush())
                    with lock:
                        for delta in deltas:
                            key = (delta.a, delta.b, delta.similarity)
                            sums[key] = sums.get(key, 0) + delta.diff

        workers = [threading.Thread(target=work, args=(part,)) for part in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for delta in corpus.flush():
            key = (delta.a, delta.b, delta.similarity)
            sums[key] = sums.get(key, 0) + delta.diff
        assert {key for key, count in sums.items() if count} == {tuple(pair)[:3] for pair in corpus.pairs()}
        assert set(sums.values()) <= {0, 1} and corpus.stats()["documents"] == 240


FORKED = """
import os, dupflow
def in_child(work):
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
corpus = dupflow.Corpus()
corpus.upsert("a", "one two three four")
corpus.flush()
def beside_a_corpus():
    global corpus
    calls = [corpus.flush, corpus.stats, corpus.pairs, corpus.close, lambda: corpus.upsert("b", "x"),
        lambda: corpus.similar("x"), dupflow.Corpus, lambda: dupflow.pairs(["a b c d"] * 2),
        lambda: dupflow.follow(iter([]))]
    for call in calls:
        try:
            call()
        except RuntimeError as error:
            assert "fork" in str(error), error
        else:
            raise AssertionError("a run of the child")
    assert dupflow.compare("a b c d", "a b c d").is_pair and dupflow.plan().threshold == 0.8
    del corpus
in_child(beside_a_corpus)
corpus.upsert("b", "one two three four")
assert [(d.a, d.b) for d in corpus.flush()] == [("a", "b")], "the parent goes on"
corpus.close()
def alone():
    own = dupflow.Corpus()
    own.upsert("a", "one two three four")
    own.upsert("b", "one two three four")
    assert len(own.flush()) == 1
    own.close()
    assert len(dupflow.pairs(["a b c d"] * 2)) == 1
in_child(alone)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_process_forked_beside_a_corpus_has_none():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


STREAM = """
import resource
import dupflow
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
def stream(count):
    for n in range(count):
        # Few words of many bytes: 14 kB that are compared soon.
        yield {"text": " ".join(f"{n}x{word}" * 200 for word in range(12))}
dupflow.pairs(stream(300))
before = peak()
assert dupflow.removed(stream(7000)).stats["documents"] == 7000
print(peak() - before)
"""


@linux
def test_memory_does_not_grow_with_the_texts_of_a_stream():
    done = subprocess.run([sys.executable, "-c", STREAM], capture_output=True, text=True, check=True)
    # The texts are 90 MB, their sketches 4 MB.
    assert float(done.stdout) < 40, done.stdout


KILLED = """
import sys, dupflow
from conftest import text_of
corpus = dupflow.Corpus(threshold=0.5, state=sys.argv[1])
n = corpus.stats()["documents"]
while True:
    for _ in range(20):
        corpus.upsert(f"{n:06}", text_of(n % 9, [(n, n), (n // 9, n)]))
        n += 1
    corpus.flush()
    print(n, flush=True)
"""


def test_a_state_survives_kill_9(tmp_path):
    state = tmp_path / "state"
    for rounds in (3, 5, 2):
        command = [sys.executable, "-c", KILLED, str(state)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent)
        for _ in range(rounds):
            flushed = int(child.stdout.readline())
        child.kill()
        # What it printed between the last line that was read and the signal was flushed too.
        rest = child.communicate()[0].split("\n")[:-1]
        flushed = int(rest[-1]) if rest else flushed
        with dupflow.Corpus(threshold=0.5, state=state) as corpus:
            alive = corpus.stats()["documents"]
            # One more flush may be durable than was printed.
            assert alive in (flushed, flushed + 20), "what flush returned is there, and epochs are whole"
            ids = [f"{n:06}" for n in range(alive)]
            texts = [text_of(n % 9, [(n, n), (n // 9, n)]) for n in range(alive)]
            fresh = dupflow.pairs({"id": ids, "text": texts}, id="id", threshold=0.5)
            assert list(corpus.pairs()) == list(fresh) and len(fresh) > 0
    with pytest.raises(dupflow.StateError):
        dupflow.Corpus("exact", threshold=0.5, state=state)


def test_one_corpus_at_a_time_holds_a_state(tmp_path):
    first = dupflow.Corpus(state=tmp_path / "state")
    with pytest.raises(dupflow.StateError):
        dupflow.Corpus(state=tmp_path / "state")
    first.close()
    dupflow.Corpus(state=tmp_path / "state").close()
    (tmp_path / "file").write_text("no folder")
    with pytest.raises((OSError, dupflow.StateError)):
        dupflow.Corpus(state=tmp_path / "file")
