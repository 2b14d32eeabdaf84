"""The step that measures placement, what its tables show, and its section of a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.encoder import require_weights
from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel, Tone
from embaudit.declared.chart import interval as interval_marks
from embaudit.declared.document import Column, Part, Section, Table
from embaudit.declared.rule import Finding, Rows, Rule, interval
from embaudit.measures.placement import (
    MEASURE_VERSION,
    ROTATION,
    STRATEGIES,
    PlacementRow,
    PlacementSettings,
    PlacementTokenRow,
    Strategy,
)
from embaudit.measures.placement.places import (
    Goal,
    Placed,
    PlacedText,
    TextSearch,
    fixed_places,
    goal,
    placement_losses,
    random_places,
    rotation_places,
    text_of,
)
from embaudit.measures.run import Run
from embaudit.measures.sticky.insertion import SentenceDraw
from embaudit.measures.sticky.plan import choose_controls
from embaudit.measures.sticky.steps import measured_on
from embaudit.measures.sticky.steps.files import Sample
from embaudit.measures.sticky.steps.verdicts import severe_tokens
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
    encoder = encoder_of(spec, as_a_whole=True)
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
        require_weights(encoder_of(spec, as_a_whole=True))
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


WORST_PLACES = Rule(
    "worst_places",
    "`placement.change` of the strategy with the largest loss",
    look=0.1,
    look_if="{look} beyond the places used in the search (severity's smallest step), and the interval is above 0",
    reason="severe tokens, on average",
)


def findings(rows: Rows, settings: PlacementSettings) -> Iterator[Finding]:
    """One, about the worst positions."""
    severe = [row for row in rows("placement") if row["role"] == "severe"]
    compared = [row for row in severe if row["change"] is not None]
    if not compared:
        return
    rotation = next(row for row in severe if row["strategy"] == ROTATION)
    worst = max(compared, key=lambda row: (row["loss"], row["strategy"]))
    low, high = worst["change_low"], worst["change_high"]
    yield WORST_PLACES.finding(
        WORST_PLACES.level(worst["change"]) if (low or 0) > 0 else "ok",
        f"Placed where they hurt most ({WORDS[worst['strategy']]}), up to {worst['budget']} copies of the "
        f"{worst['tokens']} worst tokens erase {worst['loss']:.2f} of the differences between a text's similarities, "
        f"against {rotation['loss']:.2f} at the positions of the search: "
        f"{worst['change']:+.2f}{interval(low, high, '+.2f')}.",
        "Whoever can choose the positions does more harm than the tokens' severity suggests.",
        "embaudit query placement-tokens",
        *(worst["change"], low, high),
    )


FACTS = {
    "placement": (
        "SELECT * FROM placement WHERE audit_id = ? ORDER BY role DESC, strategy <> 'rotation', loss DESC, strategy"
    ),
    "placement_tokens": (
        "SELECT * FROM placement_token WHERE audit_id = ? "
        "QUALIFY row_number() OVER (PARTITION BY token_id ORDER BY loss DESC, strategy) = 1 "
        "ORDER BY loss DESC, token_id"
    ),
}
WORDS = {
    "rotation": "as in the search",
    "prefix": "at the beginning",
    "suffix": "at the end",
    "random": "at random",
    "interleaved": "between the words",
    "sentence_ends": "at the ends of sentences",
    "best_random": "worst of several random",
    "greedy": "greedy search",
    "gradient": "gradient-guided search",
}
TONES: dict[str, Tone] = {"severe": "problem", "ordinary": "soft"}
LOSS = {"strategy": Column("positions", words=WORDS), "loss": Column("loss [95 %]", ".3f", ".2f")}
WHERE = {"copies": Column("copies", ".1f"), "place": Column("where", ".2f")}
STRATEGY_COLUMNS = {
    **{"role": Column("tokens"), **LOSS, "change": Column("change [95 %]", "+.3f", "+.2f")},
    **{"loss_seen": Column("seen", ".3f"), **WHERE, "encodes": Column("encodes", ",d")},
}
TOKEN_COLUMNS = {"token": Column("token"), **LOSS, **WHERE, "example": Column("first sentence", is_prose=True)}


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    rows = facts["placement"]
    return Section("Where sticky tokens do most harm", list(_parts(rows, facts["placement_tokens"]))) if rows else None


def _parts(rows: list[dict[str, Any]], worst: list[dict[str, Any]]) -> Iterator[Part]:
    first = rows[0]
    yield _chart(rows)
    yield Table.of(
        STRATEGY_COLUMNS,
        rows,
        f"Up to {first['budget']} copies of {first['tokens']:,} severe tokens in {first['draws']:,} sentences; seen: "
        "the loss on the sentences that the search used; where: 0 is the start of the text, 1 its end",
        more="embaudit query placement",
    )
    yield Table.of(TOKEN_COLUMNS, worst, "Each token where it hurts most", more="embaudit query placement-tokens")


def _chart(rows: list[dict[str, Any]]) -> Chart:
    places = [WORDS[name] for name in STRATEGIES if any(row["strategy"] == name for row in rows)]
    marks, ends = [], []
    for row in rows:
        words = WORDS[row["strategy"]]
        said = f"{row['role']}, {words}: {row['loss']:.3f}"
        marks.append(Mark(x=row["loss"], y=words, series=row["role"], label=said))
        ends += [
            Mark(x=one.y, x2=one.y2, y=words, series=row["role"])
            for one in interval_marks(words, row["loss_low"], row["loss_high"])
        ]
    unit = [Mark(x=row["loss"]) for row in rows if row["strategy"] == ROTATION and row["role"] == "severe"]
    layers = [
        Layer("rule", unit, "soft", is_dashed=True, is_data=False),
        Layer("rule", ends, is_data=False),
        Layer("point", marks, size=2),
    ]
    return Chart(
        "Loss by position of the copies",
        "Each point is the loss under one strategy, with its 95 % interval, for severe tokens (mean) and ordinary "
        "tokens (median). The dashed line is the severe tokens' loss at the positions of the search. Points to its "
        "right are positions that do more harm than the audit's severity suggests.",
        [[Panel(layers, Axis("loss", ".2f"), Axis(categories=places), width=500, height=240)]],
        tones=TONES,
        more="embaudit query placement",
    )
