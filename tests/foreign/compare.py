"""Reads the test data of other projects with dupflow and with a reader of their own, and compares ids and bytes of text.

    compare.py DUPFLOW FOLDER...

In: the program; folders with Parquet files and web archives, such as clones of `projects.txt`; pyarrow and warcio.
Out: per kind the files, documents, and what differs, each with its reason; exit code 1 if a difference has none, or
a reason no difference.

Of Parquet every column of texts is compared, row by row. Of web archives the pages of warcio are written as a
folder of files, which dupflow reads as HTML or text: so only the reading of records and bodies differs.
"""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from warcio.archiveiterator import ArchiveIterator

# Why a file of this name is read otherwise, by each message about it.
EXPLAINED = json.loads(Path(__file__).with_name("explained.json").read_text())


def documents(dupflow, source, more=""):
    """The documents that a run reads, id to bytes of text, with the number of bad records; the error where it fails."""
    with tempfile.TemporaryDirectory() as place:
        lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in source.items())
        Path(place, "run.toml").write_text(
            f"workers = 1\n[source]\n{lines}[sink]\nkind = \"sqlite\"\npath = \"out.db\"\n[dead_letter]\npath = \"bad.jsonl\"\n{more}"
        )
        done = subprocess.run(
            [dupflow, "run", "-p", "exact", "-c", "run.toml"],
            cwd=place, capture_output=True, text=True, timeout=120,
        )
        if done.returncode:
            return None, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"
        rows = sqlite3.connect(Path(place, "out.db")).execute("SELECT source_offset, id, bytes FROM documents").fetchall()
        bad = Path(place, "bad.jsonl")
        return rows, len(bad.read_text().splitlines()) if bad.exists() else 0


def is_text(kind):
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def parquet(dupflow, path):
    """Differences of a Parquet file, and its documents."""
    try:
        table = pq.ParquetFile(path, page_checksum_verification=True).read()
        columns = [(f.name, table.column(i)) for i, f in enumerate(table.schema) if is_text(f.type)]
    except Exception:
        # It is no file of the format, or encrypted: what dupflow says of such is a matter of its own tests.
        return None, 0
    differs, count = [], 0
    for name, column in columns:
        values = [None if v is None else len(v.encode("utf-8", "surrogatepass")) for v in column.to_pylist()]
        rows, said = documents(dupflow, {"inputs": [str(path.resolve())], "text_path": name.replace(".", "\\.")})
        if rows is None and "and no document" in said and all(size is None for size in values):
            continue
        if rows is None:
            differs.append(f"{name}: {said}")
            continue
        read = {row: size for row, _, size in rows}
        expected = {row: size for row, size in enumerate(values) if size is not None}
        count += len(expected)
        wrong = [row for row in expected.keys() | read.keys() if expected.get(row) != read.get(row)]
        if wrong:
            row = min(wrong)
            differs.append(f"{name}: {len(wrong)} of {len(expected)} rows, the first {row}: {expected.get(row)} bytes, read {read.get(row)}; {said} bad")
    return differs, count


def pages(path):
    """The pages that warcio reads: address, and body as it is compared; the last one of an address counts."""
    found = {}
    with open(path, "rb") as file:
        for record in ArchiveIterator(file, arc2warc=False, check_digests=False):
            kind = record.rec_type
            if kind not in ("response", "resource", "conversion"):
                continue
            uri = record.rec_headers.get_header("WARC-Target-URI")
            http = record.http_headers
            media = (http.get_header("Content-Type") if http else record.rec_headers.get_header("Content-Type")) or ""
            status = http.get_statuscode() if http and kind == "response" else "200"
            body = record.content_stream().read()
            found[uri.strip("<>")] = (media.split(";")[0].strip().lower(), status, body)
    return found


def archive(dupflow, path):
    try:
        found = pages(path)
    except Exception:
        found = None
    rows, said = documents(dupflow, {"inputs": [str(path.resolve())]}, "[warc]\nid = \"uri\"\n")
    if rows is None:
        return (None if found is None else [said]), 0
    found = found or {}
    # Other states than 200 and other types than texts are no pages.
    texts = ("text/html", "application/xhtml+xml", "text/plain")
    # What a crawler writes about itself has an address of its own kind.
    own = ("metadata:", "urn:")
    expected = {u for u, (media, status, _) in found.items() if status.startswith("2") and media in texts and not u.startswith(own)}
    read = {identity for _, identity, _ in rows}
    differs = [f"not read: {uri}" for uri in sorted(expected - read)] + [f"only read: {uri}" for uri in sorted(read - expected)]
    sizes = {identity: size for _, identity, size in rows}
    with tempfile.TemporaryDirectory() as place:
        names = {}
        for n, uri in enumerate(sorted(expected & read)):
            media, _, body = found[uri]
            name = f"{n}.{'txt' if media == 'text/plain' else 'html'}"
            Path(place, name).write_bytes(body)
            names[name] = uri
        if names:
            again, said = documents(dupflow, {"inputs": [place]})
            if again is None:
                differs.append(said)
            else:
                for _, identity, size in again:
                    uri = names[os.path.basename(identity)]
                    if sizes[uri] != size:
                        differs.append(f"{uri}: {sizes[uri]} bytes, as a file {size}")
    return differs, len(read)


def main(dupflow, *folders):
    unexplained, total = 0, {}
    unused = {(name, what) for name, reasons in EXPLAINED.items() for what in reasons}
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            name = path.name.lower()
            if not path.is_file():
                continue
            if name.endswith((".parquet", ".parquet.encrypted")):
                kind, compare = "Parquet", parquet
            elif name.endswith((".warc", ".warc.gz", ".warc.zst")):
                kind, compare = "web archives", archive
            else:
                continue
            differs, count = compare(dupflow, path)
            files, refused, counted, different = total.get(kind, (0, 0, 0, 0))
            total[kind] = (files + 1, refused + (differs is None), counted + count, different + len(differs or []))
            for what in differs or []:
                what = what.replace(str(path.resolve()), path.name)
                reason = EXPLAINED.get(path.name, {}).get(what)
                unexplained += reason is None
                unused.discard((path.name, what))
                print(f"{path.relative_to(folder)}: {what}: {reason or 'NOT EXPLAINED'}")
    for kind, (files, refused, counted, different) in total.items():
        print(f"{kind}: {files} files, of which the other reader refuses {refused}; {counted} documents, {different} differences")
    for name, what in sorted(unused):
        print(f"{name}: {what}: IT DOES NOT DIFFER SO")
    print(f"{unexplained} not explained, {len(unused)} explained and not found")
    return 1 if unexplained or unused or not total else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
