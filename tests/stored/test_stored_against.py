"""Whether a checkpoint built an index: what is said of healthy, mixed and foreign ones."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run_here

import embaudit
from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.pages.html import render
from embaudit.questions.question import Progress
from embaudit.questions.vectors import reasons
from embaudit.questions.vectors.against import compare_sample
from embaudit.questions.vectors.every_row import find_foreign
from embaudit.questions.vectors.page import stored_page
from embaudit.questions.vectors.profile import SomeRows
from embaudit.questions.vectors.question import VectorsQuestion
from embaudit.questions.vectors.report import StoredReport
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions
from embaudit.stores.store import RowBatch
from embaudit.words.errors import EmbauditError


def exported(folder: Path, vectors: np.ndarray, texts: list[Any], name: str = "index.parquet") -> Path:
    ids = [f"chunk-{row}" for row in range(len(vectors))]
    pq.write_table(pa.table({"id": ids, "text": texts, "embedding": list(vectors)}), folder / name)
    return folder / name


def compared(tiny_index: Any, folder: Path, vectors: np.ndarray, **options: Any) -> StoredReport:
    place = exported(folder, vectors, options.pop("texts", tiny_index.texts))
    return embaudit.vectors(place, tiny_index.folder, device="cpu", **options)


def test_an_index_of_the_checkpoint_is_its_own(tiny_index: Any, tmp_path: Path) -> None:
    report = compared(tiny_index, tmp_path, tiny_index.vectors, rows=200)
    assert report.verdict == "wholly its own"
    assert report.against is not None
    assert report.against.share is not None
    low, high = report.against.share[1:]
    assert low == 0
    assert 0 < high < 0.02
    assert [finding.level for finding in report.findings if finding.level != "ok"] == []
    json.dumps(report.as_json(), allow_nan=False)


def test_rows_of_another_revision_are_counted_and_named(tiny_index: Any, tmp_path: Path) -> None:
    mixed = tiny_index.vectors.copy()
    foreign = np.arange(30, 70)
    mixed[foreign] = tiny_index.others[foreign]
    report = compared(tiny_index, tmp_path, mixed, rows=300, also=[tiny_index.other])
    assert report.verdict == "not wholly its own"
    assert report.against is not None
    assert report.against.share is not None
    value, low, high = report.against.share
    assert low <= 40 / 600 <= high
    assert low <= value <= high
    (reason,) = report.against.reasons
    assert reason.said == f"are those of {tiny_index.other}"
    assert {int(report.against.rows.numbers[place]) for place in reason.places} <= set(foreign.tolist())
    assert "text" in json.dumps(report.as_json(), allow_nan=False)
    assert f"are those of {tiny_index.other}" in render(stored_page(report)).replace("&#x2F;", "/")


@pytest.fixture
def _no_other_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rows whose reason is none of it, no other use of the checkpoint is searched for, which takes a second."""
    monkeypatch.setattr(reasons, "_of_other_use", lambda checkpoint, rows, left: ("", left[:0]))


def changed(tiny_index: Any, how: Callable[[str], str]) -> np.ndarray:
    return Encoder(tiny_index.load()).encode_texts([how(text) for text in tiny_index.texts])


def test_rows_with_a_prompt_are_explained(tiny_index: Any, tmp_path: Path) -> None:
    mixed = tiny_index.vectors.copy()
    mixed[:60] = changed(tiny_index, lambda text: f"query: {text}")[:60]
    report = compared(tiny_index, tmp_path, mixed, rows=600)
    assert report.against is not None
    (reason,) = report.against.reasons
    assert reason.said == "are the checkpoint's if it puts 'query: ' before texts"
    assert len(reason.places) == 60
    # All rows were sampled: the share is a count.
    assert report.against.share == (0.1, 0.1, 0.1)


