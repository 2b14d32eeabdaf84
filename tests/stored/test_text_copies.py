"""Texts that are stored several times are found in an index of any size, with how they came and what they do."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from embaudit.declared.rule import Finding
from embaudit.questions.search.report import look_at_search
from embaudit.questions.vectors.profile import profile_of
from embaudit.questions.vectors.report import look_at
from embaudit.questions.vectors.text_copies import TextCopies, text_copies
from embaudit.stores.opened import open_store
from embaudit.stores.store import Store

WORDS = (
    "river",
    "stone",
    "apple",
    "cloud",
    "engine",
    "market",
    "window",
    "garden",
    "signal",
    "copper",
    "winter",
    "ice",
)
TEXTS = [" ".join(words) for words in itertools.islice(itertools.permutations(WORDS, 9), 0, 120 * 7_001, 7_001)]


def index_of(texts: Sequence[str], ids: Sequence[str] | None = None, vectors: np.ndarray | None = None) -> Store:
    """An index in which equal texts have equal vectors."""
    from test_stored_alone import index_of as without_ids

    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    cloud = np.random.default_rng(0).normal(size=(len(places), 48)).astype(np.float32)
    own = cloud[[places[text] for text in texts]] if vectors is None else vectors
    store = without_ids(own, list(texts))
    if ids is None:
        return store

    def batches(fields: Sequence[str] = ()):  # type: ignore[no-untyped-def]
        for batch in store.batches():
            yield replace(batch, ids=list(ids[batch.start : batch.start + batch.rows]))

    return replace(store, batches=batches)


def copies_in(store: Store) -> TextCopies:
    found = text_copies(profile_of(store, 0))
    assert found is not None
    return found


def told(store: Store, name: str) -> Finding | None:
    return next((one for one in look_at(store).findings if one.name == name), None)


# Name: the texts, how copies came, in how many blocks, and how often a text is stored.
ARRIVALS: dict[str, tuple[list[str], str, int, tuple[int, int]]] = {
    "everything at each of eight starts": (TEXTS[:4] * 8, "blocks", 7, (8, 8)),
    "everything twice": (TEXTS[:11] * 2, "blocks", 1, (2, 2)),
    "a start that was broken off": (TEXTS[:100] + TEXTS[:56], "blocks", 1, (2, 2)),
    "in another order": ([TEXTS[(n * 7) % 30] for n in range(90)][::-1], "blocks", 2, (3, 3)),
    "by ids of no order": (
        [TEXTS[n] for n in np.random.default_rng(1).permutation(np.repeat(np.arange(30), 3))],
        "all",
        58,
        (3, 3),
    ),
    "a loop within a loop": ([text for text in TEXTS[:12] for _ in range(3)], "in a row", 24, (3, 3)),
    "one text alone": (TEXTS[:1] * 9, "in a row", 8, (9, 9)),
    "a page added twice": (TEXTS[:100] + TEXTS[40:46], "blocks", 1, (2, 2)),
    "some texts twice running": (
        [*TEXTS[:60], *(text for text in TEXTS[60:66] for _ in range(2))],
        "in a row",
        6,
        (2, 2),
    ),
    "a heading on many pages": (
        [text for pair in zip(TEXTS[:90:9], [TEXTS[100]] * 10, strict=True) for text in pair] + TEXTS[10:18],
        "scattered",
        9,
        (10, 10),
    ),
}


@pytest.mark.parametrize("name", ARRIVALS)
def test_how_copies_came_is_told_at_every_size(name: str) -> None:
    texts, arrival, blocks, times = ARRIVALS[name]
    store = index_of(texts)
    found = copies_in(store)
    assert (found.rows, found.texts, found.repeating) == (len(texts), len(set(texts)), len(texts) - len(set(texts)))
    assert (found.arrival, found.times) == (arrival, times)
    assert found.blocks == blocks
    finding = told(store, "copied_texts")
    assert finding is not None
    assert found.repeated == sum(texts.count(text) > 1 for text in set(texts))
    assert f"{found.repeating:,} of {len(texts):,} rows repeat the text of an earlier row" in finding.sentence
    # An application that adds all at each start is blamed where most texts are there again.
    is_anew = found.repeated >= found.texts / 2
    assert ("application" in finding.meaning) == (is_anew and arrival in ("blocks", "all"))
    assert look_at(store).verdict == "sound"


def test_what_copies_do_to_a_search_is_that_of_a_slow_reference() -> None:
    texts = TEXTS[:40] + TEXTS[:20] * 2 + TEXTS[5:9]
    store = index_of(texts)
    found = copies_in(store).results
    (batch,) = store.batches()
    (_, vectors) = batch.vectors[48]
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    different, enough = [], []
    for place, text in enumerate(texts):
        if text in texts[:place]:
            continue
        ranked = [
            texts[n] for n in sorted(range(len(texts)), key=lambda n: (-round(float(units[n] @ units[place]), 5), n))
        ]
        different.append(len(set(ranked[:10])))
        enough.append(next(k for k in range(1, len(ranked) + 1) if len(set(ranked[:k])) == 10))
    assert found is not None
    assert found.queries == 40
    assert found.different == pytest.approx(np.mean(different))
    assert found.enough == np.quantile(enough, 0.95, method="higher")


def test_fewer_texts_than_results_are_all_wanted() -> None:
    found = copies_in(index_of(TEXTS[:4] * 8)).results
    assert found is not None
    assert (found.different, found.wanted, found.enough) == (2.0, 4, 25)
    finding = told(index_of(TEXTS[:4] * 8), "copied_texts")
    assert finding is not None
    assert "4 different texts, each stored 8 times" in finding.sentence
    assert (
        "Of ten results, 2.0 are different texts on average; it takes 25 results to have all 4 texts."
        in finding.sentence
    )


@pytest.mark.parametrize(
    ("ids", "said"), [([f"d{n % 11}" for n in range(22)], "the same ids"), ([f"u{n}" for n in range(22)], "new ids")]
)
def test_ids_of_copies_are_told(ids: list[str], said: str) -> None:
    finding = told(index_of(TEXTS[:11] * 2, ids), "copied_texts")
    assert finding is not None
    assert f"under {said}" in finding.sentence


def test_numbers_of_rows_are_no_new_ids() -> None:
    finding = told(index_of(TEXTS[:11] * 2, [str(row) for row in range(22)]), "copied_texts")
    assert finding is not None
    assert " ids" not in finding.sentence


# Name: texts behind forty others, what is said, and of how many.
NEARLY: dict[str, tuple[list[str], str, int]] = {
    "case": ([text.upper() for text in TEXTS[:3]], "white space or case alone", 3),
    "white space": ([text.replace(" ", "\n ") for text in TEXTS[:2]], "white space or case alone", 2),
    "a header that changes": (
        [f"source: {n}.pdf\npublished: 20{n}\n\n{' '.join(TEXTS[n : n + 3])}" for n in (1, 1, 2, 2)],
        "a header before it alone",
        2,
    ),
}


@pytest.mark.parametrize("name", NEARLY)
def test_nearly_copies_are_of_another_kind(name: str) -> None:
    more, said, count = NEARLY[name]
    more = [text.replace(".pdf", f"-{n}.pdf") for n, text in enumerate(more)]
    vectors = np.random.default_rng(0).normal(size=(40 + len(more), 48)).astype(np.float32)
    # Those with a header come in pairs of one text.
    vectors[41::2] = vectors[40:-1:2] + 0.01 * vectors[41::2]
    store = index_of(TEXTS[:40] + more, vectors=vectors)
    assert told(store, "copied_texts") is None
    finding = told(store, "nearly_copied_texts")
    assert finding is not None
    assert said in finding.sentence
    assert finding.value == count


def test_items_that_end_alike_and_say_other_things_are_no_copies() -> None:
    store = index_of([f"{TEXTS[n]} {' '.join(TEXTS[50:54])}" for n in range(30)])
    assert told(store, "nearly_copied_texts") is None


def test_rows_of_other_texts_and_one_vector_are_no_duplicates_to_remove() -> None:
    vectors = np.random.default_rng(0).normal(size=(1, 48)).astype(np.float32).repeat(2, axis=0)
    finding = told(index_of(TEXTS[:2], vectors=vectors), "copies")
    assert finding is not None
    assert "not all of these have its text" in finding.sentence
    assert "an encoder that failed" in finding.advice


def test_words_that_few_rows_count_are_no_padding() -> None:
    vectors = (np.random.default_rng(0).random((30, 48)) < 0.05).astype(np.float32) + 0
    vectors[:, 0] = 1 + np.arange(30)
    assert told(index_of(TEXTS[:30], vectors=vectors), "constant_dimensions") is None
    padded = np.random.default_rng(0).normal(size=(30, 48)).astype(np.float32)
    padded[:, 40:] = 0
    assert told(index_of(TEXTS[:30], vectors=padded), "constant_dimensions") is not None


def test_texts_of_nothing_are_counted() -> None:
    finding = told(index_of([*TEXTS[:40], "", " \n "]), "blank_texts")
    assert finding is not None
    assert finding.sentence == "2 of 42 rows have a text of nothing but white space."
    assert told(index_of(TEXTS[:40]), "blank_texts") is None


def test_chunks_that_overlap_are_no_copies() -> None:
    whole = " ".join(TEXTS)
    store = index_of([whole[start : start + 500] for start in range(0, 6_000, 400)])
    assert told(store, "copied_texts") is told(store, "nearly_copied_texts") is None
    finding = told(store, "overlapping_chunks")
    assert finding is not None
    assert finding.level == "ok"
    assert "14 of 15 rows begin with the end of the row before them" in finding.sentence


NO_COPIES = {
    "different texts": TEXTS,
    "one text": TEXTS[:1],
    "texts that begin alike": [f"{TEXTS[0]} {text}" for text in TEXTS[:50]],
    "texts that differ in a number": [f"{TEXTS[0]} {n} of {TEXTS[1]}" for n in range(50)],
}


@pytest.mark.parametrize("name", NO_COPIES)
def test_texts_that_only_look_alike_are_no_copies(name: str) -> None:
    store = index_of(NO_COPIES[name])
    assert told(store, "copied_texts") is None
    assert told(store, "nearly_copied_texts") is None


def test_a_column_of_labels_is_no_text_that_is_repeated() -> None:
    vectors = np.random.default_rng(3).normal(size=(60, 48)).astype(np.float32)
    store = index_of(["news", "sports", "weather"] * 20, vectors=vectors)
    assert copies_in(store).repeating == 0
    assert told(store, "copied_texts") is None


@pytest.mark.parametrize(
    ("rows", "name", "is_told"),
    [(120, "collapse", True), (20, "collapse", True), (19, "collapse", False), (2, "copies", True)],
)
def test_what_is_wrong_with_few_rows_is_told_from_the_row_on_that_tells_it(rows: int, name: str, is_told: bool) -> None:
    near = 1 + 1e-4 * np.random.default_rng(0).normal(size=(rows, 48)).astype(np.float32)
    assert (told(index_of(TEXTS[:rows], vectors=near), name) is not None) == is_told


def test_few_rows_say_from_how_many_on_a_figure_is_told() -> None:
    (table,) = look_at(index_of(TEXTS[:12])).page().sections[0].parts
    said = {row[0]: row[1] for row in table.rows}  # type: ignore[union-attr]
    assert said["collapse"] == "told from 20 different rows on"
    assert said["rows that have the largest hub among their ten nearest"] == "told from 200 rows on"
    assert said["two models or two lengths in one index"] == "told from 300 rows on"
    assert said["rows with a copy at a cosine of .999"] == "0.0%"


def test_a_search_of_which_most_places_hold_copies_is_a_problem(tmp_path: object) -> None:
    faiss = pytest.importorskip("faiss")
    import json
    from pathlib import Path

    place = Path(str(tmp_path))
    for texts, level in ((TEXTS[:15] * 4, "problem"), (TEXTS[:60] + TEXTS[:2], "look")):
        (batch,) = index_of(texts, None).batches()
        vectors = batch.vectors[48][1]
        index = faiss.IndexFlatL2(48)
        index.add(vectors)
        faiss.write_index(index, str(place / "index.faiss"))
        (place / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        from embaudit.stores.place import ReadOptions

        report = look_at_search(open_store(place / "index.faiss", ReadOptions(texts=place / "texts.jsonl")))
        (finding,) = [one for one in report.findings if one.name == "copied_texts"]
        assert finding.level == level
        assert (report.verdict == "finds what it holds") == (level == "look")
