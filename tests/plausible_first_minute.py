"""Rows of integrity and quality, and the verdict: a sound checkpoint with one thing to look at."""

from __future__ import annotations

from typing import Any

from embaudit.finding import Finding, as_rows

SCALE = {"threshold": 0.7, "kept": 0.8, "auc": 0.95}
OF_PAIRS = ("directions", "separation", "unrelated_cosine", "matching_cosine", "unrelated_median", "matching_median")


def first_minute_rows() -> dict[str, list[dict[str, Any]]]:
    """The four tables and the verdict."""
    return {
        "weight": [
            _weight("embeddings.word_embeddings.weight", None, "same", "8 × 32", 256),
            _weight("encoder.layer.1.output.dense.weight", 1, "same", "32 × 64", 2048),
            {
                **_weight("model.safetensors: cls.predictions.bias", None, "unread", "8", 8),
                **{"stored_name": "cls.predictions.bias", "deviation": None, "largest": None, "content": None},
            },
            {
                **_weight("pooler.dense.weight", None, "unused", "32 × 32", 1024),
                **dict.fromkeys(("file", "stored_name", "stored_dtype")),
            },
        ],
        "quality": [_quality("pairs", 600), _quality("queries", 90)],
        "quality_layer": [
            {"data_set": "sample", "kind": kind, "layer": layer, **_around("score", 0.5 + 0.1 * layer)}
            for kind in ("pairs", "queries")
            for layer in range(3)
        ],
        "quality_reading": [
            {"reading": reading, "data_set": "sample", "kind": kind, "aspect": aspect, **_around("gain", gain)}
            for reading, aspect, gain in (("cls pooling", "pooling", -0.1), ("lower case", "case", -0.01))
            for kind in ("pairs", "queries")
        ],
        "verdict": [
            {
                **{"kind": "look first", "line": "Look at 1 thing first.", "cause": None},
                **{"looks": 1, "unmeasured": 1},
            }
        ],
    }


def staged_findings() -> dict[str, list[dict[str, Any]]]:
    """What the two measures pass on to their findings, in tables that are not published."""
    return {
        "integrity_finding": as_rows(
            [
                Finding("ok", "All tensors hold the values of the file.", name="weights_from_file"),
                Finding("look", "The limits disagree.", "Texts are cut.", "Set both.", "limits_disagree"),
            ]
        ),
        "quality_finding": as_rows(
            [
                Finding("ok", "It does better.", name="no_better_than_words", value=0.2, low=0.1, high=0.3),
                Finding("ok", "No layer loses.", name="lost_in_layer", value=0.0),
            ]
        ),
    }


def _weight(tensor: str, layer: int | None, status: str, shape: str, entries: int) -> dict[str, Any]:
    return {
        **{"tensor": tensor, "layer": layer, "status": status, "file": "model.safetensors", "stored_name": tensor},
        **{
            "stored_dtype": "F32",
            "shape": shape,
            "entries": entries,
            "deviation": 0.05,
            "largest": 0.4,
            "content": f"{entries:016x}",
        },
    }


def _quality(kind: str, items: int) -> dict[str, Any]:
    is_pairs = kind == "pairs"
    return {
        **{"data_set": "sample", "kind": kind, "items": items, "words_score": 0.5, "input_score": 0.55},
        **_around("score", 0.75),
        **_around("words_gain", 0.25),
        **_around("input_gain", 0.2),
        **{name: value for one, of in SCALE.items() for name, value in _around(one, of if is_pairs else None).items()},
        **dict.fromkeys(OF_PAIRS, 1.5 if is_pairs else None),
    }


def _around(name: str, value: float | None) -> dict[str, float | None]:
    low, high = (None, None) if value is None else (value - 0.05, value + 0.05)
    return {name: value, f"{name}_low": low, f"{name}_high": high}
