"""Mistyped names and sources are answered with the nearest one and the next step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from embaudit.corpora import CORPORA, load_corpus
from embaudit.corpora.hub_reference import COMMIT, FORM, HubRef
from embaudit.words.errors import CorpusError

Write = Callable[[str, bytes | str], str]


@pytest.mark.parametrize(
    ("name", "source", "answer"),
    [
        ("wikipedai", "sample", "Did you mean wikipedia?"),
        ("MSMARCO", "sample", "Did you mean msmarco?"),
        ("zzz", "sample", "Known: wikipedia, msmarco"),
        ("sts", "sampel", "'sample'"),
        ("sts", "mteb/sts12-sts", "'hub:mteb/sts12-sts'"),
        ("sts", "hub:sts", FORM),
        ("sts", "no/such/file\0.csv", FORM),
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
    with pytest.raises(CorpusError, match="would keep nothing"):
        load_corpus("sts", limit=limit)


def test_hub_references_are_taken_apart_and_put_together() -> None:
    references = {
        "hub:a/b": HubRef("a/b"),
        "hub:a/b@refs/convert/parquet": HubRef("a/b", "refs/convert/parquet"),
        "hub:a/b[en]/test@v1": HubRef("a/b", "v1", "en", "test"),
        "hub:a/b[en]/test[:20]@v1:text": HubRef("a/b", "v1", "en", "test", 20, ("text",)),
        "hub:a/b:q,p": HubRef("a/b", columns=("q", "p")),
        "hub:a/b/data/test-*.parquet@v1": HubRef("a/b", "v1", path="data/test-*.parquet"),
        "hub:a/b[:5]": HubRef("a/b", first=5),
    }
    for source, ref in references.items():
        assert (HubRef.parse(source), str(ref)) == (ref, source)


def test_a_reference_is_a_split_or_files_or_what_the_catalogue_knows() -> None:
    spec = CORPORA["sts"]
    assert HubRef.parse("hub:mteb/sts17-crosslingual-sts").as_part(spec) in spec.hub
    assert HubRef.parse("hub:a/b/test").as_part(spec).split == "test"
    for path in ("test.jsonl", "data/test.csv.gz", "test-*", "data/test"):
        part = HubRef.parse(f"hub:a/b/{path}").as_part(spec)
        assert (part.files, part.split) == ((path,), None)


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("hub:a/b@v1:data/test.csv", "hub:a/b/data/test.csv@v1"),
        ("hub:a/b:test.jsonl.gz", "hub:a/b/test.jsonl.gz"),
        ("hub:a/b[en]/test.csv", "hub:a/b/test.csv"),
    ],
)
def test_a_file_in_the_wrong_place_is_answered_with_the_right_one(source: str, answer: str) -> None:
    with pytest.raises(CorpusError) as caught:
        HubRef.parse(source)
    assert caught.value.next_step.endswith(f" {answer}")


def test_the_catalogue_pins_every_part_to_a_commit() -> None:
    assert len(CORPORA["sts"].hub) == 11
    for spec in CORPORA.values():
        for part in spec.hub:
            assert part.revision is not None
            assert COMMIT.fullmatch(part.revision)
            assert part.files
