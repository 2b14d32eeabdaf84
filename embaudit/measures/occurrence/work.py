"""The step that measures occurrence, what its tables show, and its section of a page."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import log, log10
from typing import Any

import numpy as np

from embaudit.corpora.draw import Draw, content_order
from embaudit.declared.document import Column, Part, Section, Table
from embaudit.declared.rule import Finding, Level, Rows, Rule, interval
from embaudit.measures.occurrence import (
    MEASURE_VERSION,
    OccurrenceCorpusRow,
    OccurrenceRow,
    OccurrenceSettings,
    OccurrenceTextRow,
)
from embaudit.measures.occurrence.occurrence import (
    ALL,
    CorpusCounts,
    DenseText,
    count_corpus,
    dense_texts,
    measure_removals,
    plan_removals,
)
from embaudit.measures.run import Run
from embaudit.remedies.screening import severe_rows
from embaudit.remedies.screening.density import encoder_of_tokens
from embaudit.statistics import exact_share
from embaudit.steps.corpora import drawn_texts
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, encoder_of
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import Outputs, step
from embaudit.words.estimate import Estimate

DENSE_KEPT = 100


@step(
    "occurrence",
    version=MEASURE_VERSION,
    tables=(OccurrenceCorpusRow, OccurrenceRow, OccurrenceTextRow),
    name="occurrence",
    run_name="occurrence in {corpus.name}",
    reads=("severity", "removal_texts", "anchors"),
)
def corpus_occurrence(
    out: Outputs,
    spec: CheckpointSpec,
    corpus: StagedCorpus,
    tokens: Staged,
    verdicts: Staged,
    draw: Draw,
    settings: OccurrenceSettings,
    seed: int,
) -> None:
    """Tables ``occurrence_corpus``, ``occurrence`` and ``occurrence_text`` for the drawn texts of a corpus.

    Args:
        tokens, verdicts: the files of ``token`` and ``sticky_validation`` of the same audit.
    """
    encoder = encoder_of(spec)
    checkpoint = encoder.checkpoint
    entries = {row["token_id"]: row for row in read_rows([tokens.path])}
    severe = {row["token_id"]: row for row in severe_rows(read_rows([verdicts.path]), settings.severity)}
    listed = {token_id: row for token_id, row in severe.items() if entries[token_id]["is_reachable"]}
    losses = {token_id: max(row["loss"], 0.0) for token_id, row in listed.items()}
    drawn = drawn_texts(corpus.content_path, draw)
    encode = encoder_of_tokens(checkpoint.tokenizer)
    with tracked(f"severe tokens in {corpus.name}", len(drawn.texts)) as advance:
        size = max(len(entries), len(checkpoint.tokenizer))
        limit, side = checkpoint.content_limit, checkpoint.tokenizer.truncation_side
        counts = count_corpus(drawn.texts, encode, frozenset(listed), limit, size, side)
        advance(len(drawn.texts))
    dense = dense_texts(counts, losses)

    def own_ids(places: Sequence[int]) -> list[list[int]]:
        ids = checkpoint.own_ids([drawn.texts[place] for place in places])
        return [checkpoint.cut(one, checkpoint.content_limit) for one in ids]

    # By content, so that every checkpoint uses the same texts.
    order = content_order(drawn.texts, seed)
    planned = plan_removals(counts, listed, order, own_ids, settings.removal_texts, seed)
    anchors = order[: settings.anchors] if any(planned.values()) else []
    with tracked(f"without them, {corpus.name}", len(planned)) as advance:
        movements = measure_removals(encoder, planned, list(zip(anchors, own_ids(anchors), strict=True)))
        advance(len(planned))

    about = {"unreachable": len(severe) - len(listed), "dense_texts": len(dense), **movements[ALL].columns()}
    out.rows(OccurrenceCorpusRow, [_corpus_row(corpus, counts, listed, about)], encodes=encoder.texts)
    reachable = np.array([token_id for token_id, entry in entries.items() if entry["is_reachable"]])
    rows = [
        {**_token_row(counts, token_id, row, reachable), "corpus": corpus.name, **movements[token_id].columns()}
        for token_id, row in sorted(listed.items())
    ]
    out.rows(OccurrenceRow, rows)
    out.rows(OccurrenceTextRow, _dense_rows(corpus.name, dense[:DENSE_KEPT], drawn.places, counts))


def _corpus_row(
    corpus: StagedCorpus, counts: CorpusCounts, listed: Collection[int], about: dict[str, Any]
) -> dict[str, Any]:
    affected, texts = len(counts.severe_texts), counts.texts
    share = Estimate(affected / texts, *exact_share(affected, texts)) if texts else Estimate()
    return {
        "corpus": corpus.name,
        "corpus_id": corpus.corpus_id,
        "texts": texts,
        "tokens": counts.tokens,
        "listed": len(listed),
        "met": sum(counts.histogram[token_id] > 0 for token_id in listed),
        "severe": counts.severe,
        "severe_texts": affected,
        **share.columns("severe_share"),
        **about,
    }


def _token_row(counts: CorpusCounts, token_id: int, row: Mapping[str, Any], reachable: np.ndarray) -> dict[str, Any]:
    occurrences = int(counts.histogram[token_id])
    return {
        "token_id": token_id,
        "severity": row["severity"],
        "loss": row["loss"],
        "occurrences": occurrences,
        "texts": len(counts.texts_with(token_id)),
        "per_million": 1e6 * occurrences / max(counts.tokens, 1),
        "less_frequent": counts.less_frequent(token_id, reachable),
    }


def _dense_rows(
    corpus: str, dense: Sequence[DenseText], places: Sequence[int], counts: CorpusCounts
) -> list[dict[str, Any]]:
    return [
        {
            "corpus": corpus,
            "rank": rank,
            "position": places[one.text.place],
            "tokens": one.text.read,
            "severe": one.text.counts.total(),
            "score": one.score,
            "log10_p": min(one.log_tail / log(10) + log10(counts.texts), 0.0),
            "worst_token_id": min(one.text.counts, key=lambda token_id: (-one.text.counts[token_id], token_id)),
        }
        for rank, one in enumerate(dense, start=1)
    ]


def measure(run: Run) -> list[Staged]:
    """Count the tokens that ``sticky`` found in each corpus, and measure how removing them moves texts."""
    settings = run.settings(OccurrenceSettings)
    searched = {part.table: part for part in run.earlier if part.table in ("token", "sticky_validation")}
    if "sticky_validation" not in searched:
        return [run.note("Skipped occurrence: sticky tokens could not be looked for.")]
    tokens, verdicts = searched["token"], searched["sticky_validation"]
    staged: list[Staged] = []
    for corpus, draw in run.drawn(settings):
        parts = run(corpus_occurrence, run.spec, corpus, tokens, verdicts, draw, settings=settings, seed=run.seed)
        # Without severe tokens there is nothing to count, and no text is dense in them.
        staged += [part for part in parts if part.rows]
    return staged


SEVERE_TEXTS = Rule(
    "severe_texts",
    "`occurrence_corpus.severe_share`",
    look=0.01,
    is_share=True,
    reason="one text in a hundred: a query with such a text among its first results is then nothing unusual",
)
REMOVAL = Rule(
    "removal",
    "`occurrence_corpus.excess`",
    look=0.01,
    look_if="interval above 0, from {look}",
    reason="a smaller move in the cosine hardly changes the order of two texts. `not measured` on a single text",
)
DENSE_TEXTS = Rule(
    "dense_texts",
    "`occurrence_corpus.dense_texts`",
    look_if="any",
    reason="what `embaudit screen` would flag if the rest of the corpus served as the ordinary text; no finding if "
    "there are none",
)


def findings(rows: Rows, settings: OccurrenceSettings) -> Iterator[Finding]:
    """At most three, from the audit's tables; none if no corpus has a text."""
    corpora = [row for row in rows("occurrence_corpus") if row["severe_share"] is not None]
    if not corpora:
        return
    yield _frequency(max(corpora, key=lambda row: (row["severe_share"], row["corpus"])))
    moved = [row for row in corpora if row["excess"] is not None]
    if moved:
        yield _removal(max(moved, key=lambda row: (row["excess"], row["corpus"])))
    dense = [row for row in corpora if row["dense_texts"]]
    if dense:
        yield _dense(max(dense, key=lambda row: (row["dense_texts"] / row["texts"], row["corpus"])))


