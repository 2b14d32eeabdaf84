"""What the steps of the sticky-token measure work on: shards of tokens, and staged files with their columns.

Sums over similarities (``moments``) are not published; the ``sticky_*`` tables are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict

from embaudit.checkpoint import Encoder
from embaudit.measures.sticky.insertion import SentencePair, SentenceSet
from embaudit.measures.sticky.moments import Moments
from embaudit.measures.sticky.points import SCORING_GROUPS, VALIDATION_GROUPS, Points, every_against_every, given_pairs
from embaudit.steps.results import NOT_IN_KEY, CheckpointSpec, Staged, encoder_of
from embaudit.steps.staging.stage import read_rows, read_table

Purpose = Literal["scoring", "validation"]


class Sample(BaseModel):
    """What tokens are inserted into, how often and where, and u; an argument of every step that measures."""

    model_config = ConfigDict(frozen=True)

    sentences: Staged
    pairs: Staged
    similarity: Staged
    copies: int
    seed: int

    @property
    def u(self) -> float:
        return read_u(self.similarity)

    def points(
        self, encoder: Encoder, purpose: Purpose, *, copies: int | None = None, draws: int | None = None
    ) -> Points:
        """Draws and anchors of a purpose.

        Args:
            copies: number of copies; None: as in the search.
            draws: number of draws; None: all.

        Raises:
            MeasureError: if no point lies below u, or the similarities do not differ.
        """
        groups = {"scoring": SCORING_GROUPS, "validation": VALIDATION_GROUPS}[purpose]
        n = self.copies if copies is None else copies
        given = read_pairs(self.pairs, purpose)
        if given and purpose == "validation":
            if draws is None:
                return given_pairs(encoder, given, self.u, n, self.seed)
            spread = np.linspace(0, len(given) - 1, min(draws, len(given))).round().astype(int)
            return given_pairs(encoder, [given[place] for place in spread], self.u, n, self.seed, rotate_operators=True)
        chosen = self.sentence_set(purpose)
        return every_against_every(encoder, chosen.draws[:draws], chosen.anchors, self.u, n, self.seed, groups)

    def sentence_set(self, purpose: Purpose) -> SentenceSet:
        """The sentences of a purpose; of given pairs, the second sentences are draws and the first are anchors."""
        given = read_pairs(self.pairs, purpose)
        if given:
            return SentenceSet(tuple(pair.second for pair in given), tuple(pair.first for pair in given))
        rows = [row for row in read_rows([self.sentences.path]) if row["purpose"] == purpose]
        draws, anchors = ([row["sentence"] for row in rows if row["role"] == role] for role in ("draw", "anchor"))
        return SentenceSet(tuple(draws), tuple(anchors))


def points_of(spec: CheckpointSpec, sample: Sample, purpose: Purpose) -> Points:
    """``Sample.points`` in the audit's own precision: only the scan's many encodes may use a cheaper one.

    A process encodes the anchors once for all its steps.
    """
    return _points(spec, sample.model_dump_json(), purpose)


@lru_cache(maxsize=2)
def _points(spec: CheckpointSpec, sample: str, purpose: Purpose) -> Points:
    return Sample.model_validate_json(sample).points(encoder_of(spec), purpose)


def read_u(similarity: Staged) -> float:
    """u of the vocabulary's token strings."""
    return float(read_rows([similarity.path])[0]["u"])


def sentence_rows(purpose: Purpose, chosen: SentenceSet) -> list[dict[str, Any]]:
    """Rows of ``sticky_sentence``."""
    return [
        {"purpose": purpose, "role": role, "position": position, "sentence": sentence}
        for role, sentences in (("draw", chosen.draws), ("anchor", chosen.anchors))
        for position, sentence in enumerate(sentences)
    ]


def pair_rows(purpose: str, pairs: Iterable[SentencePair]) -> list[dict[str, Any]]:
    """Rows of ``sticky_pair``."""
    return [
        {
            "purpose": purpose,
            "position": position,
            "first": pair.first,
            "second": pair.second,
            "similarity": pair.similarity,
        }
        for position, pair in enumerate(pairs)
    ]


def read_pairs(pairs: Staged, purpose: str) -> list[SentencePair]:
    return [
        SentencePair(row["first"], row["second"], row["similarity"])
        for row in read_rows([pairs.path])
        if row["purpose"] == purpose
    ]


def read_frame(part: Staged) -> pd.DataFrame:
    return read_table(part.path).to_pandas()


def moment_columns(
    token_ids: np.ndarray, draws: Sequence[int], moments: Moments
) -> tuple[list[dict[str, np.ndarray]], dict[str, str]]:
    """One block of rows per draw, and their schema."""
    names = Moments.names(moments.groups)
    blocks = [
        {
            "token_id": token_ids,
            "draw": np.full(len(token_ids), draw),
            **{name: moments.values[:, place, index] for index, name in enumerate(names)},
        }
        for place, draw in enumerate(draws)
    ]
    return blocks, {"token_id": "int32", "draw": "int32", **dict.fromkeys(names, "float64")}


def read_moments(parts: Sequence[Staged]) -> tuple[np.ndarray, list[int], Moments]:
    """(token ids ascending, draws, sums) from files with the same draws of different tokens."""
    ids, found = [], []
    draws: list[int] = []
    for part in parts:
        frame = read_frame(part)
        draws = sorted(int(draw) for draw in frame["draw"].unique())
        # One block per draw, each with all tokens in the same order.
        values = frame.drop(columns=["token_id", "draw"]).to_numpy().reshape(len(draws), -1, frame.shape[1] - 2)
        ids.append(frame["token_id"].to_numpy()[: values.shape[1]])
        found.append(values.transpose(1, 0, 2))
    token_ids = np.concatenate(ids).astype(np.int64)
    order = np.argsort(token_ids, kind="stable")
    return token_ids[order], draws, Moments(np.concatenate(found)[order])


def join_stages(stages: Sequence[Sequence[Staged]]) -> tuple[np.ndarray, list[int], Moments]:
    """Like ``read_moments``, for the tokens of the last stage with their draws from all stages."""
    ids, draws, moments = read_moments(stages[0])
    for stage in stages[1:]:
        later_ids, later_draws, later = read_moments(stage)
        held = moments.values[np.searchsorted(ids, later_ids)]
        ids, draws, moments = later_ids, draws + later_draws, Moments(np.concatenate([held, later.values], axis=1))
    return ids, draws, moments


# What few tokens are divided into, so that several workers have a share, where each shard has work for seconds.
SHARDS, ENCODES_PER_SHARD = 8, 4_096


class TokenShard(BaseModel):
    """Some of the tokens of a scan, and what its progress shows.

    Attributes:
        label: what is done, the same for all shards.
        total: work of all shards together, in encodes (tokens for the reference protocol).
    """

    model_config = ConfigDict(frozen=True)

    token_ids: tuple[int, ...]
    label: Annotated[str, NOT_IN_KEY]
    number: Annotated[int, NOT_IN_KEY]
    total: Annotated[int, NOT_IN_KEY]


def token_shards(token_ids: np.ndarray, size: int, total: int, label: str) -> list[dict[str, Any]]:
    """Shards of ``size`` tokens each.

    Args:
        total, label: the same for all shards (``TokenShard``).
    """
    return [
        {
            "shard": TokenShard(
                token_ids=token_ids[start : start + size].tolist(), number=number, total=total, label=label
            )
        }
        for number, start in enumerate(range(0, len(token_ids), size))
    ]