@pytest.mark.slow
def test_rows_with_a_prompt_and_rows_with_another_pooling_are_both_explained(tiny_index: Any, tmp_path: Path) -> None:
    mixed = tiny_index.vectors.copy()
    mixed[:60] = changed(tiny_index, lambda text: f"query: {text}")[:60]
    other = load_checkpoint(str(tiny_index.folder), LoadOptions(device="cpu", pooling="cls"))
    mixed[60:90] = Encoder(other).encode_texts(tiny_index.texts[60:90])
    report = compared(tiny_index, tmp_path, mixed, rows=600)
    assert report.against is not None
    said = {
        reason.said: {int(report.against.rows.numbers[place]) for place in reason.places}
        for reason in report.against.reasons
    }
    assert said == {
        "are the checkpoint's if it puts 'query: ' before texts": set(range(60)),
        "are the checkpoint's if it takes cls instead of mean pooling": set(range(60, 90)),
    }


def by_range(vectors: np.ndarray) -> np.ndarray:
    """As sentence-transformers' quantize_embeddings."""
    low, high = vectors.min(axis=0), vectors.max(axis=0)
    return np.trunc((vectors - low) / (high - low) * 255 - 128).astype(np.int8)


@pytest.mark.parametrize(
    "form", [lambda vectors: vectors, lambda vectors: np.round(vectors * 127).astype(int), by_range]
)
def test_texts_out_of_step_with_vectors_are_told(
    form: Callable[[np.ndarray], np.ndarray], tiny_index: Any, tmp_path: Path
) -> None:
    report = compared(tiny_index, tmp_path, form(np.roll(tiny_index.vectors, 1, axis=0)), rows=200)
    assert report.against is not None
    assert "the text of the row before: texts and vectors are out of step" in report.line
    counted = [len(one.places) for one in report.against.reasons if "out of step" in one.said]
    assert sum(counted) >= 0.95 * report.against.is_foreign.sum()


def test_one_vector_for_many_texts_is_told(tiny_index: Any, tmp_path: Path) -> None:
    mixed = tiny_index.vectors.copy()
    mixed[100:200] = mixed[7]
    report = compared(tiny_index, tmp_path, mixed, rows=300)
    assert report.against is not None
    assert [reason.said for reason in report.against.reasons] == [
        "have the vector of other texts: one vector was given to several"
    ]


@pytest.mark.usefixtures("_no_other_use")
def test_texts_that_changed_since_do_not_pass_for_another_revision(tiny_index: Any, tmp_path: Path) -> None:
    mixed = tiny_index.vectors.copy()
    mixed[:150] = mixed[np.random.default_rng(0).permutation(150) + 300]
    report = compared(tiny_index, tmp_path, mixed, rows=100)
    assert "changed or mixed up" in report.line


@pytest.mark.parametrize("how", ["float16", "int8", "bits", "first half"])
def test_an_index_in_lower_precision_is_the_checkpoints(how: str, tiny_index: Any, tmp_path: Path) -> None:
    ours = tiny_index.vectors
    stored = {
        "float16": ours.astype(np.float16),
        "int8": np.round(ours * 127).astype(np.int8),
        "bits": np.packbits(ours > 0, axis=1),
        "first half": ours[:, :16],
    }[how]
    report = compared(tiny_index, tmp_path, stored, rows=300)
    assert (report.verdict, how) == ("wholly its own", how)
    assert any(finding.name == "stored_form" for finding in report.findings) == (how != "float16")


def test_an_index_computed_in_bfloat16_is_the_checkpoints_and_said_to_be(tiny_index: Any, tmp_path: Path) -> None:
    half = load_checkpoint(str(tiny_index.folder), LoadOptions(device="cpu", dtype="bfloat16"))
    vectors = Encoder(half).encode_texts(tiny_index.texts)
    report = compared(tiny_index, tmp_path, vectors, rows=200)
    assert report.verdict == "wholly its own"
    assert report.against is not None
    assert report.against.rounding == "bfloat16"
    # A part of an index in another precision is the checkpoint's, too.
    mixed = tiny_index.vectors.copy()
    mixed[:60] = vectors[:60]
    report = compared(tiny_index, tmp_path, mixed, rows=600)
    assert report.verdict == "wholly its own"
    assert [finding.name for finding in report.findings if finding.level == "look"] == ["two_precisions"]


