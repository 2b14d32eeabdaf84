"""Where in a document evidence counts: it is moved through documents of one length, and what it loses there is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel, Tone
from embaudit.declared.chart import interval as interval_marks
from embaudit.declared.document import Column, Part, Section, Table
from embaudit.declared.rule import Finding, Level, Rows, Rule, interval, number
from embaudit.measures.collection import Searched, best_of, collection_of, is_written, read_collection, start_of
from embaudit.measures.position import (
    ALONE,
    BEYOND,
    DEPTHS,
    MEASURE_VERSION,
    START,
    PositionRow,
    PositionSettings,
    PositionSummaryRow,
)
from embaudit.measures.run import Run
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, encoder_of
from embaudit.steps.step import Outputs, step
from embaudit.words.errors import NotMeasurable
from embaudit.words.estimate import Estimate

if TYPE_CHECKING:
    from embaudit.checkpoint import Encoder
    from embaudit.measures.position.depths import Duel

SEED = 0


@step(
    "position",
    version=MEASURE_VERSION,
    tables=(PositionRow, PositionSummaryRow),
    name="position of evidence",
    reads=("moved", "tokens", "evidence_tokens"),
)
def moved_evidence(out: Outputs, spec: CheckpointSpec, collection: Staged, settings: PositionSettings) -> None:
    """Tables ``position`` and ``position_summary``.

    Raises:
        NotMeasurable: if no two queries have evidence and filler, or the checkpoint reads too few tokens.
    """
    from embaudit.measures.position.depths import MOST_EVIDENCE, draw_duels, is_lost

    searched = read_collection(collection)
    encoder = encoder_of(spec, "document")
    limit = encoder.checkpoint.content_limit
    tokens = min(settings.tokens, limit)
    length = min(settings.evidence_tokens, tokens // MOST_EVIDENCE)
    if length < 1:
        raise NotMeasurable(f"documents are read up to {limit} tokens only.")
    own = encoder.own_ids(searched.collection.documents)
    evidence = _evidence(encoder, searched, length)
    drawn = draw_duels(searched.collection, evidence, own, tokens, settings.moved, SEED)
    if not drawn.duels:
        raise NotMeasurable(
            f"no two queries have evidence that the tokenizer can write, and irrelevant texts of {tokens} tokens."
        )
    rows = _rows(encoder, searched, drawn.duels)
    out.rows(PositionRow, rows, encodes=encoder.texts)
    lost = [row["depth"] for row in rows if row["depth"] in DEPTHS and is_lost(row["gain_low"], row["kept"])]
    summary = {
        "data_set": searched.collection.name,
        "length_limit": limit,
        "tokens": tokens,
        "evidence_tokens": float(np.mean([duel.length for duel in drawn.duels])),
        "queries": 2 * len(drawn.duels),
        "unwritten": drawn.unwritten,
        "left_out": drawn.left_out,
        "documents": len(own),
        "truncated": sum(len(ids) > limit for ids in own),
        "lost_from": lost[0] if lost else None,
    }
    out.rows(PositionSummaryRow, [summary])


def _evidence(encoder: Encoder, searched: Searched, length: int) -> dict[int, list[int]]:
    """The beginning of each query's best document, if the tokenizer can write it."""
    unknown = encoder.checkpoint.tokenizer.unk_token_id
    found = {}
    for place in sorted({best_of(relevant) for relevant in searched.collection.relevant}):
        ids = start_of(searched.collection.documents[place], length, encoder.own_ids)
        if is_written(ids, unknown):
            found[place] = ids
    return found


def _rows(encoder: Encoder, searched: Searched, duels: Sequence[Duel]) -> list[dict[str, Any]]:
    from embaudit.measures.position.depths import Gains, is_lost

    words = _words(encoder, searched, duels)
    made = {ALONE: [list(ids) for duel in duels for ids in duel.evidence]}
    made |= {name: [duel.document(side, depth) for duel in duels for side in (0, 1)] for name, depth in DEPTHS.items()}
    flat = [encoder.checkpoint.with_special_tokens(ids) for of_depth in made.values() for ids in of_depth]
    with tracked("position", len(flat)) as advance:
        vectors = encoder.encode_ids(flat, advance).reshape(len(made), len(duels), 2, -1)
    gains = {
        name: Gains.of(similarities_of(searched, duels, of_depth)) for name, of_depth in zip(made, vectors, strict=True)
    }
    rows = []
    for name, gain in gains.items():
        moved = name != ALONE
        row: dict[str, Any] = {
            "depth": name,
            "is_read": True,
            "tokens_before": float(np.mean([duel.before(DEPTHS[name]) for duel in duels])) if moved else None,
            "queries": 2 * len(duels),
            "score": gain.score,
            **gain.mean.columns("gain"),
            **(gain.change(gains[START]) if moved else Estimate()).columns("change"),
            "kept": gain.kept(gains[START]),
            **gain.won.columns("won"),
            "words_gain": words[ALONE if name == ALONE else START],
        }
        rows.append(row | {"is_lost": is_lost(row["gain_low"], row["kept"])})
    return [*rows, _beyond(encoder, rows[1], words[START])]


