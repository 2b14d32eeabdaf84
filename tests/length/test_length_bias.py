"""What length does to neighbours and to rankings: by loops over texts, queries, documents and ties."""

from __future__ import annotations

import zipfile
from math import exp, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from benchmarks.bound import SIGMAS, TOKENS, main, simulate
from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.measures.length.bias import neighbour_bias, outranked, unrelated_pairs
from embaudit.measures.length.curve import control_curves
from embaudit.measures.length.heads import claimed_bound
from embaudit.measures.length.spans import LengthBin

N, K = 15, 3
GENERATOR = np.random.default_rng(4)
VECTORS = GENERATOR.normal(size=(N, 6)) + 0.5
LENGTHS = GENERATOR.permutation(np.arange(10, 10 + 20 * N, 20))
LABELS = ["river", "iron", "law"] * 5


def cosine(i: int, j: int) -> float:
    return float(VECTORS[i] @ VECTORS[j] / np.linalg.norm(VECTORS[i]) / np.linalg.norm(VECTORS[j]))


def ranking(query: int) -> list[int]:
    return sorted((j for j in range(N) if j != query), key=lambda j: -cosine(query, j))


@pytest.mark.parametrize("labels", [LABELS, None])
def test_neighbours_and_ranks_by_loops(labels: list[str | None] | None) -> None:
    found = neighbour_bias(VECTORS, LENGTHS, labels, K)
    hubness, ranks = np.zeros(N), [[] for _ in range(N)]
    right = 0
    near: list[int] = []
    same: list[int] = []
    other: list[int] = []
    for query in range(N):
        nearest = ranking(query)[:K]
        for j in nearest:
            hubness[j] += 1
            near.append(LENGTHS[j])
            (same if LABELS[j] == LABELS[query] else other).append(LENGTHS[j])
        votes = [LABELS[j] for j in nearest]
        right += max(votes, key=votes.count) == LABELS[query]  # of a tie, the first and so the nearer one
        unrelated = [j for j in ranking(query) if labels is None or LABELS[j] != LABELS[query]]
        for rank, j in enumerate(unrelated):
            ranks[j].append(rank / (len(unrelated) - 1))
    assert found.neighbours == K
    assert found.hubness_spearman == pytest.approx(spearmanr(LENGTHS, hubness).statistic)
    assert found.neighbour_length_ratio == pytest.approx(np.mean(near) / np.mean(LENGTHS))
    assert found.rank_spearman == pytest.approx(
        spearmanr(LENGTHS, [round(float(np.mean(of)), 12) for of in ranks]).statistic
    )
    if labels is None:
        assert found.knn_accuracy is None
        assert found.wrong_length_ratio is None
    else:
        assert found.knn_accuracy == pytest.approx(right / N)
        assert found.wrong_length_ratio == pytest.approx(np.mean(other) / np.mean(same))


def test_long_texts_in_the_middle_of_everything_are_hubs_that_rank_high() -> None:
    """Texts of a random direction, the longer the nearer to their common mean."""
    generator = np.random.default_rng(0)
    lengths = np.arange(1, 101) * 10
    noise = generator.normal(size=(100, 30))
    vectors = noise / np.sqrt(lengths)[:, None] + np.eye(30)[0] * 0.2
    found = neighbour_bias(vectors, lengths, None, 10)
    assert found.hubness_spearman is not None
    assert found.rank_spearman is not None
    assert found.neighbour_length_ratio is not None
    assert found.hubness_spearman > 0.5
    assert found.rank_spearman < -0.5
    assert found.neighbour_length_ratio > 1.2
    pairs = unrelated_pairs(vectors, lengths, None, 5)
    assert pairs.share_long_above is not None
    assert pairs.share_long_above > 0.5


def test_unrelated_pairs_by_loops() -> None:
    found = unrelated_pairs(VECTORS, LENGTHS, LABELS, 4)
    order = np.argsort(LENGTHS)
    short, long = set(order[:5]), set(order[-5:])
    pairs = {
        name: sorted(
            ((cosine(i, j), i, j) for i in group for j in group if i < j and LABELS[i] != LABELS[j]), reverse=True
        )
        for name, group in (("short", short), ("long", long))
    }
    assert found.pairs == len(pairs["long"])
    assert [(pair.first, pair.second) for pair in found.worst] == [(i, j) for _, i, j in pairs["long"][:4]]
    assert found.mean_long == pytest.approx(np.mean([c for c, _, _ in pairs["long"]]))
    assert found.mean_short == pytest.approx(np.mean([c for c, _, _ in pairs["short"]]))
    high = np.quantile([c for c, _, _ in pairs["short"]], 0.95)
    assert found.share_long_above == pytest.approx(np.mean([c > high for c, _, _ in pairs["long"]]))


