"""Repeated paragraphs and lines of the texts of Parquet files, cut out by the command line.

Expected is what the rows of `--emit remove` say, cut out of the bytes of the texts in Python. Bug classes: a
text that is cut at another byte; a row of another file or row group; a column, a type or a null that changes.
"""

import json
import subprocess

import pytest
from conftest import run

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

# Long enough to be compared: 8 words, of scripts without spaces as many characters.
REPEATED = [
    "All rights reserved. No part of this page may be copied without written permission.",
    "本页面的所有内容均受版权保护，未经许可不得转载或复制。𠮷野家也是如此。",
    "ข้อความนี้ปรากฏซ้ำในหลายหน้าของเว็บไซต์เดียวกันเสมอจนผู้อ่านจำได้ทั้งหมด",
    "E\u0301crit avec des accents combine\u0301s, re\u0301pe\u0301te\u0301 sur toutes les pages du me\u0301me site.",
]
ROWS = 240


def text(n):
    """A text of own paragraphs between repeated ones; some are empty, or hold only repeated ones."""
    repeated = [REPEATED[(n + place) % 4] for place in range(n % 3 + 1)]
    own = " ".join(f"own{n}x{word}" for word in range(12))
    if n % 40 == 7:
        return ""
    if n % 40 == 9:
        return "\n\n".join(repeated) + "\n"
    end = "\r\n \r\n" if n % 2 else "\n\n"
    return end.join([repeated[0], own, "Read more", *repeated[1:], f"Ende “{n}” é"])


def table(text_type, nested=False):
    """Rows of this type of texts; some have none and are no documents."""
    texts = pa.array([text(n) if n % 50 != 49 else None for n in range(ROWS)], pa.string())
    texts = texts.dictionary_encode() if text_type == "dictionary" else texts.cast(text_type)
    columns = {
        "n": pa.array(range(ROWS), pa.uint16()),
        "id": pa.array([f"d{n:03}" for n in range(ROWS)]),
        "text": texts,
        "tags": pa.array([[f"t{t}" for t in range(n % 3)] if n % 4 else None for n in range(ROWS)]),
    }
    if nested:
        columns["page"] = pa.StructArray.from_arrays([columns.pop("text"), columns["n"]], ["text", "n"])
    return pa.table(columns).replace_schema_metadata({"own": "日"})


def units(program, place, emit, *options, split="paragraph"):
    return run(program, "replay", "-q", "--set", f"text.split={split}", "--emit", emit, *options, cwd=place)


def cuts(program, place, *options, **split):
    """The bytes that are to be removed, by document, in order."""
    found = {}
    options = [*options, "--max-bad", "1"]
    for row in map(json.loads, units(program, place, "remove", *options, **split).splitlines()):
        found.setdefault(row["document"], []).append((row["from"], row["to"]))
    return found


def cleaned(text, ranges):
    kept, at = b"", 0
    data = text.encode()
    for start, end in ranges:
        kept, at = kept + data[at:start], end
    return (kept + data[at:]).decode()


def expected(table, found, texts):
    """The rows of documents, and their texts without what was found."""
    alive = table.filter(pa.array([text is not None for text in texts]))
    texts = [text for text in texts if text is not None]
    return alive, [cleaned(text, found.get(id, [])) for id, text in zip(alive["id"].to_pylist(), texts)]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), "dictionary"])
def test_texts_of_every_type_lose_their_repeated_paragraphs(program, tmp_path, kind):
    whole = table(kind)
    pq.write_table(whole, tmp_path / "in.parquet", row_group_size=70, compression="zstd")
    found = cuts(program, tmp_path, "in.parquet")
    assert len(found) > ROWS / 2
    for workers in "12":
        options = ["--max-bad", "1", "--workers", workers, "in.parquet", "-o", "out.parquet"]
        units(program, tmp_path, "documents", *options)
        clean = pq.read_table(tmp_path / "out.parquet")
        assert clean.schema.equals(pq.read_schema(tmp_path / "in.parquet"), check_metadata=True)
        all_texts = [text(n) if n % 50 != 49 else None for n in range(ROWS)]
        alive, texts = expected(whole.drop_columns("text"), found, all_texts)
        assert clean.drop_columns("text").equals(alive)
        written = clean["text"].cast(pa.string()).to_pylist()
        assert written == texts
        assert sum(not text for text in written) > 5
    before, after = (pq.ParquetFile(tmp_path / name) for name in ("in.parquet", "out.parquet"))
    assert after.schema.equals(before.schema)
    assert after.metadata.num_row_groups == before.metadata.num_row_groups == 4
    assert after.metadata.row_group(0).column(2).compression == "ZSTD"