@pytest.mark.slow
def test_a_revision_that_is_hardly_different_is_not_taken_for_rounding(tiny_index: Any, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).normal(size=tiny_index.vectors.shape)
    mixed = tiny_index.vectors.copy()
    mixed[:60] += (0.03 * noise / np.linalg.norm(noise, axis=1, keepdims=True))[:60].astype(np.float32)
    report = compared(tiny_index, tmp_path, mixed, rows=600)
    assert report.against is not None
    assert report.against.share == (0.1, 0.1, 0.1)


@pytest.mark.parametrize("foreign", [0, 300])
def test_what_the_sample_says_is_said_before_every_row_is_encoded(
    foreign: int, tiny_index: Any, tmp_path: Path
) -> None:
    mixed = tiny_index.vectors.copy()
    mixed[:foreign] = tiny_index.others[:foreign]
    said: list[str] = []
    question = VectorsQuestion.of(
        store=exported(tmp_path, mixed, tiny_index.texts),
        function=tiny_index.folder,
        device="cpu",
        rows=100,
        every_row=True,
        with_explanation=False,
    )
    report: Any = question.answer(Progress(said.append))
    (line,) = said
    is_own = "The index is wholly the checkpoint's" in line
    assert line.startswith("So far: The index is ")
    assert line.endswith(" Every row comes next.")
    assert is_own is (report.verdict == "wholly its own") is (not foreign)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_every_row_that_it_did_not_build_is_listed_and_no_other(suffix: str, tiny_index: Any, tmp_path: Path) -> None:
    mixed = tiny_index.vectors.copy()
    foreign = np.random.default_rng(1).choice(600, 18, replace=False)
    mixed[foreign] = tiny_index.others[foreign]
    table = tmp_path / f"rows.{suffix}"
    report = compared(tiny_index, tmp_path, mixed, rows=100, table=table, with_explanation=False)
    assert report.every_row is not None
    assert (report.every_row.count, report.every_row.compared) == (18, 600)
    import pandas as pd

    rows = pd.read_csv(table) if suffix == "csv" else pd.read_parquet(table)
    assert sorted(rows["row"]) == sorted(foreign + 1)
    assert set(rows["id"]) == {f"chunk-{row}" for row in foreign}
    assert list(rows["text"]) == [tiny_index.texts[row - 1] for row in rows["row"]]
    assert (rows["apart"] > 0.01).all()


def test_an_interrupt_keeps_what_was_found(tiny_index: Any, tmp_path: Path) -> None:
    mixed = tiny_index.vectors.copy()
    mixed[[3, 500]] = tiny_index.others[[3, 500]]
    index = open_store(str(exported(tmp_path, mixed, tiny_index.texts)), ReadOptions())

    def batches(most: int) -> Iterator[RowBatch]:
        """Of 200 rows; Ctrl-C comes after so many."""
        for start in range(0, 600, 200):
            if start == most:
                raise KeyboardInterrupt
            some = slice(start, start + 200)
            ids = [f"chunk-{row}" for row in range(start, start + 200)]
            yield RowBatch(start, 200, {32: (np.arange(200), mixed[some])}, tiny_index.texts[some], ids)

    numbers = np.arange(600)
    sample = SomeRows(numbers, mixed, tuple(tiny_index.texts), (None,) * 600)
    function = CheckpointFunction(tiny_index.load())
    encode = function.encode
    against = compare_sample(function, sample, 600, load=lambda name: function, with_explanation=False)
    encoded: list[int] = []
    function.encode = lambda texts, *given: encoded.append(len(texts)) or encode(texts, *given)  # type: ignore[method-assign, func-returns-value]
    given = {"table": tmp_path / "rows.csv", "kept_in": tmp_path}
    found = find_foreign(replace(index, batches=lambda: batches(200)), function, against, **given)
    assert (found.is_whole, found.read, found.count) == (False, 200, 1)
    assert numbered(tmp_path / "rows.csv") == ["4"]
    assert any("Interrupted after row 200" in finding.sentence for finding in found.findings())
    found = find_foreign(replace(index, batches=lambda: batches(600)), function, against, **given)
    assert (found.is_whole, found.compared, found.count) == (True, 600, 2)
    assert numbered(tmp_path / "rows.csv") == ["4", "501"]
    # The first 200 were not encoded again; and a comparison that is done is forgotten.
    assert sum(encoded) == len(set(tiny_index.texts[:200])) + len(set(tiny_index.texts[200:]))
    assert not list(tmp_path.glob("rows-*"))


