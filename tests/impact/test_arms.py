"""Which tokens are put into texts, and which texts harm a search most."""

from __future__ import annotations

from math import ceil, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import v_measure_score
from tiny import ENGLISH

from embaudit.checkpoint import AskedPrompts, Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.corpora.downstream import Items, Vectors
from embaudit.corpora.downstream.labelled import Clustering
from embaudit.corpora.downstream.material import LabelledTexts, pick_judged
from embaudit.measures.impact.arms import (
    Cell,
    clean_and_poisoned,
    copies_for,
    found_arms,
    order_of,
    poison,
    poisoned_half,
    with_ordinary,
)
from embaudit.words.errors import NotMeasurable

TOKENS = [{"token_id": place, "is_reachable": place != 3, "category": "ok", "origin": "word"} for place in range(20)]


def verdict(token: int, protocol: str, q_value: float | None, **values: Any) -> dict[str, Any]:
    return {"token_id": token, "protocol": protocol, "role": "candidate", "q_value": q_value, **values}


def test_arms_are_the_worst_of_each_protocol_that_a_text_can_hold() -> None:
    tables = {
        "token": TOKENS,
        "sticky_validation": [
            *(verdict(token, "retention", 0.1, loss=token / 10, pull=0.0) for token in (1, 2, 3, 4)),
            # The other protocol's candidate.
            verdict(9, "retention", None, loss=0.99, pull=0.0),
            *(verdict(token, "definition", 0.1, loss=0.0, pull=1 - token / 10) for token in (5, 4, 6)),
            verdict(8, "retention", None, loss=1.0, pull=0.0) | {"role": "control"},
        ],
    }
    assert found_arms(lambda table: tables.get(table, []), 2) == {"retention": [4, 2], "definition": [4, 5]}
    tables["sticky_reference"] = [{"token_id": 7, "value": 0.9}, {"token_id": 1, "value": None}]
    assert found_arms(lambda table: tables.get(table, []), 2)["reference"] == [7]
    assert found_arms(lambda _: [], 2) == {}


def test_ordinary_tokens_are_in_no_other_arm() -> None:
    arms = with_ordinary({"retention": [4, 2], "given": list(range(10, 20))}, TOKENS, 3, seed=0)
    assert list(arms) == ["ordinary", "retention", "given"]
    assert len(arms["ordinary"]) == 3
    assert not set(arms["ordinary"]) & {4, 2, *range(10, 20)}


# ---- the worst ----


WORDS = ENGLISH.split()
TOKEN = 7


def texts(lengths: list[int]) -> list[str]:
    return [" ".join(WORDS[(place + step) % len(WORDS)] for step in range(n)) for place, n in enumerate(lengths)]


@pytest.fixture(scope="module")
def encoder(tiny: Checkpoint) -> Encoder:
    return Encoder(tiny)


def test_a_tenth_of_the_words_before_or_behind(encoder: Encoder) -> None:
    given = texts([1, 10, 11, 25, 30, 31])
    found = poison(encoder, given, TOKEN, seed=0)
    assert found.copies.tolist() == [1, 1, 2, 3, 3, 4]
    assert not found.shortened.any()
    places = []
    for text, ids, count in zip(given, found.sequences, found.copies, strict=True):
        plain = encoder.tokenize([text])[0]
        copies = [TOKEN] * count
        behind, before = [*plain[:-1], *copies, plain[-1]], [plain[0], *copies, *plain[1:]]
        assert ids in (behind, before)
        places.append(ids == before)
    assert sum(places) == 3, "half of the texts each"


def test_every_copy_is_read_of_a_text_that_is_longer_than_the_limit(encoder: Encoder) -> None:
    limit = encoder.checkpoint.content_limit
    given = texts([limit - 2, 5 * limit])
    token = encoder.checkpoint.tokenizer.unk_token_id  # which stands in none of them
    found = poison(encoder, given, token, seed=0)
    for text, ids, count in zip(given, found.sequences, found.copies, strict=True):
        assert len(ids) == encoder.checkpoint.max_length
        assert ids.count(token) == count
        # The words that are read are counted: one token each here.
        assert count == ceil(min(len(text.split()), limit) / 10)
    assert found.shortened.tolist() == [True, True]


