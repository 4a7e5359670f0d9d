"""The page, the README and the notebook: their code runs, and prints what they say.

Bug class: an example in the documentation that does not work any more.
"""

import ast
import contextlib
import io
import json
import re

import pytest
from conftest import ROOT

BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["docs/python.md", "python/PYPI.md"])
def test_blocks_print_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, printed = {}, None
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert any(language == "python" for language, _ in blocks)
    for language, block in blocks:
        if language == "text":
            assert block == printed
            continue
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(block, page, "exec"), names)
        printed = out.getvalue()


def test_the_notebook_runs(tmp_path, monkeypatch):
    """As Jupyter does: the cells in order, in one namespace; the value of a cell's last expression is
    shown."""
    pytest.importorskip("polars")
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((ROOT / "docs/python.ipynb").read_text(encoding="utf-8"))
    names, shown = {}, []
    with contextlib.redirect_stdout(io.StringIO()) as out:
        for number, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] != "code":
                continue
            assert cell["outputs"] == [] and cell["execution_count"] is None, "outputs are not stored"
            tree = ast.parse("".join(cell["source"]))
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, f"cell {number}", "exec"), names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
                shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
    text = out.getvalue()
    assert "2,000 pages" in text, text
    # 40 are written anew, and of 60 edits by 2 words of a hundred few are below the threshold.
    assert 40 <= int(re.search(r"(\d+) of 100 are new", text)[1]) < 60, text
    assert "[(1, 'insert'), (-1, 'delete')]" in text, text
    assert any("<mark" in html for html in shown), "pairs are shown with what differs"
    found, of = re.search(r"(\d+) of (\d+) pairs of 0.8 or more are found", text).groups()
    # Each is found with a probability above 0.98.
    assert 0.9 * int(of) <= int(found) <= int(of) and int(of) > 50, text
