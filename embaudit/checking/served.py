"""The check of a served model: what can be asked of one whose files nobody sees."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embaudit.checking.check import CheckReport
from embaudit.comparisons.parity.asking import ask_otherwise
from embaudit.comparisons.parity.findings import finding_of_asking
from embaudit.comparisons.served.limit import limit_findings
from embaudit.comparisons.served.numbers import hard_texts, number_findings
from embaudit.comparisons.served.quality import Asking, served_quality
from embaudit.endpoint.client import Answers, Endpoint
from embaudit.finding import LEVELS, Finding, guarded
from embaudit.measures.quality.lengths import RULE as LENGTHS
from embaudit.measures.quality.lengths import Declared, length_findings
from embaudit.measures.quality.material import Material, sample_material
from embaudit.measures.quality.measured import Measured


def check_served(endpoint: Endpoint, material: Material | None = None, asking: Asking | None = None) -> CheckReport:
    """Check a served model: numbers, one function, limit, quality, lengths.

    Args:
        material: scored pairs and judged queries; by default, the embedded sample.
        asking: the prompts that its callers put before texts.

    Raises:
        EndpointError: if it does not answer.
    """
    start = time.monotonic()
    figures: dict[str, Any] = {}
    texts = hard_texts()
    # Fails here if it does not answer: later, what fails is a finding.
    alone = endpoint.encode(texts, most=1)
    findings = tuple(_parts(endpoint, texts, alone, material or sample_material(), asking or Asking(), figures))
    dimension = alone.vectors.shape[1]
    return CheckReport(
        endpoint.name,
        None,
        findings,
        figures,
        time.monotonic() - start,
        endpoint=f"{endpoint.dialect.name}, {dimension} dimensions",
    )


def _parts(
    endpoint: Endpoint,
    texts: Sequence[str],
    alone: Answers,
    material: Material,
    asking: Asking,
    figures: dict[str, Any],
) -> Iterable[Finding]:
    yield from guarded("numbers", lambda: list(number_findings(texts, alone)))
    yield from guarded("one_function", lambda: [_one_function(endpoint, texts, alone)])
    documents = [text for collection in material.collections for text in asking.documents(collection.documents)]
    yield from guarded("tail", lambda: limit_findings(endpoint, documents))

    measured: list[Measured] = []

    def quality() -> list[Finding]:
        report = served_quality(lambda some: endpoint.encode(some).vectors, material, asking)
        figures.update(report.figures)
        measured.extend(report.measured)
        return list(report.findings)

    yield from guarded("quality", quality)
    yield from guarded(LENGTHS, lambda: length_findings([alone.vectors], measured, Declared(is_served=True), figures))


def _one_function(endpoint: Endpoint, texts: Sequence[str], alone: Answers) -> Finding:
    """The worst of what comes of asking in other ways."""
    has_vector = np.isfinite(alone.vectors).all(axis=1) & (np.linalg.norm(alone.vectors, axis=1) > 0)
    places = np.flatnonzero(has_vector).tolist()
    if not places:
        sentence = "Whether a text gets one vector however it is asked was not measured: none has a vector."
        return Finding("not measured", sentence, name="one_function")
    # Texts of all kinds and lengths.
    places = places[:: max(1, len(places) // 24)]
    found = [
        finding_of_asking(asked)
        for asked in ask_otherwise(endpoint, None, [texts[place] for place in places], alone.vectors[places])
    ]
    worst = min(found, key=lambda one: (LEVELS.index(one.level), -(one.value or 0.0)))
    if worst.level == "ok":
        sentence = (
            "A text gets one vector alone, in batches, again, and while others are asked (1 − cosine at most "
            f"{worst.value:.1e})."
        )
        return replace(worst, sentence=sentence, name="one_function")
    return replace(worst, name="one_function")
