"""Searches that are lost at a known place, by the packaged checkpoint and stores on disk: each is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kept_texts import PACKAGED, Kept, named, parquet, walked

import embaudit

pytestmark = pytest.mark.slow


def test_what_is_in_no_row_or_has_no_vector_or_another(kept: Kept, tmp_path: Path) -> None:
    _, other = kept.queries[1]
    # A line of many things, whose neighbour says something else.
    place = len(kept.texts) - 20
    query, expect = " ".join(kept.texts[place].split()[:8]), kept.ids[place]
    text, D = kept.texts[place], kept.vectors.shape[1]
    rows: dict[str, tuple[np.ndarray | None, tuple[str, str]]] = {
        "NaN": (np.full(D, np.nan), ("vector", "not finite (NaN or infinity)")),
        "of the next text": (kept.vectors[place + 1], ("vector", "another text")),
        "of another dimension": (np.ones(D // 2), ("vector", f"of {D // 2:,} numbers, those of others of {D:,}")),
        "its own": (kept.vectors[place], ("found", "")),
    }
    for number, (what, (vector, wanted)) in enumerate(rows.items()):
        (tmp_path / str(number)).mkdir()
        store = parquet(kept.with_rows([(expect, text, vector)]), tmp_path / str(number))
        assert named(walked(store, query, expect)) == wanted, what
        if what == "its own":
            assert named(walked(store, query, "row-none")) == ("absent", "")
            assert named(walked(store, query, text)) == ("found", "")
            assert named(walked(store, query, f"{text} {kept.texts[place + 1]}")) == ("absent", "pieces")
            assert named(walked(store, query, expect, min_score=0.99)) == ("cut-off", "score")
            report = walked(store, kept.queries[5][0], other)
            assert named(report)[0] in ("function", "cut-off")


def test_what_the_function_does_not_put_near(kept: Kept, tmp_path: Path) -> None:
    store = parquet(kept.with_rows([]), tmp_path)
    for number in range(3):
        query, _ = kept.queries[number]
        scores = kept.vectors @ kept.of(query)[0]
        far = kept.ids[int(np.argsort(-scores)[400])]
        report = walked(store, query, far)
        assert named(report)[0] == "function"
        assert report.walked.cases[0].rank == 401


def test_many_cases_are_counted_and_named(kept: Kept, tmp_path: Path) -> None:
    store = parquet(kept.with_rows([]), tmp_path)
    golden = tmp_path / "golden.csv"
    lines = [f'"{query}",{expect}' for query, expect in kept.queries[:20]]
    golden.write_text("\n".join(["query,expect", *lines, "who is lost,row-none"]), encoding="utf-8")

    report = embaudit.why(store, PACKAGED, golden=golden, device="cpu")

    assert report.counts == {"found": 20, "absent": 1}
    assert report.exit_code == 1
    assert "20 of 21 are found" in report.line
    assert "no such row" in report.line
