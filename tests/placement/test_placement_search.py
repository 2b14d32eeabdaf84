"""Places and searches against slow loops, and the gradient against finite differences, on tiny checkpoints."""

from __future__ import annotations

from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from plausible_tasks import placement_rows
from tiny import ENGLISH, tiny_bert

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.encoder import weighted_vectors
from embaudit.measures.placement import PlacementSettings
from embaudit.measures.placement.places import (
    Goal,
    TextSearch,
    fixed_places,
    goal,
    placement_losses,
    random_places,
    rotation_places,
    text_of,
)
from embaudit.measures.placement.work import findings
from embaudit.measures.sticky.insertion import OPERATORS, SentenceDraw, make_draw
from embaudit.measures.sticky.points import every_against_every

WORDS = ENGLISH.split()
TEXTS = [" ".join(WORDS[(5 * i + j * j) % len(WORDS)] for j in range(5)) for i in range(30)]


@pytest.fixture(scope="module")
def encoder(tiny: Checkpoint) -> Encoder:
    return Encoder(tiny)


@pytest.fixture(scope="module")
def tokens(encoder: Encoder) -> np.ndarray:
    return np.array(encoder.checkpoint.tokenizer.convert_tokens_to_ids(["river", "long", "town"]))


@pytest.fixture(scope="module")
def draws(encoder: Encoder) -> list[SentenceDraw]:
    return [make_draw(encoder.checkpoint, text, OPERATORS[place % 3], 3, 0) for place, text in enumerate(TEXTS[:4])]


@pytest.fixture(scope="module")
def judges(encoder: Encoder, draws: list[SentenceDraw]) -> Goal:
    return goal(encoder, draws, TEXTS[4:])


def unit(encoder: Encoder, ids: list[int]) -> np.ndarray:
    (vector,) = encoder.encode_ids([ids]).astype(np.float64)
    return vector / np.linalg.norm(vector)


def by_hand(encoder: Encoder, draw: SentenceDraw, gaps: list[int], token: int) -> list[int]:
    """The text with copies, inserted one by one from the last gap on."""
    before, behind = len(encoder.checkpoint.prefix_ids), len(encoder.checkpoint.suffix_ids)
    content = list(draw.baseline[before : len(draw.baseline) - behind])
    for gap in sorted(gaps, reverse=True):
        content.insert(gap, token)
    return [*encoder.checkpoint.prefix_ids, *content, *encoder.checkpoint.suffix_ids]


def test_a_text_is_filled_as_a_loop_fills_it(encoder: Encoder, draws: list[SentenceDraw]) -> None:
    text = text_of(encoder.checkpoint, draws[0])
    gaps = np.array(list(combinations_with_replacement(range(text.gaps), 2)))
    ids = np.arange(100, 100 + len(gaps))
    slow = [by_hand(encoder, draws[0], row, token) for row, token in zip(gaps.tolist(), ids.tolist(), strict=True)]
    assert text.filled(gaps, ids).tolist() == slow


def test_places_of_the_rotation_are_those_of_the_search(encoder: Encoder, draws: list[SentenceDraw]) -> None:
    for draw in draws:
        text = text_of(encoder.checkpoint, draw)
        assert (
            text.filled(rotation_places(text, draw)[None], np.array([7])).tolist()
            == draw.insert(np.array([7])).tolist()
        )


def test_fixed_places_of_a_text_of_three_sentences(encoder: Encoder) -> None:
    draw = make_draw(encoder.checkpoint, "the river is long. the town is old! north", "prefix", 8, 0)
    text = text_of(encoder.checkpoint, draw)
    places = fixed_places(text, 8)
    assert text.ends.tolist() == [0, 5, 10, 11]
    assert places["sentence_ends"].tolist() == [0, 0, 5, 5, 10, 10, 11, 11]
    assert places["prefix"].tolist() == [0] * 8
    assert places["suffix"].tolist() == [11] * 8
    assert np.diff(places["interleaved"]).max() <= 2
    assert (places["interleaved"] > 0).all()
    assert (places["interleaved"] < 11).all()
    drawn = random_places(text, 8, 5, seed=0)
    assert (drawn == random_places(text, 8, 5, seed=0)).all()
    assert (np.diff(drawn, axis=1) >= 0).all()
    assert drawn.max() <= 11


