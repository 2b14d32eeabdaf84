"""Kinds of tokens that are over-represented among sticky tokens, relative to the scanned vocabulary.

*Sticking to the Mean* (arXiv 2507.18171) says that its lists contain special tokens, rare and multilingual entries and
word fragments; this counts them, relative to how many of each were scanned. Each selection (``lowest_100``,
``sticky_retention``) is compared with the other scanned tokens, by attribute:

labels (origin, script)        Fisher's exact test, two-sided, on selected × with; fold = share selected / share scanned
numbers (norm, cosine)         AUC = P(selected > not selected) + P(equal)/2 = U / (n₁ n₂), Mann-Whitney, two-sided

q-values are Benjamini-Hochberg within one (selection, attribute). The tests treat tokens as exchangeable, but entries
of one script are close in embedding space, so use p-values for ranking rather than as probabilities.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
import scipy

from embaudit.checkpoint.vocabulary.script import COMMON, INHERITED, UNKNOWN
from embaudit.words.errors import MeasureError

MEASURE_VERSION = 1
Token = Mapping[str, Any]

# Characters of every script, or of no known one, do not make a token "non-Latin".
LATIN_OR_NO_SCRIPT = frozenset({"Latin", COMMON, INHERITED, UNKNOWN})
# Entries without letters or numbers: punctuation and emoji, fragments of characters, control characters.
SYMBOL_ORIGINS = frozenset({"punctuation", "byte"})
NUMBERS = ("embedding_norm", "cosine_to_mean")
YES = "yes"


def is_non_latin(token: Token) -> bool:
    """Whether a token is written in a specific script other than Latin.

    Of the 29 191 scanned tokens of all-MiniLM-L6-v2, 1 107 are (3.8 %); of the 100 tokens with the lowest retention in
    a ``quick`` audit, 70.
    """
    return token["script"] not in LATIN_OR_NO_SCRIPT


def is_non_latin_or_symbol(token: Token) -> bool:
    """Whether a token is non-Latin, punctuation or a symbol, or a byte.

    Of all-MiniLM-L6-v2's scanned tokens, 1 340 are (4.6 %); of those 100, 71. Numbers, special and reserved tokens do
    not count as symbols: they have their own rows under ``origin``.
    """
    return is_non_latin(token) or token["origin"] in SYMBOL_ORIGINS


# The label of a token; None if the attribute does not apply (the token still counts in the totals).
LABELS: dict[str, Callable[[Token], str | None]] = {
    "origin": lambda token: token["origin"],
    "script": lambda token: token["script"],
    "origin x script": lambda token: f"{token['origin']} x {token['script']}",
    "non_latin": lambda token: YES if is_non_latin(token) else None,
    "non_latin_or_symbol": lambda token: YES if is_non_latin_or_symbol(token) else None,
}


def enrichment_rows(
    tokens: Sequence[Token], scanned: Collection[int], selections: Mapping[str, Collection[int]]
) -> list[dict[str, Any]]:
    """One row per (selection, attribute, value); all rows have all columns.

    Columns: ``selection``, ``attribute``, ``value``; ``selected_with`` of ``selected`` and ``scanned_with`` of
    ``scanned`` tokens have the value (for numeric attributes, whose value is "": have a number at all); ``p_value``,
    ``q_value``. Labels only: ``share_selected``, ``share_scanned``, ``fold``, ``odds_ratio`` (of the sample; None
    for 0/0 and infinity). Numbers only: ``selected_median``, ``scanned_median``, ``auc``. None if a column does not
    apply or is undefined: numbers are compared only if both selected and other tokens have them.

    Args:
        tokens: rows with token_id, origin, script, embedding_norm and cosine_to_mean; a number may be None.
        scanned: scanned ids, the background.
        selections: name -> selected ids, a subset of ``scanned``. An empty selection gives no rows.

    Raises:
        MeasureError: an id is selected but not scanned, or scanned but not among the tokens; a number is not finite.
    """
    by_id = {token["token_id"]: token for token in tokens}
    background = _known(by_id, scanned)
    rows = []
    for name, ids in selections.items():
        selected = _selected(name, ids, background)
        if not selected:
            continue
        for attribute, label in LABELS.items():
            rows += _label_rows(name, attribute, label, selected, background)
        for attribute in NUMBERS:
            rows.append(_number_row(name, attribute, selected, background))
    return rows


def _known(by_id: Mapping[int, Token], scanned: Collection[int]) -> dict[int, Token]:
    unknown = sorted(set(scanned) - by_id.keys())
    if unknown:
        raise MeasureError(
            f"{len(unknown)} of {len(set(scanned))} scanned token ids are not in the vocabulary, starting with "
            f"{unknown[0]}.",
            next_step="Give the tokens of the checkpoint that was scanned.",
        )
    return {token_id: by_id[token_id] for token_id in sorted(set(scanned))}


def _selected(name: str, ids: Collection[int], background: Mapping[int, Token]) -> frozenset[int]:
    strangers = sorted(set(ids) - background.keys())
    if strangers:
        raise MeasureError(
            f"{len(strangers)} of {len(set(ids))} token ids of selection {name!r} were not scanned, starting with "
            f"{strangers[0]}.",
            next_step="Compare a selection with the scan that it was made from.",
        )
    return frozenset(ids)


def _label_rows(
    selection: str,
    attribute: str,
    label: Callable[[Token], str | None],
    selected: frozenset[int],
    background: Mapping[int, Token],
) -> list[dict[str, Any]]:
    labels = {token_id: label(token) for token_id, token in background.items()}
    scanned_with = Counter(labels.values())
    selected_with = Counter(labels[token_id] for token_id in selected)
    rows = [
        _row(selection, attribute, value)
        | _compare_shares(selected_with[value], len(selected), scanned_with[value], len(background))
        for value in sorted(value for value in scanned_with if value is not None)
    ]
    adjusted = scipy.stats.false_discovery_control([row["p_value"] for row in rows]) if rows else ()
    for row, q_value in zip(rows, adjusted, strict=True):
        row["q_value"] = float(q_value)
    return rows


def _compare_shares(selected_with: int, selected: int, scanned_with: int, scanned: int) -> dict[str, Any]:
    others_with = scanned_with - selected_with
    table = [
        [selected_with, selected - selected_with],
        [others_with, scanned - selected - others_with],
    ]
    p_value = float(scipy.stats.fisher_exact(table).pvalue)
    share_selected, share_scanned = selected_with / selected, scanned_with / scanned
    crossed = table[0][1] * table[1][0]
    return {
        "selected_with": selected_with,
        "selected": selected,
        "scanned_with": scanned_with,
        "scanned": scanned,
        "share_selected": share_selected,
        "share_scanned": share_scanned,
        "fold": share_selected / share_scanned,
        "odds_ratio": table[0][0] * table[1][1] / crossed if crossed else None,
        "p_value": p_value,
    }


def _number_row(
    selection: str, attribute: str, selected: frozenset[int], background: Mapping[int, Token]
) -> dict[str, Any]:
    numbers = {token_id: _number(token, attribute) for token_id, token in background.items()}
    known = {token_id: number for token_id, number in numbers.items() if number is not None}
    inside = np.array([number for token_id, number in known.items() if token_id in selected])
    outside = np.array([number for token_id, number in known.items() if token_id not in selected])
    row = _row(selection, attribute, "") | {
        "selected_with": len(inside),
        "selected": len(selected),
        "scanned_with": len(known),
        "scanned": len(background),
        "selected_median": float(np.median(inside)) if len(inside) else None,
        "scanned_median": float(np.median([*known.values()])) if known else None,
    }
    if len(inside) and len(outside):
        test = scipy.stats.mannwhitneyu(inside, outside, alternative="two-sided")
        # A family of one test.
        p_value = float(test.pvalue)
        row |= {
            "auc": float(test.statistic) / (len(inside) * len(outside)),
            "p_value": p_value,
            "q_value": p_value,
        }
    return row


def _number(token: Token, attribute: str) -> float | None:
    value = token[attribute]
    if value is None:
        return None
    if not isfinite(value):
        raise MeasureError(f"Token {token['token_id']} has {attribute} {value}, which is not a finite number.")
    return float(value)


def _row(selection: str, attribute: str, value: str) -> dict[str, Any]:
    columns = ("selected_with", "selected", "scanned_with", "scanned", "share_selected", "share_scanned", "fold")
    tests = ("odds_ratio", "selected_median", "scanned_median", "auc", "p_value", "q_value")
    return {"selection": selection, "attribute": attribute, "value": value, **dict.fromkeys((*columns, *tests))}
