"""An exported index of texts, which jobs write anew between nights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 120


@dataclass
class Index:
    """An exported index of texts, a checkpoint that built it, and another one."""

    path: Path
    model: Path
    other: Path
    texts: list[str]
    encode: Callable[[Path, Sequence[str]], np.ndarray]

    def write(self, foreign: int = 0, rows: int = ROWS) -> None:
        """Its first rows are the other checkpoint's."""
        texts = self.texts[:rows]
        vectors = self.encode(self.model, texts)
        if foreign:
            vectors[:foreign] = self.encode(self.other, texts[:foreign])
        ids = [f"chunk-{number}" for number in range(rows)]
        table = pa.table({"id": ids, "text": texts, "vector": list(vectors.astype(np.float32))})
        pq.write_table(table, self.path)
