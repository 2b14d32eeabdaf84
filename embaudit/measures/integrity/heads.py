"""Is the number of attention heads that of the training? Numbers of one head are alike, those of two heads differ.

A head writes h of the rows of the value matrix. With x_i the log norm of row i, the rows of each declared head are cut
into halves a and b of h/2 rows:

    F = mean (ā − b̄)² / (2 · mean s² / (h/2))        s² the variance of x within a half

is 1 if a head's halves are one head, and hundreds if they are two: .9 to 1.1 for two trained checkpoints with their own
number of heads, 38 and more with fewer. Values are used because rotary positions treat the halves of queries and keys
differently.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.declared.rule import Finding, Rule, number
from embaudit.measures.integrity.blocks import Block

if TYPE_CHECKING:
    import torch

VALUES = re.compile(r"(^|[._])(value|value_proj|v|v_proj|v_lin)\.weight$")
# Of F: two heads in one, and one head.
TWO, ONE = 10.0, 2.0
RULE = Rule(
    "attention_heads",
    look_if=f"two neighbouring heads are one: they differ less than {number(ONE)} times as much as parts of one head "
    f"do, and four of them {number(TWO)} times",
    problem_if=f"a declared head is several: its halves differ {number(TWO)} times as much as parts of one head do",
    reason="1 for two trained checkpoints, 38 to 700 with fewer heads than in training",
)
# Fewer halves say nothing.
MIN_HALVES = 12


def head_findings(checkpoint: Checkpoint, blocks: Sequence[Block]) -> list[Finding]:
    """A finding if the declared heads are several of the trained ones, or parts of one; else none."""
    config = checkpoint.model.config.get_text_config()
    heads, width = (getattr(config, name, None) for name in ("num_attention_heads", "hidden_size"))
    if not isinstance(heads, int) or not isinstance(width, int) or heads < 1:
        return []
    size = getattr(config, "head_dim", None) or getattr(config, "d_kv", None) or width // heads
    matrices = [
        tensor
        for block in blocks
        for name, tensor in block.tensors.items()
        if VALUES.search(name) and tensor.dim() == 2
    ]
    own, twice, four_times = (spread_of_halves(matrices, int(size) * factor) for factor in (1, 2, 4))
    declared = f"config.json says that attention has {heads} heads of {size} numbers, but the value matrices"
    if own is not None and own >= TWO:
        return [
            RULE.finding(
                "problem",
                f"{declared} were trained with more and smaller ones: the halves of a head differ {own:.0f} times as "
                "much as parts of one head do.",
                meaning="Every layer attends otherwise than in training.",
                advice="Compare num_attention_heads in config.json with the checkpoint that this one was made from.",
                value=own,
            )
        ]
    if twice is not None and four_times is not None and twice < ONE and four_times >= TWO:
        return [
            RULE.finding(
                "look",
                f"{declared} seem trained with fewer and larger ones: two neighbouring heads differ {twice:.1f} times "
                f"as much as parts of one head do, and four {four_times:.0f} times.",
                meaning="Every layer may attend otherwise than in training.",
                advice="Compare num_attention_heads in config.json with the checkpoint that this one was made from.",
                value=twice,
            )
        ]
    return []


def spread_of_halves(matrices: Sequence[torch.Tensor], size: int) -> float | None:
    """F, the mean over value matrices (rows, d); None if there are too few heads of so many rows."""
    found, halves = [], 0
    for matrix in matrices:
        rows = np.log(matrix.detach().float().norm(dim=1).clamp(min=1e-12).cpu().numpy().astype(np.float64))
        if size < 4 or size % 2 or len(rows) % size:
            return None
        cut = rows.reshape(-1, 2, size // 2)
        within = cut.var(axis=2, ddof=1).mean()
        if not np.isfinite(within) or within <= 1e-12:
            return None
        found.append(float(np.square(cut[:, 0].mean(1) - cut[:, 1].mean(1)).mean() / (2 * within / (size // 2))))
        halves += 2 * len(cut)
    return float(np.mean(found)) if halves >= MIN_HALVES else None
