"""Codes, cuts and recall against slow ones, one coordinate at a time, and clouds whose answer is known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import floor, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measure_alone import run_of
from scipy.stats import ortho_group
from tiny import tiny_bert

from embaudit.corpora.downstream.retrieval import overlaps
from embaudit.declared.chart import Chart
from embaudit.declared.rule import Finding
from embaudit.measures.collection import SCHEMA, TABLE, Searched
from embaudit.measures.compression import MEASURE, CompressionRow, CompressionSettings
from embaudit.measures.compression.findings import findings, section
from embaudit.measures.compression.steps import (
    CANDIDATES,
    MIN_DOCUMENTS,
    WAYS,
    Compressed,
    bits,
    compressed_search,
    cut,
    declared_cut,
    estimate,
    hamming,
    measure,
    read_back,
    rescored,
    search_compressed,
    similarities,
)
from embaudit.measures.quality.material import Collection
from embaudit.measures.run import Run
from embaudit.steps.results import stage_rows
from embaudit.steps.staging.stage import read_rows
from embaudit.words.errors import NotMeasurable
from embaudit.words.estimate import Estimate


def cloud(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, n, d]).normal(size=(n, d)).astype(np.float32)


def searched(queries: np.ndarray, documents: np.ndarray, similarity: str = "cosine") -> Searched:
    """A collection in which each query's most similar document is relevant."""
    nearest = (unit(queries) @ unit(documents).T).argmax(axis=1)
    names = tuple(map(str, range(len(queries)))), tuple(f"document {place}" for place in range(len(documents)))
    relevant = tuple({int(place): 1.0} for place in nearest)
    return Searched(Collection("made up", *names, relevant), queries, documents, similarity)


def unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True))


def by_way(one: Searched) -> dict[str, Compressed]:
    return {found.way: found for found in search_compressed(one)}


# ---- by definition ----


def slow_similarities(queries: np.ndarray, documents: np.ndarray, way: str) -> list[list[float]]:
    """Cosines with the codes of each document, one coordinate after the other."""
    d = int(documents.shape[1])
    kept = d // {"first half": 2, "first quarter": 4, "first eighth": 8, "first quarter, int8": 4}.get(way, 1)
    asked, known = queries[:, :kept].astype(float).tolist(), documents[:, :kept].astype(float).tolist()
    if way.endswith("int8"):
        if kept < d:
            lengths = [sqrt(sum(x * x for x in row)) for row in documents.astype(float).tolist()]
            known = [
                [x * whole / sqrt(sum(y * y for y in row)) for x in row]
                for row, whole in zip(known, lengths, strict=True)
            ]
        for i in range(kept):
            low, high = min(row[i] for row in known), max(row[i] for row in known)
            step = (high - low) / 255
            for row in known:
                row[i] = low + step * (min(floor((row[i] - low) / step), 255) + 0.5)
    return [[slow_cosine(q, x) for x in known] for q in asked]


def slow_cosine(q: list[float], x: list[float]) -> float:
    return sum(a * b for a, b in zip(q, x, strict=True)) / sqrt(sum(a * a for a in q)) / sqrt(sum(b * b for b in x))


@pytest.mark.parametrize("way", [way for way in WAYS if "binary" not in way])
def test_similarities_are_those_of_loops(way: Any) -> None:
    one = searched(cloud(4, 16), cloud(30, 16))
    kept = {found.way: found.kept for found in search_compressed(one)}[way]
    found = similarities(one, way, kept)
    assert found == pytest.approx(np.array(slow_similarities(one.queries, one.documents, way)), abs=1e-9)


def test_bits_are_compared_one_by_one() -> None:
    queries, documents = cloud(5, 24), cloud(60, 24)
    found = hamming(queries, documents, 0)
    scores = rescored(found, queries, documents)
    for q, query in enumerate(queries):
        apart = [sum((a > 0) != (b > 0) for a, b in zip(query, x, strict=True)) for x in documents]
        # Ties are broken by less than a bit.
        assert np.ceil(found[q]).astype(int).tolist() == [-one for one in apart]
        order = sorted(range(60), key=lambda place: -found[q, place])[:CANDIDATES]
        for place in range(60):
            signed = sum(float(a) if b > 0 else -float(a) for a, b in zip(query, documents[place], strict=True))
            assert scores[q, place] == (pytest.approx(signed, rel=1e-6) if place in order else -np.inf)


