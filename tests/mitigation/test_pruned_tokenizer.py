"""Tokenizers without some tokens: no text gives them any more, and texts that never did are read as before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tiny import ENGLISH, tiny_bert
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.cli.main import cli
from embaudit.remedies.mitigation.rows import pieces, prunable, pruned
from embaudit.remedies.mitigation.write import write_mitigated
from embaudit.words.errors import NotMeasurable, UsageError

SPECIAL = ["[UNK]", "[CLS]"]
TEXTS = [*ENGLISH.split(), ENGLISH, "thetheriver the", "ⁱ the", ""]


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
    before = pieces(declared, TEXTS)
    # Those of the words, from the whole vocabulary that they use.
    used = sorted({token for ids in before for token in ids})
    gone = prunable(declared, used[::3] if kind != "byte BPE" else used[::-1][:40])
    assert len(gone) > 5
    after = pieces(pruned(declared, gone), TEXTS)
    for text, old, new in zip(TEXTS, before, after, strict=True):
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
