"""Chooses the severe tokens that a measure works on: those requested, or those that the search found."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from embaudit.checkpoint import Checkpoint
from embaudit.measures.run import Run
from embaudit.measures.sticky.inspect import find_token
from embaudit.remedies.screening.tokens import Severity, severe_rows
from embaudit.steps.results import checkpoint_of
from embaudit.steps.staging.stage import read_rows
from embaudit.words.errors import UsageError


def severe_tokens(
    run: Run,
    wanted: Sequence[str],
    severity: Severity,
    entries: Mapping[int, Mapping[str, Any]],
) -> list[int]:
    """Token ids, worst first or as requested, without tokens that no text can contain or that every text contains.

    Args:
        wanted: requested tokens; if empty, those that the search found to be at least of this severity.
        entries: the vocabulary by id.

    Raises:
        UsageError: if the checkpoint has no such token, or none of the requested tokens is left.
    """
    checkpoint = checkpoint_of(run.spec)
    if wanted:
        asked = list(dict.fromkeys(find_token(checkpoint, one) for one in wanted))
    else:
        verdicts = read_rows([part.path for part in run.earlier if part.table == "sticky_validation"])
        asked = [row["token_id"] for row in severe_rows(verdicts, severity)]
    can_be = treatable(checkpoint, asked)
    found = [token for token in asked if token in can_be and entries[token]["is_reachable"]]
    if wanted and not found:
        raise UsageError(
            "None of these tokens is in some texts and not in others: no text can contain them, or every text does.",
            next_step="See what is reachable: embaudit query vocabulary",
        )
    return found


def treatable(checkpoint: Checkpoint, severe: Collection[int]) -> frozenset[int]:
    """The severe tokens that can be treated: all but those in every text (special tokens, prompts)."""
    everywhere = {*checkpoint.prefix_ids, *checkpoint.suffix_ids, *checkpoint.prompt.ids}
    return frozenset(severe) - everywhere
