# packages: pandas==3.1.1 duckdb==2.0.1 datasets==5.2.0 pyarrow==26.0.1 pytz
"""pandas, DuckDB and Hugging Face: the recipes of docs/outputs.md on ids that look like something else."""

import json
import os
import re
from pathlib import Path

import duckdb
import pandas
import pyarrow
import pyarrow.parquet
from datasets import Dataset, Features, Value, load_dataset
from page import DOCS, blocks, dupflow, run, text

(load,) = blocks("outputs.md", "Then", "python")
SECTION = (DOCS / "outputs.md").read_text(encoding="utf-8").split("### Then")[1].split("\n## ")[0]
CODE = re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```$", "", SECTION, flags=re.MULTILINE | re.DOTALL))


def code(begin):
    """The code of a table's cell."""
    (found,) = [cell for cell in CODE if cell.startswith(begin)]
    return found


UUIDS = [f"00000000-0000-4000-8000-{n:012}" for n in range(4)]
DATES = ["2024-01-31", "2024-02-01", "2024-02-02", "2024-12-31"]
# The last document of a corpus is a copy of the first, and has a greater id.
CORPORA = {
    "words": ["NA", "null", "None", "nan", "N/A", "007", "42", "1e5", "true", *DATES, *UUIDS, "zz"],
    "numbers": [7, 42, 2**60 + 1, 99],
    "zeros": ["007", "08", "0042", "099"],
    "dates": DATES,
    "times": [f"{date}T10:00:00Z" for date in DATES],
    "clock": ["12:30:00", "08:00:00", "09:00:00", "23:00:00"],
    "uuids": UUIDS,
}
GUESSED = {}
for name, ids in CORPORA.items():
    Path(name).mkdir()
    os.chdir(name)
    rows = [{"id": key, "text": text(n % (len(ids) - 1))} for n, key in enumerate(ids)]
    want = [str(key) for key in ids[:-1]]
    Path("corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), "corpus.parquet")
    pandas.DataFrame(rows).to_csv("corpus.csv", index=False)
    dupflow("replay", "-q", "--emit", "keep", "corpus.jsonl", "-o", "keep.jsonl")
    names = {"json": json, "pd": pandas, "Dataset": Dataset}
    run(load)
    exec(load, names)
    assert names["keep"] == set(want)
    read = pandas.read_parquet("corpus.parquet")
    for df in (read, *(eval(code(begin), names) for begin in ("pd.read_json(", "pd.read_csv("))):
        assert [str(key) for key in eval(code("df["), {**names, "df": df}).id] == want, name
    for ds in (Dataset.from_pandas(read), eval(code("Dataset.from_list"), names)):
        assert [str(key) for key in eval(code("ds.filter"), {**names, "ds": ds})["id"]] == want, name
    for corpus in ("'corpus.parquet'", code("read_json('corpus.jsonl'"), code("read_csv('corpus.csv'")):
        duckdb.sql(code("COPY").replace("'corpus.parquet'", corpus))
        left = duckdb.sql("SELECT CAST(id AS VARCHAR) FROM 'clean.parquet'").fetchall()
        assert sorted(row[0] for row in left) == sorted(want), (name, corpus)
    given = {"features": Features({"id": Value("string"), "text": Value("string")}), "split": "train"}
    GUESSED[name] = load_dataset("json", data_files="corpus.jsonl", cache_dir="cache", **given)["id"][0]
    os.chdir("..")
# `load_dataset("json")` changes dates, also where `features` says string.
assert GUESSED["dates"] == "2024-01-31 00:00:00" and GUESSED["times"] == "2024-01-31 10:00:00", GUESSED
