"""Mistyped names and sources are answered with the nearest one and the next step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from embaudit.corpora import CORPORA, load_corpus
from embaudit.corpora.fields import is_known_field
from embaudit.corpora.hub_files import COMMIT, TEST_FILES, HubRef
from embaudit.errors import CorpusError

Write = Callable[[str, bytes | str], str]


@pytest.mark.parametrize(
    ("name", "source", "answer"),
    [
        ("wikipedai", "sample", "Did you mean wikipedia?"),
        ("MSMARCO", "sample", "Did you mean msmarco?"),
        ("zzz", "sample", "Known: wikipedia, msmarco"),
        ("sts", "sampel", "'sample'"),
        ("sts", "mteb/sts12-sts", "'hub:mteb/sts12-sts'"),
        ("sts", "hub:sts", "hub:owner/name@revision"),
        ("sts", "no/such/file\0.csv", "hub:owner/name@revision"),
    ],
)
def test_mistyped_names_are_answered(name: str, source: str, answer: str) -> None:
    with pytest.raises(CorpusError) as caught:
        load_corpus(name, source)
    assert answer in caught.value.next_step


def test_a_mistyped_file_is_answered_with_its_neighbour(write: Write, tmp_path: Path) -> None:
    path = write("sentences.txt", "text")
    with pytest.raises(CorpusError) as caught:
        load_corpus("wikipedia", str(tmp_path / "sentence.txt"))
    assert path in caught.value.next_step


def test_an_unread_format_lists_the_read_ones(write: Write) -> None:
    with pytest.raises(CorpusError) as caught:
        load_corpus("wikipedia", write("x.zip", "PK"))
    assert ".parquet" in caught.value.next_step


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_an_error(limit: int) -> None:
    with pytest.raises(CorpusError, match="keeps nothing"):
        load_corpus("sts", limit=limit)


def test_hub_references_are_taken_apart() -> None:
    assert HubRef.parse("hub:a/b") == HubRef("a/b", None, None)
    assert HubRef.parse("hub:a/b@refs/convert/parquet") == HubRef("a/b", "refs/convert/parquet", None)
    assert HubRef.parse("hub:a/b@v1:en/test") == HubRef("a/b", "v1", "en/test")
    assert HubRef.parse("hub:a/b:data/test-*.parquet") == HubRef("a/b", None, "data/test-*.parquet")
    part = HubRef.parse("hub:mteb/sts17-crosslingual-sts").as_part(CORPORA["sts"])
    assert part in CORPORA["sts"].hub
    assert HubRef.parse("hub:a/b").as_part(CORPORA["sts"]).files == TEST_FILES


def test_the_catalogue_pins_every_part_to_a_commit_and_known_columns() -> None:
    assert len(CORPORA["sts"].hub) == 11
    for spec in CORPORA.values():
        for part in spec.hub:
            assert part.revision is not None
            assert COMMIT.fullmatch(part.revision)
            assert part.files
            assert all(map(is_known_field, part.columns))
