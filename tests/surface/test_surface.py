"""Queries written otherwise: each change by itself, effects against slow ones, and what is known beforehand."""

from __future__ import annotations

import json
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from declared_rows import row_of
from hypothesis import given, settings
from hypothesis import strategies as st
from measure_alone import Tables, answered, found_by, run_on, tables_of
from tiny import ENGLISH, tiny_bert

from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.corpora.downstream.retrieval import overlaps, ranked
from embaudit.measures.surface.changes import CHANGES, HOMOGLYPHS, NEIGHBOURS, OTHER_SPELLINGS, PAIRS, ZERO_WIDTH
from embaudit.measures.surface.findings import section
from embaudit.measures.surface.steps import SurfaceEffect, distances, is_newly_unwritten

BY_NAME = {change.name: change for change in CHANGES}
ANY_TEXT = st.text(max_size=40)
WORDS = ENGLISH.split()


def write(name: str, text: str, seed: int = 0) -> str:
    return BY_NAME[name].write(text, seed)


# ---- changes ----


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        *(("lower case", "NATO in Łódź", "nato in łódź"), ("upper case", "does café?", "DOES CAFÉ?")),
        ("title case", "how can't (it) be", "How Can't (it) Be"),
        ("no punctuation", "Can't I, in version 4.2, use non-free C++?", "Cant I in version 4.2 use non free C++"),
        *(("question mark", "why is it so", "why is it so?"), ("question mark", "why is it so?", "why is it so?")),
        *(("other normal form", "café", "cafe\u0301"), ("other normal form", "cafe\u0301", "café")),
        *(("full width", "why 1?", "\uff57\uff48\uff59 \uff11\uff1f"), ("full width", "왜", "왜")),
        ("homoglyphs", "a Car", "\u0430 \u0421\u0430r"),
        ("zero-width spaces", "the bicycle", f"the bic{ZERO_WIDTH}ycle"),
        *(("doubled spaces", "a b", "a  b"), ("doubled spaces", "one", "one")),
        ("British or American", "Colour of the HARBOR, organised", "Color of the HARBOUR, organized"),
    ],
)
def test_a_change_writes(name: str, text: str, expected: str) -> None:
    assert write(name, text) == expected


@settings(max_examples=25)
@given(text=ANY_TEXT, seed=st.integers(0, 9))
def test_a_change_is_the_same_whenever_it_is_made(text: str, seed: int) -> None:
    for change in CHANGES:
        assert change.write(text, seed) == change.write(text, seed)
    assert unicodedata.normalize("NFKC", write("full width", text)) == unicodedata.normalize("NFKC", text)
    assert write("zero-width spaces", text).replace(ZERO_WIDTH, "") == text.replace(ZERO_WIDTH, "")
    assert write("other normal form", write("other normal form", unicodedata.normalize("NFC", text))) == (
        unicodedata.normalize("NFC", text)
    )


@settings(max_examples=30)
@given(words=st.lists(st.sampled_from(WORDS), max_size=8), seed=st.integers(0, 9))
def test_a_typo_is_one_inside_a_longer_word(words: list[str], seed: int) -> None:
    text = " ".join(words)
    long = [word for word in words if len(word) >= 4]
    near, swapped, short = (
        write(name, text, seed) for name in ("neighbouring key", "swapped letters", "letter left out")
    )
    if not long:
        assert {near, swapped, short} == {text}
        return
    (place,) = [at for at, (one, two) in enumerate(zip(text, near, strict=True)) if one != two]
    assert near[place] in NEIGHBOURS[text[place]]
    assert text[place - 1] != " " != text[place + 1]
    if swapped != text:
        places = [at for at, (one, two) in enumerate(zip(text, swapped, strict=True)) if one != two]
        assert places[1] == places[0] + 1
        assert sorted(swapped) == sorted(text)
    assert len(short) == len(text) - 1
    assert [word[0] + word[-1] for word in short.split()] == [word[0] + word[-1] for word in words]


def test_typos_differ_by_text_and_seed() -> None:
    made = {(seed, write("neighbouring key", text, seed)) for seed in range(5) for text in ("winter summer", "morning")}
    assert len({text for _, text in made}) > 5


