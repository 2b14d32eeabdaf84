"""Over-representation against counting loops, Fisher's test from binomials, and pairs compared one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from math import comb
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_points import slow_benjamini_hochberg

from embaudit.checkpoint.vocabulary import TokenEntry
from embaudit.measures.sticky.evidence.enrichment import (
    LABELS,
    NUMBERS,
    enrichment_rows,
    is_non_latin,
    is_non_latin_or_symbol,
)
from embaudit.words.errors import MeasureError

Row = dict[str, Any]
COLUMNS = {
    *("selection", "attribute", "value", "selected_with", "selected", "scanned_with", "scanned"),
    *("share_selected", "share_scanned", "fold", "odds_ratio", "p_value", "q_value"),
    *("selected_median", "scanned_median", "auc"),
}
LABELS_ONLY = ("share_selected", "share_scanned", "fold", "odds_ratio")
NUMBERS_ONLY = ("selected_median", "scanned_median", "auc")


def token(
    token_id: int,
    origin: str = "word",
    script: str = "Latin",
    norm: float | None = 1.0,
    cosine: float | None = 0.5,
) -> Row:
    return {
        "token_id": token_id,
        "origin": origin,
        "script": script,
        "embedding_norm": norm,
        "cosine_to_mean": cosine,
    }


# Few different numbers, so that ties are common.
numbers = st.none() | st.sampled_from([-1.0, 0.0, 0.25, 0.5, 3.0])
tokens_of_any_kind = st.lists(
    st.tuples(
        st.sampled_from(["word", "subword", "byte", "punctuation", "special"]),
        st.sampled_from(["Latin", "Han", "Common", "Unknown"]),
        numbers,
        numbers,
    ),
    min_size=1,
    max_size=30,
).map(lambda kinds: [token(3 * n, *kind) for n, kind in enumerate(kinds)])


def slow_fisher(a: int, b: int, c: int, d: int) -> float:
    """Sum of the hypergeometric probabilities of all tables with these margins that are no likelier than this one."""
    row, column, total = a + b, a + c, a + b + c + d
    ways = [comb(column, k) * comb(total - column, row - k) for k in range(min(row, column) + 1)]
    return sum(way for way in ways if way <= ways[a] * (1 + 1e-7)) / comb(total, row)


def slow_labels(row: Row, attribute: str) -> set[str]:
    non_latin = row["script"] not in ("Latin", "Common", "Inherited", "Unknown")
    return {
        "origin": {row["origin"]},
        "script": {row["script"]},
        "origin x script": {row["origin"] + " x " + row["script"]},
        "non_latin": {"yes"} if non_latin else set(),
        "non_latin_or_symbol": {"yes"} if non_latin or row["origin"] in ("punctuation", "byte") else set(),
    }[attribute]


def median(values: list[float]) -> float:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def of(rows: list[Row], attribute: str, selection: str = "s") -> dict[str, Row]:
    return {row["value"]: row for row in rows if (row["selection"], row["attribute"]) == (selection, attribute)}


@given(tokens=tokens_of_any_kind, data=st.data())
@settings(max_examples=80)
def test_shares_and_tests_against_counting(tokens: list[Row], data: st.DataObject) -> None:
    scanned = data.draw(st.lists(st.sampled_from(tokens), min_size=1, unique_by=lambda row: row["token_id"]))
    chosen = data.draw(st.sets(st.sampled_from([row["token_id"] for row in scanned]), min_size=1))
    rows = enrichment_rows(tokens, [row["token_id"] for row in scanned], {"s": chosen})
    for attribute in LABELS:
        found = of(rows, attribute)
        assert list(found) == sorted(set().union(*(slow_labels(row, attribute) for row in scanned)))
        for value, row in found.items():
            a = b = c = d = 0
            for other in scanned:
                has, is_chosen = value in slow_labels(other, attribute), other["token_id"] in chosen
                a, b = a + (is_chosen and has), b + (is_chosen and not has)
                c, d = c + (not is_chosen and has), d + (not is_chosen and not has)
            assert (row["selected_with"], row["selected"]) == (a, a + b)
            assert (row["scanned_with"], row["scanned"]) == (a + c, a + b + c + d)
            assert row["share_selected"] == pytest.approx(a / (a + b))
            assert row["share_scanned"] == pytest.approx((a + c) / len(scanned))
            assert row["fold"] == pytest.approx(a * len(scanned) / (a + b) / (a + c))
            assert row["odds_ratio"] == (pytest.approx(a * d / (b * c)) if b * c else None)
            assert row["p_value"] == pytest.approx(slow_fisher(a, b, c, d))
        expected = slow_benjamini_hochberg([row["p_value"] for row in found.values()])
        assert [row["q_value"] for row in found.values()] == pytest.approx(expected)


@given(tokens=tokens_of_any_kind, data=st.data())
@settings(max_examples=80)
def test_numbers_against_every_pair_of_tokens(tokens: list[Row], data: st.DataObject) -> None:
    scanned = data.draw(st.lists(st.sampled_from(tokens), min_size=1, unique_by=lambda row: row["token_id"]))
    chosen = data.draw(st.sets(st.sampled_from([row["token_id"] for row in scanned]), min_size=1))
    rows = enrichment_rows(tokens, [row["token_id"] for row in scanned], {"s": chosen})
    for attribute in NUMBERS:
        (row,) = of(rows, attribute).values()
        known = [other for other in scanned if other[attribute] is not None]
        assert (row["selected"], row["scanned"]) == (len(chosen), len(scanned))
        inside = [other[attribute] for other in known if other["token_id"] in chosen]
        outside = [other[attribute] for other in known if other["token_id"] not in chosen]
        wins = [1.0 if x > y else 0.5 if x == y else 0.0 for x in inside for y in outside]
        assert (row["selected_with"], row["scanned_with"]) == (len(inside), len(known))
        assert row["auc"] == (pytest.approx(sum(wins) / len(wins)) if wins else None)
        assert row["selected_median"] == (median(inside) if inside else None)
        assert row["scanned_median"] == (median(inside + outside) if known else None)
        assert row["p_value"] == row["q_value"]
        assert (row["p_value"] is None) == (not wins)
        assert row["p_value"] is None or 0 <= row["p_value"] <= 1


def test_the_exact_p_value_of_a_number_by_hand() -> None:
    """The two largest of five: 1 of the C(5, 2) = 10 ways on each side, two-sided 2/10."""
    tokens = [token(n, norm=float(n)) for n in range(5)]
    (row,) = of(enrichment_rows(tokens, range(5), {"s": [3, 4]}), "embedding_norm").values()
    assert row["auc"] == 1.0
    assert row["p_value"] == pytest.approx(0.2)


@given(tokens=tokens_of_any_kind, data=st.data())
@settings(max_examples=40)
def test_the_order_of_tokens_and_ids_does_not_matter(tokens: list[Row], data: st.DataObject) -> None:
    ids = [row["token_id"] for row in tokens]
    chosen = data.draw(st.lists(st.sampled_from(ids), min_size=1))
    expected = enrichment_rows(tokens, ids, {"s": set(chosen)})
    shuffled = enrichment_rows(data.draw(st.permutations(tokens)), data.draw(st.permutations(ids)), {"s": chosen})
    assert shuffled == expected


@given(tokens=tokens_of_any_kind, data=st.data())
@settings(max_examples=40)
def test_every_row_has_every_column_and_no_nan(tokens: list[Row], data: st.DataObject) -> None:
    ids = [row["token_id"] for row in tokens]
    selections = data.draw(st.dictionaries(st.sampled_from("abc"), st.sets(st.sampled_from(ids))))
    rows = enrichment_rows(tokens, ids, selections)
    assert {row["selection"] for row in rows} == {name for name, chosen in selections.items() if chosen}
    keys = [(row["selection"], row["attribute"], row["value"]) for row in rows]
    assert len(keys) == len(set(keys))
    for row in rows:
        assert row.keys() == COLUMNS
        assert all(math.isfinite(value) for value in row.values() if isinstance(value, float))
        not_its_own = LABELS_ONLY if row["attribute"] in NUMBERS else NUMBERS_ONLY
        assert all(row[column] is None for column in not_its_own)


def test_nothing_selected_gives_no_rows() -> None:
    assert enrichment_rows([token(0)], [0], {"s": []}) == []
    assert enrichment_rows([token(0)], [0], {}) == []
    assert enrichment_rows([], [], {"s": []}) == []


def test_a_value_that_all_tokens_share() -> None:
    row = of(enrichment_rows([token(n) for n in range(4)], range(4), {"s": [0]}), "origin")["word"]
    assert (row["fold"], row["odds_ratio"], row["p_value"], row["q_value"]) == (1.0, None, 1.0, 1.0)
    norm = of(enrichment_rows([token(n) for n in range(4)], range(4), {"s": [0]}), "embedding_norm")[""]
    assert (norm["auc"], norm["p_value"]) == (0.5, 1.0)


@pytest.mark.parametrize(
    ("scanned", "selected", "message"),
    [
        ([0, 1], [1, 2], "1 of 2 token ids of selection 's' were not scanned, starting with 2"),
        ([], [0], "were not scanned, starting with 0"),
        ([0, 7, 8], [0], "2 of 3 scanned token ids are not in the vocabulary, starting with 7"),
    ],
)
def test_ids_that_do_not_belong_together(scanned: list[int], selected: list[int], message: str) -> None:
    with pytest.raises(MeasureError, match=message):
        enrichment_rows([token(n) for n in range(3)], scanned, {"s": selected})


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_names_its_token(value: float) -> None:
    with pytest.raises(MeasureError, match="Token 1 has embedding_norm"):
        enrichment_rows([token(0), token(1, norm=value)], [0, 1], {"s": [0]})


@pytest.mark.parametrize(
    ("origin", "script", "non_latin", "or_symbol"),
    [
        ("word", "Latin", False, False),
        ("word", "Han", True, True),
        ("subword", "Cyrillic", True, True),
        ("punctuation", "Tibetan", True, True),
        ("punctuation", "Common", False, True),
        ("punctuation", "Inherited", False, True),  # a lone accent
        ("punctuation", "Unknown", False, True),  # private use
        ("byte", "Unknown", False, True),  # a part of a character
        ("digits", "Common", False, False),
        ("special", "Common", False, False),
        ("unused", "Unknown", False, False),  # a row of the matrix that no token has
    ],
)
def test_what_counts_as_non_latin_and_as_symbol(origin: str, script: str, non_latin: bool, or_symbol: bool) -> None:
    assert is_non_latin(token(0, origin, script)) == non_latin
    assert is_non_latin_or_symbol(token(0, origin, script)) == or_symbol


@pytest.mark.slow
def test_the_scanned_vocabulary_of_minilm(real_vocabulary: Callable[[str], list[TokenEntry]]) -> None:
    """Of all-MiniLM-L6-v2's scanned tokens 3.8 % are non-Latin, and 4.6 % with symbols."""
    entries = real_vocabulary("minilm")
    tokens = [asdict(entry) | dict.fromkeys(NUMBERS) for entry in entries]
    scanned = [entry.token_id for entry in entries if entry.is_reachable or entry.category == "special"]
    shown = [entry.token_id for entry in entries if entry.token in ("糹", "ང", "ন", "ذ", "ᆷ", "ვ", "€", "[MASK]")]
    rows = enrichment_rows(tokens, scanned, {"s": shown})
    non_latin, or_symbol = of(rows, "non_latin")["yes"], of(rows, "non_latin_or_symbol")["yes"]
    assert (non_latin["scanned_with"], non_latin["scanned"], non_latin["selected_with"]) == (1_107, 29_191, 6)
    assert (or_symbol["scanned_with"], or_symbol["selected_with"]) == (1_340, 7)
    assert round(non_latin["share_scanned"], 3) == 0.038
    assert non_latin["p_value"] < 1e-6
    assert of(rows, "origin x script")["word x Tibetan"]["selected_with"] == 1
    assert sum(row["scanned_with"] for row in of(rows, "script").values()) == 29_191
