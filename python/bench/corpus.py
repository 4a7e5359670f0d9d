#!/usr/bin/env python3
"""A corpus that changes: the rate of upserts beside the command line, and how long a flush and a question
take.

    DUPFLOW_BIN=dupflow python corpus.py [--documents 1000000] [--workers 1] [--rounds 1000]

Documents are generated: 100 words each, one in four an edit of an earlier one. They arrive as Polars batches
of 10,000 rows; the command line reads the same ones as JSON Lines. Then each round inserts one document and
flushes, and each asks for a text. Medians and 99th percentiles are in milliseconds; rates are documents per
second of wall time, and of CPU time, user and system.
"""

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import tempfile
import time

import polars

import dupflow

WORDS = [
    f"{a}{b}{c}"
    for a in "bdfgklmnprst"
    for b in "aeiou"
    for c in ("l", "n", "r", "st", "th", "nd", "ra", "mi")
]


def texts(count, seed=1):
    """Texts without end in memory: an edit is of one of the last 1,000."""
    draw = random.Random(seed)
    recent = []
    for _ in range(count):
        if recent and draw.random() < 0.25:
            words = [draw.choice(WORDS) if draw.random() < 0.02 else word for word in draw.choice(recent)]
        else:
            words = draw.choices(WORDS, k=100)
        recent.append(words)
        if len(recent) > 1000:
            recent.pop(0)
        yield " ".join(words)


def cpu(whose):
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


def timed(whose, work):
    """Seconds of wall and of CPU."""
    wall, before = time.perf_counter(), cpu(whose)
    work()
    return time.perf_counter() - wall, cpu(whose) - before


def shown(name, seconds):
    ordered = sorted(seconds)
    median, most = statistics.median(ordered), ordered[int(len(ordered) * 0.99)]
    print(f"| {name} | {median * 1e3:.3f} | {most * 1e3:.3f} |")


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--documents", type=int, default=1_000_000)
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--rounds", type=int, default=1000)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        feed = os.path.join(place, "feed.jsonl")
        batches, ids, part = [], [], []
        with open(feed, "w", encoding="utf-8") as file:
            for number, text in enumerate(texts(given.documents)):
                file.write(json.dumps({"id": f"{number:08}", "text": text}) + "\n")
                ids.append(f"{number:08}")
                part.append(text)
                if len(part) == 10_000 or number + 1 == given.documents:
                    batches.append(polars.DataFrame({"id": ids, "text": part}))
                    ids, part = [], []
        binary = os.environ.get("DUPFLOW_BIN", "dupflow")
        command = [binary, "replay", "-q", "--workers", str(given.workers), "-o", os.devnull, feed]
        wall, used = timed(resource.RUSAGE_CHILDREN, lambda: subprocess.run(command, check=True))
        print("| | documents/s | documents/CPU s |\n|---|---:|---:|")
        print(f"| dupflow replay | {given.documents / wall:,.0f} | {given.documents / used:,.0f} |")
        with dupflow.Corpus(workers=given.workers) as corpus:

            def load():
                corpus.upsert_many(batches)
                corpus.flush()

            wall, used = timed(resource.RUSAGE_SELF, load)
            print(f"| Corpus.upsert_many | {given.documents / wall:,.0f} | {given.documents / used:,.0f} |")
            flushes, questions = [], []
            for number, text in enumerate(texts(given.rounds, seed=2)):
                corpus.upsert(f"new{number}", text)
                flushes.append(timed(resource.RUSAGE_SELF, corpus.flush)[0])
                questions.append(timed(resource.RUSAGE_SELF, lambda text=text: corpus.similar(text))[0])
            print(f"\n| {given.documents:,} documents | median ms | 99 % ms |\n|---|---:|---:|")
            shown("flush of one document", flushes)
            shown("similar", questions)


if __name__ == "__main__":
    main()
