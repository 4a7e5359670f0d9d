#!/usr/bin/env python3
"""Hides items of benchmarks in pages, and judges what was found of them.

    zstd -dc PAGES.jsonl.zst | plant_items.py plant OTHERS.jsonl.zst FOLDER
    plant_items.py judge FOLDER PAIRS.jsonl [LIMIT]

plant: 300 items of 15 to 60 words from texts of OTHERS, which are not among the pages, go to FOLDER/items.jsonl;
each is put at the end of a line of a page of its own, half of them as they are and half with 5 % of their words
(rounded up) replaced. The pages go to FOLDER/pages.jsonl, the places to FOLDER/planted.tsv.

judge: how many of both halves are a pair with their page, and how many pairs a program of its own finds: sets of
three words, by a regular expression, at least half of the item's. LIMIT is output.item_limit, 96.
"""

import json
import random
import re
import subprocess
import sys
from collections import defaultdict


def records(stream):
    return [json.loads(line) for line in stream if line.strip()]


def plant(others, folder):
    draw = random.Random(23)
    pages = [page for page in records(sys.stdin) if page.get("op", "upsert") != "delete"]
    raw = subprocess.run(["zstd", "-dc", others], stdout=subprocess.PIPE, check=True).stdout
    texts = [record["text"] for record in records(raw.decode().splitlines()) if record.get("text")]
    texts = [text.split() for text in texts if len(text.split()) >= 200]
    draw.shuffle(texts)
    hosts = draw.sample(range(len(pages)), 300)
    with open(f"{folder}/items.jsonl", "w") as items, open(f"{folder}/planted.tsv", "w") as planted:
        for n, (words, host) in enumerate(zip(texts, hosts)):
            length = draw.randint(15, 60)
            start = draw.randrange(len(words) - length)
            item = words[start : start + length]
            print(json.dumps({"id": f"item{n:03}", "text": " ".join(item)}), file=items)
            edited = n % 2 == 1
            if edited:
                for at in draw.sample(range(length), -(-length // 20)):
                    item[at] = f"edit{draw.randrange(10**6)}"
            lines = pages[host]["text"].split("\n")
            lines[draw.randrange(len(lines))] += " " + " ".join(item)
            pages[host]["text"] = "\n".join(lines)
            print(f"item{n:03}", pages[host]["id"], "edited" if edited else "verbatim", sep="\t", file=planted)
    with open(f"{folder}/pages.jsonl", "w") as out:
        for page in pages:
            print(json.dumps(page), file=out)


def shingles(text):
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[at : at + 3]) for at in range(len(words) - 2)}


def judge(folder, pairs, limit="96"):
    found = {(pair["a"], pair["b"]): pair["in_b"] for pair in records(open(pairs))}
    of = defaultdict(lambda: [0, 0])
    for line in open(f"{folder}/planted.tsv"):
        item, page, kind = line.rstrip("\n").split("\t")
        of[kind][0] += (item, page) in found
        of[kind][1] += 1
    for kind, (here, every) in sorted(of.items()):
        print(f"{kind}: {here} of {every}")
    items = {item["id"]: shingles(item["text"]) for item in records(open(f"{folder}/items.jsonl"))}
    holders = defaultdict(list)
    for item, of_item in items.items():
        for shingle in of_item:
            holders[shingle].append(item)
    truth, touched, meetings = {}, 0, 0
    for page in records(open(f"{folder}/pages.jsonl")):
        shared = defaultdict(int)
        for shingle in shingles(page["text"]):
            for item in holders.get(shingle, ()):
                shared[item] += 1
        touched += bool(shared)
        meetings += sum(shared.values())
        for item, count in shared.items():
            if 2 * count >= len(items[item]):
                truth[item, page["id"]] = count / len(items[item])
    by_item = defaultdict(set)
    for item, page in truth:
        by_item[item].add(page)
    common = {item for item, pages_ in by_item.items() if len(pages_) > int(limit)}
    reported = {pair for pair in truth if pair[0] not in common}
    print(f"shingles of items: {sum(map(len, items.values()))}; pages that share one: {touched}; meetings: {meetings}")
    print(f"by brute force: {len(truth)} pairs; {len(common)} items in more than {limit} pages; {len(reported)} reported")
    print(f"found and not by brute force: {len(found.keys() - reported)}, the reverse: {len(reported - found.keys())}")


if __name__ == "__main__":
    {"plant": plant, "judge": judge}[sys.argv[1]](*sys.argv[2:])
