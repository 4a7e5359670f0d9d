"""The same results as the command line, byte for byte.

Bug classes: other defaults than the command line; ids or similarities that are written differently; the
number of workers or the kind of frame decides; a console script that is another program.
"""

import json
import os
import signal
import subprocess
import sys

import pytest
from conftest import run

import dupflow


def lines(result):
    """Rows as the command line writes them."""
    names = result.column_names
    values = zip(*(result.column(name) for name in names), strict=True)
    rows = (dict(zip(names, row, strict=True)) for row in values)
    text = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
    return text.encode()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("pipeline", "threshold", "evidence"),
    [("minhash", None, False), ("minhash", 0.6, True), ("exact", 0.5, False), ("simhash", None, True)],
)
def test_pairs_are_those_of_replay(program, feed, columns, pipeline, threshold, evidence, workers):
    options = ["--emit", "pairs", "-p", pipeline, "--workers", 1]
    if threshold is not None:
        options += ["--set", f"threshold={threshold}"]
    expected = run(program, "replay", "-q", *options, *(["--evidence"] if evidence else []), feed)
    assert expected.count(b"\n") > 20
    found = dupflow.pairs(
        columns, id="url", pipeline=pipeline, threshold=threshold, evidence=evidence, workers=workers
    )
    assert lines(found) == expected


def test_keep_and_remove_are_those_of_replay(program, feed, columns):
    for keep in ("smallest", "longest", "named"):
        options = ["replay", "-q", "--set", f"output.keep={keep}", "--set", "threshold=0.7"]
        kept = dupflow.dedup(columns, id="url", threshold=0.7, keep=keep)
        expected = run(program, *options, "--emit", "keep", feed)
        assert [json.loads(line)["id"] for line in expected.splitlines()] == kept["url"], keep
        expected = run(program, *options, "--emit", "remove", feed)
        assert lines(dupflow.removed(columns, id="url", threshold=0.7, keep=keep)) == expected, keep


def test_clusters_are_those_of_replay(program, feed, columns):
    expected = {}
    for line in run(program, "replay", "-q", "--emit", "clusters", feed).splitlines():
        cluster = json.loads(line)
        expected[cluster["cluster"]] = sorted(cluster["members"])
    found = {}
    for member in dupflow.clusters(columns, id="url"):
        assert member.size is None
        found.setdefault(member.cluster, []).append(member.document)
    assert len(expected) > 20
    assert {name: sorted(members) for name, members in found.items()} == expected


def test_deltas_of_a_feed_are_those_of_replay(program, tmp_path):
    path = tmp_path / "feed.jsonl"
    run(program, "generate", "--documents", 400, "--max-words", 60, "--seed", 3, "-o", path)
    expected = run(program, "replay", "-q", "--epoch", "events:50", "--causes", path)
    found = b"".join(lines(deltas) for deltas in dupflow.follow(path, every="events:50"))
    assert expected.count(b"\n") > 20
    assert found == expected


def test_the_plan_is_that_of_the_program(program):
    plan = dupflow.plan("minhash", threshold=0.7, documents=10_000_000, workers=2)
    options = ["-p", "minhash", "--set", "threshold=0.7", "--documents", 10_000_000, "--workers", 2]
    report = json.loads(run(program, "plan", "--format", "json", *options))
    assert json.loads(plan.json()) == report
    assert plan.text().encode() == run(program, "plan", *options)
    assert plan.bytes_per_document == report["memory"]["bytes_per_document"]
    points = {point["similarity"]: point["reported"] for point in report["points"]}
    assert plan.recall(0.9) == pytest.approx(points[0.9])
    assert plan.recall(0.5) < plan.recall(0.7) < plan.recall(0.8) < 1
    with pytest.raises(ValueError, match="similarity"):
        plan.recall(1.5)


def test_the_comparison_is_that_of_the_program(program, tmp_path):
    texts = ["one two three four five", "one two three four six"]
    for name, text in zip("ab", texts, strict=True):
        (tmp_path / name).write_text(text)
    found = dupflow.compare(*texts, pipeline="exact")
    assert found.jaccard == 0.5
    assert found.containment == (2 / 3, 2 / 3)
    assert not found.is_pair
    for side, text in zip(found.passages, texts, strict=True):
        assert "".join(passage for _, passage in side) == text
    printed = run(program, "compare", "--all", "-p", "exact", "a", "b", cwd=tmp_path).decode()
    said, printed = found.text().splitlines(), printed.splitlines()
    assert (said[0], said[-10:]) == (printed[0], printed[-10:])


def module(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "dupflow", *map(str, arguments)], capture_output=True, **options
    )


def test_python_m_dupflow_is_the_command_line(program, feed, tmp_path):
    expected = run(program, "replay", "--emit", "pairs", feed)
    done = module("replay", "--emit", "pairs", feed)
    assert (done.returncode, done.stdout) == (0, expected)
    assert b"pairs" in done.stderr, "the summary"
    for arguments in (["--version"], ["--help"], ["replay", "--help"]):
        done = module(*arguments)
        assert (done.returncode, done.stderr) == (0, b""), done
        assert done.stdout.startswith(b"dupflow" if "--version" in arguments else b""), done
    wrong = module("replay", "--no-such-option")
    assert wrong.returncode == 2 and b"--no-such-option" in wrong.stderr
    wrong = module("check", "--set", "threshold=7", "--set", "sketch.size=1")
    assert wrong.returncode == 2 and b"threshold" in wrong.stderr and b"sketch.size" in wrong.stderr
    missing = module("replay", tmp_path / "missing.jsonl")
    assert missing.returncode in (1, 2) and b"missing.jsonl" in missing.stderr


def test_a_closed_pipe_and_an_interrupt_end_the_command_line(feed, tmp_path):
    command = [sys.executable, "-m", "dupflow", "replay", "-q", "-"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdin.write(feed.read_bytes())
    child.stdin.flush()
    assert child.stdout.readline().startswith(b'{"epoch":'), "it runs, and waits for more"
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=20) != 0
    child.stdin.close()
    child.stdout.close()
    equal = tmp_path / "equal.jsonl"
    equal.write_text("".join(f'{{"id":"{n}","text":"one two three four"}}\n' for n in range(300)))
    # 44,850 pairs are more than a pipe takes.
    with subprocess.Popen(
        [sys.executable, "-m", "dupflow", "replay", "--emit", "pairs", equal],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "RUST_BACKTRACE": "0"},
    ) as child:
        assert child.stdout.readline().startswith(b'{"a":'), "it writes"
        child.stdout.close()
        stderr = child.stderr.read()
        assert b"panicked" not in stderr, stderr