def test_copies_stand_behind_the_prompt(tiny_checkpoint: Path) -> None:
    options = LoadOptions(device="cpu", prompts=AskedPrompts("passage: ", None, None))
    prompted = Encoder(load_checkpoint(str(tiny_checkpoint), options).reading("document"))
    (ids,) = poison(prompted, [WORDS[0]], TOKEN, seed=0).sequences
    start = [*prompted.checkpoint.prefix_ids, *prompted.checkpoint.prompt.ids]
    assert ids[: len(start)] == start
    assert sorted(ids[len(start) : -1]) == sorted([TOKEN, *prompted.own_ids([WORDS[0]])[0]])


def test_no_room_is_said(tiny_checkpoint: Path) -> None:
    narrow = Encoder(load_checkpoint(str(tiny_checkpoint), LoadOptions(device="cpu", max_length=3)))
    with pytest.raises(NotMeasurable, match="1 copy leaves no room for a text in 1 token"):
        poison(narrow, ["river"], TOKEN, seed=0)


@given(words=st.integers(0, 3_000), tokens=st.integers(0, 6_000), limit=st.integers(2, 512))
@settings(max_examples=100)
def test_copies_never_need_more_room_than_there_is(words: int, tokens: int, limit: int) -> None:
    words = min(words, tokens)  # a word is a token at least
    count = copies_for(words, tokens, limit)
    assert 0 <= count <= ceil(limit / 10)
    assert (count == 0) == (words == 0)
    if tokens <= limit:
        assert count == ceil(words / 10)


def test_which_half_holds_copies_depends_on_the_text_alone() -> None:
    given = texts(list(range(1, 22)))
    half = poisoned_half(given, seed=3)
    assert half.sum() == 11
    turned = np.random.default_rng(0).permutation(len(given))
    assert poisoned_half([given[place] for place in turned], seed=3).tolist() == half[turned].tolist()
    assert poisoned_half(given, seed=4).tolist() != half.tolist()


def test_relevant_documents_hold_copies_as_often_as_others() -> None:
    # Picking draws by the same seed, and fills up with the first documents of its order that no query asks for.
    documents = [f"document {place}" for place in range(2_000)]
    queries = [(f"query {place}", {place: 1.0}) for place in range(300)]
    picked = pick_judged(documents, queries, 600, 300, seed=0)
    relevant = sorted({place for one in picked.relevant for place in one})
    assert poisoned_half(picked.documents, seed=0)[relevant].mean() == pytest.approx(0.5, abs=0.06)
    in_front = order_of(picked.documents, seed=0)[relevant] % 2
    assert in_front.mean() == pytest.approx(0.5, abs=0.06)


# ---- changes and their intervals, by hand; clusters against the definition of the V-measure ----


class Mean:
    """A task whose score is the mean of the outcomes; undefined for a negative one."""

    def __init__(self, units: np.ndarray) -> None:
        self.items = Items(np.ones(len(units)), units, np.ones(len(units), dtype=bool))

    def outcomes(self, vectors: Vectors) -> np.ndarray:
        return vectors["item"]

    def score(self, outcomes: np.ndarray, chosen: np.ndarray) -> float | None:
        return None if (outcomes[chosen] < 0).any() else float(outcomes[chosen].mean())


def outcomes(count: int = 400) -> tuple[np.ndarray, dict[Cell, list[np.ndarray]]]:
    generator = np.random.default_rng(0)
    clean = generator.random(count)
    worse = [clean * scale for scale in (0.5, 0.7)]
    ordinary = [clean * 0.98 + 0.01 * generator.random(count) for _ in range(3)]
    return clean, {("ordinary", "all"): ordinary, ("retention", "all"): worse}


