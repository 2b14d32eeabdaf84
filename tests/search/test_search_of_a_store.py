"""What a store's own search loses is found and named, and nothing is of a sound one."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest

import embaudit
from embaudit.declared.chart import Chart
from embaudit.questions.search.curve import TriedSetting, least_change
from embaudit.questions.search.page import search_page
from embaudit.questions.search.report import SearchReport, look_at_search
from embaudit.stores.opened import open_store
from embaudit.stores.search import Hits, StoreSearch
from embaudit.words.errors import CorpusError
from embaudit.words.estimate import Estimate
from tests.commands import run_here
from tests.planted_indexes import INNER, L2, built, clustered, graph, on_the_ground, without_links_to, written

VECTORS = clustered()
UNEVEN = VECTORS * np.random.default_rng(2).uniform(0.2, 3, size=(len(VECTORS), 1)).astype(np.float32)


def looked_at(index: Any, folder: Path, **given: Any) -> SearchReport:
    return embaudit.search(written(index, folder / "index.faiss"), **({"rows": 1_500} | given))


def problems(report: SearchReport) -> set[str]:
    return {finding.name for finding in report.findings if finding.level == "problem"}


def embaudit_here(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_here(arguments, os.environ, Path.cwd())


SOUND: dict[str, Callable[[], Any]] = {
    "flat": lambda: built("Flat", VECTORS),
    "HNSW": lambda: graph(VECTORS, 32, 200, 128),
    "IVF of which half is probed": lambda: built("IVF16,Flat", VECTORS, nprobe=8),
    "eight bits, scalar": lambda: built("SQ8", VECTORS),
    "with ids of its own": lambda: with_ids(),
}


def with_ids() -> Any:
    index = faiss.IndexIDMap2(faiss.IndexFlatIP(VECTORS.shape[1]))
    index.add_with_ids(VECTORS, np.arange(len(VECTORS)) * 7 + 1)
    return index


@pytest.mark.parametrize("made", SOUND.values(), ids=SOUND)
def test_nothing_is_wrong_with_a_sound_store(made: Callable[[], Any], tmp_path: Path) -> None:
    report = looked_at(made(), tmp_path)

    assert report.verdict == "finds what it holds"
    assert report.exit_code == 0
    assert report.recall is not None
    assert report.recall.value > 0.99


# What is planted, and the finding that names it.
FAULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "one probe of many lists": (lambda: built("IVF256,Flat", VECTORS), "recall"),
    "a thin graph": (lambda: graph(VECTORS, 4, 4, 4), "recall"),
    "codes of two bytes": (lambda: built("PQ4x4", VECTORS), "same_codes"),
    "codes that are ranked again, of too few": (lambda: built("IVF16,PQ4x4,RFlat", VECTORS, nprobe=16), "recall"),
}


SLOW = ("codes that are ranked again, of too few", "a thin graph")


@pytest.mark.parametrize(
    ("made", "name"),
    [pytest.param(*one, id=what, marks=[pytest.mark.slow] * (what in SLOW)) for what, one in FAULTS.items()],
)
def test_each_fault_is_found_and_named(made: Callable[[], Any], name: str, tmp_path: Path) -> None:
    report = looked_at(made(), tmp_path)

    assert name in problems(report)
    assert report.exit_code == 1


def test_rows_that_no_link_leads_to_are_named(tmp_path: Path) -> None:
    index = graph(VECTORS, 32, 100, 128)
    planted = on_the_ground(index, 12)

    report = looked_at(without_links_to(index, planted), tmp_path)

    assert report.reached is not None
    assert sorted(report.reached.unreachable) == planted
    assert problems(report) == {"unreachable"}
    assert report.recall is not None
    assert report.recall.value > 0.98


def test_the_least_change_of_a_setting_that_is_enough_is_said(tmp_path: Path) -> None:
    report = looked_at(built("IVF256,Flat", VECTORS), tmp_path, recall=0.9)

    (recall,) = (finding for finding in report.findings if finding.name == "recall")
    enough = [one for one in report.tried if one.recall.value >= 0.9]
    assert recall.advice.startswith(f"nprobe {min(one.settings['nprobe'] for one in enough)} finds ")
    assert [one.settings["nprobe"] for one in report.tried] == sorted(one.settings["nprobe"] for one in report.tried)


def test_its_chart_has_every_setting_with_its_interval_and_the_present_one(tmp_path: Path) -> None:
    report = looked_at(built("IVF256,Flat", VECTORS), tmp_path, recall=0.9)
    parts = (part for section in search_page(report).sections for part in section.parts)
    (panel,) = next(part for part in parts if isinstance(part, Chart)).panels
    goal, bars, line, points, now = (layer.marks for layer in panel.layers)
    tried = sorted(report.tried, key=lambda one: one.times)
    assert [mark.y for mark in goal] == [0.9]
    assert [(mark.x, mark.y, mark.y2) for mark in bars] == [
        (one.times, one.recall.low, one.recall.high) for one in tried
    ]
    assert list(line) == list(points)
    assert [(mark.x, mark.y) for mark in points] == [(one.times, one.recall.value) for one in tried]
    assert all(
        mark.label.startswith(f"{one.shown}: {one.recall.value:.3f}") for mark, one in zip(line, tried, strict=True)
    )
    assert [(mark.x, mark.y) for mark in now] == [(1.0, report.tried[0].recall.value)]
    assert "nprobe 1:" in now[0].label


def test_of_one_dial_the_least_that_is_enough_is_advised_however_long_it_took() -> None:
    def tried(recall: float, times: float, **changed: int) -> TriedSetting:
        return TriedSetting({"nprobe": 1, "k_factor": 1, **changed}, changed, Estimate(recall, recall, recall), times)

    present, wide, wider = tried(0.5, 1.0), tried(0.96, 1.2, nprobe=4), tried(1.0, 1.1, nprobe=8)
    finer = tried(0.95, 1.15, k_factor=4)
    assert least_change([present, wide, wider], 0.9) is wide
    assert least_change([present, wide, wider, finer], 0.9) is finer, "of two dials the faster"
    assert least_change([present, wide, wider], 0.97) is wider
    assert least_change([present, wide], 0.97) is None


@pytest.mark.parametrize("setting", [4, *(pytest.param(one, marks=pytest.mark.slow) for one in (1, 64))])
def test_recall_is_what_own_code_measures(setting: int, tmp_path: Path) -> None:
    """Sets of ids, counted one by one, with FAISS asked directly."""
    indexes = {"nprobe": built("IVF64,Flat", VECTORS, L2), "efSearch": graph(VECTORS, 8, 20, 16)}
    for name, index in indexes.items():
        report = looked_at(index, tmp_path, query_settings={name: setting}, count=50)

        faiss.ParameterSpace().set_index_parameter(index, name, float(setting))
        assert report.plain is not None
        ids = [int(row) for row in report.profile.sample.numbers[:50]]  # type: ignore[union-attr]
        recalls = []
        for own in ids:
            distances = ((VECTORS.astype(np.float64) - VECTORS[own]) ** 2).sum(axis=1)
            nearest = [row for row in np.argsort(distances).tolist() if row != own][:10]
            given = [row for row in index.search(VECTORS[[own]], 11)[1][0].tolist() if row != own][:10]
            recalls.append(len(set(nearest) & set(given)) / 10)
        np.testing.assert_allclose(report.plain.first.recalls, recalls)


def test_a_metric_that_others_do_not_mean_is_looked_at(tmp_path: Path) -> None:
    inner = looked_at(built("Flat", UNEVEN, INNER), tmp_path)
    euclidean = looked_at(built("Flat", UNEVEN, L2), tmp_path)

    for report in (inner, euclidean):
        (metric,) = (finding for finding in report.findings if finding.name == "metric")
        assert metric.value is not None
        assert metric.value > 0.3
        assert metric.level == "look"
    assert {finding.name for finding in inner.findings} >= {"scores"}
    assert inner.ranked is not None
    assert inner.ranked.scores == "inner products"


def test_by_an_inner_product_short_rows_are_not_taken_for_lost(tmp_path: Path) -> None:
    report = looked_at(built("IVF4,Flat", UNEVEN, INNER, nprobe=4), tmp_path)

    assert problems(report) == set()


def faulty(file: Path, change: Callable[[StoreSearch], StoreSearch]) -> SearchReport:
    """A report on a store whose search is changed so."""
    store = open_store(file)
    assert store.search is not None
    opened = store.search
    return look_at_search(replace(store, search=lambda: change(opened())), rows=50, queries=30)


def test_results_that_are_too_few_or_twice_or_of_no_row_are_found(tmp_path: Path) -> None:
    file = written(built("Flat", VECTORS), tmp_path / "index.faiss")

    def answering(with_hits: Callable[[Hits], Hits]) -> Callable[[StoreSearch], StoreSearch]:
        def changed(search: StoreSearch) -> StoreSearch:
            return replace(search, find=lambda *asked: with_hits(search.find(*asked)))

        return changed

    few = faulty(file, answering(lambda hits: Hits(hits.ids[:4], hits.scores[:4])))
    twice = faulty(file, answering(lambda hits: Hits([*hits.ids[:-1], hits.ids[1]], hits.scores)))
    gone = faulty(file, answering(lambda hits: Hits([*hits.ids[:-1], 10**9], hits.scores)))

    assert "fewer" in problems(few)
    assert "repeated" in problems(twice)
    assert "gone" in problems(gone)
    assert "1000000000" in next(one.sentence for one in gone.findings if one.name == "gone")


def test_what_was_measured_is_kept_if_a_store_fails_in_the_middle(tmp_path: Path) -> None:
    file = written(built("IVF16,Flat", VECTORS, nprobe=4), tmp_path / "index.faiss")
    asked = 0

    def failing(search: StoreSearch) -> StoreSearch:
        def find(*given: Any) -> Hits:
            nonlocal asked
            asked += 1
            if asked > 80:
                raise CorpusError("The store answers with an error (503).", next_step="Look at its log.")
            return search.find(*given)

        return replace(search, find=find)

    report = faulty(file, failing)

    assert report.recall is not None
    assert any("503" in finding.sentence and finding.level == "not measured" for finding in report.findings)


def test_a_store_that_cannot_be_asked_is_named(tmp_path: Path) -> None:
    file = tmp_path / "rows.npy"
    np.save(file, VECTORS)

    report = embaudit.search(file)

    assert report.verdict == "could not be told"
    assert report.exit_code == 2
    assert "is no store that is searched by itself" in report.line


def test_longer_queries_are_cut_as_the_rows_are(tmp_path: Path) -> None:
    np.save(tmp_path / "queries.npy", VECTORS[:30])
    cut = VECTORS[:, :20] / np.linalg.norm(VECTORS[:, :20], axis=1, keepdims=True)

    report = looked_at(built("Flat", cut), tmp_path, queries=tmp_path / "queries.npy")

    assert report.queries == (30, "queries, given as vectors, cut to 20 numbers")
    assert report.verdict == "finds what it holds"


def test_shorter_queries_cannot_search(tmp_path: Path) -> None:
    np.save(tmp_path / "queries.npy", VECTORS[:30, :20])

    report = looked_at(built("Flat", VECTORS), tmp_path, queries=tmp_path / "queries.npy")

    assert problems(report) == {"another_dimension"}


def test_queries_may_be_vectors(tmp_path: Path) -> None:
    np.save(tmp_path / "queries.npy", VECTORS[:40] + np.float32(0.01))

    report = looked_at(built("Flat", VECTORS), tmp_path, queries=tmp_path / "queries.npy")

    assert report.queries == (40, "queries, given as vectors")
    # None of them is a row's own: each row that is nearest counts.
    assert report.plain is not None
    assert [ids[0] for ids in report.plain.first.given] == [str(row) for row in range(40)]


@pytest.mark.parametrize("rows", [1, 2, 9])
def test_a_store_of_few_rows_is_searched(rows: int, tmp_path: Path) -> None:
    report = looked_at(built("Flat", VECTORS[:rows]), tmp_path)

    assert problems(report) == set()
    assert any(finding.name == "few_rows" for finding in report.findings)


def test_the_command_says_it_as_json_and_a_page(tmp_path: Path) -> None:
    file = written(built("IVF256,Flat", VECTORS), tmp_path / "index.faiss")

    done = embaudit_here("search", str(file), "--json", "--out", str(tmp_path / "page.html"), "--rows", "100")

    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["verdict"] == "does not find what it holds"
    assert found["search"]["recall_at_10"]["value"] < 0.9
    assert found["settings"] == {"nprobe": 1}
    assert "Recall beside time" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--setting", "efSearch=3"), "efSearch is no setting of a query"),
        (("--setting", "nprobe"), "names no number"),
        (("--queries", "queries.txt"), "queries.txt is no store of vectors"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    file = written(built("IVF16,Flat", VECTORS), tmp_path / "index.faiss")
    queries = tmp_path / "queries.txt"
    queries.write_text("how are rows found\n", encoding="utf-8")
    given = [str(queries) if one == "queries.txt" else one for one in arguments]

    done = embaudit_here("search", str(file), *given)

    assert done.returncode == 2
    assert said in done.stderr
