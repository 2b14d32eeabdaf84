"""Does a checkpoint do what an embedding is for, and is it declared right? All findings, and their figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.declared.rule import Finding, Rule, guarded
from embaudit.embedders.checkpoint import declared_similarity
from embaudit.measures.quality.alternatives import Alternative, from_encodes, from_one_pass
from embaudit.measures.quality.counterfactual import (
    AS_DECLARED,
    counterfactual_findings,
    not_after_tokenizer,
    not_without_a_network,
)
from embaudit.measures.quality.golden import GOLDEN, MeasuredGolden, measure_golden
from embaudit.measures.quality.lengths import LENGTHS, Declared, length_findings
from embaudit.measures.quality.material import MEND, Collection, Material, ScoredPairs
from embaudit.measures.quality.measured import (
    Measured,
    MeasuredCollection,
    MeasuredPairs,
    as_json,
    collection_baselines,
    measure_collection,
    measure_pairs,
)
from embaudit.measures.quality.scale import (
    CUT_TEXTS,
    LOST_IN_LAYER,
    SCORE_SCALE,
    layer_findings,
    limit_findings,
    measure_layers,
    measure_scale,
    scale_findings,
)
from embaudit.measures.quality.wordings import WORDING, measure_wordings, wording_as_json, wording_findings
from embaudit.measures.quality.words import (
    COLLAPSED,
    WORDS,
    beats_words,
    collapse_findings,
    measure_collapse,
    words_findings,
)

# Why nothing can be said, where the texts themselves could not be encoded or scored.
SCORED = Rule(
    "scored", "what was given", reason="`not measured`: which data are missing, cannot be used, or cannot be encoded"
)
Figures = dict[str, Any]


@dataclass(frozen=True)
class QualityReport:
    """The findings, worst first within a rule, and every figure behind them, ready for JSON.

    Attributes:
        measured: the data sets with the checkpoint's vectors.
        golden: golden queries likewise.
    """

    findings: tuple[Finding, ...]
    figures: Figures
    measured: tuple[Measured, ...] = ()
    golden: tuple[MeasuredGolden, ...] = ()


def quality_findings(
    encoder: Encoder, material: Material, *, tokenizer_is_broken: bool = False, with_wordings: bool = False
) -> QualityReport:
    """Measure everything that the material allows; what cannot be measured is said, and raises nothing.

    Args:
        tokenizer_is_broken: whether the ids are known to be wrong: no alternatives are compared then.
        with_wordings: whether queries are encoded with other wordings of the instruction, too.

    Raises:
        torch.OutOfMemoryError: if the device's memory is too small.
    """
    findings = missing_findings(material)
    checkpoint = encoder.checkpoint
    measured, failed = measure_all(
        material,
        lambda pairs: measure_pairs(checkpoint, pairs),
        lambda collection: measure_collection(checkpoint, collection),
    )
    findings += failed
    figures = no_figures()
    if measured:
        figures["data"] = [scores_of(one) for one in measured]
        words = guarded(WORDS.name, lambda: words_findings(measured))
        finds_nothing = any(finding.level == "problem" for finding in words)
        findings += words
        findings += guarded(LOST_IN_LAYER.name, lambda: _layers(measured, figures))
        pairs = [one for one in measured if isinstance(one, MeasuredPairs)]
        for one in pairs:
            findings += guarded(COLLAPSED.name, lambda one=one: findings_of_collapse(one, figures))  # type: ignore[misc]
        findings += guarded(
            AS_DECLARED.name,
            lambda: (
                not_after_tokenizer()
                if tokenizer_is_broken
                else _alternatives(encoder.checkpoint, measured, figures, finds_nothing=finds_nothing)
            ),
        )
        for judged in (one for one in measured if isinstance(one, MeasuredCollection) and with_wordings):
            findings += guarded(WORDING.name, lambda one=judged: _wordings(checkpoint, one, figures))  # type: ignore[misc]
        findings += guarded(LENGTHS.name, lambda: length_findings([], measured, Declared.by(checkpoint), figures))
        limit = encoder.checkpoint.reading("document").max_length
        for judged in (one for one in measured if isinstance(one, MeasuredCollection)):
            name, ids = judged.collection.name, judged.document_ids
            findings += guarded(CUT_TEXTS.name, lambda name=name, ids=ids: limit_findings(name, ids, limit))  # type: ignore[misc]
        for one in pairs:
            findings += guarded(SCORE_SCALE.name, lambda one=one: findings_of_scale(one, figures))  # type: ignore[misc]
    similarity = declared_similarity(checkpoint)
    golden, said = measure_all_golden(
        material,
        lambda one: measure_golden(
            lambda texts, role: Encoder(checkpoint.reading(role)).encode_texts(texts),
            one,
            similarity,
            collection_baselines(checkpoint, one.queries, one.documents),
        ),
        figures,
    )
    return QualityReport((*findings, *said), figures, tuple(measured), golden)


def no_figures() -> Figures:
    """What is filled with figures."""
    return {"data": [], "layers": {}, "collapse": {}, "scale": {}, "alternatives": []}


def missing_findings(material: Material) -> list[Finding]:
    """What cannot be measured for lack of texts."""
    findings = [SCORED.finding("not measured", f"Not measured: {reason}", "", MEND) for reason in material.missing]
    if not material.pairs:
        advice = "Give scored pairs: --corpus sts=FILE, with sentence1, sentence2 and score."
        findings.append(SCORED.finding("not measured", "There are no scored pairs: no ρ, no scale.", "", advice))
    if not material.collections:
        advice = "Give a judged collection: --corpus retrieval=FOLDER."
        findings.append(SCORED.finding("not measured", "There are no judged queries: no nDCG@10.", "", advice))
    return findings


def measure_all(
    material: Material,
    of_pairs: Callable[[ScoredPairs], MeasuredPairs],
    of_collection: Callable[[Collection], MeasuredCollection],
) -> tuple[list[Measured], list[Finding]]:
    """Every data set that can be measured, and findings for the others."""
    measured: list[Measured] = []
    failed: list[Finding] = []

    def measure(one: Callable[[], Measured]) -> list[Finding]:
        measured.append(one())
        return []

    for pairs in material.pairs:
        failed += guarded(SCORED.name, lambda pairs=pairs: measure(lambda: of_pairs(pairs)))  # type: ignore[misc]
    for judged in material.collections:
        failed += guarded(
            SCORED.name,
            lambda judged=judged: measure(lambda: of_collection(judged)),  # type: ignore[misc]
        )
    return measured, failed


def measure_all_golden(
    material: Material, measure: Callable[[Collection], MeasuredGolden], figures: Figures
) -> tuple[tuple[MeasuredGolden, ...], list[Finding]]:
    """Golden queries of which the texts have vectors, and findings of them and of the others; figures are added."""
    measured: list[MeasuredGolden] = []

    def one_of(collection: Collection) -> list[Finding]:
        measured.append(measure(collection))
        figures["data"].append(scores_of(measured[-1]) | {"ranks": measured[-1].as_json()})
        return [measured[-1].finding()]

    findings = [guarded(GOLDEN.name, lambda some=some: one_of(some)) for some in material.golden]  # type: ignore[misc]
    return tuple(measured), [finding for some in findings for finding in some]


def scores_of(one: Measured) -> Figures:
    similarities = one.similarities()
    found: Figures = {"name": one.name, "data_set": one.data_set, "kind": one.kind, "items": one.items}
    found |= {"metric": one.metric, "score": as_json(one.score(similarities))}
    if isinstance(one, MeasuredPairs):
        found["auc"] = asdict(one.scorer.auc(similarities).share_estimate())
    served = one.score(similarities)
    found["baselines"] = {
        name: {"score": as_json(score), "gain": as_json(served.minus(score))}
        for name, score in ((name, one.score(values)) for name, values in one.baselines.items())
    }
    return found


def _layers(measured: list[Measured], figures: Figures) -> list[Finding]:
    found = [layers for one in measured if (layers := measure_layers(one)) is not None]
    figures["layers"] = {layers.name: [as_json(score) for score in layers.scores] for layers in found}
    return layer_findings(found)


def findings_of_collapse(one: MeasuredPairs, figures: Figures) -> list[Finding]:
    found = measure_collapse(one)
    if found is not None:
        figures["collapse"][one.name] = asdict(found)
    return collapse_findings(one, found)


def findings_of_scale(one: MeasuredPairs, figures: Figures) -> list[Finding]:
    found = measure_scale(one)
    if found is not None:
        figures["scale"][one.name] = asdict(found)
    return scale_findings(one, found)


def _wordings(checkpoint: Checkpoint, one: MeasuredCollection, figures: Figures) -> list[Finding]:
    worded = measure_wordings(checkpoint, one)
    figures.setdefault("wordings", {})[one.name] = [wording_as_json(wording) for wording in worded]
    return wording_findings(one, worded)


def _alternatives(
    checkpoint: Checkpoint, measured: list[Measured], figures: Figures, *, finds_nothing: bool
) -> list[Finding]:
    tried: list[Alternative] = list(from_one_pass(checkpoint, measured))
    if finds_nothing:
        tried = [one for one in tried if beats_words(measured, one.gains)]
    else:
        tried += from_encodes(checkpoint, measured)
    figures["alternatives"] = [alternative_as_json(one) for one in tried]
    return counterfactual_findings(tried) if tried else not_without_a_network()


def alternative_as_json(one: Alternative) -> Figures:
    return {"group": one.group, "name": one.name, "gains": {name: as_json(gain) for name, gain in one.gains.items()}}
