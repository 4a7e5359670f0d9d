"""Tables of Delta Lake that deltalake writes, with histories of everything that it does to them.

Bug classes: a row that deltalake does not read, or does, at any version; deltas of a run that do not add up.
"""

import json
import random
import subprocess
import time

import pytest
from conftest import run

pyarrow = pytest.importorskip("pyarrow")
deltalake = pytest.importorskip("deltalake")

STEPS = 14
WORDS = 60


def text(number, edit):
    """Every tenth number has a similar text."""
    words = [f"w{number % 10}-{n}" for n in range(WORDS)]
    words[edit % WORDS] = f"edit{number}-{edit}"
    return " ".join(words)


def rows(numbers, edit):
    return pyarrow.table(
        {
            "id": [f"doc-{n}" for n in numbers],
            "text": [text(n, edit) for n in numbers],
            "lang": [["en", "de fr", None, "a/b=%"][n % 4] for n in numbers],
        }
    )


class History:
    """Does to a table what is drawn."""

    def __init__(self, place, seed):
        self.random, self.place, self.next = random.Random(seed), str(place), 0
        by = self.random.choice([None, ["lang"]])
        deltalake.write_deltalake(self.place, self.new(30), partition_by=by)

    def new(self, count):
        self.next += count
        return rows(range(self.next - count, self.next), self.random.randrange(9))

    @property
    def table(self):
        return deltalake.DeltaTable(self.place)

    def some(self):
        return f"id like '%{self.random.randrange(10)}'"

    def step(self):
        table, draw = self.table, self.random.randrange(11)
        if draw == 10:
            # A column that older files lack.
            more = self.new(5).append_column("extra", pyarrow.array(["x"] * 5))
            deltalake.write_deltalake(self.place, more, mode="append", schema_mode="merge")
        elif draw < 3:
            deltalake.write_deltalake(self.place, self.new(self.random.randrange(1, 20)), mode="append", schema_mode="merge")
        elif draw == 3:
            deltalake.write_deltalake(self.place, self.new(25), mode="overwrite", schema_mode="merge")
        elif draw == 4:
            table.delete(self.some())
        elif draw == 5:
            table.update(predicate=self.some(), updates={"text": f"'{text(self.next, 3)}'"})
        elif draw == 6:
            numbers = self.random.sample(range(self.next + 5), 8)
            changed = rows(numbers, self.random.randrange(9))
            merged = table.merge(changed, predicate="t.id = s.id", source_alias="s", target_alias="t")
            merged.when_matched_update_all().when_not_matched_insert_all().execute()
            self.next = max(self.next, *(n + 1 for n in numbers))
        elif draw == 7:
            table.optimize.compact()
        elif draw == 8 and table.version() > 0:
            table.restore(self.random.randrange(table.version()))
        else:
            table.create_checkpoint()
            table.update(predicate=self.some(), updates={"lang": "'en'"})


def expected(table):
    """The rows by deltalake's own engine, as a feed."""
    found = deltalake.QueryBuilder().register("t", table).execute("select id, text, lang from t").read_all()
    return "".join(json.dumps(row) + "\n" for row in pyarrow.table(found).to_pylist())


def pairs(program, *arguments):
    return sorted(run(program, "replay", "--emit", "pairs", "--set", "threshold=0.6", *arguments).splitlines())


def sums(output):
    """The pairs that whole lines of an output add up to."""
    sums = {}
    lines = output.read_text().split("\n")[:-1] if output.exists() else []
    for row in map(json.loads, lines):
        key = (row["a"], row["b"], row["similarity"])
        sums[key] = sums.get(key, 0) + row["diff"]
    return {key for key, diff in sums.items() if diff}


@pytest.mark.parametrize("seed", range(4))
def test_a_table_is_followed_while_it_changes(program, tmp_path, seed):
    history, output = History(tmp_path / "t", 100 + seed), tmp_path / "out.jsonl"
    (tmp_path / "run.toml").write_text(
        f'[source]\ninputs = ["{tmp_path}/t"]\nfollow = true\ngone = "delete"\nepoch = "every:5ms"\n'
        f'[sink]\npath = "{output}"\n[state]\npath = "{tmp_path}/state"\n'
    )
    feed, log = tmp_path / "feed.jsonl", tmp_path / "log"

    def start():
        arguments = [program, "run", "-c", str(tmp_path / "run.toml"), "--set", "threshold=0.6"]
        return subprocess.Popen(arguments, stderr=log.open("a"))

    running = start()
    for step in range(8):
        # Sometimes several versions at once.
        for _ in range(history.random.choice([1, 1, 3])):
            history.step()
        feed.write_text(expected(history.table))
        fresh = {tuple(json.loads(line).values()) for line in pairs(program, feed)}
        if step % 4 == 2:
            running.kill()
            running.wait()
            running = start()
        end = time.monotonic() + 120
        while sums(output) != fresh:
            assert running.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.02)
    running.terminate()
    assert running.wait() == 0, log.read_text()


@pytest.mark.parametrize("seed", range(4))
def test_each_version_is_what_deltalake_reads(program, tmp_path, seed):
    history = History(tmp_path / "t", seed)
    (tmp_path / "run.toml").write_text(
        f'source = {{ inputs = ["{tmp_path}/t"], gone = "delete", fields = ["lang"] }}\n'
        f'sink.path = "{tmp_path}/out.jsonl"\nstate.path = "{tmp_path}/state"\n'
    )
    versions = {}
    # A column of partitions is also one of the rule.
    rule = ["--set", "pairs.where=a.lang==b.lang"] if seed % 2 else []
    field = ["--field", "lang"] if rule else []
    for _ in range(STEPS):
        history.step()
        table = history.table
        feed = tmp_path / f"feed-{table.version()}.jsonl"
        feed.write_text(expected(table))
        versions[table.version()] = pairs(program, *rule, *field, feed)
        # A run that starts again gives the deltas since its last start.
        if history.random.random() < 0.5:
            run(program, "run", "-c", tmp_path / "run.toml", "--set", "threshold=0.6", *rule)
            fresh = {tuple(json.loads(line).values()) for line in versions[table.version()]}
            assert sums(tmp_path / "out.jsonl") == fresh
    assert len(versions) > STEPS / 2 and any(versions.values())
    for version, of in versions.items():
        assert pairs(program, *rule, *field, f"delta:{tmp_path}/t?version={version}") == of, version
