"""Where copies of tokens do most harm, as a step: every strategy in every sentence, and its losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.weighted import require_weights
from embaudit.measures.placement import (
    MEASURE_VERSION,
    ROTATION,
    STRATEGIES,
    PlacementRow,
    PlacementSettings,
    PlacementTokenRow,
    Strategy,
)
from embaudit.measures.placement.losses import placement_losses
from embaudit.measures.placement.places import PlacedText, fixed_places, random_places, rotation_places, text_of
from embaudit.measures.placement.search import Goal, Placed, TextSearch, goal
from embaudit.measures.run import Run
from embaudit.measures.sticky.insertion import SentenceDraw
from embaudit.measures.sticky.plan import choose_controls
from embaudit.measures.sticky.steps import measured_on
from embaudit.measures.sticky.steps.files import Sample
from embaudit.measures.sticky.steps.severe import severe_tokens
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, encoder_of
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import Outputs, step
from embaudit.words.errors import NotMeasurable


@step(
    "placement",
    version=MEASURE_VERSION,
    tables=(PlacementRow, PlacementTokenRow),
    name="placements",
    reads=("draws", "budget", "tries", "guided", "resamples"),
)
def placements(
    out: Outputs,
    spec: CheckpointSpec,
    sample: Sample,
    severe: dict[str, str],
    ordinary: list[int],
    strategies: list[Strategy],
    settings: PlacementSettings,
) -> None:
    """Tables ``placement`` and ``placement_token``.

    Tokens are placed in the sentences of the validation. The search for places uses the scan's anchors, and its result
    is measured against those of the validation.

    Args:
        severe: token id -> token, worst first.
    """
    encoder = encoder_of(spec)
    points = sample.points(encoder, "validation", copies=settings.budget, draws=settings.draws)
    judges = goal(encoder, points.draws, sample.sentence_set("scoring").anchors)
    tokens = np.array([*map(int, severe), *ordinary], dtype=np.int64)
    texts = [text_of(encoder.checkpoint, draw) for draw in points.draws]
    by_text = []
    with tracked("placements", len(texts)) as advance:
        for place, (draw, text) in enumerate(zip(points.draws, texts, strict=True)):
            search = TextSearch(encoder, text, tokens, judges.directions[place])
            by_text.append({name: place_by(name, search, text, draw, settings, sample.seed) for name in strategies})
            advance(1)
    placed = {name: [found[name] for found in by_text] for name in strategies}
    vectors = {name: np.stack([found.vectors for found in held], axis=1) for name, held in placed.items()}
    count = len(severe)
    losses = placement_losses(points, vectors, range(count), range(count, len(tokens)), settings.resamples, sample.seed)
    rows: list[dict[str, Any]] = []
    of_tokens: list[dict[str, Any]] = []
    for strategy, measured in losses.items():
        seen = _loss_seen(judges, vectors[strategy], vectors[ROTATION], count)
        copies = np.stack([found.copies for found in placed[strategy]], axis=1)
        stand = np.stack([_relative(found, text) for found, text in zip(placed[strategy], texts, strict=True)], axis=1)
        for role, part, loss in (
            ("severe", slice(count), measured.severe),
            ("ordinary", slice(count, None), measured.ordinary),
        ):
            rows.append(
                {
                    **{"strategy": strategy, "role": role, **loss.columns(), "loss_seen": seen[role]},
                    **{"copies": float(copies[part].mean()), "place": float(stand[part].mean())},
                    **{"tokens": len(copies[part]), "draws": len(texts), "budget": settings.budget},
                    "encodes": round(np.mean([found.encodes for found in placed[strategy]])),
                }
            )
        for row, (token_id, token) in enumerate(severe.items()):
            of_tokens.append(
                {
                    **{
                        "strategy": strategy,
                        "token_id": int(token_id),
                        "token": token,
                        **measured.tokens[row].columns(),
                    },
                    **{"copies": float(copies[row].mean()), "place": float(stand[row].mean())},
                    "example": _example(encoder, texts[0], placed[strategy][0].gaps[row], int(token_id)),
                }
            )
    out.rows(PlacementRow, rows, encodes=encoder.texts)
    out.rows(PlacementTokenRow, of_tokens)


def place_by(
    strategy: Strategy, search: TextSearch, text: PlacedText, draw: SentenceDraw, settings: PlacementSettings, seed: int
) -> Placed:
    """Place all tokens in one text."""
    if strategy == "greedy":
        return search.greedy(settings.budget)
    if strategy == "gradient":
        return search.guided(settings.budget, settings.guided)
    if strategy == ROTATION:
        return search.at(rotation_places(text, draw)[None])
    if strategy in ("random", "best_random"):
        tries = settings.tries if strategy == "best_random" else 1
        return search.at(random_places(text, settings.budget, settings.tries, seed)[:tries])
    return search.at(fixed_places(text, settings.budget)[strategy][None])


def possible_strategies(spec: CheckpointSpec) -> tuple[list[Strategy], str]:
    """The strategies that this checkpoint allows, and why ``gradient`` is not among them; empty if it is."""
    try:
        require_weights(encoder_of(spec))
    except NotMeasurable as error:
        return [name for name in STRATEGIES if name != "gradient"], error.happened
    return list(STRATEGIES), ""


def _loss_seen(judges: Goal, vectors: np.ndarray, rotation: np.ndarray, count: int) -> dict[str, float]:
    slopes, unit = judges.slope(vectors), np.median(judges.slope(rotation)[count:])
    return {
        "severe": float(1 - slopes[:count].mean() / unit),
        "ordinary": float(1 - np.median(slopes[count:]) / unit),
    }


def _relative(found: Placed, text: PlacedText) -> np.ndarray:
    """(T,) mean position of the copies, from 0 (start) to 1 (end)."""
    held = found.gaps >= 0
    means: np.ndarray = np.where(held, found.gaps, 0).sum(axis=1) / held.sum(axis=1) / max(text.gaps - 1, 1)
    return means


def _example(encoder: Encoder, text: PlacedText, gaps: np.ndarray, token_id: int) -> str:
    filled = text.filled(gaps[gaps >= 0][None], np.array([token_id]))[0]
    inside = filled[len(text.head) : len(filled) - len(text.tail)]
    return str(encoder.checkpoint.tokenizer.decode(inside.tolist()))


def measure(run: Run) -> list[Staged]:
    """Place the worst tokens by every strategy; only a note if no token is severe."""
    settings = run.settings(PlacementSettings)
    ground = measured_on(run)
    tokens, sample = ground.tokens, ground.sample
    entries = {row["token_id"]: row for row in read_rows([tokens.path])}
    severe = severe_tokens(run, settings.tokens, settings.severity, entries)
    if not severe:
        return [run.note("Nothing to place: the search found no severe token that a text can contain.")]
    worst = severe[: settings.tokens_placed]
    controls = choose_controls(list(entries.values()), np.array(severe), settings.ordinary, run.seed)
    strategies, why_not = possible_strategies(run.spec)
    left_out = [run.note(f"Skipped gradient-guided placement: {why_not}")] if why_not else []
    placed = run(
        placements,
        run.spec,
        sample,
        {str(token): entries[token]["token"] for token in worst},
        controls.tolist(),
        strategies,
        settings,
    )
    return [tokens, *left_out, *placed]