def test_too_few_texts_one_label_and_one_length_are_undefined() -> None:
    few = neighbour_bias(VECTORS[:3], LENGTHS[:3], None, K)
    assert (few.hubness_spearman, few.rank_spearman, few.neighbours) == (None, None, 2)
    assert neighbour_bias(VECTORS[:0], LENGTHS[:0], None, K).neighbours == 0
    assert unrelated_pairs(VECTORS[:3], LENGTHS[:3], None, 4).pairs == 0
    assert neighbour_bias(VECTORS, LENGTHS, ["one"] * N, K).knn_accuracy is None
    assert neighbour_bias(VECTORS, LENGTHS, [*LABELS[:-1], None], K).knn_accuracy is None
    assert neighbour_bias(VECTORS, np.full(N, 7), LABELS, K).hubness_spearman is None


# ---- queries against documents ----


@given(seed=st.integers(0, 50), size=st.integers(4, 12), count=st.integers(1, 6))
def test_shares_are_counted(seed: int, size: int, count: int) -> None:
    generator = np.random.default_rng(seed)
    # Of few directions, so that there are ties.
    documents = np.eye(3)[generator.integers(0, 3, size)] * generator.uniform(0.5, 2, (size, 1))
    queries = np.eye(3)[generator.integers(0, 3, count)]
    relevant = [{int(place): 1.0 for place in generator.choice(size, 2, replace=False)} for _ in range(count)]
    is_long = generator.random(size) < 0.5
    # A document that is the query itself neither answers it nor competes with what does.
    itself = [frozenset({int(generator.integers(size))}) - one.keys() for one in relevant]
    expected: dict[str, list[tuple[float, float]]] = {"short": [], "long": []}
    for query, own, left_out in zip(queries, relevant, itself, strict=True):
        for place in own:
            outranking: dict[bool, list[float]] = {False: [], True: []}
            for other in range(size):
                if other not in own and other not in left_out:
                    cosine, bar = (query @ documents[i] / np.linalg.norm(documents[i]) for i in (other, place))
                    outranking[bool(is_long[other])].append(1.0 if cosine > bar else 0.5 if cosine == bar else 0.0)
            if outranking[False] and outranking[True]:
                shares = (float(np.mean(outranking[False])), float(np.mean(outranking[True])))
                expected["long" if is_long[place] else "short"].append(shares)
    found = {one.relevant: one for one in outranked(documents, queries, relevant, is_long, 0, itself)}
    assert set(found) == {name for name, shares in expected.items() if shares}
    for name, one in found.items():
        by_short, by_long = np.mean(expected[name], axis=0)
        assert (one.pairs, one.low, one.high) == (len(expected[name]), None, None)
        assert (one.by_short, one.by_long, one.difference) == pytest.approx((by_short, by_long, by_short - by_long))


def test_short_noise_that_outranks_is_found_and_no_length_effect_is_not() -> None:
    generator = np.random.default_rng(0)
    documents = generator.normal(size=(400, 16))
    queries = documents[:40] + generator.normal(scale=1.5, size=(40, 16))
    relevant = [{place: 1.0} for place in range(40)]
    is_long = np.arange(400) % 2 == 0
    (long, short) = sorted(outranked(documents, queries, relevant, is_long, seed=1), key=lambda one: one.relevant)
    assert (long.pairs, long.units, short.pairs, short.units) == (20, 20, 20, 20)
    for one in (long, short):
        assert one.low is not None
        assert one.low < 0 < one.high  # type: ignore[operator]
    # A direction that all queries have, and of the documents only the short ones.
    shared = np.eye(16)[0] * 6
    documents[~is_long] += shared
    (long, short) = sorted(
        outranked(documents, queries + shared, relevant, is_long, seed=1), key=lambda one: one.relevant
    )
    assert long.low is not None
    assert long.low > 0.5


def test_queries_that_share_a_document_are_one_unit() -> None:
    generator = np.random.default_rng(0)
    documents, queries = generator.normal(size=(20, 4)), generator.normal(size=(12, 4))
    (one,) = outranked(documents, queries, [{0: 1.0}] * 12, np.arange(20) % 2 == 1, seed=0)
    assert (one.pairs, one.units, one.low) == (12, 1, None)


# ---- the published bound, the Gaussian study, and the benchmark that prints it ----


def test_the_formula_at_a_known_place() -> None:
    assert float(claimed_bound(128, np.array(2.0))) == pytest.approx(0.211, abs=5e-4)
    assert float(claimed_bound(9, np.array(0.5))) == pytest.approx(sqrt(9 / (2 * sqrt(1 + exp(-0.5)) * 8**1.5 + 1)))