def _beyond(encoder: Encoder, start: dict[str, Any], words_gain: float | None) -> dict[str, Any]:
    """Whatever the evidence is, the tokens that are read are those of the filler: nothing is encoded to know this."""
    return start | {
        "depth": BEYOND,
        "is_read": False,
        "tokens_before": float(encoder.checkpoint.content_limit),
        "score": None,
        **Estimate(0.0).columns("gain"),
        **Estimate(-start["gain"]).columns("change"),
        **Estimate(0.5).columns("won"),
        "kept": None if start["kept"] is None else 0.0,
        "words_gain": words_gain,
        "is_lost": True,
    }


def similarities_of(searched: Searched, duels: Sequence[Duel], documents: np.ndarray) -> np.ndarray:
    """(duels, 2, 2) similarities of each query of a duel to its (duels, 2, d) documents."""
    from embaudit.measures.quality.passes import of_all

    queries = searched.queries[np.array([duel.queries for duel in duels])]
    return np.stack(
        [of_all(asked, known, searched.similarity) for asked, known in zip(queries, documents, strict=True)]
    )


def _words(encoder: Encoder, searched: Searched, duels: Sequence[Duel]) -> dict[str, float | None]:
    """The mean gain by TF-IDF, which knows no order: in a document, and of the evidence alone."""
    from embaudit.measures.position.depths import Gains
    from embaudit.measures.quality.measured import TFIDF, pair_overlap

    def written(ids: Sequence[int]) -> str:
        return str(encoder.checkpoint.tokenizer.decode(list(ids), skip_special_tokens=True))

    asked = [searched.collection.queries[query] for duel in duels for query in duel.queries for _ in (0, 1)]
    found: dict[str, float | None] = {}
    for name, filler in ((ALONE, False), (START, True)):
        texts = [
            f"{written(duel.evidence[side])} {written(duel.filler) if filler else ''}"
            for duel in duels
            for _ in duel.queries
            for side in (0, 1)
        ]
        overlap = pair_overlap(asked, texts).get(TFIDF)
        found[name] = None if overlap is None else Gains.of(overlap.reshape(-1, 2, 2)).mean.value
    return found


def measure(run: Run) -> list[Staged]:
    """The evidence at each depth; a collection that cannot tell gets a note."""
    settings = run.settings(PositionSettings)
    try:
        return run(moved_evidence, run.spec, collection_of(run, settings), settings)
    except NotMeasurable as error:
        return [run.skipped("position", error)]


# Two passages in the wrong place then count as much as one in the right place. On the embedded sample, the least at any
# depth is .59 of the start for all-MiniLM-L6-v2 (.56 to .61 with other numbers of queries), .46 for the end of the 126
# tokens that paraphrase-MiniLM-L3-v2 reads (.40 to .46).
HALF = 0.5
EVIDENCE = Rule(
    "evidence",
    "`position.gain` and `position.change` of the weakest depth",
    look_if=f"below {number(HALF)} of the gain at the start (or that at the start below {number(HALF)} of another), "
    "interval of the change clear of 0",
    reason="two passages in the wrong place then count as much as one in the right place. On the sample the least is "
    ".59 for all-MiniLM-L6-v2 and .46 for paraphrase-MiniLM-L3-v2. `not measured` below ten pairs of queries, or if "
    "evidence gains nothing anywhere",
)
TOO_LONG = Rule(
    "beyond",
    "`position_summary.truncated` / `documents`",
    look=0.05,
    is_share=True,
    reason="as for `socm.cut_texts`; not a problem by itself, since documents can be cut into pieces",
)
PIECES = "Cut documents into pieces before encoding: embaudit audit CHECKPOINT --measures chunks"


def findings(rows: Rows, settings: PositionSettings) -> Iterator[Finding]:
    """Two; none if nothing was measured."""
    by_depth = {row["depth"]: row for row in rows("position")}
    for summary in rows("position_summary"):
        yield _weakest([by_depth[depth] for depth in DEPTHS])
        yield _cut_off(summary)


