"""Servers in half precision, on whatever processor: faithful ones, and ones that do something wrong besides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compared_functions import compared
from some_rows import mostly_slow

from benchmarks.serving.faults import faithful
from benchmarks.serving.server import Encode, Served
from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint


def normalised_in_bfloat16(checkpoint: Checkpoint) -> Encode:
    """As sentence-transformers does with a model in bfloat16: lengths are off by up to 0.4 %."""
    import torch

    good = faithful(checkpoint)

    def encode(texts: list[str]) -> np.ndarray:
        # Pooled vectors have any length.
        pooled = torch.from_numpy(good(texts)) * torch.tensor([[1 + len(text) / 77] for text in texts])
        return np.asarray(torch.nn.functional.normalize(pooled.bfloat16(), dim=1).float().numpy())

    return encode


def turned_around(checkpoint: Checkpoint) -> Encode:
    good = faithful(checkpoint)
    return lambda texts: good(texts)[::-1]


def with_cls(checkpoint: Checkpoint) -> Encode:
    return faithful(replace(checkpoint, recipe=replace(checkpoint.recipe, pooling=("cls",))))


def before_texts(checkpoint: Checkpoint) -> Encode:
    good = faithful(checkpoint)
    return lambda texts: good([f"find: {text}" for text in texts])


def counting_padding(checkpoint: Checkpoint) -> Encode:
    """The mean over all places of a batch, as wide as its longest text; alone, a text has no padding."""
    import torch

    def encode(texts: list[str]) -> np.ndarray:
        sequences = checkpoint.tokenize(texts)
        width = max(map(len, sequences))
        ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in sequences])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in sequences])
        with torch.inference_mode():
            states = checkpoint.model(input_ids=ids, attention_mask=mask).last_hidden_state
        return np.asarray(torch.nn.functional.normalize(states.float().mean(1), dim=1).numpy())

    return encode


SAME, ANOTHER = "the same function", "another function"
SERVERS: dict[str, tuple[Callable[[Checkpoint], Encode], str, str]] = {
    "faithful": (faithful, SAME, ""),
    "normalised in bfloat16": (normalised_in_bfloat16, SAME, ""),
    "batches turned around": (turned_around, ANOTHER, "It gives the vectors of a batch in another order"),
    "cls pooling": (with_cls, ANOTHER, "it takes cls instead of mean pooling: so used"),
    "a prompt": (before_texts, ANOTHER, "it puts 'find: ' before texts: so used"),
    "padding in the mean": (counting_padding, ANOTHER, "It counts padding in the mean"),
}
QUICK = ("batches turned around",)


@pytest.mark.parametrize("dtype", ["bfloat16", pytest.param("float16", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", mostly_slow(SERVERS, QUICK))
def test_half_precision_is_no_fault_and_hides_none(
    tiny_folder: Path, served_checkpoint: Checkpoint, name: str, dtype: str
) -> None:
    make, verdict, said = SERVERS[name]
    half = load_checkpoint(str(tiny_folder), LoadOptions(device="cpu", dtype=dtype))
    report = compared(served_checkpoint, Served(make(half)))
    assert report.verdict == verdict, report.line
    assert said.lower() in report.line.lower()
