"""Runs every check of files, weights and tokenizer on one checkpoint.

Numerics and the checks that encode texts are in modules of their own: nothing here runs the model.

Tables that are added to every token: positions in order, segments of an ordinary size.

Neighbouring positions of a trained table are alike (mean cosine of centred rows .83 and .87 in two trained checkpoints,
0 between random ones), and no segment is wider than words are (.4 times as wide).

Is the number of attention heads that of the training? Numbers of one head are alike, those of two heads differ.

A head writes h of the rows of the value matrix. With x_i the log norm of row i, the rows of each declared head are cut
into halves a and b of h/2 rows:

    F = mean (ā − b̄)² / (2 · mean s² / (h/2))        s² the variance of x within a half

is 1 if a head's halves are one head, and hundreds if they are two: .9 to 1.1 for two trained checkpoints with their own
number of heads, 38 and more with fewer. Values are used because rotary positions treat the halves of queries and keys
differently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.model import UNUSED_WEIGHTS
from embaudit.declared.rule import Finding, Rule, guarded, number, worst_first
from embaudit.measures.integrity.blocks import UNTRAINED_MATRICES, Block, block_findings, read_blocks
from embaudit.measures.integrity.files import file_findings
from embaudit.measures.integrity.lattice import can_tell, look_at
from embaudit.measures.integrity.layer_order import order_findings
from embaudit.measures.integrity.letter_case import letter_findings, read_letters
from embaudit.measures.integrity.not_computed import certificate_findings
from embaudit.measures.integrity.numerics import vector_findings
from embaudit.measures.integrity.rows import Rows, read_rows, row_findings
from embaudit.measures.integrity.tokens import token_findings
from embaudit.measures.integrity.values import read_values, value_findings
from embaudit.measures.integrity.vocabulary_fit import fit_findings

if TYPE_CHECKING:
    import torch

    from embaudit.measures.integrity.certificate import TensorRecord


POSITIONS = re.compile(r"(^|\.)(position_embeddings|wpe|embed_positions)\.weight$")
SEGMENTS = re.compile(r"(^|\.)(token_type_embeddings|segment_embeddings)\.weight$")
MIN_POSITIONS, MIN_DIMENSIONS = 64, 64
# How many times as wide as words a segment is.
WIDE = 10.0
POSITION_ORDER = Rule(
    "position_order",
    look=0.2,
    problem=0.05,
    worse="lower",
    look_if="neighbouring positions have a mean cosine below {look}",
    problem_if=f"below {{problem}}, or all positions are one value; a segment {number(WIDE)} times as wide as words",
    reason=".83 and .87 in two trained checkpoints, 0 when shuffled; .4 times as wide",
)
SEGMENT_SIZE = POSITION_ORDER.named("segment_size")


def position_findings(checkpoint: Checkpoint) -> list[Finding]:
    """Findings about positions and segments; none if nothing is wrong. Tables of noise are a finding of their own."""
    words: float | None = None
    findings = []
    for name, tensor in checkpoint.model.named_parameters():
        if POSITIONS.search(name) and min(tensor.shape) >= MIN_DIMENSIONS and len(tensor) >= MIN_POSITIONS:
            findings += _of_positions(name, tensor.detach().float().cpu())
        if not SEGMENTS.search(name):
            continue
        words = _width(checkpoint.model.get_input_embeddings().weight) if words is None else words
        if words > 0 and (times := max(map(_width, tensor))) / words >= WIDE:
            findings.append(
                SEGMENT_SIZE.finding(
                    "problem",
                    f"A segment embedding ({name}) is {times / words:.0f} times as wide as those of words.",
                    meaning="It is added to every token, and drowns what the tokens are.",
                    advice="Compare token_type_embeddings with the checkpoint that this one was made from.",
                    value=times / words,
                )
            )
    return findings


def _of_positions(name: str, table: torch.Tensor) -> list[Finding]:
    if not bool((table != table[0, 0]).any()):
        return [
            POSITION_ORDER.finding(
                "problem",
                f"The position embeddings ({name}) hold one value throughout (zero, most likely).",
                meaning="The model does not know the order of words.",
                advice="Save the checkpoint again where it was trained.",
                value=0.0,
            )
        ]
    alike = likeness_of_neighbours(table)
    if alike >= POSITION_ORDER.look or (can_tell(table) and look_at(table).is_noise):
        return []
    return [
        POSITION_ORDER.finding(
            "problem" if alike < POSITION_ORDER.problem else "look",
            f"Neighbouring position embeddings ({name}) are no more alike than any two: their mean cosine is "
            f"{alike:.2f} (.8 and more in trained models).",
            meaning="The positions are in another order than in training, or were hardly trained: word order is lost.",
            advice="Compare this table with the checkpoint that this one was made from.",
            value=alike,
        )
    ]


def likeness_of_neighbours(table: torch.Tensor) -> float:
    """Mean cosine of rows i and i + 1 of (n, d), the mean row subtracted; rows of zeros aside."""
    import torch

    rows = table[table.any(dim=1)]
    unit = torch.nn.functional.normalize(rows - rows.mean(0), dim=1)
    return float((unit[:-1] * unit[1:]).sum(1).mean())


def _width(rows: torch.Tensor) -> float:
    return float(rows.detach().float().square().mean().sqrt())


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


def weight_findings(checkpoint: Checkpoint, rows: list[Rows] | None = None) -> list[Finding]:
    """Findings about layers, input embeddings and values: one ``ok`` each if nothing is wrong.

    Args:
        rows: receives what was found in the input embeddings, which the check of the vocabulary goes on from.
    """
    found = read_rows(checkpoint)
    if rows is not None:
        rows.append(found)
    blocks = read_blocks(checkpoint.model)
    return [
        *block_findings(checkpoint, blocks),
        *order_findings(checkpoint, blocks),
        *vector_findings(checkpoint, blocks),
        *head_findings(checkpoint, blocks),
        *position_findings(checkpoint),
        *_outside_findings(checkpoint, blocks),
        *row_findings(checkpoint, found),
        *value_findings(checkpoint, read_values(_named(checkpoint))),
    ]


def _outside_findings(checkpoint: Checkpoint, blocks: Sequence[Block]) -> list[Finding]:
    """Matrices outside the layers (positions, projections, modules); input embeddings and what is never read aside.

    None of them is an ``ok`` of its own.
    """
    inside = {f"{block.name}." for block in blocks}
    table = checkpoint.model.get_input_embeddings().weight
    outside = [
        (name, tensor)
        for name, tensor in checkpoint.model.named_parameters()
        if tensor is not table and not name.startswith((*UNUSED_WEIGHTS, *inside))
    ]
    # Dropout has no step in the loaded pipeline.
    modules = [module for module in checkpoint.recipe.modules if module.kind != "Dropout"]
    for place, module in enumerate(modules):
        step = checkpoint.after_pooling[place]  # type: ignore[index]
        outside += [(f"The {module.kind} module in {module.path}", tensor) for _, tensor in step.named_parameters()]
    return [
        UNTRAINED_MATRICES.finding(
            "look",
            f"{name} holds random numbers: its tails, rows and spectrum are those of independent numbers.",
            meaning="It was not trained, or not loaded when the model was saved.",
            advice="Compare it with the checkpoint that this one was made from.",
            value=1.0,
        )
        for name, tensor in outside
        if can_tell(tensor) and look_at(tensor).is_noise
    ]


def _named(checkpoint: Checkpoint) -> Iterator[tuple[str, torch.Tensor]]:
    yield from checkpoint.model.named_parameters()
    for name, tensor in checkpoint.after_pooling.named_parameters():
        yield f"after_pooling.{name}", tensor


def integrity_findings(checkpoint: Checkpoint, traced: list[TensorRecord] | None = None) -> list[Finding]:
    """Findings of all checks, problems first; a check that fails is ``not measured``, never passed over.

    Args:
        traced: receives the load certificate.
    """
    rows: list[Rows] = []
    findings = [
        *guarded("load_certificate", lambda: certificate_findings(checkpoint, traced)),
        *guarded("weights", lambda: weight_findings(checkpoint, rows)),
        *guarded("letter_case", lambda: letter_findings(checkpoint, read_letters(checkpoint))),
        *guarded("tokenizer", lambda: token_findings(checkpoint)),
        *guarded("vocabulary_fit", lambda: fit_findings(checkpoint, rows[0])),
        *guarded("files_agree", lambda: file_findings(checkpoint)),
    ]
    return worst_first(findings)
