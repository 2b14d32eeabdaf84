"""Lists of pairs, texts against a corpus, and the check of a run on a random sample of its own pairs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from random_clouds import clouds_from, random_texts, table_of

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.cli.against import against
from embaudit.measures.socm.clouds import TokenCloud, clouds_of
from embaudit.measures.socm.nuclear import Eigenvalues, Polar
from embaudit.measures.socm.pairs import Accuracy, against_corpus, all_pairs, checked, given_pairs
from embaudit.words.errors import MeasureError, UsageError


def by_position(clouds: list[TokenCloud]) -> dict[int, TokenCloud]:
    return {cloud.position: cloud for cloud in clouds}


@given(seed=st.integers(0, 10**6), count=st.integers(1, 40))
@settings(max_examples=30)
def test_a_list_has_the_values_of_all_pairs_in_its_own_order(seed: int, count: int) -> None:
    clouds = clouds_from(random_texts(seed, 9, 6, longest=30))
    table = table_of(clouds)
    first, second = np.random.default_rng(seed).integers(0, 9, size=(2, count))
    block = given_pairs(by_position(clouds), first, second)
    assert (block.first.tolist(), block.second.tolist()) == (first.tolist(), second.tolist())
    for i, j, *values in zip(first, second, block.d_mu, block.d_sigma, block.socm, strict=True):
        expected = (0, 0, 0) if i == j else table[min(i, j), max(i, j)]
        assert values == pytest.approx(expected, abs=1e-6)


def test_a_small_budget_and_another_device_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clouds = by_position(clouds_from(random_texts(2, 30, 6, longest=50)))
    first, second = np.random.default_rng(0).integers(0, 30, size=(2, 60))
    whole = given_pairs(clouds, first, second)
    monkeypatch.setattr("embaudit.measures.socm.pairs.BYTES_PER_STEP", 10_000)
    assert given_pairs(clouds, first, second).d_sigma == pytest.approx(whole.d_sigma, abs=1e-7)
    assert given_pairs(clouds, first, second, norms=Polar("cpu")).d_sigma == pytest.approx(whole.d_sigma, abs=1e-7)


def test_no_pairs_are_no_rows() -> None:
    assert len(given_pairs({}, [], []).socm) == 0


def test_a_pair_without_its_text_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        given_pairs(by_position(clouds_from(random_texts(2, 3, 6))), [0], [9])


def test_texts_against_a_corpus_are_a_rectangle_of_all_pairs() -> None:
    clouds = clouds_from(random_texts(6, 17, 6, longest=30))
    table = table_of(clouds)
    texts, corpus = clouds[:4], [replace(cloud, position=cloud.position - 4) for cloud in clouds[4:]]
    norms = Eigenvalues(workers=2)
    norms.tokens_per_block = 40
    found = {}
    for block in against_corpus(texts, corpus, norms=norms):
        for i, j, *values in zip(block.first, block.second, block.d_mu, block.d_sigma, block.socm, strict=True):
            assert (int(i), int(j)) not in found
            found[int(i), int(j)] = values
    assert len(found) == 4 * 13
    for (i, j), values in found.items():
        assert values == pytest.approx(table[i, j + 4], abs=1e-6)


@pytest.mark.parametrize("sides", [(0, 3), (3, 0)])
def test_a_corpus_needs_texts_on_both_sides(sides: tuple[int, int]) -> None:
    clouds = clouds_from(random_texts(6, 3, 6))
    with pytest.raises(MeasureError, match="both sides"):
        next(against_corpus(clouds[: sides[0]], clouds[: sides[1]]))


def test_a_run_is_checked_on_pairs_drawn_by_the_seed() -> None:
    clouds = clouds_from(random_texts(1, 20, 8, longest=20))
    accuracy = Accuracy()
    pairs = sum(len(block.socm) for block in checked(all_pairs(clouds), by_position(clouds), 190, accuracy, sample=50))
    assert (pairs, accuracy.pairs) == (190, 50)
    assert accuracy.largest < 1e-7


def test_a_wrong_value_is_found_if_every_pair_is_checked() -> None:
    clouds = clouds_from(random_texts(1, 6, 8))
    blocks = [replace(block, d_sigma=block.d_sigma + 1e-3) for block in all_pairs(clouds)]
    accuracy = Accuracy()
    assert sum(len(block.socm) for block in checked(blocks, by_position(clouds), 15, accuracy)) == 15
    assert accuracy.pairs == 15
    assert accuracy.largest == pytest.approx(1e-3, rel=1e-3)


def test_nothing_planned_is_nothing_checked() -> None:
    accuracy = Accuracy()
    assert list(checked([], {}, 0, accuracy)) == []
    assert accuracy.pairs == 0


def test_as_many_pairs_are_checked_as_were_asked_for() -> None:
    clouds = clouds_from(random_texts(1, 7, 8))
    seen = 0
    for seed in range(4):
        accuracy = Accuracy()
        list(
            checked(
                all_pairs(clouds),
                by_position(clouds),
                21,
                accuracy,
                seed=seed,
                sample=3,
            )
        )
        seen += accuracy.pairs
    assert seen == 12


# ---- by the command ----


PASSAGES = ["the river town", "a small bird", "the law court of the state", "rain snow and ice", "iron and gold"]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(PASSAGES) + "\n")
    return path


def test_the_largest_come_first_and_are_right(tiny_checkpoint: Path, corpus: Path) -> None:
    texts = ["a great king", "water"]
    arguments = [
        str(tiny_checkpoint),
        *texts,
        "--corpus",
        f"wikipedia={corpus}",
        "--top",
        "3",
        "--json",
        "--device",
        "cpu",
    ]
    done = CliRunner().invoke(against, arguments, catch_exceptions=False)
    rows = json.loads(done.stdout)
    encoder = Encoder(load_checkpoint(str(tiny_checkpoint), LoadOptions(device="cpu")))
    clouds = dict(enumerate(clouds_of(encoder.token_embeddings([*texts, *PASSAGES]))[0]))
    for place, text in enumerate(texts):
        own = [row for row in rows if row["text"] == text]
        wanted = given_pairs(clouds, [place] * len(PASSAGES), range(len(texts), len(clouds))).socm
        assert [row["socm"] for row in own] == pytest.approx(sorted(wanted, reverse=True)[:3])
        assert [row["passage"] for row in own] == [PASSAGES[row["position"]] for row in own]


def test_the_page_names_text_and_corpus(tiny_checkpoint: Path, corpus: Path) -> None:
    arguments = [str(tiny_checkpoint), "a great king", "--corpus", f"wikipedia={corpus}", "--device", "cpu"]
    done = CliRunner().invoke(against, arguments, catch_exceptions=False)
    assert "'a great king' against 5 texts of wikipedia" in done.stdout
    assert "rain snow and ice" in done.stdout
    with corpus.open("ab") as file:
        file.write("an é cut short".encode("latin1"))
    for words, shown in (((), "stdout"), (("--json",), "stderr")):
        done = CliRunner().invoke(against, [*arguments, *words], catch_exceptions=False)
        assert "6 rows read: 5 kept, 0 duplicate, 0 blank, 0 broken, 1 not UTF-8" in getattr(done, shown)


def test_a_corpus_of_pairs_is_refused(tiny_checkpoint: Path) -> None:
    with pytest.raises(UsageError, match="holds pairs"):
        CliRunner().invoke(against, [str(tiny_checkpoint), "a", "--corpus", "sts=sample"], catch_exceptions=False)