def numbered(table: Path) -> list[str]:
    return [line.split(",")[0] for line in table.read_text().splitlines()[1:]]


def test_without_texts_it_is_said_what_can_be_told(tiny_index: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", tiny_index.vectors)
    report = embaudit.vectors(tmp_path / "v.npy", tiny_index.folder, device="cpu")
    assert report.verdict == "could not be told"
    assert any("32 dimensions, as many as the checkpoint's 32" in finding.sentence for finding in report.findings)
    (tmp_path / "t.txt").write_text("\n".join(tiny_index.texts))
    report = embaudit.vectors(tmp_path / "v.npy", tiny_index.folder, device="cpu", texts=tmp_path / "t.txt", rows=50)
    assert report.verdict == "wholly its own"


def test_another_dimension_and_rows_without_text(tiny_index: Any, tmp_path: Path) -> None:
    longer = np.concatenate([tiny_index.vectors, tiny_index.vectors], axis=1)
    report = compared(tiny_index, tmp_path, longer, rows=50)
    assert report.verdict == "not wholly its own"
    assert "have 64 dimensions, the checkpoint's 32" in report.line
    texts: list[str | None] = [None if row < 100 else text for row, text in enumerate(tiny_index.texts)]
    report = compared(tiny_index, tmp_path, tiny_index.vectors, texts=texts, rows=600)
    assert report.against is not None
    assert report.against.population == 500
    assert any("100 of 600 rows have a vector and no text" in finding.sentence for finding in report.findings)
    pq.write_table(
        pa.table({"text": pa.array([], pa.string()), "v": pa.array([], pa.list_(pa.float32()))}), tmp_path / "e.pq"
    )
    assert embaudit.vectors(tmp_path / "e.pq").verdict == "could not be told"


@pytest.mark.parametrize("dimension", [16, 40])
def test_of_another_dimension_nothing_is_tried(dimension: int, tiny_index: Any, tmp_path: Path) -> None:
    """Of longer vectors nothing is encoded, either; of shorter ones it is seen that they are no part of the others."""
    theirs = np.random.default_rng(0).normal(size=(600, dimension)).astype(np.float32)
    report = compared(tiny_index, tmp_path, theirs, rows=300)
    (finding,) = [one for one in report.findings if one.level == "problem"]
    assert finding.name == "another_dimension"
    assert f"have {dimension} dimensions, the checkpoint's 32" in finding.sentence
    assert report.against is not None
    assert report.against.reasons == ()
    assert report.as_json()["against"]["rows_encoded"] == (0 if dimension > 32 else 32)


def test_the_first_dimensions_of_another_use_are_still_explained(tiny_index: Any, tmp_path: Path) -> None:
    report = compared(tiny_index, tmp_path, changed(tiny_index, lambda text: f"query: {text}")[:, :16], rows=300)
    assert report.against is not None
    assert [reason.said for reason in report.against.reasons][:1] == [
        "are the checkpoint's if it puts 'query: ' before texts; it keeps the first 16 of 32 dimensions"
    ]


@pytest.mark.usefixtures("_no_other_use")
@pytest.mark.parametrize(("before", "after"), [(40, 0), (3, 0), (30, 20), (300, 0)])
def test_rows_out_of_step_are_counted_one_by_one(before: int, after: int, tiny_index: Any, tmp_path: Path) -> None:
    """Among rows of another revision, in no order: a few that are looked at first say nothing of the others."""
    vectors, theirs = tiny_index.vectors, tiny_index.others
    order = np.random.default_rng(4).permutation(np.arange(1, 599))
    mixed = vectors.copy()
    mixed[order[: before + after + 60]] = theirs[order[: before + after + 60]]
    # Not bit by bit: one vector of several texts has another reason.
    mixed[order[:before]] = vectors[order[:before] - 1] * 1.5
    mixed[order[before : before + after]] = vectors[order[before : before + after] + 1] * 1.5
    report = compared(tiny_index, tmp_path, mixed, rows=600)
    assert report.against is not None
    counted = {
        which: sum(len(one.places) for one in report.against.reasons if f"of the row {which}" in one.said)
        for which in ("before", "after")
    }
    # A few may be missed among those that are looked at first, and none is said that is not.
    assert counted["before"] in ((before,) if before > 20 else (0, before))
    assert counted["after"] in ((after,) if after > 20 or not after else (0, after))


@pytest.mark.usefixtures("_no_other_use")
def test_rows_in_lower_precision_are_counted_one_by_one(tiny_index: Any, tmp_path: Path) -> None:
    """Texts that were edited a little are as near as bfloat16, and are not the checkpoint's in it."""
    half = load_checkpoint(str(tiny_index.folder), LoadOptions(device="cpu", dtype="bfloat16"))
    mixed = tiny_index.vectors.copy()
    mixed[:60] = Encoder(half).encode_texts(tiny_index.texts[:60])
    noise = np.random.default_rng(0).normal(size=(60, 32))
    noise -= (noise * mixed[60:120]).sum(axis=1, keepdims=True) * mixed[60:120]
    mixed[60:120] += (0.02 * noise / np.linalg.norm(noise, axis=1, keepdims=True)).astype(np.float32)
    report = compared(tiny_index, tmp_path, mixed, rows=600)
    assert report.against is not None
    rounded = [place for reason in report.against.reasons if reason.is_rounding for place in reason.places]
    numbers = report.against.rows.numbers[rounded]
    assert (numbers < 60).sum() == 60
    # Of 32 dimensions, errors agree by chance in a few rows.
    assert (numbers >= 60).sum() <= 15


def test_the_command_and_its_exit_codes(tiny_index: Any, tmp_path: Path) -> None:
    def embaudit_here(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_here(arguments, dict(os.environ), tmp_path)

    good = str(exported(tmp_path, tiny_index.vectors, tiny_index.texts, "good.parquet"))
    bad = tiny_index.vectors.copy()
    bad[:9] = np.nan
    broken = str(exported(tmp_path, bad, tiny_index.texts, "bad.parquet"))
    np.save(tmp_path / "v.npy", tiny_index.vectors)
    folder = str(tiny_index.folder)
    page = tmp_path / "page.html"
    own = ("--device", "cpu", "--rows", "100")
    done = embaudit_here("vectors", folder, good, *own, "--out", str(page), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == "wholly its own"
    assert "wholly the checkpoint" in page.read_text(encoding="utf-8")
    assert embaudit_here("vectors", good).returncode == 0
    done = embaudit_here("vectors", broken, "--markdown")
    assert done.returncode == 1
    assert "9 of 600 vectors hold NaN or infinity, row 1 first" in done.stdout
    assert embaudit_here("vectors", folder, broken, *own).returncode == 1
    assert embaudit_here("vectors", folder, str(tmp_path / "v.npy"), *own).returncode == 2
    done = embaudit_here("vectors", good, "--all")
    assert (done.returncode, "need a function" in done.stderr) == (2, True)
    done = embaudit_here("vectors", folder, good, "--table", str(tmp_path / "rows.txt"))
    assert (done.returncode, ".csv or .parquet" in done.stderr) == (2, True)
    with pytest.raises(EmbauditError, match="no column 'txt'"):
        embaudit.vectors(good, text="txt")


def test_texts_that_a_checkpoint_reads_alike_are_not_other_texts(tiny_index: Any, tmp_path: Path) -> None:
    """Rows of another revision, each once more in capitals, which it does not read: they share vectors by right."""
    texts = [*tiny_index.texts, *(text.upper() for text in tiny_index.texts[:60])]
    mixed = np.concatenate([tiny_index.vectors, tiny_index.others[:60]])
    mixed[:60] = tiny_index.others[:60]
    report = compared(tiny_index, tmp_path, mixed, texts=texts, rows=660)
    assert report.against is not None
    assert int(report.against.is_foreign.sum()) == 120
    assert [reason.is_known for reason in report.against.reasons] == [False]