def _weakest(read: list[dict[str, Any]]) -> Finding:
    start = next(row for row in read if row["depth"] == START)
    others = [row for row in read if row is not start]
    if start["gain_low"] is None or all((row["gain_low"] or 0) <= 0 for row in read):
        return EVIDENCE.finding(
            "not measured",
            f"Whether evidence counts less further back is not known: moved in {start['queries']} queries, it gains "
            f"{start['gain']:+.3f}{interval(start['gain_low'], start['gain_high'], '+.3f')} at the start.",
            "Either there are too few queries, or documents of this length are not found by what they say.",
            "Audit with a collection of at least 50 judged queries: --corpus retrieval=FOLDER",
        )
    # Most models prefer the start; a decoder that pools its last token may prefer the end.
    behind = min(others, key=lambda row: row["gain"])
    ahead = max(others, key=lambda row: row["gain"])
    is_weaker = behind["gain"] < HALF * start["gain"] and (behind["change_high"] or 0) < 0
    is_stronger = start["gain"] < HALF * ahead["gain"] and (ahead["change_low"] or 0) > 0
    level: Level = "look" if is_weaker or is_stronger else "ok"
    shown = behind if is_weaker or not is_stronger else ahead
    kept = f", {shown['kept']:.0%} of that," if shown["kept"] is not None else ""
    return EVIDENCE.finding(
        level,
        f"Evidence at the start of a document gains {start['gain']:.3f}, and {shown['gain']:.3f}{kept} after "
        f"{shown['tokens_before']:,.0f} tokens "
        f"({shown['change']:+.3f}{interval(shown['change_low'], shown['change_high'], '+.3f')}).",
        f"What a document says {'late' if shown is behind else 'early'} counts less than half as much as what it "
        f"says {'early' if shown is behind else 'late'}: of two documents with the same passage, the one that "
        f"{'begins' if shown is behind else 'ends'} with it is found first.",
        PIECES,
        *(shown[f"change{end}"] for end in ("", "_low", "_high")),
    )


def _cut_off(summary: dict[str, Any]) -> Finding:
    share = summary["truncated"] / summary["documents"]
    return TOO_LONG.finding(
        TOO_LONG.level(share),
        f"Of a document, {summary['length_limit']:,} tokens are read; {share:.0%} of the {summary['documents']:,} "
        f"documents in {summary['data_set']} are longer.",
        "What is not read is in no vector: no query finds it.",
        PIECES,
        share,
    )


FACTS = {
    "position": "SELECT * FROM position WHERE audit_id = ? ORDER BY tokens_before NULLS FIRST, depth",
    "position_summary": "SELECT * FROM position_summary WHERE audit_id = ?",
}
COLUMNS = {
    **{"depth": Column("depth", is_right=True), "tokens_before": Column("tokens before", ",.0f")},
    **{"gain": Column("gain [95 %]", "+.3f", "+.3f"), "change": Column("change [95 %]", "+.3f", "+.3f")},
    **{"kept": Column("kept", ".0%"), "won": Column("won [95 %]", ".0%", ".0%", is_bar=True)},
    "words_gain": Column("gain, TF-IDF", "+.3f"),
}
OWN, WORDS = "the checkpoint", "TF-IDF"
TONES: dict[str, Tone] = {OWN: "one", WORDS: "soft"}


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    return Section("Position of evidence", list(_parts(facts))) if facts["position"] else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    for row in facts["position_summary"]:
        unwritten = f" {row['unwritten']:,} that the tokenizer cannot write," if row["unwritten"] else ""
        others = f" {row['left_out']:,} without a partner or filler," if row["left_out"] else ""
        left_out = f" Left out:{unwritten}{others}".rstrip(",") + "." if unwritten or others else ""
        yield (
            f"{row['data_set']}: the evidence of {row['queries']:,} queries, {row['evidence_tokens']:,.0f} tokens of "
            f"their best documents, moved through documents of {row['tokens']:,} tokens; {row['length_limit']:,} "
            f"tokens are read.{left_out}"
        )
    yield Table.of(COLUMNS, facts["position"], "What evidence gains", more="embaudit query position")
    yield chart([row for row in facts["position"] if row["depth"] in DEPTHS])


def chart(rows: list[dict[str, Any]]) -> Chart:
    """The gain over the place of the evidence, within the limit."""
    points = [
        Mark(
            row["tokens_before"],
            row["gain"],
            series=OWN,
            label=f"after {row['tokens_before']:,.0f} tokens: {row['gain']:+.3f}, {row['won']:.0%} of queries won",
        )
        for row in rows
    ]
    bars = [
        mark
        for row in rows
        for mark in interval_marks(row["tokens_before"], row["gain_low"], row["gain_high"], series=OWN)
    ]
    words = [
        Mark(row["tokens_before"], row["words_gain"], series=WORDS, label=f"TF-IDF: {row['words_gain']:+.3f}")
        for row in rows
        if row["words_gain"] is not None
    ]
    panel = Panel(
        [Layer("rule", bars, is_data=False), Layer("line", words), Layer("line", points)],
        Axis("tokens before the evidence", ",d"),
        Axis("gain", "+.2f", has_zero=True),
        width=520,
        height=220,
    )
    return Chart(
        "What evidence gains, by its place in a document",
        "How much more similar a query is to a document with its evidence than to the same document with other "
        "evidence in the same place, with 95 % intervals. A level line is good: evidence counts the same wherever it "
        "stands. TF-IDF of the same texts knows no order; its cosines are on another scale, so compare the slopes.",
        [[panel]],
        TONES,
        more="embaudit query position",
    )