def test_changes_are_from_clean_texts_and_beyond_ordinary_tokens() -> None:
    clean, poisoned = outcomes()
    score, effects = clean_and_poisoned(Mean(np.arange(400)), clean, poisoned, 2_000, 0)
    arm, tokens = effects["retention", "all"].arm, effects["retention", "all"].tokens
    assert score == pytest.approx(clean.mean())
    assert arm.score == pytest.approx(0.6 * clean.mean())
    assert [one.score for one in tokens] == pytest.approx([0.5 * clean.mean(), 0.7 * clean.mean()])
    ordinary = np.mean(poisoned["ordinary", "all"], axis=0)
    differences = {"change": 0.6 * clean - clean, "beyond": 0.6 * clean - ordinary}
    for name, by_item in differences.items():
        found = getattr(arm, name)
        assert found.value == pytest.approx(by_item.mean())
        # Of a mean the bootstrap's deviation is that of Student's interval.
        half = 1.96 * by_item.std() / np.sqrt(len(by_item))
        assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.06)
        assert found.high + found.low == pytest.approx(2 * found.value)
    assert effects["ordinary", "all"].arm.beyond is None
    assert effects["ordinary", "all"].tokens[0].beyond is None


def test_items_of_one_unit_are_drawn_together() -> None:
    clean, poisoned = outcomes(40)
    repeated = {cell: [np.repeat(one, 10) for one in tokens] for cell, tokens in poisoned.items()}
    alone, together = (
        clean_and_poisoned(Mean(units), np.repeat(clean, 10), repeated, 2_000, 0)[1]["retention", "all"].arm.change
        for units in (np.arange(400), np.repeat(np.arange(40), 10))
    )
    assert together.value == alone.value
    widths = [one.high - one.low for one in (together, alone) if one.high is not None and one.low is not None]
    assert widths[0] / widths[1] == pytest.approx(np.sqrt(10), rel=0.1)


def test_what_has_no_interval() -> None:
    clean, poisoned = outcomes(9)
    few = clean_and_poisoned(Mean(np.arange(9)), clean, poisoned, 100, 0)[1]["retention", "all"].arm
    assert few.change.value is not None
    assert (few.change.low, few.beyond and few.beyond.low) == (None, None)
    same = {("given", "half"): [clean_of := np.full(30, 0.5)]}
    _, effects = clean_and_poisoned(Mean(np.arange(30)), clean_of, same, 100, 0)
    assert (effects["given", "half"].arm.change.value, effects["given", "half"].arm.change.low) == (0.0, None)
    assert effects["given", "half"].arm.beyond is None, "there are no ordinary tokens to compare with"
    undefined = {("given", "half"): [np.full(30, -1.0)]}
    _, effects = clean_and_poisoned(Mean(np.arange(30)), clean_of, undefined, 100, 0)
    assert (effects["given", "half"].arm.score, effects["given", "half"].arm.change.value) == (None, None)


def v_measure(classes: list[str], clusters: list[int]) -> float:
    """2·h·c/(h + c), homogeneity h = 1 − H(C|K)/H(C) and completeness c = 1 − H(K|C)/H(K)."""

    def entropy(of: list, given: list) -> float:
        total = 0.0
        for one in set(given):
            inside = [a for a, b in zip(of, given, strict=True) if b == one]
            total -= sum(inside.count(a) / len(of) * log(inside.count(a) / len(inside)) for a in set(inside))
        return total

    whole = [0] * len(classes)
    homogeneity = 1 - entropy(classes, clusters) / entropy(classes, whole)
    completeness = 1 - entropy(clusters, classes) / entropy(clusters, whole)
    return 2 * homogeneity * completeness / (homogeneity + completeness)


def test_clusters_are_scored_by_the_v_measure() -> None:
    generator = np.random.default_rng(0)
    labels = [label for label in "abc" for _ in range(20)]
    centres = {label: generator.normal(size=4) for label in "abc"}
    vectors = np.array([centres[label] + 0.6 * generator.normal(size=4) for label in labels])
    task = Clustering(LabelledTexts(tuple(map(str, range(60))), tuple(labels)), np.ones(60), starts=2, seed=0)
    found = task.outcomes({"text": vectors})
    assert found.shape == (60, 2)
    expected = np.mean([v_measure(labels, found[:, start].tolist()) for start in range(2)])
    assert 0.2 < expected < 1
    assert task.score(found, np.arange(60)) == pytest.approx(expected)
    # Drawn with repetition, as a bootstrap does.
    drawn = generator.integers(60, size=60)
    again = np.mean([v_measure_score(np.array(labels)[drawn], found[drawn, start]) for start in range(2)])
    assert task.score(found, drawn) == pytest.approx(again)
    assert np.array_equal(task.outcomes({"text": 7 * vectors}), found), "by direction"
