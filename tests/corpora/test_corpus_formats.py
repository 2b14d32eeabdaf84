"""Texts from every file format: one content, one id, whatever carried it."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, DatasetDict
from fake_hub import json_lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embaudit.corpora.draw import Corpus, IngestCounts, TextPair
from embaudit.corpora.load import load_corpus
from embaudit.words.errors import CorpusError

Write = Callable[[str, bytes | str], str]

TEXTS = ["A first sentence.", 'With "quotes", commas', "Ünïcode \u2028 inside"]


def encodings(texts: list[str]) -> dict[str, bytes]:
    """The same texts in every format, by file name."""
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerows([["id", "Text"], *([number, text] for number, text in enumerate(texts))])
    parquet = io.BytesIO()
    pq.write_table(pa.table({"text": texts, "vector": [[0.5]] * len(texts)}), parquet)
    arrow = io.BytesIO()
    with pa.ipc.new_stream(arrow, pa.schema([("text", pa.string())])) as stream:
        stream.write_table(pa.table({"text": pa.array(texts, pa.string())}))
    lines = "".join(json.dumps({"sentence": text}) + "\n" for text in texts).encode()
    plain = "".join(f"{text}\n" for text in texts).encode()
    return {
        "a.txt": plain,
        "a.txt.gz": gzip.compress(plain, mtime=0),
        "crlf.txt": plain.replace(b"\n", b"\r\n"),
        "bom.txt": b"\xef\xbb\xbf" + plain,
        "a.csv": table.getvalue().encode(),
        "a.csv.gz": gzip.compress(table.getvalue().encode(), mtime=0),
        "a.jsonl": lines,
        "A.JSONL.GZ": gzip.compress(lines, mtime=0),
        "lines.json": lines,
        "a.json": json.dumps(texts).encode(),
        "objects.json": json.dumps([{"contents": text} for text in texts]).encode(),
        "a.parquet": parquet.getvalue(),
        "a.arrow": arrow.getvalue(),
    }


@pytest.mark.parametrize("name", encodings(TEXTS))
def test_every_format_gives_the_same_corpus(name: str, write: Write) -> None:
    corpus = load_corpus("wikipedia", write(name, encodings(TEXTS)[name]))
    assert [text.text for text in corpus.texts] == TEXTS
    assert corpus.corpus_id == load_corpus("wikipedia", write("other.txt", "\n".join(TEXTS))).corpus_id


line = st.text(st.characters(exclude_characters="\0\n\t", exclude_categories=["Cs"]), max_size=30)


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(line, min_size=1, max_size=8))
def test_id_and_counts_do_not_depend_on_the_format(tmp_path: Path, texts: list[str]) -> None:
    outcomes = set()
    for name, content in encodings(texts).items():
        (tmp_path / name).write_bytes(content)
        corpus = loaded_or_error("wikipedia", tmp_path / name)
        if isinstance(corpus, CorpusError):
            outcomes.add(corpus.happened.split(":")[0])
        else:
            assert_counts_add_up(corpus)
            assert corpus.counts.kept == len({text.text for text in corpus.texts})
            outcomes.add(corpus.corpus_id)
    assert len(outcomes) == 1


def loaded_or_error(name: str, path: Path) -> Corpus | CorpusError:
    try:
        return load_corpus(name, str(path))
    except CorpusError as error:
        return error


def assert_counts_add_up(corpus: Corpus) -> None:
    counts = corpus.counts
    dropped = counts.duplicate + counts.blank + counts.broken + counts.undecodable
    assert counts.read == counts.kept + dropped
    assert counts.kept == len(corpus.texts) + len(corpus.pairs) > 0


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=200),
    st.sampled_from([".txt", ".csv", ".tsv", ".jsonl", ".json", ".parquet", ".arrow", ".txt.gz"]),
)
def test_any_bytes_give_a_corpus_or_a_corpus_error(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"any{suffix}"
    path.write_bytes(content)
    for name in ("wikipedia", "sts", "msmarco-hard-negatives"):
        corpus = loaded_or_error(name, path)
        if isinstance(corpus, CorpusError):
            assert corpus.happened
            assert corpus.next_step
        else:
            assert_counts_add_up(corpus)


def test_labels_titles_and_ids_are_kept(write: Write) -> None:
    path = write("docs.csv", "Category,Title,Text,id\nnews, A title ,The text.,7\n")
    text = load_corpus("longdocs", path).texts[0]
    assert (text.text, text.title, text.label, text.external_id) == ("The text.", "A title", "news", "7")
    assert load_corpus("msmarco", path).texts[0].text == "A title The text."


def test_a_named_label_wins_over_its_number_and_zero_is_a_label(write: Write) -> None:
    rows = '{"text": "a", "label": 0, "label_text": "bad"}\n{"text": "b", "label": 0}\n'
    assert [text.label for text in load_corpus("longdocs", write("x.jsonl", rows)).texts] == ["bad", "0"]


def test_msmarco_collection_has_ids_and_no_header(write: Write) -> None:
    corpus = load_corpus("msmarco", write("collection.tsv", '0\tA "passage\n1\tAnother\n'))
    assert [(text.external_id, text.text) for text in corpus.texts] == [("0", 'A "passage'), ("1", "Another")]


def test_labels_change_the_id_and_external_ids_do_not(write: Write) -> None:
    def corpus_id(row: str) -> str:
        return load_corpus("longdocs", write("x.jsonl", row)).corpus_id

    assert corpus_id('{"text": "a", "id": "1"}') == corpus_id('{"text": " a ", "id": "2"}')
    assert corpus_id('{"text": "a", "label": "x"}') != corpus_id('{"text": "a", "label": "y"}')


# ---- kinds of corpora: retrieval collections, scored pairs, and folders that `save_to_disk` wrote ----


@pytest.fixture
def beir(write: Write, tmp_path: Path) -> str:
    passages = [{"_id": "p1", "title": "T", "text": "one"}, {"_id": "p2", "title": "", "text": "two"}]
    write("beir/corpus.jsonl", json_lines(passages))
    write("beir/queries.jsonl", json_lines([{"_id": "q1", "text": "first?"}, {"_id": "q2", "text": "second?"}]))
    write("beir/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\tp1\t1\nq1\tp2\t0\n")
    write("beir/qrels/train.tsv", "q2 0 p1 0\nq2\tp9\t0\n\nnonsense\n")
    return str(tmp_path / "beir")


def test_a_beir_folder_gives_all_four_corpora(beir: str) -> None:
    assert [text.text for text in load_corpus("msmarco", beir).texts] == ["T one", "two"]
    assert [text.external_id for text in load_corpus("msmarco-queries", beir).texts] == ["q1", "q2"]
    assert load_corpus("msmarco-positives", beir).pairs == (TextPair("first?", "T one", None, "positive"),)
    negatives = load_corpus("msmarco-hard-negatives", beir)
    assert negatives.pairs == (
        TextPair("first?", "two", None, "hard_negative"),
        TextPair("second?", "T one", None, "hard_negative"),
    )
    # Broken: p9 is in no corpus.jsonl, "nonsense" is no judgement.
    assert negatives.counts == IngestCounts(5, 2, 0, 1, 2, 0)


def test_missing_parts_of_a_beir_folder_are_named(write: Write, tmp_path: Path) -> None:
    write("half/corpus.jsonl", '{"_id": "p1", "text": "one"}\n')
    with pytest.raises(CorpusError, match=r"queries\.jsonl"):
        load_corpus("msmarco-queries", str(tmp_path / "half"))
    with pytest.raises(CorpusError, match="relevance judgements"):
        load_corpus("msmarco-hard-negatives", str(tmp_path / "half"))
    write("half/qrels.tsv", "q1\tp1\t1\n")
    with pytest.raises(CorpusError, match="no judgements with score 0"):
        load_corpus("msmarco-hard-negatives", str(tmp_path / "half"))


def test_triples_give_negatives_or_positives(write: Write) -> None:
    triples = [
        {"query": "q", "positive": "p", "negative": "n"},
        {"query": "q", "positive": "p", "negative_1": "n1", "negative_2": "n2", "negative_3": None},
        {"anchor": "r", "positive": "s", "negatives": ["t", "u"], "score": 3.5},
        {"query": "lonely"},
    ]
    path = write("triples.jsonl", json_lines(triples))
    negatives = load_corpus("msmarco-hard-negatives", path)
    expected = [("q", "n"), ("q", "n1"), ("q", "n2"), ("r", "t"), ("r", "u")]
    assert [(pair.first, pair.second) for pair in negatives.pairs] == expected
    assert {(pair.relation, pair.score) for pair in negatives.pairs} == {("hard_negative", None)}
    assert negatives.counts.broken == 1
    positives = load_corpus("msmarco-positives", path)
    assert [(pair.first, pair.second) for pair in positives.pairs] == [("q", "p"), ("r", "s")]
    assert positives.counts.duplicate == 1


def test_beir_and_triples_of_the_same_pairs_are_one_corpus(beir: str, write: Write) -> None:
    rows = [{"query": "first?", "negative": "two"}, {"query": "second?", "negative": "T one"}]
    from_triples = load_corpus("msmarco-hard-negatives", write("x.jsonl", json_lines(rows)))
    assert from_triples.corpus_id == load_corpus("msmarco-hard-negatives", beir).corpus_id


def test_relation_is_part_of_a_pair_and_of_the_id(write: Write) -> None:
    path = write("pairs.tsv", "a question\ta passage\nanother\tone more\n")
    negatives, positives = load_corpus("msmarco-hard-negatives", path), load_corpus("msmarco-positives", path)
    assert negatives.corpus_id != positives.corpus_id
    rows = [{"s1": "a", "s2": "b"}, {"s1": "a", "s2": "b", "relation": "positive"}]
    assert load_corpus("sts", write("rel.jsonl", json_lines(rows))).counts.kept == 2


# ---- scored pairs ----


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


# ---- saved data sets ----


def test_a_saved_data_set_is_a_corpus(tmp_path: Path) -> None:
    Dataset.from_dict({"text": ["b", "a", "a", ""], "label": ["x", "y", "y", "z"]}).save_to_disk(str(tmp_path / "d"))
    corpus = load_corpus("longdocs", str(tmp_path / "d"))
    assert [(text.text, text.label) for text in corpus.texts] == [("b", "x"), ("a", "y")]
    assert (corpus.counts.duplicate, corpus.counts.blank, corpus.source) == (1, 1, str(tmp_path / "d"))


def test_rows_that_were_chosen_and_saved_in_shards_come_in_their_order(tmp_path: Path) -> None:
    rows = Dataset.from_dict({"text": [f"text {row}" for row in range(3000)]}).select(range(2999, -1, -1))
    rows.save_to_disk(str(tmp_path / "d"), num_shards=3)
    assert [text.text for text in load_corpus("wikipedia", str(tmp_path / "d")).texts] == [
        f"text {row}" for row in range(2999, -1, -1)
    ]


def test_of_several_splits_test_counts_or_one_is_named(tmp_path: Path) -> None:
    def pairs(word: str) -> Dataset:
        return Dataset.from_dict({"sentence1": [word], "sentence2": ["b"], "score": [1.0]})

    DatasetDict(train=pairs("train"), test=pairs("test")).save_to_disk(str(tmp_path / "both"))
    assert load_corpus("sts", str(tmp_path / "both")).pairs[0].first == "test"
    assert load_corpus("sts", str(tmp_path / "both" / "train")).pairs[0].first == "train"
    DatasetDict(a=pairs("a"), b=pairs("b")).save_to_disk(str(tmp_path / "neither"))
    with pytest.raises(CorpusError, match="has the splits a, b") as caught:
        load_corpus("sts", str(tmp_path / "neither"))
    assert str(tmp_path / "neither" / "a") in caught.value.next_step


def test_what_does_not_fit_is_said(tmp_path: Path) -> None:
    Dataset.from_dict({"abstract": ["a"]}).save_to_disk(str(tmp_path / "d"))
    with pytest.raises(CorpusError, match=r"no text column: it has abstract \(string\)") as caught:
        load_corpus("wikipedia", str(tmp_path / "d"))
    assert "Rename" in caught.value.next_step
    (tmp_path / "d" / "data-00000-of-00001.arrow").write_bytes(b"no arrow")
    with pytest.raises(CorpusError, match="cannot be read"):
        load_corpus("wikipedia", str(tmp_path / "d"))
    (tmp_path / "d" / "data-00000-of-00001.arrow").unlink()
    with pytest.raises(CorpusError, match="no file or folder"):
        load_corpus("wikipedia", str(tmp_path / "d"))
