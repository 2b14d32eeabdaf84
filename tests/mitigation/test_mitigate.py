"""Checkpoints without severe tokens: which rows change, and that nothing else does."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.tensors import stored_tensors
from embaudit.cli.main import cli
from embaudit.remedies.mitigation import HOWS, How, replaced
from embaudit.remedies.mitigation.write import Mitigated, write_mitigated
from embaudit.words.errors import CheckpointError, StorageError, UsageError

WITH, WITHOUT = ["the river is long", "a river"], ["the town is long", "stone"]


def encoder(folder: Path) -> Encoder:
    return Encoder(load_checkpoint(str(folder), LoadOptions(device="cpu")))


def river(folder: Path) -> int:
    return int(encoder(folder).checkpoint.tokenizer.convert_tokens_to_ids("river"))


def write(tiny_checkpoint: Path, out: Path, how: How = "unk", tokens: set[int] | None = None) -> Mitigated:
    return write_mitigated(str(tiny_checkpoint), tokens or {river(tiny_checkpoint)}, how, out, device="cpu")


@given(how=st.sampled_from(HOWS), seed=st.integers(0, 99), severe=st.sets(st.integers(1, 11), min_size=1, max_size=5))
@settings(max_examples=60)
def test_rows_are_what_they_are_called(how: How, seed: int, severe: set[int]) -> None:
    embeddings = np.random.default_rng(seed).normal(size=(12, 4)).astype(np.float32)
    embeddings[11] = 0
    found = replaced(embeddings, severe, how, unknown=0)
    others = [row.astype(float) for place, row in enumerate(embeddings) if place not in severe]
    for token, row in zip(sorted(severe), found, strict=True):
        old = embeddings[token].astype(float)
        if how == "mean":
            np.testing.assert_allclose(row, sum(others) / len(others), atol=1e-12)
        elif how == "unk":
            np.testing.assert_array_equal(row, embeddings[0])
        elif token == 11:
            assert not row.any(), "it has no direction"
        else:
            lengths = sorted(float(np.sqrt((one**2).sum())) for one in others)
            middle = (lengths[(len(lengths) - 1) // 2] + lengths[len(lengths) // 2]) / 2
            assert np.linalg.norm(row) == pytest.approx(middle)
            assert row @ old == pytest.approx(np.linalg.norm(row) * np.linalg.norm(old))


@pytest.mark.parametrize("how", HOWS)
def test_only_the_rows_of_the_tokens_change(tiny_checkpoint: Path, tmp_path: Path, how: How) -> None:
    made = write(tiny_checkpoint, tmp_path / "out", how)
    before, after = encoder(tiny_checkpoint), encoder(tmp_path / "out")
    np.testing.assert_array_equal(after.encode_texts(WITHOUT), before.encode_texts(WITHOUT))
    assert (np.abs(after.encode_texts(WITH) - before.encode_texts(WITH)).max(axis=1) > 1e-6).all()
    assert (made.tokens, made.tensors, made.difference) == (
        (river(tiny_checkpoint),),
        ("embeddings.word_embeddings.weight",),
        0.0,
    )
    assert made.texts > 0, "no sample text was compared"
    old, new = ((folder / "model.safetensors").read_bytes() for folder in (tiny_checkpoint, tmp_path / "out"))
    (place,) = [
        one for one in stored_tensors([tiny_checkpoint / "model.safetensors"]).values() if one.name == made.tensors[0]
    ]
    row = 4 * place.shape[1]
    start = place.start + river(tiny_checkpoint) * row
    assert old[:start] == new[:start]
    assert old[start + row :] == new[start + row :]
    assert old != new
    card = (tmp_path / "out" / "README.md").read_text()
    assert f"(`{how}`)" in card
    assert f"- {river(tiny_checkpoint)}\n" in card


def test_sentence_transformers_loads_it_unchanged(tiny_checkpoint: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    write(tiny_checkpoint, tmp_path / "out")
    served = SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(WITH + WITHOUT)
    np.testing.assert_allclose(served, encoder(tmp_path / "out").encode_texts(WITH + WITHOUT), atol=1e-6)


def test_a_stored_copy_of_the_embeddings_follows(tiny_checkpoint: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

    torch.manual_seed(0)
    model = BertForMaskedLM(BertConfig.from_pretrained(tiny_checkpoint, tie_word_embeddings=True))
    model.save_pretrained(tmp_path / "tied")
    AutoTokenizer.from_pretrained(tiny_checkpoint).save_pretrained(tmp_path / "tied")
    made = write(tmp_path / "tied", tmp_path / "out")
    assert "bert.embeddings.word_embeddings.weight" in made.tensors


def test_what_is_refused(tiny_checkpoint: Path, tmp_path: Path) -> None:
    tokenizer = encoder(tiny_checkpoint).checkpoint.tokenizer
    with pytest.raises(UsageError, match=r"'\[CLS\]' is part of every text"):
        write(tiny_checkpoint, tmp_path / "out", tokens={tokenizer.cls_token_id})
    with pytest.raises(UsageError, match="no unknown token"):
        write(tiny_checkpoint, tmp_path / "out", tokens={tokenizer.unk_token_id})
    with pytest.raises(UsageError, match="no token to replace"):
        write_mitigated(str(tiny_checkpoint), set(), "mean", tmp_path / "out", device="cpu")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    with pytest.raises(UsageError, match="already exists"):
        write(tiny_checkpoint, tmp_path / "taken")
    with pytest.raises(StorageError, match="Nothing was left there"):
        write(tiny_checkpoint, tmp_path / "taken" / "file" / "out")
    with pytest.raises(CheckpointError):
        write_mitigated(str(tmp_path / "nowhere"), {5}, "mean", tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["taken"]


def test_the_command_takes_words_and_lists(tiny_checkpoint: Path, tmp_path: Path) -> None:
    listed = {
        **{
            "checkpoint": str(tiny_checkpoint),
            "checkpoint_id": "c1",
            "max_length": 64,
            "audit_id": "a1",
            "severity": "moderate",
        },
        **{"tokenizer_sha256": encoder(tiny_checkpoint).checkpoint.identity.tokenizer_sha256, "validated": 3},
        "tokens": [
            {"token_id": token, "token": "t", "text": "t", "is_reachable": True, "loss": 0.5, "severity": "strong"}
            for token in (river(tiny_checkpoint), 60)
        ],
    }
    path = tmp_path / "severe.json"
    path.write_text(json.dumps(listed))

    def run(*arguments: str) -> object:
        return CliRunner().invoke(cli, ["mitigate", str(tiny_checkpoint), *arguments, "--device", "cpu"])

    by_word = run("--tokens", "river", "--out", str(tmp_path / "word"))
    assert by_word.output.startswith(f"{tmp_path}/word: 1 token has another input embedding (unk; median norm ")
    assert f"Next: embaudit token {tmp_path}/word {river(tiny_checkpoint)}" in by_word.output
    by_list = run("--tokens", str(path), "--out", str(tmp_path / "list"), "--how", "mean")
    assert f"{tmp_path}/list: 2 tokens have other input embeddings (mean; " in by_list.output
    path.write_text(json.dumps({**listed, "tokenizer_sha256": "0" * 64}))
    other = run("--tokens", str(path), "--out", str(tmp_path / "other"))
    assert isinstance(other.exception, UsageError)
    assert "to a different tokenizer" in str(other.exception)
