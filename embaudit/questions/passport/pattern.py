"""What is probable, if some canaries' vectors differ and others do not.

A cause moves the texts that have something (capitals, accents, more tokens than a limit) and no other. It is probable
if every canary that moved has it, and most of those that have it moved; of several, the one of which most moved.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from embaudit.questions.passport.passport import Canary

# A cause may leave so many of its texts as they are: it can have no effect on some.
MOST = 0.5
# From here on, it is something that every text has.
NEARLY_ALL = 0.9
SPECIAL = re.compile(r"\[[A-Z]{3,}\]|</?s>|<\|\w+\|>|<(mask|pad)>")


def _has_accents(text: str) -> bool:
    """Whether something in it is composed of a letter and a mark, or could be."""
    return unicodedata.normalize("NFD", text) != text or any(unicodedata.combining(letter) for letter in text)


def _has(*categories: str) -> Callable[[str], bool]:
    """Whether a text has characters of Unicode categories, newlines and tabs aside."""
    return lambda text: any(
        unicodedata.category(letter).startswith(categories) for letter in text if letter not in "\n\t"
    )


# Each as the end of "Probably, …", narrow ones first.
CAUSES: Mapping[str, Callable[[str], bool]] = {
    "special tokens in texts are read otherwise, as letters or as such": lambda text: bool(SPECIAL.search(text)),
    "control characters are dropped or replaced": _has("Cc", "Cf"),
    "newlines are replaced, or only the first line is read": lambda text: "\n" in text,
    "white space is stripped or merged": lambda text: text != " ".join(text.split()),
    "HTML or entities are escaped or unescaped on the way": lambda text: bool(re.search("[&<>]", text)),
    "characters outside the basic plane (emoji) are lost": lambda text: any(ord(letter) > 0xFFFF for letter in text),
    "accents are kept or stripped otherwise": _has_accents,
    "another Unicode normalisation is applied": lambda text: unicodedata.normalize("NFKC", text) != text,
    "letters outside ASCII are dropped, or read in another encoding": lambda text: not text.isascii(),
    "lower-casing is lost or added": lambda text: text != text.lower(),
    "punctuation is dropped or replaced": lambda text: bool(re.search(r"[^\w\s]", text)),
    "lower-casing is lost, and accents are kept": lambda text: text != text.lower() or _has_accents(text),
}


def probable_cause(
    canaries: Sequence[Canary], moved: np.ndarray, max_length: int | None, counted_in: str = "tokens"
) -> str:
    """One sentence; empty if the pattern tells nothing.

    Args:
        canaries: those that have a vector on both sides.
        moved: (n,) whether the vectors differ by more than rounding.
        max_length: how many tokens are read of a text; None: all.
        counted_in: what the canaries' lengths are counted in.
    """
    if not moved.any():
        return ""
    if limit := _limit(np.array([canary.tokens for canary in canaries]), moved, max_length, counted_in):
        return limit
    if moved.mean() >= NEARLY_ALL:
        return "Probably pooling, a prompt, special tokens or other weights: texts of every kind differ."
    shares: dict[str, float] = {}
    for cause, is_concerned in CAUSES.items():
        concerned = np.array([is_concerned(canary.text) for canary in canaries])
        if not (moved & ~concerned).any():
            shares[cause] = float(moved[concerned].mean())
    best = max(shares, key=lambda cause: shares[cause], default=None)
    return f"Probably, {best}." if best is not None and shares[best] >= MOST else ""


def _limit(tokens: np.ndarray, moved: np.ndarray, max_length: int | None, counted_in: str) -> str:
    """If every text from some length on moved, and no shorter one did."""
    same, other = tokens[~moved], tokens[moved]
    if not len(same) or same.max() >= other.min():
        return ""
    if max_length is not None and counted_in == "tokens" and other.min() > max_length:
        return (
            f"Probably another limit than the declared {max_length} tokens: only texts beyond it differ. It reads more "
            "of them, their other end, or windows."
        )
    if not (tokens > other.min()).any():
        return ""
    return (
        f"Probably a limit below {other.min():,} {counted_in}: texts of up to {same.max():,} {counted_in} are as they "
        "should be."
    )
