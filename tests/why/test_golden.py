"""Golden queries: their file, and which are lost or won by a new revision."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from embaudit.corpora.golden import GoldenQuery, load_golden, load_golden_folder, read_golden
from embaudit.measures.quality.golden import GoldenChanges
from embaudit.measures.quality.material import Collection, golden_of
from embaudit.questions.switch.material import OldAndNew, SwitchedSearch
from embaudit.words.errors import CorpusError, EmbauditError, UsageError

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
