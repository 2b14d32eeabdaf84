"""The severe tokens that a measure works on: those that were asked for, or those that the search found."""

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
    """Token ids, the worst first, without those that no text can hold and those that every text holds.

    Args:
        wanted: those that were asked for; without any, those of the search that are at least so severe.
        entries: the vocabulary by id.
        earlier: what the search staged.

    Raises:
        UsageError: if the checkpoint has no such token, or nothing is left of those that were asked for.
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
