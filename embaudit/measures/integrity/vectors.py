"""Gains and biases that stand at their first values in a network that was trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.model import UNUSED_WEIGHTS
from embaudit.declared.rule import Finding, Rule, percent
from embaudit.measures.integrity.blocks import Block
from embaudit.words.sentences import first_of

if TYPE_CHECKING:
    import torch

# Of norms: from this share on, they were not left out of training on purpose.
MOST = 0.5
RULE = Rule(
    "reset_gains",
    look_if="gains of exactly 1 or biases of exactly 0 in norms that were trained otherwise, or whose neighbours "
    "were; vectors of one value in a few layers",
    problem_if=f"the gains of {percent(MOST)} of the norms",
    reason="training moves both; norms without biases, or untouched as a whole, are innocent",
)
# Standard deviation of a vector that training has moved; biases of keys stay at 0, or nearly.
MOVED = 1e-3


def vector_findings(checkpoint: Checkpoint, blocks: Sequence[Block]) -> list[Finding]:
    """Gains of norms that are all 1 beside trained biases, and vectors of a few layers that are constant; else none."""
    # Layers of random numbers are a finding of their own.
    fresh = tuple(f"{block.name}." for block in blocks if block.looks and 2 * len(block.noisy) >= len(block.looks))
    blocks = [block for block in blocks if not f"{block.name}.".startswith(fresh)] if fresh else blocks
    vectors = {
        name: tensor.detach()
        for name, tensor in checkpoint.model.named_parameters()
        if tensor.dim() == 1 and tensor.numel() > 1 and not name.startswith((*UNUSED_WEIGHTS, *fresh))
    }
    gains, biases, norms = _reset_norms(vectors)
    if gains or biases:
        reset = [f"the gains of {len(gains)} are all exactly 1"] if gains else []
        reset += [f"the biases of {len(biases)} are all exactly 0"] if biases else []
        return [
            RULE.finding(
                "problem" if len(gains) >= MOST * norms else "look",
                f"Of {norms} norms, {' and '.join(reset)}, though these or most others were trained: "
                f"{first_of([*gains, *biases])}.",
                meaning="Training moves both gains and biases. They were lost, or set back when the model was loaded "
                "and saved: names such as gamma that were not found do this.",
                advice="Compare these tensors with those of the checkpoint that this one was made from.",
                value=(len(gains) + len(biases)) / (2 * norms),
            )
        ]
    constant = _constant_in_few(blocks)
    if not constant:
        return []
    return [
        RULE.finding(
            "look",
            f"{len(constant)} gains or biases hold one value throughout, though other layers' were trained: "
            f"{first_of(constant)}.",
            meaning="They are as a new model has them: lost, or set back when the model was loaded and saved.",
            advice="Compare these tensors with those of the checkpoint that this one was made from.",
            value=float(len(constant)),
        )
    ]


def _reset_norms(vectors: Mapping[str, torch.Tensor]) -> tuple[list[str], list[str], int]:
    """Names of gains that are all 1, and of biases that are all 0, in norms that were trained; and how many norms."""
    norms = {
        gain: bias
        for gain in vectors
        if gain.endswith(".weight")
        and (bias := f"{gain.removesuffix('weight')}bias") in vectors
        and vectors[bias].shape == vectors[gain].shape
    }
    trained = {name for pair in norms.items() for name in pair if float(vectors[name].float().std()) > MOVED}
    most_gains = 2 * sum(gain in trained for gain in norms) > len(norms)
    most_biases = 2 * sum(bias in trained for bias in norms.values()) > len(norms)
    gains = [
        gain for gain, bias in norms.items() if (most_gains or bias in trained) and bool((vectors[gain] == 1).all())
    ]
    biases = [
        bias for gain, bias in norms.items() if (most_biases or gain in trained) and not bool(vectors[bias].any())
    ]
    return gains, biases, len(norms)


def _constant_in_few(blocks: Sequence[Block]) -> list[str]:
    """Names of vectors of one value in less than half of a stack's layers, while the others' have moved."""
    found = []
    for stack in {block.stack for block in blocks}:
        layers = [block for block in blocks if block.stack == stack]
        for name in [name for name, tensor in layers[0].tensors.items() if tensor.dim() == 1 and tensor.numel() > 1]:
            having = [block for block in layers if name in block.tensors]
            still = [block for block in having if bool((block.tensors[name] == block.tensors[name][0]).all())]
            moved = sum(float(block.tensors[name].float().std()) > MOVED for block in having)
            if still and moved == len(having) - len(still) > len(still):
                found += [f"{block.name}.{name}" for block in still]
    return sorted(found)