def _frequency(row: dict[str, Any]) -> Finding:
    share, low, high = (row[f"severe_share{end}"] for end in ("", "_low", "_high"))
    return SEVERE_TEXTS.finding(
        SEVERE_TEXTS.level(share),
        f"{row['met']:,} of {row['listed']:,} severe tokens occur in {row['corpus']}: {row['severe_texts']:,} of "
        f"{row['texts']:,} texts contain one ({share:.2%}{interval(low, high, '.2%')}).",
        "They occur in ordinary texts of this kind, not only in broken ones.",
        "embaudit query occurrence",
        *(share, low, high),
    )


def _removal(row: dict[str, Any]) -> Finding:
    excess, low, high = (row[f"excess{end}"] for end in ("", "_low", "_high"))
    level: Level = "not measured" if low is None else REMOVAL.level(excess) if low > 0 else "ok"
    return REMOVAL.finding(
        level,
        f"Removing severe tokens from {row['removal_texts']:,} texts in {row['corpus']} that contain them moves a "
        f"cosine by {row['moved']:.3f} on average, {excess:+.3f}{interval(low, high, '+.3f')} compared with removing "
        "as many other tokens.",
        "One text says nothing about others." if low is None else "Without them, these texts would rank elsewhere.",
        "Audit with more such texts: --corpus NAME=FILE"
        if low is None
        else "embaudit filter CHECKPOINT --out severe.json",
        *(excess, low, high),
    )


