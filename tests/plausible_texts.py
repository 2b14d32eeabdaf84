"""Rows of what is measured on texts and weights: integrity, quality, geometry, length and occurrences."""

from __future__ import annotations

from typing import Any

from declared_rows import Table, row_of, rows_of

# Of pairs; questions and their passages have no scale.
SCALE = {
    **{"threshold": 0.7, "kept": 0.8, "auc": 0.95, "directions": 1.5, "separation": 1.5},
    **{"unrelated_cosine": 1.5, "matching_cosine": 1.5, "unrelated_median": 1.5, "matching_median": 1.5},
}
# Mean cosine by condition and bin: (low, high, texts, mean).
CURVES: dict[str, tuple[tuple[int, int, int, float | None], ...]] = {
    "natural": ((0, 20, 4, 0.1), (20, 40, 1, None), (40, 60, 4, 0.3)),
    "truncation": ((0, 20, 4, 0.1), (20, 40, 4, 0.12), (40, 60, 4, 0.2)),
    "windows": ((0, 20, 4, 0.2), (20, 40, 4, 0.3), (40, 60, 4, 0.4)),
    "input_embeddings": ((0, 20, 4, 0.7), (20, 40, 4, 0.72), (40, 60, 4, 0.75)),
}
NOTHING_MOVED = {"removal_texts": 0, **dict.fromkeys(("shift", "moved", "ordinary_moved", "excess"))}
MOVED = {
    **{"removal_texts": 3, "shift": -0.01, "shift_low": -0.02, "shift_high": 0.0},
    **{"moved": 0.05, "moved_low": 0.04, "moved_high": 0.06, "ordinary_moved": 0.02},
    **{"excess": 0.03, "excess_low": 0.02, "excess_high": 0.04},
}


def first_minute_rows() -> dict[str, Table]:
    """Integrity and quality of a sound checkpoint."""
    kinds = ("pairs", "queries")
    return {
        "weight": [
            _weight("embeddings.word_embeddings.weight", "same", "8 × 32", 256),
            _weight("encoder.layer.1.output.dense.weight", "same", "32 × 64", 2048, layer=1),
            _weight("model.safetensors: cls.predictions.bias", "unread", "8", 8)
            | {"stored_name": "cls.predictions.bias", "deviation": None, "largest": None, "content": None},
            _weight("pooler.dense.weight", "unused", "32 × 32", 1024)
            | dict.fromkeys(("file", "stored_name", "stored_dtype")),
        ],
        "quality": [
            row_of(
                "quality",
                **{"data_set": "sample", "kind": kind, "items": items, "score": 0.75},
                **{"words_score": 0.5, "words_gain": 0.25, "input_score": 0.55, "input_gain": 0.2, **scale},
            )
            for kind, items, scale in (("pairs", 600, SCALE), ("queries", 90, dict.fromkeys(SCALE)))
        ],
        "quality_layer": rows_of(
            "quality_layer",
            "kind layer score",
            *((kind, layer, 0.5 + 0.1 * layer) for kind in kinds for layer in range(3)),
            data_set="sample",
        ),
        "quality_reading": rows_of(
            "quality_reading",
            "reading aspect gain kind",
            *(("cls pooling", "pooling", -0.1, kind) for kind in kinds),
            *(("lower case", "case", -0.01, kind) for kind in kinds),
            data_set="sample",
        ),
        "quality_wording": rows_of(
            "quality_wording",
            "wording prompt is_declared score change",
            *(("E5", "query: ", False, 0.75, -0.05), ("none", "", True, 0.8, 0.0)),
            data_set="sample",
            queries=90,
        ),
    }


def _weight(tensor: str, status: str, shape: str, entries: int, layer: int | None = None) -> dict[str, Any]:
    return row_of(
        "weight",
        **{"tensor": tensor, "layer": layer, "status": status, "shape": shape, "entries": entries},
        **{"file": "model.safetensors", "stored_name": tensor, "stored_dtype": "F32"},
        **{"deviation": 0.05, "largest": 0.4, "content": f"{entries:016x}"},
    )


def geometry_rows() -> dict[str, Table]:
    """Two corpora, dominated by a dimension; one is too small for hubs."""
    large = {
        **{"corpus": "wikipedia", "texts": 40, "dimension": 32, "shrinkage": 0.05, "neighbours": 10},
        **{"mean_cosine": 0.4, "isoscore": 0.2, "effective_rank": 12.0, "rankme": 9.0, "uniformity": -2.0},
        **{"variance_1": 0.3, "variance_3": 0.5, "variance_10": 0.8, "top_dimension_share": 0.6},
        **{"hubness_skewness": 1.5, "anti_hubs": 0.1},
    }
    small = {"corpus": "msmarco", "texts": 15, "hubness_skewness": None, "anti_hubs": None}
    return {
        "geometry": [row_of("geometry", **large), row_of("geometry", **{**large, **small})],
        "geometry_dimension": rows_of(
            "geometry_dimension",
            "corpus rank dimension share contribution mean",
            *(
                (corpus, rank, dimension, share, share * large["mean_cosine"], share**0.5)
                for corpus in ("wikipedia", "msmarco")
                for rank, (dimension, share) in enumerate(((17, 0.6), (3, 0.2), (30, 0.1)), start=1)
            ),
            deviation=0.05,
        ),
    }


