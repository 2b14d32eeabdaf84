"""The rules of where a search was lost, each by a case that it decides, and what stands beside a border."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from embaudit.comparisons.why.above import AboveAmong, RowAbove, has_content, kinds_of
from embaudit.comparisons.why.case import ByAnother, Case, StoreAnswer
from embaudit.comparisons.why.gathered import ExpectedRow
from embaudit.comparisons.why.lost import ShownResults, where_lost
from embaudit.comparisons.why.pieces import ReadOfText, TextPiece

ROW = ExpectedRow(16, "policy-17", "a text of some words", np.ones(3))
TEN = ShownResults(10)


def above(count: int, kind: str = "") -> tuple[RowAbove, ...]:
    return tuple(RowAbove(f"r{place}", f"text {place}", 0.5, 0.0, kind) for place in range(count))


def answer(rank: int | None, **more: object) -> StoreAnswer:
    return replace(StoreAnswer(rank, index="HNSW", settings="ef 40", given=tuple("abcdefghij")), **more)  # type: ignore[arg-type]


CASE = Case("a query", "policy-17", ROW, is_own=True, passes=True, rank=1, cosine=0.6)
PIECE = TextPiece("the end", 200, 300, 270, True)
READ = ReadOfText(412, 256)
# What is known of a case, what is lost, why, and a word of the sentence.
RULES: dict[str, tuple[Case, str, str, str]] = {
    "no such row": (replace(CASE, row=None), "absent", "", "No row has"),
    "its text in pieces": (replace(CASE, row=None, elsewhere=("c-1", "c-2")), "absent", "pieces", "c-1, c-2"),
    "the filter leaves it out": (replace(CASE, passes=False), "filter", "", "leaves it out"),
    "no vector": (replace(CASE, vector="missing", rank=None), "vector", "missing", "missing"),
    "zeros": (replace(CASE, vector="zeros only"), "vector", "zeros only", "zeros only"),
    "found by exact search alone": (replace(CASE, rank=10), "found", "", "10th of 10"),
    "found by the store": (replace(CASE, answer=answer(3)), "found", "", "3rd of 10"),
    "found, though it is foreign": (replace(CASE, is_own=False, answer=answer(3)), "found", "", "3rd"),
    "foreign": (replace(CASE, is_own=False, rank=900, apart=0.7), "vector", "foreign", "0.7"),
    "of another text": (replace(CASE, is_own=False, rank=90, of_other="r5"), "vector", "another text", "r5"),
    "a copy of it is found": (
        replace(CASE, rank=3, answer=answer(None, copy=("r9", 2))),
        "found",
        "copy",
        "r9, is 2nd",
    ),
    "not reached": (replace(CASE, rank=3, answer=answer(None)), "search", "approximate", "Exactly it is 3rd"),
    "by another metric": (replace(CASE, rank=214, declared_rank=2), "search", "metric", "it would be 2nd"),
    "copies above": (replace(CASE, rank=14, above=above(4) + above(9, "copy")), "cut-off", "copies", "9 copies"),
    "behind the limit": (
        replace(CASE, rank=214, piece=PIECE, piece_rank=1, read=READ),
        "text",
        "beyond the limit",
        "behind token 256",
    ),
    "in a piece": (
        replace(CASE, rank=214, piece=replace(PIECE, is_behind=False), piece_rank=2, read=READ),
        "text",
        "piece",
        "words 201 to 300",
    ),
    "a piece that helps too little": (replace(CASE, rank=214, piece=PIECE, piece_rank=11), "function", "", "214th"),
    "hubs above": (replace(CASE, rank=12, above=above(9) + above(2, "hub")), "function", "hubs", "everybody's results"),
    "junk above": (
        replace(CASE, rank=12, above=above(9) + above(2, "no content")),
        "function",
        "no content",
        "without content",
    ),
    "sticky tokens": (
        replace(CASE, rank=214, sticky=("'##ⁱ' × 8",), sticky_rank=2, readings=(("in lower case", 3),)),
        "function",
        "sticky tokens",
        "'##ⁱ' × 8",
    ),
    "a typo": (replace(CASE, rank=214, readings=(("as 'x'", 2), ("in lower case", 90))), "function", "query", "as 'x'"),
    "just behind": (replace(CASE, rank=12, above=above(11)), "cut-off", "k", "12th"),
    "three times k": (replace(CASE, rank=30, above=above(29)), "cut-off", "k", "30th"),
    "farther": (replace(CASE, rank=31, above=above(30)), "function", "", "31st"),
    "by its words": (replace(CASE, rank=214, words=2), "function", "words", "BM25 has it at 2"),
    "another function has it": (
        replace(CASE, rank=214, also=ByAnother("other", 2, None, None, 500, 500)),
        "function",
        "another function",
        "other has it at 2 of 500",
    ),
    "another has it, perhaps": (replace(CASE, rank=214, also=ByAnother("o", 1, 1, 11, 9, 5)), "function", "", "214th"),
    "the store could not be asked": (replace(CASE, rank=2, answer=answer(None, failed="503")), "found", "", "2nd"),
    "no vector of the query": (replace(CASE, query_has_vector=False), "not told", "", "no vector"),
    "never ranked": (replace(CASE, rank=None), "not told", "", "could not be ranked"),
}


@pytest.mark.parametrize(("case", "lost", "cause", "said"), RULES.values(), ids=RULES)
def test_each_rule_names_its_case(case: Case, lost: str, cause: str, said: str) -> None:
    declared = "cosine" if case.declared_rank is not None else "l2"

    found = where_lost(case, TEN, "l2", declared)  # type: ignore[arg-type]

    assert (found.lost, found.cause) == (lost, cause)
    assert said in found.sentence
    assert bool(found.mend) == (lost != "found" and said != "could not be ranked")


def test_a_score_below_the_cut_off_is_lost_by_it() -> None:
    found = where_lost(replace(CASE, cosine=0.41), ShownResults(10, 0.5), "cosine", "cosine")

    assert (found.lost, found.cause) == ("cut-off", "score")
    assert "0.41" in found.sentence
    assert where_lost(CASE, ShownResults(10, 0.5), "cosine", "cosine").lost == "found"


def test_what_would_find_it_is_said() -> None:
    found = where_lost(replace(CASE, rank=3, answer=answer(None, finds=("ef 80", 3))), TEN, "cosine", "cosine")

    assert found.mend.startswith("ef 80 finds it (3rd)")


def test_rows_above_are_told_by_what_makes_them_odd() -> None:
    texts = ["Same text here", "same  text here", "...", "plain words stand here", "page 7", "日本語の文章です"]
    rows = [RowAbove(str(place), text, 1.0, 0.5 if place == 3 else 0.0) for place, text in enumerate(texts)]

    kinds = [one.kind for one in kinds_of(rows, AboveAmong(200, 1_000))]

    assert kinds == ["", "copy", "no content", "hub", "no content", ""]
    # In a store of a hundred rows, a tenth of all results is chance.
    assert kinds_of([rows[3]], AboveAmong(200, 60))[0].kind == ""


@pytest.mark.parametrize(
    ("text", "has"), [("", False), ("42", False), ("Introduction", False), ("two words", True), ("質問の答え", True)]
)
def test_a_text_has_content_if_it_says_something(text: str, has: bool) -> None:
    assert has_content(text) == has
