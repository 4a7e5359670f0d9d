# packages: pyarrow==26.0.1
"""jq, Node and pyarrow: what becomes of a fingerprint that is a number in JSON."""

import io
import json
import shutil
import subprocess

import pyarrow
import pyarrow.json
from page import says

says(
    "features.md",
    "jq 1.6 and Node change numbers beyond 2⁵³ in JSON without a message",
    "and pyarrow 26 makes lists of them doubles",
)
NUMBER = 14110306431060090639
line = json.dumps({"text": [NUMBER]}) + "\n"
table = pyarrow.json.read_json(io.BytesIO(line.encode()))
assert table.schema.field("text").type == pyarrow.list_(pyarrow.float64()), table.schema

COMMANDS = {
    "node": ["node", "-e", f"console.log(JSON.stringify(JSON.parse('{line.strip()}')))"],
    "jq": ["jq", "-c", "."],
}
for program, command in COMMANDS.items():
    if not shutil.which(program):
        print(f"SKIPPED peers: json_numbers: there is no {program}")
        continue
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.strip()
    if program == "jq" and version != "jq-1.6":
        print(f"SKIPPED peers: json_numbers: {version} in place of jq-1.6")
        continue
    done = subprocess.run(command, input=line, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["text"] != [NUMBER] and not done.stderr, done