def test_keys_have_their_neighbours() -> None:
    assert (set(NEIGHBOURS["g"]), set(NEIGHBOURS["q"]), set(NEIGHBOURS["m"])) == (set("tyfhvb"), set("wa"), set("njk"))
    assert all(one in NEIGHBOURS[other] for one, others in NEIGHBOURS.items() for other in others)


def test_spellings_are_pairs_in_both_directions() -> None:
    pairs = [line.split() for line in PAIRS.strip().splitlines()]
    assert len(pairs) >= 80
    assert len(OTHER_SPELLINGS) == 2 * len(pairs)
    assert all(OTHER_SPELLINGS[one] == other and OTHER_SPELLINGS[other] == one for one, other in pairs)


def test_homoglyphs_look_alike_and_are_others() -> None:
    for one, other in HOMOGLYPHS.items():
        assert "CYRILLIC" in unicodedata.name(chr(other))
        assert "LATIN" in unicodedata.name(chr(one))


# ---- effects ----


def test_an_effect_is_the_mean_over_the_queries() -> None:
    rng = np.random.default_rng(0)
    before, after, overlap = rng.uniform(size=(3, 30))
    same = rng.uniform(size=30) < 0.3
    found = SurfaceEffect(np.arange(30), same, ~same, overlap, overlap, before, after).columns()
    assert found["ndcg_change"] == pytest.approx(sum(b - a for a, b in zip(before, after, strict=True)) / 30)
    assert found["same_tokens"] == sum(same.tolist()) / 30
    assert (found["queries"], found["units"], found["words_overlap"]) == (30, 30, None)
    low, high = found["overlap_low"], found["overlap_high"]
    assert low is not None
    assert high is not None
    # Bootstrap percentiles of a mean are near the normal interval.
    half = 1.96 * overlap.std() / 30**0.5
    assert (low, high) == pytest.approx((overlap.mean() - half, overlap.mean() + half), abs=0.02)


@pytest.mark.parametrize("units", [np.arange(9), np.zeros(30, dtype=int)])
def test_few_units_have_no_interval(units: np.ndarray) -> None:
    values = np.linspace(0, 1, len(units))
    found = SurfaceEffect(units, values > 2, values > 2, values, values, values, values[::-1]).columns()
    assert found["overlap"] == pytest.approx(0.5)
    assert found["overlap_low"] is found["overlap_high"] is found["ndcg_change_low"] is None


def test_no_query_has_no_effect() -> None:
    found = SurfaceEffect(*[np.empty(0)] * 7).columns()
    assert found.pop("queries") == found.pop("units") == 0
    assert set(found.values()) == {None}


def test_distances_are_those_of_single_cosines() -> None:
    one, two = np.random.default_rng(0).normal(size=(2, 20, 8)).astype(np.float32)
    two[3] = 0
    slow = [1 - float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b) or 1)) for a, b in zip(one, two, strict=True)]
    assert distances(one, two) == pytest.approx(slow, abs=1e-6)
    assert distances(one, two)[3] == 1


def test_what_is_newly_unwritten() -> None:
    assert is_newly_unwritten([5, 6], [5, 1], 1)
    assert is_newly_unwritten([5], [], None)
    assert not is_newly_unwritten([1, 6], [1], 1)
    assert not is_newly_unwritten([], [], 1)
    assert not is_newly_unwritten([5], [6], None)


@pytest.mark.parametrize("documents", [20, 100])
def test_random_vectors_keep_as_many_as_chance(documents: int) -> None:
    rng = np.random.default_rng(0)
    first, second = (ranked(rng.normal(size=(2_000, documents))) for _ in range(2))
    assert overlaps(first, second).mean() == pytest.approx(10 / documents, rel=0.05)


# ---- the step ----


def texts(count: int, words: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, words)) for _ in range(count)]


DOCUMENTS = texts(30, 12, 0)
# Capitals, accents, punctuation and digits, so that every change has queries.
QUERIES = [
    *(f"The {document.split()[0]} Colour, of {' '.join(document.split()[2:6])}" for document in DOCUMENTS[:14]),
    *("is the café red", "왜"),
]
ROWS_OF_ALL = len(CHANGES)


