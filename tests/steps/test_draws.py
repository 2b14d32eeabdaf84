"""Which texts the measures read: a random draw by content that checkpoints, measures and file orders share."""

from __future__ import annotations

import random
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import ENGLISH, tiny_bert

from embaudit.checkpoint import load_checkpoint
from embaudit.corpora.downstream.material import pick_labelled
from embaudit.corpora.draw import Draw, content_order, rank
from embaudit.corpora.load import load_corpus
from embaudit.measures.geometry import GeometrySettings
from embaudit.measures.geometry.work import corpus_geometry
from embaudit.measures.layers import LayerSettings
from embaudit.measures.layers.steps import layer_statistics
from embaudit.measures.length import LengthSettings
from embaudit.measures.length.steps import length_curve
from embaudit.measures.socm import SocmSettings
from embaudit.measures.socm.steps.summary import socm_listed, socm_summary
from embaudit.measures.socm.steps.texts import socm_pairs, socm_plane, socm_texts, socm_tightness
from embaudit.questions.audit import AuditRequest
from embaudit.steps.corpora import drawn_pairs, drawn_texts, rows_read, stage_corpus
from embaudit.steps.results import CheckpointSpec, StagedCorpus
from embaudit.steps.staging.stage import read_rows
from embaudit.system.installed import content_key

FIRST, REST, DRAWN = 40, 360, 40


def odd_start() -> list[str]:
    """Forty texts that repeat one word, as a file's first lines may be of one article; then others of all kinds."""
    words = ENGLISH.split()
    first = [f"river river {words[place]}" for place in range(FIRST)]
    rest = [" ".join(words[(11 * place + 5 * step * step) % len(words)] for step in range(9)) for place in range(REST)]
    return [*first, *(f"{text} {place}" for place, text in enumerate(rest))]


