"""The texts of the measure ``quality``: complete, distinct, varied, and not to be solved by counting shared words."""

from __future__ import annotations

import fnmatch
import json
import re
import tomllib
import unicodedata
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from scipy.stats import spearmanr

REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLE = REPOSITORY / "embaudit" / "corpora" / "sample"
FILES = ("quality_pairs.tsv", "quality_queries.jsonl", "quality_passages.jsonl", "quality_judgements.tsv", "QUALITY.md")


class Pair(NamedTuple):
    first: str
    second: str
    score: float
    kind: str


def read_tsv(name: str) -> list[list[str]]:
    return [line.split("\t") for line in (SAMPLE / name).read_text(encoding="utf-8").splitlines()]


def read_texts(name: str) -> dict[str, str]:
    """Texts by id; fails where an id occurs twice."""
    records = [json.loads(line) for line in (SAMPLE / name).read_text(encoding="utf-8").splitlines()]
    texts = {record["_id"]: record["text"] for record in records}
    assert len(texts) == len(records)
    return texts


HEADER, *ROWS = read_tsv("quality_pairs.tsv")
PAIRS = [Pair(first, second, float(score), kind) for first, second, score, kind in ROWS]
ENGLISH = [pair for pair in PAIRS if not pair.kind.startswith("script:")]
QUERIES, PASSAGES = read_texts("quality_queries.jsonl"), read_texts("quality_passages.jsonl")
JUDGED_HEADER, *JUDGED = read_tsv("quality_judgements.tsv")


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def test_the_headers_are_those_that_the_readers_know() -> None:
    assert HEADER == ["sentence1", "sentence2", "score", "kind"]
    assert JUDGED_HEADER == ["query-id", "corpus-id", "score"]


@pytest.mark.parametrize(("rows", "fewest"), [(PAIRS, 80), (PAIRS[:500], 60)], ids=["all", "first 500"])
def test_scores_cover_every_band(rows: list[Pair], fewest: int) -> None:
    assert len(rows) >= 500
    assert all(pair.score * 2 in range(11) for pair in rows)
    bands = Counter(min(int(pair.score), 4) for pair in rows)
    assert min(bands[band] for band in range(5)) >= fewest


def test_no_text_occurs_twice_or_in_another_file_of_the_sample() -> None:
    texts = [text for pair in PAIRS for text in pair[:2]] + [*QUERIES.values(), *PASSAGES.values()]
    assert [text for text, count in Counter(texts).items() if count > 1] == []
    assert all(text == text.strip() and unicodedata.is_normalized("NFC", text) for text in texts)
    others = [path for path in SAMPLE.iterdir() if path.suffix in (".csv", ".txt", ".jsonl") and path.name not in FILES]
    for path in others:
        content = path.read_text(encoding="utf-8")
        assert [text for text in texts if len(words(text)) > 3 and text in content] == [], path.name


def test_pairs_are_of_many_lengths() -> None:
    lengths = [len(text.split()) for pair in ENGLISH for text in pair[:2]]
    assert min(lengths) >= 3
    assert sum(length > 25 for length in lengths) >= 50
    # Neither side is always the longer one.
    longer = sum(len(pair.first) > len(pair.second) for pair in PAIRS) / len(PAIRS)
    assert 0.4 < longer < 0.6


@pytest.mark.parametrize(
    ("kind", "fewest", "pattern"),
    [
        ("capital", 50, r"[A-Z]"),
        ("accent", 30, r"[À-ɏ]"),
        ("number", 20, r"\d|half|quarter|dozen|thousand|two|XIV"),
        (
            "negation",
            20,
            r"(?i)\b(not|no|never|none|nothing|neither|cannot|without|hardly|forbids|denied|failed|un\w+)\b|n't\b",
        ),
        ("antonym", 10, r""),
        ("role", 10, r""),
        ("entity", 20, r"[A-Z]"),
        ("homonym", 10, r""),
        ("overlap", 10, r""),
        ("modality", 10, r""),
    ],
)
def test_pairs_show_what_their_kind_says(kind: str, fewest: int, pattern: str) -> None:
    chosen = [pair for pair in PAIRS if pair.kind == kind]
    assert len(chosen) >= fewest
    assert [pair for pair in chosen if not re.search(pattern, f"{pair.first} {pair.second}")] == []


def test_capitals_alone_and_accents_alone_are_among_the_pairs() -> None:
    def bare(text: str) -> str:
        return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)).rstrip(".!?")

    same_letters = [pair for pair in PAIRS if pair.first.casefold().rstrip(".") == pair.second.casefold().rstrip(".")]
    assert {pair.score for pair in same_letters} >= {1.5, 5.0}  # turkey and Turkey; a headline in capitals
    only_accents = [p for p in PAIRS if p.kind == "accent" and bare(p.first) == bare(p.second) and p.first != p.second]
    assert only_accents
    assert sum(text.isupper() for pair in ENGLISH for text in pair[:2]) >= 30


