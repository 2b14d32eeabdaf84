"""The step of integrity (every tensor of the checkpoint, and what the checks found), its findings and its section."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from math import isfinite, prod
from typing import TYPE_CHECKING, Any

from embaudit.checkpoint import Checkpoint
from embaudit.declared.document import Column, Section, Table
from embaudit.declared.rule import STAGED_SCHEMA, Finding, Rows, Rule, as_rows, guarded, in_brief
from embaudit.measures.integrity import MEASURE_VERSION, STAGED, IntegritySettings, WeightRow
from embaudit.measures.integrity.certificate import TensorRecord, in_memory
from embaudit.measures.run import Run
from embaudit.steps.results import CheckpointSpec, Staged, checkpoint_of, in_full_precision
from embaudit.steps.step import Outputs, step
from embaudit.words.errors import NotMeasurable

if TYPE_CHECKING:
    import torch

NUMBER = re.compile(r"\.(\d+)\.")


def weight_rows(checkpoint: Checkpoint, records: Iterable[TensorRecord]) -> Iterator[dict[str, Any]]:
    """One row per record of ``trace``."""
    tensors = in_memory(checkpoint)
    for record in records:
        name = record.name or record.stored_name
        number = NUMBER.search(name.removeprefix("after_pooling"))
        deviation, largest, content = _values_of(tensors[record.name]) if record.name else (None, None, None)
        yield {
            "tensor": record.name or f"{record.file}: {record.stored_name}",
            "layer": int(number[1]) if number else None,
            "status": record.status,
            "file": record.file or None,
            "stored_name": record.stored_name or None,
            "stored_dtype": record.stored_dtype or None,
            "shape": " × ".join(map(str, record.shape)),
            "entries": prod(record.shape),
            "deviation": deviation,
            "largest": largest,
            "content": content,
        }


def _values_of(tensor: torch.Tensor) -> tuple[float | None, float | None, str]:
    """Standard deviation, largest absolute value and hash."""
    import torch

    values = tensor.detach().float().cpu().contiguous()
    deviation, largest = float(values.std(correction=0)), max(abs(float(end)) for end in torch.aminmax(values))
    # Of the values where they are: their bytes would be the tensor a second time.
    content = hashlib.blake2b(values.numpy().reshape(-1).data, digest_size=8).hexdigest()
    return (deviation if isfinite(deviation) else None), (largest if isfinite(largest) else None), content


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
    from embaudit.measures.integrity.integrity import integrity_findings
    from embaudit.measures.integrity.numerics import HardTexts, numeric_findings

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


SOUND = Rule("sound", reason="always `ok`: in an audit, one sentence for every check that found nothing wrong")


def findings(rows: Rows, settings: IntegritySettings) -> Iterator[Finding]:
    """What is wrong or not known, one finding a rule; then one for everything that is right."""
    yield from in_brief(rows(STAGED), SOUND, "files, weights, tokenizer, numbers and batches")


FACTS = {
    "weights": (
        "SELECT status, stored_dtype, count(*) AS tensors, sum(entries)::BIGINT AS entries, "
        "first(tensor ORDER BY layer NULLS FIRST, tensor) AS first, string_agg(DISTINCT file, ', ' ORDER BY file) "
        "AS files FROM weight WHERE audit_id = ? GROUP BY ALL ORDER BY tensors DESC, status, stored_dtype"
    ),
}
COLUMNS = {
    "status": Column("status", levels={"missing": "problem", "changed": "problem"}),
    **{"stored_dtype": Column("in the file"), "tensors": Column("tensors", ","), "entries": Column("numbers", ",")},
    **{"first": Column("such as", is_prose=True), "files": Column("file", is_prose=True)},
}


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    if not facts["weights"]:
        return None
    title = "Where the tensors in memory come from; unread: in the file, and nothing is made of it, most often heads"
    return Section("Integrity", [Table.of(COLUMNS, facts["weights"], title, more="embaudit query weights")])
