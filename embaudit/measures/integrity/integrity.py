"""Runs every check of files, weights and tokenizer on one checkpoint.

Numerics and the checks that encode texts are in modules of their own: nothing here runs the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from embaudit.checkpoint import Checkpoint
from embaudit.declared.finding import Finding, worst_first
from embaudit.declared.rule import guarded
from embaudit.measures.integrity.certificate_findings import certificate_findings
from embaudit.measures.integrity.files import file_findings
from embaudit.measures.integrity.letter_case import letter_findings, read_letters
from embaudit.measures.integrity.tokens import token_findings
from embaudit.measures.integrity.vocabulary_fit import fit_findings
from embaudit.measures.integrity.weights import weight_findings

if TYPE_CHECKING:
    from embaudit.measures.integrity.certificate import TensorRecord
    from embaudit.measures.integrity.rows import Rows


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
