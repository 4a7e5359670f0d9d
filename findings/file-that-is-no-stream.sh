#!/usr/bin/env bash
# An Arrow file of polars is no Arrow stream behind its first eight bytes.
# Guess: the format says that a file is the magic, a stream of messages with its end mark, a footer and the magic; so whoever skips
# eight bytes can read a file as a stream, from a pipe too, as works with what pyarrow writes.
# Seen: polars 2.1.0 writes the bare flatbuffer of the schema there, without the mark and the length that a message has, so stream
# readers of both libraries refuse it (one reads the first offset of the flatbuffer as a length); arro3 0.9.1 leaves zeros up to
# byte 64, where a reader of streams finds the mark of the end at once. By their footers all three are read alike.
# Why it matters: a reader that takes files from standard input as streams passes its tests with one writer, and loses all rows, or
# the whole file, of another. Only the footer says where batches are, so a pipe has to be held.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
{ python3 -m venv v && v/bin/pip install -q --no-compile --disable-pip-version-check pyarrow==26.0.1 polars==2.1.0 arro3-core==0.9.1 \
  arro3-io==0.9.1; } || { echo 'NOT RUN: the packages cannot be installed'; exit 77; }
v/bin/python - <<'E2'
import io
import arro3.io, polars, pyarrow

print("pyarrow", pyarrow.__version__, "polars", polars.__version__, "arro3-io 0.9.1")
table = pyarrow.table({"id": ["a", "b"], "text": ["one two", "three"]})

def of(write):
    out = io.BytesIO()
    write(out)
    return out.getvalue()

def by_pyarrow(out):
    with pyarrow.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)

def rows(read):
    try:
        return read()
    except Exception as error:
        return type(error).__name__

found = {}
for name, write in [("pyarrow", by_pyarrow), ("polars", lambda out: polars.DataFrame(table).write_ipc(out)),
                    ("arro3", lambda out: arro3.io.write_ipc(table, out))]:
    file = of(write)
    behind = file[8:]
    found[name] = (
        file[:8], file[-6:], behind[:4].hex(), next(at for at, byte in enumerate(file) if at > 7 and byte),
        rows(lambda: pyarrow.ipc.open_file(file).read_all().num_rows),
        rows(lambda: pyarrow.ipc.open_stream(behind).read_all().num_rows),
        rows(lambda: polars.read_ipc_stream(behind).height),
    )
    print(f"{name:8} bytes 8 to 11: {found[name][2]}, first byte that is not zero: {found[name][3]:2}; rows by footer "
          f"{found[name][4]}, as a stream: pyarrow {found[name][5]}, polars {found[name][6]}")
magic = (b"ARROW1\0\0", b"ARROW1")
assert all(one[:2] == magic and one[4] == 2 for one in found.values())
assert found["pyarrow"][2:] == ("ffffffff", 8, 2, 2, 2), found
assert found["polars"][2] != "ffffffff" and found["polars"][5:] == ("OSError", "ComputeError"), found
assert found["arro3"][3] == 64 and found["arro3"][5:] == ("ArrowInvalid", "ComputeError"), found
E2
