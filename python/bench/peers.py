#!/usr/bin/env python3
"""dupflow beside rensa, datasketch and text-dedup, from texts to near-duplicates, in one table.

    pip install dupflow pyarrow rensa datasketch xxhash text-dedup
    DUPFLOW_BIN=dupflow python peers.py CORPUS.jsonl [--rounds 3] [ROW ...]

The corpus has a JSON object with `id` and `text` on each line. Every row of the table is a process of its
own, the rows alternate, and medians are printed. Measured is the time from texts in memory to pairs with an
estimated similarity of at least 0.8; of `dupflow replay` and text-dedup, which read files, the whole process.
Words in 3-shingles, 128 permutations, 16 bands of 8 rows, as their users call the libraries; dupflow with its
defaults. Rows whose library is missing say so.
"""

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

THRESHOLD, PERMUTATIONS, BANDS = 0.8, 128, 16
WORD = re.compile(r"[^\W_]+")


def shingles(text):
    words = WORD.findall(text.lower())
    return [" ".join(words[n : n + 3]) for n in range(max(1, len(words) - 2))]


def dupflow_pairs(documents, **options):
    import pyarrow

    import dupflow

    table = pyarrow.table({"id": [d["id"] for d in documents], "text": [d["text"] for d in documents]})
    documents.clear()
    return lambda: len(dupflow.pairs(table, id="id", threshold=THRESHOLD, **options))


def rensa(documents):
    from rensa import RMinHash, RMinHashLSH

    texts = [document["text"] for document in documents]

    def run():
        sketches = []
        for start in range(0, len(texts), 2000):
            sets = [shingles(text) for text in texts[start : start + 2000]]
            sketches += RMinHash.from_token_sets(sets, num_perm=PERMUTATIONS, seed=42)
        index = RMinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS, num_bands=BANDS)
        index.insert_pairs(list(enumerate(sketches)))
        found = enumerate(index.query_all(sketches))
        return sum(
            sketches[a].jaccard(sketches[b]) >= THRESHOLD for a, all_b in found for b in all_b if b > a
        )

    return run


def datasketch(documents):
    import xxhash
    from datasketch import MinHash, MinHashLSH

    texts = [document["text"] for document in documents]

    def run():
        index = MinHashLSH(params=(BANDS, PERMUTATIONS // BANDS), num_perm=PERMUTATIONS)
        sketches, pairs = [], 0
        for number, text in enumerate(texts):
            sketch = MinHash(num_perm=PERMUTATIONS, seed=1, hashfunc=lambda b: xxhash.xxh32_intdigest(b))
            sketch.update_batch([shingle.encode() for shingle in shingles(text)])
            pairs += sum(sketch.jaccard(sketches[other]) >= THRESHOLD for other in index.query(sketch))
            index.insert(number, sketch)
            sketches.append(sketch)
        return pairs

    return run


def program(*command):
    """A whole process; the number of lines it prints."""
    return lambda: subprocess.run(command, check=True, capture_output=True).stdout.count(b"\n")


def replay(corpus):
    binary = os.environ.get("DUPFLOW_BIN", "dupflow")
    return program(binary, "replay", "-q", "--emit", "pairs", "--workers", "1", corpus)


def text_dedup(corpus):
    import text_dedup as _  # noqa: F401

    place = tempfile.mkdtemp()
    options = {
        "path": "json",
        "data_files": corpus,
        "split": "train",
        "cache_dir": place,
        "output": f"{place}/out",
        "column": "text",
        "ngram": 3,
        "num_perm": PERMUTATIONS,
        "threshold": THRESHOLD,
        "b": BANDS,
        "r": PERMUTATIONS // BANDS,
        "hash_func": "xxh3",
        "num_proc": 1,
        "min_length": 0,
    }
    given = [part for name, value in options.items() for part in (f"--{name}", str(value))]

    def run():
        command = [sys.executable, "-m", "text_dedup.minhash", *given]
        # It writes its counts in a table as wide as the terminal.
        wide = {**os.environ, "COLUMNS": "200"}
        done = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=wide
        )
        counts = dict(re.findall(r"(Before|After)\s*:\s*(\d+)", done.stdout))
        return int(counts["Before"]) - int(counts["After"])

    return run


ROWS = {
    "dupflow": lambda documents, corpus: dupflow_pairs(documents, workers=1),
    "dupflow, 2 workers": lambda documents, corpus: dupflow_pairs(documents, workers=2),
    "dupflow, exact": lambda documents, corpus: dupflow_pairs(documents, workers=1, pipeline="exact"),
    "dupflow replay (process)": lambda documents, corpus: replay(corpus),
    "rensa": lambda documents, corpus: rensa(documents),
    "datasketch": lambda documents, corpus: datasketch(documents),
    "text-dedup (process; removed, not verified)": lambda documents, corpus: text_dedup(corpus),
}


def usage():
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return (
        own.ru_utime + children.ru_utime,
        own.ru_stime + children.ru_stime,
        max(own.ru_maxrss, children.ru_maxrss),
    )


def measure(row, corpus):
    with open(corpus, encoding="utf-8") as file:
        documents = [json.loads(line) for line in file]
    run = ROWS[row](documents, corpus)
    user, system, memory = usage()
    start = time.perf_counter()
    pairs = run()
    wall = time.perf_counter() - start
    user, system, memory = (
        after - before for after, before in zip(usage(), (user, system, memory), strict=True)
    )
    return {"user": user, "system": system, "wall": wall, "memory": memory / 1024, "pairs": pairs}


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("corpus")
    options.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--one", choices=ROWS, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        print(json.dumps(measure(given.one, given.corpus)))
        return
    measured = {row: [] for row in given.rows or ROWS}
    missing = {}
    for _ in range(given.rounds):
        for row, results in measured.items():
            command = [sys.executable, __file__, given.corpus, "--one", row]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0:
                results.append(json.loads(done.stdout))
            else:
                missing[row] = (done.stderr.strip().splitlines() or ["no message"])[-1]
    print("| | user s | system s | wall s | memory grows by, MB | pairs |")
    print("|---|---:|---:|---:|---:|---:|")
    for row, results in measured.items():
        if not results:
            print(f"| {row} | {missing[row]} | | | | |")
            continue
        median = {key: statistics.median(result[key] for result in results) for key in results[0]}
        print(
            f"| {row} | {median['user']:.2f} | {median['system']:.2f} | {median['wall']:.2f} "
            f"| {median['memory']:.0f} | {median['pairs']:,.0f} |"
        )


if __name__ == "__main__":
    main()
