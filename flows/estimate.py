"""Estimates how long an audit will take on this machine, before its measures start."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from embaudit.address import warehouse_at
from embaudit.checkpoint.precision import operations_per_second
from embaudit.measures import MEASURES
from embaudit.measures.workload import Readable, Work
from embaudit.processors import processors
from embaudit.profile import Profile
from embaudit.steps.corpora import mean_characters
from embaudit.steps.results import StagedCorpus
from embaudit.warehouse.publish import was_published
from embaudit_flows.plan import AuditPlan
from embaudit_tasks.progress import say

# For checks, publishing and the page.
FIXED_SECONDS = 20
CHARACTERS_PER_TOKEN = 4.5
SPECIAL_TOKENS = 2
# Measures that take less are not named.
NAMED_SECONDS = 5


def say_how_long(
    plan: AuditPlan, ingested: Mapping[str, StagedCorpus], audit_id: str, checkpoint: Mapping[str, Any]
) -> None:
    """Say in one line how long the audit will take, unless it is already published or its layers are unknown.

    Args:
        checkpoint: the checkpoint's row in the table ``checkpoint``.
    """
    if checkpoint["layers"] is None or was_published(warehouse_at(plan.warehouse), audit_id):
        return
    seconds = expected_seconds(plan, ingested, checkpoint)
    parts = ", ".join(
        f"{name} {rounded(one)}"
        for name, one in sorted(seconds.items(), key=lambda part: -part[1])
        if one > NAMED_SECONDS
    )
    whole = rounded(sum(seconds.values()) + FIXED_SECONDS)
    say(f"This takes about {whole}{f' ({parts})' if parts else ''}, but cached work is skipped.")


def expected_seconds(
    plan: AuditPlan, ingested: Mapping[str, StagedCorpus], checkpoint: Mapping[str, Any]
) -> dict[str, float]:
    """Expected duration of each measure, at the speed at which this process now computes a layer."""
    readable = readable_of(plan, ingested, checkpoint)
    rate = operations_per_second(plan.spec.device, plan.spec.dtype, plan.widths)
    work = work_of(plan.profile, plan.measures, readable)
    return {name: readable.seconds(parts, rate, processors()) for name, parts in work.items()}


def work_of(profile: Profile, measures: Collection[str], readable: Readable) -> dict[str, list[Work]]:
    """The work of each measure, in the order in which they run; what several share is the first one's."""
    shared: set[Work] = set()
    found: dict[str, list[Work]] = {}
    for name in (name for name in MEASURES if name in measures):
        settings = profile.of(MEASURES[name].settings)
        found[name] = [one for one in settings.work(readable) if one not in shared]
        shared |= {one for one in found[name] if one.is_shared}
    return found


def readable_of(plan: AuditPlan, ingested: Mapping[str, StagedCorpus], checkpoint: Mapping[str, Any]) -> Readable:
    """The sizes that determine the work."""
    vocabulary = checkpoint["vocabulary_size"]
    return Readable(
        layers=checkpoint["layers"],
        heads=checkpoint["layers"] * (checkpoint["heads"] or 0),
        hidden_size=checkpoint["hidden_size"],
        vocabulary=vocabulary,
        searched=min(plan.limit_tokens or vocabulary, vocabulary),
        max_length=checkpoint["max_length"],
        rows={name: corpus.rows for name, corpus in ingested.items()},
        tokens={
            name: mean_characters(corpus) / CHARACTERS_PER_TOKEN + SPECIAL_TOKENS for name, corpus in ingested.items()
        },
    )


def rounded(seconds: float) -> str:
    """A duration in round numbers: 40 s, 6 min, 3 h."""
    for unit, size in (("h", 3_600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(10 * round(seconds / 10), 10)} s"
