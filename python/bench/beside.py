#!/usr/bin/env python3
"""The blocks of docs/coming-from.md, measured: one job in dupflow and in other libraries.

    python beside.py CORPUS.jsonl PAIRS.tsv --python PYTHON [--text-dedup PYTHON] [--rounds 3] [ROW ...]

The corpus has a JSON object with `id` and `text` on each line; PAIRS.tsv has all pairs of true similarity 0.8
and more, `id_a id_b similarity`. A row of the table is a block of the page, run as a process in a folder of
its own, which holds the corpus as `pages.jsonl`; rows alternate, and medians are printed. Time is that of the
whole process with its children.

| column | is |
|---|---|
| kept | documents that the tool keeps |
| copies left | pairs of PAIRS.tsv of which both documents are kept |
| removed without a pair | removed documents that are in no pair of PAIRS.tsv |
| agreement | documents that both this tool and the first row remove, of those that either removes |

A block that fails is a row with the last line of its message.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs/coming-from.md"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LOAD = "import datasets, json; [print(json.dumps(i)) for i in datasets.load_from_disk('kept')['id']]"

# The rows, in the order of the page's blocks.
ROWS = [
    "dupflow",
    "dupflow, exact",
    "datatrove",
    "text-dedup",
    "rensa",
    "datasketch",
    "DuckDB, equal texts",
    "DuckDB, exact join",
]
FIRST = "dupflow, exact"


def kept_ids(place, python):
    """The ids of what a block wrote: `kept.jsonl`, or below `kept` JSON Lines or a dataset on a disk."""
    if (place / "kept/dataset_info.json").exists():
        done = subprocess.run([python, "-c", LOAD], cwd=place, check=True, capture_output=True, text=True)
        return {json.loads(line) for line in done.stdout.splitlines()}
    files = [place / "kept.jsonl"] if (place / "kept.jsonl").exists() else list(place.glob("kept/*.jsonl"))
    return {json.loads(line)["id"] for file in files for line in file.open(encoding="utf-8")}


def measure(language, block, python, corpus, path):
    """Runs a block once: the ids that it keeps, and its seconds of CPU and of time."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        os.link(corpus, place / "pages.jsonl")
        command = ["sh", "-e", "-c", block] if language == "sh" else [python, "-c", block]
        first = [str(path), str(Path(python).parent)]
        environment = {**os.environ, "PATH": os.pathsep.join([*first, os.environ["PATH"]])}
        before, start = os.times(), time.perf_counter()
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
        wall, after = time.perf_counter() - start, os.times()
        if done.returncode != 0:
            raise ValueError((done.stderr.strip().splitlines() or ["it fails without a message"])[-1])
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        return kept_ids(place, python), cpu, wall


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("corpus", type=Path)
    options.add_argument("pairs", type=Path)
    options.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    options.add_argument("--dupflow", default="dupflow", help="the program")
    options.add_argument("--python", default=sys.executable, help="a Python with the other libraries")
    options.add_argument("--text-dedup", help="a Python with text-dedup, else that of --python")
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    blocks = dict(zip(ROWS, BLOCK.findall(PAGE.read_text(encoding="utf-8")), strict=True))
    everything = {json.loads(line)["id"] for line in given.corpus.open(encoding="utf-8")}
    pairs = [tuple(line.split("\t")[:2]) for line in given.pairs.open(encoding="utf-8")]
    paired = {document for pair in pairs for document in pair}
    if not paired <= everything:
        sys.exit(f"{given.pairs}: documents that are not in {given.corpus}")
    measured, failed = {row: [] for row in given.rows or ROWS}, {}
    with tempfile.TemporaryDirectory() as programs:
        (Path(programs) / "dupflow").symlink_to(Path(given.dupflow).resolve())
        corpus = Path(programs) / "pages.jsonl"
        corpus.write_bytes(given.corpus.read_bytes())
        for _ in range(given.rounds):
            for row in [row for row in measured if row not in failed]:
                python = given.text_dedup if row == "text-dedup" and given.text_dedup else given.python
                try:
                    measured[row].append(measure(*blocks[row], python, corpus, programs))
                except ValueError as error:
                    failed[row] = str(error)
    removed = {row: everything - runs[0][0] for row, runs in measured.items() if runs}
    print("| | kept | copies left | removed without a pair | agreement | CPU s | wall s |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for row, runs in measured.items():
        if row in failed:
            print(f"| {row} | {failed[row]} | | | | | |")
            continue
        kept = everything - removed[row]
        left = sum(a in kept and b in kept for a, b in pairs)
        agreement = "–"
        if FIRST in removed:
            agreement = f"{len(removed[row] & removed[FIRST]) / len(removed[row] | removed[FIRST]):.3f}"
        cpu, wall = (statistics.median(run[column] for run in runs) for column in (1, 2))
        print(
            f"| {row} | {len(kept):,} | {left:,} | {len(removed[row] - paired):,} | {agreement} "
            f"| {cpu:.2f} | {wall:.2f} |"
        )


if __name__ == "__main__":
    main()
