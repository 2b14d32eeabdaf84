"""Folders that ``save_to_disk`` of ``datasets`` wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from datasets import Dataset, DatasetDict

from embaudit.corpora import load_corpus
from embaudit.words.errors import CorpusError


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
