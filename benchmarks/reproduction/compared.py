"""A published figure beside ours, as a row of the page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Where a published figure is from, by the letters that mark it on the page.
SOURCES = {
    "P": "arXiv 2507.18171 (sticky tokens), the table of its 40 checkpoints",
    "C": "results published with its code (github.com/March-7/StickyToken, MIT): experiment_information.json, "
    "final_all_models_sticky_tokens.csv, sticky_tokens_within_threshold/all_MiniLM_L6_v2.jsonl",
    "O": "arXiv 2604.27398 (second-order collapse)",
    "L": "arXiv 2410.24200 (length collapse)",
    "I": "computed once without embaudit, in float64, to check it against: no paper has this figure of this checkpoint",
    "S": "seen once before embaudit measured it, to two or three digits, on texts that were not recorded",
    "M": "MTEB's published result of this checkpoint",
}
EXACT = "exactly"


@dataclass(frozen=True)
class Comparison:
    """One row: what was measured, published and ours, and how far they are apart."""

    what: str
    published: str
    ours: str
    within: str


def compared(
    what: str,
    published: float | None,
    ours: float | Mapping[str, Any],
    source: str = "",
    digits: int = 3,
    relative: bool = False,
) -> Comparison:
    """A row of two numbers.

    Args:
        published: None if nothing was published.
        ours: a number, or one with the ends of its interval (``value``, ``low``, ``high``).
        source: a letter of ``SOURCES``.
        relative: say by how much of the published figure they differ.
    """
    found: Mapping[str, Any] = {"value": ours} if isinstance(ours, int | float) else ours
    value = float(found["value"])
    shown = number(value, digits)
    if found.get("low") is not None:
        shown += f" [{number(found['low'], digits)}, {number(found['high'], digits)}]"
    if published is None:
        return Comparison(what, "–", shown, "nothing to compare")
    difference = abs(value - published)
    within = EXACT if difference == 0 else rounded_up(difference / abs(published) if relative else difference)
    if relative and difference:
        within = f"{float(within) * 100:.2g} %"
    if found.get("low") is not None:
        within += ", in our interval" if found["low"] <= published <= found["high"] else ", outside our interval"
    return Comparison(what, f"{number(published, digits)} [{source}]", shown, within)


def number(value: float, digits: int) -> str:
    """With so many decimals; whole numbers without."""
    return f"{value:,.0f}" if digits == 0 else f"{value:.{digits}f}"


def rounded_up(difference: float) -> str:
    """A bound of one digit: .00234 is within .003."""
    if difference == 0:
        return EXACT
    exponent = math.floor(math.log10(difference))
    # Rounding may lift the quotient over a digit that it equals.
    digit = math.ceil(round(difference / 10.0**exponent, 6))
    bound = digit * 10.0**exponent
    return f"{bound:.{max(0, -exponent)}f}" if exponent >= -4 else f"{bound:.0e}"
