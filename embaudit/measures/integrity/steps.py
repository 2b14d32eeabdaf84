"""Integrity as a step: every tensor of the checkpoint, and what the checks found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embaudit.declared.finding import STAGED_SCHEMA, as_rows
from embaudit.declared.rule import guarded
from embaudit.measures.integrity import MEASURE_VERSION, STAGED, WeightRow
from embaudit.measures.run import Run
from embaudit.steps.results import CheckpointSpec, Staged, checkpoint_of, in_full_precision
from embaudit.steps.step import Outputs, step
from embaudit.words.errors import NotMeasurable

if TYPE_CHECKING:
    from embaudit.measures.integrity.certificate import TensorRecord


@step("integrity", version=MEASURE_VERSION, tables=(WeightRow, STAGED), name="integrity")
def checkpoint_integrity(out: Outputs, spec: CheckpointSpec) -> None:
    """Table ``weight``, and the findings of all checks.

    Args:
        spec: in float32.

    Raises:
        NotMeasurable: if it does not fit into the device's memory so.
    """
    from embaudit.checkpoint import Encoder
    from embaudit.checkpoint.encoder import counted
    from embaudit.measures.integrity.function import function_findings
    from embaudit.measures.integrity.hard import HardTexts
    from embaudit.measures.integrity.integrity import integrity_findings
    from embaudit.measures.integrity.numerics import numeric_findings
    from embaudit.measures.integrity.weight_rows import weight_rows

    traced: list[TensorRecord] = []
    with in_full_precision("integrity"):
        checkpoint = checkpoint_of(spec)
        encoder = Encoder(checkpoint)
        hard = HardTexts(encoder)
        with counted(checkpoint.model) as batches:
            findings = [
                *integrity_findings(checkpoint, traced),
                *guarded("one_function", lambda: function_findings(encoder, hard)),
                *guarded("numerics", lambda: numeric_findings(encoder, spec.load_options, hard)),
            ]
    out.rows(WeightRow, weight_rows(checkpoint, traced))
    out.rows(STAGED, as_rows(findings), STAGED_SCHEMA, encodes=sum(batches))


def measure(run: Run) -> list[Staged]:
    """The load certificate and the findings of all checks, in float32 whatever the audit runs in."""
    try:
        return run(checkpoint_integrity, run.spec.in_float32)
    except NotMeasurable as error:
        return [run.note(f"Not checked, integrity: {error.happened}")]
