# packages: --no-deps nemo-curator==1.4.0
"""NeMo Curator: names of columns and ids, read in its source. To run it, a GPU is needed."""

import importlib.util
from pathlib import Path

from page import says

says(
    "formats.md",
    '| NeMo Curator 1.4.0 | `text_field = "text"`, a generated `_curator_dedup_id` |',
    "| | WARC: the bare UUID | the same |",
)
root = Path(importlib.util.find_spec("nemo_curator").submodule_search_locations[0])
sources = {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in root.rglob("*.py")}
assert any('= "_curator_dedup_id"' in source for name, source in sources.items() if "deduplication" in name)
assert 'text_field: str = "text"' in sources["stages/deduplication/fuzzy/workflow.py"]
# Without the first ten letters, `<urn:uuid:`, and the last one.
(warc,) = [source for name, source in sources.items() if name.endswith("common_crawl/warc_iterator.py")]
assert 'get_header("WARC-Record-ID")[10:-1]' in warc
