"""The step that compares meanings, what its tables show, and its section of a page.

Triples of sentences (s, p, c): p says what s says, and c something else in nearly the words of s.

    nearer = 1/n · Σ_i [sim(s_i, p_i) > sim(s_i, c_i)] + ½ [sim(s_i, p_i) = sim(s_i, c_i)]
    margin = 1/n · Σ_i sim(s_i, p_i) − sim(s_i, c_i)

A search or a cache of answers takes the nearest text for the same; where ``nearer`` is low, it takes "was not paid" for
"was paid" before it takes "got its money". Users report it as negation that changes nothing (sentence-transformers
#1330, FlagEmbedding #244). Similarity of words is always wrong here: each contrast shares more of them than either
rewording does. Random vectors are right in half of the triples.

The sentences were written for embaudit, in English: 46, each with a close rewording, a free one, and six contrasts.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

import numpy as np

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel
from embaudit.declared.document import Column, Section, Table
from embaudit.declared.rule import Finding, Rows, Rule, interval
from embaudit.measures.meaning import MEASURE_VERSION, Contrast, MeaningRow, MeaningSettings, Rewording
from embaudit.measures.meaning.searches import COLUMNS as SEARCH_COLUMNS
from embaudit.measures.meaning.searches import meaning_of_searches, share
from embaudit.measures.run import Run
from embaudit.statistics import student_half_width
from embaudit.steps.results import CheckpointSpec, Staged, checkpoint_of, encoder_of
from embaudit.steps.step import Outputs, step
from embaudit.words.estimate import Estimate

SENTENCE = "sentence"
CONTRASTS: tuple[Contrast, ...] = get_args(Contrast)
REWORDINGS: tuple[Rewording, ...] = get_args(Rewording)


@dataclass(frozen=True)
class Told:
    """How well one kind of contrast is told from one kind of rewording.

    Attributes:
        nearer: the share.
    """

    triples: int
    nearer: Estimate
    margin: Estimate


@cache
def sentences() -> dict[str, tuple[str, ...]]:
    """The sentences, their rewordings and contrasts, by column, in the same order."""
    with (Path(__file__).parent / "triples.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return {name: tuple(row[name] for row in rows) for name in (SENTENCE, *REWORDINGS, *CONTRASTS)}


def told(rewording: np.ndarray, contrast: np.ndarray) -> Told:
    """From the (n,) similarities of each sentence to its rewording and to its contrast; n ≥ 1."""
    margins = rewording - contrast
    return Told(len(margins), share(margins), Estimate.around(float(margins.mean()), student_half_width(margins)))


def words_nearer() -> Mapping[tuple[Contrast, Rewording], float]:
    """What TF-IDF gets right of the same triples."""
    from embaudit.measures.quality.measured import TFIDF, pair_overlap

    texts = sentences()
    overlap = {name: pair_overlap(texts[SENTENCE], texts[name])[TFIDF] for name in (*REWORDINGS, *CONTRASTS)}
    return {(c, r): told(overlap[r], overlap[c]).nearer.known for c in CONTRASTS for r in REWORDINGS}


@step("meaning", version=MEASURE_VERSION, tables=(MeaningRow,), name="meaning")
def meaning_of_sentences(out: Outputs, spec: CheckpointSpec) -> None:
    """Table ``meaning``, by the declared similarity."""
    from embaudit.embedders.checkpoint import declared_similarity
    from embaudit.measures.quality.passes import of_pairs

    encoder = encoder_of(spec)
    vectors = {name: encoder.encode_texts(texts) for name, texts in sentences().items()}
    kind = declared_similarity(checkpoint_of(spec))
    similarities = {name: of_pairs(vectors[SENTENCE], vectors[name], kind) for name in (*REWORDINGS, *CONTRASTS)}
    words = words_nearer()
    rows = []
    for contrast in CONTRASTS:
        for rewording in REWORDINGS:
            found = told(similarities[rewording], similarities[contrast])
            rows.append(
                {
                    "contrast": contrast,
                    "rewording": rewording,
                    "triples": found.triples,
                    **found.nearer.columns("nearer"),
                    "words_nearer": words[contrast, rewording],
                    **found.margin.columns("margin"),
                    "rewording_similarity": float(similarities[rewording].mean()),
                    "contrast_similarity": float(similarities[contrast].mean()),
                }
            )
    out.rows(MeaningRow, rows, encodes=encoder.texts)


def measure(run: Run) -> list[Staged]:
    return run(meaning_of_sentences, run.spec) + run(meaning_of_searches, run.spec)


LOST_CONTRASTS = Rule(
    "contrasts",
    "`meaning.nearer` of close rewordings",
    look=0.5,
    worse="lower",
    look_if="interval below {look} for any kind of contrast",
    reason="{look} is chance: the contrast is then preferred. all-MiniLM-L6-v2 prefers exchanged roles (0 of 46 "
    "right) and the opposite word (.26), paraphrase-MiniLM-L3-v2 also another tense and another number; TF-IDF is "
    "wrong in every triple",
)
SAID = {
    "negation": "its denial",
    "number": "another number",
    "roles": "exchanged roles",
    "entity": "another name",
    "tense": "another tense",
    "antonym": "the opposite word",
}
WRONG_FIRST = Rule(
    "searches",
    "`meaning_search.found`",
    look=0.5,
    worse="lower",
    look_if="interval below {look}, or below `words_found`, for any kind",
    reason="{look} is chance: the wrong text then comes first. Of four checkpoints (all-MiniLM-L6-v2, "
    "all-mpnet-base-v2, paraphrase-MiniLM-L3-v2, multilingual-e5-small in four bits) units are right in 0 to 25 %, "
    "exclusions and foils in 0 to 12 %, and TF-IDF is wrong in all of these; limits 56 to 75 % (TF-IDF 41), formats 44 "
    "to 81 % (59), dates 56 to 75 % (50), versions 94 to 100 % (97)",
)
BESIDE = {
    "magnitude": "a figure on the wrong side of the limit",
    "format": "a wrong figure, where the right one is written otherwise",
    "unit": "the same figure in another unit",
    "date": "another date",
    "version": "another version",
    "exclusion": "what the query excludes",
    "foil": "the query's own words without an answer",
}


def findings(rows: Rows, settings: MeaningSettings) -> Iterator[Finding]:
    """Two: one about close rewordings, since beside free ones hardly any checkpoint gets a contrast right."""
    yield from _rewordings(rows)
    yield from _searches(rows("meaning_search"))


def _rewordings(rows: Rows) -> Iterator[Finding]:
    close = [row for row in rows("meaning") if row["rewording"] == "close"]
    if not close:
        return
    missed = sorted((row for row in close if row["nearer_high"] < LOST_CONTRASTS.look), key=_by_share)
    worst = min(close, key=_by_share)
    others = [row for row in close if row not in missed]
    said = (
        f"A close rewording of a sentence is further from it than almost the same words with {_named(missed)}"
        if missed
        else "A close rewording of a sentence is no further from it than almost the same words that say something "
        f"else; least often nearer than those with {_named([worst])}"
    )
    rest = f" Better: {_named(others)}." if missed and others else ""
    yield LOST_CONTRASTS.finding(
        "look" if missed else "ok",
        f"{said} ({worst['triples']} English sentences; in brackets how often it is nearer, 50 % is chance).{rest}",
        "What depends on such a difference (a cache of answers, deduplication, finding contradictions) goes wrong.",
        "Check such pairs with a cross-encoder or a rule: embaudit query meaning",
        *(worst[f"nearer{end}"] for end in ("", "_low", "_high")),
    )


def _searches(rows: Sequence[dict[str, Any]]) -> Iterator[Finding]:
    if not rows:
        return
    ordered = sorted(rows, key=lambda row: (row["found"], row["kind"]))
    missed = [row for row in ordered if row["found_high"] < max(WRONG_FIRST.look, row["words_found"])]
    others = [row for row in ordered if row not in missed]
    worst = (missed or ordered)[0]
    said = (
        f"A search finds texts with these before the right one: {_listed(missed)}"
        if missed
        else "A search finds the right text no less often than one that is wrong by a figure, a date, a version or an "
        f"exclusion; least often beside {_listed(ordered[:1])}"
    )
    rest = f" Better: {_listed(others)}." if missed and others else ""
    yield WRONG_FIRST.finding(
        "look" if missed else "ok",
        f"{said} ({worst['searches']} English searches each; in brackets how often the right one is first, 50 % is "
        f"chance).{rest}",
        "Whoever asks for a limit, a unit, or something without something else gets texts that sound alike and say "
        "another thing.",
        "Filter by figures, dates and exclusions before the search, or rerank with a cross-encoder: embaudit query "
        "meaning-searches",
        *(worst[f"found{end}"] for end in ("", "_low", "_high")),
    )


def _listed(rows: Sequence[dict[str, Any]]) -> str:
    return ", ".join(f"{BESIDE[row['kind']]} ({_share(row, 'found')})" for row in rows)


def _by_share(row: dict[str, Any]) -> tuple[float, str]:
    return row["nearer"], row["contrast"]


def _named(rows: Sequence[dict[str, Any]]) -> str:
    return ", ".join(f"{SAID[row['contrast']]} ({_share(row, 'nearer')})" for row in rows)


def _share(row: dict[str, Any], name: str) -> str:
    return f"{row[name]:.0%}{interval(row[f'{name}_low'], row[f'{name}_high'], '.0%')}"


FACTS = {
    "meaning": "SELECT * FROM meaning WHERE audit_id = ? ORDER BY rewording, nearer, contrast",
    "meaning_searches": "SELECT * FROM meaning_search WHERE audit_id = ? ORDER BY found, kind",
}
COLUMNS = {
    **{"contrast": Column("contrast"), "rewording": Column("rewording"), "triples": Column("triples", ",")},
    **{"nearer": Column("nearer [95 %]", ".2f", is_bar=True), "words_nearer": Column("by words", ".2f")},
    "margin": Column("margin [95 %]", "+.3f", "+.3f"),
    "rewording_similarity": Column("similarity to the rewording", ".3f"),
    "contrast_similarity": Column("to the contrast", ".3f"),
}


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    rows = facts["meaning"]
    if not rows:
        return None
    table = Table.of(
        COLUMNS,
        rows,
        "Triples of a sentence, a rewording and a contrast, in which the rewording is nearer",
        brief=len(CONTRASTS),
        more="embaudit query meaning",
    )
    found = facts["meaning_searches"]
    title = "Searches with a right text and one that is wrong by one thing"
    # An audit of an earlier version has none.
    searched = [Table.of(SEARCH_COLUMNS, found, title, more="embaudit query meaning-searches")] if found else []
    return Section("Meaning", [_chart(rows), table, *searched])


def _chart(rows: list[dict[str, Any]]) -> Chart:
    places = [
        Mark(x=row["nearer"], y=row["contrast"], series=f"{row['rewording']} rewording", label=f"{row['nearer']:.2f}")
        for row in rows
    ]
    intervals = [
        Mark(x=row["nearer_low"], x2=row["nearer_high"], y=row["contrast"], series=f"{row['rewording']} rewording")
        for row in rows
    ]
    chance = Layer("rule", [Mark(x=0.5)], tone="soft", is_dashed=True, is_data=False)
    ordered = [row["contrast"] for row in rows if row["rewording"] == REWORDINGS[0]]
    panel = Panel(
        [chance, Layer("rule", intervals, is_data=False), Layer("point", places)],
        Axis("share of triples in which the rewording is nearer", ".0%", domain=(0, 1)),
        Axis(categories=ordered),
    )
    return Chart(
        "A rewording, or almost the same words?",
        "Each point: how often a sentence is nearer to its rewording than to a contrast of this kind, with its 95 % "
        "interval; dashed: chance. Words alone are always wrong.",
        [[panel]],
        more="embaudit query meaning",
    )
