"""Tokens put into texts: which ones, where they stand, and what they do to a score.

⌈words/10⌉ copies are put before the text in half of the texts, after it in the others. The text is cut to make room, so
that all copies are read; of a text beyond the length limit, only the words that are read count. Copies are inserted as
ids, so the model reads the token itself and not what its text becomes next to a word.

For arm a with a set T_a of tokens, s(t) a task's score with t in the texts and s(0) without:

    score_a = mean over T_a of s(t);   change_a = score_a − s(0);   beyond_a = score_a − score_ordinary

Intervals are paired (``embaudit.corpora.downstream``) and treat the tokens of an arm as fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.corpora.downstream import PairedScores, Scored
from embaudit.corpora.draw import content_order
from embaudit.declared.rule import Rows
from embaudit.measures.sticky.plan import choose_controls
from embaudit.words.errors import NotMeasurable
from embaudit.words.estimate import Estimate

ArmName = Literal["ordinary", "retention", "definition", "reference", "given"]
ORDINARY: ArmName = "ordinary"
Row = Mapping[str, Any]


def found_arms(rows: Rows, tokens_per_arm: int) -> dict[ArmName, list[int]]:
    """The worst reachable candidates of each protocol of an audit, worst first.

    ``reference`` is included if the audit ran the published protocol, too.
    """
    reachable = {row["token_id"] for row in rows("token") if row["is_reachable"]}
    candidates = [row for row in rows("sticky_validation") if row["role"] == "candidate"]
    # Only a protocol's own candidates have a q-value.
    own = {
        protocol: [row for row in candidates if row["protocol"] == protocol and row["q_value"] is not None]
        for protocol in ("retention", "definition")
    }
    published = [row for row in rows("sticky_reference") if row["value"] is not None]
    worst_first: dict[ArmName, list[int]] = {
        "retention": _worst(own["retention"], lambda row: row["loss"]),
        "definition": _worst(own["definition"], lambda row: row["pull"]),
        "reference": _worst(published, lambda row: row["value"]),
    }
    arms = {
        arm: [token for token in tokens if token in reachable][:tokens_per_arm] for arm, tokens in worst_first.items()
    }
    return {arm: tokens for arm, tokens in arms.items() if tokens}


def with_ordinary(
    arms: Mapping[ArmName, list[int]], vocabulary: Sequence[Row], tokens_per_arm: int, seed: int
) -> dict[ArmName, list[int]]:
    """The arms, preceded by an arm of ordinary tokens, none of which is in another arm.

    Raises:
        MeasureError: if the vocabulary has no ordinary token.
    """
    taken = np.array(sorted({token for tokens in arms.values() for token in tokens}), dtype=np.int64)
    return {ORDINARY: choose_controls(vocabulary, taken, tokens_per_arm, seed).tolist(), **arms}


def _worst(rows: Sequence[Row], badness: Callable[[Row], float]) -> list[int]:
    return [row["token_id"] for row in sorted(rows, key=lambda row: (-badness(row), row["token_id"]))]


WORDS_PER_COPY = 10


@dataclass(frozen=True)
class PoisonedTexts:
    """Texts with copies.

    Attributes:
        sequences: ids of each text as the model reads them: prompt, special tokens, copies and content.
        copies: (n,) number of copies in each text; all are read.
        shortened: (n,) bool: texts that lose content that would be read without copies.
    """

    sequences: list[list[int]]
    copies: np.ndarray
    shortened: np.ndarray


def poison(encoder: Encoder, texts: Sequence[str], token_id: int, seed: int) -> PoisonedTexts:
    """Each text with copies of a token; whether they come first depends on seed and content.

    Raises:
        NotMeasurable: if the length limit leaves no room for copies.
    """
    checkpoint = encoder.checkpoint
    limit = checkpoint.content_limit
    in_front = order_of(texts, seed) % 2 == 0
    sequences, copies, shortened = [], np.empty(len(texts), dtype=np.int64), np.empty(len(texts), dtype=bool)
    for place, (text, ids) in enumerate(zip(texts, encoder.own_ids(texts), strict=True)):
        count = copies_for(len(text.split()), len(ids), limit)
        if count >= limit:
            raise NotMeasurable(f"{count} copies leave no room for a text in {limit} tokens.")
        content = checkpoint.cut(ids, limit - count)
        shortened[place] = len(content) < min(len(ids), limit)
        inserted = [token_id] * count
        sequences.append(checkpoint.with_special_tokens(inserted + content if in_front[place] else content + inserted))
        copies[place] = count
    return PoisonedTexts(sequences, copies, shortened)


def copies_for(words: int, tokens: int, limit: int) -> int:
    """⌈words/10⌉ for the words that are read: if the text exceeds the limit, proportionally fewer."""
    # In integers: a floating-point share of 250 words may be 250.00000000000003.
    return -(-words * min(tokens, limit) // (max(tokens, 1) * WORDS_PER_COPY))


def poisoned_half(texts: Sequence[str], seed: int) -> np.ndarray:
    """(n,) bool: the half of the texts that get copies if half of a collection does."""
    return order_of(texts, seed) < len(texts) / 2


def order_of(texts: Sequence[str], seed: int) -> np.ndarray:
    """(n,) the rank of each text in a random order determined by seed and content."""
    # Different from the order in which texts are sampled, where documents that are relevant to no query come first.
    order = content_order([f"copies\n{text}" for text in texts], seed)
    ranks = np.empty(len(texts), dtype=np.int64)
    ranks[order] = np.arange(len(texts))
    return ranks


Share = Literal["half", "all"]
# An arm of tokens, and the share of texts with copies.
Cell = tuple[str, Share]


@dataclass(frozen=True)
class ArmEffect:
    """The effect of an arm, or of one of its tokens.

    Attributes:
        beyond: the change compared with ordinary tokens; None for ordinary tokens.
    """

    score: float | None
    change: Estimate
    beyond: Estimate | None = None


@dataclass(frozen=True)
class CellEffects:
    """Effects of an arm (mean over its tokens) and of each token."""

    arm: ArmEffect
    tokens: tuple[ArmEffect, ...]


def clean_and_poisoned(
    task: Scored,
    clean: np.ndarray,
    poisoned: Mapping[Cell, Sequence[np.ndarray]],
    resamples: int,
    seed: int,
) -> tuple[float | None, dict[Cell, CellEffects]]:
    """The score on clean texts, and the effects in every cell.

    Args:
        clean: the task's outcomes on clean texts.
        poisoned: by cell, the outcomes with each of its tokens.
    """
    paired = PairedScores(
        task, [clean, *(outcome for tokens in poisoned.values() for outcome in tokens)], resamples, seed
    )
    places: dict[Cell, list[int]] = {}
    for cell, tokens in poisoned.items():
        start = 1 + sum(map(len, places.values()))
        places[cell] = list(range(start, start + len(tokens)))

    def effect(of: list[int], cell: Cell) -> ArmEffect:
        found = ArmEffect(paired.score(of), paired.difference(of, [0]))
        ordinary = places.get((ORDINARY, cell[1]))
        if cell[0] == ORDINARY or not ordinary:
            return found
        return replace(found, beyond=paired.difference(of, ordinary))

    return paired.score([0]), {
        cell: CellEffects(effect(own, cell), tuple(effect([one], cell) for one in own)) for cell, own in places.items()
    }
