#!/usr/bin/env python3
"""What the documentation says of other programs, asserted by running them.

    .ci/peers/run.py [NAME ...]     all files of this folder, or these

A file NAME.py has the facts of one peer: it runs the blocks of the pages as files, and asserts what they say
of the result. Its first lines name what it needs: `# packages:` are the arguments of one `pip install`,
`# python:` the Python, if it is not any. Each file runs in a folder of its own, in a virtual environment that
is kept in DUPFLOW_PEERS (~/.cache/dupflow-peers). What cannot be installed, or exits with 77, is printed as
SKIPPED; the exit code is 1 if an assertion has failed. Blocks with dupflow run DUPFLOW, a program with all
features.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("DUPFLOW_PEERS", Path.home() / ".cache/dupflow-peers"))
SECONDS = 600  # of an installation, and of a file


def interpreter(version):
    """A Python of a version: of the path, or of pyenv."""
    places = [shutil.which(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    starts = (
        base
        for base in places
        if base and subprocess.run([base, "-c", ""], capture_output=True).returncode == 0
    )
    return next(starts, None)


def installed(script):
    """The Python of the environment of a file, or why there is none."""
    wanted = re.findall(r"^# packages: (.*)$", script, re.MULTILINE)
    version = (re.findall(r"^# python: (.*)$", script, re.MULTILINE) or [""])[0]
    base = interpreter(version) if version else sys.executable
    if base is None:
        return None, f"there is no Python {version}"
    key = hashlib.sha256("\n".join([version, *wanted]).encode()).hexdigest()[:12]
    place = CACHE / key
    python = place / "bin/python"
    if not (place / "complete").exists():
        shutil.rmtree(place, ignore_errors=True)
        pip = [python, "-m", "pip", "install", "-q"]
        steps = [[base, "-m", "venv", place], *([*pip, *line.split()] for line in wanted)]
        for step in steps:
            try:
                done = subprocess.run(step, capture_output=True, text=True, timeout=SECONDS)
            except subprocess.TimeoutExpired:
                return None, f"no environment after {SECONDS} s"
            if done.returncode != 0:
                return None, (done.stderr.strip().splitlines() or ["pip has failed"])[-1]
        (place / "complete").touch()
    return python, None


def run(path):
    """Runs a file: "passed", "skipped" or "FAILED"."""
    python, missing = installed(path.read_text(encoding="utf-8"))
    if missing:
        print(f"SKIPPED peers: {path.stem}: {missing}", flush=True)
        return "skipped"
    with tempfile.TemporaryDirectory() as place:
        paths = os.pathsep.join([str(python.parent), os.environ["PATH"]])
        environment = {**os.environ, "PYTHONPATH": str(HERE / "shared"), "PATH": paths}
        environment |= {
            "HF_HOME": place,
            "PYTHONSAFEPATH": "1",
            "HF_HUB_OFFLINE": "1",
            "PYTHONWARNINGS": "ignore",
        }
        try:
            done = subprocess.run(
                [python, path], cwd=place, env=environment, capture_output=True, text=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            print(f"FAILED peers: {path.stem}: it has not ended after {SECONDS} s", flush=True)
            return "FAILED"
    print(done.stdout, end="", flush=True)
    if done.returncode == 77:
        return "skipped"
    if done.returncode != 0:
        print(f"FAILED peers: {path.stem}\n{done.stderr[-3000:]}", flush=True)
        return "FAILED"
    print(f"peers: {path.stem}: holds", flush=True)
    return "passed"


def main():
    files = sorted(path for path in HERE.glob("*.py") if path.name != "run.py")
    if unknown := set(sys.argv[1:]) - {path.stem for path in files}:
        sys.exit(f"no file of {', '.join(sorted(unknown))}")
    results = [run(path) for path in files if not sys.argv[1:] or path.stem in sys.argv[1:]]
    print(*(f"{results.count(how)} {how.lower()}" for how in ("passed", "FAILED", "skipped")), sep=", ")
    sys.exit("FAILED" in results)


if __name__ == "__main__":
    main()
