"""Geometry as a step: one row for the vectors of a corpus, and one per dimension that dominates their cosine."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from embaudit.corpora.draw import Draw
from embaudit.measures.geometry import MEASURE_VERSION, GeometryDimensionRow, GeometryRow, GeometrySettings
from embaudit.measures.geometry.geometry import measure_geometry
from embaudit.measures.run import Run
from embaudit.steps.corpora import drawn_texts
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, encoder_of
from embaudit.steps.step import Outputs, step
from embaudit.words.estimate import all_columns


@dataclass(frozen=True)
class UndefinedFigures:
    """Names of the figures that these texts do not define."""

    undefined: list[str]


@step(
    "geometry",
    version=MEASURE_VERSION,
    tables=(GeometryRow, GeometryDimensionRow),
    name="geometry",
    run_name="geometry of {corpus.name}",
)
def corpus_geometry(out: Outputs, spec: CheckpointSpec, corpus: StagedCorpus, draw: Draw, neighbours: int) -> None:
    """Tables ``geometry`` and ``geometry_dimension`` for the drawn texts of a corpus."""
    encoder = encoder_of(spec)
    contents = drawn_texts(corpus.content_path, draw).texts
    with tracked(f"geometry, {corpus.name}", len(contents)) as advance:
        geometry = measure_geometry(encoder.encode_texts(contents, advance), neighbours, in_order=draw.seed is None)
    row = {
        "corpus": corpus.name,
        "corpus_id": corpus.corpus_id,
        "texts": geometry.texts,
        "truncated": encoder.count_truncated(contents),
        "dimension": geometry.dimension,
        "shrinkage": geometry.shrinkage,
        "dimensions_for_half": geometry.dimensions_for_half,
        "neighbours": neighbours,
        **all_columns(geometry.figures),
    }
    out.rows(GeometryRow, [row], encodes=encoder.texts, detail=UndefinedFigures(geometry.undefined))
    ranked = enumerate(geometry.top, start=1)
    out.rows(GeometryDimensionRow, [{"corpus": corpus.name, "rank": rank, **asdict(one)} for rank, one in ranked])


def measure(run: Run) -> list[Staged]:
    """Anisotropy, ranks, dominating dimensions and hubs of each corpus; undefined figures are listed in a note."""
    staged: list[Staged] = []
    settings = run.settings(GeometrySettings)
    for corpus, draw in run.drawn(settings):
        row, dimensions = run(corpus_geometry, run.spec, corpus, draw, settings.neighbours)
        # A single text has no cosine for a dimension to contribute to.
        staged += [part for part in (row, dimensions) if part.rows]
        if undefined := row.found(UndefinedFigures).undefined:
            names = ", ".join(undefined)
            staged.append(run.note(f"Undefined, geometry of {draw.rows} texts of {corpus.name}: {names}."))
    return staged