def spec_of(folder: Path) -> CheckpointSpec:
    checkpoint_id = load_checkpoint(str(folder)).checkpoint_id
    return CheckpointSpec(reference=str(folder), checkpoint_id=checkpoint_id, device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> list[CheckpointSpec]:
    folder = tmp_path_factory.mktemp("checkpoints")
    return [spec_of(tiny_bert(folder / str(seed), seed=seed)) for seed in (0, 1)]


@pytest.fixture
def staging(tmp_path: Path) -> str:
    return str(tmp_path / "staging")


def staged(name: str, lines: list[str], folder: Path, staging: str) -> StagedCorpus:
    file = folder / f"{name}.{'jsonl' if lines[0].startswith('{') else 'txt'}"
    file.write_text("\n".join(lines), encoding="utf-8")
    return stage_corpus(load_corpus(name, str(file)), staging)


def summary_of(spec: CheckpointSpec, corpus: StagedCorpus, draw: Draw, staging: str) -> dict[str, Any]:
    described = socm_texts.compute(staging, spec, corpus, draw)
    pairs = socm_pairs.compute(staging, spec, corpus, draw, 0, 1)
    (row,) = read_rows([socm_summary.compute(staging, spec, corpus, "all", described, pairs, [1.0])[0].path])
    return row


def positions(spec: CheckpointSpec, corpus: StagedCorpus, draw: Draw, staging: str) -> list[int]:
    return [row["position"] for row in read_rows([socm_texts.compute(staging, spec, corpus, draw)[0].path])]


@pytest.mark.slow
def test_an_estimate_is_near_the_whole_and_not_near_the_first_rows(
    checkpoints: list[CheckpointSpec], tmp_path: Path, staging: str
) -> None:
    corpus, spec = staged("wikipedia", odd_start(), tmp_path, staging), checkpoints[0]

    def summary(draw: Draw) -> dict[str, Any]:
        return summary_of(spec, corpus, draw, staging)

    asked = SocmSettings(texts=DRAWN)
    whole = summary(SocmSettings(texts=corpus.rows).draw_from(corpus.name, corpus.rows, 0))["socm_mean"]
    first = summary(SocmSettings(texts=DRAWN, draw="first").draw_from(corpus.name, corpus.rows, 0))
    drawn = [summary(asked.draw_from(corpus.name, corpus.rows, seed)) for seed in range(3)]
    assert abs(first["socm_mean"] - whole) > 3 * max(abs(one["socm_mean"] - whole) for one in drawn)
    assert not first["socm_low"] <= whole <= first["socm_high"]
    assert all(one["socm_low"] <= whole <= one["socm_high"] for one in drawn)
    assert len({one["socm_mean"] for one in drawn}) == 3


def test_averages_do_not_depend_on_the_gaps_that_a_draw_leaves(
    checkpoints: list[CheckpointSpec], tmp_path: Path, staging: str
) -> None:
    corpus, spec, draw = staged("wikipedia", odd_start(), tmp_path, staging), checkpoints[0], Draw(rows=12, seed=3)
    taken = drawn_texts(corpus.content_path, draw)
    alone = staged("msmarco", taken.texts, tmp_path, staging)
    one, other = (summary_of(spec, *each, staging) for each in ((corpus, draw), (alone, Draw(rows=12))))
    names = {"corpus", "corpus_id"}
    assert {name: one[name] for name in one.keys() - names} == {name: other[name] for name in other.keys() - names}
    pairs = read_rows([part.path for part in socm_pairs.compute(staging, spec, corpus, draw, 0, 1)])
    assert {row[side] for row in pairs for side in ("first", "second")} == set(taken.places)


def test_two_checkpoints_and_all_measures_read_the_same_texts(
    checkpoints: list[CheckpointSpec], tmp_path: Path, staging: str
) -> None:
    corpus = staged("wikipedia", odd_start(), tmp_path, staging)
    draw, smaller = Draw(rows=20, seed=1), Draw(rows=8, seed=1)
    one, other = (positions(spec, corpus, draw, staging) for spec in checkpoints)
    assert one == other == drawn_texts(corpus.content_path, draw).places != list(range(20))
    layers = read_rows([layer_statistics.compute(staging, checkpoints[0], corpus, smaller)[0].path])
    assert {row["position"] for row in layers} == {*drawn_texts(corpus.content_path, smaller).places} < {*one}
    by_position = {row["position"]: row["tokens"] for row in layers}
    texts = read_rows([socm_texts.compute(staging, checkpoints[0], corpus, draw)[0].path])
    assert all(by_position[row["position"]] == row["tokens"] for row in texts if row["position"] in by_position)
    # Geometry has no row a text: its figures are those of the drawn texts alone.
    alone = staged("msmarco", drawn_texts(corpus.content_path, draw).texts, tmp_path, staging)
    rows = [
        read_rows([corpus_geometry.compute(staging, checkpoints[0], *each, 3)[0].path])[0]
        for each in ((corpus, draw), (alone, Draw(rows=20)))
    ]
    assert rows[0]["mean_cosine"] == rows[1]["mean_cosine"]


def test_pictures_and_transport_are_of_the_drawn_texts(
    checkpoints: list[CheckpointSpec], tmp_path: Path, staging: str
) -> None:
    corpus, spec, draw = staged("wikipedia", odd_start(), tmp_path, staging), checkpoints[0], Draw(rows=6, seed=2)
    taken = drawn_texts(corpus.content_path, draw)
    pairs = socm_pairs.compute(staging, spec, corpus, draw, 0, 1)
    by_pair = {(row["first"], row["second"]): row["socm"] for row in read_rows([part.path for part in pairs])}
    tight = read_rows([socm_tightness.compute(staging, spec, corpus, draw, 5)[0].path])
    assert all(row["socm"] == pytest.approx(by_pair[row["first"], row["second"]], abs=1e-6) for row in tight)
    words = dict(zip(taken.places, taken.texts, strict=True))
    for row in read_rows([socm_plane.compute(staging, spec, corpus, pairs)[0].path]):
        assert row["token"] is None or row["token"][0] == "[" or row["token"].strip("#") in words[row["position"]]


def test_labels_are_all_there_though_the_file_is_sorted_by_them(
    checkpoints: list[CheckpointSpec], tmp_path: Path, staging: str
) -> None:
    lines = [f'{{"text": "{text}", "label": "{place // 100}"}}' for place, text in enumerate(odd_start())]
    corpus = staged("longdocs", lines, tmp_path, staging)

    def summary(how: Any) -> dict[str, Any]:
        asked = LengthSettings(texts=40, draw=how)
        (row,) = read_rows([length_curve.compute(staging, checkpoints[0], corpus, asked, 0)[2].path])
        return row

    assert summary("random")["is_labelled"]
    assert not summary("first")["is_labelled"]
    # The texts that a temperature is tried on begin with those that lengths are compared on.
    drawn = drawn_texts(corpus.content_path, Draw(rows=40, seed=0))
    assert len({*drawn.labels}) == 4
    everything = drawn_texts(corpus.content_path, Draw(rows=corpus.rows))
    picked = pick_labelled(list(zip(everything.texts, everything.labels, strict=True)), 80, 2, 0)
    assert {*drawn.texts} < {*picked.texts}


def test_listed_pairs_keep_their_places_in_the_list(
    checkpoints: list[CheckpointSpec], tmp_path: Path, staging: str
) -> None:
    texts = odd_start()
    lines = [f'{{"query": "{texts[place]}", "negative": "{texts[-1 - place % 7]}"}}' for place in range(60)]
    corpus = staged("msmarco-hard-negatives", lines, tmp_path, staging)
    draw = SocmSettings(listed_pairs=10).draw_from(corpus.name, corpus.rows, 5)
    parts = [socm_listed.compute(staging, checkpoints[0], corpus, draw, start, start + 5) for start in (0, 5)]
    texts_of, pairs_of = ([row for part in parts for row in read_rows([part[table].path])] for table in (0, 1))
    drawn = drawn_pairs(corpus.content_path, draw)
    places, pairs = drawn.places, drawn.pairs
    assert [row["position"] for row in pairs_of] == places != list(range(10))
    assert [row["position"] for row in texts_of] == list(range(len({text for pair in pairs for text in pair})))
    assert drawn_pairs(corpus.content_path, Draw(rows=10)).places == list(range(10))


def test_the_first_rows_are_read_where_they_are_asked_for_by_name(
    checkpoints: list[CheckpointSpec], tmp_path: Path, staging: str
) -> None:
    corpus = staged("wikipedia", odd_start(), tmp_path, staging)
    asked = AuditRequest(checkpoint="x", draw="first")
    for settings_of in (SocmSettings, LayerSettings, GeometrySettings, LengthSettings):
        assert settings_of().requested(asked).draw == "first"
        assert settings_of(draw="first").requested(AuditRequest(checkpoint="x")).draw == "first"
    first = SocmSettings(texts=30).requested(asked).draw_from(corpus.name, corpus.rows, 9)
    assert drawn_texts(corpus.content_path, first).texts == odd_start()[:30]
    assert positions(checkpoints[0], corpus, first, staging) == list(range(30))


def test_keys_tell_draws_apart_and_a_whole_corpus_has_one(checkpoints: list[CheckpointSpec], tmp_path: Path) -> None:
    corpus = staged("wikipedia", odd_start(), tmp_path, str(tmp_path / "staging"))

    def key(how: Any, wanted: int, seed: int) -> str:
        return socm_texts.key(checkpoints[0], corpus, Draw.of(wanted, corpus.rows, how, seed))

    keys = [key("random", 30, 0), key("random", 30, 1), key("random", 31, 0), key("first", 30, 0)]
    assert len({*keys}) == 4
    assert key("first", 30, 0) == key("first", 30, 1)
    assert len({key("random", 400, 0), key("random", 1_000, 7), key("first", 400, 3)}) == 1


@pytest.mark.parametrize("name", ["wikipedia", "msmarco-hard-negatives"])
def test_what_an_audit_publishes_of_a_corpus_is_what_its_measures_drew(name: str, tmp_path: Path, staging: str) -> None:
    lines = odd_start()
    if name != "wikipedia":
        lines = [f'{{"query": "{text}", "negative": "stone"}}' for text in lines]
    corpus = staged(name, lines, tmp_path, staging)
    draws = [Draw(rows=30, seed=2), Draw(rows=10, seed=2), Draw(rows=3)]
    record, content = rows_read(corpus, draws, staging)
    assert (record, content.rows) == (corpus.files[0], len(read_rows([content.path])))
    drawn = drawn_texts if corpus.kind == "texts" else drawn_pairs
    places = {0, 1, 2, *drawn(corpus.content_path, draws[0]).places}
    whole = read_rows([corpus.content_path])
    assert read_rows([content.path]) == [whole[place] for place in sorted(places)]
    assert rows_read(corpus, draws, staging)[1].path == content.path != corpus.content_path
    for everything in ([], [Draw(rows=400), Draw(rows=3)]):
        assert rows_read(corpus, everything, staging) == list(corpus.files)


@given(seed=st.integers(0, 9), sizes=st.tuples(st.integers(1, 60), st.integers(1, 60)), order=st.randoms())
@settings(max_examples=40)
def test_a_draw_is_of_what_texts_say(seed: int, sizes: tuple[int, int], order: random.Random) -> None:
    texts = [f"text {place}" for place in range(50)]
    shuffled = texts.copy()
    order.shuffle(shuffled)
    small, large = sorted(sizes)
    taken = {texts[place] for place in Draw(rows=large, seed=seed).places(texts)}
    assert taken == {shuffled[place] for place in Draw(rows=large, seed=seed).places(shuffled)}
    assert {texts[place] for place in Draw(rows=small, seed=seed).places(texts)} <= taken
    assert len(taken) == min(large, 50)


def test_every_text_has_the_same_chance() -> None:
    texts = [f"text {place}" for place in range(20)]
    counts = [0] * 20
    for seed in range(2_000):
        for place in Draw(rows=5, seed=seed).places(texts):
            counts[place] += 1
    # 500 each, with a standard deviation of 19.
    assert max(abs(count - 500) for count in counts) < 80
    assert mean(counts) == 500


def test_the_order_is_that_of_the_ranks() -> None:
    texts = ["b", "a", "ü", "c"]
    assert content_order(texts, 4) == sorted(range(4), key=lambda place: rank(texts[place], 4))
    assert rank("ü\n\"'", 4) == content_key(seed=4, text="ü\n\"'")


def test_the_record_of_a_corpus_is_kept_while_it_says_the_same(tmp_path: Path, staging: str) -> None:
    def record(text: list[str]) -> Path:
        return Path(staged("wikipedia", text, tmp_path, staging).files[0].path)

    first = record(["one", "two"])
    (row,), written = read_rows([first]), first.read_bytes()
    assert record(["one", "two"]).read_bytes() == written
    # The same rows, of a source in which one was dropped.
    (other,) = read_rows([record(["one", "two", "two"])])
    assert (other["duplicate"], other["corpus_id"]) == (row["duplicate"] + 1, row["corpus_id"])
    assert other["ingested"] > row["ingested"]
    first.write_bytes(written[:20])
    assert read_rows([record(["one", "two"])])[0]["kept"] == 2
