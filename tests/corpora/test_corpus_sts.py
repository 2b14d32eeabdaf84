"""STS files: the layouts of the published data sets, found from their content."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embaudit.corpora import IngestCounts, TextPair, load_corpus
from embaudit.words.errors import CorpusError

Write = Callable[[str, bytes | str], str]

PAIRS = (TextPair("A man sings.", "A man, singing.", 3.8), TextPair("It rains.", 'He said "no".', 0.0))
LAYOUTS = {
    "stsb.csv": 'A man sings.,"A man, singing.",3.8\nIt rains.,"He said ""no"".",0\n',
    "semeval.tsv": '3.800\tA man sings.\tA man, singing.\n0\tIt rains.\tHe said "no".\n',
    "sick.txt": "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\r\n"
    '1\tA man sings.\tA man, singing.\t3.8\tNEUTRAL\r\n2\tIt rains.\tHe said "no".\t0\tNEUTRAL\r\n',
    "header.csv": 'split,sentence1,sentence2,score\ntest,A man sings.,"A man, singing.",3.8\n'
    'test,It rains.,"He said ""no"".",0.0\n',
    "s.jsonl": "".join(
        json.dumps({"text1": pair.first, "text2": pair.second, "score": str(pair.score)}) + "\n" for pair in PAIRS
    ),
    "s.json": json.dumps([{"s1": p.first, "s2": p.second, "similarity_score": p.score} for p in PAIRS]),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_gives_the_same_pairs(name: str, write: Write) -> None:
    corpus = load_corpus("sts", write(name, LAYOUTS[name]))
    assert corpus.pairs == PAIRS
    assert corpus.corpus_id == load_corpus("sts", write("again.csv", LAYOUTS["stsb.csv"])).corpus_id


def test_float32_parquet_scores_are_the_decimal_ones(tmp_path: Path, write: Write) -> None:
    columns = {
        "sentence1": [pair.first for pair in PAIRS],
        "sentence2": [pair.second for pair in PAIRS],
        "similarity_score": pa.array([pair.score for pair in PAIRS], pa.float32()),
    }
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    assert load_corpus("sts", str(tmp_path / "x.parquet")).pairs == PAIRS


def test_an_empty_score_is_an_unscored_pair(write: Write) -> None:
    corpus = load_corpus("sts", write("x.tsv", "\tone\ttwo\n4\tthree\tfour\n"))
    assert corpus.pairs == (TextPair("one", "two", None), TextPair("three", "four", 4.0))


def test_bad_scores_blank_sides_and_repeats_are_counted(write: Write) -> None:
    rows = [
        "4\ta\tb",
        "high\tc\td",
        "nan\te\tf",
        "3\tg\t ",
        "1\t a\tb ",
        "1\tb\ta",
        "2\tonly one",
        "",
        "5\ty\tz",
    ]
    corpus = load_corpus("sts", write("x.tsv", "\n".join(rows) + "\n"))
    assert corpus.pairs == (TextPair("a", "b", 4.0), TextPair("b", "a", 1.0), TextPair("y", "z", 5.0))
    assert corpus.counts == IngestCounts(read=9, kept=3, duplicate=1, blank=2, broken=3, undecodable=0)


@pytest.mark.parametrize("score", ["true", "NaN", "Infinity", '"five"', "[1]"])
def test_a_json_score_that_is_no_number_breaks_its_row(score: str, write: Write) -> None:
    rows = f'{{"s1": "a", "s2": "b", "score": {score}}}\n{{"s1": "c", "s2": "d", "score": null}}\n'
    corpus = load_corpus("sts", write("x.jsonl", rows))
    assert corpus.pairs == (TextPair("c", "d"),)
    assert corpus.counts.broken == 1


def test_an_unknown_layout_says_what_was_expected(write: Write) -> None:
    with pytest.raises(CorpusError, match="does not fit any layout") as caught:
        load_corpus("sts", write("x.csv", "a,b,c,d,e\nf,g,h,i,j\n"))
    assert "sentence1,sentence2,score" in caught.value.next_step
    assert "score<TAB>sentence1<TAB>sentence2" in caught.value.next_step


def test_a_folder_is_read_whole_without_its_readmes(write: Write, tmp_path: Path) -> None:
    write("all/2012/a.tsv", LAYOUTS["semeval.tsv"])
    write("all/2012/00-readme.test.txt", "STS 2012\n\nwords")
    write("all/LICENSE.txt", "licence")
    write("all/sick.txt", LAYOUTS["sick.txt"] + "3\tNew.\tPair.\t2\tNEUTRAL\n")
    corpus = load_corpus("sts", str(tmp_path / "all"))
    # Each file is a data set on a scale of its own, and keeps the pairs that it shares with others.
    expected = [*((pair, "2012/a") for pair in PAIRS), *((pair, "sick") for pair in PAIRS)]
    new = TextPair("New.", "Pair.", 2.0, data_set="sick")
    assert corpus.pairs == (*(replace(pair, data_set=name) for pair, name in expected), new)
    assert corpus.counts.duplicate == 0
    write("one/a.csv", LAYOUTS["stsb.csv"])
    alone = load_corpus("sts", str(tmp_path / "one"))
    assert (alone.pairs, alone.corpus_id) == (PAIRS, load_corpus("sts", str(tmp_path / "one/a.csv")).corpus_id)
    (tmp_path / "none").mkdir()
    with pytest.raises(CorpusError, match="contains no STS files"):
        load_corpus("sts", str(tmp_path / "none"))
