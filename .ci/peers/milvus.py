# packages: pymilvus==3.0.2
"""Milvus: the types of its keys, and the files of its bulk writer."""

import importlib.util
from pathlib import Path

from page import says
from pymilvus import CollectionSchema, DataType, FieldSchema

says("formats.md", "| Milvus (pymilvus 3.0.2) | JSON, JSON Lines, Parquet, CSV; key INT64 or VARCHAR |")
# Importing the writer takes the clients of two clouds, so the names of its files are read in its source.
constants = Path(importlib.util.find_spec("pymilvus").origin).with_name("bulk_writer") / "constants.py"
assert all(
    f"    {kind} = " in constants.read_text(encoding="utf-8") for kind in ("JSON", "JSONL", "PARQUET", "CSV")
)
accepted = []
for kind in (DataType.INT32, DataType.INT64, DataType.VARCHAR, DataType.DOUBLE):
    vector = FieldSchema("vector", DataType.FLOAT_VECTOR, dim=2)
    try:
        CollectionSchema([FieldSchema("id", kind, is_primary=True, max_length=100), vector])
        accepted.append(kind)
    except Exception as error:
        assert "primary" in str(error).lower(), error
assert accepted == [DataType.INT64, DataType.VARCHAR]
