"""Mitigation: each remedy is tried on texts with and without copies of severe tokens, and what helps is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from embaudit.declared.document import Column, Part, Section, Table
from embaudit.declared.rule import Finding, Rows, Rule, interval, number
from embaudit.measures.impact.findings import METRICS, scored_on
from embaudit.measures.impact.steps import CLEAN, NEVER_POISONED, PoisonedSide, untreated_vectors
from embaudit.measures.mitigation import NONE, MitigationSettings, Remedy
from embaudit.measures.mitigation.remedies import SPACES
from embaudit.measures.mitigation.trials import (
    MeasuredTokens,
    Treated,
    mitigated_vectors,
    mitigation_losses,
    mitigation_scores,
    possible_remedies,
)
from embaudit.measures.run import Run
from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.plan import choose_controls, eligible_tokens
from embaudit.measures.sticky.steps import measured_on
from embaudit.measures.sticky.steps.files import Sample
from embaudit.measures.sticky.steps.sentences import read_tokens
from embaudit.measures.sticky.steps.verdicts import severe_tokens
from embaudit.measures.task_material import corpora_of, notes_of, task_material
from embaudit.remedies.mitigation import WAYS
from embaudit.steps.results import Staged, StagedCorpus
from embaudit.steps.staging.stage import read_rows
from embaudit.words.errors import NotMeasurable

NO_SENTENCES = "Skipped losses under remedies: they need sentences too (--corpus sts=FILE, or the measure sticky)."
Material = tuple[StagedCorpus, Staged, Treated]


def measure(run: Run) -> list[Staged]:
    """Every remedy on every task, and losses under it; only a note if no token is severe."""
    settings = run.settings(MitigationSettings)
    (tokens,) = run(read_tokens, run.spec)
    entries = {row["token_id"]: row for row in read_rows([tokens.path])}
    severe = severe_tokens(run, settings.tokens, settings.severity, entries)
    if not severe:
        return [run.note("Nothing to mitigate: the search found no severe token that a text can contain.")]
    worst = severe[: settings.tokens_per_arm]
    names = {token_id: entry["token"] for token_id, entry in entries.items()}
    files: list[Staged] = [tokens]
    materials: list[Material] = []
    for name in settings.corpora:
        corpora = corpora_of(name, run.corpora)
        try:
            (material,) = run(task_material, run.spec, corpora, settings, run.seed)
            untreated = untreated_vectors(run, corpora[0], material, {token: names[token] for token in worst})
        except NotMeasurable as error:
            files.append(run.skipped(f"mitigation on {name}", error))
            continue
        files += notes_of(run, corpora, material, settings)
        materials.append((corpora[0], material, untreated))
    fitted_on = [
        part for *_, untreated in materials for side, part in untreated[CLEAN].items() if side != NEVER_POISONED
    ]
    texts = sum(part.rows for part in fitted_on)
    refused = possible_remedies(run.spec, severe, list(settings.remedies), texts)
    files += [run.note(f"Skipped {remedy}: {why}") for remedy, why in refused.items()]
    remedies = [remedy for remedy in settings.remedies if remedy not in refused]
    for corpus, material, untreated in materials:
        by_remedy = {NONE: untreated}
        for remedy in remedies:
            if remedy not in SPACES:
                by_remedy[remedy] = _treated(run, corpus, material, untreated, severe, remedy, names)
        spaces: list[Remedy] = [remedy for remedy in remedies if remedy in SPACES]
        files += [
            material,
            *(part for treated in by_remedy.values() for sides in treated.values() for part in sides.values()),
        ]
        files += run(mitigation_scores, corpus, material, by_remedy, spaces, fitted_on, settings, run.seed)
    if not set(run.settings(StickySettings).corpora) <= run.corpora.keys():
        return [*files, run.note(NO_SENTENCES)]
    sample = measured_on(run).sample
    return files + _losses(run, settings, sample, severe, entries, remedies, fitted_on)


def _treated(
    run: Run,
    corpus: StagedCorpus,
    material: Staged,
    untreated: Treated,
    severe: list[int],
    remedy: Any,
    names: dict[int, str],
) -> Treated:
    def encode(side: str, arm: str, before: Staged) -> Staged:
        token = None if arm == CLEAN else int(arm)
        one = PoisonedSide.of(material, side, token, names, corpus.name, run.seed)
        return run(mitigated_vectors, run.spec, one, before, severe, remedy)[0]

    return {arm: {side: encode(side, arm, of) for side, of in sides.items()} for arm, sides in untreated.items()}


def _losses(
    run: Run,
    settings: MitigationSettings,
    sample: Sample,
    severe: list[int],
    entries: dict[int, dict[str, Any]],
    remedies: list[Any],
    fitted_on: list[Staged],
) -> list[Staged]:
    search = run.settings(StickySettings)
    watched = severe[: settings.loss_tokens]
    vocabulary = list(entries.values())
    controls = choose_controls(vocabulary, np.array(severe), search.controls, run.seed)
    eligible = eligible_tokens(vocabulary)
    count = min(settings.vocabulary, len(eligible))
    drawn = np.sort(np.random.default_rng([run.seed, len(eligible)]).choice(eligible, size=count, replace=False))
    measured = MeasuredTokens(
        watched={str(token): entries[token]["token"] for token in watched},
        controls=controls.tolist(),
        drawn=drawn.tolist(),
    )
    return run(
        mitigation_losses,
        run.spec,
        sample,
        severe,
        measured,
        remedies,
        fitted_on,
        settings,
    )


# What severe tokens take, and the most that a remedy may cost on clean texts: two points, as for the impact of tokens.
PRICE = 0.02
REMEDY = Rule(
    "remedy_{task}",
    "`mitigation.poisoned_change` of the remedy that recovers most, on retrieval or, without a collection, the first "
    "task; 0 if none does, or if severe tokens do not lower the score",
    look=PRICE,
    look_if="severe tokens take {look} or more, whether a remedy helps or not",
    reason=f"only remedies whose interval is above 0 and that cost clean texts no more than {number(PRICE)}: two "
    "points, as for the impact",
)


def findings(rows: Rows, settings: MitigationSettings) -> Iterator[Finding]:
    """One, about retrieval if it was measured, otherwise about the first task."""
    tasks = [row for row in rows("mitigation") if row["poisoned"] is not None and row["clean"] is not None]
    if not tasks:
        return
    corpus, metric = min({(row["corpus"], row["metric"]) for row in tasks}, key=lambda of: (of[1] != "ndcg_10", of))
    own = [row for row in tasks if (row["corpus"], row["metric"]) == (corpus, metric)]
    untreated = next(row for row in own if row["remedy"] == NONE)
    tried = [row for row in own if row["remedy"] != NONE and row["poisoned_change"] is not None]
    affordable = [row for row in tried if row["clean_change"] >= -PRICE]
    # Both sides of a collection are encoded, but only its documents are ranked.
    task = scored_on(untreated, untreated["texts"] - untreated["items"], rows)
    lost = untreated["clean"] - untreated["poisoned"]
    if round(lost, 3) <= 0:
        unharmed = f"Severe tokens in all texts do not lower {task} ({untreated['clean']:.3f})."
        yield REMEDY.finding("ok", unharmed, value=0.0, task=metric)
        return
    begins = f"Severe tokens in all texts take {lost:.3f} off {task} ({untreated['clean']:.3f})"
    helping = [row for row in affordable if (row["poisoned_change_low"] or 0) > 0]
    level = REMEDY.level(lost)
    if not helping:
        yield REMEDY.finding(
            level,
            f"{begins}; "
            + (f"of {len(tried)} remedies tried none measurably" if tried else "no remedy could be tried that")
            + " restores any of it.",
            "Keep such tokens out of texts.",
            "embaudit screen FILE",
            0.0,
            task=metric,
        )
        return
    best = max(helping, key=lambda row: (row["poisoned_change"], row["remedy"]))
    low, high, remedy = best["poisoned_change_low"], best["poisoned_change_high"], best["remedy"]
    how = f"mitigate CHECKPOINT --tokens severe.json --how {remedy} --out DIR"
    yield REMEDY.finding(
        level,
        f"{begins}; {WORDS[remedy]} restores {best['poisoned_change']:+.3f}{interval(low, high, '+.3f')}, and changes "
        f"the score on clean texts by {best['clean_change']:+.3f}.",
        "Most of this loss is avoidable.",
        f"embaudit {how if remedy in WAYS else 'filter CHECKPOINT --out severe.json'}",
        *(best["poisoned_change"], low, high),
        task=metric,
    )


FACTS = {
    "mitigation_losses": ("SELECT * FROM mitigation_loss WHERE audit_id = ? ORDER BY remedy <> 'none', loss, remedy"),
    "mitigation": (
        "SELECT * FROM mitigation WHERE audit_id = ? "
        "ORDER BY corpus, metric, remedy <> 'none', poisoned DESC NULLS LAST, remedy"
    ),
}
SCORES = {name: METRICS[name] for name in ("ndcg_10", "v_measure", "accuracy", "spearman")}
WORDS = {
    "none": "none",
    "strip": "removal from texts (strip)",
    "prune": "removal from the tokenizer (prune)",
    "unk": "embedding of the unknown token (unk)",
    "mean": "mean embedding (mean)",
    "scale": "embedding scaled to ordinary length (scale)",
    "centring": "centring of vectors",
    "components": "removal of first components",
    "whitening": "whitening of vectors",
}
LOSSES = {
    **{"remedy": Column("remedy", words=WORDS), "loss": Column("loss [95 %]", ".3f", ".2f")},
    "change": Column("change [95 %]", "+.3f", "+.2f"),
    "lossy_share": Column("of vocabulary with loss ≥ 0.25 [95 %]", ".1%", ".1%"),
}
TASKS = {
    **{"remedy": Column("remedy", words=WORDS), "clean": Column("clean", ".3f")},
    "clean_change": Column("change, clean [95 %]", "+.3f", "+.3f"),
    "poisoned": Column("poisoned", ".3f"),
    "poisoned_change": Column("change, poisoned [95 %]", "+.3f", "+.3f"),
    "touched": Column("clean texts changed", ",d"),
}


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    is_there = facts["mitigation_losses"] or facts["mitigation"]
    return Section("What helps against sticky tokens", list(_parts(facts))) if is_there else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    if facts["mitigation_losses"]:
        yield _table_of_losses(facts["mitigation_losses"])
    rows = facts["mitigation"]
    for corpus, metric in dict.fromkeys((row["corpus"], row["metric"]) for row in rows):
        yield _scores([row for row in rows if (row["corpus"], row["metric"]) == (corpus, metric)])
    yield "Write a mitigated checkpoint: embaudit mitigate CHECKPOINT --tokens severe.json --how … --out DIR"


def _table_of_losses(losses: list[dict[str, Any]]) -> Table:
    first = losses[0]
    return Table.of(
        LOSSES,
        losses,
        f"Loss of the {first['tokens']:,} worst of {first['severe']:,} severe tokens, and of {first['vocabulary']:,} "
        f"random tokens of the vocabulary, with {first['copies']} copies",
        more="embaudit query mitigation-losses",
    )


def _scores(rows: list[dict[str, Any]]) -> Table:
    first = rows[0]
    return Table.of(
        TASKS,
        rows,
        f"{SCORES[first['metric']]}, {first['corpus']}: {first['items']:,} items, clean and with a severe token in "
        "every text",
        more="embaudit query mitigation",
    )
