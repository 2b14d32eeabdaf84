"""Documents in pieces, and how far they are read, on a tiny checkpoint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.measures.tempscale.steps.temperatures import _averaged, content_limit


def test_pieces_averaged_are_each_encoded_alone(tiny: Checkpoint) -> None:
    words = [["river", "stone", "song"][i % 3] for i in range(150)]
    texts = ["old town", " ".join(words)]
    found = _averaged(Encoder(tiny), texts, lambda _: None)
    # 62 tokens fit between [CLS] and [SEP]: two pieces of 62 words and one of 26.
    pieces = [" ".join(words[start : start + 62]) for start in (0, 62, 124)]
    alone = Encoder(tiny).encode_texts(pieces).astype(np.float64)
    assert found[1] == pytest.approx((62 * alone[0] + 62 * alone[1] + 26 * alone[2]) / 150, abs=1e-6)
    assert found[0] == pytest.approx(Encoder(tiny).encode_texts(["old town"])[0], abs=1e-6)


def test_documents_are_read_as_served_or_up_to_the_position_table(tiny: Checkpoint, tmp_path: Path) -> None:
    assert content_limit(tiny, "limit") == 62
    assert content_limit(tiny, "positions") == 126
