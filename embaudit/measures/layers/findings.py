"""What the layers come to: how alike the tokens are that pooling averages."""

from __future__ import annotations

from collections.abc import Iterator

from embaudit.finding import Finding, Rows, interval, level_from, unless_ok
from embaudit.measures.layers.settings import LayerSettings

# Mean cosine of a text's tokens after the last layer, itself included. Of unit vectors it is the squared length of
# their mean: beyond it the mean says little that one token does not.
ALIKE = 0.95


def findings(rows: Rows, settings: LayerSettings) -> Iterator[Finding]:
    """One, from the audit's tables; none where no text has two tokens."""
    layers = rows("layer_stat")
    known = [row for row in layers if row["within_text_cosine"] is not None]
    last = [row for row in known if row["layer"] == max(one["layer"] for one in layers)]
    if not last:
        return
    worst = max(last, key=lambda row: (row["within_text_cosine"], row["corpus"]))
    value = worst["within_text_cosine"]
    low, high = worst["within_text_cosine_low"], worst["within_text_cosine_high"]
    first = next(row for row in known if row["corpus"] == worst["corpus"])
    level = level_from(value, look=ALIKE)
    yield Finding(
        level,
        f"After the last layer the tokens of a text have a mean cosine of {value:.2f}{interval(low, high)} "
        f"({worst['corpus']}; {first['within_text_cosine']:.2f} after the first).",
        name="tokens_alike",
        value=value,
        low=low,
        high=high,
        **unless_ok(
            level,
            "All tokens of a text say nearly the same: its vector tells little of what stands where.",
            "embaudit query layers",
        ),
    )
