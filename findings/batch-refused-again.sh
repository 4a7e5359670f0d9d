#!/usr/bin/env bash
# An upsert accepts a batch, and refuses the same batch when it is delivered again.
# Guess: an upsert by id ("update what matches, insert what does not") may be repeated: after a second delivery the table is
# as after the first. A batch that holds an id twice is either refused, or the later row wins, each time.
# Seen: in Lance and in Delta alike a new id that is twice in the batch is inserted twice, so the key of the upsert is not
# unique in the table. The same batch again is refused as ambiguous, as it is if the id was there before; a later batch
# with this id once updates both rows. No run of the same batch mends it.
# Why it matters: a crawler sends a page twice in one batch, and a stream that delivers at least once sends the batch again: it
# stops there for good, or leaves two equal documents, "duplicates", of one id. Keep one row of an id before each upsert.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
{ python3 -m venv v && v/bin/pip install -q --no-compile --disable-pip-version-check pylance==14.0.2 deltalake==1.6.6 pyarrow==26.0.1; } ||
  { echo 'NOT RUN: pylance 14.0.2 or deltalake 1.6.6 cannot be installed'; exit 77; }
v/bin/python - <<'E'
import lance, pyarrow as pa
from importlib.metadata import version
from deltalake import DeltaTable, write_deltalake

print("pylance", version("pylance"), "deltalake", version("deltalake"))
batch = lambda *rows: pa.table({"id": [r[0] for r in rows], "text": [r[1] for r in rows]})
lance.write_dataset(batch((1, "a"), (2, "b")), "lance")
write_deltalake("delta", batch((1, "a"), (2, "b")))

def upsert(table, source):
    """The rows after an upsert, and whether it was accepted."""
    try:
        if table == "lance":
            lance.dataset("lance").merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(source)
        else:
            merge = DeltaTable("delta").merge(source, "new.id = old.id", source_alias="new", target_alias="old")
            merge.when_matched_update_all().when_not_matched_insert_all().execute()
        accepted = True
    except Exception as error:
        print(f"  {type(error).__name__}: {str(error)[:100]}")
        accepted = False
    rows = lance.dataset("lance").to_table() if table == "lance" else pa.table(DeltaTable("delta").to_pyarrow_table())
    rows = sorted((r["id"], r["text"]) for r in rows.to_pylist())
    print(f"{table}: {[tuple(r.values()) for r in source.to_pylist()]} accepted: {accepted}, the table: {rows}")
    return accepted, rows

for table in ("lance", "delta"):
    old, twice = [(1, "a"), (2, "b")], batch((9, "x"), (9, "y"))
    assert upsert(table, batch((1, "x"), (1, "y"))) == (False, old), "CHANGED: a known id twice"
    assert upsert(table, twice) == (True, old + [(9, "x"), (9, "y")]), "CHANGED: a new id twice"
    assert upsert(table, twice) == (False, old + [(9, "x"), (9, "y")]), "CHANGED: the same batch again"
    assert upsert(table, batch((9, "z"))) == (True, old + [(9, "z"), (9, "z")]), "CHANGED: the id once"
E