# Its import takes seconds.
@pytest.mark.slow
def test_codes_are_those_of_sentence_transformers() -> None:
    quantization = pytest.importorskip("sentence_transformers.util.quantization")
    documents = cloud(200, 16)
    codes = quantization.quantize_embeddings(documents, "uint8").astype(np.float64)
    low, high = documents.min(axis=0), documents.max(axis=0)
    # A few codes in a thousand fall on the other side of an edge: theirs are computed in float32.
    theirs = low + (high - low) / 255 * (codes + 0.5)
    assert np.isclose(read_back(documents), theirs, atol=1e-5).mean() > 0.995
    packed = quantization.quantize_embeddings(documents, "ubinary")
    assert (np.unpackbits(packed, axis=1) == bits(documents)).all()


def test_recall_and_ndcg_are_those_of_sorted_lists() -> None:
    one = searched(cloud(12, 16), cloud(50, 16))
    found = by_way(one)["first quarter"]
    whole = slow_similarities(one.queries, one.documents, "float32")
    less = slow_similarities(one.queries, one.documents, "first quarter")
    for q in range(12):
        ten, others = (sorted(range(50), key=lambda place: -row[place])[:10] for row in (whole[q], less[q]))
        assert found.recall[q] == pytest.approx(len({*ten} & {*others}) / 10)
        (relevant,) = one.collection.relevant[q]
        gain = 1 / np.log2(others.index(relevant) + 2) if relevant in others else 0.0
        assert found.ndcg[q] == pytest.approx(gain)


# ---- what is known ----


def test_float32_is_equal_to_itself_and_int8_keeps_nearly_all() -> None:
    found = by_way(searched(cloud(40, 128), cloud(300, 128)))
    assert found["float32"].recall.tolist() == [1.0] * 40
    assert found["float32"].ndcg.tolist() == [1.0] * 40
    assert found["int8"].recall.mean() > 0.97
    assert found["binary, rescored"].recall.mean() > found["binary"].recall.mean() + 0.03
    assert {way: (one.kept, one.bytes) for way, one in found.items()} == {
        "float32": (128, 512),
        "int8": (128, 128),
        "binary": (128, 16),
        "binary, rescored": (128, 16),
        "first half": (64, 256),
        "first quarter": (32, 128),
        "first eighth": (16, 64),
        "first quarter, int8": (32, 32),
    }


def test_bits_keep_less_of_fewer_dimensions() -> None:
    """Ten documents around each of 30 centres in isotropic directions, and a query beside each centre."""
    kept = []
    for d in (64, 256, 1024):
        centres = cloud(30, d)
        documents = np.repeat(centres, 10, axis=0) + 1.5 * cloud(300, d)
        one = searched((centres + cloud(30, d, 1)).astype(np.float32), documents.astype(np.float32))
        found = hamming(one.queries, one.documents, 0)
        kept.append(float(overlaps(one.ranking(one.similarities()), one.ranking(found)).mean()))
    assert kept[0] < kept[1] - 0.1 < kept[2] - 0.1
    assert kept[2] > 0.98


def test_no_dimension_is_special_in_a_turned_space_and_the_first_are_where_variance_falls() -> None:
    documents, queries = cloud(300, 64), cloud(60, 64)
    falling = (np.arange(1, 65) ** -0.7).astype(np.float32)
    turn = ortho_group.rvs(64, random_state=0)
    turned, sorted_ = (
        by_way(searched((queries * falling @ one).astype(np.float32), (documents * falling @ one).astype(np.float32)))
        for one in (turn, np.eye(64))
    )
    for way in ("first half", "first quarter", "first eighth"):
        control, other = turned[way].control, sorted_[way].control
        assert control is not None
        assert other is not None
        excess, *_ = estimate(turned[way].recall - control.recall, np.arange(60))
        assert abs(excess) < 5 * control.spread + 0.02, way
        excess, low, _ = estimate(sorted_[way].recall - other.recall, np.arange(60))
        assert low is not None
        assert low > 0.1, way


@settings(max_examples=4)
@given(seed=st.integers(0, 1000), scale=st.floats(1e-2, 1e2))
def test_scale_does_not_matter(seed: int, scale: float) -> None:
    """A power of two is exact: others move a coordinate across the edge of a step."""
    queries, documents = cloud(12, 16, seed), cloud(40, 16, seed + 1)
    power = np.float32(2.0 ** round(np.log2(scale)))
    before, after = by_way(searched(queries, documents)), by_way(searched(queries * power, documents * power))
    for way, one in before.items():
        assert after[way].recall.tolist() == one.recall.tolist(), way


