"""Sub-flow: what sticky tokens do to downstream tasks. Tokens -> texts with copies -> scores, for each corpus."""

from __future__ import annotations

from typing import Any

from prefect import flow

from embaudit.errors import NotMeasurable, UsageError
from embaudit.measures.impact.arms import ArmName, found_arms, with_ordinary
from embaudit.measures.impact.settings import ImpactSettings
from embaudit.measures.sticky.inspect import find_token
from embaudit.warehouse.stage import read_rows
from embaudit_flows.plan import AuditPlan
from embaudit_tasks.downstream import corpora_of, notes_of, task_material
from embaudit_tasks.impact import NEVER_POISONED, ByArm, PoisonedSide, impact_scores, impact_vectors
from embaudit_tasks.results import Staged, StagedCorpus, checkpoint_of, note
from embaudit_tasks.vocabulary import read_tokens


@flow(name="impact of sticky tokens", flow_run_name="impact of tokens on {plan.source}", persist_result=False)
def impact(plan: AuditPlan, ingested: dict[str, StagedCorpus], earlier: list[Staged] | None = None) -> list[Staged]:
    """Scores of every arm of every task; a corpus that allows no task is left out with a note.

    Args:
        earlier: what the measure ``sticky`` staged; needed if no tokens were given.
    """
    settings = plan.profile.of(ImpactSettings)
    (vocabulary,) = read_tokens(plan.staging, plan.spec)
    entries = {row["token_id"]: row for row in read_rows([vocabulary.path])}
    if settings.tokens:
        arms, staged = _given(plan, settings.tokens, entries)
    else:
        arms, staged = _found(plan, earlier or [], settings.tokens_per_arm)
    arms = with_ordinary(arms, list(entries.values()), settings.tokens_per_arm, plan.seed)
    names = {token: entries[token]["token"] for tokens in arms.values() for token in tokens}
    for name in settings.corpora:
        corpora = corpora_of(name, ingested)
        try:
            staged += _one_corpus(plan, corpora, arms, names)
        except NotMeasurable as error:
            staged.append(note(f"Left out, impact on {name}: {error.happened}", plan.staging))
    return [vocabulary, *staged]


def _given(
    plan: AuditPlan, wanted: tuple[str, ...], entries: dict[int, dict[str, Any]]
) -> tuple[dict[ArmName, list[int]], list[Staged]]:
    """The requested tokens, and a note about those that no text can contain.

    Raises:
        UsageError: if the checkpoint has no such token, or no text can contain any of them.
    """
    checkpoint = checkpoint_of(plan.spec)
    asked = list(dict.fromkeys(find_token(checkpoint, one) for one in wanted))
    unreachable = [token for token in asked if not entries[token]["is_reachable"]]
    tokens = [token for token in asked if entries[token]["is_reachable"]]
    named = ", ".join(repr(entries[token]["token"]) for token in unreachable)
    if not tokens:
        raise UsageError(
            f"No text can hold {named}: the tokenizer produces {'it' if len(asked) == 1 else 'them'} from nothing.",
            next_step="See what is reachable: embaudit query vocabulary",
        )
    notes = [note(f"Left out of the impact: {named}, which no text can hold.", plan.staging)] if unreachable else []
    return {"given": tokens}, notes


def _found(
    plan: AuditPlan, earlier: list[Staged], tokens_per_arm: int
) -> tuple[dict[ArmName, list[int]], list[Staged]]:
    def rows(table: str) -> list[dict[str, Any]]:
        return read_rows(list(dict.fromkeys(part.path for part in earlier if part.table == table)))

    arms = found_arms(rows, tokens_per_arm)
    if not arms:
        return arms, [note("Impact of ordinary tokens alone: the search found no sticky ones.", plan.staging)]
    return arms, []


def _one_corpus(
    plan: AuditPlan, corpora: list[StagedCorpus], arms: dict[ArmName, list[int]], names: dict[int, str]
) -> list[Staged]:
    settings, corpus = plan.profile.of(ImpactSettings), corpora[0]
    (material,) = task_material(plan.staging, plan.spec, corpora, settings, plan.seed)
    files = [material]

    def encode(side: str, token: int | None) -> Staged:
        one = PoisonedSide.of(material, side, token, names, corpus.name, plan.seed)
        files.extend(impact_vectors(plan.staging, plan.spec, one))
        return files[-1]

    sides = material.detail["sides"]
    clean = {side: encode(side, None) for side in sides}
    held = [side for side in sides if side != NEVER_POISONED]
    poisoned: ByArm = {
        arm: {str(token): {side: encode(side, token) for side in held} for token in tokens}
        for arm, tokens in arms.items()
    }
    of_tokens = {str(token): name for token, name in names.items()}
    scored = impact_scores(plan.staging, corpus, material, clean, poisoned, of_tokens, settings, plan.seed)
    # A corpus without queries has no rows about queries, one data set none about data sets.
    return [*files, *(part for part in scored if part.rows), *notes_of(corpora, material, settings, plan.staging)]
