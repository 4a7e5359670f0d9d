"""Records of documents that the command line copies, and the same decisions in Python.

Bug classes: a column, a type, an order or a null that changes; a row that is lost or doubled; a rule or a
reference that decides otherwise than in Python.
"""

import json
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
from conftest import native_text, run

import dupflow

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = 400


@pytest.fixture
def table():
    """Rows of many types, with nulls, near copies and copies; in no order of ids."""
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    spread = [n * 7 % ROWS for n in range(ROWS)]
    sometimes = lambda n, value: value if n % 5 else None  # noqa: E731
    columns = {
        "n": pa.array(spread, pa.uint16()),
        "text": pa.array([native_text(n % 90, n % 4) for n in spread], pa.large_string()),
        "id": pa.array([f"d{n:03}" for n in spread]),
        "at": pa.array([sometimes(n, at + timedelta(hours=n)) for n in spread], pa.timestamp("us", "UTC")),
        "lang": pa.array([sometimes(n, "日本" if n % 3 else "de") for n in spread]).dictionary_encode(),
        "score": pa.array([sometimes(n, n / 8) for n in spread]),
        "price": pa.array([Decimal(n) / 100 for n in spread], pa.decimal128(9, 2)),
        "hash": pa.array([bytes([n % 256] * 4) for n in spread], pa.binary(4)),
        "tags": pa.array(
            [sometimes(n, [{"a": t, "b": "x" if t else None} for t in range(n % 4)]) for n in spread]
        ),
        "by": pa.array([[("k", n)] for n in spread], pa.map_(pa.string(), pa.int64())),
    }
    return pa.table(columns).replace_schema_metadata({"own": "日"})


def plain(table):
    """The table with texts in place of a dictionary, which may hold other values."""
    return table.set_column(4, "lang", table["lang"].cast(pa.string()))


@pytest.fixture
def place(table, tmp_path):
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=90, compression="zstd")
    return tmp_path


def test_rows_of_parquet_keep_their_schema(program, place, table):
    keep = run(program, "replay", "-q", "--emit", "keep", "in.parquet", cwd=place).splitlines()
    kept_ids = {json.loads(line)["id"] for line in keep}
    is_kept = [id in kept_ids for id in table["id"].to_pylist()]
    assert 50 < sum(is_kept) < ROWS - 50
    for emit, mask in (("documents", is_kept), ("removed-documents", [not is_it for is_it in is_kept])):
        run(program, "replay", "-q", "--emit", emit, "in.parquet", "-o", "out.parquet", cwd=place)
        found = pq.read_table(place / "out.parquet")
        assert found.schema.equals(pq.read_schema(place / "in.parquet"), check_metadata=True)
        assert plain(found).equals(plain(table.filter(pa.array(mask))))
        before, after = (pq.ParquetFile(place / name) for name in ("in.parquet", "out.parquet"))
        assert after.schema.equals(before.schema)
        assert after.metadata.num_row_groups == before.metadata.num_row_groups
        assert after.metadata.row_group(0).column(1).compression == "ZSTD"


def test_shards_folders_and_marks_of_parquet(program, place, table):
    emit = ["replay", "-q", "--emit", "documents"]
    run(program, *emit, "in.parquet", "-o", "whole.parquet", cwd=place)
    whole = pq.read_table(place / "whole.parquet")
    run(program, *emit, "in.parquet", "--shard-size", "6kB", "-o", "shards/part.parquet", cwd=place)
    names = sorted(path.name for path in (place / "shards").iterdir())
    assert names == [f"part-{n:05}.parquet" for n in range(len(names))] and len(names) > 1
    parts = [plain(pq.read_table(place / "shards" / name)) for name in names]
    assert pa.concat_tables(parts).equals(plain(whole))
    run(program, *emit, "in.parquet", "-o", "folder/", cwd=place)
    assert pq.read_table(place / "folder/in.parquet").equals(whole, check_metadata=True)
    run(program, *emit, "--mark", "dup", "in.parquet", "-o", "marked.parquet", cwd=place)
    marked = pq.read_table(place / "marked.parquet")
    assert marked.column_names == [*table.column_names, "dup_cluster", "dup_kept", "dup_of"]
    some = ["n", "id", "score", "price", "tags", "by"]
    assert marked.select(some).equals(table.select(some))
    assert marked.filter(marked["dup_kept"])["id"].equals(whole["id"])
    removed = dupflow.removed(table, id="id", text="text")
    of = {row["id"]: row["dup_of"] for row in marked.select(["id", "dup_of"]).to_pylist() if row["dup_of"]}
    assert len(of) == len(removed)


def test_polars_reads_the_same_schema(program, place):
    polars = pytest.importorskip("polars")
    run(program, "replay", "-q", "--emit", "documents", "in.parquet", "-o", "out.parquet", cwd=place)
    before, after = (polars.read_parquet(place / name) for name in ("in.parquet", "out.parquet"))
    assert after.schema == before.schema
    assert after.equals(before.filter(polars.col("id").is_in(after["id"].to_list())))


def by_id(program, place, name, emit, *options):
    """The rows of a list as a dict by id."""
    listed = run(program, "replay", "-q", "--emit", emit, *options, name, cwd=place)
    return {row.pop("id"): row for row in map(json.loads, listed.splitlines())}


def test_rules_by_a_field_are_those_of_the_command_line(program, place, table):
    ordered = table.sort_by("id")
    for rule in ("max:score", "min:score", "priority:lang:de>日本", "max:n", "longest"):
        field = rule.split(":")[1] if ":" in rule else "score"
        options = ["--field", field, "--set", f"output.keep={rule}"]
        expected = by_id(program, place, "in.parquet", "remove", *options)
        found = dupflow.removed(ordered, id="id", keep=rule)
        assert {row.id: {"kept": row.kept, "cluster": row.cluster} for row in found} == expected, rule
        same = dupflow.removed(ordered, id="id", settings={"output.keep": rule})
        assert list(same) == list(found)
    kept = by_id(program, place, "in.parquet", "keep", "--set", "output.keep=source-order")
    assert set(dupflow.dedup(table, id="id", keep="source-order")["id"].to_pylist()) == set(kept)


def test_a_reference_is_that_of_the_command_line(program, place, table):
    ordered = table.sort_by("id")
    old, new = ordered.slice(0, 150), ordered.slice(150)
    # Ids that are on both sides, with other texts.
    ids = new["id"].to_pylist()
    ids[:20] = old["id"].to_pylist()[130:]
    new = new.set_column(2, "id", pa.array(sorted(ids)))
    pq.write_table(old, place / "old.parquet")
    pq.write_table(new, place / "new.parquet")
    for rule in ("smallest", "longest", "max:score"):
        options = ["--against", "old.parquet", "--field", "score", "--set", f"output.keep={rule}"]
        expected = by_id(program, place, "new.parquet", "remove", *options)
        assert len(expected) > 20 and {row["old"] for row in expected.values()} == {True, False}
        found = dupflow.removed(new, against=old, id="id", keep=rule)
        rows = {row.id: {"kept": row.kept, "cluster": row.cluster, "old": row.old} for row in found}
        assert rows == expected, rule
        kept = dupflow.dedup(new, against=old, id="id", keep=rule)
        listed = by_id(program, place, "new.parquet", "keep", *options)
        assert set(kept["id"].to_pylist()) == set(listed)
    with pytest.raises(dupflow.ConfigError, match="a star may leave out"):
        dupflow.removed(new, against=old, settings={"output.clusters": "star"})
