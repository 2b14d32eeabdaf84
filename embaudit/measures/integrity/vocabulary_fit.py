"""Does the vocabulary belong to the weights? Related tokens must have related input embeddings.

Pairs of entries that differ by a plural ``s`` (river, rivers), by case (▁river, ▁River) or by the mark of a word's
start (play, ##play) have similar rows in any trained model. With another model's tokenizer, a shuffled
vocabulary or ids that moved by one, their cosine is that of any two rows. The figure is

    AUC = P(cos(e_a, e_b) > cos(e_a, e_c))    for a related pair (a, b) and c of another pair

of rows from which the table's mean was subtracted: 1/2 if nothing fits. If the ids of some tokens are wrong, most pairs
are closer than nearly all others, and some no closer than any: hardly any pair lies between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.declared.rule import Finding, Rule, number, percent
from embaudit.measures.integrity.rows import UNTRAINED_ROWS, Rows

if TYPE_CHECKING:
    import torch

STARTS = ("▁", "Ġ")
CONTINUATION = "##"
MIN_LETTERS = 3
# Fewer pairs tell nothing; more make the figure no surer.
MIN_PAIRS, MAX_PAIRS = 100, 6_000
# The pairs in the order of their ids are also read in parts, because an entry that was inserted or lost moves all
# later ones.
PARTS, MIN_IN_PART = 10, 60
PART_BROKEN, PART_FITS = 0.62, 0.8
# Each pair is also compared with so many others. Of the pairs of two trained checkpoints, 88 and 93 % are closer than
# 99 % of these, and 1 % less close than half; with a tenth of the words shuffled, 71 and 11 %.
COMPARED = 200
SHARP, MISFITS = 0.6, 0.05
HUGE = 1e4
# Numbers of a table that are looked at at once: a table of 30 000 rows and 384 dimensions as a whole.
PART = 1 << 24
# Distinct values of a table that was rounded to five bits and less: which rows are alike is chance then.
ROUNDED = 32
RULE = Rule(
    "vocabulary_fit",
    look=0.8,
    problem=0.65,
    worse="lower",
    look_if=f"AUC below {{look}}; or {percent(SHARP)} of pairs are closer than 99 % of others, and {percent(MISFITS)} "
    "less close than half of them",
    problem_if=f"below {{problem}}, or below {number(PART_BROKEN)} on a run of ids",
    reason=".5 is chance. In a trained table `river` and `rivers` are closer than chance (.98 here; another model's "
    "vocabulary: .5 to .6). Pairs that fit hardly lie between fitting well and not at all: .4 and 1.1 % in two "
    "trained checkpoints, 11 % with a tenth of the words shuffled. `not measured` with fewer pairs than tell, or if "
    "the rows are random numbers or rounded to a few values",
)


@dataclass(frozen=True)
class Fit:
    """How the vocabulary fits the rows.

    Attributes:
        pairs: how many related pairs there are.
        auc: of all of them.
        parts: (lowest id, highest id, AUC) of parts of the pairs in the order of their higher ids.
        sharp: share of pairs that are closer than 99 % of others.
        misfits: share of pairs that are less close than half of the others.
    """

    pairs: int
    auc: float
    parts: tuple[tuple[int, int, float], ...]
    sharp: float
    misfits: float


def related_pairs(vocabulary: Mapping[str, int], rows: int) -> list[tuple[int, int]]:
    """Ids of related entries with a row, in the order of the higher id; evenly thinned to ``MAX_PAIRS``."""
    pairs = set()

    def add(token: str, other: str) -> None:
        a, b = vocabulary[token], vocabulary.get(other, rows)
        if a < rows and b < rows and a != b:
            pairs.add((min(a, b), max(a, b)))

    for token in vocabulary:
        mark = next((start for start in (*STARTS, CONTINUATION) if token.startswith(start)), "")
        word = token.removeprefix(mark)
        if len(word) < MIN_LETTERS or not word.isalpha():
            continue
        if mark != CONTINUATION and word.islower() and word.isascii():
            add(token, f"{token}s")
            add(token, mark + word.capitalize())
        if mark:
            add(token, word)
    ordered = sorted(pairs, key=lambda pair: (pair[1], pair[0]))
    return ordered[:: -(-len(ordered) // MAX_PAIRS)] if ordered else []


def vocabulary_fit(embeddings: torch.Tensor, vocabulary: Mapping[str, int]) -> Fit | None:
    """The fit of a vocabulary to a table (V, d); None for fewer than ``MIN_PAIRS`` related pairs."""
    pairs = related_pairs(vocabulary, len(embeddings))
    if len(pairs) < MIN_PAIRS:
        return None
    mean = _mean_row(embeddings)
    left, right = (_unit(embeddings[list(side)].float() - mean) for side in zip(*pairs, strict=True))
    related = (left * right).sum(1).numpy()
    # Each partner moves on by a fixed step within its part of the vocabulary, so that frequency is the same.
    unrelated = (left * right.roll(7, 0)).sum(1).numpy()
    others = left @ right[:: -(-len(pairs) // COMPARED)].T
    closer = (others < (left * right).sum(1, keepdim=True)).float().mean(1).numpy()
    highest = np.array([pair[1] for pair in pairs])
    parts = []
    for places in np.array_split(np.arange(len(pairs)), PARTS):
        if len(places) >= MIN_IN_PART:
            auc = _auc(related[places], unrelated[places])
            parts.append((int(highest[places[0]]), int(highest[places[-1]]), auc))
    sharp, misfits = float((closer > 0.99).mean()), float((closer < 0.5).mean())
    return Fit(len(pairs), _auc(related, unrelated), tuple(parts), sharp, misfits)


def _mean_row(embeddings: torch.Tensor) -> torch.Tensor:
    """(d,) in float32, of rows without a damaged number, which would be the mean of its column.

    A large table is added up in parts, so that it is never in memory in another precision.
    """
    import torch

    total, count = torch.zeros(embeddings.shape[1]), 0
    for some in torch.split(embeddings, max(1, PART // embeddings.shape[1])):
        rows = some.float()
        low, high = torch.aminmax(rows, dim=1)
        kept = rows[(high <= HUGE) & (low >= -HUGE)]
        total, count = total + kept.sum(0), count + len(kept)
    return total / count


def fit_findings(checkpoint: Checkpoint, rows: Rows) -> list[Finding]:
    """One finding about the vocabulary and the rows.

    Args:
        rows: what is known of them: rows of noise fit no vocabulary.
    """
    if (rows.table is not None and rows.table.is_noise) or len(rows.noisy) > UNTRAINED_ROWS.problem * max(
        1, rows.tested
    ):
        return [
            RULE.finding(
                "not measured",
                "Whether the vocabulary belongs to the weights: many or all input embeddings are random numbers, which "
                "fit none.",
                advice="Mend the input embeddings first.",
            )
        ]
    table = checkpoint.model.get_input_embeddings().weight.detach().cpu()
    if len(table[:: max(1, len(table) // ROUNDED)].unique()) <= ROUNDED:
        sentence = "Whether the vocabulary belongs to the weights: the input embeddings are rounded to a few values."
        return [RULE.finding("not measured", sentence)]
    fit = vocabulary_fit(table, checkpoint.tokenizer.get_vocab())
    if fit is None:
        return [
            RULE.finding(
                "not measured",
                f"Whether the vocabulary belongs to the weights: it has fewer than {MIN_PAIRS} pairs such as river and "
                "rivers.",
            )
        ]
    return [_fit_finding(fit)]


def _fit_finding(fit: Fit) -> Finding:
    broken = [part for part in fit.parts if part[2] < PART_BROKEN]
    fits = [part for part in fit.parts if part[2] >= PART_FITS]
    words = (
        f"the input embeddings of {fit.pairs} pairs of tokens such as river and rivers are closer than those of other "
        f"pairs in {fit.auc:.0%} of comparisons (50 % is chance, a trained model is above 90 %)"
    )
    meaning = "The tokenizer gives ids whose rows belong to other tokens: texts are read as other texts."
    advice = "Compare the tokenizer files with those of the model that this one was trained from."
    if fit.auc < RULE.problem:
        return RULE.finding(
            "problem", f"The vocabulary does not belong to the weights: {words}.", meaning, advice, fit.auc
        )
    if broken and fits and len(broken) + len(fits) >= len(fit.parts) - 1 and _is_run(fit.parts, broken):
        return RULE.finding(
            "problem",
            f"The vocabulary does not belong to the weights between ids {broken[0][0]} and {broken[-1][1]}: there, "
            "the input embeddings of pairs of tokens such as river and rivers are closer than others in "
            f"{_mean(broken):.0%} of comparisons (50 % is chance), elsewhere in {_mean(fits):.0%}.",
            meaning,
            "An entry was inserted or lost, or the order changed. " + advice,
            _mean(broken),
        )
    if fit.auc < RULE.look:
        return RULE.finding(
            "look",
            f"The vocabulary may not belong to the weights: {words}.",
            "Part of the tokens may have the rows of others, or most rows were hardly trained.",
            advice,
            fit.auc,
        )
    if fit.sharp >= SHARP and fit.misfits >= MISFITS:
        return RULE.finding(
            "look",
            f"Part of the vocabulary may not belong to the weights: of {fit.pairs} pairs of tokens such as river and "
            f"rivers, {fit.sharp:.0%} have input embeddings closer than 99 % of other pairs, but {fit.misfits:.0%} are "
            "less close than half of them (1 % in trained models).",
            "Some tokens may have the rows of others, as when two vocabularies were mixed, or were hardly trained.",
            advice,
            fit.misfits,
        )
    return RULE.finding("ok", f"The vocabulary belongs to the weights: {words}.", value=fit.auc)


def _is_run(parts: Sequence[tuple[int, int, float]], broken: Sequence[tuple[int, int, float]]) -> bool:
    first = parts.index(broken[0])
    return list(parts[first : first + len(broken)]) == list(broken)


def _mean(parts: Sequence[tuple[int, int, float]]) -> float:
    return sum(part[2] for part in parts) / len(parts)


def _auc(above: np.ndarray, below: np.ndarray) -> float:
    """The share of (above, below) in the right order; ties count half."""
    in_order = np.sort(below)
    lower = np.searchsorted(in_order, above, "left") + np.searchsorted(in_order, above, "right")
    return float(lower.mean() / 2 / len(below))


def _unit(rows: torch.Tensor) -> torch.Tensor:
    return rows / rows.norm(dim=1, keepdim=True).clamp(min=1e-12)
