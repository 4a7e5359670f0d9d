"""What the files of `.ci/peers` share: blocks of the pages, saved as files and run, and tiny corpora."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[3] / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def skip(name, why):
    print(f"SKIPPED peers: {name}: {why}")
    sys.exit(77)


def says(page, *sentences):
    """The page has the sentences whose facts follow, whatever its lines are."""
    text = " ".join((DOCS / page).read_text(encoding="utf-8").split())
    for sentence in sentences:
        assert " ".join(sentence.split()) in text, f"docs/{page} does not say: {sentence}"


def blocks(page, heading, language):
    """The blocks of a language below a heading, up to the next one."""
    parts = re.split(r"^#+ (.*)$", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    section = dict(zip(parts[1::2], parts[2::2], strict=True))[heading]
    return [block for kind, block in BLOCK.findall(section) if kind == language]


def run(block, language="python", seconds=120):
    """Saves a block as a file, and runs it in this folder: what it prints."""
    name = {"python": "block.py", "sh": "block.sh"}[language]
    Path(name).write_text(block, encoding="utf-8")
    command = [sys.executable, name] if language == "python" else ["sh", "-e", name]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONSAFEPATH"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, f"{block}\n{done.stderr[-2000:]}"
    return done.stdout


def dupflow(*arguments):
    """Runs dupflow, or says that there is none: what it prints."""
    program = os.environ.get("DUPFLOW") or shutil.which("dupflow")
    if not program:
        skip(Path(sys.argv[0]).stem, "there is no dupflow (DUPFLOW)")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout


def text(seed, words=60, changed=0):
    """A generated text; the last words are changed."""
    chosen = random.Random(seed).choices([f"{a}{b}ord" for a in "bcdfghklmnprstvw" for b in "aeiou"], k=words)
    return " ".join(chosen[: words - changed] + [f"changed{seed}"] * changed)


def write(rows, name="pages.jsonl"):
    """Writes pairs of id and text as lines of JSON."""
    lines = [json.dumps({"id": key, "text": value}, ensure_ascii=False) + "\n" for key, value in rows]
    Path(name).write_text("".join(lines), encoding="utf-8")


# The near copies of `a` and `b` come after pages that have none.
PAGES = [("c", text(3)), ("d", text(4)), ("e", text(5)), ("f", text(6)), ("g", text(7)), ("a", text(1))]
PAGES += [("b", text(2)), ("a-copy", text(1, changed=1)), ("b-copy", text(2)), ("h", text(8))]
FIRST = ["c", "d", "e", "f", "g", "a", "b", "h"]


def kept(name="kept.jsonl"):
    return [json.loads(line)["id"] for line in Path(name).read_text(encoding="utf-8").splitlines()]
