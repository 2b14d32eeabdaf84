"""Remedies against definitions worked out by hand, and their losses against plain least squares."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from tiny import ENGLISH, tiny_bert
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.cli.main import cli
from embaudit.measures.mitigation import REMEDIES, Remedy
from embaudit.measures.mitigation.remedies import SPACES, encode_with, fitted, insert_all, insert_with, losses
from embaudit.measures.sticky.points import every_against_every
from embaudit.measures.sticky.steps.verdicts import treatable
from embaudit.remedies.mitigation import HOWS, WithoutComponents, pieces, prunable, pruned
from embaudit.remedies.mitigation.write import write_mitigated
from embaudit.words.errors import NotMeasurable, UsageError

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


# ---- tokenizers without some tokens: no text gives them any more, and texts that never did are read as before ----


SPECIAL = ["[UNK]", "[CLS]"]
PRUNED_TEXTS = [*ENGLISH.split(), ENGLISH, "thetheriver the", "ⁱ the", ""]


def trained(kind: str) -> str:
    """A small tokenizer of one kind, with two added tokens where it has an unknown one."""
    if kind == "WordPiece":
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        trainer = trainers.WordPieceTrainer(vocab_size=120, special_tokens=SPECIAL)
    elif kind == "Unigram":
        tokenizer = Tokenizer(models.Unigram())
        trainer = trainers.UnigramTrainer(vocab_size=80, special_tokens=SPECIAL, unk_token="[UNK]")
    else:
        tokenizer = Tokenizer(models.BPE())
        trainer = trainers.BpeTrainer(vocab_size=320, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.pre_tokenizer = {
        "WordPiece": pre_tokenizers.Whitespace(),
        "Unigram": pre_tokenizers.Metaspace(),
        "byte BPE": pre_tokenizers.ByteLevel(),
    }[kind]
    tokenizer.train_from_iterator([ENGLISH] * 5, trainer)
    return str(tokenizer.to_str())


@pytest.mark.parametrize("kind", ["WordPiece", "Unigram", "byte BPE"])
def test_no_text_gives_a_pruned_token_and_others_stay(kind: str) -> None:
    declared = trained(kind)
    before = pieces(declared, PRUNED_TEXTS)
    # Those of the words, from the whole vocabulary that they use.
    used = sorted({token for ids in before for token in ids})
    gone = prunable(declared, used[::3] if kind != "byte BPE" else used[::-1][:40])
    assert len(gone) > 5
    after = pieces(pruned(declared, gone), PRUNED_TEXTS)
    for text, old, new in zip(PRUNED_TEXTS, before, after, strict=True):
        assert not gone & set(new), text
        if not gone & set(old):
            assert new == old, text
    # Ids have the names that they had.
    left, whole = (Tokenizer.from_str(one).get_vocab() for one in (pruned(declared, gone), declared))
    assert {name: token for name, token in left.items() if token not in gone} == {
        name: token for name, token in whole.items() if token not in gone
    }
    assert sorted(left.values()) == sorted(whole.values())


def test_what_a_tokenizer_cannot_do_without() -> None:
    words = Tokenizer.from_str(trained("WordPiece"))
    special = {words.token_to_id(name) for name in SPECIAL}
    river = words.token_to_id("t")
    assert prunable(words.to_str(), {*special, river}) == {river}
    # An unknown token that is not among the added ones, known by its name or by its place.
    by_name = models.WordPiece({"[UNK]": 0, "a": 1}, unk_token="[UNK]")
    for model in (by_name, models.Unigram([("[UNK]", 0.0), ("a", -1.0)], unk_id=0)):
        assert prunable(Tokenizer(model).to_str(), {0, 1}) == {1}
    names = {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4}
    declared = json.loads(Tokenizer(models.BPE(names, [("a", "b"), ("ab", "c")])).to_str())
    letters = json.dumps(declared)
    for asked, possible in {(0,): set(), (3,): set(), (4,): {4}, (3, 4): {3, 4}, (0, 3, 4): {3, 4}}.items():
        assert prunable(letters, asked) == possible, asked
    assert pieces(pruned(letters, {4}), ["abc"]) == [[3, 2]]
    declared["model"]["merges"] = ["a b", "ab c"]
    assert pieces(pruned(json.dumps(declared), {3, 4}), ["abc"]) == [[0, 1, 2]]
    with pytest.raises(NotMeasurable, match="cannot be removed from"):
        prunable(json.dumps({"model": {"type": "Tables"}}), {1})


def test_a_checkpoint_without_a_token_is_served_as_it_is_audited(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    source = tiny_bert(tmp_path / "tiny")
    checkpoint = load_checkpoint(str(source), LoadOptions(device="cpu"))
    river, mask = (checkpoint.tokenizer.convert_tokens_to_ids(name) for name in ("river", "[MASK]"))
    arguments = ["mitigate", str(source), "--tokens", f"river,{mask}", "--how", "prune", "--device", "cpu"]
    done = CliRunner().invoke(cli, [*arguments, "--out", str(tmp_path / "out")])
    assert "the tokenizer no longer produces 1 token (1 more cannot be removed); everything else is" in done.output
    assert f"Next: embaudit audit {tmp_path}/out" in done.output
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == (source / "model.safetensors").read_bytes()
    assert f"- {river}\n" in (tmp_path / "out" / "README.md").read_text()
    texts = ["the river is long", "the town is long"]
    pruned_one = load_checkpoint(str(tmp_path / "out"), LoadOptions(device="cpu"))
    own = Encoder(pruned_one).encode_texts(texts)
    assert own == pytest.approx(SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(texts), abs=1e-6)
    before = Encoder(checkpoint).encode_texts(texts)
    # The batch is another, as the other text is longer now: products may be rounded otherwise.
    assert own[1] == pytest.approx(before[1], abs=1e-6)
    assert abs(own[0] - before[0]).max() > 1e-6
    assert pruned_one.checkpoint_id != checkpoint.checkpoint_id
    with pytest.raises(UsageError, match="cannot do without any"):
        write_mitigated(str(source), {mask}, "prune", tmp_path / "other", device="cpu")
    assert not (tmp_path / "other").exists()
