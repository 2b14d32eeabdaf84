"""What quality is measured on: the sample, the user's own data, and what cannot be used."""

from __future__ import annotations

from pathlib import Path

from embaudit.corpora.judged import load_judged
from embaudit.corpora.load import load_corpus
from embaudit.corpora.tally import TextPair
from embaudit.measures.quality.material import (
    MAX_DATA_SETS,
    MAX_DOCUMENTS,
    MAX_PAIRS,
    material_of,
    sample_material,
    user_material,
)


def test_the_sample_has_both_kinds_of_data() -> None:
    material = sample_material()
    (pairs,), (collection,) = material.pairs, material.collections
    assert len(pairs.scores) == MAX_PAIRS
    assert MAX_DOCUMENTS - 5 < len(collection.documents) <= MAX_DOCUMENTS
    assert len(collection.queries) >= 80
    assert all(grades and max(grades) < len(collection.documents) for grades in collection.relevant)
    assert not material.missing
    assert (pairs.wanted[pairs.is_matching] >= 4).all()
    assert (pairs.wanted[pairs.is_unrelated] <= 1).all()


def test_scores_of_data_sets_are_not_pooled_and_share_the_budget() -> None:
    rows = [TextPair(f"a {place}", f"b {place}", float(place % 6)) for place in range(800)]
    halves = [TextPair(f"c {place}", f"d {place}", place % 2) for place in range(800)]
    material = material_of({"one": rows, "other": halves}, {})
    assert [pairs.name for pairs in material.pairs] == ["one", "other"]
    assert [len(pairs.scores) for pairs in material.pairs] == [MAX_PAIRS // 2] * 2
    assert set(material.pairs[1].wanted[material.pairs[1].is_matching]) == {1.0}


def test_data_sets_of_one_source_keep_their_scales() -> None:
    """A folder of files, or a file with a column that names the data set."""
    rows = [TextPair(f"a {place}", f"b {place}", float(place % 6), data_set="to five") for place in range(40)]
    rows += [TextPair(f"c {place}", f"d {place}", place % 2, data_set="to one") for place in range(40)]
    material = material_of({"folder": rows}, {})
    assert [pairs.name for pairs in material.pairs] == ["to five in folder", "to one in folder"]
    assert [set(pairs.wanted[pairs.is_matching]) for pairs in material.pairs] == [{4.0, 5.0}, {1.0}]


def test_only_the_largest_data_sets_are_read() -> None:
    rows = [
        TextPair(f"a {part} {place}", f"b {place}", float(place % 6), data_set=f"part {part}")
        for part in range(MAX_DATA_SETS + 2)
        for place in range(20 + part)
    ]
    material = material_of({"folder": rows}, {})
    assert [pairs.name for pairs in material.pairs] == [
        f"part {part} in folder" for part in range(2, MAX_DATA_SETS + 2)
    ]
    assert material.missing == (f"2 smaller data sets of pairs: the {MAX_DATA_SETS} largest of them are read.",)


def test_pairs_without_scores_are_said_to_be_missing() -> None:
    material = material_of(
        {"mine": [TextPair("a", "b"), TextPair("c", "d")]}, {"few": (["x"], [("q", {0: 1.0}, frozenset())])}
    )
    assert not material.pairs
    assert not material.collections
    assert "mine" in material.missing[0]
    assert "few" in material.missing[1]


def test_the_readers_results_are_material(tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    lines = [f"first {place},second {place},{place % 5}" for place in range(20)]
    table.write_text("\n".join(["sentence1,sentence2,score", *lines]))
    material = user_material([load_corpus("sts", str(table))], [load_judged("sample")])
    assert len(material.pairs[0].scores) == 20
    assert len(material.collections[0].queries) == 20


def test_a_part_of_a_collection_keeps_what_its_queries_need() -> None:
    (collection,) = sample_material().collections
    part, places = collection.first(10, 40)
    assert len(part.queries) == 10
    assert len(part.documents) == len(places) >= 40
    for grades, new in zip(collection.relevant[:10], part.relevant, strict=True):
        assert {collection.documents[p]: g for p, g in grades.items()} == {part.documents[p]: g for p, g in new.items()}