@settings(max_examples=10)
@given(seed=st.integers(0, 1000))
def test_a_round_trip_moves_no_coordinate_by_more_than_half_a_step(seed: int) -> None:
    documents = cloud(30, 8, seed)
    step = np.ptp(documents.astype(np.float64), axis=0) / 255
    # The greatest is read back half a step above itself.
    assert (np.abs(read_back(documents) - documents) <= step * (0.5 + 1e-6)).all()


def test_a_cut_keeps_lengths() -> None:
    vectors = cloud(20, 8) * np.arange(1, 21, dtype=np.float32)[:, None]
    assert np.linalg.norm(cut(vectors, [0, 3]), axis=1) == pytest.approx(np.linalg.norm(vectors, axis=1), rel=1e-6)
    vectors[3, :2] = 0
    assert cut(vectors, [0, 1])[3].tolist() == [0.0, 0.0]


def test_a_dimension_with_one_value_keeps_it() -> None:
    documents = cloud(30, 4)
    documents[:, 1] = 0.25
    assert read_back(documents)[:, 1].tolist() == [0.25] * 30


def test_a_dot_product_counts_lengths_after_a_cut() -> None:
    documents = cloud(60, 16) * np.linspace(0.5, 2, 60, dtype=np.float32)[:, None]
    one = searched(cloud(12, 16), documents, "dot")
    whole = one.similarities()
    found = similarities(one, "first half", 8)
    assert np.corrcoef(np.abs(whole).mean(axis=0), np.abs(found).mean(axis=0))[0, 1] > 0.5


def test_of_few_dimensions_not_every_cut_can_be_made() -> None:
    assert [one.way for one in search_compressed(searched(cloud(5, 3), cloud(30, 3)))] == [
        *("float32", "int8", "binary", "binary, rescored", "first half")
    ]


def test_below_ten_queries_there_is_no_interval() -> None:
    few = by_way(searched(cloud(9, 16), cloud(40, 16)))["first half"]
    assert estimate(few.recall, np.arange(9)).low is None
    many = by_way(searched(cloud(30, 16), cloud(40, 16)))["first half"]
    mean, low, high = estimate(many.recall, np.arange(30))
    assert low is not None
    assert high is not None
    assert low < mean < high
    # Certainty is not what equal queries give.
    assert estimate(np.ones(30), np.arange(30)) == Estimate(1.0)


# ---- findings ----


def row(way: str, change: float, low: float | None, high: float | None, **other: Any) -> dict[str, Any]:
    bytes_ = {"float32": 64, "int8": 16, "binary": 2, "first quarter": 16}[way]
    beyond = {"beyond_random": None, "beyond_random_low": None, "beyond_random_high": None}
    return {
        **{"way": way, "queries": 50, "documents": 300, "bytes": bytes_, "of_float32": bytes_ / 64},
        **{"recall": 0.9, "ndcg": 0.7, "ndcg_change": change, "ndcg_change_low": low, "ndcg_change_high": high},
        **{"kept": 4, "dimension": 16, "declared": None, "random_spread": 0.01, **beyond, **other},
    }


def found(*rows: dict[str, Any]) -> dict[str, Finding]:
    whole = row("float32", 0, None, None)
    made = findings(lambda table: [whole, *rows] if table == "compression" else [], CompressionSettings())
    return {one.name: one for one in made}


def test_the_smallest_way_that_is_known_to_lose_little_is_named() -> None:
    one = found(row("int8", -0.001, -0.004, 0.002), row("binary", -0.005, -0.019, 0.01))["cheapest"]
    assert (one.level, one.value, one.low) == ("ok", -0.005, -0.019)
    assert one.sentence.startswith("Stored as binary, vectors take 3% of the bytes")
    # A larger one is named where the smallest is undecided, and that is said.
    one = found(row("int8", -0.001, -0.004, 0.002), row("binary", -0.005, -0.03, 0.01))["cheapest"]
    assert one.sentence.startswith("Stored as int8")
    assert "Of binary (3% of the bytes, -0.005 [-0.030, +0.010]), 50 queries cannot tell." in one.sentence
    # Not where it is known to lose more.
    assert "cannot tell" not in found(row("int8", 0, None, None), row("binary", -0.1, -0.2, -0.05))["cheapest"].sentence


def test_every_way_loses_or_nothing_is_known() -> None:
    assert found(row("int8", -0.1, -0.2, -0.05), row("binary", -0.2, -0.3, -0.1))["cheapest"].level == "look"
    one = found(row("int8", -0.03, -0.2, 0.1), row("binary", -0.2, -0.3, -0.1))["cheapest"]
    assert (one.level, one.value) == ("not measured", -0.03)
    assert "--corpus retrieval" in one.advice
    # Without an interval, only queries that are all unchanged say something.
    assert found(row("int8", 0.0, None, None))["cheapest"].level == "ok"
    assert found(row("int8", 0.0, None, None, queries=9))["cheapest"].level == "not measured"
    assert found(row("int8", -0.001, None, None))["cheapest"].level == "not measured"


