"""Rows of the measure's tables from the figures of a ``QualityReport``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from embaudit.measures.quality.baselines import INPUT_EMBEDDINGS
from embaudit.words.estimate import Estimate

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
