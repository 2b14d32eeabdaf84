"""Is this token sticky? Measures a few tokens in full without a scan, for ``embaudit token``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.checkpoint.encoder import Progress, no_progress
from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.effects import measure_effects
from embaudit.measures.sticky.insertion import OPERATORS
from embaudit.measures.sticky.moments import insert_tokens, rho
from embaudit.measures.sticky.plan import choose_controls
from embaudit.measures.sticky.points import Points
from embaudit.measures.sticky.reference import distances, prepare_reference, sticky_scores, validation_values
from embaudit.words.errors import UsageError

DESCRIBED = ("token", "text", "category", "is_reachable", "origin", "script")
TEXT_MARK = "text:"


def find_token(checkpoint: Checkpoint, wanted: str) -> int:
    """The id for a user's input: an id, a vocabulary string (``##ing``), or a text that is a single token.

    ``text:7`` is the text 7, not the id.

    Raises:
        UsageError: if the checkpoint has no such token; the message says which tokens the text consists of.
    """
    tokenizer = checkpoint.tokenizer
    if wanted.isascii() and wanted.isdigit():
        if int(wanted) >= checkpoint.vocabulary_size:
            raise UsageError(
                f"There is no token {wanted}: {checkpoint.resolved.ref} has ids from 0 to "
                f"{checkpoint.vocabulary_size - 1}.",
                next_step=f"For the text {wanted!r} write {TEXT_MARK}{wanted}.",
            )
        return int(wanted)
    text = wanted.removeprefix(TEXT_MARK)
    entry = tokenizer.get_vocab().get(text)
    # Without the prompt: the text is looked up, not encoded.
    ids = tokenizer(text, add_special_tokens=False)["input_ids"] if entry is None else [entry]
    # A text that becomes the unknown token is not in the vocabulary.
    if len(ids) != 1 or (entry is None and ids[0] == tokenizer.unk_token_id):
        pieces = " ".join(tokenizer.convert_ids_to_tokens(ids))
        raise UsageError(
            f"{text!r} is not a token of {checkpoint.resolved.ref}: it becomes {pieces or 'nothing'}.",
            next_step="Give one of these, or an id." if pieces else "Give an id.",
        )
    if ids[0] >= checkpoint.vocabulary_size:
        raise UsageError(
            f"The tokenizer knows {text!r} as id {ids[0]}, but the model has no embedding for it.",
            next_step="Give another token; embaudit check says which ids have none.",
        )
    return int(ids[0])


def inspect_tokens(
    encoder: Encoder,
    points: Points,
    token_ids: Sequence[int],
    vocabulary: Sequence[Mapping[str, Any]],
    settings: StickySettings,
    seed: int,
    progress: Progress = no_progress,
) -> list[dict[str, Any]]:
    """``definition`` and ``retention`` of each token, in the given order, one object each.

    ``retention`` is the slope; ``rho_0`` and ``rho`` are over the points below u, by operator and over all three.
    Loss, excess and p-values are relative to ordinary tokens, as many as the profile says.
    """
    wanted = np.array(token_ids, dtype=np.int64)
    controls = choose_controls(vocabulary, wanted, settings.controls, seed)
    every = np.concatenate([np.unique(wanted), controls])
    moments = insert_tokens(encoder, points, every, range(len(points.draws)), progress)
    measured = measure_effects(points, moments, np.isin(every, controls), settings.resamples, seed)
    effects = dict(zip(every.tolist(), measured, strict=True))
    by_operator = {}
    for operator in OPERATORS:
        held = [place for place, draw in enumerate(points.draws) if draw.operator == operator]
        by_operator[f"rho_{operator}"] = rho(points.at(held), moments.at(slice(None), held))
    place = {token: index for index, token in enumerate(every.tolist())}
    found = []
    for token_id in token_ids:
        effect = effects[token_id]
        found.append(
            {
                **_described(vocabulary, token_id),
                "u": points.u,
                "draws": len(points.draws),
                "anchors": len(points.anchors),
                "points": points.count,
                "points_below_u": int(points.below_u.sum()),
                "controls": len(controls),
                "rho_0": effect.rho_0,
                "rho": effect.rho,
                **{name: float(values[place[token_id]]) for name, values in by_operator.items()},
                "pull": effect.pull,
                "pull_low": effect.pull_low,
                "pull_high": effect.pull_high,
                "excess_pull": effect.excess_pull,
                "pull_p_value": effect.p_pull,
                "retention": effect.slope,
                "retention_low": effect.slope_low,
                "retention_high": effect.slope_high,
                "retention_p_value": effect.p_slope,
                "loss": effect.loss,
                "loss_low": effect.loss_low,
                "loss_high": effect.loss_high,
                "focal_point": effect.focal_point,
                "focal_low": effect.focal_low,
                "focal_high": effect.focal_high,
                "sticks_to": effect.sticks_to,
                "severity": effect.severity,
                "shift": effect.shift,
                "compression": effect.compression,
                "near_u_05": effect.near_u_05,
                "near_u_10": effect.near_u_10,
            }
        )
    return found


def inspect_reference(
    encoder: Encoder,
    validation: Sequence[tuple[str, str]],
    scoring: Sequence[tuple[str, str]] | None,
    token_ids: Sequence[int],
    vocabulary: Sequence[Mapping[str, Any]],
    copies: int,
    seed: int,
    progress: Progress = no_progress,
) -> list[dict[str, Any]]:
    """The ``reference`` protocol's ``value`` of each token, and its ``score`` if scoring pairs are given."""
    texts = [decoded(encoder.checkpoint, token_id) for token_id in token_ids]
    inputs = prepare_reference(encoder, validation, copies, seed)
    values = validation_values(inputs, distances(encoder, inputs, texts, progress))
    scores: list[float | None] = [None] * len(texts)
    if scoring:
        given = prepare_reference(encoder, scoring, copies, seed)
        scores = sticky_scores(encoder, given, texts, distances(encoder, given, texts, progress)).tolist()
    return [
        {**_described(vocabulary, token_id), "inserted": text, "value": float(value), "score": score}
        for token_id, text, value, score in zip(token_ids, texts, values, scores, strict=True)
    ]


def decoded(checkpoint: Checkpoint, token_id: int) -> str:
    """The text that the ``reference`` protocol inserts: the id decoded alone, as published."""
    text: str = checkpoint.tokenizer.decode([token_id], clean_up_tokenization_spaces=False)
    return text


def _described(vocabulary: Sequence[Mapping[str, Any]], token_id: int) -> dict[str, Any]:
    entry = next(row for row in vocabulary if row["token_id"] == token_id)
    return {"id": token_id, **{name: entry[name] for name in DESCRIBED}}