def length_rows() -> dict[str, Table]:
    """Three bins, four texts, one layer of two heads."""
    return {
        "length_bin": rows_of(
            "length_bin",
            "condition low high texts cosine_mean length beyond_limit",
            *(
                (condition, low, high, texts, mean, (low + high) / 2, low >= 40)
                for condition, bins in CURVES.items()
                for low, high, texts, mean in bins
            ),
        ),
        # The last condition first: its shares are all there.
        "length_rise": [
            _rise("input_embeddings", of_natural=True, of_truncation=True),
            _rise("windows", of_natural=True, of_truncation=True),
            _rise("truncation", of_natural=True),
            _rise("natural"),
        ],
        "length_summary": [
            row_of(
                "length_summary",
                **{"texts": 9, "empty": 0, "read_limit": 60, "configured_limit": 40, "position_limit": 60},
                **{"beyond_configured": 4, "beyond_read": 1, "control_texts": 4, "window": 16},
                **{"tokens_mean": 30.0, "tokens_median": 28.0, "tokens_max": 70, "neighbours": 3, "is_labelled": True},
                **{"hubness_spearman": 0.4, "hubness_p": 0.03, "rank_spearman": -0.3, "knn_accuracy": 0.75},
                **{"neighbour_length_ratio": 1.2, "short_neighbour_length_ratio": 1.1, "wrong_length_ratio": 1.3},
                **{"long_pairs": 2, "long_pairs_mean": 0.25, "short_pairs_mean": 0.1, "share_long_above": 0.5},
            )
        ],
        "length_pair": rows_of(
            "length_pair",
            "rank first second cosine",
            (1, 0, 3, 0.5),
            (2, 1, 3, 0.4),
            **{"first_tokens": 50, "second_tokens": 70, "first_label": "river", "second_label": "iron"},
        ),
        "length_ranking": rows_of(
            "length_ranking",
            "condition read relevant",
            *(("natural", 254, "short"), ("natural", 254, "long"), ("cut", 40, "short"), ("cut", 40, "long")),
            **{"corpus": "retrieval", "boundary": 200.0, "documents": 60, "pairs": 12, "units": 11},
            **{"by_short": 0.3, "by_long": 0.1, "difference": 0.2, "low": 0.1, "high": 0.3},
        ),
        "length_sigma": rows_of(
            "length_sigma",
            "length tokens head sigma_a frobenius sigma_a_value_norm",
            *((length, length + 2, *head) for length in (16, 58) for head in ((0, 0.8, 1.0, 1.6), (1, 1.4, 1.5, 2.8))),
            **{"layer": 0, "texts": 4, "sigma_s": 1.1, "sigma_s_centred": 0.9, "hc_energy": 0.9},
            **{"bound": 0.3, "bound_centred": 0.29, "holds": 0.0, "holds_centred": 0.0},
        ),
    }


def _rise(condition: str, of_natural: bool = False, of_truncation: bool = False) -> dict[str, Any]:
    """From the first bin to the last one: they have a mean under every condition."""
    (first_low, first_high, _, first), *_, (last_low, last_high, _, last) = CURVES[condition]
    assert first is not None
    assert last is not None
    return row_of(
        "length_rise",
        **{"condition": condition, "first_cosine": first, "last_cosine": last, "rise": last - first},
        **{"first_length": (first_low + first_high) / 2, "last_length": (last_low + last_high) / 2},
        share_of_natural=(last - first) / 0.2 if of_natural else None,
        share_of_truncation=(last - first) / 0.1 if of_truncation else None,
    )


def occurrence_rows() -> dict[str, Table]:
    """One corpus that holds severe tokens, one of them densely."""
    return {
        "occurrence_corpus": [
            row_of(
                "occurrence_corpus",
                **{"texts": 40, "tokens": 1_000, "listed": 2, "unreachable": 1, "met": 1},
                **{"severe": 5, "severe_texts": 3, "dense_texts": 1},
                **{"severe_share": 3 / 40, "severe_share_low": 0.016, "severe_share_high": 0.204, **MOVED},
            )
        ],
        "occurrence": [
            *rows_of(
                "occurrence",
                "token_id loss severity occurrences texts per_million less_frequent",
                (4, 0.6, "strong", 5, 3, 5_000.0, 0.9),
                **MOVED,
            ),
            *rows_of(
                "occurrence",
                "token_id loss severity occurrences texts per_million less_frequent",
                (5, 0.48, "moderate", 0, 0, 0.0, 0.2),
                **NOTHING_MOVED,
            ),
        ],
        "occurrence_text": [
            row_of(
                "occurrence_text",
                **{"rank": 1, "position": 2, "tokens": 12, "severe": 3, "score": 0.15, "log10_p": -5.0},
                worst_token_id=4,
            )
        ],
    }
