"""Rows that come up for many unrelated queries: planted ones are found and named, ordinary ones and copies are not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from words_function import MeanOfWords

import embaudit
from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.corpora.load import load_corpus
from embaudit.pages.html import render
from embaudit.questions.report import CrowdingRow, WrongRow
from embaudit.questions.vectors.crowding import Sentinels, crowding_in, fragments
from embaudit.questions.vectors.forms import unit_float32
from embaudit.questions.vectors.profile import profile_of
from embaudit.questions.vectors.question import VectorsQuestion
from embaudit.questions.vectors.report import StoredReport
from embaudit.stores.opened import open_store


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [text.text for text in load_corpus("wikipedia").texts]


@pytest.fixture(scope="module")
def function(texts: list[str]) -> MeanOfWords:
    return MeanOfWords(texts)


@pytest.fixture(scope="module")
def made(texts: list[str], function: MeanOfWords) -> str:
    return function.near(texts)


def written(folder: Path, function: MeanOfWords, texts: Sequence[str], vectors: np.ndarray | None = None) -> Path:
    rows = function.encode(texts) if vectors is None else vectors
    ids = [f"doc-{row}" for row in range(len(texts))]
    pq.write_table(pa.table({"id": ids, "text": list(texts), "embedding": list(rows)}), folder / "store.parquet")
    return folder / "store.parquet"


def asked(store: Path, function: Any, **options: Any) -> StoredReport:
    report = embaudit.vectors(store, function, **options)
    assert isinstance(report, StoredReport)
    return report


def test_a_text_that_was_made_to_come_up_is_named(
    tmp_path: Path, texts: list[str], function: MeanOfWords, made: str
) -> None:
    report = asked(written(tmp_path, function, [*texts, made]), function)
    assert (report.verdict, report.exit_code) == ("not sound", 1)
    (found,) = [one for one in report.findings if one.name == "crowding_rows"]
    assert found.level == "problem"
    assert f"doc-{len(texts)}" in found.sentence
    assert f"--unexpected doc-{len(texts)}" in found.advice
    assert report.line.startswith("The index is not sound: 1 row is among the first 3 for many unrelated queries")
    (row,) = report.rows()[CrowdingRow]
    assert set(row) == set(CrowdingRow.table.columns) - {"answer_id", "place"}
    assert row["row"] == f"doc-{len(texts)}"
    assert row["met"] / row["sentinels"] == pytest.approx(found.value)
    assert row["text"].startswith(made[:40])
    assert [one["finding"] for one in report.rows()[WrongRow]] == ["crowding_rows"]
    assert report.as_json()["crowding"]["rows"] == [row]
    json.dumps(report.as_json(), allow_nan=False)
    page = render(report.page())
    assert "Rows that crowd" in page
    assert f"{row['met']} of {row['sentinels']}" in page


def test_what_it_met_and_displaced_is_that_of_loops(
    tmp_path: Path, texts: list[str], function: MeanOfWords, made: str
) -> None:
    stored = [*texts, made]
    store = written(tmp_path, function, stored)
    (row,) = asked(store, function).rows()[CrowdingRow]
    sample = profile_of(open_store(store), 0).sample.with_text
    sentinels, places = fragments(sample)
    assert len(sentinels) == row["sentinels"]
    vectors = function.encode(stored).astype(np.float64)
    met, instead = 0, set()
    for words, own in zip(sentinels, sample.numbers[places], strict=True):
        assert words in " ".join(stored[own].split())
        cosines = vectors @ function.encode([words])[0]
        best = sorted((place for place in range(len(stored)) if place != own), key=lambda place: -cosines[place])
        if len(texts) in best[: row["first"]]:
            met += 1
            instead.add(best[row["first"]])
    assert (row["met"], row["displaced"]) == (met, len(instead))


def test_ordinary_rows_are_not(tmp_path: Path, texts: list[str], function: MeanOfWords) -> None:
    report = asked(written(tmp_path, function, texts), function)
    assert (report.verdict, report.exit_code) == ("wholly its own", 0)
    (found,) = [one for one in report.findings if one.name == "crowding_rows"]
    assert (found.level, report.rows()[CrowdingRow]) == ("ok", [])
    assert report.crowding is not None
    assert f"{report.crowding.most.met} of {report.crowding.sentinels}" in found.sentence


def test_a_text_is_not_named_for_its_copies(tmp_path: Path, texts: list[str], function: MeanOfWords) -> None:
    report = asked(written(tmp_path, function, [*texts, *[texts[5]] * 400]), function)
    assert report.crowding is not None
    assert report.crowding.rows == len(set(texts))
    assert report.rows()[CrowdingRow] == []


def test_copies_of_a_made_text_are_one_row_and_all_are_meant(
    tmp_path: Path, texts: list[str], function: MeanOfWords, made: str
) -> None:
    report = asked(written(tmp_path, function, [*texts, made, made, made]), function)
    (row,) = report.rows()[CrowdingRow]
    assert (row["row"], row["copies"]) == (f"doc-{len(texts)}", 3)
    assert report.crowding is not None
    assert report.crowding.numbers.tolist() == [len(texts) + one for one in range(3)]


@pytest.mark.parametrize("kept", [30, 49])
def test_of_few_texts_nothing_is_said(tmp_path: Path, texts: list[str], function: MeanOfWords, kept: int) -> None:
    report = asked(written(tmp_path, function, texts[:kept]), function)
    assert report.crowding is None
    assert "told from 50 different texts on" in render(report.page())


def test_queries_of_another_function_say_nothing(
    tmp_path: Path, texts: list[str], function: MeanOfWords, made: str
) -> None:
    report = asked(written(tmp_path, function, [*texts, made]), MeanOfWords(texts, seed=1))
    assert report.verdict == "not wholly its own"
    assert report.crowding is None
    assert [one for one in report.findings if one.name == "crowding_rows"] == []


def test_without_a_function_or_texts_nothing_is_said(
    tmp_path: Path, texts: list[str], function: MeanOfWords, made: str
) -> None:
    store = written(tmp_path, function, [*texts, made])
    report = embaudit.vectors(store)
    assert isinstance(report, StoredReport)
    assert report.crowding is None
    np.save(tmp_path / "vectors.npy", function.encode([*texts, made]))
    assert asked(tmp_path / "vectors.npy", function).crowding is None


def test_bytes_have_no_cosines_to_queries(tmp_path: Path, texts: list[str], function: MeanOfWords) -> None:
    codes = np.clip(function.encode(texts) * 127 + 128, 0, 255).astype(np.uint8)
    assert asked(written(tmp_path, function, texts, codes), function).crowding is None


def test_texts_without_spaces_have_sentinels(tmp_path: Path) -> None:
    letters = [chr(0x4E00 + one) for one in range(400)]
    generator = np.random.default_rng(0)
    texts = ["".join(generator.choice(letters, 60)) for _ in range(80)]
    sent: list[str] = []

    def encode(some: Sequence[str]) -> np.ndarray:
        sent.extend(some)
        return np.array([[text.count(letter) + 0.01 for letter in letters] for text in some], dtype=np.float32)

    ids = [str(row) for row in range(len(texts))]
    pq.write_table(pa.table({"id": ids, "text": texts, "embedding": list(encode(texts))}), tmp_path / "x.parquet")
    sent.clear()
    assert asked(tmp_path / "x.parquet", encode).crowding is not None
    parts = [text for text in sent if 8 <= len(text) <= 20]
    assert len(parts) >= len(texts)
    assert all(any(part in text for text in texts) for part in parts)


def test_counts_and_means_are_those_of_the_whole_matrix_however_rows_come() -> None:
    """N(x), m(x) and each sentinel's first, as their definitions have them, without each sentinel's own row."""
    generator = np.random.default_rng(1)
    queries, units = (unit_float32(generator.normal(size=(count, 12))) for count in (60, 700))
    own = generator.integers(0, 700, 60)
    sentinels = Sentinels(queries, own, np.arange(700))
    for start in range(0, 700, 128):
        part = np.arange(start, min(start + 128, 700))
        sentinels.add(part, units[part])
    assert sentinels.first == 7
    cosines = (queries @ units.T).astype(np.float64)
    cosines[np.arange(60), own] = np.nan
    nearest = np.argsort(np.where(np.isnan(cosines), -9, cosines), axis=1)[:, ::-1][:, :7]
    wanted = np.bincount(nearest.ravel(), minlength=700)
    assert sentinels.counts(sentinels.rows, 7).tolist() == wanted.tolist()
    np.testing.assert_allclose(sentinels.means, np.nanmean(cosines, axis=0), atol=1e-6)


def test_a_row_that_came_and_crowds_is_open_until_it_is_gone_or_accepted(
    tmp_path: Path, texts: list[str], function: MeanOfWords, made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBAUDIT_HOME", str(tmp_path / "home"))

    def night(rows: Sequence[str], *, keep: bool = True) -> StoredReport:
        store = written(tmp_path, function, rows)
        report = VectorsQuestion(store=str(store), function=function, since_last=True).answer()
        assert isinstance(report, StoredReport)
        if keep:
            report.remember()
        return report

    assert night(texts[:-5]).level == "ok"
    more = [*texts[:-5], made, *texts[-5:]]
    came = night(more)
    assert (came.level, came.exit_code) == ("problem", 1)
    assert (
        f"1 of the 6 rows added or overwritten comes up for many unrelated queries: doc-{len(texts) - 5}." in came.line
    )
    assert [row["row"] for row in came.rows()[WrongRow]] == [f"doc-{len(texts) - 5}"]
    assert [row["row"] for row in came.rows()[CrowdingRow]] == [f"doc-{len(texts) - 5}"]
    still = night(more, keep=False)
    assert still.level == "problem"
    assert "Open since" in still.line
    assert came.since is not None
    assert still.accept(came.since.now).level == "ok"
    assert night(texts).level == "ok"


@pytest.mark.slow
def test_a_text_made_by_the_gradients_of_a_checkpoint_is_named(minilm: Checkpoint, texts: list[str]) -> None:
    """The attack that it is for: words exchanged along the gradient of the mean cosine to queries."""
    from benchmarks.crowding import Remembering, flipped, store_of

    rows, encoder, function = texts[:80], Encoder(minilm), Remembering(minilm)
    # What is asked of a store is about what it holds.
    queries = [" ".join(text.split()[2:8]) for text in texts[150:170]]
    wanted, draw = unit_float32(encoder.encode_texts(queries)), np.random.default_rng(0)
    planted = flipped(minilm, wanted, queries, draw, steps=20, messages=[""])
    vectors = encoder.encode_texts([*rows, planted])
    found = crowding_in(store_of(vectors, [*rows, planted]), function)
    assert found is not None
    assert [hub.number for hub in found.crowding] == [len(rows)]
    without = crowding_in(store_of(vectors[:-1], rows), function)
    assert without is not None
    assert without.crowding == ()
