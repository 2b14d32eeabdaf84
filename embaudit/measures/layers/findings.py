"""Finding about the layers: how alike the token states are that pooling averages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.finding import Finding, Rows, interval
from embaudit.declared.rule import Rule
from embaudit.measures.layers import LayerSettings

TOKENS_ALIKE = Rule(
    "tokens_alike",
    "`pooled_stat.within_text_cosine`",
    look=0.95,
    reason="for unit vectors, the mean then keeps {look} of their squared length: it says little that a single token "
    "does not",
)


def findings(rows: Rows, settings: LayerSettings) -> Iterator[Finding]:
    """One, from the audit's tables; none if no text has two tokens."""
    pooled = [row for row in rows("pooled_stat") if row["within_text_cosine"] is not None]
    if not pooled:
        return
    worst = max(pooled, key=lambda row: (row["within_text_cosine"], row["corpus"]))
    value = worst["within_text_cosine"]
    low, high = worst["within_text_cosine_low"], worst["within_text_cosine_high"]
    yield TOKENS_ALIKE.finding(
        TOKENS_ALIKE.level(value),
        f"The token vectors that are pooled into a text's embedding have a mean cosine of {value:.2f}"
        f"{interval(low, high)} with each other ({worst['corpus']}"
        f"{_after_first(rows('layer_stat'), worst['corpus'])}).",
        "All tokens of a text end up nearly alike: its embedding says little more than any one of them.",
        "embaudit query layers",
        *(value, low, high),
    )


def _after_first(layers: list[dict[str, Any]], corpus: str) -> str:
    """The same after the first layer, for comparison; empty if undefined there."""
    own = [row["within_text_cosine"] for row in layers if row["corpus"] == corpus and row["layer"] == 0]
    return "".join(f"; {value:.2f} after the first layer" for value in own if value is not None)
