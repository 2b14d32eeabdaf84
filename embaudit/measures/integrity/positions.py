"""Tables that are added to every token: positions in order, segments of an ordinary size.

Neighbouring positions of a trained table are alike (mean cosine of centred rows .83 and .87 in two trained checkpoints,
0 between random ones), and no segment is wider than words are (.4 times as wide).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from embaudit.checkpoint import Checkpoint
from embaudit.declared.rule import Finding, Rule, number
from embaudit.measures.integrity.noise import can_tell, look_at

if TYPE_CHECKING:
    import torch

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
