"""The step that measures geometry, what its tables show, and its section of a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from embaudit.corpora.draw import Draw
from embaudit.declared.document import Column, Part, Section, Table
from embaudit.declared.rule import Finding, Level, Rows, Rule, interval, number
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


# Below this mean cosine, there is little to dominate.
MATTERS = 0.1
ISOTROPY = Rule(
    "isotropy",
    "`geometry.mean_cosine`",
    look=0.5,
    reason="half of the cosine's range is taken up by what all texts have in common",
)
DOMINATING = Rule(
    "dominating_dimensions",
    "`geometry.dimensions_for_half`",
    look=3,
    worse="lower",
    reason=f"only where the mean cosine is at least {number(MATTERS)}: below that, there is little to dominate",
)
WITHOUT_MEAN = "Subtract the corpus mean before comparing vectors."


def findings(rows: Rows, settings: GeometrySettings) -> Iterator[Finding]:
    """At most two, from the audit's tables; none if no corpus has two texts."""
    known = [row for row in rows("geometry") if row["mean_cosine"] is not None]
    if not known:
        return
    yield _isotropy(max(known, key=lambda row: (row["mean_cosine"], row["corpus"])))
    positive = [row for row in known if row["dimensions_for_half"] is not None]
    if positive:
        # Corpora with a small mean cosine come last.
        yield _dominating(
            min(positive, key=lambda row: (row["mean_cosine"] < MATTERS, row["dimensions_for_half"], row["corpus"]))
        )


def _isotropy(row: dict[str, Any]) -> Finding:
    value, low, high = (row[f"mean_cosine{end}"] for end in ("", "_low", "_high"))
    return ISOTROPY.finding(
        ISOTROPY.level(value),
        f"Two texts in {row['corpus']} have a cosine of {value:.2f}{interval(low, high)} on average.",
        "Unrelated texts look related: cosine thresholds from other checkpoints do not carry over.",
        WITHOUT_MEAN,
        *(value, low, high),
    )


def _dominating(row: dict[str, Any]) -> Finding:
    few = row["dimensions_for_half"]
    level: Level = DOMINATING.level(few) if row["mean_cosine"] >= MATTERS else "ok"
    return DOMINATING.finding(
        level,
        f"Half of the mean cosine in {row['corpus']} comes from {few} of {row['dimension']:,} dimensions.",
        "These few weigh as much in a cosine as all the others together.",
        WITHOUT_MEAN,
        float(few),
    )


FACTS = {
    "geometry": "SELECT * FROM geometry WHERE audit_id = ? ORDER BY corpus",
    "geometry_dimensions": "SELECT * FROM geometry_dimension WHERE audit_id = ? ORDER BY corpus, rank",
}

CORPUS = {"corpus": Column("corpus"), "texts": Column("texts", ",")}
SPREAD = {
    **CORPUS,
    "mean_cosine": Column("mean cosine [95 %]", ".3f", ".3f"),
    "isoscore": Column("IsoScore*", ".3f"),
    "effective_rank": Column("effective rank", ".1f", ".1f"),
    "rankme": Column("RankMe", ".1f", ".1f"),
    "uniformity": Column("uniformity", ".2f"),
}
# Some without intervals, to keep the table narrow.
DIRECTIONS = {
    **CORPUS,
    "variance_1": Column("variance in 1", ".1%", ".1%", is_bar=True),
    "variance_3": Column("in 3", ".0%", ""),
    "variance_10": Column("in 10", ".0%", ""),
    "dimensions_for_half": Column("dimensions for half the cosine", ","),
    "hubness_skewness": Column("hubness skewness", ".2f"),
    "anti_hubs": Column("anti-hubs", ".1%", ""),
}
DIMENSIONS = {
    "dimension": Column("dimension", "d"),
    "share": Column("of the mean cosine", ".1%"),
    "contribution": Column("contribution", ".4f"),
    "mean": Column("mean", "+.3f"),
    "deviation": Column("deviation", ".3f"),
}
DIMENSIONS_SHOWN = 3


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    return Section("Geometry", list(_parts(facts))) if facts["geometry"] else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    rows = facts["geometry"]
    dimension = ", ".join(sorted({f"{row['dimension']:,}" for row in rows}))
    for title, columns in ((f"Spread of the vectors in {dimension} dimensions", SPREAD), ("Directions", DIRECTIONS)):
        yield Table.of(columns, rows, title, more="embaudit query geometry")
    for row in rows:
        own = [one for one in facts["geometry_dimensions"] if one["corpus"] == row["corpus"]]
        if own:
            yield Table.of(
                DIMENSIONS,
                own,
                f"Dimensions that contribute most to the mean cosine, {row['corpus']}",
                brief=DIMENSIONS_SHOWN,
            )
