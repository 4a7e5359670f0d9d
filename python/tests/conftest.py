"""What the tests share: the program, a generated corpus, texts that are edits of a few templates, threads,
tables of the native module."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

# A shell lets what it starts in the background ignore interrupts: then no test that sends one would end.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[2]


def find_program():
    """The command line: `DUPFLOW_BIN`, else None."""
    named = os.environ.get("DUPFLOW_BIN")
    return Path(named) if named else None


@pytest.fixture(scope="session")
def program():
    found = find_program()
    if found is None:
        pytest.skip("DUPFLOW_BIN names no program")
    return found


def run(program, *arguments, **options):
    """Runs the command line; returns its standard output as bytes."""
    return subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, **options).stdout


@pytest.fixture(scope="session")
def feed(program, tmp_path_factory):
    """A feed without updates and deletes, as a file: 1,500 documents in several scripts, some empty."""
    path = tmp_path_factory.mktemp("feed") / "feed.jsonl"
    options = "--documents 1500 --max-words 120 --updates 0 --deletes 0 --repeats 0 --empty 0.01 --seed 5"
    run(program, "generate", *options.split(), "-o", path)
    return path


@pytest.fixture(scope="session")
def rows(feed):
    """The documents of the feed, sorted by id, by bytes, so that rows have the order of ids."""
    rows = [json.loads(line) for line in feed.read_text(encoding="utf-8").splitlines()]
    return sorted(
        ({"id": row["id"], "text": row["text"]} for row in rows), key=lambda row: row["id"].encode()
    )


@pytest.fixture(scope="session")
def columns(rows):
    """The documents of the feed as a dict of columns, with one that dupflow does not read."""
    return {
        "text": [row["text"] for row in rows],
        "number": list(range(len(rows))),
        "url": [row["id"] for row in rows],
    }


WORDS = [f"word{n}" for n in range(40)]


def text_of(template, edits=()):
    """A text of 30 words; each edit (place, number) replaces a word."""
    words = [WORDS[(template * 7 + n * (template + 3)) % len(WORDS)] for n in range(30)]
    for place, number in edits:
        words[place % 30] = f"edit{number}"
    return " ".join(words)


def threads():
    """Threads of this process, those of the native module too."""
    return len(os.listdir("/proc/self/task"))


def wait_for(condition, what="it does not come"):
    """Waits for what another thread does; fails after 20 s."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.005)


def native_text(seed, edit=None):
    """Forty words; an edit replaces one of them."""
    words = [f"word{(seed * 37 + n * n) % 200}{seed}" for n in range(40)]
    if edit is not None:
        words[edit % 40] = f"edit{edit}"
    return " ".join(words)


def native_table(texts, **columns):
    import pyarrow

    return pyarrow.table({"text": texts, **columns})


def cells(found, *names):
    return list(zip(*(found.column(name) for name in names), strict=True))


def replay(history, deltas):
    """Applies a table of deltas to a set of pairs."""
    for diff, *pair in cells(deltas, "diff", "a", "b", "similarity"):
        (history.add if diff > 0 else history.remove)(tuple(pair))
