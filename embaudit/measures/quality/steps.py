"""Quality as a step: what a checkpoint finds in scored pairs and judged queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from embaudit.corpora.golden import GOLDEN
from embaudit.corpora.shapes import TextPair
from embaudit.declared.finding import STAGED_SCHEMA, as_rows
from embaudit.measures.integrity import STAGED as STAGED_BY_INTEGRITY
from embaudit.measures.integrity import TOKENIZER
from embaudit.measures.quality import (
    MEASURE_VERSION,
    STAGED,
    QualityLayerRow,
    QualityReadingRow,
    QualityRow,
    QualitySettings,
)
from embaudit.measures.run import Run
from embaudit.measures.task_material import QUERIES_OF, corpora_of
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, checkpoint_of, in_full_precision
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import Outputs, step
from embaudit.words.errors import NotMeasurable

if TYPE_CHECKING:
    from embaudit.measures.quality.material import Material


@step(
    "quality",
    version=MEASURE_VERSION,
    tables=(QualityRow, QualityLayerRow, QualityReadingRow, STAGED),
    name="quality",
)
def checkpoint_quality(
    out: Outputs, spec: CheckpointSpec, corpora: list[StagedCorpus], tokenizer_is_broken: bool
) -> None:
    """All tables of quality, and the findings.

    Args:
        spec: in float32.
        corpora: scored pairs, and documents with their queries; of what is missing, the embedded sample.
        tokenizer_is_broken: whether integrity found the ids to be wrong.

    Raises:
        NotMeasurable: if it does not fit into the device's memory so.
    """
    from embaudit.checkpoint import Encoder
    from embaudit.checkpoint.encoder import counted
    from embaudit.measures.quality.quality import quality_findings
    from embaudit.measures.quality.rows import layer_rows, quality_rows, reading_rows

    material = _material(corpora)
    with in_full_precision("quality"):
        checkpoint = checkpoint_of(spec)
        with counted(checkpoint.model) as batches:
            report = quality_findings(Encoder(checkpoint), material, tokenizer_is_broken=tokenizer_is_broken)
    out.rows(QualityRow, quality_rows(report.figures))
    out.rows(QualityLayerRow, layer_rows(report.figures))
    out.rows(QualityReadingRow, reading_rows(report.figures))
    out.rows(STAGED, as_rows(report.findings), STAGED_SCHEMA, encodes=sum(batches))


def _material(corpora: Sequence[StagedCorpus]) -> Material:
    """The given corpora's, each data set by itself."""
    from embaudit.measures.quality.material import asked_of, golden_collection, material_of, sample_material

    rows = {corpus.name: read_rows([corpus.content_path]) for corpus in corpora}
    pairs: dict[str, list[TextPair]] = {}
    for row in rows.get("sts", ()):
        pair = TextPair(row["first"], row["second"], row["score"], row["data_set"])
        pairs.setdefault(row["data_set"] or "sts", []).append(pair)
    collections = {
        documents: (
            [row["text"] for row in rows[documents]],
            asked_of((row["text"], row["label"] or "") for row in rows[queries]),
        )
        for documents, queries in QUERIES_OF.items()
        if documents in rows
    }
    judged = {name: of_it for name, of_it in collections.items() if name != GOLDEN}
    given, sample = material_of(pairs, judged), sample_material()
    return replace(
        given,
        golden=tuple(golden_collection(name, *of_it) for name, of_it in collections.items() if name == GOLDEN),
        pairs=given.pairs if pairs else sample.pairs,
        collections=given.collections if judged else sample.collections,
    )


def measure(run: Run) -> list[Staged]:
    """Scores of each data set, by layer and of other readings, in float32 whatever the audit runs in."""
    found = read_rows([part.path for part in run.earlier if part.table == STAGED_BY_INTEGRITY])
    is_broken = any(row["level"] == "problem" and row["name"] in TOKENIZER for row in found)
    names = run.settings(QualitySettings).corpora
    corpora = [corpus for name in names for corpus in corpora_of(name, run.corpora)]
    try:
        staged = run(checkpoint_quality, run.spec.in_float32, corpora, is_broken)
    except NotMeasurable as error:
        return [run.note(f"Not checked, quality: {error.happened}")]
    finally:
        if run.spec != run.spec.in_float32:
            # Nothing else reads it in this precision, and both may not fit.
            checkpoint_of.cache_clear()
    return [part for part in staged if part.rows]
