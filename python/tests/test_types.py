"""The types: of the package by mypy, of the stub of the native module by stubtest, of a user's program.

Bug classes: a signature of the stub that the module has not; a public function without types; a result that a
user's type checker knows as `Any`.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")

PROJECT = Path(__file__).resolve().parents[1]
USER = """
import dupflow
from typing_extensions import assert_type

found = dupflow.pairs(["a"], evidence=True)
for pair in found:
    assert_type(pair, dupflow.Pair)
    assert_type(pair.a, str | int)
    assert_type(pair.similarity, float)
with dupflow.Corpus(threshold=0.8, state="x") as corpus:
    assert_type(corpus, dupflow.Corpus)
    for delta in corpus.flush():
        assert_type(delta, dupflow.Delta)
    assert_type(corpus.similar("a", top=3), list[dupflow.Similar])
for deltas in dupflow.follow("x"):
    assert_type(deltas, dupflow.Deltas)
assert_type(dupflow.plan(threshold=0.8).recall(0.9), float)
assert_type(dupflow.compare("a", "b").jaccard, float)
assert_type([removal.kept for removal in dupflow.removed(["a"])], list[str | int])
dupflow.dedup(["a"], keep=3)  # type: ignore[arg-type]
"""


def mypy(*arguments):
    """With the package that is being tested, and a cache beside it."""
    import dupflow

    place = Path(dupflow.__file__).resolve().parents[1]
    # An installed package is found without a path; beside it are packages that mypy knows itself.
    is_installed = place.name == "site-packages"
    environment = {**os.environ, **({} if is_installed else {"MYPYPATH": str(place)})}
    cache = os.environ.get("DUPFLOW_MYPY_CACHE", os.devnull)
    return subprocess.run(
        [
            sys.executable,
            "-m",
            *map(str, arguments),
            *(["--cache-dir", cache] if arguments[0] == "mypy" else []),
        ],
        capture_output=True,
        text=True,
        env=environment,
        cwd=Path(__file__).parent if is_installed else place,
    )


def test_the_package_is_typed_strictly():
    import dupflow

    package = Path(dupflow.__file__).resolve().parent
    done = mypy("mypy", "--config-file", PROJECT / "pyproject.toml", "-p", "dupflow")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (package / "py.typed").exists()


def test_a_users_program(tmp_path):
    file = tmp_path / "user.py"
    file.write_text(USER)
    done = mypy("mypy", "--strict", "--config-file", PROJECT / "pyproject.toml", file)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stub_is_that_of_the_native_module(tmp_path):
    # PyO3 makes it; the public half has one of its own.
    allowed = tmp_path / "allowed"
    allowed.write_text(r"dupflow\._dupflow\.__all__" + "\n")
    done = mypy(
        "mypy.stubtest",
        "dupflow._dupflow",
        "--ignore-unused-allowlist",
        "--allowlist",
        allowed,
        "--mypy-config-file",
        PROJECT / "pyproject.toml",
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_everything_public_is_documented():
    import inspect

    import dupflow

    bare = []
    for name in dupflow.__all__:
        value = getattr(dupflow, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            bare += [name] if not value.__doc__ else []
        if inspect.isclass(value):
            own = [(member, item) for member, item in vars(value).items() if not member.startswith("_")]
            bare += [f"{name}.{member}" for member, item in own if callable(item) and not item.__doc__]
    assert bare == []
