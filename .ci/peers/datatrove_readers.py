# packages: datatrove[io,processing]==0.10.1 spacy==3.8.18 xxhash==3.8.2
"""datatrove: the ids of its readers, and its filter by a list of docs/outputs.md."""

import inspect
import json
import re
from io import BytesIO
from pathlib import Path

import pyarrow
import pyarrow.parquet
from datatrove.pipeline.filters import LambdaFilter
from datatrove.pipeline.readers import CSVReader, JsonlReader, ParquetReader, WarcReader
from page import DOCS, says, write
from warcio.warcwriter import WARCWriter

says(
    "formats.md",
    "over kept rows in Parquet, over all lines in JSON Lines and CSV",
    '`text_key = "text"`, `id_key = "id"`',
)
names = inspect.signature(JsonlReader).parameters
assert (names["text_key"].default, names["id_key"].default) == ("text", "id")
texts = [{"text": ""}, {"text": "one"}, {"text": "two"}]
Path("lines.jsonl").write_text("".join(json.dumps(row) + "\n" for row in texts))
pyarrow.parquet.write_table(pyarrow.Table.from_pylist(texts), "rows.parquet")
lines = JsonlReader(".", glob_pattern="lines.jsonl").run()
assert [page.id for page in lines] == ["lines.jsonl/1", "lines.jsonl/2"]
Path("lines.csv").write_text("text\n" + "".join(f'"{row["text"]}"\n' for row in texts))
cells = CSVReader(".", glob_pattern="lines.csv").run()
assert [page.id for page in cells] == ["lines.csv/1", "lines.csv/2"]
rows = ParquetReader(".", glob_pattern="rows.parquet").run()
assert [page.id for page in rows] == ["rows.parquet/0", "rows.parquet/1"]

says("formats.md", "WARC: `response` and `conversion`; id `<urn:uuid:...>`")
with open("pages.warc.gz", "wb") as file:
    writer = WARCWriter(file)
    for kind in ("resource", "conversion"):
        record = writer.create_warc_record(
            "http://a/", kind, BytesIO(b"a text"), warc_content_type="text/plain"
        )
        writer.write_record(record)
(page,) = WarcReader(".", glob_pattern="pages.warc.gz").run()
assert re.fullmatch("<urn:uuid:[0-9a-f-]{36}>", page.id), page.id

(cell,) = re.findall("`(LambdaFilter.*)`", (DOCS / "outputs.md").read_text(encoding="utf-8"))
write([(7, "one"), ("007", "two"), ("8", "three")])
read = JsonlReader(".", glob_pattern="pages.jsonl").run()
chosen = eval(cell, {"LambdaFilter": LambdaFilter, "keep": {"7", "007"}}).run(read)
assert [page.id for page in chosen] == [7, "007"]
