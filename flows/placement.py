"""Sub-flow: where in a text the audit's severe tokens do most harm."""

from __future__ import annotations

import numpy as np
from prefect import flow

from embaudit.measures.placement.settings import PlacementSettings
from embaudit.measures.sticky.plan import choose_controls
from embaudit.warehouse.stage import read_rows
from embaudit_flows.plan import AuditPlan
from embaudit_flows.severe import severe_tokens
from embaudit_flows.sticky import measured_on
from embaudit_tasks.placement import placements, possible_strategies
from embaudit_tasks.results import Staged, StagedCorpus, note


@flow(name="placement", flow_run_name="placement of sticky tokens of {plan.source}", persist_result=False)
def placement(plan: AuditPlan, ingested: dict[str, StagedCorpus], earlier: list[Staged] | None = None) -> list[Staged]:
    """Place the worst tokens by every strategy; only a note if no token is severe."""
    settings = plan.profile.of(PlacementSettings)
    _, tokens, sample = measured_on(plan, ingested)
    entries = {row["token_id"]: row for row in read_rows([tokens.path])}
    severe = severe_tokens(plan, settings.tokens, settings.severity, entries, earlier or [])
    if not severe:
        return [note("Nothing to place: the search found no severe token that a text can hold.", plan.staging)]
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
    )
    return [tokens, *left_out, *placed]
