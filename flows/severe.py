"""Chooses the severe tokens that a measure works on: those requested, or those that the search found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from embaudit.errors import UsageError
from embaudit.measures.mitigation.remedies import treatable
from embaudit.measures.sticky.inspect import find_token
from embaudit.screening.tokens import Severity, severe_rows
from embaudit.warehouse.stage import read_rows
from embaudit_flows.plan import AuditPlan
from embaudit_tasks.results import Staged, checkpoint_of


def severe_tokens(
    plan: AuditPlan,
    wanted: Sequence[str],
    severity: Severity,
    entries: Mapping[int, Mapping[str, Any]],
    earlier: Sequence[Staged],
) -> list[int]:
    """Token ids, worst first or as requested, without tokens that no text can contain or that every text contains.

    Args:
        wanted: requested tokens; if empty, those that the search found to be at least of this severity.
        entries: the vocabulary by id.
        earlier: what the search staged.

    Raises:
        UsageError: if the checkpoint has no such token, or none of the requested tokens is left.
    """
    checkpoint = checkpoint_of(plan.spec)
    if wanted:
        asked = list(dict.fromkeys(find_token(checkpoint, one) for one in wanted))
    else:
        verdicts = read_rows([part.path for part in earlier if part.table == "sticky_validation"])
        asked = [row["token_id"] for row in severe_rows(verdicts, severity)]
    can_be = treatable(checkpoint, asked)
    found = [token for token in asked if token in can_be and entries[token]["is_reachable"]]
    if wanted and not found:
        raise UsageError(
            "None of these tokens is in some texts and not in others: no text can hold them, or every text does.",
            next_step="See what is reachable: embaudit query vocabulary",
        )
    return found
