"""Runs every check of files, weights and tokenizer on one checkpoint.

Numerics and the checks that encode texts are in modules of their own: nothing here runs the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.model import UNUSED_WEIGHTS
from embaudit.declared.rule import Finding, guarded, worst_first
from embaudit.measures.integrity.blocks import UNTRAINED_MATRICES, Block, block_findings, read_blocks
from embaudit.measures.integrity.certificate_findings import certificate_findings
from embaudit.measures.integrity.files import file_findings
from embaudit.measures.integrity.heads import head_findings
from embaudit.measures.integrity.layer_order import order_findings
from embaudit.measures.integrity.letter_case import letter_findings, read_letters
from embaudit.measures.integrity.noise import can_tell, look_at
from embaudit.measures.integrity.positions import position_findings
from embaudit.measures.integrity.rows import Rows, read_rows, row_findings
from embaudit.measures.integrity.tokens import token_findings
from embaudit.measures.integrity.values import read_values, value_findings
from embaudit.measures.integrity.vectors import vector_findings
from embaudit.measures.integrity.vocabulary_fit import fit_findings

if TYPE_CHECKING:
    import torch

    from embaudit.measures.integrity.certificate import TensorRecord


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
    for number, module in enumerate(modules):
        step = checkpoint.after_pooling[number]  # type: ignore[index]
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
