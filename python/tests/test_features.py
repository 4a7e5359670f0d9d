"""The page of own features: its examples run, and print what the page says.

Bug class: an example that does not run, or that finds other pairs than it says.
"""

import os
import subprocess
import sys

import pytest
from conftest import ROOT
from test_recipes import sections

EXAMPLES = {
    name: blocks
    for name, blocks in sections(ROOT / "docs/features.md").items()
    if any(language == "sh" for language, _ in blocks)
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_print_what_the_page_says(name, program, tmp_path):
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


def test_there_are_examples_of_pictures_and_of_code():
    assert list(EXAMPLES) == ["Hashes of images", "Code by the tokens of its syntax tree"]
