"""Sub-flow: where the severe tokens of the audit do most harm in a text."""

from __future__ import annotations

import numpy as np
from prefect import flow

from embaudit.errors import UsageError
from embaudit.measures.placement.settings import PlacementSettings
from embaudit.measures.sticky.inspect import find_token
from embaudit.measures.sticky.plan import choose_controls
from embaudit.screening.tokens import severe_rows
from embaudit.warehouse.stage import read_rows
from embaudit_flows.plan import AuditPlan
from embaudit_flows.sticky import measured_on
from embaudit_tasks.placement import placements, possible_strategies
from embaudit_tasks.results import Staged, StagedCorpus, checkpoint_of, note


@flow(name="placement", flow_run_name="placement of sticky tokens of {plan.source}", persist_result=False)
def placement(plan: AuditPlan, ingested: dict[str, StagedCorpus], earlier: list[Staged] | None = None) -> list[Staged]:
    """Place the worst tokens by every strategy; nothing but a note where no token is severe."""
    settings = plan.profile.of(PlacementSettings)
    _, tokens, sample = measured_on(plan, ingested)
    entries = {row["token_id"]: row for row in read_rows([tokens.path])}
    severe = _severe(plan, settings, earlier or [])
    if not severe:
        return [note("Nothing to place: the search found no severe token.", plan.staging)]
    worst = severe[: settings.tokens_placed]
    controls = choose_controls(list(entries.values()), np.array(severe), settings.ordinary, plan.seed)
    strategies, why_not = possible_strategies(plan.spec)
    left_out = [note(f"Left out, gradient-guided placement: {why_not}", plan.staging)] if why_not else []
    placed = placements(
        plan.staging,
        plan.spec,
        sample,
        {str(token): entries[token]["token"] for token in worst},
        controls.tolist(),
        strategies,
        settings,
        plan.seed,
    )
    return [tokens, *left_out, *placed]


def _severe(plan: AuditPlan, settings: PlacementSettings, earlier: list[Staged]) -> list[int]:
    """Token ids, the worst first: those that were asked for, or those of the search."""
    if settings.tokens:
        checkpoint = checkpoint_of(plan.spec)
        found = list(dict.fromkeys(find_token(checkpoint, one) for one in settings.tokens))
        inside = [token for token in found if token not in (*checkpoint.prefix_ids, *checkpoint.suffix_ids)]
        if not inside:
            raise UsageError(
                "These tokens stand around every text, and cannot be placed in one.",
                next_step="See what a text can hold: embaudit query vocabulary",
            )
        return inside
    verdicts = read_rows([part.path for part in earlier if part.table == "sticky_validation"])
    return [row["token_id"] for row in severe_rows(verdicts, settings.severity)]