def test_the_goal_is_the_slope_of_least_squares(
    encoder: Encoder, draws: list[SentenceDraw], judges: Goal, tokens: np.ndarray
) -> None:
    anchors = [unit(encoder, ids) for ids in encoder.tokenize(TEXTS[4:])]
    vectors, slow = [], []
    for token in tokens.tolist():
        own = [unit(encoder, draw.insert(np.array([token]))[0].tolist()) for draw in draws]
        before = [unit(encoder, list(draw.baseline)) @ anchor for draw in draws for anchor in anchors]
        slow.append(np.polyfit(before, [vector @ anchor for vector in own for anchor in anchors], 1)[0])
        vectors.append(own)
    assert judges.slope(np.array(vectors)) == pytest.approx(slow, abs=1e-5)


def test_greedy_takes_the_worst_gap_of_each_step(
    encoder: Encoder, draws: list[SentenceDraw], judges: Goal, tokens: np.ndarray
) -> None:
    direction = judges.directions[1]
    text = text_of(encoder.checkpoint, draws[1])
    found = TextSearch(encoder, text, tokens, direction).greedy(3)
    for row, token in enumerate(tokens.tolist()):
        gaps: list[int] = []
        best = (np.inf, gaps)
        for _ in range(3):
            tried = [(unit(encoder, by_hand(encoder, draws[1], [*gaps, gap], token)) @ direction, gap) for gap in
                     range(text.gaps)]  # fmt: skip
            value, gap = min(tried)
            gaps = sorted([*gaps, gap])
            best = min(best, (value, gaps))
        assert found.values[row] == pytest.approx(best[0], abs=1e-6)
        assert [gap for gap in found.gaps[row].tolist() if gap >= 0] == best[1]
        assert found.copies[row] == len(best[1])
    assert found.encodes == 3 * text.gaps


def test_a_guided_search_that_may_try_everything_is_the_greedy_one(
    encoder: Encoder, draws: list[SentenceDraw], judges: Goal, tokens: np.ndarray
) -> None:
    text = text_of(encoder.checkpoint, draws[2])
    search = TextSearch(encoder, text, tokens, judges.directions[2])
    assert search.guided(3, text.gaps).values == pytest.approx(search.greedy(3).values, abs=1e-6)


def test_more_random_placements_are_never_better_for_the_text(
    encoder: Encoder, draws: list[SentenceDraw], judges: Goal, tokens: np.ndarray
) -> None:
    text = text_of(encoder.checkpoint, draws[3])
    search, drawn = TextSearch(encoder, text, tokens, judges.directions[3]), random_places(text, 3, 12, 0)
    values = [search.at(drawn[:tries]).values for tries in (1, 4, 12)]
    assert (np.diff(values, axis=0) <= 1e-6).all()


@pytest.mark.parametrize("held", [[], [0, 2]])
def test_slopes_are_what_a_little_more_weight_does(
    encoder: Encoder, draws: list[SentenceDraw], judges: Goal, tokens: np.ndarray, held: list[int]
) -> None:
    checkpoint, text = encoder.checkpoint, text_of(encoder.checkpoint, draws[0])
    gaps = np.tile(np.array(held, dtype=np.int64), (len(tokens), 1))
    found = TextSearch(encoder, text, tokens, judges.directions[0]).slopes(gaps)
    direction = torch.from_numpy(judges.directions[0]).float()
    for row, token in enumerate(tokens.tolist()):
        ids, positions, weights, candidates = [checkpoint.prefix_ids[0]], [0], [1.0], []
        for gap in range(text.gaps):
            candidates.append(len(ids))
            ids, positions, weights = [*ids, token], [*positions, int(sum(weights))], [*weights, 0.0]
            behind = [token] * held.count(gap) + text.content[gap : gap + 1].tolist()
            for one in behind:
                positions.append(int(sum(weights)))
                ids, weights = [*ids, one], [*weights, 1.0]
        positions.append(int(sum(weights)))
        ids, weights = [*ids, checkpoint.suffix_ids[0]], [*weights, 1.0]

        def value(gap: int, more: float) -> float:
            own = torch.tensor([weights])  # noqa: B023
            own[own == 0] = 0.05
            own[0, candidates[gap]] += more  # noqa: B023
            with torch.no_grad():
                vector = weighted_vectors(checkpoint, torch.tensor([ids]), torch.tensor([positions]), own)  # noqa: B023
            return float(vector[0] @ direction)

        slow = [(value(gap, 0.01) - value(gap, -0.01)) / 0.02 for gap in range(text.gaps)]
        assert found[row] == pytest.approx(slow, abs=2e-3 * np.abs(slow).max() + 1e-4)


