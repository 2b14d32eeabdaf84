"""Of a store that is too large, row groups are drawn, and what is said of all rows holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import embaudit
from embaudit.stores import place
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions
from embaudit.stores.store import drawn_groups

FILES, GROUPS, ROWS, D = 6, 80, 10, 4


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """4 800 rows in 480 groups, of which a job wrote the last tenth as zeros; and a limit far below."""
    generator = np.random.default_rng(0)
    for number in range(FILES):
        vectors = generator.normal(size=(GROUPS * ROWS, D)).astype(np.float32)
        if number == FILES - 1:
            vectors[-480:] = 0
        ids = [number * GROUPS * ROWS + row for row in range(len(vectors))]
        table = pa.table({"id": ids, "vector": vectors.tolist()})
        pq.write_table(table, tmp_path / f"part-{number}.parquet", row_group_size=ROWS)
    monkeypatch.setattr("embaudit.questions.vectors.question.LARGE", 4_000)
    monkeypatch.setattr("embaudit.stores.opened.DRAWN", 2_400)
    return tmp_path


def test_a_draw_reads_whole_groups_and_says_how_many(large: Path) -> None:
    store = open_store(large, ReadOptions(most=4_000, seed=3))

    rows = [one for batch in store.batches() for one in batch.ids or ()]
    assert store.drawn is not None
    assert (store.drawn.rows, store.drawn.groups, store.drawn.read) == (4_800, 480, 2_400)
    assert len(rows) == 2_400 == store.rows
    assert {row // ROWS for row in rows} == {row // ROWS for row in rows if row % ROWS == 0}
    assert rows == sorted(rows)
    assert rows == [one for batch in store.batches() for one in batch.ids or ()]
    assert open_store(large, ReadOptions(most=4_000, seed=4)).drawn is not None
    assert open_store(large, ReadOptions(most=4_800)).drawn is None


def test_the_share_of_all_rows_holds_what_it_is(large: Path) -> None:
    report = embaudit.vectors(large)

    (zeros,) = (finding for finding in report.findings if finding.name == "zeros")
    assert "(of all 4,800 rows 0." in zeros.sentence
    assert "2,400 of 4,800 rows were read, in 240 of 480 row groups" in " ".join(report.index.notes)
    drawn = report.index.drawn
    assert drawn is not None
    _, low, high = drawn.share(report.alone.profile.zeros)
    assert low <= 0.1 <= high
    assert high - low < 0.12
    assert embaudit.vectors(large, whole=True).alone.profile.rows == 4_800


def test_intervals_over_groups_cover() -> None:
    """Rows of a job lie together; of 200 draws, at least nine of ten intervals hold its share."""
    sizes = [[10] * 1_000]
    wrong = np.arange(2_000, 3_000)
    covered = 0
    for seed in range(200):
        (chosen,), drawn = drawn_groups(sizes, 3_000, seed)
        numbers = np.concatenate([np.arange(group * 10, group * 10 + 10) for group in chosen])
        _, low, high = drawn.share(np.flatnonzero(np.isin(numbers, wrong)))
        covered += low <= 0.1 <= high
    assert covered >= 180


def test_too_few_groups_are_read_whole() -> None:
    chosen, drawn = drawn_groups([[5] * 40, [5] * 60], 20, 0)

    assert [len(one) for one in chosen] == [40, 60]
    assert drawn.read == drawn.rows == 500


def test_what_is_too_large_is_ten_million_rows() -> None:
    assert (place.LARGE, place.DRAWN) == (10_000_000, 2_000_000)
