"""The step of quality, rows of its tables from a ``QualityReport``, its findings and its section of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from embaudit.corpora.draw import TextPair
from embaudit.corpora.golden import GOLDEN
from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel
from embaudit.declared.document import Column, Part, Section, Table
from embaudit.declared.rule import STAGED_SCHEMA, Finding, Rows, Rule, as_rows, in_brief
from embaudit.measures.integrity import STAGED as STAGED_BY_INTEGRITY
from embaudit.measures.integrity import TOKENIZER
from embaudit.measures.quality import (
    MEASURE_VERSION,
    STAGED,
    QualityLayerRow,
    QualityReadingRow,
    QualityRow,
    QualitySettings,
    QualityWordingRow,
)
from embaudit.measures.quality.measured import INPUT_EMBEDDINGS
from embaudit.measures.quality.scale import SCORE_SCALE
from embaudit.measures.quality.wordings import WORDING, wording_rows, wording_table
from embaudit.measures.quality.words import WORDS
from embaudit.measures.run import Run
from embaudit.measures.task_material import QUERIES_OF, corpora_of
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, checkpoint_of, in_full_precision
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import Outputs, step
from embaudit.words.errors import NotMeasurable
from embaudit.words.estimate import Estimate

if TYPE_CHECKING:
    from embaudit.measures.quality.material import Material


@step(
    "quality",
    version=MEASURE_VERSION,
    tables=(QualityRow, QualityLayerRow, QualityReadingRow, QualityWordingRow, STAGED),
    name="quality",
)
def checkpoint_quality(
    out: Outputs, spec: CheckpointSpec, corpora: list[StagedCorpus], tokenizer_is_broken: bool, with_wordings: bool
) -> None:
    """All tables of quality, and the findings.

    Args:
        spec: in float32.
        corpora: scored pairs, and documents with their queries; of what is missing, the embedded sample.
        tokenizer_is_broken: whether integrity found the ids to be wrong.
        with_wordings: whether queries are asked with other wordings of the instruction, too.

    Raises:
        NotMeasurable: if it does not fit into the device's memory so.
    """
    from embaudit.checkpoint import Encoder
    from embaudit.checkpoint.encoder import counted
    from embaudit.measures.quality.quality import quality_findings

    material = _material(corpora)
    with in_full_precision("quality"):
        checkpoint = checkpoint_of(spec)
        with counted(checkpoint.model) as batches:
            report = quality_findings(
                Encoder(checkpoint), material, tokenizer_is_broken=tokenizer_is_broken, with_wordings=with_wordings
            )
    out.rows(QualityRow, quality_rows(report.figures))
    out.rows(QualityLayerRow, layer_rows(report.figures))
    out.rows(QualityReadingRow, reading_rows(report.figures))
    out.rows(QualityWordingRow, wording_rows(report.figures))
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
    settings = run.settings(QualitySettings)
    corpora = [corpus for name in settings.corpora for corpus in corpora_of(name, run.corpora)]
    try:
        staged = run(checkpoint_quality, run.spec.in_float32, corpora, is_broken, settings.wordings)
    except NotMeasurable as error:
        return [run.note(f"Not checked, quality: {error.happened}")]
    finally:
        if run.spec != run.spec.in_float32:
            # Nothing else reads it in this precision, and both may not fit.
            checkpoint_of.cache_clear()
    return [part for part in staged if part.rows]


Figures = Mapping[str, Any]
Row = dict[str, Any]
# Places of the median among the quantiles of a scale.
MEDIAN = 2


def quality_rows(figures: Figures) -> Iterator[Row]:
    """A row per data set."""
    for one in figures["data"]:
        collapse, scale = figures["collapse"].get(one["name"], {}), figures["scale"].get(one["name"], {})
        baselines = dict(one["baselines"])
        own = baselines.pop(INPUT_EMBEDDINGS)
        words: Figures = max(baselines.values(), key=lambda found: found["score"]["value"], default={})
        yield {
            **{name: one[name] for name in ("data_set", "kind", "items")},
            **_estimate("score", one["score"]),
            "words_score": words["score"]["value"] if words else None,
            **_estimate("words_gain", words.get("gain")),
            "input_score": own["score"]["value"],
            **_estimate("input_gain", own["gain"]),
            **_estimate("auc", one.get("auc")),
            "directions": collapse.get("directions"),
            "separation": collapse.get("separation"),
            "unrelated_cosine": collapse.get("unrelated"),
            "matching_cosine": collapse.get("matching"),
            "unrelated_median": scale["unrelated"][MEDIAN] if scale else None,
            "matching_median": scale["matching"][MEDIAN] if scale else None,
            **_estimate("threshold", scale.get("threshold")),
            **_estimate("kept", scale.get("above")),
        }


def layer_rows(figures: Figures) -> Iterator[Row]:
    """A row per data set and layer."""
    for one in figures["data"]:
        for layer, score in enumerate(figures["layers"].get(one["name"], ())):
            yield {**_of(one), "layer": layer, **_estimate("score", score)}


def reading_rows(figures: Figures) -> Iterator[Row]:
    """A row per other reading and data set."""
    data = {one["name"]: one for one in figures["data"]}
    for reading in figures["alternatives"]:
        for name, gain in reading["gains"].items():
            yield {
                **_of(data[name]),
                "reading": reading["name"],
                "aspect": reading["group"],
                **_estimate("gain", gain),
            }


def _of(one: Figures) -> Row:
    return {"data_set": one["data_set"], "kind": one["kind"]}


def _estimate(name: str, figure: Figures | None) -> Row:
    known = Estimate(**figure) if figure else Estimate()
    return Estimate.holding(known.value, (known.low, known.high)).columns(name)


DECLARED_RIGHT = Rule(
    "declared_right", reason="always `ok`: in an audit, one sentence for layers, collapse and other readings"
)


def findings(rows: Rows, settings: QualitySettings) -> Iterator[Finding]:
    """Its score and the scale of its scores, what is wrong or not known, then one for everything that is right."""
    yield from in_brief(
        rows(STAGED), DECLARED_RIGHT, "layers, collapse and other readings", (WORDS, SCORE_SCALE, WORDING)
    )


FACTS = {
    "quality": "SELECT * FROM quality WHERE audit_id = ? ORDER BY kind, data_set",
    "quality_layers": "SELECT * FROM quality_layer WHERE audit_id = ? ORDER BY kind, data_set, layer",
    "quality_readings": (
        "SELECT *, avg(gain) OVER (PARTITION BY reading) AS mean FROM quality_reading WHERE audit_id = ? "
        "ORDER BY mean DESC, reading, kind, data_set"
    ),
    "quality_wordings": "SELECT * FROM quality_wording WHERE audit_id = ? ORDER BY data_set, score DESC, wording",
}
METRICS = {"pairs": "Spearman's ρ", "queries": "nDCG@10", "golden": "success@10"}
SCORES = {
    **{"data_set": Column("data set"), "of": Column("score of", is_prose=True), "items": Column("number", ",")},
    "score": Column("score [95 %]", ".3f"),
    "words_gain": Column("gain on word overlap [95 %]", "+.3f", "+.2f"),
    "input_gain": Column("gain on its input embeddings [95 %]", "+.3f", "+.2f"),
}
SCALE = {
    "data_set": Column("data set"),
    "unrelated_median": Column("unrelated pairs: median", ".2f"),
    "matching_median": Column("matching pairs: median", ".2f"),
    "threshold": Column("lets 1 % of unrelated through [95 %]", ".3f"),
    "kept": Column("keeps of matching [95 %]", ".0%", ".0%"),
    **{"directions": Column("directions", ".0f"), "separation": Column("separation", ".1f")},
}
READINGS = {
    **{"reading": Column("reading", is_prose=True), "aspect": Column("changes")},
    **{"data_set": Column("data set"), "kind": Column("score of")},
    "gain": Column("gain on the declared reading [95 %]", "+.3f", "+.2f"),
}
READINGS_SHOWN = 8
BESIDE = 2


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    return Section("Quality", list(_parts(facts))) if facts["quality"] else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    rows = facts["quality"]
    yield Table.of(
        SCORES,
        [{**row, "of": f"{row['kind']}, {METRICS[row['kind']]}"} for row in rows],
        "Scores, beside what needs no network",
        more="embaudit query quality",
    )
    if scaled := [row for row in rows if row["threshold"] is not None]:
        yield Table.of(SCALE, scaled, "The scale of its scores, for thresholds")
    if facts["quality_layers"]:
        yield _layer_chart(rows, facts["quality_layers"])
    if facts["quality_readings"]:
        yield Table.of(
            READINGS,
            facts["quality_readings"],
            "The same checkpoint read otherwise, best first",
            brief=READINGS_SHOWN,
            more="embaudit query quality-readings",
        )
    if facts["quality_wordings"]:
        yield wording_table(facts["quality_wordings"])


def _layer_chart(data: list[Row], layers: list[Row]) -> Chart:
    """A panel per data set."""
    panels = []
    for one in data:
        rows = [row for row in layers if (row["data_set"], row["kind"]) == (one["data_set"], one["kind"])]
        if rows:
            panels.append(_panel(one, rows))
    return Chart(
        "If the network stopped after each layer",
        "The score of the states that each layer leaves, pooled as declared; 0 is the input embeddings with their "
        "positions. A healthy network rises to its end or near it; a layer behind which the line falls makes the "
        "vectors worse. Dashed: word overlap, which needs no network.",
        [panels[start : start + BESIDE] for start in range(0, len(panels), BESIDE)],
        more="embaudit query quality-layers",
    )


def _panel(one: Row, rows: list[Row]) -> Panel:
    bands = [
        Mark(row["layer"], row["score_low"], y2=row["score_high"], series=one["data_set"])
        for row in rows
        if row["score_low"] is not None
    ]
    curve = [
        Mark(row["layer"], row["score"], series=one["data_set"], label=f"layer {row['layer']}: {row['score']:.3f}")
        for row in rows
    ]
    words = [] if one["words_score"] is None else [Mark(y=one["words_score"])]
    return Panel(
        [
            Layer("area", bands, is_data=False),
            Layer("rule", words, tone="soft", is_dashed=True, is_data=False),
            Layer("line", curve),
            Layer("point", curve, is_data=False),
        ],
        Axis("layers", "d", (0, rows[-1]["layer"])),
        Axis(title="", format=".2f"),
        f"{METRICS[one['kind']]}, {one['items']:,} {one['kind']} of {one['data_set']}",
        height=150,
    )
