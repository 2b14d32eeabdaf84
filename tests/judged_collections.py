"""Small retrieval collections as folders in BEIR's layout."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path


def write_collection(
    folder: Path, documents: Sequence[str], queries: Sequence[str], relevant: Mapping[int, int] | None = None
) -> Path:
    """A folder of them; without ``relevant`` (query to document) each query's is the document in its place."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    rows = [{"_id": f"d{place}", "title": "", "text": text} for place, text in enumerate(documents)]
    asked = [{"_id": f"q{place}", "text": text} for place, text in enumerate(queries)]
    for name, lines in (("corpus", rows), ("queries", asked)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    pairs = relevant or dict(enumerate(range(len(queries))))
    judged = "".join(f"q{query}\td{document}\t1\n" for query, document in pairs.items())
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    return folder
