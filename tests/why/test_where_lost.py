"""The rules of where a search was lost, each by a case that it decides, and what stands beside a border."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from embaudit.questions.why.above import AboveAmong, RowAbove, has_content, kinds_of, near_among
from embaudit.questions.why.built import ReadOfText, TextPiece
from embaudit.questions.why.case import ByAnother, Case, InAField, OfAnotherType, ShownResults, StoreAnswer
from embaudit.questions.why.lost import where_lost
from embaudit.questions.why.rows import ExpectedRow, FoundElsewhere, near_ids

ROW = ExpectedRow(16, "policy-17", "a text of some words", np.ones(3))
TEN = ShownResults(10)


def above(count: int, kind: str = "") -> tuple[RowAbove, ...]:
    return tuple(RowAbove(f"r{place}", f"text {place}", 0.5, 0.0, kind) for place in range(count))


def answer(rank: int | None, **more: object) -> StoreAnswer:
    return replace(StoreAnswer(rank, index="HNSW", settings="ef 40", given=tuple("abcdefghij")), **more)  # type: ignore[arg-type]


CASE = Case("a query", "policy-17", ROW, is_own=True, passes=True, rank=1, cosine=0.6)
PIECE = TextPiece("the end", 200, 300, 270, True)
READ = ReadOfText(412, 256)
FIELD = InAField("source", "acme_q3.pdf", ("acme", "q3"), 2, 9)


def told(lost: str, cause: str, said: str, **known: Any) -> tuple[Case, str, str, str]:
    return replace(CASE, **known), lost, cause, said


# What is known of a case, what is lost, why, and a word of the sentence.
RULES: dict[str, tuple[Case, str, str, str]] = {
    "no such row": told("absent", "", "No row has", row=None),
    "its text in pieces": told("absent", "pieces", "c-1, c-2", row=None, elsewhere=("c-1", "c-2")),
    "the filter leaves it out": told("filter", "", "leaves it out", passes=False),
    "no vector": told("vector", "missing", "missing", vector="missing", rank=None),
    "zeros": told("vector", "zeros only", "zeros only", vector="zeros only"),
    "found by exact search alone": told("found", "", "10th of 10", rank=10),
    "found by the store": told("found", "", "3rd of 10", answer=answer(3)),
    "found, though it is foreign": told("found", "", "3rd", is_own=False, answer=answer(3)),
    "foreign": told("vector", "foreign", "0.7", is_own=False, rank=900, apart=0.7),
    "of another text": told("vector", "another text", "r5", is_own=False, rank=90, of_other="r5"),
    "a copy of it is found": told("found", "copy", "r9, is 2nd", rank=3, answer=answer(None, copy=("r9", 2))),
    "not reached": told("search", "approximate", "Exactly it is 3rd", rank=3, answer=answer(None)),
    "by another metric": told("search", "metric", "by cosine, it is 2nd, and not 214th", rank=214, declared_rank=2),
    "copies above": told("cut-off", "copies", "9 copies", rank=14, above=above(4) + above(9, "copy")),
    "behind the limit": told(
        "text", "beyond the limit", "behind token 256", rank=214, piece=PIECE, piece_rank=1, read=READ
    ),
    "in a piece": told(
        "text", "piece", "words 201 to 300", rank=214, piece=replace(PIECE, is_behind=False), piece_rank=2, read=READ
    ),
    "a piece that helps too little": told("function", "", "214th", rank=214, piece=PIECE, piece_rank=11),
    "hubs above": told("function", "hubs", "everybody's results", rank=12, above=above(9) + above(2, "hub")),
    "junk above": told("function", "no content", "without content", rank=12, above=above(9) + above(2, "no content")),
    "sticky tokens": told(
        "function",
        "sticky tokens",
        "'##ⁱ' × 8",
        rank=214,
        sticky=("'##ⁱ' × 8",),
        sticky_rank=2,
        readings=(("in lower case", 3),),
    ),
    "a typo": told("function", "query", "its typos mended", rank=214, readings=(("as 'x'", 2), ("in lower case", 90))),
    "just behind": told("cut-off", "k", "12th", rank=12, above=above(11)),
    "near copies above": told("cut-off", "copies", "9 near copies", rank=14, above=above(4) + above(9, "near copy")),
    "one near copy above": told("cut-off", "copies", "near", rank=11, above=above(9) + above(1, "near copy")),
    "headings above": told(
        "function", "few words", "2 rows of a few words", rank=12, above=above(9) + above(2, "few words")
    ),
    "odd ones of two kinds": told(
        "function",
        "few words",
        "3 rows that are odd (2 of a few words, 1 in everybody's results)",
        rank=13,
        above=above(9) + above(2, "few words") + above(1, "hub"),
    ),
    "just behind, with odd ones": told(
        "cut-off", "k", "of those above it 1 in everybody's results", rank=14, above=above(12) + above(1, "hub")
    ),
    "in a field": told("text", "another field", "'acme q3'", rank=99, field=FIELD),
    "in a field alone": told(
        "text", "another field", "by source alone, it is 2nd", rank=99, field=replace(FIELD, rank=40, alone=2)
    ),
    "a field that helps too little": told("function", "", "99th", rank=99, field=replace(FIELD, rank=11, alone=12)),
    "a piece by chance": told(
        "function", "", "214th", rank=214, piece=PIECE, piece_rank=1, piece_answers=False, read=READ
    ),
    "a history": told(
        "function",
        "long query",
        "asked by its last line alone, it is 1st",
        rank=99,
        query_read=ReadOfText(900, 254),
        readings=(("by its last line alone", 1),),
    ),
    "a long query": told(
        "function",
        "long query",
        "reads the first 254",
        rank=99,
        query_read=ReadOfText(900, 254),
        readings=(("by its last line alone", 11),),
    ),
    "a short query with several lines": told(
        "function",
        "query",
        "by its last line alone, it is 1st",
        rank=99,
        query_read=ReadOfText(20, 254),
        readings=(("by its last line alone", 1),),
    ),
    "a filter of another type": told(
        "filter",
        "type",
        "asks for the text '2021' in year, and the row has the number 2021",
        rank=3,
        answer=answer(None, typed=OfAnotherType("year", "2021", 2021, 1)),
    ),
    "another field has the id": told(
        "absent",
        "another field",
        "doc has it, in c-1, c-2",
        row=None,
        in_another=FoundElsewhere(("c-1", "c-2"), field="doc"),
    ),
    "another part has the id": told(
        "absent",
        "another part",
        "faq-old, in the same place",
        row=None,
        in_another=FoundElsewhere(("c-1",), part="faq-old"),
    ),
    "an id like it": told("absent", "", "look like it: policy-017", row=None, near_ids=("policy-017",)),
    "three times k": told("cut-off", "k", "30th", rank=30, above=above(29)),
    "farther": told("function", "", "31st", rank=31, above=above(30)),
    "by its words": told("function", "words", "besides, it is 3rd", rank=214, words=2, hybrid=3),
    "words, which are too few": told("function", "words", "it is 11th", rank=214, words=2, hybrid=11),
    # A mend that is not enough, and the next rule, or none.
    "foreign, and its answer behind the limit": told(
        "text",
        "beyond the limit",
        "Confirmed: with that piece",
        is_own=False,
        rank=900,
        again=300,
        piece=PIECE,
        piece_rank=1,
        read=READ,
    ),
    "foreign, and far by its own vector": told(
        "vector", "foreign", "Not confirmed: encoded again, it is 300th", is_own=False, rank=900, again=300
    ),
    "foreign, and near by its own vector": told(
        "vector", "foreign", "Confirmed: encoded again, it is 2nd, and not 900th", is_own=False, rank=900, again=2
    ),
    "zeros, and far by its own vector": told(
        "text",
        "another field",
        "Confirmed: with source before the text, it is 2nd.",
        vector="zeros only",
        rank=None,
        again=90,
        field=FIELD,
    ),
    "left out, and far with the value": told(
        "function",
        "query",
        "Confirmed: asked in lower case, it is 4th, and not 214th",
        passes=False,
        rank=214,
        readings=(("in lower case", 4),),
    ),
    "left out, and its vector is zeros": told(
        "vector", "zeros only", "encoded again, it is 1st", passes=False, vector="zeros only", rank=None, again=1
    ),
    "just behind, where the store does not look": told(
        "function", "words", "besides, it is 2nd", rank=14, answer=answer(None), words=1, hybrid=2
    ),
    "just behind, and below a cut-off": told(
        "cut-off",
        "k",
        "with 20 results, it is 14th",
        rank=14,
        below=frozenset({"asked in lower case"}),
        readings=(("in lower case", 2),),
    ),
    "another function has it": told(
        "function",
        "another function",
        "other has it at 2 of 500",
        rank=214,
        also=ByAnother("other", 2, None, None, 500, 500),
    ),
    "another has it, perhaps": told("function", "", "214th", rank=214, also=ByAnother("o", 1, 1, 11, 9, 5)),
    "the store could not be asked": told("found", "", "2nd", rank=2, answer=answer(None, failed="503")),
    "no vector of the query": told("not told", "", "no vector", query_has_vector=False),
    "never ranked": told("not told", "", "could not be ranked", rank=None),
}


@pytest.mark.parametrize(("case", "lost", "cause", "said"), RULES.values(), ids=RULES)
def test_each_rule_names_its_case(case: Case, lost: str, cause: str, said: str) -> None:
    declared = "cosine" if case.declared_rank is not None else "l2"

    found = where_lost(case, TEN, "l2", declared)  # type: ignore[arg-type]

    assert (found.lost, found.cause) == (lost, cause)
    assert said in found.sentence
    assert found.is_confirmed is not True or "Confirmed: " in found.sentence
    assert bool(found.mend) == (lost != "found" and said != "could not be ranked")


@pytest.mark.parametrize("cause", ["copies", "k", "metric"])
def test_what_leaves_a_score_below_the_cut_off_mends_nothing(cause: str) -> None:
    """Cosine .41, cut-off .5: neither fewer rows above it nor more results show it."""
    cases = {
        "copies": replace(CASE, cosine=0.41, rank=14, above=above(4) + above(9, "copy")),
        "k": replace(CASE, cosine=0.41, rank=14),
        "metric": replace(CASE, cosine=0.41, rank=214, declared_rank=2),
    }
    for least, is_confirmed in ((0.5, False), (0.4, True)):
        found = where_lost(cases[cause], ShownResults(10, least), "dot", "cosine" if cause == "metric" else "dot")
        assert (found.cause, found.is_confirmed) == (cause, is_confirmed)


def test_a_score_below_the_cut_off_is_lost_by_it() -> None:
    found = where_lost(replace(CASE, cosine=0.41), ShownResults(10, 0.5), "cosine", "cosine")

    assert (found.lost, found.cause) == ("cut-off", "score")
    assert "0.41" in found.sentence
    assert where_lost(CASE, ShownResults(10, 0.5), "cosine", "cosine").lost == "found"


SCORES: dict[str, tuple[str, str, float, float, str]] = {
    # Metric, scale, cosine, the row's own score, and what is said of it.
    "cosine": ("cosine", "cosine", 0.41, 0.41, "cosine of 0.41 is"),
    "distance": ("l2", "cosine", 0.41, -1.18, "cosine of 0.41 (squared distance 1.18)"),
    "inner product": ("dot", "cosine", 0.41, 12.0, "cosine of 0.41 (inner product 12.00)"),
    "relevance": ("l2", "relevance", 0.6, -0.8, "relevance of it, 0.43 (1 − d²/√2 of its squared distance 0.80"),
}


@pytest.mark.parametrize("name", SCORES)
def test_a_cut_off_has_a_scale(name: str) -> None:
    metric, scale, cosine, score, said = SCORES[name]
    case = replace(CASE, cosine=cosine, score=score)

    found = where_lost(case, ShownResults(10, 0.5, scale), metric, metric)  # type: ignore[arg-type]

    assert (found.lost, found.cause) == ("cut-off", "score")
    assert said in found.sentence
    lower = float(found.mend.split()[4].strip(";"))
    assert where_lost(case, ShownResults(10, lower, scale), metric, metric).lost == "found"  # type: ignore[arg-type]


def test_of_a_foreign_index_no_row_is_odd() -> None:
    case = replace(CASE, is_own=False, rank=90, apart=0.9)

    found = where_lost(case, TEN, "cosine", "cosine", own=0.05)

    assert (found.lost, found.cause) == ("vector", "foreign index")
    assert "5% were" in found.sentence
    assert where_lost(case, TEN, "cosine", "cosine", own=0.9).cause == "foreign"
    # Of a row beside it is said in any index.
    assert where_lost(replace(case, of_other="r5"), TEN, "cosine", "cosine", own=0.05).cause == "another text"


NEAR = {
    "policy-17": ("Policy_17", "policy-017", "polcy-17", "poilcy-17", "POLICY 17"),
    "refund-of-shipping": ("refund-of-shiping", "refnud-of-shipping", "refunds-of-shipping"),
    "12": ("0012",),
}
OTHERS = {
    "policy-17": ("policy-18", "policy-71", "policy-117", "police-man-17", "p-17"),
    "refund-of-shipping": ("refund-of-gifts", "shipping"),
    "12": ("1", "2", "13", "21", "a"),
    "nothing": ("noting-at-all", "thing"),
}


@pytest.mark.parametrize("name", {**NEAR, **OTHERS})
def test_an_id_looks_like_another_as_a_typo_does(name: str) -> None:
    for one in NEAR.get(name, ()):
        assert near_ids(name, [one]) == [one], one
    for one in OTHERS.get(name, ()):
        assert not near_ids(name, [one]), one


def test_what_would_find_it_is_said() -> None:
    found = where_lost(
        replace(CASE, rank=3, answer=answer(None, finds=(("ef 80", 3), ("ef 160", 2)))), TEN, "cosine", "cosine"
    )

    assert found.mend.startswith("Set ef 80;")
    assert [one.mend.name for one in found.trials] == ["with ef 80", "with ef 160", "in an index built anew"]


def rows_of(texts: Sequence[str]) -> list[RowAbove]:
    return [RowAbove(str(place), text, 1.0, 0.0, number=place) for place, text in enumerate(texts)]


def test_rows_above_are_told_by_what_makes_them_odd() -> None:
    texts = ["Same text here", "same  text here", "...", "plain words stand here", "page 7", "日本語の文章です"]
    rows = [replace(row, in_results=0.5 if row.number == 3 else 0.0) for row in rows_of(texts)]

    kinds = [one.kind for one in kinds_of(rows, AboveAmong(200, 1_000))]

    assert kinds == ["", "copy", "no content", "hub", "no content", ""]
    # In a store of a hundred rows, a tenth of all results is chance.
    assert kinds_of([rows[3]], AboveAmong(200, 60))[0].kind == ""


TEXT = "Employees may book economy class for flights below six hours and must ask their manager for anything else"
# Revisions of one text, and texts that are none.
REVISIONS = {
    "a number": TEXT.replace("six", "eight"),
    "a date": f"{TEXT} Revised 2024-03-01",
    "a heading before it": f"Travel policy v2: {TEXT}",
    "case and dashes": TEXT.upper().replace(" ", " - "),
    "some words": TEXT.replace("economy", "business").replace("six", "ten"),
}
NO_REVISIONS = {
    "another text": "Employees must hand in receipts for flights to their manager within thirty days of the journey",
    "a part": "Employees may book economy class",
    "of other words": "Staff can reserve coach seats on planes that take less than half of a day, or consult a boss",
}


@pytest.mark.parametrize("name", REVISIONS | NO_REVISIONS)
def test_revisions_of_a_text_are_near_copies_by_their_words(name: str) -> None:
    _, one = kinds_of(rows_of([TEXT, (REVISIONS | NO_REVISIONS)[name]]), AboveAmong(200, 1_000))
    assert one.kind == ("near copy" if name in REVISIONS else "")


@pytest.mark.parametrize(("cosine", "kind"), [(0.951, "near copy"), (0.949, "")])
def test_near_copies_are_told_by_their_vectors(cosine: float, kind: str) -> None:
    """Longer or shorter, in other words, or without a text."""
    vectors = {0: np.array([3.0, 0.0]), 1: 2 * np.array([cosine, (1 - cosine**2) ** 0.5])}
    for texts in (["one text of words", "another in other words"], ["", ""]):
        rows = [replace(row, text=row.text or None) for row in rows_of(texts)]
        _, one = kinds_of(rows, AboveAmong(200, 1_000, vectors=vectors))
        assert one.kind == kind


def test_rows_with_near_vectors_and_other_words_in_all_results_are_hubs() -> None:
    """What is said of their texts is no revision; of the same words, it is one however often it is found."""
    vectors = {0: np.array([1.0, 0.0]), 1: np.array([1.0, 0.01]), 2: np.array([1.0, 0.02])}
    texts = ["one text of words", "another in other ones", "something else again"]
    rows = [replace(row, in_results=0.3) for row in rows_of(texts)]
    kinds = [one.kind for one in kinds_of(rows, AboveAmong(200, 1_000, vectors=vectors))]
    assert kinds == ["hub", "hub", "hub"]
    revisions = [replace(row, in_results=0.3) for row in rows_of([TEXT, REVISIONS["a number"]])]
    assert [one.kind for one in kinds_of(revisions, AboveAmong(200, 1_000))] == ["hub", "near copy"]


@pytest.mark.parametrize(("usual", "near"), [(0.0, 0.95), (0.5, 0.95), (0.9, 0.975), (0.96, 0.99), (-0.3, 0.95)])
def test_where_any_two_texts_are_alike_near_is_nearer(usual: float, near: float) -> None:
    """Rows of one length around one direction, any two of which have about this cosine."""
    random = np.random.default_rng(0).normal(size=(60, 400))
    units = random / np.linalg.norm(random, axis=1, keepdims=True)
    units[:, 0] = 0
    rows = np.sqrt(1 - max(usual, 0)) * units
    rows[:, 0] = np.sqrt(max(usual, 0))
    assert near_among(7 * rows) == pytest.approx(near, abs=0.005)
    assert near_among(np.zeros((5, 4))) == near_among(rows[:1]) == 0.95


def test_a_copy_of_a_near_copy_is_one_of_the_first() -> None:
    """A chain of revisions is compared with its first: what has gone far from that is another text."""
    angles = [0.0, 0.25, 0.5]
    vectors = {place: np.array([np.cos(one), np.sin(one)]) for place, one in enumerate(angles)}
    rows = rows_of(["one text", "two text", "three text"])
    assert [one.kind for one in kinds_of(rows, AboveAmong(200, 1_000, vectors=vectors))] == ["", "near copy", ""]


@pytest.mark.parametrize(
    ("text", "usual", "kind"),
    [
        ("Travel expenses", 60, "few words"),
        ("How do I return a gift?", 60, ""),
        ("Our refund policy for gifts", 60, "few words"),
        # In a store of short texts, a short one is a text.
        ("Travel expenses", 6, ""),
        ("Travel expenses", 0, ""),
    ],
)
def test_a_heading_among_texts_is_odd(text: str, usual: float, kind: str) -> None:
    (one,) = kinds_of(rows_of([text]), AboveAmong(200, 1_000, usual))
    assert one.kind == kind


@pytest.mark.parametrize(
    ("text", "has"), [("", False), ("42", False), ("Introduction", False), ("two words", True), ("質問の答え", True)]
)
def test_a_text_has_content_if_it_says_something(text: str, has: bool) -> None:
    assert has_content(text) == has


@pytest.mark.parametrize(
    ("vector", "mend"),
    [
        ("of 768 numbers, those of this function's queries of 384", "Ask with the function that built the index"),
        ("of 384 numbers, those of others of 768", "Encode this row again."),
        ("zeros only", "Encode this row again."),
    ],
)
def test_of_an_index_of_another_dimension_no_single_row_is_to_be_encoded(vector: str, mend: str) -> None:
    assert where_lost(replace(CASE, vector=vector), TEN, "cosine", "cosine").mend.startswith(mend)