def cut_row(excess: float, half: float | None, declared: str | None = None) -> dict[str, Any]:
    ends = (None, None) if half is None else (excess - half, excess + half)
    beyond = {"beyond_random": excess, "beyond_random_low": ends[0], "beyond_random_high": ends[1]}
    return row("first quarter", -0.1, -0.2, 0, declared=declared, **beyond)


def test_a_declared_cut_is_held_against_random_dimensions() -> None:
    card = "its model card mentions Matryoshka"
    assert found(cut_row(0.0, 0.02))["dimensions"].level == "ok"
    trained = found(cut_row(0.2, 0.02, card))["dimensions"]
    assert trained.level == "ok"
    assert trained.sentence.endswith(f"so they were trained to be cut ({card}).")
    one = found(cut_row(0.0, 0.02, card))["dimensions"]
    assert (one.level, one.value) == ("look", 0.0)
    assert card in one.sentence
    # Within what one more draw of random dimensions could keep.
    assert found(cut_row(0.022, 0.02, card))["dimensions"].level == "look"
    assert found(cut_row(0.2, None, card))["dimensions"].level == "not measured"


def test_without_a_search_there_is_no_finding() -> None:
    assert not list(findings(lambda table: [], CompressionSettings()))
    assert list(found(row("int8", 0, None, None))) == ["cheapest"]


# ---- what a checkpoint declares ----


def write(folder: Path, content: Mapping[str, object] | str, name: str) -> Path:
    folder.joinpath(name).write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def test_where_a_cut_is_declared(tmp_path: Path) -> None:
    assert declared_cut(tmp_path, None) is None
    assert declared_cut(write(tmp_path, "# A model\nNothing of the kind.", "README.md"), None) is None
    assert declared_cut(write(tmp_path, "tags: loss:MatryoshkaLoss", "README.md"), None) == (
        "its model card mentions Matryoshka"
    )
    assert declared_cut(write(tmp_path, {"is_matryoshka": False}, "config.json"), None) is not None
    assert declared_cut(write(tmp_path, {"matryoshka_dimensions": [8]}, "config.json"), None) == (
        "matryoshka_dimensions in config.json"
    )
    assert declared_cut(tmp_path, 64) == "truncate_dim is 64 in config_sentence_transformers.json"


# ---- the step ----


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("compression")
    return run_of(tiny_bert(folder / "tiny"), folder, "compression")


def test_a_checkpoint_is_measured_from_end_to_end(run: Run, one_thread: None) -> None:
    (staged,) = measure(run)
    rows = read_rows([staged.path])
    assert [one["way"] for one in rows] == list(WAYS)
    assert {(one["dimension"], one["documents"], one["queries"]) for one in rows} == {(32, 270, 90)}
    assert all(value == value for one in rows for value in one.values())
    pandas = pytest.importorskip("pandas")
    derived = CompressionRow.table.derive(pandas.DataFrame(rows))
    for rule in CompressionRow.table.rules:
        assert derived[rule.name].all(), rule.name
    made = list(findings(lambda table: rows if table == "compression" else [], CompressionSettings()))
    assert [one.name for one in made] == ["cheapest", "dimensions"]
    shown = section({"compression": sorted(rows, key=lambda one: -one["bytes"])})
    assert shown is not None
    (chart,) = (part for part in shown.parts if isinstance(part, Chart))
    assert len(chart.records()) == len(WAYS) + 3
    assert section({"compression": []}) is None
    # Found again.
    assert measure(run) == [staged]
    assert MEASURE.parts().page.FACTS


def test_among_few_documents_nothing_is_measured(run: Run, tmp_path: Path) -> None:
    vectors = cloud(MIN_DOCUMENTS + 11, 32)
    sides = ["query"] * 12 + ["document"] * (MIN_DOCUMENTS - 1)
    rows = [
        {"side": side, "text": str(place), "label": "0:1" if side == "query" else None, "vector": vector.tobytes()}
        for place, (side, vector) in enumerate(zip(sides, vectors, strict=True))
    ]
    staged = stage_rows(str(tmp_path), "collection", "few", TABLE, rows, SCHEMA)
    staged = staged.model_copy(update={"detail": {"name": "few", "similarity": "cosine"}})
    with pytest.raises(NotMeasurable, match="of 19 documents"):
        compressed_search.compute(str(tmp_path), run.spec, staged)
