"""Tables that are added to every token: positions in order, segments of an ordinary size.

Neighbouring positions of a trained table are alike (mean cosine of centred rows .83 and .87 in two trained checkpoints,
0 between random ones), and no segment is wider than words are (.4 times as wide).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from embaudit.checkpoint import Checkpoint
from embaudit.declared.finding import Finding
from embaudit.measures.integrity.noise import can_tell, look_at

if TYPE_CHECKING:
    import torch

POSITIONS = re.compile(r"(^|\.)(position_embeddings|wpe|embed_positions)\.weight$")
SEGMENTS = re.compile(r"(^|\.)(token_type_embeddings|segment_embeddings)\.weight$")
MIN_POSITIONS, MIN_DIMENSIONS = 64, 64
# Mean cosine of neighbouring positions, and how many times as wide as words a segment is.
UNLIKE, RANDOM = 0.2, 0.05
WIDE = 10.0


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
                Finding(
                    "problem",
                    f"A segment embedding ({name}) is {times / words:.0f} times as wide as those of words.",
                    meaning="It is added to every token, and drowns what the tokens are.",
                    advice="Compare token_type_embeddings with the checkpoint that this one was made from.",
                    name="segment_size",
                    value=times / words,
                )
            )
    return findings


def _of_positions(name: str, table: torch.Tensor) -> list[Finding]:
    if not bool((table != table[0, 0]).any()):
        return [
            Finding(
                "problem",
                f"The position embeddings ({name}) hold one value throughout (zero, most likely).",
                meaning="The model does not know the order of words.",
                advice="Save the checkpoint again where it was trained.",
                name="position_order",
                value=0.0,
            )
        ]
    alike = likeness_of_neighbours(table)
    if alike >= UNLIKE or (can_tell(table) and look_at(table).is_noise):
        return []
    return [
        Finding(
            "problem" if alike < RANDOM else "look",
            f"Neighbouring position embeddings ({name}) are no more alike than any two: their mean cosine is "
            f"{alike:.2f} (.8 and more in trained models).",
            meaning="The positions are in another order than in training, or were hardly trained: word order is lost.",
            advice="Compare this table with the checkpoint that this one was made from.",
            name="position_order",
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
