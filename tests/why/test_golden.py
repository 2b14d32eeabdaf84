"""Golden queries: their file, and which are lost or won by a new revision."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from kept_texts import PACKAGED, Kept, named, packaged, parquet
from planted_up import COME_UP
from told_in_full import faults_of

import embaudit
from embaudit.corpora.golden import GoldenQuery, load_golden, load_golden_folder, read_golden
from embaudit.measures.quality.golden import GoldenChanges
from embaudit.measures.quality.material import Collection, golden_of
from embaudit.questions.report import WhyCaseRow
from embaudit.questions.switch.material import OldAndNew, SwitchedSearch
from embaudit.questions.why.report import WhyReport
from embaudit.questions.why.unexpected import LeftOut, without_words
from embaudit.words.errors import CorpusError, EmbauditError, UsageError
from tests.some_rows import mostly_slow

# With the other file that has the packaged checkpoint embed all of the sample.
pytestmark = pytest.mark.xdist_group("planted searches")
WANTED = [GoldenQuery("first query", ("a", "b")), GoldenQuery("second, with a comma", ("7",))]
FORMS = {
    "golden.csv": 'query,expect\nfirst query,a\n"second, with a comma",7\nfirst query,b\n',
    "golden.tsv": "Expect\tQuery\tnote\na\tfirst query\tx\nb\tfirst query\t\n7\tsecond, with a comma\t\n",
    "golden.jsonl": "\n".join(
        json.dumps(one)
        for one in ({"query": "first query", "expect": ["a", "b"]}, {"query": "second, with a comma", "expect": 7})
    ),
    "golden.json": json.dumps(
        [{"query": "first query", "expect": ["a", "b", "a"]}, {"query": "second, with a comma", "expect": "7"}]
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_cases(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(FORMS[name], encoding="utf-8-sig")

    assert sorted(read_golden(file), key=lambda one: one.query) == WANTED


def test_what_is_expected_may_be_a_whole_document(tmp_path: Path) -> None:
    # As in a process that has read nothing else.
    csv.field_size_limit(131_072)
    (file := tmp_path / "golden.csv").write_text(f"query,expect\nfirst,{'a' * 200_000}\n", encoding="utf-8")
    assert [len(text) for (text,) in (one.expected for one in read_golden(file))] == [200_000]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "question,answer\nx,y\n", "no columns query and expect"),
        ("a.csv", "query,expect\nx,\n", "Line 2 of .* has no expect"),
        ("a.csv", "query,expect\n ,y\n", "has no query"),
        ("a.csv", "query,expect\n", "has no queries"),
        ("a.jsonl", '{"query": "x", "expect": []}', "has no expect"),
        ("a.jsonl", '["x", "y"', "not JSON"),
        ("a.jsonl", '"x"', "is no object"),
        ("a.txt", "x", "is no .csv"),
    ],
)
def test_a_file_of_another_form_is_named_by_line(name: str, content: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(content, encoding="utf-8")

    with pytest.raises(UsageError, match=said):
        read_golden(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmbauditError, match=r"none\.csv"):
        read_golden(tmp_path / "none.csv")


def test_queries_are_lost_and_won_by_name() -> None:
    """Twenty-four documents on axes; a new revision turns one query away from its answer and one towards it."""
    documents = np.eye(24)
    ahead = np.zeros((3, 24))
    ahead[0, :], ahead[0, 3] = 0.1, 1
    ahead[1, :], ahead[1, 4] = 0.5, 0.01
    ahead[2, 5] = 1
    turned = ahead.copy()
    turned[0, 3], turned[1, 4] = 0.05, 1
    answers = ({3: 1.0}, {4: 1.0}, {5: 1.0})
    collection = Collection(
        "golden", ("lost", "won", "same"), tuple(f"text {n}" for n in range(24)), answers, is_golden=True
    )
    search = SwitchedSearch(collection, OldAndNew(ahead, turned), OldAndNew(documents, documents))

    changes = GoldenChanges.of(collection, *search.scores)

    assert [(one.query, one.old, one.new) for one in changes.ranks] == [("lost", 1, 24), ("won", 24, 1), ("same", 1, 1)]
    assert [one.query for one in changes.lost] == ["lost"]
    assert [one.query for one in changes.won] == ["won"]
    finding = changes.finding()
    assert finding.level == "look"
    assert "it loses 1: 'lost' (1 → 24)" in finding.sentence


def test_answers_are_found_by_id_or_text_and_else_named(tmp_path: Path) -> None:
    corpus, golden = tmp_path / "corpus.jsonl", tmp_path / "golden.csv"
    lines = [json.dumps({"_id": f"d{n}", "text": f"a text with number {n} in it"}) for n in range(60)]
    corpus.write_text("\n".join(lines), encoding="utf-8")
    golden.write_text("query,expect\nby id,d55\nby text,a text with number 3 in it\n", encoding="utf-8")

    found = golden_of(load_golden(golden, str(corpus)), 25)

    named = [found.documents[next(iter(grades))] for grades in found.relevant]
    assert named == ["a text with number 55 in it", "a text with number 3 in it"]
    assert len(found.documents) == 25
    assert golden_of(load_golden_folder(str(tmp_path)), 25) == replace(found, name=f"{golden} in {tmp_path}")
    golden.write_text("query,expect\nby id,d99\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"1 of 1 golden queries .* 'd99' first"):
        load_golden(golden, str(corpus))
    golden.unlink()
    with pytest.raises(CorpusError, match=r"none of golden\.csv"):
        load_golden_folder(str(tmp_path))


# ---- why a row came up: planted causes are named and confirmed, and ranks without words are those of a slow loop ----


def asked(store: Path, query: str, row: str, **given: Any) -> WhyReport:
    return embaudit.why(store, packaged(), query, unexpected=row, **given)


@pytest.mark.parametrize("name", mostly_slow(COME_UP, ("a word in another sense", "a heading")))
def test_a_planted_cause_is_named_and_confirmed(name: str, kept: Kept, tmp_path: Path) -> None:
    planted = COME_UP[name](kept, tmp_path)
    report = asked(planted.store, planted.query, planted.expect, **planted.given)
    assert named(report) == planted.wanted
    assert report.lost[0].is_confirmed
    assert (report.verdict, report.exit_code) == ("came up", 1)
    assert not faults_of(report)
    (row,) = report.rows()[WhyCaseRow]
    assert row["mended_rank"] > 10


def rank_without(kept: Kept, rows: dict[str, str], query: str, row: str, one: LeftOut) -> int:
    """By a loop over all rows, each word taken out by splitting the text at it."""

    def rest(text: str) -> str:
        parts = re.split(r"([^\W_]+)", text)
        return " ".join("".join(part for part in parts if part.lower() not in one.words).split())

    texts = {**rows, row: rest(rows[row])} if one.side == "text" else rows
    asked_as = kept.of(rest(query) if one.side == "query" else query)[0]
    cosines = {name: float(asked_as @ kept.vectors[place]) for place, name in enumerate(kept.ids)}
    cosines[row] = float(asked_as @ kept.of(texts[row])[0])
    return 1 + sum(cosine > cosines[row] + 1e-5 for cosine in cosines.values())


def test_ranks_without_words_are_those_of_a_loop(kept: Kept, tmp_path: Path) -> None:
    planted = COME_UP["a word in another sense"](kept, tmp_path)
    report = asked(planted.store, planted.query, planted.expect)
    up = report.came_up[0]
    rows = {row["id"]: row["text"] for row in pq.read_table(planted.store).to_pylist()}
    left_out = [*up.left_out[:4], *up.left_out[-3:]]
    assert {one.side for one in left_out} == {"query", "text"}
    for one in left_out:
        assert one.attempt.rank == rank_without(kept, rows, planted.query, planted.expect, one), one
    # Singles were enough on either side, so no pair was tried.
    assert all(len(one.words) == 1 for one in up.left_out)


def test_a_row_that_does_not_come_up_is_said_to_be_where_it_is(kept: Kept, tmp_path: Path) -> None:
    store = parquet(kept.with_rows([]), tmp_path, lang=["de" if n % 2 else "en" for n in range(len(kept.ids))])
    query, first = kept.queries[3]
    order = np.argsort(-(kept.vectors @ kept.of(query)[0]))
    far = kept.ids[int(order[300])]
    report = asked(store, query, far)
    assert (report.verdict, report.exit_code, report.lost[0].lost) == ("not shown", 0, "not shown")
    assert "It is 301st, and the first 10 are shown." in report.line
    other = "en" if int(first.removeprefix("row-")) % 2 else "de"
    assert "filter leaves it out" in asked(store, query, first, where={"lang": other}).line
    assert "score is below" in asked(store, query, first, min_score=0.99).line
    both = embaudit.why(store, packaged(), [query, query], unexpected=[first, far])
    # One query with several rows: the nearest.
    assert [one.lost for one in both.lost] == ["came up"]
    assert asked(store, query, "row-none").lost[0].lost == "absent"


def test_what_is_asked_of_both_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one did not"):
        embaudit.why(tmp_path, PACKAGED, "a query", "row-1", unexpected="row-2")
    with pytest.raises(UsageError, match="2 times and --unexpected 1"):
        embaudit.why(tmp_path, PACKAGED, ["a query", "another"], unexpected=["row-2"])


@pytest.mark.parametrize(
    ("text", "words", "rest"),
    [
        ("The Cat, the dog and the cat's", ("the", "cat"), ", dog and 's"),
        ("cats and cat_food", ("cat",), "cats and _food"),
        ("a.b (c)", ("c",), "a.b ()"),
        ("x-ray of x", ("x",), "-ray of"),
    ],
)
def test_words_are_left_out_wherever_they_stand(text: str, words: tuple[str, ...], rest: str) -> None:
    assert without_words(text, words) == rest
