"""Chosen pairs are kept whole: every row, in order, repeats included, or an error that names the row."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from embaudit.corpora.catalog import CORPORA
from embaudit.corpora.hub_reference import COMMIT, FORM, HubRef
from embaudit.corpora.load import load_corpus
from embaudit.corpora.records import read_chosen_pairs
from embaudit.words.errors import CorpusError

PAIRS = (("b", "a"), ("a man", "a dog, asleep"), ("b", "a"), ("ß", "日本"), ("a", "b"))
Write = Callable[[str, bytes | str], str]


def as_json(pairs: tuple[tuple[str, str], ...] = PAIRS) -> str:
    return json.dumps([{"sentence1": first, "sentence2": second} for first, second in pairs])


def as_json_lines() -> str:
    return "".join(json.dumps({"sentence1": a, "sentence2": b, "score": 1.5}) + "\n" for a, b in PAIRS)


def as_csv() -> str:
    return "sentence1,sentence2\n" + "".join(f'{a},"{b}"\n' for a, b in PAIRS)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pairs.json", as_json()),
        ("pairs.jsonl", as_json_lines()),
        ("pairs.csv", as_csv()),
        ("plain.csv", as_csv().split("\n", 1)[1]),
        ("pairs.tsv", "sentence1\tsentence2\n" + "".join(f"{a}\t{b}\n" for a, b in PAIRS)),
        ("pairs.jsonl.gz", gzip.compress(as_json_lines().encode(), mtime=0)),
    ],
)
def test_every_format_gives_every_row_in_order(write: Write, name: str, content: bytes | str) -> None:
    found = read_chosen_pairs(Path(write(name, content)))
    assert found.pairs == PAIRS
    # What a measure sees is the same, so the content is: neither name nor format nor scores count.
    assert found.content == read_chosen_pairs(Path(write("other.json", as_json()))).content


def test_parquet(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "pairs.parquet"
    pq.write_table(pa.table({"sentence1": [a for a, _ in PAIRS], "sentence2": [b for _, b in PAIRS]}), path)
    assert read_chosen_pairs(path).pairs == PAIRS


@pytest.mark.parametrize(
    "other",
    [
        PAIRS[:-1],
        (*PAIRS, ("b", "a")),
        tuple(dict.fromkeys(PAIRS)),
        PAIRS[::-1],
        (*PAIRS[:-1], ("b", "a")),
        (*PAIRS[:-1], ("a", "b.")),
    ],
)
def test_the_content_changes_with_every_pair_and_with_their_order(
    write: Write, other: tuple[tuple[str, str], ...]
) -> None:
    found = read_chosen_pairs(Path(write("pairs.json", as_json()))).content
    assert len(found) == 16
    assert read_chosen_pairs(Path(write("other.json", as_json(other)))).content != found


def test_where_one_side_ends_counts(write: Write) -> None:
    contents = {
        read_chosen_pairs(Path(write(f"{n}.json", as_json(pairs)))).content
        for n, pairs in enumerate([(("a b", "c"),), (("a", "b c"),), (("a", "b"),), (("a", "c"), ("b", "c"))])
    }
    assert len(contents) == 4


@pytest.mark.parametrize(
    ("name", "content", "row", "reason"),
    [
        ("gap.json", '[{"sentence1": "a", "sentence2": "b"}, {"sentence1": "c"}]', 2, "a side that is missing"),
        ("other.jsonl", '{"sentence1": "a", "sentence2": "b"}\n{"text": "c"}\n', 2, "no sentence1 and sentence2"),
        ("blank.json", '[{"sentence1": "a", "sentence2": "  "}]', 1, "a side is blank"),
        ("line.jsonl", '{"sentence1": "a", "sentence2": "b"}\n\n{"sentence1": "a", "sentence2": "b"}\n', 2, "blank"),
        ("broken.jsonl", '{"sentence1": "a", "sentence2": "b"}\n{"sentence1": \n', 2, "not JSON"),
        ("number.json", '[{"sentence1": "a", "sentence2": 7}]', 1, "not text"),
        ("bytes.jsonl", b'{"sentence1": "a", "sentence2": "b"}\n{"sentence1": "\xff", "sentence2": "b"}\n', 2, "UTF-8"),
    ],
)
def test_a_row_that_is_no_pair_is_named(write: Write, name: str, content: bytes | str, row: int, reason: str) -> None:
    path = write(name, content)
    with pytest.raises(CorpusError, match=reason) as caught:
        read_chosen_pairs(Path(path))
    assert caught.value.happened.startswith(f"Row {row} of {path} is not a sentence pair: ")
    assert "sentence1 and a sentence2" in caught.value.next_step


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        *(
            (name, content, "contains no pairs")
            for name, content in (("n.json", "[]"), ("n.jsonl", ""), ("n.json", ""))
        ),
        ("header.csv", "sentence1,sentence2\n", "header.csv"),
    ],
)
def test_a_file_without_a_pair_is_named(write: Write, name: str, content: str, said: str) -> None:
    path = write(name, content)
    with pytest.raises(CorpusError, match=said) as caught:
        read_chosen_pairs(Path(path))
    assert path in caught.value.happened


def test_a_missing_file_and_one_of_no_format(write: Write, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="There is no file"):
        read_chosen_pairs(tmp_path / "gone.json")
    with pytest.raises(CorpusError, match="not in a supported"):
        read_chosen_pairs(Path(write("pairs.docx", "x")))


def test_the_home_folder_is_found(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("pairs.json", as_json())
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read_chosen_pairs(Path("~/pairs.json")).pairs == PAIRS


def test_the_published_pairs_keep_their_repeats(shared: Path) -> None:
    found = read_chosen_pairs(shared / "data" / "std" / "minilm_verification_pairs_250.json")
    assert (len(found.pairs), len(set(found.pairs))) == (250, 229)
    assert found.pairs[0] == found.pairs[1] == found.pairs[2]


# ---- mistyped names and sources are answered with the nearest one and the next step ----


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
