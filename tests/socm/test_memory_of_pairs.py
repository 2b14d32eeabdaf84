"""Pairs stream to their file: ten times as many need no more memory, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

FEW, MANY = 500, 1_600
STREAM = """
import json, sys
from dataclasses import asdict
from pathlib import Path
import numpy as np
import pyarrow as pa
from embaudit.system.processors import peak_memory
from embaudit.measures.socm.clouds import clouds_of
from embaudit.measures.socm.nuclear import Eigenvalues
from embaudit.measures.socm.pairs import Accuracy, all_pairs, checked
from embaudit.steps.staging import stage
from embaudit.measures.socm.tables import SocmPairRow

# Several groups of rows in the smaller file too: one group is what may wait in memory.
stage.ROWS_PER_GROUP = 20_000

def stream(texts, path):
    random = np.random.default_rng(0)
    clouds, _ = clouds_of(
        (i, (random.normal(size=(n, 8)) + random.normal(size=8)).astype(np.float32))
        for i, n in enumerate(random.integers(12, 16, texts))
    )
    accuracy = Accuracy()
    pairs = texts * (texts - 1) // 2
    blocks = checked(all_pairs(clouds, norms=Eigenvalues(1)), {one.position: one for one in clouds}, pairs, accuracy)
    columns = ({"corpus": pa.repeat("w", len(b.socm)), **asdict(b)} for b in blocks)
    rows = stage.write_columns(path, columns, SocmPairRow.table.schema)
    return {"rows": rows, "accuracy": accuracy.largest, "checked": accuracy.pairs, "peak_bytes": peak_memory()}

print(json.dumps([stream(int(texts), Path(sys.argv[1]) / f"{texts}.parquet") for texts in sys.argv[2:]]))
"""


@pytest.mark.slow
def test_ten_times_the_pairs_need_no_more_memory(tmp_path: Path) -> None:
    sizes = (FEW, MANY)
    done = subprocess.run(
        [sys.executable, "-c", STREAM, str(tmp_path), *map(str, sizes)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    few, many = json.loads(done.stdout)
    for texts, facts in zip(sizes, (few, many), strict=True):
        rows = pq.read_metadata(tmp_path / f"{texts}.parquet").num_rows
        assert facts["rows"] == rows == texts * (texts - 1) // 2
        assert facts["checked"] == 64
        assert facts["accuracy"] < 1e-7
    # Five numbers of eight bytes a pair: whoever keeps the pairs needs forty bytes for each of the further ones.
    kept = 40 * (many["rows"] - few["rows"])
    assert many["peak_bytes"] - few["peak_bytes"] < kept / 3