def nfkc(folder: Path) -> Path:
    """The tiny checkpoint with a tokenizer that normalises by NFKC first."""
    path = tiny_bert(folder) / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    tokenizer["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "NFKC"}, tokenizer["normalizer"]]}
    path.write_text(json.dumps(tokenizer))
    return folder


@pytest.fixture(scope="module")
def by_change(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    run = run_on(tiny_checkpoint, tmp_path_factory.mktemp("surface"), "surface", DOCUMENTS, QUERIES)
    tables = tables_of(run, "surface")
    return {row["change"]: [row] for row in tables["surface"]}


def test_every_change_has_a_row(by_change: Tables) -> None:
    assert list(by_change) == [change.name for change in CHANGES]
    for name, (row,) in by_change.items():
        changed = sum(write(name, text) != text for text in QUERIES)
        assert (row["queries"], row["unchanged"]) == (changed, len(QUERIES) - changed)
        assert row["overlap"] is not None
    assert by_change["neighbouring key"][0]["unchanged"] == 1


@pytest.mark.parametrize("name", ["lower case", "upper case", "title case", "zero-width spaces", "doubled spaces"])
def test_a_tokenizer_that_does_not_see_a_change_passes_exactly(by_change: Tables, name: str) -> None:
    (row,) = by_change[name]
    assert (row["same_tokens"], row["overlap"], row["ndcg_change"], row["moved"]) == (1, 1, 0, 0)
    # A zero width is no certainty.
    assert row["overlap_low"] is row["ndcg_change_high"] is None
    if name != "zero-width spaces":
        assert (row["words_overlap"], row["words_ndcg_change"]) == (1, 0)


def test_what_the_tokenizer_cannot_write_is_counted(by_change: Tables, tmp_path: Path) -> None:
    (row,) = by_change["full width"]
    # 왜 stays as it is, and é loses its accent.
    assert (row["unwritten"], row["same_tokens"]) == (1, 0)
    assert row["overlap"] < 1
    assert row["words_overlap"] == 0
    run = run_on(nfkc(tmp_path / "nfkc"), tmp_path, "surface", DOCUMENTS, QUERIES)
    (row,) = (row for row in tables_of(run, "surface")["surface"] if row["change"] == "full width")
    assert (row["unwritten"], row["same_tokens"], row["overlap"], row["ndcg_change"]) == (0, 1, 1, 0)


def test_a_row_is_what_the_served_vectors_give_one_query_at_a_time(by_change: Tables, tiny_checkpoint: Path) -> None:
    (row,) = by_change["letter left out"]
    encoder = Encoder(load_checkpoint(str(tiny_checkpoint)))

    @cache
    def vector(text: str) -> np.ndarray:
        found = encoder.encode_texts([text])[0].astype(float)
        return np.asarray(found / np.linalg.norm(found))

    documents = [vector(text) for text in DOCUMENTS]

    @cache
    def best(text: str) -> list[int]:
        return sorted(range(len(documents)), key=lambda at: -(vector(text) @ documents[at]))[:10]

    def ndcg(text: str, wanted: int) -> float:
        return 1 / np.log2(best(text).index(wanted) + 2) if wanted in best(text) else 0.0

    moved, overlap, change = [], [], []
    for place, text in enumerate(QUERIES):
        other = write("letter left out", text)
        if other != text:
            moved.append(1 - vector(text) @ vector(other))
            overlap.append(len({*best(text)} & {*best(other)}) / 10)
            change.append(ndcg(other, place) - ndcg(text, place))
    assert row["moved"] == pytest.approx(np.mean(moved), abs=1e-5)
    assert row["overlap"] == pytest.approx(np.mean(overlap))
    assert row["ndcg_change"] == pytest.approx(np.mean(change))


def test_too_few_queries_are_said_so(tiny_checkpoint: Path, tmp_path: Path) -> None:
    tables = tables_of(run_on(tiny_checkpoint, tmp_path, "surface", DOCUMENTS, QUERIES[:2]), "surface")
    assert list(tables) == ["note"]
    assert found_by("surface", tables) == {}


def test_a_text_without_any_token_finds_nothing(tmp_path: Path) -> None:
    """A checkpoint without special tokens, whose tokenizer drops what it cannot write."""
    folder = tiny_bert(tmp_path / "bare")
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    tokenizer["post_processor"] = None
    wide = {"type": "Replace", "pattern": {"Regex": "[\uff01-\uff5e]"}, "content": ""}
    tokenizer["normalizer"] = {"type": "Sequence", "normalizers": [wide, tokenizer["normalizer"]]}
    path.write_text(json.dumps(tokenizer))
    run = run_on(folder, tmp_path, "surface", DOCUMENTS, [text for text in QUERIES if text.isascii()])
    (row,) = (row for row in tables_of(run, "surface")["surface"] if row["change"] == "full width")
    assert (row["unwritten"], row["overlap"], row["moved"]) == (1, 0, 1)
    assert row["ndcg_change"] == pytest.approx(-row["ndcg"])


# ---- findings ----


def row(change: str, value: float = 0.0, low: float | None = None, high: float | None = None, **more: Any) -> Any:
    numbers = {"ndcg_change": value, "ndcg_change_low": low, "ndcg_change_high": high}
    kept: dict[str, Any] = {"queries": 90, "units": 90, "unwritten": 0.0, **more}
    return row_of("surface", change=change, kind=BY_NAME[change].kind, **numbers, **kept)


@pytest.mark.parametrize(
    ("value", "low", "high", "level"),
    [
        *((-0.019, -0.03, -0.01, "ok"), (-0.02, -0.03, -0.01, "look"), (-0.02, -0.039, 0.001, "ok")),
        *((-0.02, -0.05, 0.01, "not measured"), (0.0, None, None, "ok"), (-1.0, None, None, "look")),
    ],
)
def test_a_form_loses_from_two_points(value: float, low: float | None, high: float | None, level: str) -> None:
    made = found_by("surface", {"surface": [row("lower case", value, low, high)]})
    assert made["same_meaning"].level == level
    assert made["typos"].level == "not measured"


@pytest.mark.parametrize(
    ("value", "low", "high", "level"),
    [
        *((-0.05, -0.08, -0.02, "ok"), (-0.1, -0.2, -0.01, "look"), (-0.09, -0.19, -0.01, "ok")),
        (-0.1, -0.3, 0.1, "not measured"),
    ],
)
def test_a_typo_costs_too_much_from_ten_points(value: float, low: float, high: float, level: str) -> None:
    made = found_by("surface", {"surface": [row("swapped letters", value, low, high)]})
    assert (made["typos"].level, made["same_meaning"].level) == (level, "not measured")


def test_findings_say_what_loses_what_does_not_and_what_is_not_known() -> None:
    rows = [
        row("full width", -0.8, -0.9, -0.7, unwritten=1.0),
        row("homoglyphs", -0.9, -0.95, -0.85, unwritten=0.4),
        *(row("upper case"), row("other normal form", -0.5, queries=7, units=7)),
        row("British or American", queries=0),
    ]
    made = found_by("surface", {"surface": rows})["same_meaning"]
    assert made.sentence == (
        "The same query in another form finds less, in nDCG@10: homoglyphs -0.900 [-0.950, -0.850]; full width -0.800 "
        "[-0.900, -0.700] (the tokenizer cannot write 100% of them). It finds as much with: upper case. Too few "
        "queries to tell: other normal form (7)."
    )
    assert (made.value, made.low, made.high) == (-0.9, -0.95, -0.85)
    assert made.advice
    assert found_by("surface", {"surface": []}) == {}


def test_the_section_shows_every_change(by_change: Tables) -> None:
    rows = [row for (row,) in by_change.values()]
    made = section({"surface": rows})
    assert made is not None
    table, chart = made.parts
    assert len(table.rows) == ROWS_OF_ALL  # type: ignore[union-attr]
    assert not chart.is_empty  # type: ignore[union-attr]
    assert section({"surface": []}) is None


def test_the_query_lists_every_change(by_change: Tables, empty_once: Path, tmp_path: Path) -> None:
    rows = [row for (row,) in by_change.values()]
    found = answered("surface", {"surface": rows}, empty_once, tmp_path)
    assert {one["change"] for one in found} == set(BY_NAME)
    overlaps = [one["overlap"] for one in found]
    assert overlaps == sorted(overlaps)
