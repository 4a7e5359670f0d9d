#!/usr/bin/env bash
# The same page is three texts: in one web archive, read by two libraries.
# Guess: a reader that has parsed the HTTP header takes the chunks of a chunked body apart, and a body that is marked chunked
# but was stored whole (as several crawlers do) is returned as it is. Both libraries give the page's text for all records.
# Seen: FastWARC leaves the lengths of the chunks in the text, unless auto_decode='all' is given; then the record that was
# stored whole raises an error. warcio returns both rightly, but of a page that was stored whole and begins with the line
# "add" (all its letters are digits of hexadecimal numbers) it drops that line, as the length of a chunk, without a word.
# The payload digest holds in both libraries for all of them: it is that of the bytes as stored.
# Why it matters: the lengths of chunks differ at each fetch, so equal pages become near-duplicates or less. And whether an
# archive was read by one or the other decides what a text is.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
{ python3 -m venv v && v/bin/pip install -q --no-compile --disable-pip-version-check warcio==1.8.1 fastwarc==2.0.1; } ||
  { echo 'NOT RUN: warcio 1.8.1 or fastwarc 2.0.1 cannot be installed'; exit 77; }
v/bin/python - <<'E'
import io
from importlib.metadata import version
import fastwarc.warc, warcio.archiveiterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

print("warcio", version("warcio"), "fastwarc", version("fastwarc"))
page = b"A page of plain text.\n" * 4
chunked = b"".join(b"%x\r\n%s\r\n" % (len(page[i:i + 9]), page[i:i + 9]) for i in range(0, len(page), 9)) + b"0\r\n\r\n"
stored = {"in chunks": chunked, "stored whole": page, "begins with 'add'": b"add\r\nis the first word of this page.\r\n"}

def archive(names):
    file = io.BytesIO()
    for name in names:
        head = StatusAndHeaders("200 OK", [("Content-Type", "text/plain"), ("Transfer-Encoding", "chunked")], protocol="HTTP/1.1")
        writer = WARCWriter(file, gzip=True)
        writer.write_record(writer.create_warc_record("http://a.example/", "response", payload=io.BytesIO(stored[name]), http_headers=head))
    file.seek(0)
    return file

def fast(name, **options):
    for record in fastwarc.warc.ArchiveIterator(archive([name]), parse_http=True, **options):
        try:
            return record.reader.read()
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:50]}"

seen = {}
for name in stored:
    record = next(iter(warcio.archiveiterator.ArchiveIterator(archive([name]), check_digests=True)))
    seen[name] = record.content_stream().read(), fast(name), fast(name, auto_decode="all")
    digest = next(fastwarc.warc.ArchiveIterator(archive([name]), parse_http=True)).verify_payload_digest()
    print(f"{name}: payload digest holds: {record.digest_checker.passed}, {digest}")
    for reader, text in zip(("warcio", "FastWARC", "FastWARC, auto_decode='all'"), seen[name]):
        print(f"  {reader}: {text[:64]!r}")
    assert record.digest_checker.passed and digest, "CHANGED: digest"
assert seen["in chunks"] == (page, chunked, page), "CHANGED: in chunks"
assert seen["stored whole"][:2] == (page, page) and isinstance(seen["stored whole"][2], str), "CHANGED: stored whole"
assert seen["begins with 'add'"][0].startswith(b"is the first"), "CHANGED: the first line"
E
