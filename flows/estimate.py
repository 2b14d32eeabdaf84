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
# Before a measure that takes as long, the rest is estimated again, and said if it is so many times longer or shorter.
LONG_SECONDS = 60
WORTH_SAYING = 1.25


class HowLong:
    """How long an audit takes, said at its start; and again if this machine has become faster or slower since.

    What else runs here is not known at the start, and one look at it may fall on a busy second.
    """

    def __init__(self, plan: AuditPlan, readable: Readable) -> None:
        self._plan, self._readable = plan, readable
        self._seconds = self._expected()
        say(f"This takes about {_said(self._seconds)}, but cached work is skipped.")

    def before(self, measure: str) -> None:
        """Look again before a measure that takes long, and say how long the rest takes if that has changed."""
        if self._seconds[measure] < LONG_SECONDS:
            return
        names = list(self._seconds)
        left = names[names.index(measure) :]
        now = self._expected()
        expected, rest = sum(self._seconds[name] for name in left), {name: now[name] for name in left}
        ratio = sum(rest.values()) / expected
        if 1 / WORTH_SAYING <= ratio <= WORTH_SAYING:
            return
        self._seconds = now
        say(
            f"Now about {_said(rest)} left, not {rounded(expected + FIXED_SECONDS)}: this machine is "
            f"{'slower' if ratio > 1 else 'faster'} than it was when the audit started."
        )

    def _expected(self) -> dict[str, float]:
        """Expected duration of each measure, at the speed at which this process now computes a layer."""
        rate = operations_per_second(self._plan.spec.device, self._plan.spec.dtype, self._plan.widths)
        work = work_of(self._plan.profile, self._plan.measures, self._readable)
        return {name: self._readable.seconds(parts, rate, processors()) for name, parts in work.items()}


def say_how_long(
    plan: AuditPlan, ingested: Mapping[str, StagedCorpus], audit_id: str, checkpoint: Mapping[str, Any]
) -> HowLong | None:
    """Say in one line how long the audit will take; None if it is already published or its layers are unknown.

    Args:
        checkpoint: the checkpoint's row in the table ``checkpoint``.
    """
    if checkpoint["layers"] is None or was_published(warehouse_at(plan.warehouse), audit_id):
        return None
    return HowLong(plan, readable_of(plan, ingested, checkpoint))


def _said(seconds: Mapping[str, float]) -> str:
    """The whole with what follows the measures, and in brackets those that take most of it."""
    parts = ", ".join(
        f"{name} {rounded(one)}"
        for name, one in sorted(seconds.items(), key=lambda part: -part[1])
        if one > NAMED_SECONDS
    )
    return f"{rounded(sum(seconds.values()) + FIXED_SECONDS)}{f' ({parts})' if parts else ''}"


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
