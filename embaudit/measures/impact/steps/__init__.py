"""The steps of impact: what sticky tokens do to tasks. Tokens -> texts with copies -> scores, for each corpus."""

from __future__ import annotations

from typing import Any

from embaudit.measures.impact import ImpactSettings
from embaudit.measures.impact.arms import ArmName, found_arms, with_ordinary
from embaudit.measures.impact.steps.scores import NEVER_POISONED, ByArm, PoisonedSide, impact_scores, impact_vectors
from embaudit.measures.run import Run
from embaudit.measures.sticky.inspect import find_token
from embaudit.measures.sticky.steps.sentences import read_tokens
from embaudit.measures.task_material import corpora_of, notes_of, sides_of, task_material
from embaudit.steps.results import Staged, StagedCorpus, checkpoint_of
from embaudit.steps.staging.stage import read_rows
from embaudit.words.errors import NotMeasurable, UsageError


def measure(run: Run) -> list[Staged]:
    """Scores of every arm of every task; a corpus that allows no task is left out with a note.

    The tokens are those that were given, or those that the measure ``sticky`` found.
    """
    settings = run.settings(ImpactSettings)
    (vocabulary,) = run(read_tokens, run.spec)
    entries = {row["token_id"]: row for row in read_rows([vocabulary.path])}
    if settings.tokens:
        arms, staged = _given(run, settings.tokens, entries)
    else:
        arms, staged = _found(run, settings.tokens_per_arm)
    arms = with_ordinary(arms, list(entries.values()), settings.tokens_per_arm, run.seed)
    names = {token: entries[token]["token"] for tokens in arms.values() for token in tokens}
    for name in settings.corpora:
        corpora = corpora_of(name, run.corpora)
        try:
            staged += _one_corpus(run, corpora, arms, names)
        except NotMeasurable as error:
            staged.append(run.skipped(f"impact on {name}", error))
    return [vocabulary, *staged]


def _given(
    run: Run, wanted: tuple[str, ...], entries: dict[int, dict[str, Any]]
) -> tuple[dict[ArmName, list[int]], list[Staged]]:
    """The requested tokens, and a note about those that no text can contain.

    Raises:
        UsageError: if the checkpoint has no such token, or no text can contain any of them.
    """
    checkpoint = checkpoint_of(run.spec)
    asked = list(dict.fromkeys(find_token(checkpoint, one) for one in wanted))
    unreachable = [token for token in asked if not entries[token]["is_reachable"]]
    tokens = [token for token in asked if entries[token]["is_reachable"]]
    named = ", ".join(repr(entries[token]["token"]) for token in unreachable)
    if not tokens:
        raise UsageError(
            f"No text can contain {named}: the tokenizer never produces {'it' if len(asked) == 1 else 'them'}.",
            next_step="See what is reachable: embaudit query vocabulary",
        )
    notes = [run.note(f"Left out of the impact: {named}, which no text can contain.")] if unreachable else []
    return {"given": tokens}, notes


def _found(run: Run, tokens_per_arm: int) -> tuple[dict[ArmName, list[int]], list[Staged]]:
    def rows(table: str) -> list[dict[str, Any]]:
        return read_rows(list(dict.fromkeys(part.path for part in run.earlier if part.table == table)))

    arms = found_arms(rows, tokens_per_arm)
    if not arms:
        return arms, [run.note("Impact of ordinary tokens alone: the search found no sticky ones.")]
    return arms, []


def _one_corpus(
    run: Run, corpora: list[StagedCorpus], arms: dict[ArmName, list[int]], names: dict[int, str]
) -> list[Staged]:
    settings, corpus = run.settings(ImpactSettings), corpora[0]
    (material,) = run(task_material, run.spec, corpora, settings, run.seed)
    files = [material]

    def encode(side: str, token: int | None) -> Staged:
        one = PoisonedSide.of(material, side, token, names, corpus.name, run.seed)
        files.extend(run(impact_vectors, run.spec, one))
        return files[-1]

    sides = sides_of(material)
    clean = {side: encode(side, None) for side in sides}
    held = [side for side in sides if side != NEVER_POISONED]
    poisoned: ByArm = {
        arm: {str(token): {side: encode(side, token) for side in held} for token in tokens}
        for arm, tokens in arms.items()
    }
    of_tokens = {str(token): name for token, name in names.items()}
    scored = run(impact_scores, corpus, material, clean, poisoned, of_tokens, settings, run.seed)
    # A corpus without queries has no rows about queries, one data set none about data sets.
    return [*files, *(part for part in scored if part.rows), *notes_of(run, corpora, material, settings)]
