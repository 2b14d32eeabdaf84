"""Twelve million pairs stream to their file in less than 2 GB, in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

STREAM = """
import json, resource, sys, time
from dataclasses import asdict
from pathlib import Path
import numpy as np
import pyarrow as pa
from embaudit.socm import Accuracy, Surface, all_pairs, checked, clouds_of, summarise
from embaudit.warehouse.stage import write_columns
from embaudit_tasks.socm_schemas import PAIR_SCHEMA

texts, path = int(sys.argv[1]), Path(sys.argv[2])
random = np.random.default_rng(0)
lengths = random.integers(5, 46, texts)
clouds, _ = clouds_of(
    (i, (random.normal(size=(n, 384)) + random.normal(size=384)).astype(np.float32)) for i, n in enumerate(lengths)
)
accuracy, surface = Accuracy(), Surface((0.0, 0.5, 1.0, 2.0))
pairs = texts * (texts - 1) // 2
blocks = checked(all_pairs(clouds), {cloud.position: cloud for cloud in clouds}, pairs, accuracy)
started = time.monotonic()
rows = write_columns(path, ({"corpus": pa.repeat("w", len(b.socm)), **asdict(b)} for b in blocks), PAIR_SCHEMA)
seconds = time.monotonic() - started
print(json.dumps({
    "rows": rows, "seconds": seconds, "accuracy": accuracy.largest, "checked": accuracy.pairs,
    "tokens": float(lengths.mean()),
    "peak_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
}))
"""


@pytest.mark.slow
def test_five_thousand_texts_stream_in_under_two_gigabytes(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    path = tmp_path / "socm_pair.parquet"
    done = subprocess.run(
        [sys.executable, "-c", STREAM, "5000", str(path)], capture_output=True, text=True, check=False, timeout=1800
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    record_property("facts", facts)
    assert facts["rows"] == 12_497_500 == pq.read_metadata(path).num_rows
    assert facts["peak_kb"] < 2 * 1024 * 1024
    assert facts["checked"] == 64
    assert facts["accuracy"] < 1e-7
