"""Readings that are usual among servers and exports: found by name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compared_functions import compared
from some_rows import mostly_slow
from tiny import tiny_bert
from tiny_models import build, declare, load, pooling

from benchmarks.serving.faults import faithful
from benchmarks.serving.server import Served
from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.measures.quality.material import Material
from embaudit.questions.parity.parity import compare_with

Vectors = Callable[[list[str]], np.ndarray]


def unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))


def run(checkpoint: Checkpoint, texts: list[str], width: int = 0, **more: object) -> np.ndarray:
    """Means of the states of each text alone, padded to a width without a mask."""
    import torch

    rows = []
    for ids in checkpoint.tokenize(texts):
        padded = torch.tensor([ids + [checkpoint.tokenizer.pad_token_id] * (width - len(ids))])
        with torch.inference_mode():
            given = {"input_ids": padded, "attention_mask": torch.ones_like(padded)}
            if "position_ids" in more:
                given["position_ids"] = torch.arange(padded.shape[1])[None]
            rows.append(checkpoint.model(**given).last_hidden_state[0].mean(0).numpy())
    return unit(np.array(rows, dtype=np.float64))


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    folder = build("roberta", tmp_path_factory.mktemp("usual") / "roberta")
    return load(declare(folder, pooling("mean"), ("Normalize", {})))


@pytest.mark.parametrize("width", mostly_slow([64, 32], 1))
def test_padding_to_a_fixed_length_without_a_mask(served_checkpoint: Checkpoint, width: int) -> None:
    wide = replace(served_checkpoint, limits=dict.fromkeys(served_checkpoint.limits, width))
    report = compared(wide, lambda texts: run(wide, texts, width))
    assert f"pads texts to {width} tokens and reads the padding, without a mask" in report.line


def test_positions_from_zero(roberta: Checkpoint) -> None:
    report = compared(roberta, lambda texts: run(roberta, texts, position_ids=True))
    assert "counts positions from 0" in report.line
    assert compared(roberta, lambda texts: run(roberta, texts)).line == "The same function."


def test_another_special_token_at_the_end(served_checkpoint: Checkpoint) -> None:
    mask = served_checkpoint.tokenizer.mask_token_id
    other = replace(served_checkpoint, suffix_ids=(mask,))

    def vectors(texts: list[str]) -> np.ndarray:
        ids = [other.with_special_tokens(own[: other.content_limit]) for own in other.own_ids(texts)]
        return np.asarray(Encoder(other).encode_ids(ids), dtype=np.float64)

    assert "ends texts with [MASK] in place of [SEP]" in compared(served_checkpoint, vectors).line


def test_a_token_without_a_row_stops_no_search(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    folder = tiny_bert(tmp_path / "tiny")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|endoftext|>"]})
    tokenizer.save_pretrained(folder)
    report = compare_with(CheckpointFunction(load(folder)), CheckpointFunction(load(folder, pooling="cls")), Material())
    assert "It takes cls instead of mean pooling: so used" in report.line
    assert "explanation" not in [finding.name for finding in report.findings]


def test_a_search_for_the_reason_that_fails_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> None:
        raise IndexError("a layer that is not there")

    monkeypatch.setattr("embaudit.questions.parity.explain.explain", broken)
    folder = tiny_bert(tmp_path / "tiny")
    report = compare_with(CheckpointFunction(load(folder)), CheckpointFunction(load(folder, pooling="cls")), Material())
    assert report.verdict == "another function"
    (said,) = [one for one in report.findings if one.name == "explanation"]
    assert (said.level, said.sentence) == (
        "not measured",
        "The search for the reason failed: a layer that is not there.",
    )


class TestWhatIsCloseToNothing:
    """It is no explanation; and a server that was asked got texts without titles."""

    @staticmethod
    def scrambled(checkpoint: Checkpoint) -> Vectors:
        encode = faithful(checkpoint)
        return lambda texts: encode([" ".join(text[::-1].split()[::-1]) + " of another one" for text in texts])

    def test_it_is_not_printed(self, served_checkpoint: Checkpoint) -> None:
        rng = np.random.default_rng(0)
        turn = np.linalg.qr(rng.normal(size=(32, 32)))[0]
        encode = faithful(served_checkpoint)
        report = compared(served_checkpoint, lambda texts: encode(texts) @ turn)
        assert "Closest" not in report.line
        assert "No way to use the checkpoint that was tried gives such vectors" in report.line
        # All texts differ alike, however long, and what the tokenizer reads alike has one vector.
        advice = next(finding.advice for finding in report.findings if finding.level == "problem")
        assert "title" not in advice
        assert "token ids" not in advice.lower()

    def test_a_plain_server_sends_no_titles(self, served_checkpoint: Checkpoint) -> None:
        vectors = self.scrambled(served_checkpoint)
        report = compared(served_checkpoint, Served(vectors))
        advice = next(finding.advice for finding in report.findings if finding.level == "problem")
        assert "title" not in advice
        assert "token ids" not in advice.lower()


class TestAnotherNetwork:
    """The same weights, computed as another config.json says."""

    def test_the_base_of_rotary_positions_is_lost(self, tmp_path: Path) -> None:
        folder = declare(build("qwen2", tmp_path / "qwen"), pooling("mean"), ("Normalize", {}))
        config = json.loads((folder / "config.json").read_text())
        config |= {"rope_theta": 50.0, "rope_parameters": {"rope_type": "default", "rope_theta": 50.0}}
        (folder / "config.json").write_text(json.dumps(config))
        known = load(folder)
        shutil.copytree(folder, tmp_path / "lost")
        lost = {name: value for name, value in config.items() if name not in ("rope_theta", "rope_parameters")}
        (tmp_path / "lost" / "config.json").write_text(json.dumps(lost))
        report = compared(known, faithful(load(tmp_path / "lost")))
        assert "computes rotary positions with the base 10,000, where config.json declares 50" in report.line
        assert report.explanation is not None
        assert report.explanation.is_complete
        assert compared(known, faithful(known)).line.startswith("The same function")

    @pytest.mark.parametrize("window", mostly_slow([18, "off"], 1))
    def test_the_window_of_local_attention(self, tmp_path: Path, window: object) -> None:
        transformers = pytest.importorskip("transformers", minversion="5.0")
        folder = build("bert", tmp_path / "modernbert")
        tokens = len(json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"])
        sizes = {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 64}
        config = transformers.ModernBertConfig(
            **sizes,
            vocab_size=tokens,
            local_attention=16,
            max_position_embeddings=128,
            global_attn_every_n_layers=4,
            pad_token_id=0,
        )
        import torch

        torch.manual_seed(0)
        model = transformers.ModernBertModel(config)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() == 2:
                    parameter.normal_(0.0, 0.3)
        model.save_pretrained(folder)
        known = load(declare(folder, pooling("mean"), ("Normalize", {})))
        shutil.copytree(folder, tmp_path / "other")
        (tmp_path / "other" / "config.json").write_text(
            json.dumps(
                json.loads((folder / "config.json").read_text())
                | {"local_attention": 256 if window == "off" else window}
            )
        )
        report = compared(known, faithful(load(tmp_path / "other")))
        said = (
            "beyond the window of 16 tokens"
            if window == "off"
            else "a window of 18 tokens, where config.json declares 16"
        )
        assert said in report.line
