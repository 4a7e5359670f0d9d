"""The page of own features: its examples run, and print what the page says. Columns of Parquet files.

Bug classes: an example that does not run, or that finds other pairs than it says; a column of Parquet that is
read as another list.
"""

import json
import os
import subprocess
import sys
from datetime import datetime

import pytest
from conftest import ROOT, run
from test_recipes import sections

EXAMPLES = {
    name: blocks
    for name, blocks in sections(ROOT / "docs/features.md").items()
    if any(language == "sh" for language, _ in blocks)
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_print_what_the_page_says(name, program, tmp_path):
    if any("pyarrow" in block for _, block in EXAMPLES[name]):
        pytest.importorskip("pyarrow")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "dupflow").symlink_to(program.resolve())
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    commands = {"sh": ["sh", "-e", "-c"], "python": [sys.executable, "-c"]}
    printed = None
    for language, block in EXAMPLES[name]:
        if language == "text":
            assert block == printed
            continue
        done = subprocess.run(
            [*commands[language], block],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{block}\n{done.stderr}"
        printed = done.stdout


def test_there_are_examples_of_columns_of_pictures_and_of_code():
    assert list(EXAMPLES) == ["Columns of Parquet", "Hashes of images", "Code by the tokens of its syntax tree"]


LISTS = [["for", "1", "2", "3", "x-y"], ["for", "1", "2", "3", "x-z"], ["FOR", "X-Y", "ไทย"], []]


def pairs(program, place, *options):
    """The pairs of `in.parquet`, and the counts of its bad records."""
    emit = ["replay", "-q", "--emit", "pairs", "--stats", "stats.json", "--max-bad", "1"]
    listed = run(program, *emit, *options, "in.parquet", cwd=place)
    stats = json.loads((place / "stats.json").read_text())
    return [list(json.loads(line).values()) for line in listed.splitlines()], stats


def test_columns_of_lists_are_features(program, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    options = ["-p", "exact", "--set", "text.features=given", "--set", "threshold=0.5"]
    ids = ["a", "b", "c", "d", "null", "element"]
    lists = [*LISTS, None, ["for", None]]
    numbers = [[1, 2, 3, 2**63, 4], [1, 2, 3, 2**63, 5], [9], [], None, [1, None]]
    kinds = [
        (lists, pa.list_(pa.string())),
        (lists, pa.large_list(pa.large_string())),
        (lists, pa.list_(pa.dictionary(pa.int32(), pa.string()))),
        (numbers, pa.list_(pa.uint64())),
    ]
    for values, kind in kinds:
        if pa.types.is_dictionary(kind.value_type):
            flat = pa.array([value for row in values if row for value in row]).dictionary_encode()
            ends = [0]
            for row in values:
                ends.append(ends[-1] + len(row or []))
            column = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), flat)
            expected_bad, expected_empty = {"bad_features": 1}, 2
        else:
            column = pa.array(values, kind)
            expected_bad, expected_empty = {"bad_features": 1, "missing_text": 1}, 1
        table = pa.table({"id": ids, "nested": pa.StructArray.from_arrays([column], ["of"]), "text": column})
        pq.write_table(table, tmp_path / "in.parquet", row_group_size=2)
        for name in ("text", "nested.of", "text.list.element"):
            found, stats = pairs(program, tmp_path, *options, "--text-field", name)
            assert found == [["a", "b", 2 / 3]], (kind, name)
            assert stats["bad_records"] == expected_bad and stats["empty"] == expected_empty, (kind, name)

    signed = pa.array([[1, 2, 3], [1, 2, 3, 4], [-1], [5]], pa.list_(pa.int32(), -1))
    pq.write_table(pa.table({"id": ids[:4], "text": signed}), tmp_path / "in.parquet")
    found, stats = pairs(program, tmp_path, *options)
    assert found == [["a", "b", 0.75]] and stats["bad_records"] == {"bad_features": 1}
    for other in ([[1.0]], [[True]], [[datetime(2026, 1, 1)]], [[b"\xff"]], [[[1]]]):
        pq.write_table(pa.table({"id": ["a"], "text": other}), tmp_path / "in.parquet")
        done = subprocess.run([program, "replay", *options, "in.parquet"], cwd=tmp_path, capture_output=True)
        assert done.returncode == 1 and b"bad_features" in done.stderr, (other, done.stderr)


def test_fingerprints_of_every_column(program, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    bits = [0xC3D1E0F07F3F1F0F, 0xC3D1E0F07F3F1F00, 1 << 63]
    wide = [[word, 7, 0, word] for word in bits]
    raw = [word.to_bytes(8, "big") for word in bits]
    columns = [
        (64, pa.array(bits, pa.uint64())),
        (64, pa.array([[word] for word in bits], pa.list_(pa.uint64(), 1))),
        (64, pa.array(raw, pa.binary(8))),
        (64, pa.array([one.hex() for one in raw])),
        (256, pa.array(wide, pa.list_(pa.uint64(), 4))),
        (256, pa.array([b"".join(word.to_bytes(8, "big") for word in row) for row in wide], pa.binary(32))),
    ]
    for size, column in columns:
        pq.write_table(pa.table({"id": ["a", "b", "c"], "text": column}), tmp_path / "in.parquet")
        options = ["-p", "fingerprint", "--set", f"sketch.size={size}", "--set", "blocking.distance=8"]
        found, stats = pairs(program, tmp_path, *options)
        distance = 4 * size // 64 if size == 64 else 8
        assert found == [["a", "b", 1 - distance / size]] and not stats["bad_records"], column.type
