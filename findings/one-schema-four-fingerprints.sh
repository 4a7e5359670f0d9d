#!/usr/bin/env bash
# One Avro schema has four CRC-64 fingerprints in four libraries, and two schemas that read a number 100 times apart have one.
# Guess: the fingerprint of a schema's canonical form is specified bit by bit, so all libraries agree; what changes how a
# value is read (the scale of a decimal) changes it.
# Seen: they agree on schemas of plain types. With one decimal, a logical type, the canonical forms differ: fastavro
# writes "bytes", Apache's Python {"type":"bytes"}, hamba (Go) keeps the logical type, goavro (Go) differs from all three.
# And where it is left out, as specified, decimals of scale 2 and of scale 4 have one fingerprint; hamba alone tells them apart.
# Why it matters: messages in Avro's single-object encoding name their schema by this number. A weight of 1.23 is read as
# 0.0123 without an error, or a reader in another language finds no schema for what was written beside it.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
{ python3 -m venv v && v/bin/pip install -q --no-compile --disable-pip-version-check avro==1.12.2 fastavro==1.13.1 && go mod init findings &&
  go get github.com/hamba/avro/v2@v2.31.0 github.com/linkedin/goavro/v2@v2.15.0; } >log 2>&1 ||
  { cat log; echo 'NOT RUN: an Avro library of Python or Go cannot be installed'; exit 77; }
cat > main.go <<'E'
package main

import (
	"fmt"
	"os"

	"github.com/hamba/avro/v2"
	"github.com/linkedin/goavro/v2"
)

func main() { // the fingerprints of a schema, most significant byte first
	schema, err := avro.ParseWithCache(os.Args[1], "", &avro.SchemaCache{})
	if err != nil {
		panic(err)
	}
	hamba, _ := schema.FingerprintUsing(avro.CRC64Avro)
	codec, _ := goavro.NewCodec(os.Args[1])
	fmt.Printf("%x %016x", hamba, codec.Rabin)
}
E
go build -o go-avro .
v/bin/python - <<'E'
import json, subprocess
from importlib.metadata import version
import avro.schema
from fastavro.schema import fingerprint, parse_schema, to_parsing_canonical_form

print("avro", version("avro"), "fastavro", version("fastavro"), "hamba/avro 2.31.0 goavro 2.15.0")
def prints(name, type):
    schema = {"type": "record", "name": "Doc", "namespace": "n", "fields": [{"name": "id", "type": "long"}, {"name": "w", "type": type}]}
    text = json.dumps(schema)
    fast = fingerprint(to_parsing_canonical_form(parse_schema(schema)), "CRC-64-AVRO")
    apache = avro.schema.parse(text).fingerprint("CRC-64-AVRO").hex()
    big_endian = subprocess.run(["./go-avro", text], check=True, capture_output=True, text=True).stdout.split()
    hamba, goavro = (bytes.fromhex(x)[::-1].hex() for x in big_endian)
    seen = {"fastavro": fast, "avro": apache, "hamba": hamba, "goavro": goavro}
    print(f"{name}: {seen}, {len(set(seen.values()))} different")
    return seen

decimal = lambda scale: {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": scale}
plain, two, four = prints("plain bytes", "bytes"), prints("decimal, scale 2", decimal(2)), prints("decimal, scale 4", decimal(4))
print("equal at both scales:", [n for n in two if two[n] == four[n]])
assert len(set(plain.values())) == 1, "CHANGED: plain types"
assert len(set(two.values())) == 4, "CHANGED: decimals"
assert [n for n in two if two[n] == four[n]] == ["fastavro", "avro", "goavro"], "CHANGED: scales"
E
