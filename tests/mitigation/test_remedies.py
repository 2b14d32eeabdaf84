"""Remedies against definitions worked out by hand, and their losses against plain least squares."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import ENGLISH

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.measures.mitigation import REMEDIES, Remedy
from embaudit.measures.mitigation.remedies import SPACES, encode_with, fitted, insert_all, insert_with, losses
from embaudit.measures.sticky.points import every_against_every
from embaudit.measures.sticky.steps.verdicts import treatable
from embaudit.remedies.mitigation.rows import HOWS, WithoutComponents
from embaudit.remedies.mitigation.write import write_mitigated
from embaudit.words.errors import NotMeasurable

WORDS = ENGLISH.split()
TEXTS = [" ".join(WORDS[(5 * i + j * j) % len(WORDS)] for j in range(7)) for i in range(30)]


@pytest.fixture(scope="module")
def encoder(tiny: Checkpoint) -> Encoder:
    return Encoder(tiny)


@pytest.fixture(scope="module")
def severe(encoder: Encoder) -> frozenset[int]:
    ids = encoder.checkpoint.tokenizer.convert_tokens_to_ids(["river", "long"])
    return frozenset(map(int, ids))


def test_stripped_texts_are_those_without_the_words(encoder: Encoder, severe: frozenset[int]) -> None:
    held, without = ["the river is long", "a town", "river"], ["the is", "a town", ""]
    found = encode_with(encoder, encoder.tokenize(held), severe, "strip")
    assert found == pytest.approx(encoder.encode_texts(without), abs=1e-6)


@pytest.mark.parametrize("how", [*HOWS, "prune"])
def test_remedies_in_memory_are_those_written_down(
    encoder: Encoder, tiny_checkpoint: Path, severe: frozenset[int], how: Remedy, tmp_path: Path
) -> None:
    texts = ["the river is long", "a town in the north", "long river"]
    before = encoder.encode_texts(texts)
    found = encode_with(encoder, encoder.tokenize(texts), severe, how)
    write_mitigated(str(tiny_checkpoint), severe, how, tmp_path / "out", device="cpu")
    written = Encoder(load_checkpoint(str(tmp_path / "out"), LoadOptions(device="cpu")))
    assert found == pytest.approx(written.encode_texts(texts), abs=1e-6)
    assert (np.abs(found - before).max(axis=1) > 1e-6).tolist() == [True, False, True]
    assert encoder.encode_texts(texts) == pytest.approx(before, abs=0), "the model is as it was"


def test_what_stands_in_every_text_stays(encoder: Encoder, severe: frozenset[int]) -> None:
    around = {*encoder.checkpoint.prefix_ids, *encoder.checkpoint.suffix_ids}
    assert treatable(encoder.checkpoint, severe | around) == severe


def test_longer_pieces_are_cut_to_what_is_read(tiny_checkpoint: Path, severe: frozenset[int]) -> None:
    short = Encoder(load_checkpoint(str(tiny_checkpoint), LoadOptions(device="cpu", max_length=8)))
    (ids,) = short.tokenize(["river " * 20])
    assert len(ids) == 8
    assert np.isfinite(encode_with(short, [ids], severe, "prune")).all()


def test_without_components_nothing_is_left_of_them() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 12)) * np.arange(1, 13) + 5
    found = WithoutComponents(rows)(rows)
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    first = vectors[:, values.argmax()]
    assert np.abs(found @ first).max() < 1e-9
    centred = rows - rows.mean(axis=0)
    assert found == pytest.approx(centred - np.outer(centred @ first, first), abs=1e-9)


def test_too_few_texts_are_not_whitened() -> None:
    with pytest.raises(NotMeasurable, match="15 texts are too few to whiten 8 dimensions: 16 are needed"):
        fitted("whitening", np.ones((15, 8)))


def test_losses_are_least_squares_in_the_space_of_the_remedy(encoder: Encoder, severe: frozenset[int]) -> None:
    points = every_against_every(encoder, TEXTS[:6], TEXTS[6:], u=0.99, copies=3, seed=0, groups=4)
    names = ["river", "long", "the", "is", "a", "town", "north"]
    tokens = np.array(sorted(encoder.checkpoint.tokenizer.convert_tokens_to_ids(names)))
    controls = [int(token) for token in tokens if token not in severe][:4]
    watched = sorted(severe)
    untreated = insert_all(encoder, points, tokens)
    clean = encoder.encode_texts(TEXTS)
    units = clean / np.linalg.norm(clean, axis=1, keepdims=True)
    by_remedy = {"none": (untreated, None)}
    for remedy in REMEDIES:
        if remedy == "whitening":
            continue
        by_remedy[remedy] = (
            (untreated, fitted(remedy, units))
            if remedy in SPACES
            else (insert_with(encoder, points, untreated, severe, remedy), None)
        )
    found = losses(points, by_remedy, watched, controls, 50, 0)
    for remedy, (_, transform) in by_remedy.items():
        slopes = {}
        for token in tokens.tolist():
            before, after = [], []
            for draw in points.draws:
                rows = [[int(token) if one < 0 else int(one) for one in draw.template], list(draw.baseline)]
                if remedy in (*HOWS, "strip", "prune"):
                    held, plain = encode_with(encoder, rows, severe, remedy)
                else:
                    held, plain = encoder.encode_ids(rows)
                f = transform or (lambda rows: rows)
                spaced = [f(row[None] / np.linalg.norm(row))[0] for row in (held, plain)]
                for anchor in f(points.anchors.astype(float)):
                    x, y = (float(row @ anchor / np.linalg.norm(row) / np.linalg.norm(anchor)) for row in spaced[::-1])
                    before.append(x)
                    after.append(y)
            slopes[token] = np.polyfit(before, after, 1)[0]
        ordinary = np.median([slopes[token] for token in controls])
        for token in watched:
            loss = found[remedy].tokens[token]
            assert loss.value == pytest.approx(1 - slopes[token] / ordinary, abs=2e-4), remedy
            if remedy != "none":
                assert loss.change == pytest.approx(loss.value - found["none"].tokens[token].value)
        mean = found[remedy].mean
        assert mean.value == pytest.approx(np.mean([found[remedy].tokens[token].value for token in watched]))
        assert mean.low is not None
        assert mean.low < mean.value < mean.high
    assert found["none"].mean.change is None


def test_the_model_is_restored_where_encoding_fails(encoder: Encoder, severe: frozenset[int]) -> None:
    weight = encoder.checkpoint.model.get_input_embeddings().weight
    before = weight.detach().clone()
    with pytest.raises(Exception, match="no tokens: "):
        encode_with(encoder, [[]], severe, "mean")
    assert torch.equal(weight, before)