def test_a_cell_is_what_numpy_makes_of_its_matrices() -> None:
    (cell,) = simulate([1.5], [20], matrices=3, seed=7)
    generator = np.random.default_rng([7, 20, 1_500_000])
    values = []
    for _ in range(3):
        weights = np.exp(1.5 * generator.standard_normal((20, 20)))
        A = weights / weights.sum(axis=1, keepdims=True)
        values.append(np.linalg.svd(A - A.mean(axis=0))[1][0])
    assert cell.sigma_a == pytest.approx(np.mean(values))
    assert cell.sigma_a_low is not None
    assert cell.sigma_a_high is not None
    assert cell.sigma_a_high - cell.sigma_a == pytest.approx(4.302653 * np.std(values, ddof=1) / sqrt(3), rel=1e-5)
    assert cell == next(simulate([1.5], [20], matrices=3, seed=7))
    assert list(simulate([0.1, 1.5], [20], matrices=3, seed=7))[1] == cell


def test_one_matrix_has_no_interval_and_equal_logits_have_no_sigma() -> None:
    (cell,) = simulate([0.0], [8], matrices=1)
    assert cell.sigma_a == pytest.approx(0, abs=1e-12)
    assert (cell.sigma_a_low, cell.sigma_a_high, cell.holds) == (None, None, True)


@pytest.mark.parametrize(("sigmas", "tokens", "matrices"), [([-1.0], [4], 1), ([1.0], [1], 1), ([1.0], [4], 0)])
def test_what_cannot_be_simulated_is_refused(sigmas: list[float], tokens: list[int], matrices: int) -> None:
    with pytest.raises(ValueError, match="σ_s must be at least 0"):
        list(simulate(sigmas, tokens, matrices=matrices))


def test_sharp_logits_break_the_bound_and_dull_ones_do_not() -> None:
    cells = {(cell.sigma_s, cell.n): cell for cell in simulate([0.5, 2.0], [16, 128], seed=1)}
    assert [cell.holds for cell in cells.values()] == [True, True, False, False]
    assert cells[2.0, 128].sigma_a == pytest.approx(0.864, abs=0.03)


@pytest.mark.slow
def test_the_study_of_the_docs_comes_out() -> None:
    cells = list(simulate())
    assert len(cells) == len(SIGMAS) * len(TOKENS) == 64
    failed = [cell for cell in cells if not cell.holds]
    assert len(failed) == 38
    assert min(cell.sigma_s for cell in failed) == 1.0
    # Not monotone in n for sharp logits.
    sharp = [cell.sigma_a for cell in cells if cell.sigma_s == 2.0]
    assert np.any(np.diff(sharp) > 0)
    assert np.any(np.diff(sharp) < 0)


def test_the_benchmark_prints_the_study(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--sigma-s", "0.5", "2", "--tokens", "8", "32"])
    printed = capsys.readouterr().out
    assert printed.count("| holds |") == printed.count("| fails |") == 2
    assert "The bound fails in 2 of 4 cells, all with σ_s ≥ 2." in printed


@pytest.mark.parametrize("options", [["--tokens", "1"], ["--sigma-s", "-1"], ["--tokens", "x"], ["--matrices", "0"]])
def test_numbers_that_do_not_fit_are_a_usage_error(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(options)
    assert "error: " in capsys.readouterr().err


# ---- the length curve on 150 movie reviews, against figures that were seen before embaudit measured them ----


TEXTS = 150
# Mean pairwise cosine at 16, 128, 256 and 510 tokens.
SEEN = {
    "truncation": (0.13, 0.19, 0.26, 0.45),
    "windows": (0.14, 0.44, 0.55, 0.65),
    "input_embeddings": (0.52, 0.88, 0.93, 0.95),
}
REVIEW_LENGTHS = (16, 128, 256, 510)


@pytest.mark.slow
def test_the_figures_of_the_method_come_out(shared: Path, minilm: Checkpoint) -> None:
    with zipfile.ZipFile(shared / "data/classification/movie_reviews.zip") as archive:
        names = sorted(name for name in archive.namelist() if "/pos/" in name and name.endswith(".txt"))
        texts = [archive.read(name).decode("utf-8", "replace") for name in names]
    encoder = Encoder(minilm)
    contents = [ids for ids in encoder.own_ids(texts[: 2 * TEXTS]) if len(ids) >= REVIEW_LENGTHS[-1]][:TEXTS]
    assert len(contents) == TEXTS
    # Bins whose middle is the length.
    bins = [LengthBin(2 * length - 1_020, 1_020) for length in REVIEW_LENGTHS]
    values = control_curves(encoder, contents, bins, most_texts=TEXTS, window=16, seed=0)
    for condition, wanted in SEEN.items():
        found = [value.cosine.mean for value in values if value.condition == condition]
        # Sixteen input embeddings hang most on which words they are: .58 here.
        near = [0.07 if condition == "input_embeddings" else 0.04, 0.04, 0.04, 0.04]
        assert all(abs(one - two) <= most for one, two, most in zip(found, wanted, near, strict=True)), (
            condition,
            found,
        )