@pytest.mark.parametrize(
    ("language", "letters"),
    [
        ("es", "LATIN"),
        ("fr", "LATIN"),
        ("de", "LATIN"),
        ("pl", "LATIN"),
        ("tr", "LATIN"),
        ("ru", "CYRILLIC"),
        ("el", "GREEK"),
        ("ar", "ARABIC"),
        ("hi", "DEVANAGARI"),
        ("zh", "CJK"),
        ("ja", "HIRAGANA"),
        ("ko", "HANGUL"),
    ],
)
def test_languages_have_pairs_in_their_own_letters(language: str, letters: str) -> None:
    chosen = [pair for pair in PAIRS if pair.kind == f"script:{language}"]
    assert len(chosen) >= 4
    assert min(pair.score for pair in chosen) == 0
    assert max(pair.score for pair in chosen) >= 4.5
    for text in (text for pair in chosen for text in pair[:2]):
        assert any(unicodedata.name(letter, "").startswith(letters) for letter in text), text


def test_the_note_counts_what_the_file_holds() -> None:
    note = (SAMPLE / "QUALITY.md").read_text(encoding="utf-8")
    listed = {
        kind: (int(count), float(low), float(high))
        for kind, count, low, high in re.findall(
            r"^\| ([\w:]+) \| (\d+) \| ([\d.]+) to ([\d.]+) \|", note, re.MULTILINE
        )
    }
    scores: dict[str, list[float]] = {}
    for pair in PAIRS:
        scores.setdefault(pair.kind, []).append(pair.score)
    assert listed == {kind: (len(found), min(found), max(found)) for kind, found in scores.items()}
    assert f"{len(PAIRS)} scored pairs, and {len(QUERIES)} queries with {len(PASSAGES)} passages" in note
    bands = Counter(min(int(pair.score), 4) for pair in PAIRS)
    assert ": " + ", ".join(str(bands[band]) for band in range(5)) + "." in note


def test_every_query_has_an_answer_and_hard_negatives() -> None:
    assert len(QUERIES) >= 100
    assert len(PASSAGES) >= 300
    assert {query for query, _, _ in JUDGED} == set(QUERIES)
    assert Counter(passage for _, passage, _ in JUDGED) == Counter(PASSAGES.keys())  # each exactly once
    for query in QUERIES:
        grades = [int(grade) for judged, _, grade in JUDGED if judged == query]
        assert max(grades) == 2
        assert min(grades) == 0


def test_passages_are_of_many_lengths() -> None:
    # Chinese is written without spaces, Korean with few.
    spaced = [text for text in PASSAGES.values() if not re.search(r"[一-鿿가-힣]", text)]
    lengths = sorted(len(text.split()) for text in spaced)
    assert lengths[0] >= 30
    assert lengths[-1] <= 140
    assert sum(length >= 100 for length in lengths) >= len(PASSAGES) / 3


@pytest.mark.parametrize("letters", ["[А-я]", "[一-鿿]", "[가-힣]", "[áíó¿]", "ß", "[ŁłŹźę]", "^[^a-z]+$"])
def test_some_queries_have_capitals_accents_or_other_letters(letters: str) -> None:
    assert any(re.search(letters, query) for query in QUERIES.values())


def test_shared_words_do_not_give_the_scores_away() -> None:
    def overlap(pair: Pair) -> float:
        first, second = set(words(pair.first)), set(words(pair.second))
        return len(first & second) / len(first | second)

    assert 0.2 < spearmanr([overlap(pair) for pair in ENGLISH], [pair.score for pair in ENGLISH]).statistic < 0.65


def test_wrong_passages_share_words_with_the_query() -> None:
    misleading = 0
    for query, text in QUERIES.items():
        shared = {0: 0, 1: 0, 2: 0}
        for judged, passage, grade in JUDGED:
            if judged == query:
                shared[int(grade)] = max(shared[int(grade)], len(set(words(text)) & set(words(PASSAGES[passage]))))
        misleading += shared[0] >= shared[2]
    assert misleading >= len(QUERIES) / 2


def test_the_wheel_carries_the_files_and_stays_small() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["embaudit.corpora.sample"]
    for name in FILES:
        assert any(fnmatch.fnmatch(name, pattern) for pattern in patterns), name
    assert sum((SAMPLE / name).stat().st_size for name in FILES) < 400_000