def test_nested_texts_in_several_files_and_shards(program, tmp_path):
    whole = table(pa.string(), nested=True)
    (tmp_path / "in/de").mkdir(parents=True)
    pq.write_table(whole.slice(0, 90), tmp_path / "in/a.parquet", row_group_size=20)
    pq.write_table(whole.slice(90), tmp_path / "in/de/b.parquet", compression="snappy")
    texts = [text(n) if n % 50 != 49 else None for n in range(ROWS)]
    options = ["--text-field", "page.text", "in"]
    for split in ("paragraph", "line"):
        alive, clean = expected(whole, cuts(program, tmp_path, *options, split=split), texts)
        rest = ["--max-bad", "1", "--memory", "64MiB", *options, "-o"]
        folder, shards = f"{split}/", f"{split}-shards/part.parquet"
        units(program, tmp_path, "documents", *rest, folder, split=split)
        units(program, tmp_path, "documents", *rest, shards, "--shard-size", "2kB", split=split)
        files = [tmp_path / split / name for name in ("a.parquet", "de/b.parquet")]
        assert [pq.read_metadata(file).num_rows for file in files] == [89, ROWS - 93]
        parts = sorted((tmp_path / f"{split}-shards").iterdir())
        assert len(parts) > 1
        for written in (files, parts):
            rows = pa.concat_tables([pq.read_table(file, partitioning=None) for file in written])
            assert rows.drop_columns("page").equals(alive.drop_columns("page"))
            assert [page["text"] for page in rows["page"].to_pylist()] == clean
            assert [page["n"] for page in rows["page"].to_pylist()] == alive["n"].to_pylist()


def test_texts_that_cannot_be_cut_stop_before_the_start(program, tmp_path):
    lists = pa.array([["one line", "another"], ["a third"]])
    for texts, said in (
        (lists, 'the column "text" holds lists of texts'),
        (pa.array([1, 2]), 'the column "text" holds no texts'),
        (pa.array([b"ab", b"cd"], pa.binary(2)), 'the column "text" holds no texts'),
    ):
        pq.write_table(pa.table({"id": ["a", "b"], "text": texts}), tmp_path / "in.parquet")
        with pytest.raises(subprocess.CalledProcessError) as refused:
            units(program, tmp_path, "documents", "in.parquet", "-o", "out.parquet")
        assert refused.value.returncode == 2 and said in refused.value.stderr.decode(), said
        assert not (tmp_path / "out.parquet").exists()
        units(program, tmp_path, "remove", "in.parquet")


def test_marks_are_the_parts_that_would_be_cut(program, tmp_path):
    whole = table(pa.string())
    pq.write_table(whole, tmp_path / "in.parquet", row_group_size=70)
    texts = [text(n) if n % 50 != 49 else None for n in range(ROWS)]
    found = cuts(program, tmp_path, "in.parquet")
    options = ["--max-bad", "1", "--mark", "repeated", "--workers", "2", "in.parquet", "-o", "marked.parquet"]
    units(program, tmp_path, "documents", *options)
    marked = pq.read_table(tmp_path / "marked.parquet")
    assert marked.column_names == [*whole.column_names, "repeated"]
    spans = pa.field("element", pa.list_(pa.field("element", pa.int64(), False)), False)
    assert marked.schema.field("repeated") == pa.field("repeated", pa.list_(spans), False)
    alive, clean = expected(whole, found, texts)
    assert marked.drop_columns("repeated").equals(alive.replace_schema_metadata({"own": "日"}))
    assert [cleaned(row["text"], row["repeated"]) for row in marked.to_pylist()] == clean
    assert sum(not row["repeated"] for row in marked.to_pylist()) > 5
    pq.write_table(marked, tmp_path / "again.parquet")
    with pytest.raises(subprocess.CalledProcessError) as refused:
        units(program, tmp_path, "documents", "--mark", "repeated", "again.parquet", "-o", "out.parquet")
    assert b'there is a column "repeated" already' in refused.value.stderr