def _dense(row: dict[str, Any]) -> Finding:
    texts = f"{row['dense_texts']:,} of {row['texts']:,} texts"
    return DENSE_TEXTS.finding(
        "look",
        f"In {texts} in {row['corpus']}, severe tokens are far denser than in the rest.",
        "Such texts are broken, poisoned, or in a script that the model barely knows.",
        "embaudit screen FILE --audit CHECKPOINT",
        float(row["dense_texts"]),
    )


FACTS = {
    "occurrence_corpora": "SELECT * FROM occurrence_corpus WHERE audit_id = ? ORDER BY corpus",
    "occurrences": (
        "SELECT occurrence.*, token.token FROM occurrence JOIN audit USING (audit_id) "
        "JOIN token ON token.checkpoint_id = audit.checkpoint_id AND token.token_id = occurrence.token_id "
        "WHERE audit_id = ? AND occurrences > 0 ORDER BY occurrences DESC, corpus, occurrence.token_id"
    ),
    "dense_texts": (
        "SELECT dense.*, token.token, text.text FROM occurrence_text AS dense JOIN audit USING (audit_id) "
        "JOIN token ON token.checkpoint_id = audit.checkpoint_id AND token.token_id = dense.worst_token_id "
        "JOIN audit_corpus ON audit_corpus.audit_id = dense.audit_id AND audit_corpus.name = dense.corpus "
        "LEFT JOIN text ON text.corpus_id = audit_corpus.corpus_id AND text.position = dense.position "
        "WHERE dense.audit_id = ? ORDER BY dense.corpus, dense.rank"
    ),
}
SHOWN = 10
BEGINNING = 100
MOVEMENT = {
    "removal_texts": Column("texts", ",d"),
    "moved": Column("cosine moves by [95 %]", ".3f", ".3f"),
    "ordinary_moved": Column("other tokens", ".3f"),
    "excess": Column("excess [95 %]", "+.3f", "+.3f"),
}
CORPORA = {
    **{"corpus": Column("corpus"), "severe_texts": Column("texts with one", ",d")},
    **{"severe_share": Column("share [95 %]", ".2%", ".2%"), "dense_texts": Column("dense", ",d"), **MOVEMENT},
}
TOKENS = {
    **{"token": Column("token"), "corpus": Column("corpus"), "severity": Column("severity")},
    **{"occurrences": Column("occurrences", ",d"), "per_million": Column("per million", ",.1f")},
    **{"less_frequent": Column("of the vocabulary less frequent", ".0%"), **MOVEMENT},
}
DENSE = {
    **{"corpus": Column("corpus"), "position": Column("row", ",d"), "score": Column("score", ".3f")},
    **{"severe": Column("severe", ",d"), "tokens": Column("of tokens", ",d")},
    **{"token": Column("most often"), "begins": Column("begins")},
}


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    return Section("Severe tokens in real texts", list(_parts(facts))) if facts["occurrence_corpora"] else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    for row in facts["occurrence_corpora"]:
        left_out = f"; left out: {row['unreachable']:,} that no text can produce" if row["unreachable"] else ""
        yield (
            f"{row['corpus']}: {row['tokens']:,} tokens in {row['texts']:,} texts; {row['met']:,} of {row['listed']:,} "
            f"severe tokens occur, {row['severe']:,} times{left_out}."
        )
    yield Table.of(
        CORPORA,
        facts["occurrence_corpora"],
        "Texts that contain severe tokens, and how far removing these moves their cosines",
        more="embaudit query occurrence",
    )
    yield Table.of(
        TOKENS, facts["occurrences"], "Severe tokens that occur", brief=SHOWN, more="embaudit query occurrence"
    )
    yield Table.of(
        DENSE,
        [{**row, "begins": (row["text"] or "")[:BEGINNING]} for row in facts["dense_texts"]],
        "Texts in which severe tokens are dense",
        brief=SHOWN,
        more="embaudit query 'FROM occurrence_text'",
    )
