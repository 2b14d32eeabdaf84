"""Rows of what becomes of vectors that are stored smaller, and of texts in other languages."""

from __future__ import annotations

from declared_rows import Table, row_of, rows_of


def compression_rows() -> dict[str, Table]:
    """Vectors of 32 dimensions that were trained to be cut: int8 loses nothing, bits and an eighth do."""
    same = {"data_set": "sample", "queries": 90, "documents": 270, "dimension": 32, "words_ndcg": 0.5}
    uncut = dict.fromkeys(("random_recall", "random_spread", "beyond_random", "ndcg_beyond_random"))
    whole = (
        *(("float32", 128, 1.0, 1.0, 0.8, 0.0), ("int8", 32, 0.25, 0.99, 0.8, 0.0)),
        *(("binary", 4, 0.03125, 0.5, 0.65, -0.15), ("binary, rescored", 4, 0.03125, 0.7, 0.75, -0.05)),
    )
    cuts = (
        *(("first half", 16, 64, 0.5, 0.9, 0.79, -0.01, 0.2), ("first quarter", 8, 32, 0.25, 0.8, 0.77, -0.03, 0.3)),
        *(
            ("first eighth", 4, 16, 0.125, 0.6, 0.7, -0.1, 0.3),
            ("first quarter, int8", 8, 8, 0.0625, 0.8, 0.77, -0.03, 0.3),
        ),
    )
    named = ("way", "kept", "bytes", "of_float32", "recall", "ndcg", "ndcg_change", "beyond_random")
    rows = rows_of("compression", "way bytes of_float32 recall ndcg ndcg_change", *whole, kept=32, **same, **uncut)
    rows += [
        row_of(
            "compression",
            **dict(zip(named, one, strict=True)),
            **{"random_recall": one[4] - one[7], "random_spread": 0.02, "ndcg_beyond_random": 0.05},
            **{"declared": "its model card mentions Matryoshka", **same},
        )
        for one in cuts
    ]
    # Nothing changes, or in no query.
    for row in rows[:2]:
        row |= {"ndcg_change_low": None, "ndcg_change_high": None}
    rows[0] |= {"recall_low": None, "recall_high": None}
    # A row with every figure first: tests of broken cells begin with it.
    return {"compression": rows[::-1]}


def language_rows() -> dict[str, Table]:
    """A checkpoint for English, whose vocabulary has no Chinese."""
    names = (
        "language name script found words_found margin unknown tokens premium alike same_ids told_apart own_above "
        "own_bias english_above english_bias"
    )
    others = (
        ("de", "German", "Latin", 0.4, 0.45, 0.01, 0.0, 640, 1.6, 0.3, 0, 1.0, 0.95, 0.05, 0.3, -0.5),
        ("ru", "Russian", "Cyrillic", 0.075, 0.1, -0.1, 0.0, 1_200, 3.0, 0.6, 0, 1.0, 0.975, 0.075, 0.2, -0.75),
        ("zh", "Chinese", "Han", 0.05, 0.075, -0.2, 0.7, 480, 1.2, 0.9, 12, 0.7, 1.0, 0.1, 0.25, -0.7),
    )
    same = {"declared": False, "sentences": 40, "truncated": 0, "empty": 0, "english_alike": 0.1, "chance": 0.025}
    same |= {"words_own_above": 0.9, "centred_own_above": 0.9}
    english = row_of(
        "language",
        **{**same, "language": "en", "name": "English", "script": "Latin", "declared": True, "chance": None},
        **{"found": None, "words_found": None, "margin": None, "unknown": 0.0, "tokens": 400, "premium": 1.0},
        **{"alike": 0.1, "same_ids": 0, "told_apart": 1.0, "own_above": 0.875, "other_above": 0.75, "own_bias": 0.125},
        **{"english_above": None, "english_bias": None},
    )
    return {"language": [*rows_of("language", names, *others, **same, other_above=0.9), english]}