# ---- losses by strategy against plain least squares, and what the finding says of them ----


FEW_TEXTS = [" ".join(WORDS[(5 * i + j * j) % len(WORDS)] for j in range(6)) for i in range(30)]


def test_losses_are_least_squares_against_one_unit(tmp_path: Path) -> None:
    encoder = Encoder(load_checkpoint(str(tiny_bert(tmp_path / "tiny")), LoadOptions(device="cpu")))
    points = every_against_every(encoder, FEW_TEXTS[:6], FEW_TEXTS[6:], u=0.99, copies=3, seed=0, groups=4)
    generator = np.random.default_rng(0)
    shape = (7, len(points.draws), points.anchors.shape[1])
    plain = encoder.encode_ids([draw.baseline for draw in points.draws])
    by_strategy = {
        name: (plain + noise * generator.normal(size=shape)).astype(np.float32)
        for name, noise in (("rotation", 0.02), ("suffix", 0.04), ("greedy", 0.1))
    }
    found = placement_losses(points, by_strategy, [0, 1], range(2, 7), resamples=100, seed=0)

    def slopes(vectors: np.ndarray) -> list[float]:
        units = vectors / np.linalg.norm(vectors, axis=2, keepdims=True)
        return [np.polyfit(points.before.ravel(), (own @ points.anchors.T).ravel(), 1)[0] for own in units]

    unit = np.median(slopes(by_strategy["rotation"])[2:])
    for name, vectors in by_strategy.items():
        expected = 1 - np.array(slopes(vectors)) / unit
        measured = found[name]
        assert [one.value for one in measured.tokens] == pytest.approx(expected[:2], abs=1e-4)
        assert measured.severe.value == pytest.approx(expected[:2].mean(), abs=1e-4)
        assert measured.ordinary.value == pytest.approx(np.median(expected[2:]), abs=1e-4)
        assert measured.severe.low is not None
        assert measured.severe.low < measured.severe.value < measured.severe.high
        if name == "rotation":
            assert measured.severe.change is None
            assert (measured.ordinary.value, measured.ordinary.low) == (0, None), "the unit is certain"
        else:
            assert measured.severe.change == pytest.approx(measured.severe.value - found["rotation"].severe.value)


@pytest.mark.parametrize(
    ("change", "low", "level"), [(0.15, 0.1, "look"), (0.15, -0.01, "ok"), (0.15, None, "ok"), (0.05, 0.04, "ok")]
)
def test_the_finding_is_of_the_worst_places(change: float, low: float | None, level: str) -> None:
    rows = placement_rows()["placement"]
    for row in rows:
        if row["strategy"] == "greedy":
            row |= {"change": change, "change_low": low, "change_high": None if low is None else 0.3}

    def read(table: str) -> list[dict[str, Any]]:
        assert table == "placement"
        return rows

    (found,) = findings(read, PlacementSettings())
    assert found.level == level
    assert "greedy search" in found.sentence
    assert "erase 0.65 of the differences between a text's similarities, against 0.50" in found.sentence
    assert found.value == change


def test_nothing_placed_says_nothing() -> None:
    assert list(findings(lambda table: [], PlacementSettings())) == []
